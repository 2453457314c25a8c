"""Progress: the pace of the lines, where they go, and what a callable that raises does."""

import logging
import math
import os
import pty
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.api import Request, plan
from planner.progress import COLUMNS, RateLimit, console_progress, log_progress
from solvers.files.by_name import problem_to_csv
from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem
from solvers.problem.result import Progress
from solvers.run import Options
from solvers.search import solve
from tests.planner.flows import two_parts
from tests.problems import tiling


class Time:
    """A clock that is set by hand, and the lines that were passed on with the time at which they were."""

    def __init__(self, **limits):
        self.now = 1000.0
        self.passed = []
        self.limit = RateLimit(self.show, clock=lambda: self.now, **limits)

    def show(self, line):
        self.passed.append((self.now, line))

    @property
    def shown(self):
        return [(line.peak, line.lower_bound) for _, line in self.passed]


def line(peak, bound=0, engine="e"):
    return Progress(0.0, peak, bound, engine)


LINES = st.builds(line, st.none() | st.integers(1, 9), st.integers(0, 9), st.sampled_from("ab"))
EVENTS = st.lists(st.tuples(st.floats(0, 2), st.none() | LINES))
"""A line after so many seconds, or only time that goes by."""


def said(a):
    return replace(a, time=0.0)


@given(EVENTS)
def test_two_lines_a_second_the_first_at_once_the_last_always(events):
    time = Time(heartbeat=3.0)
    told = []
    for seconds, what in events:
        time.now += seconds
        if what is None:
            time.limit.tick()
            continue
        time.limit(what)
        told.append(what)
        if len(told) == 1:
            assert [(at, said(shown)) for at, shown in time.passed] == [(time.now, what)]
    before = len(time.passed)
    time.limit.close()
    times = [at for at, _ in time.passed[:before]]
    assert all(b - a >= 0.5 for a, b in pairwise(times))
    assert len(time.passed) <= before + 1
    assert {said(shown) for _, shown in time.passed} <= set(told)
    assert not told or said(time.passed[-1][1]) == told[-1]
    stamps = [shown.time for _, shown in time.passed]
    assert stamps == sorted(stamps)


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 9), st.booleans())))
def test_news_wait_no_longer_than_the_interval(events):
    """Where bounds only rise, as in one solve: then the last line shown has the bound, and its lowest peak."""
    time = Time(heartbeat=math.inf)
    bound, lowest = 0, None
    for seconds, peak, raised in events:
        time.now += seconds
        lowest = peak if raised or lowest is None else min(peak, lowest)
        bound += raised
        time.limit(line(peak, bound))
    time.now += 0.5
    time.limit.tick()
    assert time.shown[-1:] == ([(lowest, bound)] if events else [])


def test_fast_improvements_are_thinned_out_and_a_worse_peak_is_no_news():
    time = Time()
    for peak in (100, 90, 95, 80, 85):
        time.now += 0.01
        time.limit(line(peak))
    assert time.shown == [(100, 0)]
    time.now += 0.5
    time.limit.tick()
    assert time.shown == [(100, 0), (80, 0)]
    assert time.passed[-1][1].time == pytest.approx(0.04)


def test_the_last_line_is_told_although_it_is_early_and_no_news():
    time = Time()
    for peak in (100, 90, 120):
        time.limit(line(peak))
    time.limit.close()
    assert time.shown == [(100, 0), (120, 0)]


def test_a_last_line_that_repeats_is_not_told_twice():
    time = Time()
    time.limit(line(100))
    time.limit(line(100))
    time.limit.close()
    assert time.shown == [(100, 0)]


def test_a_heartbeat_where_nothing_changes():
    time = Time(heartbeat=5.0)
    time.limit.tick()
    time.limit(line(100))
    for _ in range(11):
        time.now += 1.0
        time.limit.tick()
    assert [shown.time for _, shown in time.passed] == [0.0, 5.0, 10.0]


def test_nothing_told_nothing_shown():
    time = Time()
    time.limit.tick()
    time.limit.close()
    assert time.passed == []


def test_a_waiting_line_comes_out_while_the_engine_is_silent(caplog):
    """For real, with the helper's thread."""
    caplog.set_level(logging.INFO, "arena")
    told = threading.Event()

    class Wait(logging.Handler):
        def emit(self, record):
            if "peak 90" in record.getMessage():
                told.set()

    handler = Wait()
    logging.getLogger("arena").addHandler(handler)
    try:
        with log_progress("it") as report:
            report(line(100))
            report(line(90))
            assert told.wait(10)
    finally:
        logging.getLogger("arena").removeHandler(handler)
    assert [r.getMessage().split(": ", 2)[2] for r in caplog.records] == [
        "peak 100, bound 0, gap 100.00%, e",
        "peak 90, bound 0, gap 100.00%, e",
    ]
    assert caplog.records[0].getMessage().startswith("it: 0.0 s: ")


