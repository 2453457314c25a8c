"""Random ops with state or control flow: buffers that are written, branches."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.planner.executorch.random_draft import Draft, Rejected
from tests.planner.executorch.random_ops import BINARY, BOOL, F32, I32, binary_of, op, unary_of

STATEFUL = (F32, I32)


@op(2.5)
def state(g: Draft) -> None:
    """A buffer, written once or twice; read before, in between, after."""
    a = g.pick(lambda t: t.dtype in STATEFUL)
    t = g.values[a]
    buffer = g.hold("b", torch.zeros(t.shape, dtype=t.dtype))
    for _ in range(g.rng.randint(1, 2)):
        if g.rng.random() < 0.5:
            read(g, buffer, a)
        g.write(write_text(g, buffer, a), buffer)
        if g.rng.random() < 0.6:
            read(g, buffer, a)


def read(g: Draft, buffer: str, name: str) -> None:
    """Read a buffer in one of many ways."""
    rank = g.values[name].dim()
    forms = [f"{buffer}.clone()", f"torch.maximum({buffer}, {name})", f"{buffer}.reshape(-1)"]
    if rank:
        forms += [f"torch.cat([{buffer}, {name}])", f"torch.cat([{name}, {buffer}], -1)", f"{buffer}[0:1]"]
    form = g.rng.choice([*forms, ""])
    if form:
        g.one(form)
    else:
        binary_of(g, *g.rng.sample([buffer, name], 2))


def write_text(g: Draft, buffer: str, name: str) -> str:
    """A statement that writes a buffer: all of it, a part, shifted on like a cache."""
    t = g.values[name]
    forms = [f"{buffer}.add_({name})", f"{buffer}.copy_({name})", f"{buffer}.copy_({unary_of(g, name)})"]
    if t.dim():
        n = t.shape[0]
        k = g.rng.randint(0, n - 1)
        forms += [f"{buffer}[{k}:{n}] = {name}[0:{n - k}]", f"{buffer}[{k}] = {name}[{n - 1 - k}]"]
        forms.append(f"{buffer}.copy_(torch.cat([{buffer}[{k}:], {name}[0:{k}]]))")
        forms.append(f"{buffer}.index_copy_(0, torch.tensor([{k}]), {name}[0:1])")
        forms.append(f"{buffer}[torch.tensor([{k}])] = {name}[0:1]")
    return g.rng.choice(forms)


BODIES = {
    "same": (
        *("a + b", "a * b", "torch.maximum(a, b)", "-a", "(a + b) * a", "torch.abs(-b)", "torch.relu(a - b)"),
        *("(a + b) * (a - b)", "(a * 2 - b) * (b + 3)"),
    ),
    "joined": ("torch.cat([a, b])", "torch.cat([b, a])", "torch.cat([-a, a])", "torch.cat([a + b, a * b])"),
    "two": (
        *("(a + b, -b)", "(-a, a * b)", "(torch.maximum(a, b), a - b)", "(-a, a * 3)", "(a * 2, b * 4)"),
        *("(torch.abs(a - b) * a, -(a + b))", "(-b, (a + b) * b - a)"),
    ),
}


@op(3)
def branch(g: Draft) -> None:
    """A cond; often a second with the first's result still to be read."""
    # a scalar times an i32 of rank 0 is an i64 for the exporter, but not in eager
    a = g.pick(lambda t: (t.dtype == F32 or (t.dtype == I32 and t.dim() > 0)) and t.is_contiguous())
    t = g.values[a]
    predicate = predicate_of(g)
    results = cond_of(g, predicate, a, mate(g, a))
    if g.rng.random() < 0.5:
        second = cond_of(g, predicate if g.rng.random() < 0.5 else predicate_of(g), a, mate(g, a))
        if g.values[results[0]].shape == g.values[second[0]].shape and t.dtype in BINARY:
            binary_of(g, results[0], second[0])
    if g.rng.random() < 0.3:
        unary_of(g, g.one(f"{results[-1]}.reshape(-1, 1)"))
    g.branches = True


def mate(g: Draft, name: str) -> str:
    """A second operand that is another tensor; export refuses operands that share memory or differ in strides."""
    t = g.values[name]

    def fits(u: Tensor) -> bool:
        apart = u.untyped_storage().data_ptr() != t.untyped_storage().data_ptr()
        return apart and u.is_contiguous() and u.shape == t.shape and u.dtype == t.dtype

    try:
        return g.pick(fits)
    except Rejected:
        return unary_of(g, name)


def cond_of(g: Draft, predicate: str, a: str, b: str) -> list[str]:
    kind = g.rng.choice(["same", "same", "two", "joined"] if g.values[a].dim() else ["same", "two"])
    yes, no = g.rng.sample(BODIES[kind], 2)
    call = f"cond({predicate}, lambda a, b: {yes}, lambda a, b: {no}, ({a}, {b}))"
    if predicate in g.rough or g.names_in(predicate) & g.rough:
        raise Rejected
    return g.add(call, count=2 if kind == "two" else None)


def predicate_of(g: Draft) -> str:
    """A variable that is a bool of rank 0; made from an exact value."""
    try:
        if g.rng.random() < 0.3:
            return g.pick(lambda t: t.dtype == BOOL and t.dim() == 0, exact=True)
    except Rejected:
        pass
    source = g.pick(lambda t: t.dtype in (F32, I32), exact=True)
    return g.one(f"{source}.reshape(-1)[0] > 0")
