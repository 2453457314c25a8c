"""The lock file of an export: its plans, to be used again as long as the same is asked.

A plan that is found in the file is not solved for: its offsets are judged against the problem as it is now, then the
program as it will run. It need not be optimal: the search goes on only when the file is deleted. What the file says of
a plan beside its offsets (status, bound, solver) is taken as it is.

The file belongs to one pass. It is written at the end of an export, as a whole, and only if something in it changed:
graphs that are no more are dropped. A file that cannot be read, or is something else, is never overwritten.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from planner.api import REFUSALS, BanksExceeded, Plan, Planner, PlanningError
from planner.lock.lock_format import LockedGraph, lock_from_json, lock_to_json, locked_graph, request_hash
from planner.program.banking import ANYWHERE, in_banks
from solvers.banks.bank import Bank, aligned
from solvers.files.text import FileError, read_text, write_atomically
from solvers.problem.buffers import Colocation
from solvers.problem.problem import Problem
from solvers.problem.result import Result, Solution, Status
from solvers.verifier import VerificationError, verify

log = logging.getLogger("arena")

REMEDY = "Remedy: export once without frozen, and commit the file"


class LockError(PlanningError):
    """The lock file does not have what it must have; no fallback would help."""


class Lock:
    """A lock file, and what one export makes of it.

    Parameters
    ----------
    path : str or path
    frozen : bool
        Fail where a plan is not in the file; never write.

    Raises
    ------
    ValueError
        If the path is empty or stands for standard input.
    """

    def __init__(self, path: str | os.PathLike[str], frozen: bool = False) -> None:
        self.path = os.fspath(path)
        self.frozen = frozen
        if self.path in ("", "-"):
            raise ValueError(f"lock is {self.path!r}: it must be the path of a file")
        self.forget()

    def forget(self) -> None:
        """The export ended early: nothing of it is kept."""
        self._begun = False
        self._text: str | None = None
        self._file: tuple[LockedGraph, ...] = ()
        self._by_hash: dict[str, list[LockedGraph]] = {}
        self._made: list[LockedGraph] = []

    def plan(self, graph: str, planner: Planner, judge: Callable[[Plan], None]) -> tuple[Plan, bool]:
        """The plan of the file, or a new one.

        Parameters
        ----------
        graph : str
            For messages and the file; need not be unique.
        planner : Planner
        judge : callable
            Uses a plan, or raises one of `REFUSALS` and leaves everything as it was.

        Returns
        -------
        Plan
        bool
            Is it from the file?

        Raises
        ------
        LockError
            If frozen, and the file has no plan that the judges accept.
        FileError
            If the file cannot be read, or is no lock file.
        PlanningError, ProblemError, ReplayError, VerificationError
            If the new plan is refused, or was when the file was written.
        """
        self._begin()
        key = request_hash(planner)
        if found := self._take(key):
            self._made.append(replace(found, graph=graph))
            if found.refused:
                raise PlanningError(found.refused)
            try:
                plan = restored(planner, found)
                judge(plan)
                return plan, True
            except REFUSALS as error:
                self._made.pop()
                self._miss(graph, f"its plan in the lock file {self.path} is refused: {error}")
        else:
            self._miss(graph, self._difference(graph, key))
        try:
            plan = planner.run()
            judge(plan)
        except BanksExceeded:
            raise
        except REFUSALS as error:
            self._made.append(LockedGraph(graph, key, refused=str(error)))
            raise
        self._made.append(locked_graph(graph, key, planner, plan))
        return plan, False

    def close(self) -> None:
        """The export is over: write the file, if anything in it changed.

        Raises
        ------
        LockError
            If someone else wrote the file in the meantime.
        FileError
            If it cannot be written.
        """
        begun, text, before, made = self._begun, self._text, self._file, tuple(self._made)
        self.forget()
        if not begun or self.frozen or made == before:
            return
        if self._read() != text:
            raise LockError(
                f"the lock file {self.path} was changed while the export ran: it is left alone. Every pass needs a "
                f"lock file of its own"
            )
        write_atomically(self.path, lock_to_json(made))
        log.info("%s: written, with the plans of %d graphs", self.path, sum(not g.refused for g in made))

    def _begin(self) -> None:
        """Read the file, at the first graph of an export."""
        if self._begun:
            return
        self._text = self._read()
        if self._text is not None:
            self._file = lock_from_json(self._text, self.path)
        elif not self.frozen and not Path(self.path).absolute().parent.is_dir():
            raise FileError(f"{self.path}: cannot be written: there is no such folder")
        for g in self._file:
            self._by_hash.setdefault(g.problem_sha256, []).append(g)
        self._begun = True

    def _read(self) -> str | None:
        return read_text(self.path) if os.path.exists(self.path) else None

    def _take(self, key: str) -> LockedGraph | None:
        """The first plan of the problem that was not taken yet; of the last one there is never a lack."""
        some = self._by_hash.get(key, [])
        if len(some) > 1:
            return some.pop(0)
        return some[0] if some else None

    def _miss(self, graph: str, why: str) -> None:
        """Fail if frozen; else say that the graph is planned again."""
        if self.frozen:
            raise LockError(f"{graph}: {why}. {REMEDY}")
        log.log(logging.INFO if self._text is None else logging.WARNING, "%s: %s: planned anew", graph, why)

    def _difference(self, graph: str, key: str) -> str:
        if self._text is None:
            return f"there is no lock file {self.path} (the problem's hash is {key})"
        nth = sum(g.graph == graph for g in self._made)
        before = [g.problem_sha256 for g in self._file if g.graph == graph][nth:]
        if not before:
            return f"it is not in the lock file {self.path} (its problem's hash is {key})"
        return f"its problem changed: {before[0]} in the lock file {self.path}, now {key}"


def restored(planner: Planner, found: LockedGraph) -> Plan:
    """A plan from its offsets and active ties, judged against the problem as it is now.

    Raises
    ------
    ProblemError, VerificationError
        If it does not fit, or states another peak than it has.
    """
    ties = planner.sharing.ties
    if found.active and max(found.active) >= len(ties):
        raise VerificationError([f"active tie {max(found.active)} does not exist: there are {len(ties)}"])
    required = (replace(c, required=False) for c in planner.flow.ties)
    active = frozenset((*required, *(ties[k] for k in found.active)))
    problems = _problems(planner, found, active)
    stated = {a.mem_id: a for a in found.arenas}
    if stated.keys() != problems.keys() or len(stated) < len(found.arenas):
        raise VerificationError([f"the plan is of arenas {[a.mem_id for a in found.arenas]}, not {list(problems)}"])
    results = {}
    for mem_id, problem in problems.items():
        a = stated[mem_id]
        solution = Solution(a.offsets, tuple(range(len(problem.colocations))))
        if (peak := verify(problem, solution)) != a.peak:
            raise VerificationError([f"arena {mem_id}: the peak is stated as {a.peak} bytes, and is {peak}"])
        results[mem_id] = Result(
            Status(a.status), solution, peak, a.lower_bound, a.solver, 0.0, a.copies_optimal, proof=a.proof
        )
    made = Plan(problems, results, (), active, found.fallbacks, best_assignment=found.best_assignment)
    return planner.finished(made)


def _problems(planner: Planner, found: LockedGraph, active: frozenset[Colocation]) -> dict[int, Problem]:
    """By arena, what the plan must solve: all the active ties, and every buffer in the bank where it has an offset."""
    exact, banks = planner.problems(active, True), planner.request.banks
    if not banks:
        return exact
    where = {i: a.mem_id for a in found.arenas for i in a.offsets}
    inside = {arena: p for arena, p in exact.items() if in_banks(arena, banks)}
    if lost := [b.id for p in inside.values() for b in p.buffers if not in_banks(where.get(b.id, -1), banks)]:
        raise VerificationError([f"buffer {i!r} has no offset in any bank" for i in lost])
    return {arena: p for arena, p in exact.items() if arena not in inside} | {
        bank.mem_id: _in_bank(bank, inside, where) for bank in banks
    }


def _in_bank(bank: Bank, inside: Mapping[int, Problem], where: Mapping[str, int]) -> Problem:
    """What is in one bank; a tie to what is in another is refused by the problem."""
    buffers, ties = [], []
    for arena, p in inside.items():
        here = {b.id for b in p.buffers if where[b.id] == bank.mem_id}
        if here and arena not in (ANYWHERE, bank.mem_id):
            raise VerificationError([f"buffer {min(here)!r} is in bank {bank.name!r}: it is pinned to another"])
        buffers += [aligned(b, bank) for b in p.buffers if b.id in here]
        ties += [c for c in p.colocations if c.part in here or c.whole in here]
    return Problem(buffers, ties, bank.size)