def test_no_thread_and_no_report_where_the_log_is_off(caplog):
    caplog.set_level(logging.WARNING, "arena")
    before = threading.active_count()
    with log_progress() as report:
        assert report is None
        assert threading.active_count() == before
    lines = []
    with log_progress(also=lines.append) as report:
        solve(tiling(1, 10), options=Options(progress=report))
    assert lines
    assert not caplog.records


def test_the_log_has_the_lines_and_so_has_the_callable(caplog):
    caplog.set_level(logging.INFO, "arena")
    lines = []
    with log_progress(also=lines.append) as report:
        result = solve(tiling(1, 10), options=Options(progress=report))
    assert [(x.peak, x.lower_bound) for x in lines][-1] == (result.peak, result.lower_bound)
    assert f"peak {result.peak}, bound {result.lower_bound}, gap 0.00%" in caplog.messages[-1]


def test_an_empty_arena_and_no_plan_have_a_gap_of_their_own(caplog):
    caplog.set_level(logging.INFO, "arena")
    with log_progress() as report:
        report(line(None, 3))
    with log_progress() as report:
        report(line(0, 0))
    assert [m.split(": ")[1] for m in caplog.messages] == [
        "peak None, bound 3, gap -, e",
        "peak 0, bound 0, gap 0.00%, e",
    ]


class Stop(Exception):
    """The callable's own."""


def raising_at(call):
    calls = []

    def report(line):
        calls.append(threading.current_thread())
        if len(calls) == call:
            raise Stop(call)

    return report, calls


def hard():
    """A problem that first-fit does not solve."""
    random = Random(20)
    births = [random.randrange(20) for _ in range(50)]
    return Problem(
        [Buffer(f"b{k}", 16 * random.randrange(1, 60), t, t + random.randrange(1, 8)) for k, t in enumerate(births)]
    )


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("solver", ["auto", "cp-sat"])
def test_what_a_callable_raises_comes_out_and_leaves_nothing_behind(solver, reproducible, call):
    """All its calls are in the caller's thread."""
    options = Options(5.0, reproducible=reproducible)
    threads = set(threading.enumerate())
    report, calls = raising_at(call)
    with pytest.raises(Stop):
        solve(hard(), solver, replace(options, progress=report))
    assert set(threading.enumerate()) <= threads
    assert calls == [threading.main_thread()] * call


def test_a_callable_that_raises_ends_a_plan(caplog):
    """Also inside the helpers, whose thread ends with it."""
    caplog.set_level(logging.INFO, "arena")
    before = threading.active_count()
    report, _ = raising_at(1)
    with pytest.raises(Stop), log_progress(also=report) as both:
        plan(two_parts(), Request(options=Options(progress=both)))
    assert threading.active_count() == before


def command(*arguments, terminal):
    """Run `arena plan`, its standard error a pseudo-terminal or a pipe; what it wrote to both streams."""
    master, slave = pty.openpty() if terminal else os.pipe()
    try:
        run = subprocess.Popen(
            [sys.executable, "-m", "planner.cli", "plan", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=slave,
        )
    finally:
        os.close(slave)
    said = b""
    with os.fdopen(master, "rb", buffering=0) as stream:
        try:
            while piece := stream.read(4096):
                said += piece
        except OSError:
            pass  # how a pseudo-terminal ends
    out = run.communicate()[0]
    assert run.returncode == 0
    return out.decode(), said.decode()


@pytest.mark.parametrize("form", [["--json"], []])
def test_lines_on_a_terminal_and_none_elsewhere(form, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(problem_to_csv(tiling(1, 10)))
    out, said = command(path, *form, terminal=True)
    assert said.count(COLUMNS) == 1
    lines = said[said.index(COLUMNS) :].replace("\x1b[0m", "").splitlines()
    assert lines[1].split()[1:5] == ["64", "64", "0.00%", "first-fit"]
    assert lines[1].index("first-fit") == COLUMNS.index("engine")
    assert all(word not in out for word in ("engine  ", COLUMNS))
    for other in (command(path, *form, terminal=False), command(path, *form, "--quiet", terminal=True)):
        assert "engine" not in other[1]
        assert "first-fit" not in other[1]


def test_no_report_where_standard_error_is_no_terminal():
    with console_progress() as report:
        assert report is None
