"""What may share storage in a program, under the user's policy; and, after the solve, what became of each op."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from planner.program.dataflow import Dataflow, Role
from planner.program.share_rules import Candidate, Share, Tie, candidate_of
from solvers.problem.buffers import Colocation, Kind


@dataclass(frozen=True)
class Policy:
    """What the user allows.

    Attributes
    ----------
    share : frozenset of Share
        The kinds of sharing to look for.
    alias_outputs : bool
        Let outputs show bytes of each other, of an input or of a buffer: a caller that writes into one changes the
        other.
    preserve_inputs : bool
        Planned inputs hold their values to the end of a run.
    feedback_safe : bool
        No output lies on an input, so that an output may be handed in as the next run's input.
    min_part_alignment : int
        Bytes; a tensor inside another lies at a multiple of it.
    why_not : str
        The reason that ops get whose kind is not looked for.
    """

    share: frozenset[Share] = frozenset(Share)
    alias_outputs: bool = False
    preserve_inputs: bool = False
    feedback_safe: bool = False
    min_part_alignment: int = 1
    why_not: str = "switched off"


class Outcome(StrEnum):
    """What became of an op that could have shared."""

    SHARED = "shared"
    PARTIAL = "copied in part"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one op.

    Attributes
    ----------
    op : str
    share : Share
    outcome : Outcome
    placed : tuple of int
        Positions in place: parts of a concat, results of a view, the operand written onto.
    nbytes, copied : int
        Bytes that the op copies as it was, and now.
    reason : str
        Why not all of it.
    """

    op: str
    share: Share
    outcome: Outcome
    placed: tuple[int, ...] = ()
    nbytes: int = 0
    copied: int = 0
    reason: str = ""

    @property
    def elided(self) -> bool:
        """Does the op no longer run as it was?"""
        return self.share is not Share.IN_PLACE and self.outcome is not Outcome.REFUSED


@dataclass(frozen=True)
class Sharing:
    """Every op that could share, and the ties that the policy leaves, as optional colocations."""

    candidates: tuple[Candidate, ...] = ()
    against_policy: Mapping[Colocation, str] = field(default_factory=dict)

    @cached_property
    def ties(self) -> tuple[Colocation, ...]:
        """The colocations to choose from."""
        every = (t.colocation for c in self.candidates for t in c.ties)
        return tuple(c for c in dict.fromkeys(every) if c not in self.against_policy)


def find_sharing(flow: Dataflow, policy: Policy) -> Sharing:
    """Look at every op.

    Parameters
    ----------
    flow : Dataflow
    policy : Policy
    """
    candidates = []
    for op in flow.ops:
        found = candidate_of(flow, op)
        if found is not None and found.share not in policy.share:
            found = Candidate(op, found.share, (), found.sizes, {-1: policy.why_not})
        if found is not None:
            candidates.append(found)
    return Sharing(tuple(candidates), _Refusals(flow, policy).refuse(candidates))


def decide(sharing: Sharing, active: Collection[Colocation], why: Mapping[Colocation, str]) -> tuple[Decision, ...]:
    """What became of each op.

    Parameters
    ----------
    sharing : Sharing
    active : collection of Colocation
        The ties that the plan keeps.
    why : dict of Colocation to str
        Why a tie is not among them.
    """
    reasons = {**sharing.against_policy, **why}
    return tuple(_decision(c, active, reasons) for c in sharing.candidates)


def _decision(c: Candidate, active: Collection[Colocation], reasons: Mapping[Colocation, str]) -> Decision:
    placed = tuple(sorted({t.position for t in c.ties if t.colocation in active}))
    left_out = [t for t in c.ties if t.position not in placed]
    because = [*c.refused.values(), *(reasons.get(t.colocation, "left out by the solver") for t in left_out)]
    reason = "; ".join(dict.fromkeys(because))
    if c.share is Share.IN_PLACE:
        outcome = Outcome.SHARED if placed else Outcome.REFUSED
        return Decision(c.op.name, c.share, outcome, placed, reason="" if placed else reason)
    copied = sum(n for k, n in enumerate(c.sizes) if k not in placed)
    if copied == 0 and -1 not in c.refused:
        return Decision(c.op.name, c.share, Outcome.SHARED, placed, c.nbytes)
    outcome = Outcome.PARTIAL if placed else Outcome.REFUSED
    return Decision(c.op.name, c.share, outcome, placed, c.nbytes, copied, reason)


