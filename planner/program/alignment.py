"""Which alignment a tensor needs when it may lie in others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from planner.program.dataflow import Dataflow, Tensor
from solvers.problem.buffers import Colocation, Kind

if TYPE_CHECKING:
    import networkx as nx


def alignments(
    flow: Dataflow, ties: Collection[Colocation], min_part_alignment: int = 1, chosen: bool = False
) -> dict[str, int]:
    """The alignment of every tensor under ties, bytes.

    A tensor that comes to lie in another at a place that is no multiple of its alignment, and all that lies in or takes
    the place of such a tensor, needs only the alignment of its elements. A rigid one keeps its own.

    Parameters
    ----------
    flow : Dataflow
    ties : collection of Colocation
    min_part_alignment : int
        Bytes; parts lie at multiples of it.
    chosen : bool
        These ties will all be active. Else some of them may be, and a tensor needs no more than under any choice.
    """
    needs = {t.id: t.alignment for t in flow.tensors}
    every = [*flow.ties, *ties]
    relaxed = _reached(flow, every) if ties else set()
    if chosen:
        relaxed |= _beside_an_anchor(flow, every, relaxed)
    needs |= {i: flow.by_id[i].itemsize for i in relaxed if not flow.by_id[i].rigid}
    parts = {c.part for c in ties if c.kind is Kind.SAME} if chosen else set()
    return needs | {i: math.lcm(needs[i], min_part_alignment) for i in parts}


def _reached(flow: Dataflow, ties: Iterable[Colocation]) -> set[str]:
    """Parts at odd places, their own parts, and what is handed over between them and others."""
    import networkx as nx

    follows: nx.DiGraph[str] = nx.DiGraph()
    odd = set()
    for c in ties:
        follows.add_edge(c.whole, c.part)
        if c.kind is Kind.HANDOFF:
            follows.add_edge(c.part, c.whole)
        if c.at % flow.by_id[c.part].alignment:
            odd.add(c.part)
    return odd.union(*(nx.descendants(follows, i) for i in odd))


def _beside_an_anchor(flow: Dataflow, ties: Iterable[Colocation], relaxed: set[str]) -> set[str]:
    """Of tensors that are tied together but cannot all be aligned, all but those that go with the largest."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    for c in ties:
        graph.add_edge(c.whole, c.part, at=c.at)
        graph.add_edge(c.part, c.whole, at=-c.at)
    out: set[str] = set()
    for component in nx.weakly_connected_components(graph):
        aligned = [flow.by_id[i] for i in sorted(component) if i not in relaxed]
        if len(aligned) > 1:
            anchor = max(aligned, key=lambda t: (t.rigid, t.nbytes))
            at = {anchor.id: 0}
            for here, there in nx.bfs_edges(graph, anchor.id):
                at[there] = at[here] + graph.edges[here, there]["at"]
            out |= {t.id for t in aligned if at[t.id] % _least(t, anchor)}
    return out


def _least(t: Tensor, anchor: Tensor) -> int:
    """What the distance from the anchor must be a multiple of for both to be aligned."""
    return math.gcd(t.alignment, anchor.alignment)
