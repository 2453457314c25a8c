"""Plans that are used again, those that are refused, and when the file is written."""

import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import api
from planner.api import REFUSALS, BanksExceeded, Planner, PlanningError
from planner.judge.memory import ReplayError
from planner.lock.lock_file import Lock, LockError, restored
from planner.lock.lock_format import lock_from_json, lock_to_json
from planner.program.sharing import Policy
from solvers.banks.bank import Bank
from solvers.files.text import FileError
from solvers.problem.buffers import ProblemError
from solvers.problem.result import Status
from solvers.verifier import VerificationError
from tests.planner.flows import two_parts
from tests.planner.lock.locks import (
    ASKED,
    REPRODUCIBLE,
    accept,
    anywhere,
    chain,
    export,
    key,
    refuse,
    text_of,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.arena.json"


def places(plan):
    return {arena: dict(r.solution.offsets) for arena, r in plan.results.items()}


def facts(plan):
    results = {a: (r.peak, r.lower_bound, r.status, r.solver, r.proof) for a, r in plan.results.items()}
    return places(plan), results, plan.active, plan.decisions, plan.fallbacks, plan.status, plan.best_assignment


@pytest.mark.parametrize("name", ASKED)
def test_a_plan_is_used_again_without_solving(name, path, tmp_path, no_solver):
    first, fresh = export(path, ASKED[name]), export(tmp_path / "other", ASKED[name])
    text, written = path.read_bytes(), os.stat(path)
    assert (tmp_path / "other").read_bytes() == text
    no_solver()
    for frozen in (False, True):
        again = export(path, ASKED[name], frozen=frozen)
        assert facts(again[0][0]) == facts(first[0][0]) == facts(fresh[0][0])
        assert (first[0][1], again[0][1]) == (False, True)
    after = os.stat(path)
    assert (path.read_bytes(), after.st_mtime_ns, after.st_ino) == (text, written.st_mtime_ns, written.st_ino)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_writes_the_same_file(seed, path, tmp_path):
    """Another order of sets, as on another machine."""
    export(path, *ASKED.values())
    code = "import sys; from tests.planner.lock.locks import ASKED, export; export(sys.argv[1], *ASKED.values())"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "other")], env=environment, cwd=root, check=True)
    assert (tmp_path / "other").read_bytes() == path.read_bytes()


def test_banks_take_part():
    """The cases with banks have something in each, and in the fast one only what fits."""
    for name in ("banks", "pinned in banks"):
        peaks = api.plan(*ASKED[name]).peaks
        assert all(peaks.values())
        assert peaks[1] <= 64


def test_another_problem_is_planned_anew_and_the_log_says_so(path, caplog):
    asked = [ASKED["two parts"], ASKED["a chain"]]
    export(path, *asked)
    assert not caplog.records
    (_, kept), (_, anew) = export(path, asked[0], (chain(5), REPRODUCIBLE))
    assert (kept, anew) == (True, False)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message.startswith("method 1: its problem changed")
    assert key() in record.message
    assert key(chain(5)) in record.message
    assert [locked for _, locked in export(path, asked[0], (chain(5), REPRODUCIBLE), frozen=True)] == [True, True]


def test_a_graph_that_is_new_and_one_that_is_no_more(path, caplog):
    export(path, ASKED["two parts"])
    alone = path.read_bytes()
    export(path, ASKED["two parts"], ASKED["a chain"])
    assert "method 1: it is not in the lock file" in caplog.messages[-1]
    assert len(lock_from_json(path.read_text())) == 2
    export(path, ASKED["two parts"])
    assert path.read_bytes() == alone


def test_other_names_and_another_order_change_the_file_only(path, no_solver):
    first = export(path, ASKED["two parts"], ASKED["a chain"])
    no_solver()
    again = export(path, ASKED["a chain"], ASKED["two parts"])
    assert [facts(plan) for plan, _ in again] == [facts(plan) for plan, _ in first[::-1]]
    assert [g.graph for g in lock_from_json(path.read_text())] == ["method 0", "method 1"]


def test_two_graphs_that_ask_the_same_keep_their_own_plans(path, no_solver):
    """Their names may be the same as well: branches."""
    asked, names = [(two_parts(), replace(REPRODUCIBLE, policy=Policy(frozenset())))] * 3, ["branch"] * 3
    export(path, *asked, names=names)
    graphs = list(lock_from_json(path.read_text()))
    moved = {"mem_id": 1, "peak": graphs[1].arenas[0].peak + 64}
    offsets = {i: at + 64 for i, at in graphs[1].arenas[0].offsets.items()}
    graphs[1] = replace(graphs[1], arenas=(replace(graphs[1].arenas[0], offsets=offsets, **moved),))
    path.write_text(lock_to_json(tuple(graphs)))
    no_solver()
    plans = [plan for plan, _ in export(path, *asked, names=names)]
    assert places(plans[0]) == places(plans[2]) == {1: dict(graphs[0].arenas[0].offsets)}
    assert places(plans[1]) == {1: offsets}


