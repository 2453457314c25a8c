"""From buffers and active colocations to rigid groups of segments.

Active colocations tie buffers at fixed relative offsets. One group is one unknown: the offset of its base. Every
byte of a group has a *writer*, the buffer that is born first of all that show the byte; the byte is needed from the
writer's birth to the last need of anyone who shows it. So a group becomes rectangles (`Segment`) at fixed places
relative to its base, and two groups collide only where their segments do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from solvers.problem.buffers import LIMIT, Buffer, Collision, Colocation, Kind, ProblemError


class Segment(NamedTuple):
    """Bytes ``[low, high)`` relative to the group's base, needed in steps ``[start, end)``."""

    low: int
    high: int
    start: int
    end: int
    writer: str


class Group(NamedTuple):
    """Buffers tied rigidly together.

    Attributes
    ----------
    members : tuple of (str, int)
        Buffer id and its offset relative to the base, bytes; the smallest is 0.
    segments : tuple of Segment
        Disjoint in address and lifetime; none for a group of empty buffers.
    modulus, residue : int
        The base is congruent to ``residue`` modulo ``modulus``: every member's alignment in one rule.
    base : int or None
        Where a pinned member puts the base.
    extent : int
        Bytes from the base to the end of the topmost member.
    """

    members: tuple[tuple[str, int], ...]
    segments: tuple[Segment, ...]
    modulus: int
    residue: int
    base: int | None
    extent: int


Stretch = tuple[int, int, str]  # [low, high) in the group's coordinates and the writer of these bytes


def build_groups(buffers: Sequence[Buffer], active: Sequence[Colocation]) -> tuple[Group, ...]:
    """Tie the buffers by the active colocations.

    Raises
    ------
    ProblemError
        If the colocations contradict each other; the message names the two sides.
    """
    by_id = {b.id: b for b in buffers}
    tied, loose = _places(by_id, active)
    ties: dict[str, list[Colocation]] = defaultdict(list)
    for c in active:
        ties[c.whole].append(c)
        ties[c.part].append(c)
    groups = [_group(by_id, place, ties) for place in tied]
    for b in loose:
        segments = (Segment(0, b.size, b.start, b.end, b.id),) if b.size else ()
        groups.append(Group(((b.id, 0),), segments, b.alignment, 0, b.offset, b.size))
    return tuple(groups)


def _places(by_id: Mapping[str, Buffer], active: Sequence[Colocation]) -> tuple[list[dict[str, int]], list[Buffer]]:
    """Offsets of tied buffers relative to their group's lowest member, group by group; then the untied buffers."""
    if not active:
        return [], list(by_id.values())
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    for c in active:
        graph.add_edge(c.part, c.whole)
    at = {}
    for c in active:
        at[c.part, c.whole] = -c.at  # from the part to the whole
        at[c.whole, c.part] = c.at
    tied, place = [], {}
    tree: nx.Graph[str] = nx.Graph()
    for component in nx.connected_components(graph):
        root = next(iter(sorted(component)))
        offsets = {root: 0}
        for here, there in nx.bfs_edges(graph, root):
            offsets[there] = offsets[here] + at[here, there]
            tree.add_edge(here, there)
        low = min(offsets.values())
        tied.append({i: o - low for i, o in offsets.items()})
        place.update(tied[-1])
    for c in active:
        if (other := place[c.part] - place[c.whole]) != c.at:
            way = " - ".join(repr(i) for i in nx.shortest_path(tree, c.part, c.whole))
            raise ProblemError(
                f"colocations contradict each other: {c.part!r} must be at {c.at} inside {c.whole!r}, "
                f"but by way of {way} it is at {other}"
            )
    return tied, [b for b in by_id.values() if b.id not in place]


