"""What is written is read back; what is broken is refused with file, line and reason."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.files.by_name import (
    FileError,
    plan_file,
    plan_to_json,
    problem_from_csv,
    problem_from_json,
    problem_hash,
    problem_to_csv,
    problem_to_json,
    read_plan,
    read_problem,
    solution_of,
    write_atomically,
)
from solvers.files.json_format import plan_from_json
from solvers.problem.buffers import Buffer, Colocation, ProblemError
from solvers.problem.problem import Problem
from solvers.search import solve
from tests.problems import buffers, tied_problems


@given(problem=tied_problems(), capacity=st.none() | st.integers(0, 100), name=st.text(max_size=8))
def test_json_problems_come_back(problem, capacity, name):
    problem = Problem(problem.buffers, problem.colocations, capacity, name)
    again = problem_from_json(problem_to_json(problem))
    assert again == problem
    assert problem_hash(again) == problem_hash(problem)


@given(some=buffers(), name=st.text(min_size=1))
def test_csv_problems_come_back(some, name):
    some = [Buffer(name, 3, 0, 1), *some] if name not in {b.id for b in some} else some
    assert problem_from_csv(problem_to_csv(Problem(some))).buffers == tuple(some)


@given(problem=tied_problems())
def test_plans_come_back(problem):
    plan = plan_file(problem, solve(problem, "greedy"), {"solver": "greedy"})
    again = plan_from_json(plan_to_json(plan))
    assert again == plan
    assert solution_of(again, problem, "plan.json").offsets == plan.offsets


def test_the_hash_looks_at_what_matters():
    a, b = Buffer("a", 4, 0, 3, label="x"), Buffer("b", 8, 2, 5)
    base = problem_hash(Problem([a, b], name="one"))
    assert problem_hash(Problem([b, Buffer("a", 4, 0, 3)], name="two")) == base
    others = [
        Problem([a, b], capacity=99),
        Problem([a, Buffer("b", 8, 2, 6)]),
        Problem([a, Buffer("b", 8, 2, 5, 2)]),
        Problem([a, b], [Colocation("a", "b", 0)]),
        Problem([a, b], [Colocation("a", "b", 4)]),
        Problem([a, b], [Colocation("a", "b", 4, required=False)]),
    ]
    assert len({base, *map(problem_hash, others)}) == 1 + len(others)


def test_csv_names_and_the_inclusive_end():
    text = "buffer_id,begin,end,size,alignment,hint,gaps,offset\nx,0,2,5,4,7,,8\n\ny,1,1,3,,,,\n"
    assert problem_from_csv(text).buffers == (Buffer("x", 5, 0, 3, 4, 8), Buffer("y", 3, 1, 2))


def test_csv_cannot_hold_colocations_unless_told_to_drop_them():
    problem = Problem([Buffer("a", 4, 0, 3), Buffer("b", 8, 2, 5)], [Colocation("a", "b", 0)])
    with pytest.raises(ProblemError, match="1 colocations: CSV cannot hold them"):
        problem_to_csv(problem)
    assert problem_from_csv(problem_to_csv(problem, drop_colocations=True)).buffers == problem.buffers


HEAD = "id,lower,upper,size\n"
BROKEN_CSV = {
    "empty": ("", ":1: the file is empty"),
    "missing column": ("id,lower,size\na,0,1\n", ":1: there must be one column 'upper'"),
    "missing size": ("id,lower,upper\na,0,1\n", ":1: column 'size' is missing"),
    "unknown column": ("id,lower,upper,size,colour\n", ":1: column 'colour' is unknown"),
    "column twice": ("id,lower,upper,size,size\n", ":1: column 'size' occurs twice"),
    "short row": (HEAD + "a,0,1\n", ":2: 3 values: the header has 4"),
    "negative size": (HEAD + "a,0,1,4\nb,0,1,-4\n", ":3: buffer 'b': size is -4"),
    "end before start": (HEAD + "a,5,1,4\n", ":2: buffer 'a': end is 1: it must be after start, 5"),
    "duplicate id": (HEAD + "a,0,1,4\na,0,1,4\n", ":3: buffer id 'a' occurs twice"),
    "too large": (HEAD + f"a,0,1,{2**80}\n", ":2: buffer 'a': size is"),
    "absurdly long": (HEAD + f"a,0,1,{'9' * 5000}\n", ":2: size is"),
    "NaN": (HEAD + "a,0,1,NaN\n", ":2: size is 'NaN': it must be an integer"),
    "fraction": (HEAD + "a,0,1,1.5\n", ":2: size is '1.5'"),
    "no id": (HEAD + ",0,1,1\n", ":2: buffer id is ''"),
    "gaps": ("id,lower,upper,size,gaps\na,0,9,1,2-3\n", ":2: gaps is '2-3'"),
    "old line ends": (HEAD.strip() + "\ra,0,1,1\rb,0,1,x\r", ":3: size is 'x'"),
    "a huge field": (HEAD + "a" * 200_000 + ",0,1,1\n", ":2: not CSV: field larger"),
    "misaligned pin": ("id,lower,upper,size,alignment,offset\na,0,9,1,4,6\n", ":2: buffer 'a': offset is 6"),
}


@pytest.mark.parametrize("name", BROKEN_CSV)
def test_broken_csv_is_refused_with_its_line(name):
    text, message = BROKEN_CSV[name]
    with pytest.raises(FileError) as error:
        problem_from_csv(text, "p.csv")
    assert f"p.csv{message}" in str(error.value)


def problem_text(change) -> str:
    data = {
        "format": "arena-problem",
        "version": 1,
        "name": "x",
        "buffers": [{"id": "a", "size": 4, "start": 0, "end": 3}, {"id": "w", "size": 8, "start": 2, "end": 5}],
        "colocations": [{"part": "a", "whole": "w", "at": 4}],
    }
    change(data)
    return json.dumps(data, indent=1)


def put(where, key, value):
    def change(data):
        target = data
        for step in where:
            target = target[step]
        target[key] = value

    return change


BROKEN_JSON = {
    "another format": (put([], "format", "arena-plan"), ":2: format is 'arena-plan'"),
    "a later version": (put([], "version", 2), ":3: version is 2: only version 1"),
    "version true": (put([], "version", True), ":3: version is True"),
    "unknown key": (put([], "colour", 1), "'colour' is unknown"),
    "no list": (put([], "buffers", {"a": 1}), "buffers is a dict: it must be a list"),
    "no object": (put(["buffers"], 0, 7), "buffers[0]: it is a int"),
    "missing size": (lambda d: d["buffers"][1].pop("size"), ":12: buffers[1]: 'size' is missing"),
    "negative size": (put(["buffers", 1], "size", -8), ":12: buffers[1]: buffer 'w': size is -8"),
    "size a string": (put(["buffers", 0], "size", "4"), ":6: buffers[0]: buffer 'a': size is '4'"),
    "size a list": (put(["buffers", 0], "size", [4]), ":6: buffers[0]: buffer 'a': size is [4]"),
    "end before start": (put(["buffers", 0], "end", -1), ":6: buffers[0]: buffer 'a': end is -1"),
    "2^80": (put(["buffers", 0], "start", 2**80), ":6: buffers[0]: buffer 'a': start is"),
    "id a number": (put(["buffers", 0], "id", 3), ":6: buffers[0]: buffer id is 3"),
    "label a number": (put(["buffers", 0], "label", 3), ":6: buffers[0]: label is 3"),
    "duplicate id": (put(["buffers", 1], "id", "a"), "buffer id 'a' occurs twice"),
    "unknown buffer": (put(["colocations", 0], "whole", "z"), ":20: colocation of 'a' in 'z': the whole 'z' is no"),
    "id a list": (put(["colocations", 0], "part", ["a"]), "is no buffer id"),
    "unknown kind": (put(["colocations", 0], "kind", "near"), ":20: colocations[0]: kind is 'near'"),
    "kind a list": (put(["colocations", 0], "kind", ["same"]), ":20: colocations[0]: kind is ['same']"),
    "required a number": (put(["colocations", 0], "required", 1), ":20: colocations[0]: colocation of 'a' in 'w': re"),
    "does not fit": (put(["colocations", 0], "at", 5), ":20: colocation of 'a' in 'w': at 5 plus"),
    "capacity a string": (put([], "capacity", "9"), "capacity is '9': it must be an integer"),
    "name a number": (put([], "name", 9), ":4: name is 9"),
}


@pytest.mark.parametrize("name", BROKEN_JSON)
def test_broken_json_is_refused_with_its_line(name):
    change, message = BROKEN_JSON[name]
    with pytest.raises(FileError) as error:
        problem_from_json(problem_text(change), "p.json")
    assert str(error.value).startswith("p.json:")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: not JSON"),
        ("{\n\n nonsense", ":3: not JSON"),
        ("[1, 2]", ":1: the file holds a list"),
        ('{"format": "arena-problem", "version": NaN}', ":1: NaN is not JSON"),
        ('{"format": "arena-problem", "version": 1,\n"buffers": [],\n"buffers": []}', ":2: key 'buffers' occurs twice"),
        ("[" * 100_000, ":1: not JSON"),
        ("9" * 10_000, ":1: not JSON"),
    ],
)
def test_what_is_not_json_is_refused(text, message):
    with pytest.raises(FileError) as error:
        problem_from_json(text, "p.json")
    assert f"p.json{message}" in str(error.value)


@pytest.mark.parametrize("key", ["problem_sha256", "status", "arenas", "offsets", "solver", "wall_time"])
def test_plans_with_a_missing_or_wrong_value_are_refused(key):
    data = json.loads(plan_to_json(plan_file(p := Problem([Buffer("a", 4, 0, 3)]), solve(p), {})))
    for broken in ({k: v for k, v in data.items() if k != key}, {**data, key: None}):
        with pytest.raises(FileError, match=key):
            plan_from_json(json.dumps(broken))


@pytest.mark.parametrize("value", ["0", 1.5, True, None, [0]])
def test_plans_with_an_offset_that_is_no_integer_are_refused(value):
    data = json.loads(plan_to_json(plan_file(p := Problem([Buffer("a", 4, 0, 3)]), solve(p), {})))
    with pytest.raises(FileError, match="is no integer"):
        plan_from_json(json.dumps({**data, "offsets": {"a": value}}))


@pytest.mark.parametrize(
    "change",
    [{"arenas": [1]}, {"arenas": [None]}, {"arenas": [{"peak": "8"}]}, {"arenas": [{}]}, {"status": "bogus"}],
)
def test_plans_with_odd_arenas_or_status_are_refused(change):
    data = json.loads(plan_to_json(plan_file(p := Problem([Buffer("a", 4, 0, 3)]), solve(p), {})))
    with pytest.raises(FileError, match=next(iter(change))):
        plan_from_json(json.dumps({**data, **change}))


def test_errors_in_large_files_come_quickly():
    item = json.dumps({"id": "a", "size": 1, "start": 0, "end": 1})
    text = '{"format": "arena-problem", "version": 1, "buffers": [\n' + ",\n".join([item] * 20_000) + "]}"
    started = time.monotonic()
    with pytest.raises(FileError, match=r"p.json:20001: buffer id 'a' occurs twice"):
        problem_from_json(text, "p.json")
    assert time.monotonic() - started < 10


def test_a_plan_of_another_problem_is_refused():
    one, other = Problem([Buffer("a", 4, 0, 3)]), Problem([Buffer("a", 4, 0, 4)])
    with pytest.raises(FileError, match="belongs to another problem"):
        solution_of(plan_file(one, solve(one), {}), other, "plan.json")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"id,lower\n\xff\xfe\n")
    for name, message in (
        ("none.json", "cannot be read"),
        ("x.csv", "x.csv:2: byte 9 is not UTF-8"),
        ("x.txt", "a .csv"),
    ):
        with pytest.raises(FileError, match=message):
            read_problem(str(tmp_path / name))
    with pytest.raises(FileError, match="cannot be read"):
        read_plan(str(tmp_path))


def test_a_failed_write_leaves_everything_as_it_was(tmp_path):
    target = tmp_path / "plan.json"
    target.write_text("old")
    with pytest.raises(FileError, match="cannot be written"):
        write_atomically(str(tmp_path / "none" / "plan.json"), "new")
    with pytest.raises(FileError, match="it is a folder"):
        write_atomically(str(tmp_path), "new")
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
    assert target.read_text() == "old"
    write_atomically(str(target), "new")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
