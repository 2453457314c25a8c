"""Mutable buffers: every run goes on from the last, and write-backs come where the new value is born."""

import copy
import warnings

import pytest
import torch
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

from planner.executorch import arena_planning_pass
from planner.executorch.compare import lower, near, run_program, same_bits
from planner.program.share_rules import Share
from tests.planner.executorch.running import run_both

R, cat = torch.randn, torch.cat


class Decoder(torch.nn.Module):
    """One step of attention over key and value caches that dominate the memory."""

    def __init__(self, layers=6, positions=64, width=32):
        super().__init__()
        self.layers = layers
        for k in range(layers):
            self.register_buffer(f"keys{k}", torch.zeros(1, positions, width))
            self.register_buffer(f"values{k}", torch.zeros(1, positions, width))

    def forward(self, x, position):
        for k in range(self.layers):
            keys, values = getattr(self, f"keys{k}"), getattr(self, f"values{k}")
            keys[:, position] = x.sin()
            values[:, position] = x.cos()
            x = torch.softmax(x @ keys.transpose(1, 2), -1) @ values + x
        return x


class Stateful(torch.nn.Module):
    def __init__(self, step, shape=(8,)):
        super().__init__()
        self.register_buffer("s", torch.zeros(shape))
        self.step = step

    def forward(self, x):
        return self.step(self, x)


def add(m, x):
    m.s.add_(x)
    return m.s * 2


def old_and_new(m, x):
    old = m.s * 2
    m.s.add_(x)
    return old + m.s, m.s.exp()


def old_slice_outlives_the_write(m, x):
    old = m.s[2:6]
    m.s.add_(x)
    return old * m.s[:4], old


def views_of_both(m, x):
    old = m.s.view(2, 4).sin()
    m.s.add_(x)
    return old + m.s.view(2, 4).exp(), m.s.view(4, 2) * 2


def shifted(m, x):
    m.s.copy_(cat([m.s[4:], x[:4]]))
    return m.s.sin()


def returned(m, x):
    m.s.add_(x)
    return m.s


def value_returned_too(m, x):
    new = m.s + x
    m.s.copy_(new)
    return new, new * 2


def written_twice(m, x):
    m.s.add_(x)
    y = m.s * 2
    m.s.mul_(x)
    return y + m.s


def in_a_branch(m, x):
    y = torch.cond(x.sum() > 0, lambda s, z: s * z, lambda s, z: s + z, (m.s, x))
    m.s.add_(x)
    return y + m.s


def never_read(m, x):
    m.s.copy_(x)
    return x * 2


STEPS = (add, old_and_new, old_slice_outlives_the_write, views_of_both, shifted, returned, value_returned_too)
STEPS += (written_twice, in_a_branch, never_read)


@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("arguments", [{}, {"move_write_backs": False}, {"share_mutable_buffers": True}], ids=str)
def test_state_goes_on_from_run_to_run(step, arguments):
    stock, ours, _ = run_both(Stateful(step), *[(R(8),) for _ in range(4)], **arguments)
    assert ours.arena <= stock.arena or step is in_a_branch


def test_a_decode_step_loses_a_third():
    runs = [(R(1, 1, 32), torch.tensor([k])) for k in range(5)]
    stock, ours, report = run_both(Decoder(), *runs)
    assert len(report.write_backs) == 12
    assert ours.arena <= stock.arena * 2 / 3
    assert report.status == "optimal"
    _, late, _ = run_both(Decoder(), *runs, move_write_backs=False)
    assert ours.arena <= late.arena * 2 / 3


@pytest.mark.parametrize("step", [old_and_new, shifted, old_slice_outlives_the_write], ids=lambda f: f.__name__)
def test_buffers_with_initial_values(step):
    """Stock loads a buffer's initial value only if a pass asks for it."""
    model = Stateful(step)
    model.s.copy_(R(8))
    runs = [(R(8),) for _ in range(4)]
    edge = lower(copy.deepcopy(model), runs[0])
    outputs = []
    for planning_pass in (MemoryPlanningPass(), arena_planning_pass(strict=True)):
        config = ExecutorchBackendConfig(
            passes=[InitializedMutableBufferPass(["s"])], memory_planning_pass=planning_pass
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = copy.deepcopy(edge).to_executorch(config)
        outputs.append(run_program(program.buffer, *runs))
    for inputs, a, b in zip(runs, *outputs, strict=True):
        wanted = [t.clone() for t in torch.utils._pytree.tree_leaves(model(*inputs))]
        assert same_bits(a, b)
        assert near(b, wanted)


def test_buffers_that_are_not_allocated():
    """The runtime needs memory for them from its caller, which the wheel's Python cannot give: compiled, judged."""
    planning_pass = arena_planning_pass(strict=True, alloc_mutable_buffers=False)
    config = ExecutorchBackendConfig(memory_planning_pass=planning_pass, emit_mutable_buffer_names=True)
    program = copy.deepcopy(lower(Stateful(old_and_new), (R(8),))).to_executorch(config)
    values = program.executorch_program.execution_plan[0].values
    unplanned = [
        v.val for v in values if getattr(v.val, "allocation_info", True) is None and v.val.data_buffer_idx == 0
    ]
    assert len(unplanned) == 1
    assert planning_pass.reports[0].status == "optimal"


def test_a_buffer_is_never_computed_over_nor_part_of_a_concat():
    _, _, report = run_both(Stateful(lambda m, x: (m.s.add_(x), cat([m.s, x]).exp())[1]), (R(8),), (R(8),))
    (concat,) = report.of(Share.CONCAT)
    assert "is a mutable buffer" in concat.reason
    assert any("is a mutable buffer" in d.reason for d in report.of(Share.IN_PLACE))


def test_windows_of_the_new_value_are_views_of_the_buffer():
    """Cut after the last write, a slice of a buffer may live on."""

    def windows(m, x):
        m.s.copy_(m.s * 0.5 + x)
        return sum((m.s[k : k + 256].sin() * m.s[k : k + 256] for k in range(0, 1024, 256)), torch.zeros(256))

    runs = [(R(1024),) for _ in range(3)]
    _, moved, report = run_both(Stateful(windows, (1024,)), *runs)
    _, late, _ = run_both(Stateful(windows, (1024,)), *runs, move_write_backs=False)
    assert moved.arena <= late.arena
    assert len(report.write_backs) == 1
    assert [d for d in report.of(Share.VIEW) if d.elided]


def cut_before_and_after(m, x):
    before = m.s[0:4]
    y = before * 2
    m.s.add_(x)
    after = m.s[4:8]
    return y + after, after


@pytest.mark.parametrize("allowed", [False, True])
def test_slices_of_both_sides_of_a_write(allowed):
    """As an output, a slice shows the buffer only where a caller that writes into it may change the state."""
    _, _, report = run_both(Stateful(cut_before_and_after), *[(R(8),) for _ in range(4)], alias_outputs=allowed)
    before, after = report.of(Share.VIEW)
    assert before.elided
    assert after.elided == allowed
    assert allowed or "would show bytes of buffer" in after.reason
