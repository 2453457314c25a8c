"""One direction of imports, and a light start."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import planner
import solvers
from solvers.files.by_name import plan_file, plan_to_json, problem_to_csv
from solvers.search import solve
from tests.problems import tiling

FOLDERS = {"planner": Path(planner.__file__).parent, "solvers": Path(solvers.__file__).parent}
SOURCES = sorted(p for folder in FOLDERS.values() for p in folder.rglob("*.py"))


def imported(path: Path, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    found = tree.body if top_level_only else list(ast.walk(tree))
    out = set()
    for node in found:
        if isinstance(node, ast.Import):
            out |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            out.add(node.module or "")
    return out


def test_solvers_do_not_know_the_planner():
    for path in FOLDERS["solvers"].rglob("*.py"):
        assert not any(name.split(".")[0] == "planner" for name in imported(path)), path


def test_only_the_executorch_front_ends_import_torch():
    for path in SOURCES:
        heavy = {name.split(".")[0] for name in imported(path)} & {"torch", "executorch"}
        assert not heavy or path.parent.name in ("executorch", "pte"), path


def test_ortools_and_matplotlib_are_imported_where_they_are_used():
    for path in SOURCES:
        at_the_top = {name.split(".")[0] for name in imported(path, top_level_only=True)}
        assert not at_the_top & {"ortools", "matplotlib"}, path


def test_the_verifier_shares_no_code_with_the_players():
    allowed = {"solvers.problem.buffers", "solvers.problem.problem", "solvers.problem.result"}
    assert {n for n in imported(FOLDERS["solvers"] / "verify.py") if n.startswith("solvers")} <= allowed


def test_the_replay_knows_no_dataflow_and_no_sharing():
    def ours(*path):
        return {n for n in imported(FOLDERS["planner"].joinpath(*path)) if n.startswith(("planner", "solvers"))}

    assert ours("memory.py") == set()
    assert ours("replay.py") == {"planner.judge.memory"}
    arguments = {"planner.executorch", "planner.executorch.in_place", "planner.executorch.views"}
    assert ours("executorch", "trace.py") == {"planner.judge.memory", "planner.judge.replay", *arguments}


@pytest.mark.parametrize("command", ["help", "verify", "show", "show svg", "show html"])
def test_light_commands_start_without_heavy_packages(command, tmp_path):
    problem = tiling(1, 10)
    (tmp_path / "p.csv").write_text(problem_to_csv(problem))
    (tmp_path / "plan.json").write_text(plan_to_json(plan_file(problem, solve(problem, "greedy"), {})))
    files = {name: str(tmp_path / name) for name in ("p.csv", "plan.json", "map.svg", "map.html")}
    arguments = {
        "help": ["--help"],
        "verify": ["verify", files["p.csv"], files["plan.json"]],
        "show": ["show", files["p.csv"], "--plan", files["plan.json"]],
        "show svg": ["show", files["p.csv"], "-o", files["map.svg"]],
        "show html": ["show", files["p.csv"], "-o", files["map.html"]],
    }[command]
    code = (
        "import sys\n"
        "from planner.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'executorch', 'ortools', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