def test_frozen_without_a_file(path):
    with pytest.raises(LockError, match=r"^method 0: there is no lock file") as error:
        export(path, ASKED["a chain"], frozen=True)
    assert key() in str(error.value)
    assert "Remedy: export once without frozen, and commit the file" in str(error.value)
    assert not path.exists()


def test_frozen_with_another_problem(path, no_solver):
    export(path, ASKED["a chain"])
    text = path.read_bytes()
    no_solver()
    with pytest.raises(LockError, match=r"^method 0: its problem changed") as error:
        export(path, (chain(5), REPRODUCIBLE), frozen=True)
    assert key() in str(error.value)
    assert key(chain(5)) in str(error.value)
    assert "Remedy" in str(error.value)
    with pytest.raises(LockError, match=r"^method 1: it is not in the lock file"):
        export(path, ASKED["a chain"], (chain(5), REPRODUCIBLE), frozen=True)
    assert path.read_bytes() == text


def test_a_plan_that_a_judge_refuses_is_made_anew(path, caplog):
    export(path, ASKED["a chain"])
    text = path.read_bytes()
    verdicts = iter([refuse, accept])
    (_, locked), *_ = export(path, ASKED["a chain"], judge=lambda plan: next(verdicts)(plan))
    assert not locked
    assert "its plan in the lock file" in caplog.messages[-1]
    assert "is refused: never" in caplog.messages[-1]
    assert path.read_bytes() == text
    with pytest.raises(LockError, match="is refused: never"):
        export(path, ASKED["a chain"], frozen=True, judge=refuse)


def test_a_refusal_of_the_first_export_is_kept(path, no_solver):
    """What the pass falls back to then is in the file, and the way there is the same."""
    less = (chain(), replace(REPRODUCIBLE, policy=Policy(frozenset())))

    def both(frozen, judge):
        lock = Lock(path, frozen)
        with pytest.raises(PlanningError if judge is accept else ReplayError, match=r"^never$"):
            lock.plan("method 0", Planner(*ASKED["a chain"]), judge)
        plan, _ = lock.plan("method 0", Planner(*less), accept)
        lock.close()
        return facts(plan)

    first = both(False, refuse)
    text = path.read_bytes()
    assert [g.refused for g in lock_from_json(text.decode())] == ["never", ""]
    no_solver()
    assert both(True, accept) == both(False, accept) == first
    assert path.read_bytes() == text


def test_banks_that_are_too_small_are_no_refusal(path):
    request = replace(REPRODUCIBLE, banks=(Bank("only", 16, 1),))
    lock = Lock(path)
    with pytest.raises(BanksExceeded):
        lock.plan("method 0", Planner(anywhere(chain()), request), accept)
    lock.close()
    assert lock_from_json(path.read_text()) == () if path.exists() else True


def test_a_feasible_plan_is_used_again(path, no_solver):
    export(path, ASKED["a chain"])
    data = json.loads(path.read_text())
    data["graphs"][0]["arenas"][0] |= {"status": "feasible", "lower_bound": 1}
    path.write_text(json.dumps(data))
    no_solver()
    (plan, locked), *_ = export(path, ASKED["a chain"])
    assert (plan.status, locked, plan.results[1].gap > 0) == (Status.FEASIBLE, True, True)


TAMPERINGS = {
    "an overlap": lambda g: g["arenas"][0]["offsets"].update(dict.fromkeys(g["arenas"][0]["offsets"], 0)),
    "an odd place": lambda g: g["arenas"][0]["offsets"].update(y=g["arenas"][0]["offsets"]["y"] + 1),
    "a lost tensor": lambda g: g["arenas"][0]["offsets"].pop("v0"),
    "a strange tensor": lambda g: g["arenas"][0]["offsets"].update(strange=0),
    "no ties": lambda g: g["active"].clear(),
    "a lost tie": lambda g: g["active"].pop(),
    "a tie that is none": lambda g: g["active"].append(99),
    "a peak": lambda g: g["arenas"][0].update(peak=g["arenas"][0]["peak"] + 1),
    "an arena": lambda g: g["arenas"][0].update(mem_id=7),
    "an arena twice": lambda g: g["arenas"].append(g["arenas"][0]),
    "no arena": lambda g: g["arenas"].clear(),
}


