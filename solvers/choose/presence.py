"""Which atoms need cells of their own in a step, as literals over the ties.

Live atoms that active ties connect share one place, so one of them has to be *present* there: where the ties between
atoms form a tree, the first in a fixed order; where they go round in circles, any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solvers.choose.atoms import Atoms

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Literal = Any
"""A literal of the model, or a Python bool."""


def key_of(x: Literal) -> int | None:
    """What tells literals apart (CP-SAT's own comparison makes constraints); None for True."""
    return None if x is True else int(x.index)


class Logic:
    """Conjunctions and disjunctions as literals of a model; constants fold, and nothing is made twice."""

    def __init__(self, model: cp_model.CpModel) -> None:
        self.model = model
        self.made: dict[frozenset[int], Any] = {}

    def negate(self, x: Literal) -> Literal:
        """Not x."""
        return not x if isinstance(x, bool) else ~x

    def all_of(self, some: Sequence[Literal]) -> Literal:
        """True if all are."""
        if any(x is False for x in some):
            return False
        parts = {x.index: x for x in some if x is not True}
        if len(parts) < 2:
            return next(iter(parts.values()), True)
        key = frozenset(parts)
        if key not in self.made:
            both = self.model.new_bool_var("")
            self.model.add_bool_or([both, *(~x for x in parts.values())])
            for x in parts.values():
                self.model.add_implication(both, x)
            self.made[key] = both
        return self.made[key]

    def any_of(self, some: Sequence[Literal]) -> Literal:
        """True if one is."""
        return self.negate(self.all_of([self.negate(x) for x in some]))


@dataclass(frozen=True, slots=True)
class _Node:
    """An atom in breadth-first order: where its parent stands in it, and the ties between the two."""

    atom: int
    parent: int
    ties: tuple[int, ...]
    live: bool


class Presence:
    """Literals by step; atoms that the same ties connect in the same way have the same literals.

    Parameters
    ----------
    logic : Logic
    atoms : Atoms
    active : sequence of literal
        By tie.
    """

    def __init__(self, logic: Logic, atoms: Atoms, active: Sequence[Literal]) -> None:
        self.logic = logic
        self.atoms = atoms
        self.active = active
        self.made: dict[tuple[tuple[object, ...], ...], list[Literal]] = {}

    def at(self, t: int) -> list[tuple[int, Literal]]:
        """The live atoms of step ``t`` and whether they are present."""
        buffers = self.atoms.problem.buffers
        live = [i for i, mine in self.atoms.of.items() if mine and buffers[i].start <= t < buffers[i].end]
        near = self._handed(t)
        out: list[tuple[int, Literal]] = []
        seen: set[int] = set()
        for i in live:
            for a in self.atoms.of[i]:
                if a in seen:
                    continue
                if not self.atoms.near[a] and a not in near:
                    out.append((a, True))
                    continue
                out += self._component(a, t, near, seen)
        return out

    def _handed(self, t: int) -> dict[int, dict[int, list[int]]]:
        """The neighbours that the hand-offs of step ``t`` add."""
        near: dict[int, dict[int, list[int]]] = {}
        for k in self.atoms.handoffs.get(t, ()):
            for a, b in self.atoms.links[k]:
                near.setdefault(a, {}).setdefault(b, []).append(k)
                near.setdefault(b, {}).setdefault(a, []).append(k)
        return near

    def _component(
        self, root: int, t: int, near: Mapping[int, Mapping[int, list[int]]], seen: set[int]
    ) -> list[tuple[int, Literal]]:
        buffers, atoms = self.atoms.problem.buffers, self.atoms
        place = {root: 0}
        nodes = [_Node(root, -1, (), True)]
        circles: list[tuple[int, ...]] = []
        for n, here in enumerate(nodes):  # grows
            around = atoms.near[here.atom]
            for b in dict.fromkeys([*around, *near.get(here.atom, ())]):
                ties = (*around.get(b, ()), *near.get(here.atom, {}).get(b, ()))
                if b in place:
                    if place[b] != here.parent and place[b] < n:
                        circles.append((place[b], n, *ties))
                    continue
                place[b] = len(nodes)
                buffer = buffers[atoms.atoms[b].buffer]
                nodes.append(_Node(b, n, ties, buffer.start <= t < buffer.end))
        seen.update(place)
        key = (*((atoms.atoms[x.atom].buffer, x.parent, x.ties, x.live) for x in nodes), *circles)
        if key not in self.made:
            self.made[key] = self._circular(nodes, circles) if circles else self._exact(nodes)
        return [(x.atom, p) for x, p in zip(nodes, self.made[key], strict=True) if x.live]

    def _edge(self, ties: Sequence[int]) -> Literal:
        return self.logic.any_of([self.active[k] for k in ties])

    def _exact(self, nodes: Sequence[_Node]) -> list[Literal]:
        """``below``: does a live atom hang on a dead one from below; ``before``: from above, or earlier below."""
        both, either = self.logic.all_of, self.logic.any_of
        edges = [self._edge(x.ties) for x in nodes]
        below: list[Literal] = [x.live for x in nodes]
        for n in range(len(nodes) - 1, 0, -1):
            p = nodes[n].parent
            below[p] = nodes[p].live or either([below[p], both([edges[n], below[n]])])
        before: list[Literal] = [x.live for x in nodes]
        present: list[Literal] = [True] * len(nodes)
        for n, x in enumerate(nodes[1:], 1):
            up = both([edges[n], before[x.parent]])
            if x.live:
                present[n] = self.logic.negate(up)
            else:
                before[n] = up if below[n] is not False else False
            if not nodes[x.parent].live:
                before[x.parent] = either([before[x.parent], both([edges[n], below[n]])])
        return present

    def _circular(self, nodes: Sequence[_Node], circles: Sequence[tuple[int, ...]]) -> list[Literal]:
        """Who is absent hangs on a neighbour that is live, or hangs itself; levels forbid to hang in a circle."""
        model, n = self.logic.model, len(nodes)
        edges = [(x.parent, k, x.ties) for k, x in enumerate(nodes[1:], 1)] + [(a, b, ties) for a, b, *ties in circles]
        levels = [model.new_int_var(0, n, "") for _ in nodes]
        hangs: list[Literal] = [False, *(model.new_bool_var("") for _ in nodes[1:])]
        ways: list[list[Literal]] = [[] for _ in nodes]
        for a, b, ties in edges:
            edge = self._edge(ties)
            for here, there in ((a, b), (b, a)):
                if edge is False or here == 0:
                    continue
                way = model.new_bool_var("")
                ways[here].append(way)
                model.add(levels[here] > levels[there]).only_enforce_if(way)
                model.add_bool_or([~way, edge])
                model.add_bool_or([~way, nodes[there].live, hangs[there]])
        for k in range(1, n):
            model.add_bool_or([~hangs[k], *ways[k]])
        return [self.logic.negate(h) for h in hangs]
