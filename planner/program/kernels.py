"""Which kernels may write their result exactly onto one of their operands.

An op may if its functional overload is tagged pointwise, so that an element of the result needs no other element of an
operand of the result's shape, and its kernel is in `ALLOWED`, whose every member
``tests/planner/executorch/test_in_place_overloads.py`` holds to be tagged so, and runs on the stock runtime with the
result forced onto each of its operands. That test knows the kernels of the executorch wheel (portable and optimized),
not those of others.

Which tensors agree in dtype, shape, order and place, and whether the operand dies there, is not decided here.
"""

from __future__ import annotations

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


def may_write_in_place(operator: str) -> bool:
    """May a kernel write its result onto an operand?

    Parameters
    ----------
    operator : str
        As the runtime names it: ``aten::add.out``.
    """
    return operator in ALLOWED and operator not in DENIED
