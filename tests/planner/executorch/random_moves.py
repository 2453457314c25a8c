"""Random ops that move bytes or reduce: concats, slices, views, reductions, convolutions."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.planner.executorch.random_draft import Draft, Rejected
from tests.planner.executorch.random_ops import BINARY, F32, UNARY, mate_of, op, random_tensor, slice_text, unary_of


def has_rank(t: Tensor) -> bool:
    return t.dim() > 0


# -- concats. Mixed dtypes are left out: stock's kernel copies raw bits where the sizes are equal.


@op(6)
def concat(g: Draft) -> None:
    """Parts that fit: results, slices, nested concats, constants, twice the same, empty ones."""
    a = g.pick(lambda t: has_rank(t) and t.dtype in UNARY)
    outer = [d for d in range(g.values[a].dim()) if g.values[a].shape[:d].numel() == 1]
    dim = g.rng.choice(outer if g.rng.random() < 0.6 else range(g.values[a].dim()))
    parts = [a] + [part_for(g, a, dim) for _ in range(g.rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    g.rng.shuffle(parts)
    shown = dim - g.values[a].dim() if g.rng.random() < 0.3 else dim
    whole = g.one(f"torch.cat([{', '.join(parts)}], {shown})")
    if len(parts) > 1 and g.rng.random() < 0.2:  # a place that conflicts with the first
        g.one(f"torch.cat([{', '.join(g.rng.sample(parts, len(parts)))}], {shown})")
    if g.rng.random() < 0.3:  # a prefix, or nested
        g.one(f"torch.cat([{whole}, {part_for(g, a, dim)}], {shown})")


def part_for(g: Draft, name: str, dim: int) -> str:
    """Something that fits beside ``name``."""
    t, kind = g.values[name], g.rng.random()
    if kind < 0.08:
        return name
    if kind < 0.13:
        return g.rng.choice([f"{name}.narrow({dim}, 0, 0)", f"torch.zeros(0, dtype={t.dtype})"])
    if kind < 0.2:
        return g.hold(g.rng.choice("pc") if t.dtype == F32 else "c", random_tensor(g.rng, tuple(t.shape), t.dtype))
    if kind < 0.35:
        length = g.rng.randint(1, t.shape[dim])
        return f"{name}.narrow({dim}, {t.shape[dim] - length}, {length})"
    if kind < 0.6:
        return unary_of(g, name)

    def fits(u: Tensor) -> bool:
        return u.dtype == t.dtype and u.dim() == t.dim() and drop(u, dim) == drop(t, dim)

    return g.pick(fits)


def drop(t: Tensor, dim: int) -> list[int]:
    return [n for d, n in enumerate(t.shape) if d != dim]


@op(2)
def stack(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype in UNARY and t.dim() < 4)
    g.one(f"torch.stack([{a}, {mate_of(g, a)}], {g.rng.randint(0, g.values[a].dim())})")


@op(2)
def part_by_part(g: Draft) -> None:
    """Take apart, work on the parts, put together."""
    a = g.pick(lambda t: has_rank(t) and t.dtype in UNARY and 1 < t.shape[0] <= 4)
    parts = g.add(f"{a}.split(1)", count=g.values[a].shape[0])
    done = [unary_of(g, p) if g.rng.random() < 0.7 else p for p in parts]
    if g.rng.random() < 0.3:
        g.rng.shuffle(done)
    g.one(f"torch.cat([{', '.join(done)}])")


# -- parts of a tensor


@op(5)
def slices(g: Draft) -> None:
    a = g.pick(has_rank)
    dim = 0 if g.rng.random() < 0.6 else g.rng.randrange(g.values[a].dim())
    g.one(f"{a}[{':, ' * dim}{slice_text(g, a, dim)}]")


@op(2)
def select(g: Draft) -> None:
    a = g.pick(has_rank)
    dim = g.rng.randrange(g.values[a].dim())
    n = g.values[a].shape[dim]
    g.one(f"{a}.select({dim}, {g.rng.randint(-n, n - 1)})")


@op(3)
def split(g: Draft) -> None:
    """split, split_with_sizes, chunk, unbind; some results may stay unused."""
    a = g.pick(lambda t: has_rank(t) and max(t.shape) > 1)
    t = g.values[a]
    dim = g.rng.choice([d for d, n in enumerate(t.shape) if n > 1])
    cut = g.rng.randint(1, t.shape[dim] - 1)
    forms = [f"split({cut}, {dim})", f"split([{cut}, {t.shape[dim] - cut}], {dim})", f"chunk(2, {dim})"]
    forms += [f"unbind({dim})"] if t.shape[dim] <= 4 else []
    call = f"{a}.{g.rng.choice(forms)}"
    names = g.add(call, count=len(g.run(call)))
    if g.rng.random() < 0.5:
        g.used.update(g.rng.sample(names, len(names) - 1))


# -- other shapes


@op(4)
def reshape(g: Draft) -> None:
    a = g.pick()
    shape = g.values[a].shape
    n = shape.numel()
    k = g.rng.choice([k for k in range(1, n + 1) if n % k == 0])
    dims = [d for d in range(len(shape)) if shape[d] == 1]
    forms = [f"reshape({k}, {n // k})", "reshape(-1)", f"reshape(1, {k}, {n // k})"]
    forms += [f"unsqueeze({g.rng.randint(0, len(shape))})"] if len(shape) < 4 else []
    forms += [f"squeeze({g.rng.choice(dims)})"] if dims else []
    g.one(f"{a}.{g.rng.choice(forms)}")


@op(2)
def permute(g: Draft) -> None:
    a = g.pick(lambda t: t.dim() > 1)
    rank = g.values[a].dim()
    x, y = g.rng.sample(range(rank), 2)
    order = g.rng.sample(range(rank), rank)
    g.one(f"{a}.{g.rng.choice([f'transpose({x}, {y})', f'permute({order})'])}")


@op(1)
def spread(g: Draft) -> None:
    a = g.pick(lambda t: has_rank(t) and t.dim() < 4)
    rank = g.values[a].dim()
    pad = f"torch.nn.functional.pad({a}, (1, 1))" if g.values[a].dtype == F32 else f"torch.flip({a}, [0])"
    g.one(g.rng.choice([f"{a}.repeat({'2, ' + '1, ' * (rank - 1)})", f"torch.flip({a}, [{rank - 1}])", pad]))


# -- reductions and the like


@op(2)
def reduce(g: Draft) -> None:
    a = g.pick(lambda t: has_rank(t) and t.dtype == F32)
    dim = g.rng.randrange(g.values[a].dim())
    forms = [("{}.sum({}, keepdim=True)", True), ("{}.mean({})", True), ("torch.amax({}, {})", False)]
    form, rough = g.rng.choice(forms)
    g.one(form.format(a, dim), rough)


@op(2)
def several_results(g: Draft) -> None:
    """max.dim and topk, of which the indices are mostly not used."""
    a = g.pick(lambda t: has_rank(t) and t.dtype == F32, exact=True)
    dim = g.rng.randrange(g.values[a].dim())
    k = g.rng.randint(1, g.values[a].shape[dim])
    _, indices = g.add(g.rng.choice([f"{a}.max({dim})", f"torch.topk({a}, {k}, {dim})"]), count=2)
    g.used.add(indices)  # with equal values the order is a kernel's own
    g.hidden.add(indices)


@op(2)
def matmul(g: Draft) -> None:
    a = g.pick(lambda t: t.dtype == F32 and t.dim() in (2, 3))
    t = g.values[a]
    weight = g.hold("p", torch.randn(g.rng.randint(1, 5), t.shape[-1]) / 2)
    forms = [f"F.linear({a}, {weight})", f"{a} @ {a}.transpose(-1, -2)"]
    g.one(g.rng.choice(forms), rough=True)


@op(2)
def normalise(g: Draft) -> None:
    a = g.pick(lambda t: has_rank(t) and t.dtype == F32 and t.shape[-1] > 1)
    n = g.values[a].shape[-1]
    g.one(g.rng.choice([f"torch.softmax({a}, -1)", f"F.layer_norm({a}, ({n},), eps=0.1)"]), rough=True)


@op(3)
def image(g: Draft) -> None:
    """Convolution and pooling."""
    a = g.pick(lambda t: t.dtype == F32 and t.dim() == 4)
    t = g.values[a]
    if g.rng.random() < 0.3 and min(t.shape[2:]) > 1:
        form, rough = g.rng.choice([("F.max_pool2d({}, 2)", False), ("F.avg_pool2d({}, 2)", True)])
        g.one(form.format(a), rough)
        return
    kernel = g.rng.choice([1, 1, 3])
    weight = g.hold("p", torch.randn(g.rng.randint(1, 4), t.shape[1], kernel, kernel) / 3)
    g.one(f"F.conv2d({a}, {weight}, padding={kernel // 2})", rough=True)


# -- channels last. Left out: scalars and slices, which stock's kernels refuse; concats other than along the first
# dimension, which they get wrong.


@op(3)
def channels_last(g: Draft) -> None:
    if not g.channels_last:
        raise Rejected
    a = g.rng.choice(sorted(g.channels_last))
    t = g.values[a]
    mates = [n for n in g.channels_last if g.values[n].shape == t.shape]
    joint = [n for n in g.channels_last if g.values[n].shape[1:] == t.shape[1:]]
    forms = [g.rng.choice(["torch.relu({})", "-{}", "torch.abs({})", "torch.clamp({}, -1, 1)"]).format(a)]
    forms.append(g.rng.choice(BINARY[F32]).format(a, g.rng.choice(sorted(mates))))
    forms.append(f"torch.cat([{', '.join(g.rng.choices(sorted(joint), k=2))}])")
    g.channels_last.add(g.one(g.rng.choice(forms)))
