"""Loads of banks: how many bytes the groups in a bank need in a step, whatever their offsets.

A relaxation: what loads exclude, no placement can do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from solvers.choose.atoms import Atoms, Steps
from solvers.problem.groups import Group
from solvers.problem.problem import Problem
from solvers.problem.reduce import Task, reduce_groups

MEMBERS_LIMIT = 1_000_000
"""Entries in all rows together: above it there are no rows, and so no model."""

Key = tuple[int, ...]
"""Groups (indices) that may share bytes: if one of them is in a bank, the bank needs these bytes."""


class LoadRow(NamedTuple):
    """A step: the bytes that each key needs there, and how much of a rounding may stick out above the peak, bytes."""

    step: int
    need: Mapping[Key, int]
    pad: int


def rows_of(groups: Sequence[Group | None], above: int) -> list[LoadRow] | None:
    """The loads of rigid groups, in the steps where they need more than ``above`` bytes all together.

    Parameters
    ----------
    groups : sequence of Group or None
        None where a group cannot be in the bank.
    above : int
        Bytes.

    Returns
    -------
    list of LoadRow or None
        None if there are too many entries.
    """
    nothing = Group((), (), 1, 0, None, 0)
    rows: list[LoadRow] = []
    entries = 0
    for task in reduce_groups([g or nothing for g in groups]):
        for row in _sweep(task, above):
            rows.append(row)
            entries += len(row.need)
            if entries > MEMBERS_LIMIT:
                return None
    return rows


def _sweep(task: Task, above: int) -> Iterator[LoadRow]:
    """The steps that no other dominates."""
    r = task.rects
    columns = (task.group[r.block], (r.high - r.low) * task.unit, r.pad, r.start, r.end)
    births: dict[int, list[tuple[int, int, int]]] = {}
    deaths: dict[int, list[tuple[int, int, int]]] = {}
    for group, size, pad, start, end in zip(*(x.tolist() for x in columns), strict=True):
        births.setdefault(start, []).append((group, size, pad))
        deaths.setdefault(end, []).append((group, size, pad))
    need: dict[Key, int] = {}
    pads: dict[int, int] = {}
    total = 0
    for t in range(len(task.steps)):
        for sign, some in ((-1, deaths.get(t, ())), (1, births.get(t, ()))):
            for group, size, pad in some:
                need[group,] = need.get((group,), 0) + sign * size
                pads[pad] = pads.get(pad, 0) + sign
                total += sign * size
                if not need[group,]:
                    del need[group,]
                if not pads[pad]:
                    del pads[pad]
        last = t + 1 == len(task.steps) or t + 1 in deaths
        if last and total > above:
            yield LoadRow(int(task.steps[t]), dict(need), max(pads))


def shared_rows(problem: Problem, above: int) -> list[LoadRow] | None:
    """The loads that hold for every choice of optional colocations; otherwise as `rows_of`.

    The groups are those of the required colocations. Bytes that some choice makes the same count once.
    """
    atoms = Atoms(problem)
    steps = Steps(atoms)
    group_of = {i: k for k, g in enumerate(problem.groups(problem.required)) for i, _ in g.members}
    live = sum(
        len(mine) * (bisect_left(steps.times, b.end) - bisect_left(steps.times, b.start))
        for i, mine in atoms.of.items()
        for b in (problem.buffers[i],)
    )
    if live > MEMBERS_LIMIT:
        return None
    rows = []
    for n, t in enumerate(steps.times):
        if int(steps.apart[n]) * atoms.cell <= above:
            continue
        need: dict[Key, int] = {}
        for members, size in _clusters(atoms, t):
            key = tuple(sorted({group_of[problem.buffers[i].id] for i in members}))
            need[key] = need.get(key, 0) + size * atoms.cell
        rows.append(LoadRow(t, need, steps.pads[n]))
    return rows


def _clusters(atoms: Atoms, t: int) -> list[tuple[set[int], int]]:
    """Live buffers (indices) that may show the same cells in step ``t``, and how many cells."""
    import networkx as nx

    joined: nx.utils.UnionFind[int] = nx.utils.UnionFind()
    for k in atoms.handoffs.get(t, ()):
        for a, b in atoms.links[k]:
            joined.union(atoms.clusters[a], atoms.clusters[b])
    found: dict[int, tuple[set[int], int]] = {}
    buffers = atoms.problem.buffers
    for i, mine in atoms.of.items():
        if buffers[i].start <= t < buffers[i].end:
            for a in mine:
                found.setdefault(joined[atoms.clusters[a]], (set(), atoms.size(a)))[0].add(i)
    return list(found.values())
