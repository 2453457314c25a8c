"""What is known before any search: which banks a group may be in, the loads, and what no assignment can hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from solvers.banks.bank import Bank, Excess, aligned
from solvers.banks.loads import LoadRow, rows_of, shared_rows
from solvers.banks.model import Setting
from solvers.problem.buffers import ProblemError
from solvers.problem.groups import Group, build_groups
from solvers.problem.problem import Problem


class Limits:
    """A problem and its banks.

    Parameters
    ----------
    problem : Problem
    banks : sequence of Bank
    pins : dict of str to int
        By buffer, the only bank that it may be in (index).
    weights : dict of str to int
        By buffer.

    Attributes
    ----------
    groups : sequence of Group
        Of the required colocations, aligned as without banks.
    inside : list of list of Group or None
        By bank, the groups as they are aligned there; None where one cannot be.
    wanted, allowed : list of tuple of int
        By group, the banks that its pins and alignments leave; and those of them that are large enough for it alone.

    Raises
    ------
    ProblemError
        If a group is pinned to two banks, or cannot be aligned as any bank asks.
    """

    def __init__(
        self, problem: Problem, banks: Sequence[Bank], pins: Mapping[str, int], weights: Mapping[str, int]
    ) -> None:
        self.problem = problem
        self.banks = tuple(banks)
        self.groups = problem.groups(problem.required)
        self._by_alignment = {a: self._aligned(a) for a in {1, *(b.alignment or 1 for b in banks)}}
        self.inside = [self._by_alignment[b.alignment or 1] for b in banks]
        self.wanted = [self._wanted(n, pins) for n in range(len(self.groups))]
        self.allowed = [tuple(k for k in ks if self.end(k, n) <= banks[k].size) for n, ks in enumerate(self.wanted)]
        self.weights = [sum(weights[i] for i, _ in g.members) for g in self.groups]

    def _aligned(self, alignment: int) -> Sequence[Group | None]:
        """The groups where all buffers are aligned so as well."""
        if alignment == 1:
            return self.groups
        bank = Bank("aligned", 0, 1, alignment)
        ties: dict[str, list[int]] = {}
        for k in self.problem.required:
            ties.setdefault(self.problem.colocations[k].part, []).append(k)
        out: list[Group | None] = []
        for g in self.groups:
            mine = sorted(k for i, _ in g.members for k in ties.get(i, ()))
            try:
                buffers = [aligned(self.problem.by_id[i], bank) for i, _ in g.members]
                out += build_groups(buffers, [self.problem.colocations[k] for k in mine])
            except ProblemError:
                out.append(None)
        return out

    def _wanted(self, n: int, pins: Mapping[str, int]) -> tuple[int, ...]:
        members = [i for i, _ in self.groups[n].members]
        pinned = {pins[i]: i for i in members if i in pins}
        if len(pinned) > 1:
            one, other = sorted(pinned.values())[:2]
            raise ProblemError(f"buffers {one!r} and {other!r} are tied together, but pinned to different banks")
        wanted = tuple(k for k in pinned or range(len(self.banks)) if self.inside[k][n] is not None)
        if not wanted:
            raise ProblemError(
                f"buffer {members[0]!r} can be in no bank: its colocations or its pinned offset contradict the "
                f"alignment of each that it may be in"
            )
        return wanted

    def end(self, k: int, n: int) -> int:
        """Where group ``n`` ends at least in bank ``k``, bytes."""
        g = self.inside[k][n]
        assert g is not None
        return (g.residue if g.base is None else g.base) + g.extent

    @cached_property
    def setting(self) -> Setting | None:
        """For the models of this problem; None if the loads are too many."""
        least = min(b.size for b in self.banks)
        rows = {a: rows_of(groups, least) for a, groups in self._by_alignment.items()}
        return self._setting(rows[1], [rows[b.alignment or 1] for b in self.banks])

    @cached_property
    def setting_of_all_choices(self) -> Setting | None:
        """For a ceiling that holds for every choice of optional colocations."""
        rows = shared_rows(self.problem, min(b.size for b in self.banks))
        return self._setting(rows, [rows] * len(self.banks))

    def _setting(self, common: list[LoadRow] | None, rows: Sequence[list[LoadRow] | None]) -> Setting | None:
        known = [r for r in rows if r is not None]
        if common is None or len(known) < len(rows):
            return None
        return Setting(tuple(b.size for b in self.banks), self.allowed, self.weights, known, common)

    def too_large(self) -> Excess | None:
        """A group that no bank holds; of several, the one that most is missing for."""
        found = []
        for n, g in enumerate(self.groups):
            if not self.allowed[n]:
                k = min(self.wanted[n], key=lambda k: self.end(k, n) - self.banks[k].size)
                parts = sorted(((i, self.problem.by_id[i].size) for i, _ in g.members), key=lambda p: (-p[1], p[0]))
                found.append(Excess((self.banks[k].name,), self.end(k, n), self.banks[k].size, None, tuple(parts)))
        return max(found, key=lambda e: e.excess, default=None)

    def overloaded(self, setting: Setting) -> Excess | None:
        """A step in which the groups that may be in some banks only need more than these hold."""
        worst: Excess | None = None
        for banks in dict.fromkeys([tuple(range(len(self.banks))), *self.allowed]):
            size = sum(self.banks[k].size for k in banks)
            only = {g for g, some in enumerate(self.allowed) if set(some) <= set(banks)}
            for row in setting.rows[banks[0]] if len(banks) == 1 else setting.common:
                need = {key: n for key, n in row.need.items() if any(g in only for g in key)}
                required = sum(need.values()) - len(banks) * row.pad
                if required - size > (worst.excess if worst else 0):
                    parts = self.living(row.step, {g for key in need for g in key if g in only})
                    worst = Excess(tuple(self.banks[k].name for k in banks), required, size, row.step, parts)
        return worst

    def over(self, k: int, required: int, here: Collection[int], proven: bool) -> Excess:
        """Bank ``k`` would have to be larger for these groups: blame the step with the highest load."""
        rows = rows_of([g if n in here else None for n, g in enumerate(self.inside[k])], 0) or []
        step = max(rows, key=lambda row: sum(row.need.values())).step if rows else None
        parts = self.living(step, here) if step is not None else ()
        return Excess((self.banks[k].name,), required, self.banks[k].size, step, parts, proven)

    def living(self, step: int, groups: Collection[int]) -> tuple[tuple[str, int], ...]:
        """The writers of what these groups need in a step, and the bytes, the largest first."""
        parts: dict[str, int] = {}
        for n in groups:
            for s in self.groups[n].segments:
                if s.start <= step < s.end:
                    parts[s.writer] = parts.get(s.writer, 0) + s.high - s.low
        return tuple(sorted(parts.items(), key=lambda p: (-p[1], p[0])))