@pytest.mark.parametrize("name", ["a chain", "banks"])
@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_plan_that_was_tampered_with_is_refused(name, tampering, path, caplog):
    (first, _), *_ = export(path, ASKED[name])
    text = path.read_bytes()
    data = json.loads(text)
    where = max(data["graphs"][0]["arenas"], key=lambda a: "y" in a["offsets"])
    data["graphs"][0]["arenas"].sort(key=lambda a: a is not where)
    if "v0" not in where["offsets"] and tampering == "a lost tensor":
        where["offsets"].pop("y")
    else:
        TAMPERINGS[tampering](data["graphs"][0])
    wrong = json.dumps(data)
    path.write_text(wrong)
    with pytest.raises(LockError, match="is refused"):
        export(path, ASKED[name], frozen=True)
    assert path.read_text() == wrong
    (plan, locked), *_ = export(path, ASKED[name])
    assert not locked
    assert facts(plan) == facts(first)
    assert "is refused" in caplog.messages[-1]
    assert path.read_bytes() == text


def test_a_tensor_is_not_moved_out_of_its_bank(path):
    """Pinned to one, or tied to what is in the other, or too large for it."""
    flow, request = ASKED["pinned in banks"]
    export(path, (flow, request))
    data = json.loads(path.read_text())
    fast, slow = sorted(data["graphs"][0]["arenas"], key=lambda a: a["mem_id"])
    for source, target in ((slow, fast), (fast, slow)):
        for i in source["offsets"]:
            moved = json.loads(json.dumps(data))
            there = {a["mem_id"]: a for a in moved["graphs"][0]["arenas"]}
            del there[source["mem_id"]]["offsets"][i]
            there[target["mem_id"]]["offsets"][i] = 4096
            (graph,) = lock_from_json(json.dumps(moved))
            with pytest.raises((ProblemError, VerificationError)):
                restored(Planner(flow, request), graph)


@settings(deadline=None)
@given(data=st.data())
def test_any_number_may_be_wrong(data):
    """A plan that is used is a right one: its places pass the judge of the problem with the ties that it names."""
    name = data.draw(st.sampled_from(["a chain", "two arenas", "pinned in banks"]))
    planner = Planner(*ASKED[name])
    tree = json.loads(text_of(name))
    (graph,) = tree["graphs"]
    arena = data.draw(st.sampled_from(graph["arenas"]))
    if data.draw(st.booleans()):
        arena["offsets"][data.draw(st.sampled_from(sorted(arena["offsets"])))] = data.draw(st.integers(0, 200))
    graph["active"] = data.draw(st.just(graph["active"]) | st.lists(st.integers(0, 9)))
    try:
        plan = restored(planner, lock_from_json(json.dumps(tree))[0])
    except REFUSALS:
        return
    on = {planner.sharing.ties[k] for k in graph["active"]}
    assert plan.active == on
    for c in on:
        (whole_in, whole), (part_in, part) = plan.place(c.whole), plan.place(c.part)
        assert (part_in, part) == (whole_in, whole + c.at)
    assert set().union(*(r.solution.offsets for r in plan.results.values())) == {
        b.id for p in planner.problems(()).values() for b in p.buffers
    }


def test_a_folder_bytes_that_are_no_text_and_paths_that_are_none(tmp_path, no_solver):
    no_solver()
    (tmp_path / "bytes").write_bytes(b"{\n\xff}")
    for name, complaint in ((".", "cannot be read"), ("bytes", ":2: byte 2 is not UTF-8"), ("no/l", "no such folder")):
        with pytest.raises(FileError, match=complaint):
            export(tmp_path / name, ASKED["a chain"])
    for wrong in ("", "-"):
        with pytest.raises(ValueError, match="lock is"):
            Lock(wrong)


def test_a_file_that_someone_else_writes_in_the_meantime_is_left_alone(path):
    """Two passes with one file, for instance."""
    one, other = Lock(path), Lock(str(path))
    one.plan("method 0", Planner(*ASKED["a chain"]), accept)
    other.plan("method 0", Planner(*ASKED["two parts"]), accept)
    one.close()
    text = path.read_bytes()
    with pytest.raises(LockError, match="needs a lock file of its own"):
        other.close()
    assert path.read_bytes() == text


def test_what_is_forgotten_is_not_written(path):
    lock = Lock(path)
    lock.close()
    lock.plan("method 0", Planner(*ASKED["a chain"]), accept)
    lock.forget()
    lock.close()
    assert not path.exists()
    lock.plan("method 0", Planner(*ASKED["two parts"]), accept)
    lock.close()
    other = Path(f"{path}.other")
    export(other, ASKED["two parts"])
    assert path.read_bytes() == other.read_bytes()
