"""The native core against CP-SAT and brute force: no false proof either way, and the same answers as without it."""

import random
from collections import Counter

import numpy as np
import pytest

from solvers.core import core
from solvers.deadline import Deadline
from solvers.place.bounds import load_bound
from solvers.place.cp_sat import Engine
from solvers.place.native_jobs import luby
from solvers.place.orders import Features, drawn_order
from solvers.place.race import Verdict
from solvers.place.stock import _pack
from solvers.problem.buffers import Buffer, Colocation, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.reduce import reduce_groups
from tests.problems import brute_force, tiling

pytestmark = pytest.mark.skipif(core is None, reason="the native core is not built")


def tight_problem(seed):
    """Few steps, many meetings; with alignments, pins and ties in half of the cases each."""
    draw = random.Random(seed)
    aligned, pinned, tied = (draw.random() < 0.5 for _ in range(3))
    steps = draw.randint(2, 10)
    most = draw.choice([3, 8, 12])
    some = []
    for k in range(draw.randint(3, 12)):
        start = draw.randrange(steps)
        alignment = draw.choice([1, 1, 2, 3, 4]) if aligned else 1
        offset = draw.randrange(13) // alignment * alignment if pinned and draw.random() < 0.1 else None
        size = draw.randint(1, most)
        some.append(Buffer(f"b{k}", size, start, draw.randint(start + 1, steps), alignment, offset))
    ties = []
    if tied:
        large = max(range(len(some)), key=lambda k: some[k].size)
        some[large] = Buffer(f"b{large}", 2 * most, some[large].start, some[large].end)
        for _ in range(draw.randint(1, 5)):
            part, whole = draw.sample(some, 2)
            if draw.random() < 0.5:
                whole = some[large]
            if part.size > whole.size or part is whole:
                continue
            try:
                ties.append(Colocation(part.id, whole.id, draw.randint(0, whole.size - part.size)))
                Problem(some, ties)
            except ProblemError:
                ties.pop()
    return Problem(some, ties)


def collide(task, bases):
    """Do two rectangles of a placement overlap?"""
    rects = [(bases[k], r) for k, b in enumerate(task.blocks) for r in b.rects]
    return any(
        r.start < q.end and q.start < r.end and x + r.low < y + q.high and y + q.low < x + r.high
        for n, (x, r) in enumerate(rects)
        for y, q in rects[:n]
    )


def search(task, capacity, order=None):
    order = np.arange(len(task)) if order is None else order
    return task.instance.search(order, capacity, 10**7, 10**10, 60.0, core.Control())


def check_against_cp_sat(seed):
    """Decide a few capacities of every task both ways; what was found, counted."""
    problem = tight_problem(seed)
    found = Counter()
    for number, task in enumerate(reduce_groups(problem.groups(problem.required))):
        _, order = drawn_order(Features(task), seed, number)
        low, high = load_bound(task).value, task.peak(task.instance.first_fit(order))
        engine = Engine(task, max(low, high), Deadline(600), 1, 0)
        for capacity in sorted({low, (low + high) // 2, high - 1}):
            outcome, answer = search(task, capacity, order), engine.decide(capacity, 60)
            assert answer.verdict is not Verdict.UNKNOWN
            if outcome.verdict == core.Verdict.PLACED:
                assert answer.verdict is Verdict.PLACED
                assert task.peak(outcome.bases) <= capacity
                assert not collide(task, outcome.bases)
                assert all(x >= 0 and x % b.step == 0 for x, b in zip(outcome.bases, task.blocks, strict=True))
                assert all(b.base in (None, x) for x, b in zip(outcome.bases, task.blocks, strict=True))
            elif outcome.verdict == core.Verdict.INFEASIBLE:
                assert answer.verdict is Verdict.INFEASIBLE, f"seed {seed}, task {number}, capacity {capacity}"
            else:
                assert not task.instance.exact
            found[outcome.verdict.name] += 1
    return found


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_search_and_cp_sat_agree(first):
    found = sum((check_against_cp_sat(seed) for seed in range(first, first + 50)), Counter())
    assert found["PLACED"] > 20
    assert found["INFEASIBLE"] > 20


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 13000, 1000))
def test_search_and_cp_sat_agree_on_many(first):
    """More than 20 000 decisions in all."""
    found = sum((check_against_cp_sat(seed) for seed in range(first, first + 1000)), Counter())
    print(first, dict(found))
    assert found.total() > 1700


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_search_reaches_the_brute_force_optimum(first):
    for seed in range(first, first + 50):
        problem = Problem(tight_problem(seed).buffers[:4])
        if sum(b.size + b.alignment - 1 for b in problem.buffers) > 16:
            continue
        best = brute_force(problem)
        tasks = reduce_groups(problem.groups(()))
        if best is None or not all(t.instance.exact for t in tasks):
            continue
        assert all(search(t, best).verdict == core.Verdict.PLACED for t in tasks)
        own = max(load_bound(t).value for t in tasks)
        if best > own:
            assert any(search(t, best - 1).verdict == core.Verdict.INFEASIBLE for t in tasks)


