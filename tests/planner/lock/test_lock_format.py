"""Lock files: what counts as the same, round trips, and files that are wrong."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.lock.lock_file import LockError
from planner.lock.lock_format import LockedArena, LockedGraph, lock_from_json, lock_to_json
from planner.program.share_rules import Share
from planner.program.sharing import Policy
from solvers.files.text import FileError
from solvers.run import Objective
from tests.planner.flows import op
from tests.planner.lock.locks import (
    ASKED,
    BANKS,
    REPRODUCIBLE,
    anywhere,
    chain,
    export,
    key,
    pinned,
    text_of,
)

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


SNIPPETS = ["", "0", "-1", "null", "true", '""', "[]", "{}", ",", "NaN", "1e999", '"\\ud800"', "é"]
SNIPPETS += ["9" * 5000, "[" * 5000]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(data=st.data())
def test_a_corrupt_file_is_one_sentence_and_never_overwritten(data, tmp_path):
    """A stretch of the text, or the value of a key, is something else."""
    text = text_of("two parts", "a chain")
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
def test_files_that_are_no_lock_files(text, complaint, tmp_path):
    path = tmp_path / "model.arena.json"
    path.write_text(text)
    with pytest.raises(FileError) as error:
        export(path, ASKED["a chain"])
    assert f"{path}{complaint}" in str(error.value)
    assert path.read_text() == text
