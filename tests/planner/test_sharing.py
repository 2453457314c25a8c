"""From a dataflow to colocations and a plan, without ExecuTorch."""

from dataclasses import replace

import pytest

from planner.alignment import alignments
from planner.api import Request, plan
from planner.dataflow import Dataflow, Op, OpKind, Role, Tensor
from planner.share_rules import Share
from planner.sharing import Outcome, Policy, find_sharing
from solvers.buffers import Colocation
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


def found(flow, **policy):
    return find_sharing(flow, Policy(**policy))


def outcome(made, name):
    return next(d for d in made.decisions if d.op == name)


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


def elementwise(name, reads, write):
    return Op(name, OpKind.OPAQUE, tuple(reads), (write,), tolerates=tuple(reads))


def counter_examples():
    """The in-place rule's counter-examples: another operand shows bytes that would be written over."""
    t, y = tensor("t", 4), tensor("y", 4)
    s = tensor("s", 1)
    slice_s = Op("cut", OpKind.SLICE, ("t",), ("s",), (), 0, starts=(0,))
    yield "t - t[0:1]", Dataflow([op("b", [], ["t"]), slice_s, elementwise("f", "ts", "y")], [t, s, y], ["y"])
    a, b, c = tensor("a", 2, 4), tensor("b", 2, 4), tensor("c", 4, 4)
    join = cat("join", "ab", "c")
    ops = [op("fa", [], ["a"]), op("fb", [], ["b"]), join, elementwise("f", "ca", "z")]
    yield "cat([a, b]) + a", Dataflow(ops, [a, b, c, tensor("z", 4, 4)], ["z"])
    u, v, w = tensor("u", 3), tensor("v", 3), tensor("w", 3)
    cut_u = Op("cut", OpKind.SLICE, ("t",), ("u",), (), 0, starts=(0,))
    cut_v = Op("cut2", OpKind.SLICE, ("t",), ("v",), (), 0, starts=(1,))
    yield (
        "t[0:3] + t[1:4]",
        Dataflow([op("b", [], ["t"]), cut_u, cut_v, elementwise("f", "uv", "w")], [t, u, v, w], ["w"]),
    )


@pytest.mark.parametrize(("name", "flow"), counter_examples())
def test_in_place_and_a_view_do_not_go_together(name, flow):
    """Either may be shared, not both: the plan is right for what it shares."""
    made = plan(flow)
    assert not all(d.outcome is Outcome.SHARED for d in made.decisions)
    assert made.total <= plan(flow, NOTHING).total


NOTHING = Request(Policy(frozenset()))


def test_a_duplicate_part_and_a_conflicting_place_are_copied():
    tensors = [tensor("p", 8), tensor("q", 8), *(tensor(w, 16) for w in ("v", "w", "d"))]
    ops = [
        op("f", [], ["p"]),
        op("g", [], ["q"]),
        cat("one", ["p", "q"], "v"),
        cat("two", ["q", "p"], "w"),
        cat("dup", ["p", "p"], "d"),
    ]
    made = plan(Dataflow(ops, tensors, ["v", "w", "d"]), Request(Policy(alias_outputs=True)))
    assert made.total <= plan(Dataflow(ops, tensors, ["v", "w", "d"]), NOTHING).total
    assert len(outcome(made, "dup").placed) <= 1
    assert any("conflicting place" in d.reason for d in made.decisions)


def test_nested_and_prefix_shared_concats_are_elided_together():
    tensors = [*(tensor(i, 8) for i in "pqr"), tensor("v", 16), tensor("w", 24), tensor("n", 40)]
    ops = [
        *(op(f"f{i}", [], [i]) for i in "pqr"),
        cat("v", ["p", "q"], "v"),
        cat("w", ["p", "q", "r"], "w"),
        op("g", ["v", "w"], []),
    ]
    made = plan(Dataflow(ops, tensors[:-1]))
    assert made.elided == ("v", "w")
    assert (made.total, made.status) == (96, Status.OPTIMAL)


