"""What random graphs found, cut down."""

import pytest
import torch

from planner.executorch import arena_planning_pass
from planner.executorch.compare import lower, near, run_program, same_bits, to_program
from tests.executorch.models import Function

RUNS = [(torch.tensor([1.0, 2, 3, 4]),), (torch.tensor([-1.0, 2, 3, 4]),)]


def view_of_a_branch_result(x):
    """The emitter gives the view the address of cond's own spec, which nothing is written to; stock is wrong too."""
    y = x + 1
    z = torch.cond(x[0] > 0, lambda y: -(y * 3 - y.sin()), lambda y: y * 2 + y.sin(), (y,))
    return z.reshape(2, 2).sin()


def two_branch_results(x):
    """Each branch leaves them elsewhere, and the replay writes to all these places, as if both had run; stock is right.

    The same happens with one result whose two places overlap.
    """
    y = x + 1
    a, b = torch.cond(x[0] > 0, lambda y: (-y, y * 3), lambda y: (y * 2, y * 4), (y,))
    return a.sin(), b.cos()


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(view_of_a_branch_result, marks=pytest.mark.xfail(strict=True, reason="wrong, and not noticed")),
        pytest.param(two_branch_results, marks=pytest.mark.xfail(strict=True, reason="refused by the replay")),
    ],
)
def test_branch_results(function):
    program = to_program(lower(Function(function), RUNS[0]), arena_planning_pass(strict=True))
    for (x,), got in zip(RUNS, run_program(program.buffer, *RUNS), strict=True):
        wanted = function(x)
        assert near(got, wanted if isinstance(wanted, tuple) else [wanted])


@pytest.mark.xfail(strict=True, reason="one element with a stride of two cannot be viewed as bytes")
def test_same_bits_of_a_strided_element():
    x = torch.arange(4.0).reshape(2, 2)[:1, 0]
    assert same_bits([x], [x.clone(memory_format=torch.contiguous_format)])
