"""Small dataflows for the tests of sharing, and what became of their ops."""

from planner.program.dataflow import Dataflow, Op, OpKind, Role, Tensor
from planner.program.sharing import Policy, find_sharing


def tensor(name, *shape, **more):
    n = 4
    for extent in shape:
        n *= extent
    order = more.pop("dim_order", tuple(range(len(shape))))
    return Tensor(name, n, more.pop("dtype", "float32"), 4, shape, order, **more)


def op(name, reads, writes, mutates=()):
    return Op(name, OpKind.OPAQUE, tuple(reads), tuple(writes), tuple(mutates))


def cat(name, reads, write, axis=0):
    return Op(name, OpKind.CONCAT, tuple(reads), (write,), (), axis)


def two_parts(part=None, whole=None, role=Role.VALUE, mutate=False):
    """x -> p, q -> w = cat(p, q) -> y, with the part p or the whole w changed."""
    p, w = part or tensor("p", 8), whole or tensor("w", 16)
    ops = [op("f", ["x"], ["p"]), op("g", ["x"], ["q"]), cat("c", ["p", "q"], "w"), op("h", ["w"], ["y"])]
    if role is not Role.VALUE:
        ops = ops[1:]
    if mutate:
        ops.append(op("m", [], [], ["w"]))
    tensors = [tensor("x", 8, role=Role.INPUT), p, tensor("q", 8), w, tensor("y", 16)]
    return Dataflow(ops, tensors, ["y"])


def elementwise(name, reads, write):
    return Op(name, OpKind.OPAQUE, tuple(reads), (write,), tolerates=tuple(reads))


def found(flow, **policy):
    return find_sharing(flow, Policy(**policy))


def outcome(made, name):
    return next(d for d in made.decisions if d.op == name)
