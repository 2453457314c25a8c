"""The judge: agrees with a byte-by-byte run, and catches every mutation."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.problem.buffers import Buffer, Colocation, Kind, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution
from solvers.search import solve
from solvers.verifier import VerificationError, verify
from tests.problems import buffers, paint, tied_problems


def accepts(problem, solution):
    try:
        verify(problem, solution)
    except VerificationError:
        return False
    return True


@given(st.data(), buffers(alignments=(1,)))
def test_it_agrees_with_painting_loose_buffers(data, some):
    problem = Problem(some)
    offsets = {b.id: data.draw(st.integers(0, 8)) for b in some}
    assert accepts(problem, Solution(offsets)) == paint(problem, Solution(offsets))


@given(st.data(), tied_problems())
def test_it_agrees_with_painting_tied_buffers(data, problem):
    """Groups are put anywhere, so that they collide often."""
    offsets = {}
    for group in problem.groups(problem.required):
        base = data.draw(st.integers(0, 6)) * group.modulus + group.residue
        offsets |= {i: base + at for i, at in group.members}
    solution = Solution(offsets, problem.required)
    assert accepts(problem, solution) == paint(problem, solution)


@given(st.data(), tied_problems())
def test_it_refuses_two_tied_buffers_that_moved_apart(data, problem):
    solution = solve(problem, "greedy").solution
    moved = data.draw(st.sampled_from([c.part for c in problem.colocations] or [""]))
    if moved:
        offsets = {**solution.offsets, moved: solution.offsets[moved] + problem.by_id[moved].alignment}
        with pytest.raises(VerificationError, match="it must be at"):
            verify(problem, Solution(offsets, problem.required))


A, B = Buffer("a", 4, 0, 3, 2), Buffer("b", 4, 2, 5, 1, 4)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"a": 0}, "'b' has no offset"),
        ({"a": 0, "b": 4, "c": 0}, "'c', which is no buffer"),
        ({"a": -2, "b": 4}, "'a' has offset -2"),
        ({"a": 0.0, "b": 4}, "must be an integer"),
        ({"a": 9, "b": 4}, "not a multiple of its alignment, 2"),
        ({"a": 0, "b": 5}, "pinned at 4"),
        ({"a": 8, "b": 4}, "beyond the capacity, 11"),
        ({"a": 2, "b": 4}, "'a' and 'b' overlap: both hold bytes [4, 6) in steps [2, 3)"),
    ],
)
def test_it_names_what_is_wrong(offsets, message):
    with pytest.raises(VerificationError) as error:
        verify(Problem([A, B], capacity=11), Solution(offsets))
    assert message in str(error.value)


def test_it_lists_every_violation():
    some = [Buffer(f"b{k}", 4, 0, 2) for k in range(4)]
    with pytest.raises(VerificationError) as error:
        verify(Problem(some), Solution({b.id: 0 for b in some}))
    assert len(error.value.violations) == 6


def test_active_colocations_must_exist_and_required_ones_be_active():
    problem = Problem([Buffer("a", 4, 0, 3), Buffer("c", 8, 2, 5)], [Colocation("a", "c", 0)])
    for active, message in (
        ((), "required but not active"),
        ((0, 1), "does not exist"),
        ((-1,), "does not exist"),
        (([],), "does not"),
    ):
        with pytest.raises(VerificationError) as error:
            verify(problem, Solution({"a": 0, "c": 0}, active))
        assert any(message in v for v in error.value.violations)


HANDOFF = Colocation("b", "a", 0, Kind.HANDOFF)


def test_a_handoff_excuses_its_one_step():
    problem = Problem([Buffer("a", 4, 0, 3), Buffer("b", 4, 2, 5)], [HANDOFF])
    assert verify(problem, Solution({"a": 0, "b": 0}, (0,))) == 4


@pytest.mark.parametrize(
    "other",
    [
        Buffer("s", 2, 1, 3),  # a slice of a that the same step still reads
        Buffer("s", 2, 1, 5),  # ... or a later one
        Buffer("s", 2, 3, 5),  # ... or that is only made when the bytes are gone
    ],
)
def test_a_handoff_is_void_where_another_still_shows_the_bytes(other):
    some = [Buffer("a", 4, 0, 3), Buffer("b", 4, 2, 5), other]
    ties = [Colocation("b", "a", 0, Kind.HANDOFF, required=False), Colocation("s", "a", 1, required=False)]
    with pytest.raises(VerificationError, match="overlap"):
        verify(Problem(some, ties), Solution({"a": 0, "b": 0, "s": 1}, (0, 1)))


def test_a_successor_may_be_part_of_a_concat_that_is_born_with_it():
    some = [Buffer("p", 4, 0, 3), Buffer("s", 4, 2, 4), Buffer("w", 4, 2, 4)]
    ties = [Colocation("s", "p", 0, Kind.HANDOFF), Colocation("s", "w", 0)]
    for order in (some, some[::-1]):
        assert verify(Problem(order, ties), Solution({"p": 0, "s": 0, "w": 0}, (0, 1))) == 4


def test_ties_that_go_in_a_circle_are_a_violation():
    some = [Buffer(i, 4, 0, 2) for i in "abc"]
    ties = [Colocation(p, w, 0, required=False) for p, w in (("a", "b"), ("b", "a"), ("c", "a"))]
    with pytest.raises(VerificationError, match="go in a circle"):
        verify(Problem(some, ties), Solution({"a": 0, "b": 0, "c": 0}, (0, 1, 2)))


def test_two_writers_of_one_byte_are_a_violation():
    some = [Buffer("p", 4, 0, 3), Buffer("q", 4, 3, 5), Buffer("w", 4, 3, 5)]
    ties = [Colocation(i, "w", 0, required=False) for i in "pq"]
    with pytest.raises(VerificationError, match="'p' and 'q' both write"):
        verify(Problem(some, ties), Solution({"p": 0, "q": 0, "w": 0}, (0, 1)))


def test_deeply_tied_buffers_are_judged_quickly():
    """Diamonds double the ways to a writer, prefix chains square the meetings: neither may blow up."""
    some, ties = [Buffer("x0", 4, 0, 99)], []
    for k in range(1, 40):
        some += [Buffer(f"{i}{k}", 4, k, 99) for i in "yzx"]
        ties += [Colocation(f"x{k - 1}", f"{i}{k}", 0) for i in "yz"]
        ties += [Colocation(f"{i}{k}", f"x{k}", 0) for i in "yz"]
    diamonds = Problem(some, ties)
    some, ties = [Buffer("c0", 4, 0, 300)], []
    for k in range(1, 80):
        some += [Buffer(f"p{k}", 4, k, 300), Buffer(f"c{k}", 4 + 4 * k, k, 300)]
        ties += [Colocation(f"c{k - 1}", f"c{k}", 0), Colocation(f"p{k}", f"c{k}", 4 * k)]
    started = time.monotonic()
    for problem, peak in ((diamonds, 4), (Problem(some, ties), 320)):
        assert solve(problem).peak == peak
    assert time.monotonic() - started < 20


def test_handoffs_are_not_transitive():
    """b lives one step only: c would be written over a while a is still read."""
    some = [Buffer("a", 4, 0, 3), Buffer("b", 4, 2, 3), Buffer("c", 4, 2, 5)]
    with pytest.raises(ProblemError, match="and after it"):
        Problem(some, [HANDOFF, Colocation("c", "b", 0, Kind.HANDOFF)])
    with pytest.raises(VerificationError, match=r"'[ab]' and 'c' overlap"):
        verify(Problem(some, [HANDOFF]), Solution({"a": 0, "b": 0, "c": 0}, (0,)))
