"""The CP-SAT model against brute force, at, below and above the optimum."""

import pytest
from hypothesis import given, settings

from solvers.cp_sat import Model, Verdict, decide, minimise, sections
from solvers.greedy import ORDERS, Features, first_fit, order_of
from solvers.problem import Problem
from solvers.reduce import reduce_groups
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
        answer = decide(task, best, 5, 2, 0)
        assert answer.verdict is Verdict.PLACED
        assert task.peak(answer.bases) <= best
        assert decide(task, best - 1, 5, 1, 0).verdict is Verdict.INFEASIBLE


@settings(max_examples=30)
@given(some=buffers(most=5))
def test_minimising_from_a_hint_reaches_the_optimum(some):
    problem = Problem(some)
    task = whole_task(problem)
    if task is not None:
        hint = first_fit(task, order_of(Features(task), "time"))
        answer = minimise(task, hint, 0, 5, 1, 0)
        assert task.peak(answer.bases) == answer.lower_bound == brute_force(problem)


def test_a_hint_is_complete():
    problem = tiling(1, 40)
    task = reduce_groups(problem.groups(()))[0]
    model = Model(task, 200)
    peak = model.minimise_peak(0, 200)
    model.hint(first_fit(task, range(len(task.blocks))))
    model.model.add_hint(peak, 200)
    hinted = set(model.model.proto.solution_hint.vars)
    assert hinted == set(range(len(model.model.proto.variables)))


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
