"""Groups reserve what their members show, and no more."""

from hypothesis import given

from solvers.problem.buffers import Buffer, Colocation, Kind
from solvers.problem.problem import Problem
from tests.problems import tied_problems


def area(problem: Problem) -> int:
    groups = problem.groups(problem.required)
    return sum((s.high - s.low) * (s.end - s.start) for g in groups for s in g.segments)


def test_a_part_that_is_born_early_reserves_only_its_own_bytes():
    parts = [Buffer("p", 4, 0, 3), Buffer("q", 4, 2, 3)]
    whole = Buffer("w", 8, 3, 5)
    ties = [Colocation("p", "w", 0), Colocation("q", "w", 4)]
    assert area(Problem([*parts, whole], ties)) == 4 * 5 + 4 * 3


def test_a_slice_keeps_alive_only_its_own_bytes():
    base, part = Buffer("x", 8, 0, 2), Buffer("s", 2, 1, 6)
    assert area(Problem([base, part], [Colocation("s", "x", 3)])) == 8 * 2 + 2 * 4


def test_overlapping_slices_of_one_buffer_are_fine():
    base = Buffer("x", 8, 0, 2)
    slices = [Buffer("s", 4, 1, 5), Buffer("t", 4, 1, 6)]
    problem = Problem([base, *slices], [Colocation("s", "x", 0), Colocation("t", "x", 2)])
    assert area(problem) == 8 * 2 + 2 * 3 + 4 * 4


def test_a_handoff_frees_the_last_step_of_the_predecessor():
    a, b = Buffer("a", 8, 0, 3), Buffer("b", 8, 2, 5)
    assert area(Problem([a, b], [Colocation("b", "a", 0, Kind.HANDOFF)])) == 8 * 5


@given(tied_problems())
def test_segments_of_one_group_are_disjoint(problem):
    for group in problem.groups(problem.required):
        cells = [(x, t) for s in group.segments for x in range(s.low, s.high) for t in range(s.start, s.end)]
        assert len(cells) == len(set(cells))


@given(tied_problems())
def test_every_byte_that_a_member_shows_is_reserved_while_it_lives(problem):
    for group in problem.groups(problem.required):
        cells = {(x, t) for s in group.segments for x in range(s.low, s.high) for t in range(s.start, s.end)}
        for i, at in group.members:
            b = problem.by_id[i]
            assert {(at + k, t) for k in range(b.size) for t in range(b.start, b.end)} <= cells
