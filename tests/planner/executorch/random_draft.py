"""A random module in the making: statements of Python source, each run in eager as it is drawn.

So shapes are known, and a statement is refused where its values would run away: float tolerance means nothing then.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LIMITS = {torch.float32: 64, torch.float16: 32}
"""Largest absolute values: beyond them rounding would exceed the tolerance."""


class Rejected(Exception):
    """A draw that cannot be made here."""


class Holder(nn.Module):
    """Parameters, constants and buffers, and a forward given as source."""

    def set_source(self, source: str) -> None:
        scope: dict[str, Any] = {"torch": torch, "F": F, "cond": cond}
        exec(source, scope)
        self.function = scope["forward"]

    def reset(self) -> None:
        """Zero the buffers that are state (b0, b1, ...)."""
        for name, buffer in self.named_buffers():
            if name.startswith("b"):
                buffer.zero_()

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


def cond(predicate: Tensor, yes: Callable[..., Any], no: Callable[..., Any], operands: Sequence[Tensor]) -> Any:
    """torch.cond where it is exported; in eager, where torch.cond would compile, what it means."""
    if torch.compiler.is_exporting():
        return torch.cond(predicate, yes, no, tuple(operands))
    return (yes if predicate else no)(*operands)


class Draft:
    """A module in the making.

    Attributes
    ----------
    values : dict of str to Tensor
        By variable name, what eager gives for the first inputs.
    rough : set of str
        Those that round in a kernel's own order: no comparison or branch may hang on them.
    channels_last : set of str
    """

    def __init__(self, rng: random.Random, only_exact: bool) -> None:
        self.rng = rng
        self.only_exact = only_exact
        self.module = Holder()
        self.values: dict[str, Tensor] = {}
        self.rough: set[str] = set()
        self.channels_last: set[str] = set()
        self.hidden: set[str] = set()
        self.used: set[str] = set()
        self.lines: list[str] = []
        self.inputs: list[str] = []
        self.exact = True
        self.branches = False
        self.scope: dict[str, Any] = {"torch": torch, "F": F, "cond": cond, "self": self.module}

    def add_input(self, value: Tensor, channels_last: bool = False) -> str:
        """A graph input."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        self._bind(name, value)
        if channels_last:
            self.channels_last.add(name)
        return name

    def hold(self, kind: str, value: Tensor) -> str:
        """A parameter (p), a constant (c) or a buffer that will be written (b); its expression."""
        name = f"{kind}{sum(n.startswith(kind) for n in self.module.state_dict())}"
        if kind == "p":
            self.module.register_parameter(name, nn.Parameter(value, requires_grad=False))
        else:
            self.module.register_buffer(name, value)
        return f"self.{name}"

    def add(self, expression: str, count: int | None = None, rough: bool = False) -> list[str]:
        """Assign an expression's result, or the items of the tuple that it gives; the new names."""
        rough = self._note(expression, rough)
        results = [self.run(expression)] if count is None else list(self.run(expression))
        if not all(is_tame(t) for t in results):
            raise Rejected
        start = sum(n.startswith("v") for n in self.values)
        names = [f"v{start + k}" for k in range(len(results))]
        self.lines.append(f"{', '.join(names)}{',' if count == 1 else ''} = {expression}")
        for name, value in zip(names, results, strict=True):
            self._bind(name, value)
            if rough:
                self.rough.add(name)
        self.exact &= not rough
        return names

    def one(self, expression: str, rough: bool = False) -> str:
        """Assign one result."""
        return self.add(expression, None, rough)[0]

    def write(self, statement: str, buffer: str) -> None:
        """A statement that writes a buffer."""
        rough = self._note(statement, False)
        before = self.run(buffer).clone()
        exec(statement, self.scope)
        if not is_tame(self.run(buffer)):
            self.run(buffer).copy_(before)
            raise Rejected
        self.lines.append(statement)
        if rough:
            memory = self.run(buffer).untyped_storage().data_ptr()
            self.rough |= {buffer, *(n for n, t in self.values.items() if t.untyped_storage().data_ptr() == memory)}

    def run(self, expression: str) -> Any:
        """Evaluate in eager."""
        return eval(expression, self.scope)

    def names_in(self, expression: str) -> set[str]:
        """The variables and buffers that an expression reads."""
        return set(re.findall(r"\b(?:[vx]\d+|self\.b\d+)\b", expression))

    def pick(self, fits: Callable[[Tensor], bool] = lambda t: True, exact: bool = False) -> str:
        """A variable, rather a late or unused one; never an empty or a channels-last tensor."""
        names = [
            n
            for n, t in self.values.items()
            if t.numel() and n not in self.channels_last | self.hidden and fits(t) and not (exact and n in self.rough)
        ]
        if not names:
            raise Rejected
        unused = [n for n in names if n not in self.used]
        return self.rng.choice(self.rng.choice([names, names[-3:], unused or names]))

    def _note(self, text: str, rough: bool) -> bool:
        """Note what a statement reads; is its result rough?"""
        if rough and self.only_exact:
            raise Rejected
        names = self.names_in(text)
        self.used |= names
        return rough or bool(names & self.rough)

    def _bind(self, name: str, value: Tensor) -> None:
        self.values[name] = self.scope[name] = value


def is_tame(t: Tensor) -> bool:
    if t.numel() > 600 or t.dim() > 5:
        return False
    limit = LIMITS.get(t.dtype)
    return limit is None or not t.numel() or bool((t.abs() <= limit).all())
