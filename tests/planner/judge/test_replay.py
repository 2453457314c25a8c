"""The second judge on hand-made programs: it passes what is right and catches each kind of damage."""

import dataclasses

import pytest

from planner.judge.memory import Ref, ReplayError
from planner.judge.replay import Move, Step, Trace, replay

N = 4  # bytes per tensor


def ref(name, place=None, nbytes=N):
    return Ref(name, name, nbytes, () if place is None else ((1, place),))


def program(places, elide=True):
    """x, unused -> a = f(x); b, spare = g(x); c = cat(a, b); y = h(c), then z = k(x): the issue's shape, and more."""
    r = {
        name: ref(name, places.get(name), 2 * N if name == "c" else N)
        for name in ["x", "unused", "a", "b", "spare", "c", "y", "z"]
    }
    steps = [
        Step("f", (r["x"],), (r["a"],)),
        Step("g", (r["x"],), (r["b"], r["spare"])),
        Step("cat", (r["a"], r["b"]), (r["c"],), moved=(Move(0, 0, 0, 0, N), Move(1, 0, 0, N, N))),
        Step("h", (r["c"],), (r["y"],)),
        Step("k", (r["x"],), (r["z"],)),
    ]
    steps = [s for s in steps if not (elide and s.name == "cat")]
    return Trace((r["x"], r["unused"]), tuple(steps), (r["y"], r["z"]))


BEFORE = program({}, elide=False)
GOOD = {"x": 0, "unused": 4, "c": 8, "a": 8, "b": 12, "spare": 4, "y": 4, "z": 16}


def test_a_right_program_passes():
    replay(BEFORE, program(GOOD))


def test_the_same_program_with_its_concat_passes():
    replay(BEFORE, program({**GOOD, "c": 20}, elide=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": 7}, "op 'g': 'x'|'c' must hold 'f'"),
        ({"b": 13}, "'c' must hold 'g.0'"),
        ({"a": 12, "b": 8}, "op 'h': 'c' must hold 'f'"),
        ({"spare": 8}, "op 'h': 'c' must hold 'f' in bytes [0, 4), but finds 'g.1'"),
        ({"spare": 12}, "'b' must hold 'g.0'|'spare'"),
        ({"unused": 0}, "the start of the run: 'x' must hold 'x'"),
        ({"y": 0}, "op 'k': 'x' must hold 'x'"),
        ({"z": 4}, "the end of the run: 'y' must hold 'h'"),
        ({"y": 8}, "op 'h': 'c' must hold 'f' in bytes [0, 4), but finds 'half of y'"),
        ({"a": 0}, "op 'f': 'x' must hold 'x'"),
    ],
)
def test_damage_is_caught(change, message):
    with pytest.raises(ReplayError) as error:
        replay(BEFORE, program({**GOOD, **change}))
    assert any(m in str(error.value) for m in message.split("|")), error.value


def test_an_op_that_does_more_than_copy_cannot_go():
    after = program(GOOD)
    with pytest.raises(ReplayError, match="'h', which is missing"):
        replay(BEFORE, dataclasses.replace(after, steps=tuple(s for s in after.steps if s.name != "h")))


def test_new_ops_other_orders_and_other_operands_are_caught():
    after = program(GOOD)
    f, g, *rest = after.steps
    for steps, message in (
        ((f, g, Step("new", (), ()), *rest), "'new' was not in the program"),
        ((g, f, *rest), "out of order"),
        ((f, dataclasses.replace(g, writes=g.writes[:1]), *rest), "no longer has the operands"),
    ):
        with pytest.raises(ReplayError, match=message):
            replay(BEFORE, dataclasses.replace(after, steps=steps))


def test_the_last_op_cannot_go():
    with pytest.raises(ReplayError, match="'k' is missing"):
        replay(BEFORE, dataclasses.replace(program(GOOD), steps=program(GOOD).steps[:-1]))


def test_a_concat_that_is_not_contiguous_cannot_go():
    steps = tuple(dataclasses.replace(s, moved=None) for s in BEFORE.steps)
    with pytest.raises(ReplayError, match="'cat', which is missing"):
        replay(dataclasses.replace(BEFORE, steps=steps), program(GOOD))


