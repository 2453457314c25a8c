"""From a dataflow to colocations and a plan, without ExecuTorch."""

import pytest

from planner.api import plan
from planner.dataflow import Dataflow, Op, OpKind, Role, Tensor
from planner.sharing import share_concats
from solvers.result import Status
from solvers.run import Options


def tensor(name, *shape, **more):
    n = 4
    for extent in shape:
        n *= extent
    order = more.pop("dim_order", tuple(range(len(shape))))
    return Tensor(name, n, more.pop("dtype", "float32"), 4, shape, order, **more)


def op(name, reads, writes, mutates=()):
    return Op(name, OpKind.OPAQUE, tuple(reads), tuple(writes), tuple(mutates))


def cat(name, reads, write, axis=0):
    return Op(name, OpKind.CONCAT, tuple(reads), (write,), (), axis)


def two_parts(part=None, whole=None, role=Role.VALUE, mutate=False):
    """x -> p, q -> w = cat(p, q) -> y, with the part p or the whole w changed."""
    p, w = part or tensor("p", 8), whole or tensor("w", 16)
    ops = [op("f", ["x"], ["p"]), op("g", ["x"], ["q"]), cat("c", ["p", "q"], "w"), op("h", ["w"], ["y"])]
    if role is not Role.VALUE:
        ops = ops[1:]
    if mutate:
        ops.append(op("m", [], [], ["w"]))
    tensors = [tensor("x", 8, role=Role.INPUT), p, tensor("q", 8), w, tensor("y", 16)]
    return Dataflow(ops, tensors, ["y"])


def test_lifetimes_are_half_open_and_start_before_the_first_op():
    flow = two_parts()
    assert flow.lifetimes == {"x": (-1, 2), "p": (0, 3), "q": (1, 3), "w": (2, 4), "y": (3, 5)}


def test_unused_inputs_and_outputs_and_state_live():
    tensors = [tensor("i", 1, role=Role.INPUT), tensor("s", 1, role=Role.STATE), tensor("a", 1), tensor("b", 1)]
    flow = Dataflow([op("f", [], ["a", "b"]), op("g", ["a"], [])], tensors)
    assert flow.lifetimes == {"i": (-1, 0), "s": (-1, 3), "a": (0, 2), "b": (0, 1)}


def test_a_dataflow_names_only_its_tensors():
    with pytest.raises(ValueError, match="'z' is read"):
        Dataflow([op("f", ["z"], [])], [])
    with pytest.raises(ValueError, match="unique"):
        Dataflow([], [tensor("a", 1), tensor("a", 1)])


def test_an_elidable_concat_becomes_two_ties():
    sharing = share_concats(two_parts())
    assert sharing.elided == ("c",)
    assert {(c.part, c.whole, c.at) for c in sharing.colocations} == {("p", "w", 0), ("q", "w", 32)}


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        (two_parts(tensor("p", 8, role=Role.CONSTANT), role=Role.CONSTANT), "is a constant"),
        (two_parts(tensor("p", 8, role=Role.STATE), role=Role.STATE), "is a mutable buffer"),
        (two_parts(tensor("p", 8, dtype="int32")), "mixed dtype"),
        (two_parts(tensor("p", 8, static=False)), "part 'p' has a dynamic shape"),
        (two_parts(whole=tensor("w", 16, static=False)), "result 'w' has a dynamic shape"),
        (two_parts(tensor("p", 8, arena=None)), "not memory-planned"),
        (two_parts(whole=tensor("w", 16, arena=2)), "planned into arena 1"),
        (two_parts(mutate=True), "written in place"),
        (two_parts(tensor("p", 8, rigid=True, alignment=48)), "conflicting place"),
    ],
)
def test_a_refused_concat_has_its_reason(flow, reason):
    (decision,) = share_concats(flow).decisions
    assert not decision.elided
    assert reason in decision.reason


