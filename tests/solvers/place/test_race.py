"""Jobs side by side; the same plan for any number of workers; Ctrl-C; what is proven and by whom."""

import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from solvers.core import core
from solvers.deadline import Clock, Deadline, WorkClock
from solvers.place.race import UNKNOWN, Answer, Verdict, race
from solvers.problem.buffers import Buffer, Colocation
from solvers.problem.problem import Problem
from solvers.problem.reduce import reduce_groups
from solvers.problem.result import Status
from solvers.run import Options
from solvers.search import solve
from solvers.verifier import verify
from tests.problems import spirals, tiling
from tests.solvers.core.test_core import tight_problem

FOUND = Answer(Verdict.PLACED, np.array([0]), engine="found", work=1.0)
ENDS = lambda answer: answer.verdict is not Verdict.UNKNOWN  # noqa: E731


class Sleeper:
    """Sleeps until stopped, or for so long; then has found something, or not."""

    def __init__(self, seconds, answer=UNKNOWN):
        self.seconds, self.answer = seconds, answer
        self.stopped = threading.Event()
        self.done = False

    def run(self):
        stopped = self.stopped.wait(self.seconds)
        self.done = True
        return UNKNOWN if stopped else self.answer

    def stop(self):
        self.stopped.set()


def hard(seed=0, n=60):
    """Random buffers whose optimum is above what first-fit finds."""
    draw = random.Random(seed)
    spans = [(s := draw.randrange(40), s + draw.randint(3, 15)) for _ in range(n)]
    return Problem([Buffer(f"b{k}", draw.randint(1, 500), *span) for k, span in enumerate(spans)])


def test_the_first_proof_ends_all():
    jobs = [Sleeper(60), Sleeper(0.05, FOUND), Sleeper(60)]
    start = time.monotonic()
    answers = race(jobs, 3, Deadline(60), ENDS)
    assert time.monotonic() - start < 30
    assert [a.engine for a in answers] == ["", "found", ""]
    assert all(j.done for j in jobs)


def test_in_order_the_first_of_the_list_wins_and_later_work_is_not_charged():
    clock = WorkClock(60)
    jobs = [Sleeper(0.3), Sleeper(0.3, FOUND), Sleeper(0.0, FOUND), Sleeper(0.0, FOUND)]
    answers = race(jobs, 4, Deadline(60, clock), ENDS)
    assert [a is FOUND for a in answers] == [False, True, False, False]
    assert clock.spent == 1.0


def test_a_limit_stops_all_jobs():
    jobs = [Sleeper(60) for _ in range(4)]
    before = threading.active_count()
    start = time.monotonic()
    race(jobs, 2, Deadline(0.1), ENDS)
    assert time.monotonic() - start < 30
    assert threading.active_count() == before


def test_an_error_in_a_job_is_raised_here():
    class Broken(Sleeper):
        def run(self):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        race([Broken(0), Sleeper(60)], 2, Deadline(60), ENDS)


def test_an_event_stops_a_clock():
    stop = threading.Event()
    clock = Clock(60, stop)
    assert not Deadline(60, clock).passed
    stop.set()
    assert Deadline(60, clock).passed
    assert clock.struck


@pytest.mark.parametrize("seed", range(6))
def test_the_same_plan_for_any_number_of_workers(seed):
    """Twenty times the wall limit that the work takes, so that only work decides."""
    problem = hard(seed)
    results = [solve(problem, "auto", Options(20, workers, seed, reproducible=True)) for workers in (1, 2, 5)]
    if not any(r.struck for r in results):
        assert all(r.solution == results[0].solution for r in results)
        assert all(r.lower_bound == results[0].lower_bound for r in results)


