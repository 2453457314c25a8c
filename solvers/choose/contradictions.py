"""From a choice that contradicts itself to clauses that every legal choice keeps.

Ties that are at odds in their offsets, alignments or order are so whatever else is active. Two writers on one byte
are not: another tie may make them one. So such a clause names what could, or rules out this one choice alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.choose.load_model import Choices, Clause, saves
from solvers.deadline import Deadline
from solvers.problem.buffers import Collision, ProblemError
from solvers.problem.groups import build_groups

WORK_LIMIT = 100_000
"""Colocations looked at in one search for clauses."""


def contradictions(choices: Choices, active: Sequence[int], deadline: Deadline) -> list[Clause]:
    """Clauses that the choice breaks; none if it does not contradict itself.

    Parameters
    ----------
    choices : Choices
    active : sequence of int
        All that are active, the required ones included.
    deadline : Deadline
        When it has passed, one clause will do.
    """
    return _Search(choices, deadline).clauses(active)


class _Search:
    def __init__(self, choices: Choices, deadline: Deadline) -> None:
        self.choices = choices
        self.deadline = deadline
        self.problem = choices.problem
        self.work = 0

    @property
    def tired(self) -> bool:
        """Is it time to make do with what was found?"""
        return self.work > WORK_LIMIT or self.deadline.passed

    def clauses(self, active: Sequence[int]) -> list[Clause]:
        out: dict[Clause, None] = {}
        for ties in self._components(active):
            while self._error(ties) is not None:
                core = self._core(ties)
                out[self._clause(core, active)] = None
                if self.tired:
                    return list(out)
                optional = [k for k in core if k not in self.choices.required]
                least = min(optional, key=lambda k: (saves(self.problem, k), k))
                ties = [k for k in ties if k != least]
        return list(out)

    def _components(self, ties: Sequence[int]) -> list[list[int]]:
        import networkx as nx

        ends = {k: (c.part, c.whole) for k, c in enumerate(self.problem.colocations)}
        joined: nx.utils.UnionFind[str] = nx.utils.UnionFind()
        for k in ties:
            joined.union(*ends[k])
        out: dict[str, list[int]] = {}
        for k in ties:
            out.setdefault(joined[ends[k][0]], []).append(k)
        return list(out.values())

    def _error(self, ties: Sequence[int]) -> ProblemError | None:
        self.work += len(ties)
        some = [self.problem.colocations[k] for k in sorted(ties)]
        tied = dict.fromkeys(i for c in some for i in (c.part, c.whole))
        try:
            build_groups([self.problem.by_id[i] for i in tied], some)
        except ProblemError as error:
            return error
        return None

    def _core(self, ties: Sequence[int]) -> list[int]:
        """A part of the ties that contradicts itself: ever smaller chunks are left out where that can be."""
        required = [k for k in ties if k in self.choices.required]
        core = [k for k in ties if k not in self.choices.required]
        chunk = (len(core) + 1) // 2
        while chunk:
            n = 0
            while n < len(core) and not self.tired:
                rest = core[:n] + core[n + chunk :]
                if self._error([*required, *rest]) is not None:
                    core = rest
                else:
                    n += chunk
            chunk //= 2
        return [*required, *core]

    def _clause(self, core: Sequence[int], active: Sequence[int]) -> Clause:
        off = tuple(sorted(set(core) - self.choices.required))
        error = self._error(core)
        if not isinstance(error, Collision):
            return Clause(off)
        repairs = self._repairs(error)
        if repairs is not None:
            unless = repairs - set(core)
            if not unless & set(active):
                return Clause(off, tuple(sorted(unless)))
        everything = range(len(self.problem.colocations))
        mine = next(set(part) for part in self._components(everything) if core[0] in part) - self.choices.required
        return Clause(tuple(sorted(mine & set(active))), tuple(sorted(mine - set(active))))

    def _repairs(self, error: Collision) -> set[int] | None:
        """The ties that may help: one that makes a writer show what another wrote, or a hand-off from one to the other.

        None if it is not known.
        """
        atoms = self.choices.atoms
        one, other = (self._atom(*place) for place in (error.one, error.other))
        if one is None or other is None:
            return None
        given = {k for a in (one, other) for b, ties in atoms.near[a].items() for k in ties if atoms.gives(b, a, k)}
        ends = {atoms.clusters[one], atoms.clusters[other]}
        hand = {
            k
            for many in atoms.handoffs.values()
            for k in many
            if any({atoms.clusters[a], atoms.clusters[b]} == ends for a, b in atoms.links[k])
        }
        return given | hand

    def _atom(self, buffer: str, byte: int) -> int | None:
        atoms = self.choices.atoms
        for a in atoms.of.get(atoms.index[buffer], ()):
            if atoms.complete and atoms.atoms[a].low <= byte // atoms.cell < atoms.atoms[a].high:
                return a
        return None
