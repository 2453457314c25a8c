"""Random modules from one integer seed, as Python source: what it draws can be read, and run again."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from tests.planner.executorch import random_moves, random_state  # noqa: F401 (they register their ops)
from tests.planner.executorch.random_draft import Draft, Rejected, is_tame
from tests.planner.executorch.random_ops import draw_inputs, draw_op, draw_outputs


@dataclass(frozen=True)
class RandomGraph:
    """What a seed gives.

    Attributes
    ----------
    module : nn.Module
        Its buffers are zero: stock does not load a buffer's initial value.
    inputs : tuple of tuple of Tensor
        Three sets; the first is the example for the export.
    exact : bool
        No op rounds in an order that is a kernel's own: eager must be the same bit for bit.
    source : str
        The module's forward.
    wanted : tuple of list of Tensor
        What eager gives, run after run.
    branches : bool
        Is there control flow?
    """

    module: nn.Module
    inputs: tuple[tuple[Tensor, ...], ...]
    exact: bool
    source: str
    wanted: tuple[list[Tensor], ...]
    branches: bool


def random_graph(seed: int) -> RandomGraph:
    """The graph of a seed."""
    for attempt in range(50):
        rng = random.Random(f"{seed}.{attempt}")
        torch.manual_seed(rng.randrange(2**31))
        try:
            with torch.no_grad():
                return _draw(rng)
        except Rejected:
            continue
    raise AssertionError(f"seed {seed} gives no graph")


def _draw(rng: random.Random) -> RandomGraph:
    draft = Draft(rng, only_exact=rng.random() < 0.5)
    inputs = draw_inputs(draft)
    for _ in range(rng.randint(3, 12)):
        draw_op(draft)
    outputs = draw_outputs(draft)
    body = "\n    ".join([*draft.lines, f"return {outputs}"])
    source = f"def forward(self, {', '.join(draft.inputs)}):\n    {body}\n"
    draft.module.set_source(source)
    draft.module.reset()
    wanted = tuple(
        [t.clone(memory_format=torch.contiguous_format) for t in tree_leaves(draft.module(*x))] for x in inputs
    )
    if not all(is_tame(t) for run in wanted for t in run):
        raise Rejected
    draft.module.reset()
    return RandomGraph(draft.module.eval(), inputs, draft.exact, source, wanted, draft.branches)
