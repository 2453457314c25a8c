"""What the arguments of the runtime's operators are: what is read, written, and written in part.

The table beside this file says it of every operator that torch or executorch registers and a program can call;
`planner.executorch.operator_table` writes it from their schemas, so that a ``.pte`` is read without them.
"""

from __future__ import annotations

import functools
import importlib.resources

TENSOR, OTHER, OUT, MUTATED = "t", "-", "o", "m"
"""Letters of a signature, one per argument: one tensor that is read, or none; anything else, which may be a list of
tensors that are read; what is written in full; what is read and written in place."""

TABLE = "operators.txt"
"""Name of the table's file: ``namespace::operator.overload signature`` in each line, sorted."""

known: dict[str, str] = {}
"""Signatures of operators of one's own, by their name in the program, ``mine::relu.out``; they come first."""


def signature_of(operator: str) -> str | None:
    """The signature of an operator; None if it is not known.

    Parameters
    ----------
    operator : str
        ``namespace::operator.overload``, or without the point if the overload has no name.
    """
    return known.get(operator) or _table().get(operator)


@functools.cache
def _table() -> dict[str, str]:
    text = (importlib.resources.files("planner.pte") / TABLE).read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())