def test_work_decides_where_nothing_is_proven():
    """The limit is work: three runs of a problem that stays open end at the same plan."""
    problem = spirals(1, 1201)
    limit = Options(2.0, reproducible=True)
    clocks = [WorkClock(60) for _ in range(3)]
    results = [solve(problem, "auto", limit, clock) for clock in clocks]
    assert not any(r.struck for r in results)
    assert results[0].status is Status.FEASIBLE
    assert all(r.solution == results[0].solution for r in results)
    assert clocks[0].spent == pytest.approx(clocks[1].spent) == pytest.approx(clocks[2].spent)


@pytest.mark.parametrize("objective", ["peak", "copies"])
def test_optional_ties_are_chosen_the_same_way_again(objective):
    draw = random.Random(5)
    some = [Buffer(f"b{k}", draw.randint(1, 9), k // 2, k // 2 + draw.randint(1, 5)) for k in range(24)]
    ties = []
    for k in range(0, 21, 3):
        parts = some[k : k + 3]
        start = min(p.end for p in parts) - 1
        if start < max(p.start for p in parts):
            continue
        whole = Buffer(f"w{k}", sum(p.size for p in parts), start, start + 3)
        some.append(whole)
        at = 0
        for p in parts:
            ties.append(Colocation(p.id, whole.id, at, required=False))
            at += p.size
    problem = Problem(some, ties)
    results = [solve(problem, "auto", Options(60, w, objective=objective, reproducible=True)) for w in (1, 2, 4)]
    assert all(r.solution == results[0].solution for r in results)


def test_a_plan_that_the_wall_cut_short_says_so():
    result = solve(tiling(1, 300), "auto", Options(1e-4, reproducible=True))
    assert result.struck or result.status is Status.OPTIMAL
    verify(tiling(1, 300), result.solution)


@pytest.mark.parametrize("seed", range(20))
def test_a_certificate_adds_up_to_the_bound(seed):
    draw = random.Random(seed)
    spans = [(s := draw.randrange(9), s + draw.randint(1, 4)) for _ in range(12)]
    problem = Problem([Buffer(f"b{k}", draw.randint(1, 9), *x, draw.choice([1, 2, 4])) for k, x in enumerate(spans)])
    result = solve(problem, "auto", Options(20))
    assert result.status is Status.OPTIMAL
    if result.certificate is None:
        assert result.proof != "load"
        return
    assert result.certificate.total == result.lower_bound
    step = result.certificate.step
    for name, size in result.certificate.parts:
        b = problem.by_id[name]
        assert step is None or (b.start <= step < b.end and b.size <= size < b.size + 4)


def test_an_engine_is_named_for_a_bound_above_the_load():
    """Three buffers of 3 and one of 4 between pins: no sum is the bound."""
    problem = Problem([Buffer("a", 1, 0, 9, 1, 3), Buffer("b", 4, 0, 9)])
    result = solve(problem, "auto", Options(20))
    assert (result.status, result.peak, result.lower_bound) == (Status.OPTIMAL, 8, 8)
    assert result.certificate is None
    assert result.proof != "load"


def test_an_interrupt_keeps_the_best_plan(tmp_path):
    rows = ["id,lower,upper,size", *(f"{b.id},{b.start},{b.end},{b.size}" for b in spirals(1, 6001).buffers)]
    (tmp_path / "p.csv").write_text("\n".join(rows) + "\n")
    command = [sys.executable, "-m", "planner.cli", "plan", "p.csv", "-o", "plan.json", "--time-limit", "600"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, talk = run.communicate(timeout=60)
    assert run.returncode == 0
    assert (tmp_path / "plan.json").exists()
    assert "interrupted: this is the best plan so far" in talk


@pytest.mark.parametrize("seed", [98, 1012, 1278])
def test_without_a_limit_cp_sat_has_its_turn_where_the_search_proves_nothing(seed):
    """Tied buffers with a gap that another could stand in, and an optimum above the load."""
    problem = tight_problem(seed)
    if core is not None:
        assert not all(t.instance.exact for t in reduce_groups(problem.groups(problem.required)))
    result = solve(problem, "auto", Options(float("inf"), 2))
    assert result.status is Status.OPTIMAL
    assert "cp-sat" in result.proof
