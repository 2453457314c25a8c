"""The ops of the random graphs: each is drawn with weights, on variables and dtypes for which it is legal.

Left out is what stock cannot export, load or run, with the reason where it would be missed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.planner.executorch.random_draft import Draft, Rejected

F32, F16, I32, I8, BOOL = torch.float32, torch.float16, torch.int32, torch.int8, torch.bool
FLOATS, INTS = (F32, F16), (I32, I8)

RUNS = 3
"""Sets of inputs, run one after the other."""

OPS: list[tuple[Callable[[Draft], Any], float]] = []


def op(weight: float) -> Callable[[Callable[[Draft], Any]], Callable[[Draft], Any]]:
    """Register a kind of op."""

    def register(draw: Callable[[Draft], Any]) -> Callable[[Draft], Any]:
        OPS.append((draw, weight))
        return draw

    return register


def draw_op(g: Draft) -> None:
    """One more op, or a few that belong together."""
    draws, weights = zip(*OPS, strict=True)
    for _ in range(60):
        try:
            g.rng.choices(draws, weights)[0](g)
        except Rejected:
            continue
        return
    raise Rejected


def random_tensor(rng: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Values that differ from each other, so that a misplaced one shows."""
    if dtype == BOOL:
        return torch.rand(shape) < 0.5
    if dtype in INTS:
        return torch.randint(-50, 50, shape).to(dtype)
    return torch.randn(shape).to(dtype)


def draw_inputs(g: Draft) -> tuple[tuple[Tensor, ...], ...]:
    """One to four inputs of similar shapes; `RUNS` sets of them."""
    rng = g.rng
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4])
    base = [rng.choice([1, 1, 2, 3, 4, 5]) for _ in range(rank)]
    dtype = rng.choice([F32, F32, F32, F32, F16, I32, I8])
    sets: list[list[Tensor]] = [[] for _ in range(RUNS)]
    for _ in range(rng.randint(1, 4)):
        shape = list(base)
        if rank and rng.random() < 0.4:
            shape[rng.randrange(rank)] = rng.choice([1, 2, 3, 6, 8])
        kind = dtype if rng.random() < 0.8 else rng.choice([F32, F16, I32, I8, BOOL])
        last = rank == 4 and kind == F32 and rng.random() < 0.4
        if last:  # ones make the order of dimensions ambiguous
            shape = [shape[0], *(max(2, n) for n in shape[1:])]
        tensors = [random_tensor(rng, tuple(shape), kind) for _ in sets]
        if last:
            tensors = [t.contiguous(memory_format=torch.channels_last) for t in tensors]
        for one, t in zip(sets, tensors, strict=True):
            one.append(t)
        g.add_input(tensors[0], last)
    return tuple(map(tuple, sets))


def draw_outputs(g: Draft) -> str:
    """Most results that nothing reads, and now and then an input, a result in the middle, one twice, parts of one."""
    rng = g.rng
    made = [n for n in g.values if n.startswith("v")]
    leaves = [n for n in made if n not in g.used]
    names = [n for n in leaves if rng.random() < 0.85] or leaves[-1:] or made[-1:]
    if rng.random() < 0.25:
        names.append(rng.choice(made))
    if rng.random() < 0.08:
        names.append(rng.choice(g.inputs))
    if rng.random() < 0.1:
        names.append(rng.choice(names))
    for n in list(names):
        if rng.random() < 0.08 and g.values[n].dim() and n not in g.channels_last:
            names.append(f"{n}[{slice_text(g, n, 0)}]")
    rng.shuffle(names)
    if rng.random() < 0.1 and len(names) > 1:
        return f"({names[0]}, ({', '.join(names[1:])},))"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


# -- pointwise

