"""A file of rows that several processes add to, and that an interrupt leaves with all that is done."""

import json
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest

from planner.bench.row import RowStatus, read_rows
from planner.bench.row_file import RowFile
from solvers import Buffer, Problem
from solvers.files.by_name import problem_to_json
from solvers.files.text import FileError
from tests.planner.bench.servers import adds_rows
from tests.planner.bench.test_contenders import drawn
from tests.planner.bench.test_row import ROW


def test_rows_that_were_asked_the_same_take_each_others_place(tmp_path):
    path = str(tmp_path / "rows.jsonl")
    one, other = RowFile(path), RowFile(path)
    one.add([replace(ROW, peak=20, lower_bound=10, status=RowStatus.FEASIBLE)])
    other.add([replace(ROW, planner="better", peak=16, lower_bound=16, status=RowStatus.OPTIMAL)])
    rows = {r.planner: r for r in read_rows(path)}
    assert (rows[ROW.planner].excess, rows[ROW.planner].against) == (0.25, "optimum"), "told anew by what others found"
    one.add([replace(ROW, peak=16, lower_bound=16, status=RowStatus.OPTIMAL)])
    assert [(r.planner, r.peak) for r in read_rows(path)] == [(ROW.planner, 16), ("better", 16)]
    assert one.rows == read_rows(path)


def test_adding_nothing_changes_nothing(tmp_path):
    path = tmp_path / "rows.jsonl"
    RowFile(str(path)).add([ROW])
    before = path.read_bytes()
    RowFile(str(path)).add([])
    assert path.read_bytes() == before


def test_a_file_of_something_else_is_kept(tmp_path):
    path = tmp_path / "rows.jsonl"
    RowFile(str(path)).add([ROW])
    file = RowFile(str(path))
    path.write_text("precious\n")
    with pytest.raises(FileError, match="no JSON"):
        file.add([ROW])
    assert path.read_text() == "precious\n"


def test_two_processes_lose_nothing(tmp_path):
    path = str(tmp_path / "rows.jsonl")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(adds_rows, [path] * 2, [[replace(ROW, planner=p)] * 8 for p in ("one", "other")]))
    assert {(r.problem, r.planner) for r in read_rows(path)} == {
        (f"p{k}", planner) for k in range(8) for planner in ("one", "other")
    }
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.jsonl"]


def bench(*arguments):
    command = [sys.executable, "-m", "planner.cli", "bench", *map(str, arguments), "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_two_calls_into_one_file_keep_both(tmp_path):
    rows = tmp_path / "rows.jsonl"
    for seed in (1, 2, 3):
        (tmp_path / f"{seed}.json").write_text(problem_to_json(drawn(seed)))
    calls = [
        bench(*(tmp_path / f"{k}.json" for k in seeds), "--solvers", "stock-greedy,greedy", "-o", rows)
        for seeds in ((1, 2), (2, 3))
    ]
    assert [call.wait() for call in calls] == [0, 0]
    found = [(r.problem, r.planner) for r in read_rows(str(rows))]
    assert sorted(found) == [(f"drawn {k}", p) for k in (1, 2, 3) for p in ("greedy", "stock-greedy")]


def test_an_interrupt_keeps_the_rows_that_are_done(tmp_path):
    """The first planner has answered when the second, which would go on for long, is interrupted."""
    problem, rows = tmp_path / "hard.json", tmp_path / "rows.jsonl"
    problem.write_text(problem_to_json(hard()))
    for seconds in (3, 6, 12, 24):
        rows.unlink(missing_ok=True)
        call = bench(problem, "--solvers", "greedy,cp-sat", "--time-limit", "300", "-o", rows)
        time.sleep(seconds)
        call.send_signal(signal.SIGINT)
        _, said = call.communicate(timeout=60)
        assert call.returncode == 130
        assert "Traceback" not in said
        if rows.exists() and read_rows(str(rows)):
            break
    assert [(r.planner, r.status in ("optimal", "feasible")) for r in read_rows(str(rows))] == [("greedy", True)]
    assert json.loads(rows.read_text())["excess"] is not None


def hard():
    """Greedy has a plan at once; mixed alignments leave the bound out of reach, so that CP-SAT goes on."""
    draw = random.Random(1)
    buffers = []
    for k in range(300):
        size, start, alignment = draw.randrange(300, 1000), draw.randrange(60), draw.choice([1, 64, 256])
        buffers.append(Buffer(f"b{k}", size, start, start + draw.randrange(3, 30), alignment))
    return Problem(buffers)
