"""A fixed set of the corpus: no peak above the recorded optimum, no proof lost."""

import json
from pathlib import Path

import pytest

import benchmarks
from planner.bench.contenders import entrant_of
from planner.bench.kinds import only
from solvers.files.by_name import read_problem
from solvers.problem.result import Status
from solvers.run import Options
from solvers.search import solve

HERE = Path(benchmarks.__path__[0])
RECORD = json.loads((HERE / "guard.json").read_text())
PLANNERS = {"none": "auto", "all": "auto+all"}
OPTIONS = Options(60.0)
"""Generous: the guard is not about time."""


def regressions(name, recorded):
    """What got worse on a problem, in words."""
    problem = read_problem(str(HERE / "problems" / f"{name}.json"))
    for sharing, optimum in recorded.items():
        result = solve(only(problem, entrant_of(PLANNERS[sharing]).sharing), "auto", OPTIONS)
        if result.peak > optimum:
            yield f"{name}, sharing {sharing}: peak {result.peak}, recorded {optimum}"
        if result.status is not Status.OPTIMAL:
            yield f"{name}, sharing {sharing}: {result.status}, bound {result.lower_bound}"


@pytest.mark.parametrize("name", RECORD)
def test_no_regression(name):
    assert RECORD[name].keys() == PLANNERS.keys()
    assert not list(regressions(name, RECORD[name]))


def test_the_guard_notices():
    name = "squeezenet_v1_1.portable" if "squeezenet_v1_1.portable" in RECORD else next(iter(RECORD))
    lower = {sharing: optimum - 1 for sharing, optimum in RECORD[name].items()}
    assert len(list(regressions(name, lower))) == len(lower)
