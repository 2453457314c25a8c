"""The second judge on hand-made programs: it passes what is right and catches each kind of damage."""

import dataclasses

import pytest

from planner.replay import Ref, ReplayError, Step, Trace, replay

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
        Step("cat", (r["a"], r["b"]), (r["c"],), moved=((0, N), (N, N))),
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
    with pytest.raises(ReplayError, match="'h' is missing"):
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


def test_a_concat_that_is_not_contiguous_cannot_go():
    steps = tuple(dataclasses.replace(s, moved=None) for s in BEFORE.steps)
    with pytest.raises(ReplayError, match="'cat' is missing"):
        replay(dataclasses.replace(BEFORE, steps=steps), program(GOOD))


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


def test_the_result_of_a_branch_is_checked_at_every_place():
    x, y = ref("x", 0), ref("y", 24)

    def cond(places, scratch, y):
        out = Ref("r", "r", N, places)
        return Trace((x,), (Step("cond", (x,), (out,), scratch=scratch), Step("f", (out, x), (y,))), (y,))

    scratch = ((1, 8, 16),)
    replay(cond((), (), y), cond(((1, 8), (1, 12)), scratch, y))
    with pytest.raises(ReplayError, match="'x' must hold 'x'"):
        replay(cond((), (), y), cond(((1, 8), (1, 12)), ((1, 0, 16),), y))
    with pytest.raises(ReplayError, match="op 'f': 'r' must hold 'cond'"):
        replay(cond((), (), y), cond(((1, 8), (1, 12)), scratch, ref("y", 12)))


def test_bytes_that_nobody_wrote_may_be_anything():
    scratch, y = ref("scratch", 0), ref("y", 4)
    trace = Trace((), (Step("f", (scratch,), (y,)),), (y,))
    replay(trace, trace)
