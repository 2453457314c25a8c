"""The CP-SAT model against brute force, at, below and above the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings

from solvers.deadline import Deadline
from solvers.place.cp_sat import Engine, Model, Verdict, sections
from solvers.place.first_fit import first_fit
from solvers.place.orders import ORDERS, Features, order_of
from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem
from solvers.problem.reduce import reduce_groups
from solvers.problem.result import Status
from solvers.run import Options
from solvers.search import solve
from tests.problems import brute_force, buffers, tied_problems, tiling


def whole_task(problem: Problem):
    tasks = reduce_groups(problem.groups(problem.required))
    return tasks[0] if len(tasks) == 1 else None


@settings(max_examples=40)
@given(problem=tied_problems(most=5))
def test_deciding_is_right_at_and_below_the_optimum(problem):
    task = whole_task(problem)
    if task is not None:
        best = brute_force(problem)
        answer = Engine(task, best, Deadline(9), 2, 0).decide(best, 5)
        assert answer.verdict is Verdict.PLACED
        assert task.peak(answer.bases) <= best
        assert Engine(task, best, Deadline(9), 1, 0).decide(best - 1, 5).verdict is Verdict.INFEASIBLE


@settings(max_examples=30)
@given(some=buffers(most=5))
def test_minimising_from_a_hint_reaches_the_optimum(some):
    problem = Problem(some)
    task = whole_task(problem)
    if task is not None:
        hint = first_fit(task, order_of(Features(task), "BWS"))
        answer = Engine(task, task.peak(hint), Deadline(9), 1, 0).minimise(hint, 0, 5)
        assert task.peak(answer.bases) == answer.lower_bound == brute_force(problem)


def test_a_hint_is_complete():
    problem = tiling(1, 40)
    task = reduce_groups(problem.groups(()))[0]
    copy = Model(task, 500).minimising(first_fit(task, np.arange(len(task))), 0)
    assert set(copy.proto.solution_hint.vars) == set(range(len(copy.proto.variables)))


def test_a_bound_beyond_exact_doubles_is_no_proof():
    """CP-SAT rounds its bound to a double: beyond 2^53 it may come out above the optimum."""
    shapes = [(3, 1, 3), (5, 0, 1), (2, 4, 5), (2, 2, 6), (5, 3, 4), (3, 5, 6), (5, 1, 2)]
    some = [Buffer(f"b{k}", n * 2**50 + k % 4, s, e) for k, (n, s, e) in enumerate(shapes)]
    problem = Problem(some)
    for task in reduce_groups(problem.groups(())):
        hint = first_fit(task, np.arange(len(task)))
        answer = Engine(task, task.peak(hint), Deadline(9), 1, 0).minimise(hint, 0, 2)
        assert answer.bases is None or answer.lower_bound <= task.peak(answer.bases)


@pytest.mark.parametrize("name", list(ORDERS))
def test_an_order_is_a_permutation(name):
    task = reduce_groups(tiling(2, 50).groups(()))[0]
    assert sorted(order_of(Features(task), name)) == list(range(len(task.blocks)))


@given(problem=tied_problems(most=6))
def test_sections_are_maximal_and_cover_every_meeting(problem):
    for task in reduce_groups(problem.groups(problem.required)):
        found = [frozenset(s) for s in sections(task)]
        for i, a in enumerate(task.blocks):
            for j, b in enumerate(task.blocks[:i]):
                if any(r.start < q.end and q.start < r.end for r in a.rects for q in b.rects):
                    assert any({i, j} <= s for s in found)


@pytest.mark.parametrize("problem", [tiling(1, 30), Problem([Buffer("a", 3, 0, 2), Buffer("b", 4, 1, 3)])])
def test_the_solver_of_that_name_answers_with_its_own_plan(problem):
    """Also where greedy has met the bound."""
    result = solve(problem, "cp-sat", Options(30, 2))
    assert result.status is Status.OPTIMAL
    assert result.solver.startswith("cp-sat")