@pytest.mark.parametrize("seed", range(30))
def test_first_fit_is_the_same_without_the_core(seed, monkeypatch):
    from solvers.place.first_fit import first_fit

    problem = tight_problem(seed)
    for task in reduce_groups(problem.groups(problem.required)):
        _, order = drawn_order(Features(task), seed, 0)
        native = first_fit(task, order)
        monkeypatch.setitem(task.__dict__, "instance", None)
        assert first_fit(task, order).tolist() == native.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_stock_greedy_is_the_same_without_the_core(seed):
    draw = random.Random(seed)
    rows = sorted((draw.randint(0, 9), s := draw.randrange(20), s + draw.randint(1, 9)) for _ in range(60))[::-1]
    columns = [list(c) for c in zip(*rows, strict=True)]
    homes, sizes = core.stock_greedy(*columns)
    assert (homes, sizes) == _pack(*columns)


def test_limits_end_a_search():
    draw = random.Random(1)
    spans = [(s := draw.randrange(50), s + draw.randint(5, 20)) for _ in range(300)]
    some = [Buffer(f"b{k}", draw.randint(1, 999), *span) for k, span in enumerate(spans)]
    (task,) = reduce_groups(Problem(some).groups(()))
    order = np.arange(len(task))
    capacity = load_bound(task).value
    few = task.instance.search(order, capacity, 64, 10**12, 60.0, core.Control())
    assert few.verdict == core.Verdict.STOPPED
    assert few.nodes <= 3 * 64
    cancelled = core.Control()
    cancelled.cancel()
    assert task.instance.search(order, capacity, 10**9, 10**12, 60.0, cancelled).verdict == core.Verdict.STOPPED
    assert task.instance.search(order, capacity, 10**9, 10**12, 0.0, core.Control()).verdict == core.Verdict.STOPPED


def test_a_search_is_the_same_again():
    task = reduce_groups(tiling(4, 100).groups(()))[0]
    one, other = (search(task, load_bound(task).value, drawn_order(Features(task), 7, 0)[1]) for _ in range(2))
    assert (one.bases, one.nodes, one.work) == (other.bases, other.nodes, other.work)


def test_swaps_never_end_higher_than_first_fit():
    task = reduce_groups(tiling(5, 120).groups(()))[0]
    order = np.arange(len(task))
    swapped = task.instance.swap_at_peak(order, 0, 200, 1, 60.0, core.Control())
    assert task.peak(swapped.bases) <= task.peak(task.instance.first_fit(order))
    assert not collide(task, swapped.bases)


@pytest.mark.parametrize("order", [[0, 1], [0, 0, 1], [-1, 0, 1], [0, 1, 3]])
def test_what_is_no_order_is_refused(order):
    problem = Problem([Buffer(f"b{k}", 2, 0, 3) for k in range(3)])
    (task,) = reduce_groups(problem.groups(()))
    with pytest.raises(ValueError, match="order"):
        task.instance.first_fit(np.array(order))


def test_luby():
    assert [luby(n) for n in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]
