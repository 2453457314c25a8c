"""What a front end hands over: ops in order, the tensors they read and write, and so lifetimes.

Steps: op ``k`` runs in step ``k``; inputs and state are there from step -1; outputs and state are still there in the
step after the last op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from solvers.problem.buffers import Colocation


class Role(StrEnum):
    """What a tensor is to the program."""

    VALUE = "value"
    INPUT = "input"
    CONSTANT = "constant"
    STATE = "state"
    CALLER = "caller"
    """An input of a branch: the caller's tensor, wherever that lies, and not to be written."""
    RESULT = "result"
    """A result of a branch: the runtime may let it lie elsewhere from the second run on."""
    REGION = "region"
    """Memory of a control-flow op's branches; the op's results lie in it."""


class OpKind(StrEnum):
    """How far an op's meaning is known."""

    OPAQUE = "opaque"
    CONCAT = "concat"
    SLICE = "slice"
    """Every result is a stretch of the one operand along a dimension."""
    RESHAPE = "reshape"
    """The result is the one operand's elements in the same order; only dimensions of extent 1 come or go."""
    CONTROL_FLOW = "control flow"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor.

    Attributes
    ----------
    id : str
    nbytes : int
        Bytes that it occupies (the upper bound if its shape is dynamic).
    dtype : str
    itemsize : int
        Bytes per element.
    shape, dim_order : tuple of int
        ``dim_order`` lists the dimensions from outermost to innermost in memory.
    role : Role
    arena : int or None
        Which arena it is planned into; None if this plan does not place it.
    static : bool
        Is the shape fixed?
    alignment : int
        Bytes, when it stands alone.
    rigid : bool
        It keeps its alignment and its size rounded up to it even inside another tensor (a delegate relies on it).
    base : str or None
        The tensor whose bytes it shows, if it is a view of all of them.
    offset : int or None
        Where it must lie, bytes; None if the plan may choose.
    """

    id: str
    nbytes: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    role: Role = Role.VALUE
    arena: int | None = 1
    static: bool = True
    alignment: int = 16
    rigid: bool = False
    base: str | None = None
    offset: int | None = None

    @property
    def size(self) -> int:
        """Bytes to reserve."""
        return -(-self.nbytes // self.alignment) * self.alignment if self.rigid else self.nbytes


@dataclass(frozen=True, slots=True)
class Op:
    """An op.

    Attributes
    ----------
    name : str
    kind : OpKind
    reads, writes, mutates : tuple of str
        Ids of the tensors that it reads, writes in full, and writes in place.
    axis : int
        The dimension of a concat, in its result; of a slice, in its operand.
    starts : tuple of int
        Of a slice: index along ``axis`` at which each result starts.
    drops_axis : bool
        Of a slice: the results lack the dimension (select, unbind).
    tolerates : tuple of str
        Operands onto which the op may write its one result, element by element.
    target : str
        For people.
    """

    name: str
    kind: OpKind
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    mutates: tuple[str, ...] = ()
    axis: int = 0
    target: str = ""
    starts: tuple[int, ...] = ()
    drops_axis: bool = False
    tolerates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataflow:
    """A program as the planner sees it.

    Attributes
    ----------
    ops : sequence of Op
        In execution order.
    tensors : sequence of Tensor
    outputs : sequence of str
        Tensor ids.
    born : dict of str to int
        Steps at which a tensor's memory is claimed earlier than its first write.
    held : sequence of str
        Tensors that must last to the end although nothing returns them.
    ties : sequence of Colocation
        Where the program as it is already relies on tensors lying in others: required, never dropped.
    """

    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    outputs: tuple[str, ...] = ()
    born: dict[str, int] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    ties: tuple[Colocation, ...] = ()

    def __init__(
        self,
        ops: Sequence[Op],
        tensors: Sequence[Tensor],
        outputs: Sequence[str] = (),
        born: dict[str, int] | None = None,
        held: Sequence[str] = (),
        ties: Sequence[Colocation] = (),
    ) -> None:
        object.__setattr__(self, "ops", tuple(ops))
        object.__setattr__(self, "tensors", tuple(tensors))
        object.__setattr__(self, "outputs", tuple(outputs))
        object.__setattr__(self, "born", dict(born or {}))
        object.__setattr__(self, "held", tuple(held))
        object.__setattr__(self, "ties", tuple(ties))
        ids = [t.id for t in self.tensors]
        if len(set(ids)) != len(ids):
            raise ValueError("tensor ids of a dataflow must be unique")
        named = {*self.outputs, *self.held, *(i for op in self.ops for i in (*op.reads, *op.writes, *op.mutates))}
        if unknown := named - set(ids):
            raise ValueError(f"tensor {min(unknown)!r} is read, written or returned, but not among the tensors")

    @cached_property
    def by_id(self) -> dict[str, Tensor]:
        """The tensors by id."""
        return {t.id: t for t in self.tensors}

    def root(self, i: str) -> Tensor:
        """The tensor that owns the bytes of ``i``."""
        t = self.by_id[i]
        while t.base is not None:
            t = self.by_id[t.base]
        return t

    @cached_property
    def writer(self) -> dict[str, Op]:
        """The op that fills a tensor, by the id of the tensor that owns the bytes."""
        return {self.root(i).id: op for op in self.ops for i in op.writes}

    @cached_property
    def mutated(self) -> frozenset[str]:
        """Ids of the tensors some op writes in place."""
        return frozenset(self.root(i).id for op in self.ops for i in op.mutates)

    def holding_inputs(self) -> Dataflow:
        """The same program, with its planned inputs intact to the end."""
        held = [t.id for t in self.tensors if t.role is Role.INPUT]
        return Dataflow(self.ops, self.tensors, self.outputs, self.born, held, self.ties)

    @cached_property
    def mutations(self) -> dict[str, list[int]]:
        """The steps in which a tensor is written in place, by the id of the tensor that owns the bytes."""
        steps: dict[str, list[int]] = {}
        for k, op in enumerate(self.ops):
            for i in op.mutates:
                steps.setdefault(self.root(i).id, []).append(k)
        return steps

    @cached_property
    def lifetimes(self) -> dict[str, tuple[int, int]]:
        """Half-open lifetime in steps of every tensor that owns bytes and is ever there."""
        last = len(self.ops)
        life: dict[str, list[int]] = {}

        def needed(i: str, step: int) -> None:
            span = life.setdefault(self.root(i).id, [step, step + 1])
            span[0], span[1] = min(span[0], step), max(span[1], step + 1)

        for t in self.tensors:
            if t.role in (Role.INPUT, Role.CONSTANT, Role.STATE, Role.CALLER):
                needed(t.id, -1)
            if t.role is Role.STATE:
                needed(t.id, last)
        for i, step in self.born.items():
            needed(i, step)
        for k, op in enumerate(self.ops):
            for i in (*op.reads, *op.writes, *op.mutates):
                needed(i, k)
        for i in (*self.outputs, *self.held):
            needed(i, last)
        return {i: (start, end) for i, (start, end) in life.items()}
