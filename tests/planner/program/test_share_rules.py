"""When tensors may share: every kind of op, its conditions, and the reasons where not."""

import pytest

from planner.api import plan
from planner.program.dataflow import Dataflow, Op, OpKind, Role
from planner.program.sharing import Outcome
from tests.planner.flows import cat, found, op, outcome, tensor, two_parts


def test_an_elidable_concat_becomes_two_ties():
    sharing = found(two_parts())
    assert {(c.part, c.whole, c.at) for c in sharing.ties} == {("p", "w", 0), ("q", "w", 32)}
    assert outcome(plan(two_parts()), "c").outcome is Outcome.SHARED


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        (two_parts(tensor("p", 8, dtype="int32")), "mixed dtype"),
        (two_parts(tensor("p", 8, static=False)), "part 'p' has a dynamic shape"),
        (two_parts(whole=tensor("w", 16, static=False)), "result 'w' has a dynamic shape"),
        (two_parts(whole=tensor("w", 16, arena=2)), "is planned into arena 1, 'w' into 2"),
        (two_parts(mutate=True), "written in place"),
    ],
)
def test_a_refused_concat_has_its_reason(flow, reason):
    decision = outcome(plan(flow), "c")
    assert decision.outcome is Outcome.REFUSED
    assert decision.copied == decision.nbytes
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        (two_parts(tensor("p", 8, role=Role.CONSTANT), role=Role.CONSTANT), "is a constant"),
        (two_parts(tensor("p", 8, role=Role.STATE), role=Role.STATE), "is a mutable buffer"),
        (two_parts(tensor("p", 8, role=Role.CALLER), role=Role.CALLER), "the caller's tensor"),
        (two_parts(tensor("p", 8, arena=None)), "not memory-planned"),
    ],
)
def test_a_part_that_cannot_be_placed_is_copied(flow, reason):
    decision = outcome(plan(flow), "c")
    assert (decision.outcome, decision.placed, decision.copied) == (Outcome.PARTIAL, (1,), 32)
    assert reason in decision.reason


def test_a_rigid_part_takes_its_padding_into_the_whole():
    decision = outcome(plan(two_parts(tensor("p", 8, rigid=True, alignment=48))), "c")
    assert (decision.outcome, decision.copied) == (Outcome.PARTIAL, 32)
    assert "conflicting place" in decision.reason


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
    decision = outcome(plan(flow), "c")
    assert decision.elided == (not reason)
    assert reason in decision.reason


def cut(shape, axis, results, starts, drops=False, **source):
    """x -> t -> its slices, each read later."""
    tensors = [tensor("t", *shape, **source), *(tensor(f"s{k}", *r) for k, r in enumerate(results))]
    names = tuple(t.id for t in tensors[1:])
    slicing = Op("cut", OpKind.SLICE, ("t",), names, (), axis, starts=starts, drops_axis=drops)
    return Dataflow([op("f", [], ["t"]), slicing, op("g", names, [])], tensors)


@pytest.mark.parametrize(
    ("flow", "places", "reason"),
    [
        (cut((4, 6), 0, [(2, 6)], (1,)), {0: 24}, ""),
        (cut((4, 6), 0, [(1, 6), (3, 6)], (0, 1)), {0: 0, 1: 24}, ""),
        (cut((4, 6), 0, [(6,)], (2,), True), {0: 48}, ""),
        (cut((4, 6), 1, [(4, 2)], (1,)), {}, "not contiguous"),
        (cut((1, 6), 1, [(1, 2)], (3,)), {0: 12}, ""),
        (cut((4, 6), 1, [(4, 6)], (0,)), {0: 0}, ""),
        (cut((4, 6), 1, [(4, 2)], (1,), dim_order=(1, 0)), {}, "mixed dim_order"),
        (cut((4, 6), 0, [(2, 6)], (1,), role=Role.CONSTANT), {}, "is a constant"),
        (cut((4, 6), 0, [(2, 6)], (1,), arena=None), {}, "not memory-planned"),
        (cut((4, 6), 0, [(2, 6)], (1,), static=False), {}, "dynamic shape"),
        (cut((4, 6), 0, [(0, 6), (4, 6)], (0, 0)), {1: 0}, ""),
    ],
)
def test_slices(flow, places, reason):
    (candidate,) = found(flow).candidates
    assert {t.position: t.colocation.at for t in candidate.ties} == places
    made = plan(flow)
    assert reason in outcome(made, "cut").reason
    if places:
        assert outcome(made, "cut").outcome is Outcome.SHARED
        assert made.total == flow.by_id["t"].nbytes


def test_a_slice_keeps_only_its_own_bytes_alive():
    tensors = [tensor("t", 8), tensor("s", 2), tensor("u", 6), tensor("v", 6)]
    ops = [op("f", [], ["t"]), Op("cut", OpKind.SLICE, ("t",), ("s",), (), 0, starts=(6,))]
    made = plan(Dataflow([*ops, op("g", [], ["u"]), op("h", ["s", "u"], [])], tensors))
    assert made.total == 32


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({"shape": (2, 3)}, {"shape": (1, 2, 3)}, True),
        ({"shape": (1, 2, 3)}, {"shape": (2, 1, 3)}, True),
        ({"shape": (2, 3)}, {"shape": (2, 3), "dim_order": (1, 0)}, False),
        ({"shape": (2, 3), "dim_order": (1, 0)}, {"shape": (2, 1, 3), "dim_order": (2, 0, 1)}, True),
        ({"shape": (2, 3)}, {"shape": (2, 3), "dtype": "int32"}, False),
    ],
)
def test_reshapes(before, after, same):
    tensors = [tensor("t", *before.pop("shape"), **before), tensor("v", *after.pop("shape"), **after)]
    ops = [op("f", [], ["t"]), Op("r", OpKind.RESHAPE, ("t",), ("v",)), op("g", ["v"], [])]
    assert outcome(plan(Dataflow(ops, tensors)), "r").elided == same


def pointwise(*more_ops, reads=("t",), other=None, outputs=(), **operand):
    """t -> y, elementwise."""
    tensors = [tensor("t", 8, **operand), tensor("y", 8), *([other] if other else [])]
    f = Op("f", OpKind.OPAQUE, reads, ("y",), tolerates=reads)
    return Dataflow([op("b", [], ["t"]), *more_ops, f, op("g", ["y"], [])], tensors, outputs)


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        (pointwise(), ""),
        (pointwise(reads=("t", "t")), ""),
        (pointwise(outputs=("t",)), "still needed later"),
        (pointwise(dtype="int32"), "another dtype"),
        (pointwise(role=Role.STATE), "is a mutable buffer"),
        (pointwise(role=Role.CALLER), "the caller's tensor"),
        (pointwise(role=Role.CONSTANT), "is a constant"),
        (pointwise(arena=None), "not memory-planned"),
        (pointwise(static=False), "dynamic shape"),
        (pointwise(reads=("t", "v"), other=tensor("v", 2, 4, base="t")), "read in another way"),
    ],
)
def test_in_place(flow, reason):
    made = plan(flow)
    decision = outcome(made, "f")
    assert decision.outcome is (Outcome.REFUSED if reason else Outcome.SHARED)
    assert reason in decision.reason
    if not reason:
        assert made.total == 32


def test_only_an_elementwise_op_may_write_in_place():
    flow = Dataflow([op("b", [], ["t"]), op("f", ["t"], ["y"]), op("g", ["y"], [])], [tensor("t", 8), tensor("y", 8)])
    assert plan(flow).total == 64
