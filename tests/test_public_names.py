"""The public names of the two top packages: all there, and free until they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import planner
import solvers


@pytest.mark.parametrize("package", [planner, solvers])
def test_the_names_for_people_for_type_checkers_and_for_the_runtime_are_the_same(package):
    tree = ast.parse(Path(package.__file__).read_text())
    (typed,) = (n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    for_checkers = {(n.module, a.name) for n in typed.body for a in n.names}
    assert for_checkers == {(home, name) for home, names in package._HOMES.items() for name in names}
    assert sorted(name for _, name in for_checkers) == sorted(package.__all__)
    for home, name in for_checkers:
        assert getattr(package, name) is getattr(sys.modules[home], name)
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize("package", [planner, solvers])
def test_other_names_are_refused(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'solved'"):
        _ = package.solved


def test_importing_them_imports_nothing():
    code = "import sys; before = set(sys.modules); import planner, solvers; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["planner", "solvers", "solvers.lazily"]


@pytest.mark.parametrize("first", ["import solvers.verifier", "import solvers.search, planner.pte"])
def test_names_are_things_whatever_was_imported_before(first):
    """A module of the same name would take the place of a function."""
    code = (
        f"{first}; from solvers import *; from planner import *; print(*map(callable, (verify, solve, plan, replan)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"] * 4
