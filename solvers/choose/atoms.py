"""Buffers cut into atoms, so that every tie maps atoms of the part onto atoms of the whole one to one.

Addresses are counted in *cells*: every offset of every plan is a multiple of the cell, so what uses a cell uses its
first byte, and two that use one cell hold the same bytes or collide. Atoms that a path of active ``same`` ties
connects hold the same bytes, and those that none can connect never do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from solvers.problem.buffers import Kind
from solvers.problem.problem import Problem

CUTS_LIMIT = 20_000
"""Of one connected component. Beyond it only the component's largest buffer is cut out: a sound relaxation."""

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Atom:
    """Cells ``[low, high)`` of a buffer (its index)."""

    buffer: int
    low: int
    high: int


class Atoms:
    """The atoms of a problem and what its ties can do to them.

    Attributes
    ----------
    cell : int
        Bytes.
    atoms : list of Atom
    links : dict of int to list of (int, int)
        By tie: the atoms of the part and those of the whole that it puts on them.
    near : list of dict of int to list of int
        By atom: its neighbours through ``same`` ties, and which these are.
    handoffs : dict of int to list of int
        The hand-offs of a step.
    clusters : list of int
        By atom: atoms that ``same`` ties can connect have the same number.
    impossible : frozenset of int
        Ties that are at odds with the cells: no plan has them active.
    complete : bool
        False if a component was too large to be cut up.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        groups = [g for g in problem.groups(problem.required) if g.segments]
        size = {b.id: b.size for b in problem.buffers}
        places = (x for g in groups for x in (g.modulus, *(at + g.residue for i, at in g.members if size[i])))
        self.cell = math.gcd(*places) or 1
        self.cells = [-(-b.size // self.cell) for b in problem.buffers]
        self.index = {b.id: k for k, b in enumerate(problem.buffers)}
        self.ends = {k: (self.index[c.part], self.index[c.whole]) for k, c in enumerate(problem.colocations)}
        real = [k for k, ends in self.ends.items() if all(self.cells[i] for i in ends)]
        self.impossible = frozenset(k for k in real if problem.colocations[k].at % self.cell)
        self.complete = True
        self.atoms: list[Atom] = []
        self.of: dict[int, list[int]] = {}
        self.links: dict[int, list[Link]] = {}
        self._cut([k for k in real if k not in self.impossible])
        self._connect()

    def _at(self, k: int) -> int:
        return self.problem.colocations[k].at // self.cell

    def _cut(self, ties: Sequence[int]) -> None:
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(i for i, n in enumerate(self.cells) if n)
        graph.add_edges_from(self.ends[k] for k in ties)
        of_buffer: dict[int, list[int]] = defaultdict(list)
        for k in ties:
            of_buffer[self.ends[k][0]].append(k)
        for component in nx.connected_components(graph):
            mine = [k for i in component for k in of_buffer[i]]
            cuts = self._cuts(mine)
            if cuts is None:
                self.complete = False
                largest = max(component, key=lambda i: (self.cells[i], i))
                cuts, mine, component = {}, [], {largest}
            for i in sorted(component):
                borders = sorted(cuts.get(i, {0, self.cells[i]}))
                self.of[i] = list(range(len(self.atoms), len(self.atoms) + len(borders) - 1))
                self.atoms += [Atom(i, a, b) for a, b in pairwise(borders)]
            for k in mine:
                part, whole = self.ends[k]
                first = next(n for n in self.of[whole] if self.atoms[n].low == self._at(k))
                self.links[k] = [(a, first + n) for n, a in enumerate(self.of[part])]

    def _cuts(self, ties: Sequence[int]) -> dict[int, set[int]] | None:
        """Borders by buffer, carried along the ties until nothing changes; None if there are too many."""
        cuts: dict[int, set[int]] = {}
        ways: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)  # to whom, shift, from, up to
        todo: list[tuple[int, int]] = []
        for k in ties:
            part, whole = self.ends[k]
            at, n = self._at(k), self.cells[part]
            ways[part].append((whole, at, 0, n))
            ways[whole].append((part, -at, at, at + n))
            todo += [(part, 0), (part, n), (whole, 0), (whole, self.cells[whole]), (whole, at), (whole, at + n)]
        count = 0
        while todo:
            i, x = todo.pop()
            mine = cuts.setdefault(i, set())
            if x in mine:
                continue
            mine.add(x)
            count += 1
            if count > CUTS_LIMIT:
                return None
            todo += [(other, x + shift) for other, shift, low, high in ways[i] if low < x < high]
        return cuts

    def _connect(self) -> None:
        import networkx as nx

        self.near: list[dict[int, list[int]]] = [{} for _ in self.atoms]
        self.handoffs: dict[int, list[int]] = defaultdict(list)
        same: nx.utils.UnionFind[int] = nx.utils.UnionFind(range(len(self.atoms)))
        for k, links in self.links.items():
            if self.problem.colocations[k].kind is Kind.HANDOFF:
                self.handoffs[self.problem.buffers[self.ends[k][0]].start].append(k)
                continue
            for a, b in links:
                self.near[a].setdefault(b, []).append(k)
                self.near[b].setdefault(a, []).append(k)
                same.union(a, b)
        self.clusters = [same[a] for a in range(len(self.atoms))]

    def size(self, atom: int) -> int:
        """Cells."""
        return self.atoms[atom].high - self.atoms[atom].low

    def gives(self, giver: int, taker: int, k: int) -> bool:
        """Has the first of two atoms that a ``same`` tie connects the bytes first?"""
        part, whole = (self.problem.buffers[i] for i in self.ends[k])
        first = self.ends[k][1] if whole.start < part.start else self.ends[k][0]
        return self.atoms[giver].buffer == first


class Steps:
    """The steps that no other dominates, and the loads there.

    Attributes
    ----------
    times : list of int
        Steps; something starts there and something ends before the next start.
    pads : list of int
        Bytes, by step: what rounding may stick out above the peak.
    apart, together : numpy.ndarray
        Cells, by step: the load without any sharing, and with all sharing at once, contradictory or not.
    """

    def __init__(self, atoms: Atoms) -> None:
        buffers = [b for b in atoms.problem.buffers if b.size]
        starts = {b.start for b in buffers}
        ends = {b.end for b in buffers}
        changes = sorted(starts | ends)
        self.times = [t for t, after in pairwise(changes) if t in starts and after in ends]
        self.atoms = atoms
        size = [atoms.size(a) for a in range(len(atoms.atoms))]
        mine = [atoms.problem.buffers[a.buffer] for a in atoms.atoms]
        self.apart = self._sum([(b.start, b.end, n) for b, n in zip(mine, size, strict=True)])
        spans: dict[int, tuple[int, int, int]] = {}
        for a, b in enumerate(mine):
            start, end, _ = spans.get(atoms.clusters[a], (b.start, b.end, 0))
            spans[atoms.clusters[a]] = (min(start, b.start), max(end, b.end), size[a])
        self.together = self._sum(list(spans.values()))
        for n, t in enumerate(self.times):
            self.together[n] -= self._handed_over(t)
        self.pads = self._pads()

    def _sum(self, spans: Sequence[tuple[int, int, int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        load = np.zeros(len(self.times) + 1, dtype=np.int64)
        for column, sign in ((0, 1), (1, -1)):
            at = np.searchsorted(self.times, [s[column] for s in spans])
            np.add.at(load, at, [sign * s[2] for s in spans])
        return np.cumsum(load)[:-1]

    def _handed_over(self, t: int) -> int:
        """Cells that the hand-offs of step ``t`` can save at most."""
        import networkx as nx

        joined: nx.utils.UnionFind[int] = nx.utils.UnionFind()
        saved = 0
        for k in self.atoms.handoffs.get(t, ()):
            for a, b in self.atoms.links[k]:
                p, w = self.atoms.clusters[a], self.atoms.clusters[b]
                saved += self.atoms.size(a) if joined[p] != joined[w] else 0
                joined.union(p, w)
        return saved

    def _pads(self) -> list[int]:
        """The largest rounding of a buffer that is live, by step."""
        pads = np.zeros(len(self.times), dtype=np.int64)
        for b, cells in zip(self.atoms.problem.buffers, self.atoms.cells, strict=True):
            if pad := cells * self.atoms.cell - b.size:
                span = slice(*np.searchsorted(self.times, [b.start, b.end]))
                pads[span] = np.maximum(pads[span], pad)
        return [int(p) for p in pads]

    def bytes_at(self, n: int, cells: int) -> int:
        """The floor of the peak that a load of step number ``n`` is."""
        return cells * self.atoms.cell - self.pads[n]

    @property
    def floor(self) -> int:
        """A floor of the peak for every choice, bytes: all sharing at once, or where some buffer must end."""
        problem = self.atoms.problem
        groups = problem.groups(problem.required)
        own = max(((g.base if g.base is not None else g.residue) + g.extent for g in groups), default=0)
        return max([own, *(self.bytes_at(n, int(c)) for n, c in enumerate(self.together))])
