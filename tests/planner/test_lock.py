"""Lock files: what counts as the same, plans that are used again, and files that are wrong."""

import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner import api
from planner.api import BanksExceeded, Planner, PlanningError, Request
from planner.bank_plan import ANYWHERE
from planner.dataflow import Dataflow, Role
from planner.lock import REFUSALS, Lock, LockError, restored
from planner.lock_format import LockedArena, LockedGraph, lock_from_json, lock_to_json, request_hash
from planner.memory import ReplayError
from planner.share_rules import Share
from planner.sharing import Policy
from planner.textfiles import FileError
from solvers.banks import Bank
from solvers.buffers import ProblemError
from solvers.result import Status
from solvers.run import Objective, Options
from solvers.verify import VerificationError
from tests.planner.flows import cat, elementwise, op, tensor, two_parts

REPRODUCIBLE = Request(options=Options(reproducible=True))
BANKS = (Bank("fast", 64, 1), Bank("slow", 4096, 2, 32))


def chain(length=4, extent=8):
    """x -> v0 -> v1 ... elementwise, and all of them are joined at the end."""
    names = [f"v{k}" for k in range(length)]
    ops = [elementwise(f"f{k}", ["x" if k == 0 else names[k - 1]], n) for k, n in enumerate(names)]
    tensors = [tensor("x", extent, role=Role.INPUT), *(tensor(n, extent) for n in names), tensor("y", 2 * extent)]
    return Dataflow([*ops, cat("join", names[-2:], "y")], tensors, ["y"])


def wide():
    """A chain of which more is returned: more than the fast bank holds."""
    return replace(chain(6), outputs=("y", "v0", "v2"))


def anywhere(flow):
    return replace(flow, tensors=tuple(replace(t, arena=ANYWHERE) for t in flow.tensors))


def pinned(flow, name, mem_id):
    return replace(flow, tensors=tuple(replace(t, arena=mem_id) if t.id == name else t for t in flow.tensors))


ASKED = {
    "two parts": (two_parts(), REPRODUCIBLE),
    "a chain": (chain(), REPRODUCIBLE),
    "no sharing": (chain(), replace(REPRODUCIBLE, policy=Policy(frozenset()))),
    "two arenas": (pinned(chain(), "v1", 2), REPRODUCIBLE),
    "reserved": (chain(), replace(REPRODUCIBLE, reserved={1: 48})),
    "banks": (anywhere(wide()), replace(REPRODUCIBLE, banks=BANKS)),
    "pinned in banks": (pinned(anywhere(wide()), "v1", 2), replace(REPRODUCIBLE, banks=BANKS)),
    "nothing": (Dataflow([], []), REPRODUCIBLE),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.arena.json"


@pytest.fixture
def no_solver(monkeypatch):
    """From now on, nothing may be solved."""

    def switch_off():
        for name in ("solve", "solve_in_banks"):
            monkeypatch.setattr(api, name, lambda *a: pytest.fail("it was solved"))

    return switch_off


def accept(plan):
    """A judge."""


def refuse(plan):
    raise ReplayError("never")


def export(path, *asked, frozen=False, judge=accept, names=None):
    """One export: a graph for each of the pairs (flow, request)."""
    lock = Lock(path, frozen)
    out = []
    for k, (flow, request) in enumerate(asked):
        out.append(lock.plan(names[k] if names else f"method {k}", Planner(flow, request), judge))
    lock.close()
    return out


def places(plan):
    return {arena: dict(r.solution.offsets) for arena, r in plan.results.items()}


def facts(plan):
    results = {a: (r.peak, r.lower_bound, r.status, r.solver, r.proof) for a, r in plan.results.items()}
    return places(plan), results, plan.active, plan.decisions, plan.fallbacks, plan.status, plan.best_assignment


HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)
BYTES = st.integers(0, 2**62)


@st.composite
def arenas(draw):
    bound = draw(BYTES)
    return LockedArena(
        draw(BYTES),
        draw(st.sampled_from(["optimal", "feasible"])),
        draw(st.integers(bound, 2**62)),
        bound,
        draw(st.text()),
        draw(st.text()),
        draw(st.booleans()),
        draw(st.dictionaries(st.text(), BYTES, max_size=3)),
    )


PLANNED = st.builds(
    LockedGraph,
    st.text(),
    HASHES,
    st.lists(arenas(), max_size=3).map(tuple),
    st.lists(st.integers(0, 99)).map(tuple),
    st.booleans(),
    st.lists(st.text()).map(tuple),
)
REFUSED = st.builds(LockedGraph, st.text(), HASHES, refused=st.text(min_size=1))


@given(st.lists(PLANNED | REFUSED, max_size=4).map(tuple))
def test_reading_what_was_written_gives_the_same(graphs):
    assert lock_from_json(lock_to_json(graphs)) == graphs


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


def test_banks_take_part():
    """The cases with banks have something in each, and in the fast one only what fits."""
    for name in ("banks", "pinned in banks"):
        peaks = api.plan(*ASKED[name]).peaks
        assert all(peaks.values())
        assert peaks[1] <= 64


def key(flow=None, request=REPRODUCIBLE, **changes):
    return request_hash(Planner(flow or chain(), replace(request, **changes)))


def test_what_does_not_count():
    flow = chain()
    how = replace(REPRODUCIBLE.options, seed=7, workers=3, time_limit=99.0, reproducible=False, copy_weight=5.0)
    shuffled = replace(flow, tensors=flow.tensors[::-1])
    assert key() == key(options=how) == key(shuffled)
    renamed = tuple(replace(b, name=b.name.upper()) for b in BANKS)
    assert key(anywhere(flow), banks=BANKS) == key(anywhere(flow), banks=renamed)