def _group(by_id: Mapping[str, Buffer], place: dict[str, int], ties: Mapping[str, list[Colocation]]) -> Group:
    modulus, residue, base = 1, 0, None
    pinned_by = ""
    for i, offset in place.items():
        b = by_id[i]
        modulus, residue = _congruence(modulus, residue, b.alignment, -offset % b.alignment, i)
        if b.offset is not None:
            if base is not None and base != b.offset - offset:
                raise ProblemError(
                    f"buffers {pinned_by!r} and {i!r} are pinned at offsets that their colocations contradict: "
                    f"{by_id[pinned_by].offset} and {b.offset}"
                )
            base, pinned_by = b.offset - offset, i
    if base is not None and (base < 0 or base % modulus != residue):
        raise ProblemError(
            f"buffer {pinned_by!r} is pinned at {by_id[pinned_by].offset}: with its colocations this puts another "
            f"member at a negative or misaligned offset"
        )
    pieces = _pieces(by_id, place, ties)
    handoffs = [c for i in place for c in ties[i] if c.kind is Kind.HANDOFF and c.part == i]
    segments = _check_collisions(by_id, _segments(by_id, pieces), pieces, handoffs)
    extent = max(o + by_id[i].size for i, o in place.items())
    return Group(tuple(place.items()), segments, modulus, residue, base, extent)


