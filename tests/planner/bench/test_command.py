"""`arena bench` as a user calls it."""

import subprocess
import sys

import pytest

from planner.bench.row import read_rows
from planner.cli import main
from solvers.files.by_name import problem_to_json
from tests.planner.bench.test_contenders import drawn
from tests.planner.bench.test_row import ROW, rows_to_jsonl


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "problems"
    made.mkdir()
    for seed in (1, 2):
        (made / f"{seed}.json").write_text(problem_to_json(drawn(seed)))
    (made / "three.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    (made / "notes.txt").write_text("not a problem")
    return made


def test_a_folder_to_a_table_and_rows(folder, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    command = ["bench", str(folder), "--solvers", "stock-greedy,auto", "--time-limit", "2", "-o", str(rows)]
    assert main(command) == 0
    out = capsys.readouterr().out
    for word in ("stock-greedy", "optimum", "bound", "status", "optimal", "drawn 1", "three", "mean excess"):
        assert word in out
    first = rows.read_bytes()
    assert len(read_rows(str(rows))) == 6
    assert main(command) == 0
    assert rows.read_bytes() == first, "nothing was measured again"
    assert capsys.readouterr().out == out


def test_what_was_measured_before_stays_in_the_file(folder, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(rows_to_jsonl([ROW]))
    assert main(["bench", str(folder / "three.csv"), "--solvers", "greedy", "-o", str(rows)]) == 0
    assert [r.problem for r in read_rows(str(rows))] == [ROW.problem, "three"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no PROBLEM given"),
        (["{folder}", "--solvers", "auto,quick"], "'quick' is no planner"),
        (["{folder}", "--runs", "0"], "--runs must be 1 to 1000"),
        (["{folder}", "--jobs", "0"], "--jobs 1 to 64"),
        (["{folder}", "--time-limit", "inf"], "--time-limit and --patience must be at most"),
        (["{folder}", "--patience", "0"], "--patience above 0"),
        (["{folder}", "-o", "rows.txt"], "'rows.txt': rows are written as .jsonl"),
        (["{folder}", "-o", "{folder}/no/rows.jsonl"], "rows.jsonl: cannot be written"),
        (["{empty}"], "no .csv or .json file is in this folder"),
        (["{folder}", "{folder}/notes.txt"], "notes.txt: a problem is"),
        (["{folder}/1.json", "{copy}"], "another problem is called 'drawn 1' as well"),
    ],
)
def test_bad_usage(folder, tmp_path, arguments, said, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "copy.json").write_text((folder / "1.json").read_text())
    names = {"folder": folder, "empty": tmp_path / "empty", "copy": tmp_path / "copy.json"}
    assert main(["bench", *(a.format(**names) for a in arguments)]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_has_no_rows_is_kept(folder, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("precious\n")
    assert main(["bench", str(folder), "-o", str(rows)]) == 2
    assert "rows.jsonl:1: no JSON" in capsys.readouterr().err
    assert rows.read_text() == "precious\n"


def test_names_are_no_markup(tmp_path, capsys, monkeypatch):
    """Brackets and lines in a problem's name, with the bar of a terminal."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    path = tmp_path / "p.json"
    path.write_text(problem_to_json(replace_name(drawn(1), "a[/b] | [bold]\nc")))
    assert main(["bench", str(path), "--solvers", "stock-greedy,minimalloc"]) == 0
    assert "a[/b] | [bold]" in capsys.readouterr().out


def replace_name(problem, name):
    from solvers.problem.problem import Problem

    return Problem(problem.buffers, problem.colocations, name=name)


def test_the_planners_are_named(capsys):
    assert main(["bench", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("auto", "executorch-greedy", "vela", "supermalloc", "cadence"))


def test_it_runs_without_torch_and_peers(folder):
    """A clean machine: only what the package itself needs."""
    code = (
        "import sys\n"
        "from planner.cli import main\n"
        f"code = main(['bench', {str(folder)!r}, '--solvers', 'stock-greedy,auto', '--quiet'])\n"
        "heavy = {'torch', 'executorch', 'omnimalloc', 'ethosu', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
