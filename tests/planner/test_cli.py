"""The command: exit codes, and what goes to which stream."""

import io
import json
import subprocess
import sys

import pytest

from planner.cli import main
from solvers.files.by_name import problem_to_json
from solvers.problem.buffers import Buffer, Colocation
from solvers.problem.problem import Problem
from tests.problems import tiling

CSV = "id,lower,upper,size\na,0,2,8\nb,1,3,8\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(CSV)
    return path


def test_plan_then_verify(trace, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert main(["plan", str(trace), "-o", str(plan)]) == 0
    assert "optimal" in capsys.readouterr().out
    data = json.loads(plan.read_text())
    assert (data["status"], data["arenas"][0]["peak"]) == ("optimal", 16)
    assert main(["verify", str(trace), str(plan)]) == 0
    assert "valid: 2 buffers, peak 16 bytes" in capsys.readouterr().out


def test_json_output_is_one_object(trace, capsys):
    assert main(["plan", str(trace), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert set(row) >= {"status", "peak", "lower_bound", "gap", "solver", "wall_time", "offsets", "proof", "trace"}
    assert sum(size for _, size in row["certificate"]["parts"]) == row["lower_bound"]
    assert (row["status"], row["peak"], row["gap"]) == ("optimal", 16, 0.0)


def test_a_problem_from_standard_input_and_a_csv_plan(tmp_path, capsys, monkeypatch):
    for text in (CSV, problem_to_json(tiling(1, 10))):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["plan", "-", "-o", str(tmp_path / "plan.csv")]) == 0
        assert (tmp_path / "plan.csv").read_text().startswith("id,lower,upper,size,alignment,offset\n")


def test_the_plan_can_go_to_standard_output(trace, capsys):
    assert main(["plan", str(trace), "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "arena-plan"


def test_show_names_what_holds_the_peak(trace, tmp_path, capsys):
    assert main(["show", str(trace)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "16 bytes. All of it is needed: no plan of this program needs less (proven)." in said
    assert "Most is needed in step 1: 16 bytes." in said
    plan = tmp_path / "plan.json"
    main(["plan", str(trace), "-o", str(plan)])
    loose = json.loads(plan.read_text())
    loose["offsets"]["b"] = 100
    plan.write_text(json.dumps(loose))
    capsys.readouterr()
    assert main(["show", str(trace), "--plan", str(plan)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "108 bytes. Not all of it is needed: 16 would do (proven smallest)" in said
    assert "92 bytes of the arena are not used then" in said
    loose["offsets"]["b"] = 0
    plan.write_text(json.dumps(loose))
    assert main(["show", str(trace), "--plan", str(plan)]) == 2
    assert "overlap" in capsys.readouterr().err


def test_show_of_a_plan_with_banks(trace, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert main(["plan", str(trace), "--bank", "fast=8", "--bank", "slow=64", "-o", str(plan)]) == 0
    capsys.readouterr()
    assert main(["show", str(trace), "--plan", str(plan)]) == 0
    said = capsys.readouterr().out
    assert "bank fast (8 bytes): 8 bytes" in said
    assert "bank slow (64 bytes): 8 bytes" in said
    assert main(["show", str(trace), "--plan", str(plan), "-o", str(tmp_path / "map.svg")]) == 0


def test_show_draws_a_problem(trace, tmp_path):
    for suffix in ("svg", "html", "png"):
        out = tmp_path / f"map.{suffix}"
        assert main(["show", str(trace), "-o", str(out)]) == 0
        assert out.stat().st_size > 500


def test_a_capacity_that_is_too_small(trace, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert main(["plan", str(trace), "--capacity", "12", "-o", str(plan)]) == 1
    said = capsys.readouterr().err
    assert "infeasible: capacity exceeded: required 16 bytes" in said
    assert "available 12, excess 4" in said
    assert not plan.exists()


def test_a_violated_plan(trace, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    main(["plan", str(trace), "-o", str(plan)])
    good = json.loads(plan.read_text())
    plan.write_text(json.dumps({**good, "offsets": {"a": 0, "b": 0}}))
    assert main(["verify", str(trace), str(plan)]) == 1
    assert "violated: buffers 'a' and 'b' overlap" in capsys.readouterr().err
    plan.write_text(json.dumps({**good, "arenas": [{"mem_id": 1, "peak": 3, "lower_bound": 3}]}))
    assert main(["verify", str(trace), str(plan)]) == 1
    assert "states a peak of 3 bytes" in capsys.readouterr().err


def test_colocations_read_as_optional(tmp_path, capsys):
    path = tmp_path / "p.json"
    ties = [Colocation("a", "w", 0)]
    path.write_text(problem_to_json(Problem([Buffer("a", 8, 0, 2), Buffer("w", 8, 1, 3)], ties)))
    plan = tmp_path / "plan.json"
    assert main(["plan", str(path), "--optional", "-o", str(plan)]) == 0
    assert main(["verify", str(path), str(plan), "--optional"]) == 0
    assert main(["verify", str(path), str(plan)]) == 2
    assert "another problem" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "none.csv"],
        ["plan", "."],
        ["plan", "trace.csv", "--solver", "best"],
        ["plan", "trace.csv", "--time-limit", "nan"],
        ["plan", "trace.csv", "--time-limit", "-1"],
        ["plan", "trace.csv", "--workers", "-1"],
        ["plan", "trace.csv", "--seed", "99999999999"],
        ["plan", "trace.csv", "--capacity", "1e3"],
        ["plan", "trace.csv", "--capacity", str(2**80)],
        ["plan", "trace.csv", "-o", "plan.txt"],
        ["plan", "trace.csv", "-o", ""],
        ["plan", "trace.csv", "-o", "trace.csv"],
        ["plan", "trace.csv", "-o", "none/plan.json"],
        ["verify", "trace.csv", "trace.csv"],
        ["verify", "trace.csv", "none.json"],
        ["show", "none.csv"],
        ["show", "trace.csv", "-o", "map.gif"],
        ["show", "trace.csv", "--plan", "trace.csv"],
        ["show", "trace.csv", "--time-limit", "-1"],
        ["plan"],
        ["dance"],
        [],
    ],
)
def test_bad_usage_ends_with_2_and_one_sentence(arguments, trace, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse's own
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.strip()
    assert "Traceback" not in said.err
    assert [p.name for p in tmp_path.iterdir()] == ["trace.csv"]


@pytest.mark.parametrize("name", ["[/red]", "\\ud800", "[bold]"])
def test_a_name_is_shown_as_it_is(name, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(f'{{"format": "arena-problem", "version": 1, "name": "{name}", "buffers": []}}')
    run = subprocess.run([sys.executable, "-m", "planner.cli", "plan", str(path)], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    assert name.encode() in run.stdout


def test_an_output_that_cannot_be_written_is_one_sentence(trace):
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "planner.cli", "plan", str(trace), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert run.returncode == 2
    assert run.stderr.decode().startswith("arena: standard output: cannot be written")
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize("command", [[], ["plan"], ["verify"], ["demo"], ["show"], ["replan"]])
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    assert not command or "example:" in capsys.readouterr().out