def test_an_op_writes_in_place_and_is_a_part_at_once():
    tensors = [tensor("a", 8), tensor("b", 8), tensor("p", 8), tensor("q", 8), tensor("w", 16)]
    ops = [op("fa", [], ["a"]), op("fb", [], ["b"]), elementwise("ga", "a", "p"), elementwise("gb", "b", "q")]
    made = plan(Dataflow([*ops, cat("c", "pq", "w"), op("h", ["w"], [])], tensors))
    assert (made.total, made.status) == (64, Status.OPTIMAL)
    assert all(d.outcome is Outcome.SHARED for d in made.decisions)


@pytest.mark.parametrize(("least", "outcome_of_c"), [(4, Outcome.SHARED), (8, Outcome.PARTIAL)])
def test_a_minimum_part_alignment_binds_parts(least, outcome_of_c):
    tensors = [tensor("p", 3), tensor("q", 5), tensor("w", 8)]
    flow = Dataflow([op("f", [], ["p"]), op("g", [], ["q"]), cat("c", ["p", "q"], "w")], tensors, ["w"])
    assert outcome(plan(flow, Request(Policy(min_part_alignment=least))), "c").outcome is outcome_of_c


def test_one_of_those_that_are_tied_keeps_its_alignment():
    """While the solver chooses, all that may become parts have the alignment of their elements."""
    tensors = [tensor(i, n, alignment=16) for i, n in (("p", 3), ("q", 5), ("w", 8), ("d", 16), ("z", 1))]
    ops = [op("f", [], ["p"]), op("g", [], ["q"]), cat("c", ["p", "q"], "w"), cat("d", ["q", "p", "q", "p"], "d")]
    made = plan(Dataflow([*ops, op("h", ["w", "d", "p", "q"], ["z"])], tensors, ["w"]))
    tied = {i for t in made.active for i in (t.part, t.whole)}
    assert all(made.place(t.id)[1] % 16 == 0 for t in tensors if t.id not in tied)
    assert any(made.place(i)[1] % 16 == 0 for i in tied)
    assert all(made.place(i)[1] % 4 == 0 for i in tied)


@pytest.mark.parametrize(("at", "needed"), [(3, 4), (4, 16)])
def test_only_a_part_at_an_odd_place_gives_up_its_alignment(at, needed):
    tensors = [tensor(i, n, alignment=16) for i, n in (("t", 8), ("s", 4), ("y", 4), ("z", 2))]
    ops = [op("f", [], ["t"]), Op("cut", OpKind.SLICE, ("t",), ("s",), (), 0, starts=(at,)), elementwise("g", "s", "y")]
    ops.append(Op("cut y", OpKind.SLICE, ("y",), ("z",), (), 0, starts=(0,)))
    flow = Dataflow(ops, tensors, ["z"])
    ties = found(flow).ties
    assert alignments(flow, ties) == {"t": 16, "s": needed, "y": needed, "z": needed}
    assert alignments(flow, ties[:1], chosen=True) == {"t": 16, "s": needed, "y": 16, "z": 16}
    assert alignments(flow, ()) == dict.fromkeys("tsyz", 16)


def test_of_wholes_that_cannot_both_be_aligned_the_larger_is():
    """What the solver chose while an alignment was relaxed must have a plan afterwards."""
    tensors = [tensor(i, n, alignment=16) for i, n in (("p", 1), ("q", 3), ("v", 4), ("w", 5))]
    ops = [op("f", [], ["p"]), op("g", [], ["q"]), cat("v", ["p", "q"], "v"), cat("w", ["q"], "w")]
    flow = Dataflow(ops, tensors, ["v"])
    ties = [Colocation("q", "v", 4), Colocation("q", "w", 0)]
    assert alignments(flow, ties, chosen=True) == {"p": 16, "q": 4, "v": 4, "w": 16}
    assert alignments(flow, ties) == {"p": 16, "q": 4, "v": 16, "w": 16}


def test_outputs_do_not_alias_unless_allowed():
    tensors = [tensor("x", 8, role=Role.INPUT), tensor("p", 8), tensor("q", 8), tensor("w", 16)]
    ops = [op("f", ["x"], ["p"]), op("g", ["x"], ["q"]), cat("c", ["p", "q"], "w")]
    flow = Dataflow(ops, tensors, ["w", "p"])
    assert outcome(plan(flow), "c").placed == (1,)
    assert "output 'w' would show bytes of output 'p'" in outcome(plan(flow), "c").reason
    assert outcome(plan(flow, Request(Policy(alias_outputs=True))), "c").placed == (0, 1)


