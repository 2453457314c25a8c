"""Export with stock's plan and with ours, run both several times in a row, and compare with eager."""

from __future__ import annotations

import copy

import torch
from torch.utils._pytree import tree_leaves

from planner.executorch import arena_planning_pass
from planner.executorch.compare import facts_of, lower, near, run_program, same_bits, to_program
from tests.planner.executorch.models import Function


def run_both(model, *runs, stock_is_wrong=False, **pass_arguments):
    """Each run's inputs in turn; state goes on from run to run, from zero.

    Returns the facts of stock's and our program, and our report of the method.
    """
    model = model if isinstance(model, torch.nn.Module) else Function(model)
    edge = lower(copy.deepcopy(model), runs[0])
    ours = arena_planning_pass(strict=True, **pass_arguments)
    programs = to_program(edge), to_program(edge, ours)
    from_stock, from_ours = (run_program(p.buffer, *runs) for p in programs)
    eager = copy.deepcopy(model).eval()
    with torch.no_grad():
        for inputs, a, b in zip(runs, from_stock, from_ours, strict=True):
            wanted = [t.clone() for t in tree_leaves(eager(*copy.deepcopy(inputs)))]
            assert near(b, wanted)
            assert stock_is_wrong or same_bits(a, b)
    stock, mine = (facts_of(p) for p in programs)
    return stock, mine, ours.reports[-1]
