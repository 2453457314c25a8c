"""Laws of every solver: the contract, the optimum of tiny problems, and what must not change it."""

import dataclasses
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.place.bounds import load_bound
from solvers.problem.buffers import Buffer, Colocation, Kind
from solvers.problem.problem import Problem
from solvers.problem.reduce import reduce_groups, restore
from solvers.problem.result import Status
from solvers.run import Options
from solvers.search import SOLVERS, solve
from solvers.verifier import verify
from tests.problems import brute_force, buffers, tied_problems, tiling

EVERY = pytest.mark.parametrize("solver", list(SOLVERS))
EXACT = pytest.mark.parametrize("solver", ["auto", "cp-sat"])
SHORT = Options(time_limit=5, workers=2)


def optimum(problem: Problem) -> int:
    result = solve(problem, "auto", SHORT)
    assert result.status is Status.OPTIMAL
    assert verify(problem, result.solution) == result.peak
    return result.peak


@EXACT
@settings(max_examples=60)
@given(some=buffers(most=4))
def test_loose_buffers_reach_the_brute_force_optimum(solver, some):
    problem = Problem(some)
    result = solve(problem, solver, SHORT)
    assert result.status is Status.OPTIMAL
    assert result.peak == brute_force(problem)


@EXACT
@settings(max_examples=60)
@given(problem=tied_problems(most=5))
def test_tied_buffers_reach_the_brute_force_optimum(solver, problem):
    result = solve(problem, solver, SHORT)
    assert result.status is Status.OPTIMAL
    assert result.peak == brute_force(problem)


@EXACT
@settings(max_examples=60)
@given(some=buffers(most=4), pin=st.integers(0, 6), capacity=st.integers(1, 16))
def test_pins_and_capacities_are_honoured(solver, some, pin, capacity):
    first = some[0]
    some[0] = dataclasses.replace(first, offset=pin * first.alignment)
    problem = Problem(some, capacity=capacity)
    result = solve(problem, solver, SHORT)
    best = brute_force(problem)
    assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    if best is not None:
        assert result.peak == best


@EVERY
@settings(max_examples=40)
@given(problem=tied_problems(most=8))
def test_every_solver_obeys_the_contract(solver, problem):
    result = solve(problem, solver, SHORT)
    assert set(result.solution.offsets) == {b.id for b in problem.buffers}
    assert verify(problem, result.solution) == result.peak
    assert result.lower_bound <= result.peak
    assert (result.status is Status.OPTIMAL) == (result.lower_bound == result.peak)
    assert result.trace[-1].peak == result.peak


@settings(max_examples=40)
@given(some=buffers(most=4), pin=st.integers(0, 6), capacity=st.integers(1, 16))
def test_greedy_honours_pins_and_capacities(some, pin, capacity):
    some[0] = dataclasses.replace(some[0], offset=pin * some[0].alignment)
    problem = Problem(some, capacity=capacity)
    result = solve(problem, "greedy")
    if result.solution is not None:
        assert verify(problem, result.solution) <= capacity
    elif result.status is Status.INFEASIBLE:
        assert brute_force(problem) is None


@EVERY
def test_an_empty_problem_is_solved(solver):
    result = solve(Problem([]), solver)
    assert (result.status, result.peak, result.gap) == (Status.OPTIMAL, 0, 0.0)


@EVERY
def test_empty_buffers_get_a_legal_offset(solver):
    problem = Problem([Buffer("a", 8, 0, 3), Buffer("e", 0, 1, 2, 16), Buffer("f", 0, 0, 1, 4, 12)])
    result = solve(problem, solver)
    assert verify(problem, result.solution) == 12
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", range(4))
def test_a_tiling_is_proven_at_its_load(seed):
    assert optimum(tiling(seed, 30)) == 64


@settings(max_examples=30)
@given(problem=tied_problems(most=6), data=st.data())
def test_what_must_not_change_the_optimum(problem, data):
    """Order, names, a shift or stretch of time, a buffer that nothing meets."""
    best = optimum(problem)
    shuffled = data.draw(st.permutations(problem.buffers))
    assert optimum(Problem(shuffled, problem.colocations)) == best
    stretch, shift = data.draw(st.integers(1, 3)), data.draw(st.integers(-5, 5))
    moved = [dataclasses.replace(b, start=b.start * stretch + shift, end=b.end * stretch + shift) for b in shuffled]
    assert optimum(Problem(moved, problem.colocations)) == best
    names = {b.id: f"n{k}" for k, b in enumerate(problem.buffers)}
    renamed = [dataclasses.replace(b, id=names[b.id]) for b in problem.buffers]
    ties = [dataclasses.replace(c, part=names[c.part], whole=names[c.whole]) for c in problem.colocations]
    assert optimum(Problem(renamed, ties)) == best
    assert optimum(Problem([*problem.buffers, Buffer("later", best, 100, 101)], problem.colocations)) == best


