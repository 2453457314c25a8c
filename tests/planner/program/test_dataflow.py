"""Lifetimes, and what a dataflow refuses."""

import pytest

from planner.program.dataflow import Dataflow, Role
from tests.planner.flows import op, tensor, two_parts


def test_lifetimes_are_half_open_and_start_before_the_first_op():
    flow = two_parts()
    assert flow.lifetimes == {"x": (-1, 2), "p": (0, 3), "q": (1, 3), "w": (2, 4), "y": (3, 5)}


def test_unused_inputs_and_outputs_and_state_live():
    tensors = [tensor("i", 1, role=Role.INPUT), tensor("s", 1, role=Role.STATE), tensor("a", 1), tensor("b", 1)]
    flow = Dataflow([op("f", [], ["a", "b"]), op("g", ["a"], [])], tensors)
    assert flow.lifetimes == {"i": (-1, 0), "s": (-1, 3), "a": (0, 2), "b": (0, 1)}


def test_a_dataflow_names_only_its_tensors():
    with pytest.raises(ValueError, match="'z' is read"):
        Dataflow([op("f", ["z"], [])], [])
    with pytest.raises(ValueError, match="unique"):
        Dataflow([], [tensor("a", 1), tensor("a", 1)])
