"""Every planner through one contract: the verifier accepts its plan, and no peak is below what is proven."""

import random

import pytest

from planner.bench.contenders import CONTENDERS, entrant_of
from planner.bench.kinds import ShareKind, kind_of, only
from planner.bench.row import RowStatus
from planner.bench.worker import Errand, run
from planner.executorch import stock_planners
from solvers.files.text import FileError
from solvers.place.stock import stock_greedy, stock_naive
from solvers.problem.buffers import Buffer, Colocation, Kind
from solvers.problem.problem import Problem
from solvers.run import Options
from solvers.search import solve
from tests.problems import tiling

NOT_ON_AN_INDEX = {"minimalloc"}
OPTIONS = Options(2.0, workers=2)


def drawn(seed: int, alignment: int = 16) -> Problem:
    rng = random.Random(seed)
    buffers = []
    for k in range(rng.randrange(1, 40)):
        start = rng.randrange(-1, 20)
        size = rng.choice([0, 1, 16, 20, 100, rng.randrange(300)])
        buffers.append(Buffer(f"b{k}", size, start, start + rng.randrange(1, 8), alignment))
    return Problem(buffers, name=f"drawn {seed}")


def report_of(problem, planner):
    return run(Errand(problem, planner, OPTIONS), entrant_of(planner))


@pytest.mark.parametrize("planner", sorted(CONTENDERS.keys() - NOT_ON_AN_INDEX))
@pytest.mark.parametrize("seed", range(4))
def test_every_planner_gives_a_plan_that_holds(planner, seed):
    problem = drawn(seed, 16 if seed % 2 else 1)
    best = solve(problem)
    report = report_of(problem, planner)
    assert report.status in (RowStatus.OPTIMAL, RowStatus.FEASIBLE), report.error
    assert report.lower_bound <= best.peak <= report.peak
    assert (report.status is RowStatus.OPTIMAL) == (report.peak == report.lower_bound)


@pytest.mark.parametrize("planner", ["auto", "native", "supermalloc"])
def test_those_that_prove_reach_a_known_optimum(planner):
    problem = tiling(3, 12)
    report = report_of(problem, planner)
    assert (report.status, report.peak) == (RowStatus.OPTIMAL, 64)


ALIGNED = [Buffer("a", 1, 0, 2, 16), Buffer("b", 16, 0, 2, 16)]
MIXED = [Buffer("a", 1, 0, 2), Buffer("b", 1, 0, 2), Buffer("c", 16, 0, 2, 16)]


@pytest.mark.parametrize(("buffers", "optimum"), [(ALIGNED, 17), (MIXED, 18)])
@pytest.mark.parametrize("planner", sorted(CONTENDERS.keys() - NOT_ON_AN_INDEX))
def test_no_bound_is_above_the_optimum(planner, buffers, optimum):
    """Peers place sizes rounded up to the alignment: what they prove of those is no bound for the exact ones."""
    report = report_of(Problem(buffers), planner)
    assert report.lower_bound <= optimum <= report.peak
    assert planner != "auto" or report.peak == optimum


def test_pins_that_overlap_are_infeasible():
    problem = Problem([Buffer("a", 8, 0, 2, offset=0), Buffer("b", 8, 1, 3, offset=4)])
    assert report_of(problem, "auto").status is RowStatus.INFEASIBLE


def test_an_empty_problem_has_an_empty_plan():
    for planner in sorted(CONTENDERS.keys() - NOT_ON_AN_INDEX):
        for buffers in ([], [Buffer("a", 0, 0, 1)]):
            report = report_of(Problem(buffers), planner)
            assert (report.status, report.peak) == (RowStatus.OPTIMAL, 0), (planner, report.error)


@pytest.mark.parametrize("planner", sorted(n for n, c in CONTENDERS.items() if not c.ties))
def test_planners_of_whole_tensors_say_so(planner):
    tied = Problem([Buffer("a", 1, 0, 2), Buffer("b", 2, 1, 3)], [Colocation("a", "b", 0)])
    pinned = Problem([Buffer("a", 1, 0, 2, offset=4)])
    for problem in (tied, pinned):
        assert report_of(problem, planner).status is RowStatus.UNSUPPORTED


