"""Every overload that may write in place does so on the runtime, and gives the bits that it gives apart."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.schema import IntList, Tensor
from executorch.runtime import Runtime
from torch.fx import Graph

from planner.executorch.compare import lower, same_bits, to_program
from planner.executorch.in_place import is_pointwise, target_may_write_in_place, tolerant_operands
from planner.program import kernels
from planner.program.kernels import ALLOWED, DENIED
from tests.planner.executorch.forced_alias import (
    IMAGE,
    SHAPES,
    Call,
    Loaded,
    anything,
    broadcasts,
    call,
    choice,
    divisor,
    exponent,
    inputs_of,
    large,
    layouts,
    operands,
    overload,
    program,
    shift,
    unit,
    whole_numbers,
)
from tests.planner.executorch.models import Function

aten = torch.ops.aten
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.int32, torch.int8, torch.uint8, torch.int16, torch.int64)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)
FEW = (torch.float32, torch.float16, torch.int32, torch.bool)  # for an overload's second setting and on
COMPLEX = (torch.complex64, torch.complex128)
DTYPES_OF = {"aten::_conj_physical.out": COMPLEX}
REFUSED = {"aten::logit.out": (torch.float16, torch.bfloat16)}  # by the kernel, whatever the place


def each(names: str, *settings: dict[str, Any]) -> dict[str, tuple[dict[str, Any], ...]]:
    return {f"aten::{name}": settings or ({},) for name in names.split()}


# How each overload is called: settings of its arguments that are no tensors, and for tensors what makes their values
# if `anything` will not do.
RECIPES = {
    **each("abs.out asinh.out atan.out ceil.out cos.out cosh.out erf.out exp.out expm1.out floor.out isinf.out"),
    **each("isnan.out neg.out reciprocal.out relu.out round.out sigmoid.out sign.out sin.out sinh.out tan.out"),
    **each("tanh.out trunc.out logical_not.out bitwise_not.out"),
    **each("acos.out asin.out atanh.out log.out log10.out log1p.out log2.out sqrt.out rsqrt.out", {}, {"self": unit}),
    **each("acosh.out", {"self": whole_numbers(1, 9)}),
    **each("_conj_physical.out"),
    **each("add.out sub.out", {"alpha": 1}, {"alpha": 2}),
    **each("add.Scalar_out sub.Scalar_out rsub.Scalar_out", {"other": 2, "alpha": 3}, {"other": 0.5, "alpha": 1}),
    **each("mul.out maximum.out minimum.out atan2.out logical_and.out logical_or.out logical_xor.out"),
    **each("bitwise_and.Tensor_out bitwise_or.Tensor_out bitwise_xor.Tensor_out"),
    **each("eq.Tensor_out ge.Tensor_out gt.Tensor_out le.Tensor_out lt.Tensor_out ne.Tensor_out"),
    **each("bitwise_and.Scalar_out bitwise_or.Scalar_out bitwise_xor.Scalar_out", {"other": 3}, {"other": True}),
    **each("bitwise_left_shift.Tensor_out bitwise_right_shift.Tensor_out", {"other": shift}),
    **each("bitwise_left_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_Scalar_out", {"other": 2}),
    **each("div.out fmod.Tensor_out remainder.Tensor_out", {"other": divisor}),
    **each("div.out_mode", *({"other": divisor, "rounding_mode": mode} for mode in (None, "floor", "trunc"))),
    **each("div.Scalar_mode_out", *({"other": 2, "rounding_mode": mode} for mode in (None, "floor", "trunc"))),
    **each("div.Scalar_out mul.Scalar_out fmod.Scalar_out remainder.Scalar_out", {"other": 2}, {"other": 2.5}),
    **each("eq.Scalar_out ge.Scalar_out gt.Scalar_out le.Scalar_out lt.Scalar_out ne.Scalar_out", {"other": 1}),
    **each("clamp.out", {"min": 1, "max": 3}, {"min": None, "max": 2}, {"min": -0.5, "max": None}),
    **each("clamp.Tensor_out", {}, {"min": None}, {"max": None}),
    **each("elu.out", {}, {"alpha": 0.5, "scale": 2.0, "input_scale": 3.0}),
    **each("gelu.out", {"approximate": "none"}, {"approximate": "tanh"}),
    **each("hardtanh.out", {"min_val": -1, "max_val": 1}),
    **each("leaky_relu.out", {"negative_slope": 0.1}),
    **each("logit.out", {"self": unit, "eps": None}, {"self": unit, "eps": 0.1}),
    **each("masked_fill.Scalar_out", {"mask": choice, "value": 1}),
    **each("pow.Scalar_out", {"self": 2, "exponent": exponent}),
    **each("pow.Tensor_Scalar_out", {"exponent": 2}, {"exponent": 0.5}),
    **each("pow.Tensor_Tensor_out", {"exponent": exponent}),
    **each("where.self_out", {"condition": choice}),
}


MIXED = [
    (torch.float32, torch.int32),
    (torch.float32, torch.float16),
    (torch.float16, torch.int8),
    (torch.int64, torch.int32),
    (torch.int32, torch.bool),
    (torch.bool, torch.float32),
]
MIXED = [*MIXED, *(pair[::-1] for pair in MIXED)]


def tensor_arguments(op: torch._ops.OpOverload) -> list[int]:
    return [i for i, a in enumerate(inputs_of(op)) if "Tensor" in str(a.type)]


def calls_of(op: torch._ops.OpOverload, setting: dict[str, Any], dtypes: tuple[torch.dtype, ...]) -> list[Call]:
    """Calls of an overload with one setting and one dtype for each operand; none where eager takes no such operands."""
    arguments = inputs_of(op)
    given = [i for i in tensor_arguments(op) if setting.get(arguments[i].name, anything) is not None]
    makers = [setting.get(arguments[i].name, anything) for i in given]
    if len(given) != len(dtypes):
        return []
    shapes: Any = layouts(len(given)) if len(set(dtypes)) == 1 else [[(33,)] * len(given), *broadcasts(len(given))]
    if set(dtypes) == {torch.float32}:
        shapes = itertools.chain(shapes, large(len(given)))
    found = []
    for some in shapes:
        tensors = operands(makers, dtypes, some)
        if tensors is None:
            continue
        values = [setting.get(a.name, a.default_value if a.has_default_value() else None) for a in arguments]
        for i, t in zip(given, tensors, strict=True):
            values[i] = t
        try:
            found.append(call(op, *values))
        except RuntimeError:
            return []
    return found


def forced(c: Call, position: int) -> bool:
    """May the result lie on the operand: is that of its dtype, shape and order?"""
    t, w = c.arguments[position], c.wanted
    return isinstance(t, torch.Tensor) and (t.dtype, t.shape, t.stride()) == (w.dtype, w.shape, w.stride())


def calls_on(name: str, position: int) -> dict[str, list[Call]]:
    """Per setting and dtypes, the calls of an overload whose result may lie on the operand."""
    op = overload(name)
    found = {}
    for number, setting in enumerate(RECIPES[name]):
        count = sum(setting.get(inputs_of(op)[i].name, anything) is not None for i in tensor_arguments(op))
        dtypes_here = DTYPES_OF.get(name, DTYPES if number == 0 else FEW)
        uniform = [(d,) * count for d in dtypes_here if d not in REFUSED.get(name, ())]
        for dtypes in [*uniform, *(MIXED if count == 2 and number == 0 else [])]:
            calls = [c for c in calls_of(op, setting, dtypes) if forced(c, position)]
            if calls:
                found[f"setting {number} {dtypes}"] = calls
    return found


def near(got: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    """Are the results, all of one dtype, within its tolerance?"""
    if not wanted:
        return True
    loose = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(wanted[0].dtype, 1e-5)
    wide = torch.complex128 if wanted[0].is_complex() else torch.float64
    first, second = (torch.cat([t.flatten() for t in some]).to(wide) for some in (got, wanted))
    return torch.allclose(first, second, rtol=loose, atol=loose, equal_nan=True)


def has_broadcast(c: Call) -> bool:
    return any(t.shape != c.wanted.shape for t in c.tensors)


# Where the wheel's kernels are wrong wherever the result lies: alpha multiplies a first operand of one element in place
# of the second, bools compared by broadcast are swapped, the remainder of integers has the dividend's sign.
WRONG_AT_ANY_PLACE: dict[str, Callable[[Call], bool]] = {
    "aten::add.out": lambda c: has_broadcast(c) and c.arguments[0].numel() == 1 and c.arguments[2] != 1,
    "aten::le.Tensor_out": has_broadcast,
    "aten::remainder.Scalar_out": lambda c: not c.wanted.is_floating_point(),
    "aten::remainder.Tensor_out": lambda c: not c.wanted.is_floating_point(),
}

CASES = [(name, i) for name in sorted(ALLOWED) for i in tensor_arguments(overload(name))]


@pytest.fixture(scope="module", autouse=True)
def _one_thread_for_eager():
    """Thousands of tiny eager ops: on a busy machine threads that wait for each other take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("name", "position"), CASES)