class _Refusals:
    """The ties that the policy forbids, or that would let someone see bytes change that must not.

    Ties are added one by one, those that save most first; one is refused if with it two tensors would show the same
    bytes that the policy keeps apart, or a tensor would still show bytes of a buffer after it is written in place.
    """

    def __init__(self, flow: Dataflow, policy: Policy) -> None:
        self.flow = flow
        state = {t.id for t in flow.tensors if t.role is Role.STATE}
        self.outputs = {flow.root(i).id for i in flow.outputs} - state
        self.inputs = {t.id for t in flow.tensors if t.role is Role.INPUT}
        self.apart_from_outputs: set[str] = set()
        if not policy.alias_outputs:
            self.apart_from_outputs |= self.outputs | state
        if not policy.alias_outputs or policy.feedback_safe:
            self.apart_from_outputs |= self.inputs
        self.least = policy.min_part_alignment
        self.special = self.outputs | self.apart_from_outputs | flow.mutated
        self.place: dict[str, tuple[_Island, int]] = {}
        for c in flow.ties:
            self._join(c, anyhow=True)

    def refuse(self, candidates: Iterable[Candidate]) -> dict[Colocation, str]:
        """The refused ties, with reasons."""
        same = [t for c in candidates for t in c.ties if t.colocation.kind is Kind.SAME]
        refused = {}
        for tie in sorted(same, key=_most_saved_first):
            if why := self._misplaced(tie.colocation) or self._join(tie.colocation):
                refused[tie.colocation] = why
        return refused

    def _misplaced(self, c: Colocation) -> str:
        if c.at % self.least:
            return f"its place, {c.at} bytes into {c.whole!r}, is no multiple of {self.least}"
        return ""

    def _join(self, c: Colocation, anyhow: bool = False) -> str:
        """Tie two islands together, unless something is wrong then: what is returned, else empty."""
        (one, at_whole), (other, at_part) = self._island(c.whole), self._island(c.part)
        shift = at_whole + c.at - at_part
        if one is other:
            return "" if shift == 0 else self._clash_anywhere(one)
        if len(one.members) < len(other.members):
            one, other, shift = other, one, -shift
        moved = {i: at + shift for i, at in other.members.items()}
        if not anyhow and (why := self._clash_between(one, other, moved)):
            return why
        one.members |= moved
        one.special |= other.special
        self.place |= {i: (one, at) for i, at in moved.items()}
        return ""

    def _island(self, i: str) -> tuple[_Island, int]:
        if i not in self.place:
            self.place[i] = _Island({i: 0}, {i} & self.special), 0
        island = self.place[i][0]
        return island, island.members[i]

    def _clash_between(self, one: _Island, other: _Island, moved: Mapping[str, int]) -> str:
        pairs = [(a, b) for a in one.special for b in moved] + [(a, b) for b in other.special for a in one.members]
        for a, b in pairs:
            low, high = one.members[a], moved[b]
            apart = low >= high + self.flow.by_id[b].nbytes or high >= low + self.flow.by_id[a].nbytes
            if not apart and (why := self._clash(a, b) or self._clash(b, a)):
                return why
        return ""

    def _clash_anywhere(self, island: _Island) -> str:
        """For two ways around that lead to different places: is there any pair to be kept apart?"""
        pairs = ((a, b) for a in island.special for b in island.members if a != b)
        return next((why for a, b in pairs if (why := self._clash(a, b))), "")

    def _clash(self, a: str, b: str) -> str:
        if a in self.outputs and b in self.apart_from_outputs:
            return f"output {a!r} would show bytes of {self._kind(b)} {b!r}"
        start, end = self.flow.lifetimes[b]
        if any(start <= step < end for step in self.flow.mutations.get(a, ())):
            return f"{b!r} would show bytes of {a!r} after {a!r} is written in place"
        return ""

    def _kind(self, i: str) -> str:
        return "input" if i in self.inputs else "output" if i in self.outputs else "buffer"


@dataclass
class _Island:
    """Tensors that ties hold together, with their offsets, and those of them that must be kept apart from some."""

    members: dict[str, int]
    special: set[str]


def _most_saved_first(tie: Tie) -> int:
    return -(tie.colocation.saves or 0)