def test_a_package_that_is_missing_is_named(monkeypatch):
    def gone(problem, options):
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    entrant = _with_run(monkeypatch, gone)
    report = run(Errand(drawn(0), "auto", OPTIONS), entrant)
    assert report.status is RowStatus.MISSING
    assert "nowhere is missing: pip install" in report.error


def test_a_wrong_plan_and_an_exception_are_reports(monkeypatch):
    from planner.bench.contenders import ContenderAnswer

    two = Problem([Buffer("a", 1, 0, 2), Buffer("b", 2, 1, 3)])
    for answer in (ContenderAnswer({"a": 0, "b": 0}), ContenderAnswer({"a": 0})):
        entrant = _with_run(monkeypatch, lambda problem, options, answer=answer: answer)
        report = run(Errand(two, "auto", OPTIONS), entrant)
        assert (report.status, report.peak) == (RowStatus.WRONG, None)
    entrant = _with_run(monkeypatch, lambda problem, options: 1 / 0)
    report = run(Errand(two, "auto", OPTIONS), entrant)
    assert (report.status, report.error) == (RowStatus.CRASHED, "ZeroDivisionError: division by zero")


def _with_run(monkeypatch, function):
    from dataclasses import replace

    monkeypatch.setitem(CONTENDERS, "auto", replace(CONTENDERS["auto"], run=function))
    return entrant_of("auto")


@pytest.mark.parametrize("seed", range(12))
def test_what_is_restated_is_what_executorch_does(seed):
    problem = drawn(100 + seed)
    assert stock_planners.PLANNERS["greedy"](problem)[0] == stock_greedy(problem)
    assert stock_planners.PLANNERS["naive"](problem)[0] == stock_naive(problem)


def test_kinds_part_the_optional_colocations():
    buffers = [
        Buffer("x", 8, -1, 3),
        Buffer("slice", 4, 0, 3),
        Buffer("a", 8, 1, 3),
        Buffer("cat", 12, 2, 4),
        Buffer("next", 12, 3, 5),
    ]
    ties = [
        Colocation("slice", "x", 4, required=False),
        Colocation("a", "cat", 0, required=False),
        Colocation("slice", "cat", 8, required=True),
        Colocation("next", "cat", 0, Kind.HANDOFF, required=False),
    ]
    problem = Problem(buffers, ties, capacity=1000)
    assert [kind_of(problem, t) for t in ties] == [
        ShareKind.VIEWS,
        ShareKind.CONCATS,
        ShareKind.CONCATS,
        ShareKind.IN_PLACE,
    ]
    assert only(problem, ()).colocations == (ties[2],)
    assert only(problem, (ShareKind.CONCATS,)).colocations == (ties[1], ties[2])
    assert only(problem, ShareKind) == Problem(buffers, ties)


def test_more_sharing_is_never_a_larger_arena():
    from tests.planner.bench.test_kinds import exported_problem

    problem = exported_problem()
    peaks = {k: report_of(problem, f"auto{k}").peak for k in ("", "+concats", "+views", "+in-place", "+all")}
    assert peaks["+all"] == min(peaks.values()) < peaks[""] == max(peaks.values())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("quick", "'quick' is no planner: it must be one of auto"),
        ("auto+slices", "'slices' is no sharing: it must be one of concats, views, in-place, all"),
        ("supermalloc+all", "supermalloc knows no sharing"),
        ("", "'' is no planner"),
    ],
)
def test_names_that_are_none(name, said):
    with pytest.raises(FileError, match=said.replace("+", r"\+")):
        entrant_of(name)


def test_all_is_all_kinds():
    assert entrant_of("auto+all").sharing == entrant_of("auto+concats+views+in-place").sharing
    assert [entrant_of(n).kinds for n in ("auto", "auto+in-place+concats", "auto+all")] == [
        "none",
        "concats+in-place",
        "all",
    ]
