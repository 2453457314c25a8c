"""The judge of a plan against its problem. It shares no code with the players: no groups, no segments.

Every two buffers that live in a common step and overlap in address must be excused: by ties that make the
overlapping bytes the very same bytes, or by a hand-off in its one step.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping

from solvers.problem.buffers import Buffer, Kind
from solvers.problem.problem import Problem
from solvers.problem.result import Solution


class VerificationError(Exception):
    """A plan that breaks its problem. ``violations`` lists every broken rule, one sentence each."""

    def __init__(self, violations: list[str]) -> None:
        self.violations = violations
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        super().__init__(violations[0] + more)


def verify(problem: Problem, solution: Solution) -> int:
    """Judge a plan.

    Parameters
    ----------
    problem : Problem
    solution : Solution

    Returns
    -------
    int
        The peak, bytes.

    Raises
    ------
    VerificationError
        Listing what is wrong, up to a hundred violations.
    """
    violations = list(_places(problem, solution))
    if not violations:
        violations += _ties(problem, solution)
    if not violations:
        violations += _overlaps(problem, solution)
    if violations:
        raise VerificationError(violations[:100])
    return peak_of(problem, solution)


def peak_of(problem: Problem, solution: Solution) -> int:
    """Largest offset plus size, bytes; 0 for an empty problem."""
    return max((solution.offsets[b.id] + b.size for b in problem.buffers), default=0)


def _places(problem: Problem, solution: Solution) -> Iterator[str]:
    known = {b.id for b in problem.buffers}
    for extra in sorted(solution.offsets.keys() - known):
        yield f"the plan places {extra!r}, which is no buffer of the problem"
    limit = math.inf if problem.capacity is None else problem.capacity
    for b in problem.buffers:
        at = solution.offsets.get(b.id)
        if type(at) is int and at >= 0 and at % b.alignment == 0 and b.offset is None and at + b.size <= limit:
            continue
        if at is None:
            yield f"buffer {b.id!r} has no offset"
        elif isinstance(at, bool) or not isinstance(at, int) or at < 0:
            yield f"buffer {b.id!r} has offset {at!r}: it must be an integer of at least 0"
        elif at % b.alignment:
            yield f"buffer {b.id!r} is at {at}: not a multiple of its alignment, {b.alignment}"
        elif b.offset is not None and at != b.offset:
            yield f"buffer {b.id!r} is at {at}: it is pinned at {b.offset}"
        elif problem.capacity is not None and at + b.size > problem.capacity:
            yield f"buffer {b.id!r} ends at {at + b.size}: beyond the capacity, {problem.capacity}"


def _ties(problem: Problem, solution: Solution) -> Iterator[str]:
    on = set()
    for k in solution.active:
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(problem.colocations):
            yield f"active colocation {k!r} does not exist: the problem has {len(problem.colocations)}"
        else:
            on.add(k)
    for k, c in enumerate(problem.colocations):
        if k in on:
            away = solution.offsets[c.part] - solution.offsets[c.whole]
            if away != c.at:
                yield f"colocation {k}: {c.part!r} is at {away} inside {c.whole!r}, it must be at {c.at}"
        elif c.required:
            yield f"colocation {k} of {c.part!r} in {c.whole!r} is required but not active"


def _overlaps(problem: Problem, solution: Solution) -> Iterator[str]:
    """Sweep over time. Buffers that no active colocation ties must be clear of all others: they are kept by address,
    so that only neighbours need a look. Tied ones may show the same bytes: see `_Crowd`."""
    buffers, offsets = problem.buffers, solution.offsets
    crowd = _Crowd(problem, solution)
    yield from crowd.values.broken
    births = sorted((k for k, b in enumerate(buffers) if b.size), key=[b.start for b in buffers].__getitem__)
    ends = [b.end for b in buffers]
    deaths = sorted(births, key=ends.__getitem__)
    live: list[int] = []  # offsets of the live buffers that are not in the crowd: disjoint ones
    who: list[int] = []  # their indices
    gone = 0
    for k in births:
        new = buffers[k]
        while ends[deaths[gone]] <= new.start:
            j = deaths[gone]
            gone += 1
            if j in crowd:
                crowd.remove(j)
            else:
                n = bisect_left(live, offsets[buffers[j].id])
                del live[n], who[n]
        at = offsets[new.id]
        first, last = bisect_left(live, at), bisect_left(live, at + new.size)
        if first and live[first - 1] + buffers[who[first - 1]].size > at:
            first -= 1
        met = who[first:last]
        if crowd.here:
            met = met + crowd.unexcused(k)
        for j in met:
            yield _overlap(buffers[j], new, offsets)
        if met or new.id in crowd.values.tied:
            crowd.add(k)
        else:
            live.insert(first, at)
            who.insert(first, k)


def _overlap(old: Buffer, new: Buffer, offsets: Mapping[str, int]) -> str:
    low = max(offsets[old.id], offsets[new.id])
    high = min(offsets[old.id] + old.size, offsets[new.id] + new.size)
    steps = f"[{max(old.start, new.start)}, {min(old.end, new.end)})"
    return f"buffers {old.id!r} and {new.id!r} overlap: both hold bytes [{low}, {high}) in steps {steps}"


class _Crowd:
    """The live buffers that may overlap others, and those that do: by size class, so that few are looked at."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.buffers = problem.buffers
        self.at = solution.offsets
        self.values = _Values(problem, solution)
        self.members: set[int] = set()
        self.here: dict[int, list[tuple[int, int]]] = {}  # size class -> sorted (offset, index)

    def __contains__(self, k: int) -> bool:
        return k in self.members

    def add(self, k: int) -> None:
        b = self.buffers[k]
        self.members.add(k)
        insort(self.here.setdefault(b.size.bit_length(), []), (self.at[b.id], k))

    def remove(self, k: int) -> None:
        b = self.buffers[k]
        self.members.remove(k)
        row = self.here[b.size.bit_length()]
        del row[bisect_left(row, (self.at[b.id], k))]

    def unexcused(self, k: int) -> list[int]:
        """Live buffers of the crowd that buffer ``k`` overlaps and must not."""
        new = self.buffers[k]
        at, end = self.at[new.id], self.at[new.id] + new.size
        found = []
        for size_class, row in self.here.items():
            first = bisect_left(row, (at - (1 << size_class), -1))
            for other_at, j in row[first : bisect_left(row, (end, -1))]:
                old = self.buffers[j]
                low, high = max(at, other_at), min(end, other_at + old.size)
                if low < high and not self.values.excused(old, new, low, high):
                    found.append(j)
        return found