def test_the_result_on_an_operand_is_the_result_apart(name, position):
    apart = calls_on(name, position)
    onto = {f"{key} on": [replace(c, on=position) for c in calls] for key, calls in apart.items()}
    loaded = Loaded({**apart, **onto})
    wrong = WRONG_AT_ANY_PLACE.get(name, lambda c: False)
    for key, calls in apart.items():
        wanted, got = loaded.run(key), loaded.run(f"{key} on")
        assert wanted is not None, f"{key} is refused"
        assert got is not None, f"{key} is refused in place"
        for c, w, g in zip(calls, wanted, got, strict=True):
            assert same_bits([w], [g]), f"{key} {[getattr(a, 'shape', a) for a in c.arguments]}"
        right = [(w, c.wanted) for c, w in zip(calls, wanted, strict=True) if not wrong(c)]
        assert near([w for w, _ in right], [e for _, e in right]), key
    tried = list(itertools.chain(*apart.values()))
    assert {tuple(c.wanted.shape) for c in tried} >= {*SHAPES, IMAGE}
    if len(tensor_arguments(overload(name))) > 1:
        assert any(has_broadcast(c) for c in tried)
        assert any(sum(isinstance(a, torch.Tensor) for a in c.arguments) > len(c.tensors) for c in tried)


