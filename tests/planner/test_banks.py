"""Banks from the command line, in plan files, and for dataflows."""

import json
from dataclasses import replace

import pytest

from planner.api import BanksExceeded, Request, plan
from planner.cli import main
from planner.program.banking import ANYWHERE, weights_of
from planner.program.dataflow import Dataflow, Role
from solvers.banks.bank import Bank
from solvers.banks.solve import solve_banks
from solvers.files.by_name import bank_plan_file, banks_of, plan_to_json, problem_to_json
from solvers.files.json_format import plan_from_json
from solvers.files.text import FileError
from solvers.problem.buffers import Buffer, Colocation
from solvers.problem.problem import Problem
from tests.planner.flows import op, tensor, two_parts
from tests.problems import tiling

CSV = "id,lower,upper,size\na,0,2,8\nb,1,3,8\nc,1,3,4\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(CSV)
    return str(path)


@pytest.fixture
def arena(capsys):
    def run(*arguments):
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_plan_then_verify(trace, tmp_path, arena):
    path = tmp_path / "plan.json"
    code, table, _ = arena("plan", trace, "--bank", "fast=12", "--bank", "slow=1K@4", "-o", path)
    assert code == 0
    assert all(word in table for word in ("fast", "slow", "1024", "optimal"))
    data = json.loads(path.read_text())
    assert [a["peak"] for a in data["arenas"]] == [12, 8]
    assert [(a["mem_id"], a["name"], a["capacity"], a.get("alignment")) for a in data["arenas"]] == [
        (1, "fast", 12, None),
        (2, "slow", 1024, 4),
    ]
    assert set(data["arena_of"].values()) == {0, 1}
    code, said, _ = arena("verify", trace, path)
    assert (code, said.splitlines()[0]) == (0, "valid: 3 buffers, peak 12 and 8 bytes")
    assert "bank fast: 2 buffers, peak 12 of 12 bytes" in said
    assert arena("verify", trace, path, "--bank", "fast=12", "--bank", "slow=8")[0] == 0
    code, _, complaint = arena("verify", trace, path, "--bank", "fast=11", "--bank", "slow=8")
    assert code == 1
    assert "violated: bank 'fast': buffer" in complaint


def test_json_output_is_one_object(trace, arena):
    code, said, _ = arena("plan", trace, "--bank", "fast=12", "--bank", "slow=1K", "--json")
    row = json.loads(said)
    assert (code, row["status"], row["best_assignment"], row["excess"]) == (0, "optimal", True, None)
    assert (row["weights"], row["bounds"]) == ([12, 8], [12, 8])
    assert [(b["name"], b["bytes"], b["capacity"]) for b in row["banks"]] == [("fast", 12, 12), ("slow", 8, 1024)]
    assert set(row["arena_of"]) == set(row["offsets"]) == {"a", "b", "c"}


def test_banks_that_are_too_small(trace, tmp_path, arena):
    path = tmp_path / "plan.json"
    code, said, complaint = arena("plan", trace, "--bank", "fast=8", "--bank", "slow=9", "-o", path)
    assert (code, said) == (1, "")
    assert (
        "infeasible: capacity exceeded: required 20 bytes, available 17 in banks 'fast' and 'slow' together"
        in complaint
    )
    assert "excess 3; in step 1 live 'a' 8, 'b' 8, 'c' 4" in complaint
    assert not path.exists()
    code, said, complaint = arena("plan", trace, "--bank", "fast=4", "--bank", "slow=7", "--json")
    assert (code, json.loads(said)["excess"]["required"]) == (1, 8)
    assert "required 8 bytes, available 7 in bank 'slow', excess 1" in complaint


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bank", "fast"],
        ["--bank", "=8"],
        ["--bank", "fast=x"],
        ["--bank", "fast=8Q"],
        ["--bank", "fast=8@0"],
        ["--bank", "fast=9999999999999999999"],
        ["--bank", "fast=8", "--bank", "fast=9"],
        ["--bank", "fast=8", "--capacity", "9"],
        ["--bank", "fast=8", "--objective", "copies"],
        ["--bank", "fast=8", "-o", "plan.csv"],
    ],
)
def test_bad_usage_ends_with_2_and_one_sentence(arguments, trace, tmp_path, arena, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, said, complaint = arena("plan", trace, *arguments)
    assert (code, said) == (2, "")
    assert "bank" in complaint
    assert "Traceback" not in complaint
    assert [p.name for p in tmp_path.iterdir()] == ["trace.csv"]


def test_a_plan_judged_by_another_number_of_banks(trace, tmp_path, arena):
    path = tmp_path / "plan.json"
    arena("plan", trace, "--bank", "fast=12", "--bank", "slow=99", "-o", path)
    code, _, complaint = arena("verify", trace, path, "--bank", "fast=12")
    assert (code, "the plan has 2 banks" in complaint) == (2, True)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "arenas": [{**a, "name": "one"} for a in data["arenas"]]}))
    code, _, complaint = arena("verify", trace, path)
    assert (code, "must differ" in complaint) == (2, True)
    path.write_text(json.dumps({**data, "arena_of": {**data["arena_of"], "a": 2}}))
    code, _, complaint = arena("verify", trace, path)
    assert (code, "'a' has bank 2" in complaint) == (1, True)
    path.write_text(json.dumps({**data, "arenas": [{**a, "peak": 5} for a in data["arenas"]]}))
    code, _, complaint = arena("verify", trace, path)
    assert (code, "states a peak of 5 and 5 bytes, its offsets reach 12 and 8" in complaint) == (1, True)