def clone(source, target):
    return Step("clone", (source,), (target,), moved=(Move(0, 0, 0, 0, N),))


def test_a_part_may_be_copied_into_its_place_and_must_not_be_forgotten():
    places = {**GOOD, "b": 20}
    slot = ref("slot", 12)
    f, g, *rest = program(places).steps
    good = (f, g, clone(ref("b", 20), slot), *rest)
    replay(BEFORE, dataclasses.replace(program(places), steps=good))
    for steps, message in (
        ((f, g, *rest), "'c' must hold 'g.0'"),
        ((f, clone(ref("b", 20), slot), g, *rest), "'c' must hold 'g.0'"),
        ((f, g, clone(ref("a", 8), slot), *rest), "'c' must hold 'g.0'"),
        ((f, g, clone(ref("b", 20), ref("slot", 14)), *rest), "must hold"),
    ):
        with pytest.raises(ReplayError, match=message):
            replay(BEFORE, dataclasses.replace(program(places), steps=steps))


def test_a_copy_onto_itself_is_refused():
    places = {**GOOD, "c": 8}
    with pytest.raises(ReplayError, match="'a' must hold 'f'"):
        replay(BEFORE, program(places, elide=False))


def sliced(places, elide):
    """t = f(x); u = t[0:2], v = t[1:3] of its three words; y = g(u), z = h(v)."""
    sizes = {"t": 3 * N, "u": 2 * N, "v": 2 * N, "y": 2 * N, "z": 2 * N}
    r = {i: ref(i, places.get(i), sizes.get(i, N)) for i in "xtuvyz"}
    steps = [
        Step("f", (r["x"],), (r["t"],)),
        Step("cut u", (r["t"],), (r["u"],), moved=(Move(0, 0, 0, 0, 2 * N),)),
        Step("cut v", (r["t"],), (r["v"],), moved=(Move(0, N, 0, 0, 2 * N),)),
        Step("g", (r["u"],), (r["y"],), elementwise=(0,)),
        Step("h", (r["v"],), (r["z"],), elementwise=(0,)),
    ]
    return Trace((r["x"],), tuple(s for s in steps if not (elide and "cut" in s.name)), (r["y"], r["z"]))


def test_slices_of_one_tensor_written_over_each_other():
    before = sliced({}, False)
    good = {"x": 12, "t": 0, "u": 0, "v": 4, "y": 12, "z": 4}
    replay(before, sliced(good, True))
    with pytest.raises(ReplayError, match="op 'h': 'v' must hold 'f'"):
        replay(before, sliced({**good, "y": 0}, True))  # in place over u, whose second word is v's first
    with pytest.raises(ReplayError, match="op 'h': 'v' must hold 'f'"):
        replay(before, sliced({**good, "v": 0, "z": 0}, True))


def in_place(reads, elementwise, y=0, t=0, sizes=None):
    """t = f(x); y = op(reads...), in place."""
    sizes = sizes or {}
    x, out = ref("x", 100), ref("y", y, sizes.get("y", N))
    written = Ref("t", "t", sizes.get("t", N), ((1, t),))
    refs = tuple(written if r == "t" else Ref("s", "t", *r) for r in reads)
    return Trace((x,), (Step("f", (x,), (written,)), Step("op", refs, (out,), elementwise=elementwise)), (out,))


def test_an_elementwise_op_may_write_exactly_onto_an_operand():
    replay(in_place(["t"], (0,)), in_place(["t"], (0,)))
    replay(in_place(["t", "t"], (0, 1)), in_place(["t", "t"], (0, 1)))


@pytest.mark.parametrize(
    "trace",
    [
        in_place(["t"], ()),
        in_place(["t"], (0,), y=2),
        in_place(["t"], (0,), sizes={"y": 2 * N}),
        in_place(["t"], (0,), sizes={"t": 2 * N}),
        in_place(["t", "t"], (0,)),
        in_place(["t", (2, ((1, 0),))], (0,)),
        in_place(["t", (2, ((1, 2),))], (0, 1)),
    ],
    ids=[
        "not elementwise",
        "shifted",
        "larger",
        "smaller",
        "read in another way",
        "a part of it",
        "another part of it",
    ],
)
def test_any_other_overlap_of_operand_and_result_is_caught(trace):
    with pytest.raises(ReplayError, match="half of y"):
        replay(trace, trace)