@settings(max_examples=30)
@given(problem=tied_problems(most=6), factor=st.integers(2, 5))
def test_scaling_every_size_scales_the_optimum(problem, factor):
    scaled = [dataclasses.replace(b, size=b.size * factor, alignment=b.alignment * factor) for b in problem.buffers]
    ties = [dataclasses.replace(c, at=c.at * factor) for c in problem.colocations]
    assert optimum(Problem(scaled, ties)) == factor * optimum(problem)


@settings(max_examples=30)
@given(first=buffers(most=4), second=buffers(most=4))
def test_two_problems_apart_in_time_have_the_larger_optimum(first, second):
    later = [dataclasses.replace(b, id=f"x{b.id}", start=b.start + 50, end=b.end + 50) for b in second]
    assert optimum(Problem([*first, *later])) == max(optimum(Problem(first)), optimum(Problem(second)))


@settings(max_examples=40)
@given(problem=tied_problems(most=5))
def test_bounds_hold_and_reductions_come_back(problem):
    groups = problem.groups(problem.required)
    tasks = reduce_groups(groups)
    best = brute_force(problem)
    assert max((load_bound(t).value for t in tasks), default=0) <= best
    placed = sorted(b.group for t in tasks for b in t.blocks)
    assert placed == [k for k, g in enumerate(groups) if g.segments]
    assert set(restore(groups, {})) == {b.id for b in problem.buffers}


def test_the_topmost_rounding_does_not_count():
    """Sizes 16 and 1 at alignment 16 need 17 bytes, not 32."""
    assert optimum(Problem([Buffer("a", 16, 0, 2, 16), Buffer("b", 1, 0, 2, 16)])) == 17


@pytest.mark.parametrize("solver", ["auto", "cp-sat", "greedy"])
@pytest.mark.parametrize("limit", [0.0, 0.001])
def test_with_no_time_the_plan_is_still_no_worse_than_greedy(solver, limit):
    problem = tiling(5, 200)
    greedy = solve(problem, "greedy").peak
    started = time.monotonic()
    result = solve(problem, solver, Options(time_limit=limit))
    assert verify(problem, result.solution) == result.peak <= greedy
    assert time.monotonic() - started < 10


def test_the_limit_is_kept():
    """A generous second on top: the first plan comes whatever the limit."""
    problem = tiling(7, 400, height=4001, width=300)
    started = time.monotonic()
    solve(problem, "auto", Options(time_limit=1.5, workers=2))
    assert time.monotonic() - started < 4


def test_capacity_is_reported_with_what_is_known():
    problem = Problem([Buffer("a", 8, 0, 2), Buffer("b", 8, 1, 3)], capacity=12)
    result = solve(problem)
    assert (result.status, result.solution, result.lower_bound) == (Status.INFEASIBLE, None, 16)


def test_pinned_buffers_that_collide_are_infeasible():
    result = solve(Problem([Buffer("a", 8, 0, 2, 1, 0), Buffer("b", 8, 1, 3, 1, 4)]))
    assert (result.status, result.peak) == (Status.INFEASIBLE, None)


def test_alignments_without_a_small_common_multiple():
    primes = [1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049]
    result = solve(Problem([Buffer(f"b{k}", p + 1 + k, k, k + 3, p) for k, p in enumerate(primes)]), "auto", SHORT)
    assert result.solution is not None


def test_a_required_handoff_is_planned():
    problem = Problem([Buffer("a", 8, 0, 3), Buffer("b", 8, 2, 5)], [Colocation("b", "a", 0, Kind.HANDOFF)])
    assert optimum(problem) == 8


def test_an_unknown_solver_is_refused():
    with pytest.raises(ValueError, match="'best': it must be one of auto, cp-sat, native, greedy"):
        solve(Problem([]), "best")


def test_progress_is_reported():
    lines = []
    solve(tiling(3, 60), "auto", Options(time_limit=5, progress=lines.append))
    assert lines
    assert all(a.lower_bound <= b.lower_bound for a, b in pairwise(lines))
    assert all(a.time <= b.time for a, b in pairwise(lines))
