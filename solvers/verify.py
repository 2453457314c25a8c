"""The judge of a plan against its problem. It shares no code with the players: no groups, no segments.

Every two buffers that live in a common step and overlap in address must be excused: by ties that make the
overlapping bytes the very same bytes, or by a hand-off in its one step.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator

from solvers.buffers import Buffer, Colocation, Kind
from solvers.problem import Problem
from solvers.result import Solution


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
        violations += _overlaps(problem, solution)
    if violations:
        raise VerificationError(violations[:100])
    return peak_of(problem, solution)


def peak_of(problem: Problem, solution: Solution) -> int:
    """Largest offset plus size, bytes; 0 for an empty problem."""
    return max((solution.offsets[b.id] + b.size for b in problem.buffers), default=0)


def _places(problem: Problem, solution: Solution) -> Iterator[str]:
    known = {b.id for b in problem.buffers}
    for extra in sorted(set(solution.offsets) - known):
        yield f"the plan places {extra!r}, which is no buffer of the problem"
    for b in problem.buffers:
        at = solution.offsets.get(b.id)
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
    on = set(solution.active)
    for k in sorted(on):
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(problem.colocations):
            yield f"active colocation {k!r} does not exist: the problem has {len(problem.colocations)}"
    for k, c in enumerate(problem.colocations):
        if k in on:
            away = solution.offsets[c.part] - solution.offsets[c.whole]
            if away != c.at:
                yield f"colocation {k}: {c.part!r} is at {away} inside {c.whole!r}, it must be at {c.at}"
        elif c.required:
            yield f"colocation {k} of {c.part!r} in {c.whole!r} is required but not active"


def _overlaps(problem: Problem, solution: Solution) -> Iterator[str]:
    """Sweep over time; the live buffers are kept by size class, so that few that do not overlap are looked at."""
    values = _Values(problem, solution)
    live: dict[int, list[tuple[int, int]]] = defaultdict(list)  # size class -> sorted (offset, index)
    order = sorted((k for k, b in enumerate(problem.buffers) if b.size), key=lambda k: problem.buffers[k].start)
    leaving = sorted(order, key=lambda k: problem.buffers[k].end)
    gone = 0
    for k in order:
        new = problem.buffers[k]
        at = solution.offsets[new.id]
        while gone < len(leaving) and (old := problem.buffers[leaving[gone]]).end <= new.start:
            row = live[old.size.bit_length()]
            del row[bisect_left(row, (solution.offsets[old.id], leaving[gone]))]
            gone += 1
        for size_class, row in live.items():
            first = bisect_left(row, (at - (1 << size_class), -1))
            for other_at, j in row[first : bisect_left(row, (at + new.size, -1))]:
                old = problem.buffers[j]
                low, high = max(at, other_at), min(at + new.size, other_at + old.size)
                if low < high and not values.excused(old, new, low, high):
                    yield (
                        f"buffers {old.id!r} and {new.id!r} overlap: both hold bytes [{low}, {high}) in steps "
                        f"[{new.start}, {min(old.end, new.end)})"
                    )
        insort(live[new.size.bit_length()], (at, k))


class _Values:
    """Whose bytes a buffer shows, at the addresses of the plan."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.at = solution.offsets
        self.buffers = {b.id: b for b in problem.buffers}
        self.ties: dict[str, list[Colocation]] = defaultdict(list)
        self.sources: dict[str, list[str]] = defaultdict(list)
        for k in solution.active:
            if isinstance(k, int) and 0 <= k < len(problem.colocations):
                c = problem.colocations[k]
                self.ties[c.part].append(c)
                self.ties[c.whole].append(c)
                if c.kind is Kind.SAME:
                    slice_of_whole = self.buffers[c.whole].start < self.buffers[c.part].start
                    source, shown_by = (c.whole, c.part) if slice_of_whole else (c.part, c.whole)
                    self.sources[shown_by].append(source)

    def excused(self, old: Buffer, new: Buffer, low: int, high: int) -> bool:
        """May both hold addresses ``[low, high)`` while both live?"""
        if old.id not in self.ties or new.id not in self.ties:
            return False
        cuts = sorted({low, high, *(x for b in (old, new) for x in self._borders(b.id) if low < x < high)})
        return all(
            self._owner(old.id, x) == self._owner(new.id, x) or self._handed_over(old, new, x) for x in cuts[:-1]
        )

    def _borders(self, i: str) -> set[int]:
        """Addresses at which the owner of the bytes of ``i`` may change."""
        out: set[int] = set()
        todo, seen = [i], {i}
        while todo:
            j = todo.pop()
            out |= {self.at[j], self.at[j] + self.buffers[j].size}
            todo += [s for s in self.sources[j] if s not in seen]
            seen.update(self.sources[j])
        return out

    def _owner(self, i: str, address: int) -> str:
        """Follow the ties to the buffer that wrote this byte of ``i``. Two sources that disagree have none."""
        for _ in range(len(self.buffers)):
            over = [s for s in self.sources[i] if self.at[s] <= address < self.at[s] + self.buffers[s].size]
            if not over:
                return i
            if len(over) > 1 and len({self._owner(s, address) for s in over}) > 1:
                return f"{i} (contradiction)"
            i = over[0]
        return f"{i} (circle)"

    def _handed_over(self, old: Buffer, new: Buffer, address: int) -> bool:
        """Is this byte the successor's because the predecessor hands it over in its last step, and no one else
        shows it then?"""
        step = new.start
        if self._owner(new.id, address) != new.id or old.end != step + 1:
            return False
        givers = {c.whole for c in self.ties[new.id] if c.kind is Kind.HANDOFF and c.part == new.id}
        owner = self._owner(old.id, address)
        showing = {
            i
            for i in self.ties
            if (b := self.buffers[i]).end > step >= b.start
            and i != new.id
            and self.at[i] <= address < self.at[i] + b.size
            and self._owner(i, address) == owner
        }
        return len(showing) == 1 and showing <= givers
