"""The restated greedy gives the offsets of ExecuTorch's own."""

import random

import pytest
import torch
from executorch.exir.memory_planning import greedy
from executorch.exir.tensor import TensorSpec

from solvers.place.stock import stock_greedy
from solvers.problem.buffers import Buffer
from solvers.problem.problem import Problem


@pytest.mark.parametrize("seed", range(20))
def test_offsets_are_those_of_executorch(seed):
    rng = random.Random(seed)
    buffers, specs = [], []
    for k in range(rng.randrange(1, 60)):
        start = rng.randrange(20)
        end = start + rng.randrange(1, 8)
        nbytes = rng.choice([0, 1, 16, 20, 100, rng.randrange(300)])
        buffers.append(Buffer(f"b{k}", nbytes, start, end, 16))
        spec = TensorSpec(torch.uint8, torch.Size([nbytes]))
        spec.lifetime = [start, end - 1]
        specs.append(spec)
    theirs = greedy(16, specs, torch.nn.Module(), None, 0)
    ours = stock_greedy(Problem(buffers))
    assert [ours[b.id] for b in buffers] == [theirs.spec_dict[s].mem_offset for s in specs]
