"""The runner: a planner that dies or hangs is a row; what was measured is not measured again."""

import multiprocessing
from dataclasses import replace

import pytest

from planner.bench.contenders import entrant_of
from planner.bench.row import RowStatus
from planner.bench.runner import Campaign, Worker, measure
from planner.bench.worker import Errand
from solvers.run import Options
from tests.planner.bench.servers import dies, dies_once, hangs
from tests.planner.bench.test_contenders import drawn


@pytest.fixture
def worker_of():
    made = []

    def make(serve):
        made.append(Worker(serve))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


TASK = Errand(drawn(1), "auto", Options(1.0))


def test_a_death_is_a_report(worker_of):
    report = worker_of(dies).run(TASK, 30)
    assert (report.status, report.error) == (RowStatus.CRASHED, "its process died, exit code 7")


def test_a_silence_is_a_report(worker_of):
    report = worker_of(hangs).run(TASK, 0.5)
    assert (report.status, report.error) == (RowStatus.OVERRUN, "no answer after 0.5 s")


def test_after_a_death_there_is_another_process(worker_of):
    worker = worker_of(dies_once)
    assert worker.run(TASK, 30).status is RowStatus.CRASHED
    assert worker.run(Errand(TASK.problem, "greedy", TASK.options), 30).peak == 5


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_of_all_problems_and_planners(jobs):
    problems = [drawn(k) for k in range(3)]
    entrants = [entrant_of(n) for n in ("stock-greedy", "auto")]
    rows = [r for rows in measure(Campaign(problems, entrants, Options(1.0, 2), 2, jobs)) for r in rows.every]
    assert {(r.problem, r.planner) for r in rows} == {(p.name, e.name) for p in problems for e in entrants}
    for r in rows:
        assert r.solved
        assert len(r.times) == r.runs == 2
        assert min(r.times) <= r.seconds <= max(r.times)
        assert r.versions["arena-planner"]
        assert r.machine["cores"]
        assert r.excess is not None


def test_what_is_known_is_not_measured_again():
    entrants = [entrant_of(n) for n in ("stock-greedy", "auto")]
    first, both = (Campaign([drawn(5)], some, Options(1.0, 2)) for some in (entrants[:1], entrants))
    told = []
    (before,) = measure(first, tell=told.append)
    (after,) = measure(both, before.every, told.append)
    (again,) = measure(both, after.every, told.append)
    assert told == ["drawn 5: stock-greedy", "drawn 5: auto"]
    assert after.every[0].times == before.every[0].times
    assert again == after
    other = Campaign([drawn(5)], entrants, Options(1.5, 2))
    (rows,) = measure(other, after.every, told.append)
    assert len(told) == 4
    assert (len(rows.asked), len(rows.every)) == (2, 4)


@pytest.mark.parametrize("status", [RowStatus.MISSING, RowStatus.CRASHED, RowStatus.OVERRUN])
def test_what_may_go_better_is_measured_again(status):
    plan, told = Campaign([drawn(5)], [entrant_of("stock-greedy")], Options(1.0, 2)), []
    (before,) = measure(plan)
    (after,) = measure(plan, [replace(r, status=status, peak=None) for r in before.every], told.append)
    assert told == ["drawn 5: stock-greedy"]
    assert [r.solved for r in after.every] == [True]


@pytest.mark.parametrize("change", [{"jobs": 8}, {"machine": {"cpu": "another"}}, {"versions": {"arena-planner": "0"}}])
def test_another_machine_or_version_is_measured(change):
    plan, told = Campaign([drawn(5)], [entrant_of("stock-greedy")], Options(1.0, 2)), []
    (before,) = measure(plan)
    (after,) = measure(plan, [replace(r, **change) for r in before.every], told.append)
    assert len(told) == 1
    assert (len(after.asked), len(after.every)) == (1, 2)


def test_a_runner_that_is_left_stops_its_workers():
    plan = Campaign([drawn(k) for k in range(4)], [entrant_of("stock-greedy")], Options(1.0, 2), jobs=2)
    rows = measure(plan)
    next(rows)
    rows.close()
    assert not [p for p in multiprocessing.active_children() if p.is_alive()]


def test_another_problem_of_the_same_name_is_measured():
    plan = Campaign([drawn(5)], [entrant_of("stock-greedy")], Options(1.0, 2))
    (before,) = measure(plan)
    told = []
    list(measure(plan, [replace(r, sha256="another") for r in before.every], told.append))
    assert told == ["drawn 5: stock-greedy"]