SCALARS = {F32: ("0.5", "2", "-1.5", "3"), F16: ("0.5", "2", "-1.5"), I32: ("2", "-3"), I8: ("2", "-3")}
UNARY = {
    F32: (
        *("torch.relu({})", "-{}", "torch.abs({})", "torch.clamp({}, -1, 1)", "F.hardtanh({})", "torch.floor({})"),
        *("F.leaky_relu({}, 0.25)", "torch.sign({})", "{}.clone()", "torch.clamp({}, min=0.5)"),
    ),
    F16: ("torch.relu({})", "-{}", "torch.abs({})", "torch.clamp({}, -1, 1)", "{}.clone()"),
    I32: ("-{}", "torch.abs({})", "torch.clamp({}, -9, 9)", "{}.clone()", "~{}"),
    I8: ("-{}", "torch.abs({})", "torch.clamp({}, -9, 9)", "{}.clone()", "~{}"),
    BOOL: ("torch.logical_not({})", "~{}", "{}.clone()"),
}
ROUGH_UNARY = (
    *("torch.sigmoid({})", "torch.tanh({})", "F.gelu({})", "torch.sin({})", "torch.cos({})", "F.silu({})"),
    *("torch.exp(torch.clamp({}, -2, 2))", "torch.sqrt(torch.abs({}))", "F.hardswish({})", "F.elu({})"),
)
BINARY = {
    BOOL: ("torch.logical_and({}, {})", "{} | {}", "torch.logical_xor({}, {})", "{} & {}"),
    **dict.fromkeys(FLOATS, ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.minimum({}, {})")),
    **dict.fromkeys(INTS, ("{} + {}", "{} - {}", "{} * {}", "torch.minimum({}, {})", "{} & {}", "{} ^ {}")),
}
COMPARE = ("{} > {}", "{} <= {}", "{} == {}", "{} < {}")


def unary_of(g: Draft, name: str) -> str:
    """A pointwise op on one tensor."""
    dtype = g.values[name].dtype
    if dtype not in UNARY:
        raise Rejected
    if dtype == F32 and not g.only_exact and g.rng.random() < 0.5:
        return g.one(g.rng.choice(ROUGH_UNARY).format(name), rough=True)
    if dtype in SCALARS and (dtype == F32 or g.values[name].dim()) and g.rng.random() < 0.4:  # else stock promotes
        scalar = g.rng.choice(SCALARS[dtype])
        return g.one(g.rng.choice(["{} + {}", "{} * {}", "{} - {}"]).format(name, scalar))
    return g.one(g.rng.choice(UNARY[dtype]).format(name))


def binary_of(g: Draft, a: str, b: str) -> str:
    """A pointwise op on two tensors (or expressions) of one dtype."""
    dtype = g.run(a).dtype
    if dtype not in BINARY or g.run(b).dtype != dtype:
        raise Rejected
    return g.one(g.rng.choice(BINARY[dtype]).format(a, b))


def mate_of(g: Draft, name: str) -> str:
    """Another tensor of the same shape and dtype; made if there is none."""
    t = g.values[name]
    try:
        return g.pick(lambda u: u.shape == t.shape and u.dtype == t.dtype and u is not t)
    except Rejected:
        return unary_of(g, name)


@op(5)
def unary(g: Draft) -> None:
    unary_of(g, g.pick())


@op(6)
def binary(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype in BINARY)
    b = g.rng.choice([a, mate_of(g, a), mate_of(g, a)])
    binary_of(g, *g.rng.sample([a, b], 2))


@op(3)
def broadcast(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype in BINARY)
    t = g.values[a]
    b = g.pick(lambda u: u.dtype == t.dtype and u.shape != t.shape and can_broadcast(t, u))
    binary_of(g, *g.rng.sample([a, b], 2))


def can_broadcast(t: Tensor, u: Tensor) -> bool:
    return all(1 in pair or pair[0] == pair[1] for pair in zip(reversed(t.shape), reversed(u.shape), strict=False))


@op(3)
def chain(g: Draft) -> None:
    """Each result dies where it is read."""
    name = g.pick()
    for _ in range(g.rng.randint(2, 5)):
        name = unary_of(g, name) if g.rng.random() < 0.7 else binary_of(g, name, mate_of(g, name))
        g.hidden.add(name)
    g.hidden.discard(name)


@op(2)
def compare(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype in (F32, F16, I32, I8), exact=True)
    b = mate_of(g, a) if g.rng.random() < 0.7 else "0"
    if b in g.rough:
        raise Rejected
    g.one(g.rng.choice(COMPARE).format(a, b))


@op(2)
def where(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype in (F32, F16, I32))
    b = mate_of(g, a)
    c = g.pick(lambda t: t.dtype == BOOL and can_broadcast(t, g.values[a]))
    g.one(f"torch.where({c}, {a}, {b})")


@op(1)
def cast(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype in UNARY, exact=True)
    to = g.rng.choice([d for d in (F32, F16, I32, BOOL) if d != g.values[a].dtype])
    g.one(f"{a}.to({to})")


# -- pointwise of parts of one tensor


@op(5)
def shifted_parts(g: Draft) -> None:
    """t[0:k] + t[1:k+1], and the like with a result over a part of its own input."""
    a = g.pick(lambda t: t.dim() > 0 and t.dtype in BINARY and t.shape[0] > 1)
    n = g.values[a].shape[0]
    k = g.rng.randint(1, n - 1)
    low = g.rng.randint(0, n - k)
    form = g.rng.randrange(4)
    if form == 0:
        binary_of(g, f"{a}[0:{k}]", f"{a}[{low}:{low + k}]")
    elif form == 1:
        binary_of(g, *g.rng.sample([a, f"{a}[{low}:{low + 1}]"], 2))
    elif form == 2:
        s = g.one(f"{a}[0:{k}]")
        y = unary_of(g, a)
        binary_of(g, s, f"{y}[{low}:{low + k}]")
    else:
        s = g.one(f"{a}[{low}:{low + k}]")
        y = unary_of(g, s)
        binary_of(g, *g.rng.sample([y, f"{a}[0:{k}]"], 2))


@op(2)
def whole_and_part(g: Draft) -> None:
    """c = cat([a, b]); c + a, broadcast."""
    a = g.pick(lambda t: t.dim() > 0 and t.shape[0] == 1 and t.dtype in BINARY)
    c = g.one(f"torch.cat([{a}, {mate_of(g, a)}])")
    binary_of(g, *g.rng.sample([c, a], 2))


def slice_text(g: Draft, name: str, dim: int, steps: bool = True) -> str:
    """The bounds of a slice: from the start or the end, within or beyond, now and then none or every other."""
    n = g.values[name].shape[dim]
    low = g.rng.randint(0, max(n - 1, 0))
    high = g.rng.randint(low + (g.rng.random() < 0.95), n + 1)
    first = g.rng.choice([str(low), str(low), str(low - n)]) if low or g.rng.random() < 0.5 else ""
    last = str(high - n) if high < n and g.rng.random() < 0.4 else str(high)
    if high > n or g.rng.random() < 0.05:
        last = g.rng.choice([last, ""])
    return f"{first}:{last}" + (":2" if steps and g.rng.random() < 0.1 else "")
