"""Problems are valid once they exist; messages name the thing, the value and the rule."""

import pytest

from solvers.problem.buffers import LIMIT, Buffer, Colocation, Kind, ProblemError
from solvers.problem.problem import Problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 1, 0, 1), "buffer id is ''"),
        ((7, 1, 0, 1), "buffer id is 7"),
        (("a", -1, 0, 1), "buffer 'a': size is -1: it must be at least 0"),
        (("a", 1.5, 0, 1), "size is 1.5: it must be an integer"),
        (("a", True, 0, 1), "size is True: it must be an integer"),
        (("a", float("nan"), 0, 1), "size is nan"),
        (("a", 2**80, 0, 1), f"it must be at most {LIMIT}"),
        (("a", 1, 3, 3), "end is 3: it must be after start, 3"),
        (("a", 1, 3, 2), "end is 2: it must be after start, 3"),
        (("a", 1, 0, 2**80), "end is"),
        (("a", 1, 0, 1, 0), "alignment is 0: it must be at least 1"),
        (("a", 1, 0, 1, 4, 6), "offset is 6: it must be a multiple of the alignment, 4"),
        (("a", 1, 0, 1, 1, -4), "offset is -4: it must be at least 0"),
        (("a", 2, 0, 1, 1, LIMIT), "offset plus size"),
    ],
)
def test_a_bad_buffer_is_refused(arguments, message):
    with pytest.raises(ProblemError) as error:
        Buffer(*arguments)
    assert message in str(error.value)


PRIMES = [1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049]


def many_alignments():
    parts = [Buffer(f"b{k}", 5, 0, 5, prime) for k, prime in enumerate(PRIMES)]
    return [*parts, Buffer("w", 99, 0, 5)], [Colocation(b.id, "w", 5 * k) for k, b in enumerate(parts)]


A, B, C = Buffer("a", 4, 0, 3), Buffer("b", 4, 1, 3), Buffer("c", 8, 2, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem([A, A]), "buffer id 'a' occurs twice"),
        (lambda: Problem([A], capacity=-1), "capacity is -1"),
        (lambda: Problem([A], capacity="8"), "capacity is '8': it must be an integer"),
        (lambda: Problem([Buffer(f"x{k}", LIMIT - 1, 0, 1) for k in range(3)]), "add up to"),
        (lambda: Problem([A], [Colocation("a", "z", 0)]), "the whole 'z' is no buffer"),
        (lambda: Problem([A], [Colocation("z", "a", 0)]), "the part 'z' is no buffer"),
        (lambda: Problem([A, C], [Colocation("a", "c", 5)]), "at 5 plus the part's size 4 is 9"),
        (lambda: Problem([A], [Colocation("a", "a", 0)]), "part of itself"),
        (lambda: Problem([A, C], [Colocation("a", "c", -1)]), "at is -1"),
        (lambda: Problem([A, C], [Colocation("a", ["c"], 0)]), "is no buffer id"),
        (lambda: Problem([A, Buffer("c", 8, 4, 5)], [Colocation("a", "c", 0)]), "must overlap or touch"),
        (lambda: Problem([A, C], [Colocation("c", "a", 0, Kind.HANDOFF)]), "at 0 plus the part's size 8"),
        (lambda: Problem([A, B], [Colocation("b", "a", 0, Kind.HANDOFF)]), "born in the last step"),
        (
            lambda: Problem([Buffer("p", 8, 2, 3), Buffer("s", 4, 2, 4)], [Colocation("s", "p", 0, Kind.HANDOFF)]),
            "born in the last step of the whole, and after it",
        ),
        (lambda: Problem(*many_alignments()), "common multiple of"),
        (lambda: Problem([A, C], [Colocation("a", "c", 0), Colocation("a", "c", 4)]), "'a' must be at 0 inside 'c'"),
        (lambda: Problem([A, B, C], [Colocation("a", "c", 0), Colocation("b", "c", 2)]), "both write byte 2 of 'c'"),
        (
            lambda: Problem([Buffer("a", 4, 0, 3, 16), Buffer("c", 8, 2, 5, 8)], [Colocation("a", "c", 4)]),
            "its alignment, 8, cannot hold",
        ),
        (
            lambda: Problem([Buffer("a", 4, 0, 3, 1, 8), Buffer("c", 8, 2, 5, 1, 0)], [Colocation("a", "c", 0)]),
            "pinned at offsets that their colocations contradict",
        ),
        (
            lambda: Problem([Buffer("a", 4, 0, 3, 1, 0), C], [Colocation("a", "c", 4)]),
            "negative or misaligned offset",
        ),
    ],
)
def test_a_bad_problem_is_refused(make, message):
    with pytest.raises(ProblemError) as error:
        make()
    assert message in str(error.value)


def test_two_writers_at_one_place_are_refused_unless_their_lifetimes_are_apart():
    """p is a part of two wholes; beside it, q and r want the same bytes."""
    p, q = Buffer("p", 4, 0, 3), Buffer("q", 4, 0, 3)
    first, ties = Buffer("v", 8, 2, 4), [Colocation("p", "v", 0), Colocation("q", "v", 4)]
    early, late = Buffer("r", 4, 1, 6), Buffer("r", 4, 4, 6)
    second = [Colocation("p", "w", 0), Colocation("r", "w", 4)]
    with pytest.raises(ProblemError, match="'q' and 'r' are put on the same bytes"):
        Problem([p, q, first, early, Buffer("w", 8, 3, 7)], [*ties, *second])
    p = Buffer("p", 4, 0, 5)
    assert Problem([p, q, first, late, Buffer("w", 8, 5, 7)], [*ties, *second]).required == (0, 1, 2, 3)


def test_a_contradiction_names_both_ways_around():
    buffers = [Buffer(i, 4, 0, 4) for i in "pq"] + [Buffer(i, 12, 1, 4) for i in "vw"]
    ties = [Colocation("p", "v", 0), Colocation("q", "v", 4), Colocation("p", "w", 0), Colocation("q", "w", 8)]
    with pytest.raises(ProblemError) as error:
        Problem(buffers, ties)
    message = str(error.value)
    assert "contradict each other" in message
    assert "must be at" in message
    assert "by way of" in message


def test_optional_colocations_may_contradict():
    ties = [Colocation("a", "c", 0, required=False), Colocation("a", "c", 4, required=False)]
    assert Problem([A, C], ties).required == ()