def test_what_counts():
    """Each of these is another problem."""
    flow = chain()
    options = REPRODUCIBLE.options
    weighted = replace(options, objective=Objective.WEIGHTED)
    keys = [
        key(),
        key(chain(5)),
        key(chain(extent=9)),
        key(replace(flow, outputs=("y", "v0"))),
        key(pinned(flow, "v1", 2)),
        key(pinned(flow, "v1", None)),
        *(
            key(replace(flow, tensors=tuple(replace(t, **change) if t.id == "v1" else t for t in flow.tensors)))
            for change in ({"alignment": 64}, {"rigid": True}, {"itemsize": 2})
        ),
        key(policy=Policy(frozenset({Share.CONCAT}))),
        key(policy=Policy(preserve_inputs=True)),
        key(policy=Policy(min_part_alignment=32)),
        key(reserved={1: 48}),
        key(options=replace(options, objective=Objective.COPIES)),
        key(options=weighted),
        key(options=replace(weighted, copy_weight=2.0)),
        key(anywhere(flow)),
        key(anywhere(flow), banks=BANKS),
        key(anywhere(flow), banks=BANKS[::-1]),
        key(anywhere(flow), banks=(replace(BANKS[0], size=63), BANKS[1])),
        key(anywhere(replace(flow, ops=(*flow.ops, op("again", ["y"], [])))), banks=BANKS),
    ]
    assert len(set(keys)) == len(keys)


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_number_may_be_wrong(data, tmp_path):
    """A plan that is used is a right one: its places pass the judge of the problem with the ties that it names."""
    name = data.draw(st.sampled_from(["a chain", "two arenas", "pinned in banks"]))
    planner = Planner(*ASKED[name])
    if name not in TEXTS:
        export(tmp_path / name, ASKED[name])
        TEXTS[name] = (tmp_path / name).read_text()
    tree = json.loads(TEXTS[name])
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


TEXTS = {}


def good_text(tmp_path):
    if "good" not in TEXTS:
        export(tmp_path / "good", ASKED["two parts"], ASKED["a chain"])
        TEXTS["good"] = (tmp_path / "good").read_text()
    return TEXTS["good"]


SNIPPETS = ["", "0", "-1", "null", "true", '""', "[]", "{}", ",", "NaN", "1e999", '"\\ud800"', "é"]
SNIPPETS += ["9" * 5000, "[" * 5000]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(data=st.data())
def test_a_corrupt_file_is_one_sentence_and_never_overwritten(data, tmp_path):
    """A stretch of the text, or the value of a key, is something else."""
    text = good_text(tmp_path)
    if data.draw(st.booleans()):
        low = data.draw(st.integers(0, len(text)))
        high = data.draw(st.integers(low, min(len(text), low + 40)))
        wrong = text[:low] + data.draw(st.sampled_from(SNIPPETS) | st.text(max_size=3)) + text[high:]
        content = wrong.encode(errors="surrogatepass")
    else:
        content = json.dumps(_with_another_value(data, json.loads(text))).encode()
    path = tmp_path / "model.arena.json"
    path.write_bytes(content)
    for frozen in (True, False):
        try:
            export(path, ASKED["two parts"], ASKED["a chain"], frozen=frozen)
        except (FileError, LockError) as error:
            wrong = error
        else:
            continue
        assert path.read_bytes() == content
        if isinstance(wrong, FileError):
            assert str(wrong).startswith(f"{path}:")
            assert "\n" not in str(wrong)
        else:
            assert frozen


def _with_another_value(data, tree):
    """The tree with one value changed, taken out, or put under a key that is unknown."""
    here, way = tree, []
    while isinstance(here, dict | list) and here and (not way or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        way.append((here, key))
        here = here[key]
    holder, key = way[-1]
    value = data.draw(st.sampled_from([None, True, -1, 0.5, "", "x", [], [1], {}, {"a": 1}, 2**70, "\ud800"]))
    match data.draw(st.sampled_from(["change", "delete", "add"])):
        case "change":
            holder[key] = value
        case "delete":
            del holder[key]
        case "add" if isinstance(holder, dict):
            holder["unknown"] = value
    return tree


HEAD = '{"format": "arena-lock", "version": 1, '


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ":1: not JSON"),
        ('{"name": "mine"}', ":1: format is None: it must be 'arena-lock'"),
        ('{\n"format": "arena-plan", "version": 1}', ":2: format is 'arena-plan'"),
        ('{"format": "arena-lock",\n"version": 2, "graphs": []}', ":2: version is 2"),
        ('{"format": "arena-lock", "version": 1}', ":1: 'graphs' is missing"),
        (HEAD + '"graphs": [], "x": 1}', ":1: 'x' is unknown"),
        (HEAD + '"graphs": {}}', ":1: graphs is a dict"),
        (HEAD + '"graphs": [\n1]}', ":2: graphs[0]: it is a int"),
        (HEAD + '"graphs": [\n{"graph": "a"}]}', ":2: graphs[0]: 'active' is missing"),
        (
            HEAD + '"graphs": [\n{"graph": "a", "problem_sha256": "F", "refused": "why"}]}',
            ":2: graphs[0]: problem_sha256 is 'F': it must be 64 digits",
        ),
    ],
)
def test_files_that_are_no_lock_files(text, complaint, path):
    path.write_text(text)
    with pytest.raises(FileError) as error:
        export(path, ASKED["a chain"])
    assert f"{path}{complaint}" in str(error.value)
    assert path.read_text() == text


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