def _congruence(m1: int, r1: int, m2: int, r2: int, who: str) -> tuple[int, int]:
    """Both ``x = r1 (mod m1)`` and ``x = r2 (mod m2)`` as one congruence (Chinese remainder theorem)."""
    g = math.gcd(m1, m2)
    if (r2 - r1) % g:
        raise ProblemError(f"buffer {who!r}: its alignment, {m2}, cannot hold at the place its colocations give it")
    lcm = m1 // g * m2
    if lcm > LIMIT:
        raise ProblemError(
            f"buffer {who!r}: its alignment, {m2}, and those of its colocations have a common multiple of {lcm}: "
            f"it must be at most {LIMIT}"
        )
    step = m2 // g
    k = ((r2 - r1) // g * pow(m1 // g, -1, step)) % step if step > 1 else 0
    return lcm, (r1 + m1 * k) % lcm


def _provider(c: Colocation, by_id: Mapping[str, Buffer]) -> str:
    """Who of a ``same`` tie has the bytes first: the part (a concat's), or the whole (a slice's)."""
    return c.whole if by_id[c.whole].start < by_id[c.part].start else c.part


def _pieces(
    by_id: Mapping[str, Buffer], place: Mapping[str, int], ties: Mapping[str, list[Colocation]]
) -> dict[str, list[Stretch]]:
    """For each member the writers of its bytes, sorted by address."""
    import networkx as nx

    gives: nx.DiGraph[str] = nx.DiGraph()
    gives.add_nodes_from(place)
    for i in place:
        for c in ties[i]:
            if c.kind is Kind.SAME and c.part == i:
                giver = _provider(c, by_id)
                gives.add_edge(giver, c.whole if giver == c.part else c.part)
    try:
        order = list(nx.topological_sort(gives))
    except nx.NetworkXUnfeasible:
        cycle = " - ".join(repr(a) for a, _ in nx.find_cycle(gives))
        raise ProblemError(f"colocations go in a circle: {cycle}") from None
    pieces: dict[str, list[Stretch]] = {}
    for i in order:
        low, high = place[i], place[i] + by_id[i].size
        shown = [
            (max(lo, low), min(hi, high), writer)
            for giver in gives.predecessors(i)
            for lo, hi, writer in pieces[giver]
            if max(lo, low) < min(hi, high)
        ]
        pieces[i] = list(_merge(i, place, high, shown))
    return pieces


def _merge(who: str, place: Mapping[str, int], high: int, shown: list[Stretch]) -> Iterable[Stretch]:
    """The bytes of ``who``, up to ``high``, by writer; what nobody provides, ``who`` writes itself."""
    low = at = place[who]
    last = ""  # sorted: the piece that reached `at` also covers every later piece's bytes below it
    for lo, hi, writer in sorted(shown):
        if lo < at and writer != last:
            raise Collision(
                f"colocations contradict each other: {last!r} and {writer!r} both write byte {lo - low} of {who!r}",
                (last, lo - place[last]),
                (writer, lo - place[writer]),
            )
        if lo > at:
            yield at, lo, who
        if hi > at:
            yield max(lo, at), hi, writer
            at, last = hi, writer
    if at < high:
        yield at, high, who


def _segments(by_id: Mapping[str, Buffer], pieces: Mapping[str, list[Stretch]]) -> list[Segment]:
    """Each writer's bytes, cut where the last need of anyone who shows them changes."""
    needs: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for i, shown in pieces.items():
        for low, high, writer in shown:
            needs[writer].append((low, high, by_id[i].end))
    segments: list[Segment] = []
    for writer, wanted in needs.items():
        cuts = sorted({x for low, high, _ in wanted for x in (low, high)})
        latest = dict.fromkeys(cuts, by_id[writer].start)
        where = {x: k for k, x in enumerate(cuts)}
        for low, high, end in set(wanted):
            for k in range(where[low], where[high]):
                latest[cuts[k]] = max(latest[cuts[k]], end)
        start = by_id[writer].start
        for low, high in pairwise(cuts):
            if latest[low] == start:
                continue  # bytes between the writer's own, which a part of it writes
            if segments and (s := segments[-1]).writer == writer and s.high == low and s.end == latest[low]:
                segments[-1] = s._replace(high=high)
            else:
                segments.append(Segment(low, high, start, latest[low], writer))
    return segments


def _check_collisions(
    by_id: Mapping[str, Buffer],
    segments: list[Segment],
    pieces: Mapping[str, list[Stretch]],
    handoffs: list[Colocation],
) -> tuple[Segment, ...]:
    """Refuse two writers at one place and time, but for a hand-off's one step, which is cut off the predecessor."""
    out: list[Segment] = []
    ordered = sorted(segments, key=lambda s: (s.low, s.high, s.start))
    cuts: dict[Segment, list[tuple[int, int]]] = defaultdict(list)
    for n, a in enumerate(ordered):
        for b in ordered[n + 1 :]:
            if b.low >= a.high:
                break
            if not (a.start < b.end and b.start < a.end):
                continue
            old, new = (a, b) if a.start < b.start else (b, a)
            low, high = max(a.low, b.low), min(a.high, b.high)
            if not any(_hands_over(by_id, pieces, c, old, new, low, high) for c in handoffs):
                raise Collision(
                    f"colocations contradict each other: {a.writer!r} and {b.writer!r} are put on the same bytes, "
                    f"and both live in steps [{max(a.start, b.start)}, {min(a.end, b.end)})",
                    (a.writer, low - pieces[a.writer][0][0]),
                    (b.writer, low - pieces[b.writer][0][0]),
                )
            cuts[old].append((low, high))
    for s in ordered:
        out.extend(_cut_last_step(s, cuts[s]) if s in cuts else (s,))
    return tuple(out)


def _hands_over(
    by_id: Mapping[str, Buffer],
    pieces: Mapping[str, list[Stretch]],
    c: Colocation,
    old: Segment,
    new: Segment,
    low: int,
    high: int,
) -> bool:
    """Does ``c`` excuse that ``new`` is written over bytes ``[low, high)`` of ``old`` in the last step of ``old``?

    Only if these bytes are the predecessor's and no one but the predecessor still shows them in that step.
    """
    step = by_id[c.part].start
    if new.writer != c.part or old.end != step + 1:
        return False
    showing = {
        i
        for i, shown in pieces.items()
        if by_id[i].end > step and any(w == old.writer and lo < high and low < hi for lo, hi, w in shown)
    }
    whole = pieces[c.whole]
    return showing == {c.whole} and whole[0][0] <= low and high <= whole[-1][1]


def _cut_last_step(s: Segment, ranges: list[tuple[int, int]]) -> Iterable[Segment]:
    """``s`` without its last step over the address ranges."""
    borders = sorted({s.low, s.high, *(x for r in ranges for x in r)})
    for low, high in pairwise(borders):
        end = s.end - 1 if any(r[0] <= low and high <= r[1] for r in ranges) else s.end
        if s.start < end:
            yield s._replace(low=low, high=high, end=end)