def R(*shape):
    return torch.randn(shape)


BREAKING = {
    "mm, first": lambda: (call(aten.mm.out, R(8, 8), R(8, 8)), 0),
    "mm, second": lambda: (call(aten.mm.out, R(8, 8), R(8, 8)), 1),
    "addmm, second matrix": lambda: (call(aten.addmm.out, R(8, 8), R(8, 8), R(8, 8), 1, 1), 2),
    "convolution": lambda: (
        call(aten.convolution.out, R(1, 2, 5, 5), R(2, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        0,
    ),
    "flip": lambda: (call(aten.flip.out, R(33), [0]), 0),
    "permute_copy": lambda: (call(aten.permute_copy.out, R(5, 5), [1, 0]), 0),
    "gather": lambda: (call(aten.gather.out, torch.arange(7.0), 0, torch.arange(7).flip(0), False), 0),
    "index_select": lambda: (call(aten.index_select.out, torch.arange(7.0), 0, torch.arange(7).flip(0)), 0),
}


@pytest.mark.parametrize("name", BREAKING)
def test_a_broken_alias_is_seen(name):
    c, position = BREAKING[name]()
    loaded = Loaded({"apart": [c], "on": [replace(c, on=position)]})
    (apart,), (on,) = loaded.run("apart"), loaded.run("on")
    assert near([apart], [c.wanted])
    assert not same_bits([apart], [on])
    assert not target_may_write_in_place(c.op)


def written(plan):
    """A plan's instructions, without places: what each argument is, and which call's result or input it is."""
    found = []
    for instruction in plan.chains[0].instructions:
        kernel = instruction.instr_args
        which = plan.operators[kernel.op_index]
        found.append((which.name, which.overload, [_written(plan, i) for i in kernel.args]))
    return found


def _written(plan, i):
    value = plan.values[i].val
    if isinstance(value, Tensor):
        place = ("input", plan.inputs.index(i)) if i in plan.inputs else ("output", plan.outputs.index(i))
        return *place, int(value.scalar_type), value.sizes, value.dim_order
    return [plan.values[k].val for k in value.items] if isinstance(value, IntList) else value


def test_calls_are_written_as_the_emitter_writes_them():
    x, y, c = R(3, 5), R(5), torch.rand(3, 5) > 0.5
    inputs = [t.clone() for t in (x, y, c, x, y, x, x, x, x, y, x)]  # one tensor twice would be one input

    def model(a, b, d, e, f, g, h, i, j, k, m):
        return (
            aten.add.Tensor(a, b, alpha=2),
            aten.where.self(d, e, f),
            aten.gelu.default(g, approximate="tanh"),
            aten.clamp.default(h, -1, None),
            aten.flip.default(i, [0, 1]),
            aten.div.Tensor_mode(j, k, rounding_mode="floor"),
            aten.relu.default(m),
        )

    exported = to_program(lower(Function(model), inputs))
    calls = [
        call(aten.add.out, x, y, 2),
        call(aten.where.self_out, c, x, y),
        call(aten.gelu.out, x, "tanh"),
        call(aten.clamp.out, x, -1, None),
        call(aten.flip.out, x, [0, 1]),
        call(aten.div.out_mode, x, y, "floor"),
        call(aten.relu.out, x),
    ]
    ours = deserialize_pte_binary(program({"forward": calls})).program.execution_plan[0]
    assert written(ours) == written(exported.executorch_program.execution_plan[0])
    allowed = {c.op for c in calls if target_may_write_in_place(c.op)}
    assert allowed == {c.op for c in calls} - {aten.flip.out}
    for node in exported.exported_program().graph.nodes:
        if node.target in allowed:
            assert tolerant_operands(node) == [n for n in node.all_input_nodes if n is not node.kwargs["out"]]


REGISTERED = frozenset(Runtime.get().operator_registry.operator_names)


def is_out(op):
    return any(a.is_out for a in op._schema.arguments)


def test_the_lists_are_complete():
    assert all(is_out(overload(name)) for name in DENIED)
    assert not ALLOWED & DENIED.keys()
    assert all(DENIED.values())
    assert set(RECIPES) == ALLOWED
    assert ALLOWED <= REGISTERED
    assert all(is_pointwise(overload(name)) for name in ALLOWED)
    with_out = {n for n in REGISTERED if n.startswith("aten::") and is_out(overload(n))}
    assert len(with_out) > 100
    assert {n for n in with_out if is_pointwise(overload(n))} - DENIED.keys() == ALLOWED


POINTWISE = "relu.out clone.out max.out min.out where.self_out add.Scalar_out gelu.out silu.out"
NOT_POINTWISE = """max.dim_max max.unary_out min.dim_min min.unary_out cat.out _softmax.out _log_softmax.out cumsum.out
    mean.out sum.IntList_out addmm.out native_dropout.out bernoulli.out rand_like.out fill.Scalar_out copy.out
    topk.values relu.default relu_.default add.Tensor split_copy.Tensor_out unbind_copy.int_out"""


def test_pointwise_is_asked_of_the_very_overload():
    assert [n for n in POINTWISE.split() if not is_pointwise(overload(f"aten::{n}"))] == []
    assert [n for n in NOT_POINTWISE.split() if is_pointwise(overload(f"aten::{n}"))] == []


def test_what_may_write_in_place(monkeypatch):
    assert target_may_write_in_place(aten.add.out)
    assert target_may_write_in_place(exir_ops.edge.aten.add.out)
    assert not target_may_write_in_place(aten.max.out)  # pointwise, but the wheel has no kernel
    assert not target_may_write_in_place(torch.ops.dim_order_ops._clone_dim_order.out)
    assert not target_may_write_in_place(torch.ops.dim_order_ops._to_dim_order_copy.out)
    for target in (aten.add.Tensor, aten.relu_.default, aten.add, operator.add, operator.getitem, "output", None):
        assert not target_may_write_in_place(target)
    monkeypatch.setattr(kernels, "ALLOWED", ALLOWED | {"aten::_softmax.out", "aten::max.unary_out"})
    assert not target_may_write_in_place(aten._softmax.out)
    assert not target_may_write_in_place(aten.max.unary_out)
    monkeypatch.setitem(DENIED, "aten::add.out", "for the test")
    assert not target_may_write_in_place(aten.add.out)


def test_the_operands_that_a_result_may_lie_on():
    graph = Graph()
    a, b, c, out = (graph.placeholder(name) for name in ("a", "b", "c", "out"))

    def operands_of(target, *args, **kwargs):
        return tolerant_operands(graph.call_function(target, args, {**kwargs, "out": out}))

    assert operands_of(aten.add.out, a, b, alpha=2) == [a, b]
    assert operands_of(exir_ops.edge.aten.add.out, a, b) == [a, b]
    assert operands_of(aten.add.out, a, other=b) == [a, b]
    assert operands_of(aten.add.out, a, a) == [a]
    assert operands_of(aten.add.Scalar_out, a, b) == [a]  # b is a number there
    assert operands_of(aten.pow.Scalar_out, 2, a) == [a]
    assert operands_of(aten.where.self_out, c, a, b) == [c, a, b]
    assert operands_of(aten.clamp.Tensor_out, a, None, b) == [a, b]
    assert operands_of(aten._softmax.out, a, 0, False) == []
    assert operands_of(aten.max.out, a, b) == []
    assert tolerant_operands(a) == []