Shown = tuple[int, int, str]  # addresses [low, high) and the buffer that wrote what they hold


class _Values:
    """Whose bytes a buffer shows, at the addresses of the plan."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.at = solution.offsets
        self.buffers = {b.id: b for b in problem.buffers}
        self.sources: dict[str, list[str]] = defaultdict(list)
        self.givers: dict[str, set[str]] = defaultdict(set)  # successor -> predecessors
        for c in (problem.colocations[k] for k in solution.active):
            if c.kind is Kind.HANDOFF:
                self.givers[c.part].add(c.whole)
            elif self.buffers[c.whole].start < self.buffers[c.part].start:
                self.sources[c.part].append(c.whole)  # a slice shows what it is cut from
            else:
                self.sources[c.whole].append(c.part)  # a concat shows its parts
        self.tied = {*self.sources, *self.givers}
        self.tied |= {i for many in (self.sources, self.givers) for some in many.values() for i in some}
        self.pieces: dict[str, list[Shown]] = {}
        self.broken: list[str] = []
        self.showing: dict[str, list[str]] = defaultdict(list)  # writer -> who shows bytes of it
        for i in self.tied:
            self._resolve(i)
        for i, pieces in self.pieces.items():
            for writer in {w for _, _, w in pieces}:
                self.showing[writer].append(i)

    def _resolve(self, i: str) -> None:
        """Fill in the pieces of ``i``, those of its sources first."""
        path = [i]
        while path:
            here = path[-1]
            todo = [s for s in self.sources[here] if s not in self.pieces]
            if here in self.pieces or not todo:
                if here not in self.pieces:
                    self.pieces[here] = self._merged(here)
                path.pop()
            elif todo[0] in path:
                self.broken.append(f"the ties of {here!r} go in a circle: no one writes its bytes")
                self.pieces[here] = []
                path.pop()
            else:
                path.append(todo[0])

    def _merged(self, i: str) -> list[Shown]:
        """The bytes of ``i`` by writer."""
        low, high = self.at[i], self._end(i)
        given = [
            (max(a, low), min(b, high), w)
            for s in self.sources[i]
            for a, b, w in self.pieces[s]
            if a < high and low < b
        ]
        borders = sorted({low, high, *(x for a, b, _ in given for x in (a, b))})
        writers: list[set[str]] = [set() for _ in borders]
        for a, b, w in set(given):
            for k in range(bisect_left(borders, a), bisect_left(borders, b)):
                writers[k].add(w)
        out: list[Shown] = []
        for a, b, found in zip(borders, borders[1:], writers, strict=False):
            if len(found) > 1:
                self.broken.append(f"buffers {' and '.join(map(repr, sorted(found)))} both write [{a}, {b}) of {i!r}")
            writer = min(found, default=i)
            if out and out[-1][2] == writer:
                out[-1] = (out[-1][0], b, writer)
            else:
                out.append((a, b, writer))
        return out

    def _end(self, i: str) -> int:
        return self.at[i] + self.buffers[i].size

    def excused(self, one: Buffer, other: Buffer, low: int, high: int) -> bool:
        """May both hold addresses ``[low, high)`` while both live?"""
        if one.id not in self.tied or other.id not in self.tied:
            return False
        return all(
            w == v or self._handed_over(w, v, a, b) or self._handed_over(v, w, a, b)
            for a, b, w, v in _overlaid(self.pieces[one.id], self.pieces[other.id], low, high)
        )

    def _handed_over(self, old: str, new: str, low: int, high: int) -> bool:
        """Did the predecessor hand these bytes over in its last step, and needs no one else what ``old`` wrote there,
        from that step on?"""
        if new not in self.givers or old not in self.buffers:
            return False
        step = self.buffers[new].start
        later = {
            i
            for i in self.showing[old]
            if self.buffers[i].end > step and any(w == old and a < high and low < b for a, b, w in self.pieces[i])
        }
        return len(later) == 1 and later <= self.givers[new] and all(self.buffers[i].end == step + 1 for i in later)


def _overlaid(one: list[Shown], other: list[Shown], low: int, high: int) -> Iterator[tuple[int, int, str, str]]:
    """Both lists at once: ranges within ``[low, high)`` with the writer in each."""
    j = bisect_right(one, low, key=lambda p: p[1])
    k = bisect_right(other, low, key=lambda p: p[1])
    while low < high and j < len(one) and k < len(other):
        end = min(high, one[j][1], other[k][1])
        yield low, end, one[j][2], other[k][2]
        low = end
        j += one[j][1] == end
        k += other[k][1] == end
