"""What the pass did to each graph, to be read afterwards and logged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner.api import Plan
from planner.program.share_rules import Share
from planner.program.sharing import Decision, Outcome
from solvers.banks.bank import Bank
from solvers.problem.result import Status


@dataclass(frozen=True)
class ArenaReport:
    """One arena: its ``mem_id``; peak and proven lower bound in bytes; ``gap`` = (peak - bound) / peak. Of a bank also
    its name, and its capacity in bytes."""

    mem_id: int
    peak: int
    lower_bound: int
    status: Status
    solver: str
    bank: str = ""
    capacity: int | None = None

    def __str__(self) -> str:
        room = "" if self.capacity is None else f" of {self.capacity} bytes"
        bank = f", {self.bank}{room}" if self.bank else ""
        return (
            f"arena {self.mem_id}{bank}: {self.peak} bytes, bound {self.lower_bound}, gap {self.gap:.1%}, "
            f"{self.status} by {self.solver}"
        )

    @property
    def gap(self) -> float:
        """``(peak - lower_bound) / peak``."""
        return (self.peak - self.lower_bound) / self.peak if self.peak else 0.0


@dataclass(frozen=True)
class GraphReport:
    """One graph: a method, or a branch of its control flow.

    Attributes
    ----------
    graph : str
        "method 0", "method 1", ... in the order in which ExecuTorch planned them; branches have their own.
    arenas : tuple of ArenaReport
        Empty if stock's plan was taken.
    decisions : tuple of Decision
        One per concat, view and elementwise op: shared, copied in part, or refused with the reason.
    fallbacks : tuple of str
        What was given up, and why.
    buffer_sizes : tuple of int
        As handed to ExecuTorch, by mem_id, with its padding.
    wall_time : float
        Seconds.
    write_backs : tuple of str
        Names of the ``copy_`` nodes that were moved to where their value is born.
    struck : bool
        The time limit ended the search before its work was done: another export may get another plan.
    best_assignment : bool
        With banks: it is proven that no plan has more in faster banks.
    locked : bool
        The plan is the lock file's: nothing was solved.
    mended : tuple of str
        Buffers whose new value stock copies onto an input of the same name; here it reaches the buffer.
    """

    graph: str
    arenas: tuple[ArenaReport, ...]
    decisions: tuple[Decision, ...]
    fallbacks: tuple[str, ...]
    buffer_sizes: tuple[int, ...]
    wall_time: float
    write_backs: tuple[str, ...] = ()
    struck: bool = False
    best_assignment: bool = True
    locked: bool = False
    mended: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Optimal if every arena is proven smallest, whatever is shared; feasible if stock's plan was taken.

        With banks: if it is proven that no plan has more in faster banks, whatever is shared, and that every bank's
        peak is the smallest for what is in it and shared.
        """
        proven = self.best_assignment and bool(self.arenas) and all(a.status is Status.OPTIMAL for a in self.arenas)
        return Status.OPTIMAL if proven else Status.FEASIBLE

    @property
    def elided(self) -> tuple[str, ...]:
        """Names of the concats and views that no longer run as they were."""
        return tuple(d.op for d in self.decisions if d.elided)

    def of(self, share: Share) -> tuple[Decision, ...]:
        """The decisions on ops of one kind."""
        return tuple(d for d in self.decisions if d.share is share)

    def __str__(self) -> str:
        arenas = "; ".join(map(str, self.arenas))
        locked = ", from the lock file" if self.locked else ""
        lines = [f"{self.graph}: {arenas or 'stock plan'}{locked} ({self.wall_time:.2f} s)"]
        for share in Share:
            if decisions := self.of(share):
                count = Counter(d.outcome for d in decisions)
                lines.append(f"  {share}: " + ", ".join(f"{count[o]} {o}" for o in Outcome if count[o]))
        for d in self.decisions:
            if d.reason:
                bytes_left = f", {d.copied} of {d.nbytes} bytes" if d.outcome is Outcome.PARTIAL else ""
                lines.append(f"    {d.op} {d.outcome}{bytes_left}: {d.reason}")
        if self.write_backs:
            lines.append(f"  {len(self.write_backs)} write-backs moved to where their value is born")
        lines += [
            f"  buffer {b!r}: its new value reaches it; stock copies it onto the input {b!r}" for b in self.mended
        ]
        if self.struck:
            lines.append("  the time limit ended the search: another export may get another plan")
        lines += [f"  fell back: {f}" for f in self.fallbacks]
        return "\n".join(lines)


def report_of(
    graph: str,
    plan: Plan,
    buffer_sizes: list[int],
    fallbacks: list[str],
    write_backs: tuple[str, ...],
    banks: Sequence[Bank] = (),
    anywhere: int = 0,
) -> GraphReport:
    """The report of a plan that was written back; ``anywhere`` is the mem_id of what is not yet in a bank."""
    named: dict[int, tuple[str, int | None]] = {b.mem_id: (b.name, b.size) for b in banks}
    named |= {anywhere: ("any bank", None)} if banks else {}
    arenas = tuple(
        ArenaReport(m, r.peak or 0, r.lower_bound, r.status, r.solver, *named.get(m, ()))
        for m, r in plan.results.items()
    )
    return GraphReport(
        graph,
        arenas,
        plan.decisions,
        (*fallbacks, *plan.fallbacks),
        tuple(buffer_sizes),
        plan.wall_time,
        write_backs,
        plan.struck,
        plan.best_assignment,
    )