def state_program(place_of_new, last=True):
    """state s; new = f(s); y = g(s); s <- new in place."""
    s, new, y = ref("s", 0), ref("new", place_of_new), ref("y", 8)
    write_back = Step("copy", (new,), (), (s,))
    steps = (Step("f", (s,), (new,)), Step("g", (s,), (y,)))
    steps = (*steps, write_back) if last else (steps[0], write_back, steps[1])
    return Trace((s,), steps, (y,), (s,))


def test_state_must_hold_at_the_end():
    replay(state_program(4), state_program(4))
    with pytest.raises(ReplayError):
        replay(state_program(4), state_program(0))
    with pytest.raises(ReplayError, match="out of order"):
        replay(state_program(4), state_program(4, last=False))


def written_back(when, reader="new", read_old_after=False):
    """state s; new = f(s); old = g(s); y = h(new); s <- new, a plain copy."""
    s, new, old, y = ref("s", 0), ref("new", 4), ref("old", 8), ref("y", 12)
    f, g = Step("f", (s,), (new,)), Step("g", (s,), (old,))
    h = Step("h", (new if reader == "new" else s,), (y,))
    write = Step("copy", (new,), (s,), moved=(Move(0, 0, 0, 0, N),))
    steps = [f, g, h] if not read_old_after else [f, h, g]
    steps.insert(when, write)
    return Trace((s,), tuple(steps), (old, y), (s,))


def test_a_write_back_may_come_early_but_not_too_early():
    before = written_back(3)
    replay(before, written_back(2))
    replay(before, written_back(2, "s"))
    with pytest.raises(ReplayError, match="op 'g': 's' must hold 's'"):
        replay(before, written_back(1))
    with pytest.raises(ReplayError, match="op 'h': 's' must hold 'f'"):
        replay(before, written_back(3, "s"))
    with pytest.raises(ReplayError, match="end of the run: 's' must hold 'f'"):
        replay(before, dataclasses.replace(before, steps=before.steps[:-1]))
    with pytest.raises(ReplayError, match="must hold"):
        replay(before, written_back(0))


def test_the_result_of_a_branch_is_checked_at_every_place():
    x, y = ref("x", 0), ref("y", 24)

    def cond(places, scratch, y):
        out = Ref("r", "r", N, places)
        return Trace((x,), (Step("cond", (x,), (out,), scratch=scratch), Step("f", (out, x), (y,))), (y,))

    scratch = ((1, 8, 16),)
    replay(cond((), (), y), cond(((1, 8), (1, 12)), scratch, y))
    replay(cond((), (), y), cond(((1, 8), None), scratch, y))
    with pytest.raises(ReplayError, match="'x' must hold 'x'"):
        replay(cond((), (), y), cond(((1, 8), (1, 12)), ((1, 0, 16),), y))
    with pytest.raises(ReplayError, match="op 'f': 'r' must hold 'cond'"):
        replay(cond((), (), y), cond(((1, 8), (1, 12)), scratch, ref("y", 12)))


def test_two_results_of_a_branch_may_lie_where_the_other_branch_has_them_the_other_way_round():
    x, y, z = ref("x", 0), ref("y", 24), ref("z", 28)

    def cond(first, second, scratch=((1, 8, 16),)):
        a, b = Ref("a", "a", N, first), Ref("b", "b", N, second)
        steps = Step("cond", (x,), (a, b), scratch=scratch), Step("f", (a,), (y,)), Step("g", (b,), (z,))
        return Trace((x,), steps, (y, z))

    before = cond((), (), ())
    replay(before, cond(((1, 8), (1, 12)), ((1, 12), (1, 8))))
    with pytest.raises(ReplayError, match=r"end of op 'cond': 'a' must hold 'cond\.0'"):
        replay(before, cond(((1, 8), (1, 8)), ((1, 12), (1, 8))))


def test_bytes_that_nobody_wrote_may_be_anything():
    scratch, y = ref("scratch", 0), ref("y", 4)
    trace = Trace((), (Step("f", (scratch,), (y,)),), (y,))
    replay(trace, trace)
