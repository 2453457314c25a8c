"""Which operands of a node its result may be written onto: `planner.program.kernels`, asked of torch's operators.

Two gates must let an op pass: the list of kernels, and here the meaning: torch tags the functional overload pointwise.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from planner.executorch.nodes import operator_name, overload_of, specs_of
from planner.program.kernels import may_write_in_place


def target_may_write_in_place(target: Any) -> bool:
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
    op = overload_of(target)
    return op is not None and may_write_in_place(operator_name(op)) and is_pointwise(op)


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
    op = overload_of(node.target)
    if op is None or not target_may_write_in_place(op) or any(s.dtype.is_complex for s in specs_of(node)):
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