def test_optional_ties_in_banks(tmp_path, arena):
    ties = [Colocation("a", "w", 0), Colocation("b", "w", 4)]
    some = [Buffer("a", 4, 0, 3), Buffer("b", 4, 1, 3), Buffer("w", 8, 2, 4)]
    problem, path = tmp_path / "p.json", tmp_path / "plan.json"
    problem.write_text(problem_to_json(Problem(some, ties)))
    for size, active in ((8, [0, 1]), (4, [])):
        banks = ("--bank", f"fast={size}", "--bank", "slow=16")
        assert arena("plan", problem, "--optional", *banks, "-o", path)[0] == 0
        assert json.loads(path.read_text())["active"] == active
        assert arena("verify", problem, path, "--optional")[0] == 0


def test_plans_with_banks_are_read_as_they_were_written():
    problem = tiling(2, 30)
    banks = (Bank("fast", 32, 3), Bank("slow", 64, 1, 1))
    written = bank_plan_file(problem, solve_banks(problem, banks), {})
    read = plan_from_json(plan_to_json(written))
    assert read == written
    assert banks_of(read, "plan.json") == banks


def test_arenas_without_a_capacity_have_no_limit():
    problem = Problem([Buffer("a", 8, 0, 1)])
    written = bank_plan_file(problem, solve_banks(problem, [Bank("x", 9, 4)]), {})
    bare = replace(written, arenas=tuple({k: a[k] for k in ("mem_id", "peak", "lower_bound")} for a in written.arenas))
    (bank,) = banks_of(bare, "plan.json")
    assert (bank.name, bank.mem_id) == ("mem_id 4", 4)
    assert bank.size > 2**40
    with pytest.raises(FileError, match="alignment is 'x'"):
        banks_of(replace(bare, arenas=({**bare.arenas[0], "alignment": "x"},)), "plan.json")


def anywhere(flow):
    return replace(flow, tensors=tuple(replace(t, arena=ANYWHERE) if t.arena == 1 else t for t in flow.tensors))


def test_a_tensor_weighs_its_bytes_times_the_ops_that_use_it():
    x, y, z = tensor("x", 8, role=Role.INPUT), tensor("y", 4), tensor("z", 2)
    flow = Dataflow([op("f", ["x", "x"], ["y"]), op("g", ["x", "y"], ["y"], ["x"])], [x, y, z], ["y"])
    assert weights_of(flow) == {"x": 2 * 32, "y": 2 * 16, "z": 0}


def test_a_dataflow_in_banks():
    """x -> p, q -> w = cat(p, q) -> y: all in one bank is as without banks; else the most that can be is."""
    flow = anywhere(two_parts())
    plain = plan(flow)
    one = plan(flow, Request(banks=(Bank("fast", plain.total, 5), Bank("slow", 999, 2))))
    assert (one.status, one.peaks) == ("optimal", {5: plain.total, 2: 0})
    assert one.elided == plain.elided == ("c",)
    two = plan(flow, Request(banks=(Bank("fast", 64, 5), Bank("slow", 999, 2))))
    assert 0 < two.peaks[5] <= 64
    assert two.place("w")[0] in (5, 2)
    assert {two.place(t.id)[0] for t in flow.tensors} == {5, 2}


def test_pins_and_arenas_of_others():
    flow = anywhere(two_parts())
    tensors = [replace(t, arena={"y": 2, "x": 7}.get(t.id, t.arena)) for t in flow.tensors]
    made = plan(replace(flow, tensors=tuple(tensors)), Request(banks=(Bank("fast", 999, 5), Bank("slow", 999, 2))))
    assert (made.place("y"), made.place("x")) == ((2, 0), (7, 0))
    assert made.place("w")[0] == 5


def test_banks_exceeded():
    flow = anywhere(two_parts())
    with pytest.raises(BanksExceeded, match="required 64 bytes, available 63 in bank 'slow', excess 1") as raised:
        plan(flow, Request(banks=(Bank("fast", 32, 1), Bank("slow", 63, 2))))
    assert raised.value.excess.parts[0][1] == 64


def test_reserved_bytes_do_not_go_with_banks():
    with pytest.raises(ValueError, match="banks do not go with reserved bytes"):
        Request(banks=(Bank("fast", 32, 1),), reserved={1: 16})
