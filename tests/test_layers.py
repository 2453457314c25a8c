"""The house: which room may import which, no circles, no two things of one name, and a light start."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import planner
import solvers
from solvers.core import core
from solvers.files.by_name import plan_file, plan_to_json, problem_to_csv
from solvers.search import solve
from tests.problems import tiling
from tests.without import run_without

PACKAGES = {"planner": Path(planner.__file__).parent, "solvers": Path(solvers.__file__).parent}
SOURCES = {
    ".".join((top, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
    for top, folder in PACKAGES.items()
    for path in sorted(folder.rglob("*.py"))
}

SOLVERS = {
    "solvers.lazily": "",
    "solvers": "lazily",
    "solvers.core": "",
    "solvers.deadline": "",
    "solvers.problem": "core",
    "solvers.verifier": "problem",
    "solvers.run": "deadline problem verifier",
    "solvers.place": "core deadline problem run verifier",
    "solvers.choose": "deadline place problem run verifier",
    "solvers.search": "choose deadline place problem run",
    "solvers.banks": "choose deadline place problem run search verifier",
    "solvers.files": "banks problem",
}
PLANNER = {
    "planner": "",
    "planner.program": "",
    "planner.judge": "program",
    "planner.api": "judge program",
    "planner.progress": "",
    "planner.explain": "program",
    "planner.maps": "",
    "planner.lock": "api program",
    "planner.pte": "api explain judge maps program",
    "planner.executorch": "api judge lock program progress pte",
    "planner.bench": "executorch",
    "planner.commands": "api bench executorch explain maps program progress pte",
    "planner.cli": "commands",
}
MAY_IMPORT = {room: {f"solvers.{name}" for name in names.split()} for room, names in SOLVERS.items()}
MAY_IMPORT |= {room: {f"planner.{name}" for name in names.split()} | set(SOLVERS) for room, names in PLANNER.items()}
"""Room by room, the rooms that it may import; every room of the planner may import the solvers."""


def room_of(module):
    return ".".join(module.split(".")[:2])


def imported(path, at_the_top=False):
    """The modules that a file imports, whether at the top or in a function; but for what only a type checker sees."""
    found = set()
    todo = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if at_the_top and isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            inside = {f"{node.module}.{a.name}" for a in node.names}
            found |= inside & SOURCES.keys() or {node.module}
        todo += ast.iter_child_nodes(node)
    return found


@cache
def ours(module):
    return {name for name in imported(SOURCES[module]) if name.split(".")[0] in PACKAGES and name in SOURCES}


@pytest.mark.parametrize("module", SOURCES)
def test_a_room_imports_only_what_it_may(module):
    room = room_of(module)
    others = {name for name in ours(module) if room_of(name) != room}
    assert room in MAY_IMPORT, "a new room: say what it may import"
    assert {room_of(name) for name in others} <= MAY_IMPORT[room]


def test_there_is_no_circle_of_rooms_nor_of_modules():
    rooms = nx.DiGraph((room, other) for room, others in MAY_IMPORT.items() for other in others)
    assert list(nx.simple_cycles(rooms)) == []
    modules = nx.DiGraph((module, other) for module in SOURCES for other in ours(module) - {module})
    assert list(nx.simple_cycles(modules)) == []


def test_no_permission_is_idle():
    used = {(room_of(m), room_of(name)) for m in SOURCES for name in ours(m)}
    idle = {(room, other) for room, others in MAY_IMPORT.items() for other in others if (room, other) not in used}
    assert {(a, b) for a, b in idle if not (a.startswith("planner") and b.startswith("solvers"))} == set()


def test_every_room_says_what_is_in_it():
    for module, path in SOURCES.items():
        if path.name == "__init__.py":
            doc = ast.get_docstring(ast.parse(path.read_text())) or ""
            assert "mport" in doc, module
            assert "tart" in doc or module == "planner.executorch", module


def test_no_two_modules_share_a_name():
    names = Counter(module.split(".")[-1] for module in SOURCES)
    twice = {name for name, count in names.items() if count > 1}
    assert twice == {
        "bench",  # the command runs the room
        "problem",  # the room's main module
    }


def test_no_two_public_classes_share_a_name():
    names = Counter(
        node.name
        for module, path in SOURCES.items()
        if module != "planner.pte.schema"  # these are the names of the format
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_only_the_executorch_front_end_imports_torch():
    for module, path in SOURCES.items():
        heavy = {name.split(".")[0] for name in imported(path)} & {"torch", "executorch", "torchao"}
        assert not heavy or room_of(module) == "planner.executorch", module


def test_ortools_and_matplotlib_are_imported_where_they_are_used():
    for module, path in SOURCES.items():
        at_the_top = {name.split(".")[0] for name in imported(path, at_the_top=True)}
        assert not at_the_top & {"ortools", "matplotlib", "networkx", "flatbuffers"}, module


def test_the_verifier_shares_no_code_with_the_players():
    allowed = {"solvers.problem.buffers", "solvers.problem.problem", "solvers.problem.result"}
    assert ours("solvers.verifier") <= allowed


def test_the_replay_knows_no_dataflow_and_no_sharing():
    assert ours("planner.judge.memory") == set()
    assert ours("planner.judge.replay") == {"planner.judge.memory"}
    facts = {"planner.program.tensor_layout", "planner.program.views"}
    assert ours("planner.judge.moves") == {"planner.judge.replay", *facts}
    judge = {"planner.judge.memory", "planner.judge.moves", "planner.judge.replay"}
    arguments = {"planner.executorch.in_place", "planner.executorch.nodes"}
    assert ours("planner.executorch.graph_trace") == {*judge, *arguments}
    assert ours("planner.pte.method_trace") == {*judge, "planner.pte.accesses", "planner.pte.method"}


@pytest.mark.parametrize("command", ["help", "verify", "plan", "search", "show", "show svg", "show html"])
def test_light_commands_start_without_heavy_packages(command, tmp_path):
    problem = tiling(1, 10)
    (tmp_path / "p.csv").write_text(problem_to_csv(problem))
    (tmp_path / "plan.json").write_text(plan_to_json(plan_file(problem, solve(problem, "greedy"), {})))
    (tmp_path / "hard.csv").write_text(problem_to_csv(tiling(12, 60)))
    files = {name: str(tmp_path / name) for name in ("p.csv", "hard.csv", "plan.json", "map.svg", "map.html")}
    arguments = {
        "help": ["--help"],
        "verify": ["verify", files["p.csv"], files["plan.json"]],
        "plan": ["plan", files["p.csv"]],
        "search": ["plan", files["hard.csv"]],
        "show": ["show", files["p.csv"], "--plan", files["plan.json"]],
        "show svg": ["show", files["p.csv"], "-o", files["map.svg"]],
        "show html": ["show", files["p.csv"], "-o", files["map.html"]],
    }[command]
    if command == "search" and core is None:
        pytest.skip("without the native core CP-SAT searches")
    run_without(("torch", "executorch", "ortools", "matplotlib"), arguments)
