"""What is shared when it is the solver's choice: the policy, alignments, arenas never larger than without."""

from dataclasses import replace

import pytest

from planner.api import Request, plan
from planner.program.alignment import alignments
from planner.program.dataflow import Dataflow, Op, OpKind, Role
from planner.program.share_rules import Share
from planner.program.sharing import Outcome, Policy
from solvers.problem.buffers import Colocation
from solvers.problem.result import Status
from solvers.run import Options
from tests.planner.flows import cat, elementwise, found, op, outcome, tensor, two_parts

NOTHING = Request(Policy(frozenset()))


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
