"""Exports with a lock file, and what an export says of its progress."""

import json
import logging
import os
import threading
import warnings

import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge
from torch.export import export

from planner.api import PlanningError
from planner.executorch import ArenaWarning, Bank, arena_planning_pass
from planner.executorch import job as job_module
from planner.executorch.compare import lower, near, run_program, same_bits, to_program
from planner.executorch.example_models import UNet
from planner.judge.memory import ReplayError
from planner.lock.lock_file import LockError
from planner.lock.lock_format import lock_from_json
from solvers.files.text import FileError
from tests.planner.executorch.models import Accumulator, Detector, Function, TwoConvolutions
from tests.planner.executorch.test_control_flow import nested, two_live_results

R, cat = torch.randn, torch.cat


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.arena.json"


def planned(edge, **arguments):
    """The .pte, and the pass."""
    planning_pass = arena_planning_pass(**arguments)
    return to_program(edge, planning_pass).buffer, planning_pass


def without_time(report):
    return str(report).replace(", from the lock file", "").split(" s)")[0].rsplit(" (", 1)[0], report.decisions


def sines(n=8):
    return Function(lambda x: cat([x.sin(), x.cos()]).exp()), (R(n),)


CASES = {
    "a detector": lambda: (lower(Detector(), (R(1, 3, 64, 64),)), {}),
    "state": lambda: (lower(Accumulator(), (R(4),)), {}),
    "control flow": lambda: (lower(Function(two_live_results), (R(4),)), {}),
    "nested control flow": lambda: (lower(Function(nested), (R(4),)), {}),
    "a delegate": lambda: (lower(TwoConvolutions(), (R(1, 3, 8, 8),), [XnnpackPartitioner()]), {}),
    "banks": lambda: (
        lower(UNet(8), (R(1, 3, 32, 32),)),
        {"banks": [Bank("sram", 2**16, 2), Bank("dram", 2**20, 1, 64)]},
    ),
    "control flow in banks": lambda: (
        lower(Function(two_live_results), (R(4),)),
        {"banks": [Bank("sram", 64, 1), Bank("dram", 2**20, 2)]},
    ),
    "least copies": lambda: (lower(Detector(), (R(1, 3, 64, 64),)), {"objective": "copies"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_next_export_is_the_same_and_solves_nothing(name, path, tmp_path, no_solver):
    edge, arguments = CASES[name]()
    first, before = planned(edge, lock=path, strict=True, **arguments)
    text, written = path.read_bytes(), os.stat(path).st_mtime_ns
    assert planned(edge, lock=str(tmp_path / "other"), strict=True, **arguments)[0] == first
    assert (tmp_path / "other").read_bytes() == text
    assert planned(edge, strict=True, **arguments)[0] == first
    no_solver()
    for frozen in (False, True):
        again, after = planned(edge, lock=path, frozen=frozen, strict=True, workers=1, **arguments)
        assert again == first
        assert all(r.locked and "from the lock file" in str(r) for r in after.reports)
        assert [without_time(r) for r in after.reports] == [without_time(r) for r in before.reports]
    assert not any(r.locked for r in before.reports)
    assert (path.read_bytes(), os.stat(path).st_mtime_ns) == (text, written)


def test_other_weights_are_the_same_problem(path, no_solver):
    planned(lower(UNet(8), (R(1, 3, 32, 32),)), lock=path)
    no_solver()
    model, x = UNet(8), (R(1, 3, 32, 32),)
    program, planning_pass = planned(lower(model, x), lock=path, frozen=True)
    assert planning_pass.reports[0].locked
    assert near(run_program(program, x)[0], [model(*x)])


def test_another_model_is_planned_anew(path, caplog):
    planned(lower(*sines(8)), lock=path)
    text = path.read_text()
    with pytest.raises(LockError, match=r"^method 0: its problem changed: \w{64} in the lock file .*, now \w{64}"):
        planned(lower(*sines(9)), lock=path, frozen=True)
    assert path.read_text() == text
    model, x = sines(9)
    program, planning_pass = planned(lower(model, x), lock=path)
    assert [r.levelno for r in caplog.records if "its problem changed" in r.message] == [logging.WARNING]
    assert not planning_pass.reports[0].locked
    assert near(run_program(program, x)[0], [model(*x)])
    assert [g.graph for g in lock_from_json(path.read_text())] == ["method 0"]
    assert planned(lower(*sines(9)), lock=path, frozen=True)[0] == program


@pytest.mark.parametrize("option", [{"elide_concats": False}, {"alignment": 64}, {"objective": "copies"}])
def test_another_option_is_another_problem(option, path):
    edge = lower(*sines())
    planned(edge, lock=path)
    with pytest.raises(LockError):
        planned(edge, lock=path, frozen=True, **option)
    planned(edge, lock=path, frozen=True, seed=3, time_limit=1.0)


def test_frozen_fails_although_it_could_fall_back(path):
    with pytest.raises(LockError, match=r"there is no lock file .* Remedy: export once without frozen, and commit"):
        planned(lower(*sines()), lock=path, frozen=True)
    assert not path.exists()
    with pytest.raises(ValueError, match="frozen is true, but there is no lock"):
        arena_planning_pass(frozen=True)


def two_methods(other=8):
    forward, peek = sines(), (Function(lambda x: cat([x.cos(), x.exp()]).sin()), (R(other),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_edge({"forward": export(*forward), "peek": export(*peek)})


def test_two_methods(path, no_solver):
    """Methods are planned one by one; a method that is no more is dropped from the file."""
    edge = two_methods()
    first, planning_pass = planned(edge, lock=path)
    names = ["method 0", "method 1"]
    assert [g.graph for g in lock_from_json(path.read_text())] == [r.graph for r in planning_pass.reports] == names
    one, changed = planned(two_methods(9), lock=path)
    assert [r.locked for r in changed.reports] == [True, False]
    assert planned(two_methods(9), lock=path, frozen=True)[0] == one
    planned(edge, lock=path)
    text = path.read_bytes()
    no_solver()
    for _ in range(2):  # one pass for several exports
        assert to_program(edge, planning_pass).buffer == first
    assert [r.graph for r in planning_pass.reports] == names * 3
    assert path.read_bytes() == text
    planned(lower(*sines()), lock=path)
    assert [g.graph for g in lock_from_json(path.read_text())] == ["method 0"]


def test_a_pass_for_each_method(path, tmp_path):
    """With one pass under two names it is one export; two passes with one file are found out."""
    edge = two_methods()
    one = arena_planning_pass(lock=path)
    config = ExecutorchBackendConfig(memory_planning_pass={"forward": one, "peek": one})
    edge.to_executorch(config)
    assert [g.graph for g in lock_from_json(path.read_text())] == ["method 0", "method 1"]
    other = tmp_path / "other"
    passes = {name: arena_planning_pass(lock=other) for name in ("forward", "peek")}
    with pytest.raises(LockError, match="needs a lock file of its own"):
        two_methods().to_executorch(ExecutorchBackendConfig(memory_planning_pass=passes))


TAMPERINGS = {
    "an overlap": lambda graph: graph["arenas"][0]["offsets"].update(dict.fromkeys(graph["arenas"][0]["offsets"], 0)),
    "no ties": lambda graph: graph["active"].clear(),
    "a tie that is none": lambda graph: graph["active"].append(99),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_plan_that_was_tampered_with_is_never_used(tampering, path, caplog):
    edge = lower(*sines())
    first, _ = planned(edge, lock=path)
    text = path.read_text()
    data = json.loads(text)
    TAMPERINGS[tampering](data["graphs"][0])
    path.write_text(json.dumps(data))
    with pytest.raises(LockError, match=r"^method 0: its plan in the lock file .* is refused: "):
        planned(edge, lock=path, frozen=True)
    assert path.read_text() == json.dumps(data)
    again, planning_pass = planned(edge, lock=path)
    assert again == first
    assert not planning_pass.reports[0].locked
    assert any("is refused" in m for m in caplog.messages)
    assert path.read_text() == text


def test_a_locked_plan_that_the_replay_refuses_is_made_anew(path, monkeypatch):
    """The graph is as it was then: the new plan is the first one again."""
    edge = lower(Accumulator(), (R(4),))
    first, _ = planned(edge, lock=path)
    refuse_at(monkeypatch, 1)
    again, planning_pass = planned(edge, lock=path, strict=True)
    assert again == first
    assert not planning_pass.reports[0].locked
    refuse_at(monkeypatch, 1)
    with pytest.raises(LockError, match="is refused: not today"):
        planned(edge, lock=path, frozen=True)


def refuse_at(monkeypatch, *calls):
    """Let the second judge refuse at these of its calls."""
    count = iter(range(1, 100))
    monkeypatch.undo()
    replay = job_module.replay

    def judge(before, after):
        if next(count) in calls:
            raise ReplayError("not today")
        replay(before, after)

    monkeypatch.setattr(job_module, "replay", judge)


@pytest.mark.parametrize("refusals", [(1,), (1, 2)], ids=["less sharing", "stock's plan"])
def test_a_fallback_is_locked_as_well(refusals, path, monkeypatch, no_solver):
    model, runs = Accumulator(), [(R(4),) for _ in range(3)]
    edge = lower(model, runs[0])
    refuse_at(monkeypatch, *refusals)
    with pytest.warns(ArenaWarning, match="with sharing was refused: not today"):
        first, before = planned(edge, lock=path)
    assert all(map(same_bits, run_program(first, *runs), run_program(to_program(edge).buffer, *runs)))
    text = path.read_bytes()
    assert [bool(g.refused) for g in lock_from_json(text.decode())] == [True, len(refusals) > 1]
    monkeypatch.undo()
    no_solver()
    for frozen in (True, False):
        with pytest.warns(ArenaWarning, match="with sharing was refused: not today"):
            again, after = planned(edge, lock=path, frozen=frozen)
        assert again == first
        assert after.reports[0].fallbacks == before.reports[0].fallbacks
        assert after.reports[0].locked is (len(refusals) == 1)
    assert path.read_bytes() == text
    with pytest.raises(PlanningError, match="was refused: not today"):
        planned(edge, lock=path, strict=True)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("content", [b"", b"{}", b"PK\x03\x04\xff", b'{"format": "arena-plan", "version": 1}', b"[[["])
def test_a_file_that_is_something_else_is_left_alone(content, frozen, path):
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"^{path}:1: "):
        planned(lower(*sines()), lock=path, frozen=frozen)
    assert path.read_bytes() == content


class Stop(Exception):
    """The callable's own."""


def test_progress_is_told_and_logged(caplog):
    caplog.set_level(logging.INFO, "arena")
    told = []
    edge = lower(Function(two_live_results), (R(4),))
    _, planning_pass = planned(edge, progress=lambda *line: told.append((*line, threading.current_thread())))
    names = [r.graph for r in planning_pass.reports]
    assert list(dict.fromkeys(name for name, *_ in told)) == list(dict.fromkeys(names))
    assert {thread for *_, thread in told} == {threading.main_thread()}
    name, line, _ = told[-1]
    assert (name, line.peak) == ("method 0", planning_pass.reports[-1].arenas[0].peak)
    for name in names:
        assert any(m.startswith(f"{name}: ") and "s: peak " in m for m in caplog.messages)


def test_a_callable_that_raises_ends_the_export_and_nothing_else(path):
    """Nothing is written; the same pass then plans as if nothing had been."""
    edge = two_methods()
    bad = True

    def tell(graph, line):
        if bad and graph == "method 1":
            raise Stop

    threads = set(threading.enumerate())
    planning_pass = arena_planning_pass(lock=path, progress=tell, strict=True)
    with pytest.raises(Stop):
        to_program(edge, planning_pass)
    assert set(threading.enumerate()) <= threads
    assert not path.exists()
    bad = False
    program = to_program(edge, planning_pass).buffer
    other = path.with_name("other")
    assert program == planned(edge, lock=other)[0]
    assert path.read_bytes() == other.read_bytes()


def test_a_locked_program_runs(path):
    model, runs = Accumulator(), [(R(4),) for _ in range(3)]
    edge = lower(model, runs[0])
    planned(edge, lock=path)
    program, _ = planned(edge, lock=path, frozen=True)
    for ours, stock in zip(run_program(program, *runs), run_program(to_program(edge).buffer, *runs), strict=True):
        assert same_bits(ours, stock)