@pytest.mark.parametrize("policy", [{}, {"alias_outputs": True}, {"alias_outputs": True, "feedback_safe": True}])
def test_an_output_shows_an_input_only_where_allowed(policy):
    tensors = [tensor("x", 8, role=Role.INPUT), tensor("s", 4)]
    flow = Dataflow([Op("cut", OpKind.SLICE, ("x",), ("s",), (), 0, starts=(2,))], tensors, ["s"])
    shown = policy == {"alias_outputs": True}
    made = plan(flow, Request(Policy(**policy)))
    assert outcome(made, "cut").elided == shown
    if not shown:
        assert "would show bytes of input 'x'" in outcome(made, "cut").reason


def test_two_slices_of_one_tensor_as_outputs_alias_where_they_overlap():
    def slices(second):
        tensors = [tensor("t", 8), tensor("a", 4), tensor("b", 4)]
        ops = [Op(f"cut {i}", OpKind.SLICE, ("t",), (i,), (), 0, starts=(s,)) for i, s in (("a", 0), ("b", second))]
        return plan(Dataflow([op("f", [], ["t"]), *ops], tensors, ["a", "b"]))

    assert slices(4).elided == ("cut a", "cut b")
    assert len(slices(3).elided) == 1


@pytest.mark.parametrize("keep", ["preserve_inputs", "feedback_safe"])
def test_inputs_can_be_kept(keep):
    tensors = [tensor("x", 8, role=Role.INPUT), tensor("a", 8), tensor("y", 8)]
    flow = Dataflow([elementwise("f", "x", "a"), elementwise("g", "a", "y")], tensors, ["y"])
    assert plan(flow).total == 32
    made = plan(flow, Request(Policy(**{keep: True})))
    assert made.total == 64
    assert "still needed later" in outcome(made, "f").reason


@pytest.mark.parametrize(("read_after", "elided"), [(False, True), (True, False)])
def test_a_slice_of_a_buffer_must_not_outlive_its_write(read_after, elided):
    tensors = [tensor("s", 8, role=Role.STATE), tensor("cut", 4), tensor("v", 8), tensor("y", 4)]
    use, write = op("use", ["cut"], ["y"]), op("write", ["v"], [], ["s"])
    last = [write, use] if read_after else [use, write]
    ops = [Op("cut", OpKind.SLICE, ("s",), ("cut",), (), 0, starts=(2,)), op("new", ["s"], ["v"]), *last]
    decision = outcome(plan(Dataflow(ops, tensors, ["y"])), "cut")
    assert decision.elided == elided
    assert elided or "after 's' is written in place" in decision.reason


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
    plain = plan(flow, NOTHING)
    shared = plan(flow)
    assert shared.total <= plain.total
    assert "short" in shared.elided


def test_no_time_still_gives_a_plan():
    made = plan(costly_flow(), Request(options=Options(time_limit=0)))
    assert made.total <= plan(costly_flow(), replace(NOTHING, options=Options(time_limit=0))).total


@pytest.mark.parametrize("share", Share)
def test_each_kind_can_be_left_out(share):
    tensors = [tensor("t", 8), tensor("p", 8), tensor("w", 16), tensor("s", 4)]
    ops = [op("b", [], ["t"]), elementwise("f", "t", "p"), cat("c", ["p", "p"], "w")]
    ops += [Op("cut", OpKind.SLICE, ("w",), ("s",), (), 0, starts=(2,)), op("g", ["s"], [])]
    request = Request(Policy(frozenset(Share) - {share}, why_not="not wanted"))
    kinds = {d.share: d for d in plan(Dataflow(ops, tensors), request).decisions}
    assert [k for k, d in kinds.items() if d.reason == "not wanted"] == [share]


def test_arenas_are_planned_apart():
    tensors = [tensor("a", 4), tensor("b", 8, arena=3)]
    made = plan(Dataflow([op("f", [], ["a", "b"])], tensors))
    assert made.peaks == {1: 16, 3: 32}
    assert made.place("b") == (3, 0)
    with pytest.raises(KeyError):
        made.place("z")


def test_reserved_bytes_stay_free():
    made = plan(two_parts(), replace(NOTHING, reserved={1: 100}))
    assert min(made.place(i)[1] for i in "xpqwy") >= 100
