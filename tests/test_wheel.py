"""The wheel where neither torch nor executorch is: it has what it needs, and a type checker sees the names."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from planner.executorch.compare import run_program, same_bits
from planner.executorch.example_models import UNet
from tests.planner.pte.programs import exported

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
TYPED = """
from planner import Dataflow, Plan, plan
from solvers import Buffer, Problem, Result, Status, solve

result: Result = solve(Problem([Buffer("a", 8, 0, 2)]))
proven: bool = result.status is Status.OPTIMAL
made: Plan = plan(Dataflow([], [], []))
"""
WRONG = """
from solvers import Buffer, solved

size: str = Buffer("a", 8, 0, 2).size
"""


def called(*command, code=0, cwd=None):
    run = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, check=False)
    assert run.returncode == code, run.stdout + run.stderr
    return run


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"  # a build leaves folders behind
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "*.so", "problems"))
    called(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, copy)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel and what it asks for, and no more."""
    folder = tmp_path_factory.mktemp("environment")
    called(sys.executable, "-m", "venv", folder)
    called(folder / "bin" / "pip", "install", "--quiet", wheel)
    return folder / "bin" / "python"


def test_it_has_all_that_is_read_at_run_time(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = ["planner/py.typed", "solvers/py.typed", "solvers/core/_core.pyi", "planner/pte/operators.txt"]
    assert set(wanted) <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.startswith("solvers/core/_core.") and name.endswith(".so") for name in names)
    assert not any(name.startswith(("tests", "benchmarks")) for name in names)


def test_programs_are_shown_and_replanned_without_torch(python, tmp_path):
    called(python, "-c", "import torch", code=1)
    called(python, "-c", "import executorch", code=1)
    inputs = (torch.randn(1, 3, 16, 16),)
    model, out = tmp_path / "model.pte", tmp_path / "out.pte"
    model.write_bytes(exported(UNet(), inputs))
    arena = python.parent / "arena"
    assert "with the native core" in called(arena, "--version").stdout
    shown = called(arena, "show", model)
    assert "Not all of it is needed" in shown.stdout
    assert shown.stderr == ""
    replanned = called(arena, "replan", model, "-o", out)
    assert "optimal" in replanned.stdout
    assert replanned.stderr == ""
    assert same_bits(*run_program(model.read_bytes(), inputs), *run_program(out.read_bytes(), inputs))
    refused = called(arena, "demo", code=2)
    assert "is missing: pip install 'arena-planner[executorch]'" in refused.stderr


def test_a_type_checker_sees_the_names(python, tmp_path):
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", python]
    mypy += ["--cache-dir", tmp_path / "cache"]
    for text, code in ((TYPED, 0), (WRONG, 1)):
        file = tmp_path / f"typed_{code}.py"
        file.write_text(text)
        run = called(*mypy, file, code=code, cwd=tmp_path)
    assert 'Module "solvers" has no attribute "solved"' in run.stdout
    assert 'expression has type "int", variable has type "str"' in run.stdout
