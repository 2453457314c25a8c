"""Which kernels may write their result exactly onto one of their operands.

An op may if two gates let it pass. Its meaning: the functional overload is tagged pointwise, so that an element of the
result needs no other element of an operand of the result's shape. And its kernel: the overload is in `ALLOWED`, whose
every member ``tests/executorch/test_in_place_overloads.py`` runs on the stock runtime with the result forced onto each
of its operands. That test knows the kernels of the executorch wheel (portable and optimized), not those of others.

Which tensors agree in dtype, shape, order and place, and whether the operand dies there, is not decided here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from planner.executorch.nodes import specs_of

_RANDOM = "random: an element is not a function of its operand"
_ROWS = "an element needs all of its row; that the wheel's kernel tolerates an alias is luck"
_COPY = "copies: onto its operand it would copy bytes onto themselves, and is elided instead"
_ORDER = "its purpose is another dim order or dtype than the operand's"

DENIED = {
    "aten::bernoulli.out": _RANDOM,
    "aten::bernoulli.Tensor_out": _RANDOM,
    "aten::native_dropout.out": _RANDOM,
    "aten::rand_like.out": _RANDOM,
    "aten::randn_like.out": _RANDOM,
    "aten::_softmax.out": _ROWS,
    "aten::_log_softmax.out": _ROWS,
    "aten::cumsum.out": _ROWS,
    "aten::addmm.out": "a matrix product: only its bias may lie there, by luck",
    "aten::clone.out": _COPY,
    "dim_order_ops::_clone_dim_order.out": _ORDER,
    "dim_order_ops::_to_dim_order_copy.out": _ORDER,
}
"""Overloads that never write in place, each with the reason, whatever tags a later torch gives them. No overload has
had to be put here for having failed the forced test."""

_ALLOWED = """
    _conj_physical.out abs.out acos.out acosh.out add.Scalar_out add.out asin.out asinh.out atan.out atan2.out atanh.out
    bitwise_and.Scalar_out bitwise_and.Tensor_out bitwise_left_shift.Tensor_Scalar_out bitwise_left_shift.Tensor_out
    bitwise_not.out bitwise_or.Scalar_out bitwise_or.Tensor_out bitwise_right_shift.Tensor_Scalar_out
    bitwise_right_shift.Tensor_out bitwise_xor.Scalar_out bitwise_xor.Tensor_out ceil.out clamp.Tensor_out clamp.out
    cos.out cosh.out div.Scalar_mode_out div.Scalar_out div.out div.out_mode elu.out eq.Scalar_out
    eq.Tensor_out erf.out exp.out expm1.out floor.out fmod.Scalar_out fmod.Tensor_out ge.Scalar_out ge.Tensor_out
    gelu.out gt.Scalar_out gt.Tensor_out hardtanh.out isinf.out isnan.out le.Scalar_out le.Tensor_out leaky_relu.out
    log.out log10.out log1p.out log2.out logical_and.out logical_not.out logical_or.out logical_xor.out logit.out
    lt.Scalar_out lt.Tensor_out masked_fill.Scalar_out maximum.out minimum.out mul.Scalar_out mul.out ne.Scalar_out
    ne.Tensor_out neg.out pow.Scalar_out pow.Tensor_Scalar_out pow.Tensor_Tensor_out reciprocal.out relu.out
    remainder.Scalar_out remainder.Tensor_out round.out rsqrt.out rsub.Scalar_out sigmoid.out sign.out sin.out sinh.out
    sqrt.out sub.Scalar_out sub.out tan.out tanh.out trunc.out where.self_out
"""

ALLOWED = frozenset(f"aten::{name}" for name in _ALLOWED.split())
"""Overloads whose kernels are proven to tolerate the result on any one of their operands, named as the runtime does."""


def may_write_in_place(target: Any) -> bool:
    """May the kernel of a node's target write its result onto an operand?

    Parameters
    ----------
    target : OpOverload or edge op or any
        An fx node's target.

    Returns
    -------
    bool
        False for whatever is no out overload.
    """
    op = _overload(target)
    return op is not None and (name := _name(op)) in ALLOWED and name not in DENIED and is_pointwise(op)


def tolerant_operands(node: Node) -> list[Node]:
    """The operands that a node's kernel lets its result lie on.

    Parameters
    ----------
    node : Node

    Returns
    -------
    list of Node
        The nodes of all tensor arguments but ``out``, each once, in the schema's order; none if the kernel may not
        write in place, or computes with complex numbers (the wheel's ``div.out`` reads past small operands there).
    """
    op = _overload(node.target)
    if op is None or not may_write_in_place(op) or any(s.dtype.is_complex for s in specs_of(node)):
        return []
    found: dict[Node, None] = {}
    for position, argument in enumerate(op._schema.arguments):
        given = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
        if not argument.is_out and str(argument.type) in ("Tensor", "Optional[Tensor]") and isinstance(given, Node):
            found[given] = None
    return list(found)


def is_pointwise(op: torch._ops.OpOverload) -> bool:
    """Is an out overload pointwise by the tag of the functional overload with the same argument types?

    Out overloads often lack the tag, and other overloads of the packet may mean something else (``max.other`` is
    pointwise, ``max.dim`` and ``max`` are reductions).
    """
    arguments = op._schema.arguments
    wanted = [str(a.type) for a in arguments if not a.is_out]
    if len(wanted) != len(arguments) - 1 or len(op._schema.returns) != 1:
        return False
    packet = op.overloadpacket
    return any(
        torch.Tag.pointwise in f.tags and len(f._schema.returns) == 1
        for f in (getattr(packet, name) for name in packet.overloads())
        if [str(a.type) for a in f._schema.arguments] == wanted
    )


def _name(op: torch._ops.OpOverload) -> str:
    """An overload's name in a program: ``aten::add.out``."""
    return f"{op._schema.name}.{op._schema.overload_name}"


def _overload(target: Any) -> torch._ops.OpOverload | None:
    """The overload that a target is, or that the edge op wraps; an overload has an ``_op`` of its own."""
    if not isinstance(target, torch._ops.OpOverload):
        target = getattr(target, "_op", None)
    return target if isinstance(target, torch._ops.OpOverload) else None