def matrix_cat(shape, out, axis, order=(0, 1), other=None):
    tensors = [tensor("p", *shape, dim_order=order), tensor("q", *shape, dim_order=other or order)]
    ops = [op("f", [], ["p"]), op("g", [], ["q"]), cat("c", ["p", "q"], "w", axis)]
    return Dataflow(ops, [*tensors, tensor("w", *out, dim_order=order)], ["w"])


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        (matrix_cat((2, 3), (4, 3), 0), ""),
        (matrix_cat((2, 3), (2, 6), 1), "not contiguous"),
        (matrix_cat((1, 3), (1, 6), 1), ""),
        (matrix_cat((2, 3), (2, 6), 1, (1, 0)), ""),
        (matrix_cat((2, 3), (4, 3), 0, (1, 0)), "not contiguous"),
        (matrix_cat((2, 3), (4, 3), 0, (0, 1), (1, 0)), "mixed dim_order"),
    ],
)
def test_contiguity_is_judged_in_memory_order(flow, reason):
    (decision,) = share_concats(flow).decisions
    assert decision.elided == (not reason)
    assert reason in decision.reason


def test_a_duplicate_part_and_a_conflicting_place_are_refused():
    tensors = [tensor("p", 8), tensor("q", 8), *(tensor(w, 16) for w in ("v", "w", "d"))]
    ops = [
        op("f", [], ["p"]),
        op("g", [], ["q"]),
        cat("one", ["p", "q"], "v"),
        cat("two", ["q", "p"], "w"),
        cat("dup", ["p", "p"], "d"),
    ]
    reasons = {d.op: d.reason for d in share_concats(Dataflow(ops, tensors, ["v", "w", "d"])).decisions}
    assert reasons["one"] == ""
    assert "conflicting place" in reasons["two"]
    assert "duplicate" in reasons["dup"]


def test_nested_and_prefix_shared_concats_are_elided_together():
    tensors = [*(tensor(i, 8) for i in "pqr"), tensor("v", 16), tensor("w", 24), tensor("n", 40)]
    ops = [
        *(op(f"f{i}", [], [i]) for i in "pqr"),
        cat("v", ["p", "q"], "v"),
        cat("w", ["p", "q", "r"], "w"),
        op("g", ["v", "w"], []),
    ]
    made = plan(Dataflow(ops, tensors[:-1]))
    assert made.sharing.elided == ("v", "w")
    assert (made.total, made.status) == (96, Status.OPTIMAL)


def test_a_minimum_part_alignment_binds_parts():
    tensors = [tensor("p", 3), tensor("q", 5), tensor("w", 8)]
    flow = Dataflow([op("f", [], ["p"]), op("g", [], ["q"]), cat("c", ["p", "q"], "w")], tensors, ["w"])
    assert share_concats(flow, (), 4).elided == ("c",)
    assert "conflicting place" in share_concats(flow, (), 8).decisions[0].reason


def costly_flow():
    """Eliding ``long`` would hold its early part apart while much else is live; eliding ``short`` is free."""
    tensors = [tensor("early", 100), tensor("late", 1), tensor("both", 101)]
    tensors += [tensor("a", 4), tensor("b", 4), tensor("ab", 8)]
    ops = [op("f", [], ["early"])]
    for k in range(3):
        tensors += [tensor(f"t{k}", 100 + k)]
        ops.append(op(f"g{k}", [f"t{k - 1}"] if k else ["early"], [f"t{k}"]))
    ops += [op("l", ["t2"], ["late"]), cat("long", ["early", "late"], "both"), op("end", ["both"], [])]
    ops += [op("fa", [], ["a"]), op("fb", [], ["b"]), cat("short", ["a", "b"], "ab"), op("fin", ["ab"], [])]
    return Dataflow(ops, tensors)


def test_sharing_never_costs_memory():
    flow = costly_flow()
    plain = plan(flow, elide_concats=False)
    shared = plan(flow)
    assert shared.total <= plain.total
    assert "short" in shared.sharing.elided


def test_no_time_still_gives_a_plan():
    made = plan(costly_flow(), options=Options(time_limit=0))
    assert made.total <= plan(costly_flow(), elide_concats=False, options=Options(time_limit=0)).total


def test_arenas_are_planned_apart():
    tensors = [tensor("a", 4), tensor("b", 8, arena=3)]
    made = plan(Dataflow([op("f", [], ["a", "b"])], tensors))
    assert made.peaks == {1: 16, 3: 32}
    assert made.place("b") == (3, 0)
    with pytest.raises(KeyError):
        made.place("z")


def test_reserved_bytes_stay_free():
    made = plan(two_parts(), reserved={1: 100}, elide_concats=False)
    assert min(made.place(i)[1] for i in "xpqwy") >= 100
