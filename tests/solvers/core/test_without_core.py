"""All works without the native core, in a process that cannot import it."""

import json
import subprocess
import sys

from solvers.core import core

BLOCK = "import sys; sys.modules['solvers.core._core'] = None; "


def run(code):
    done = subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True, check=True)
    return done.stdout


def test_problems_are_solved_all_the_same():
    code = """
import json
from solvers.core import core
from solvers.run import Options
from solvers.search import solve
from tests.problems import spirals, tiling
assert core is None
out = []
for problem, limit in ((tiling(1, 60), 30), (tiling(2, 90), 30), (spirals(1, 201), 1)):
    for solver in ("auto", "greedy"):
        result = solve(problem, solver, Options(limit, 2))
        out.append((str(result.status), result.peak))
print(json.dumps(out))
"""
    found = json.loads(run(code))
    assert found[0] == found[2] == ["optimal", 64]
    assert found[4][1] <= found[5][1]


def test_the_version_says_so():
    said = run("from planner.cli import main; main(['--version'])")
    assert "without the native core" in said
    here = subprocess.run(
        [sys.executable, "-m", "planner.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert ("with the native core" in here.stdout) == (core is not None)
