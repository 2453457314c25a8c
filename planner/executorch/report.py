"""What the pass did to each graph, to be read afterwards and logged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planner.api import Plan
from planner.share_rules import Share
from planner.sharing import Decision, Outcome
from solvers.result import Status


@dataclass(frozen=True)
class ArenaReport:
    """One arena: its ``mem_id``; peak and proven lower bound in bytes; ``gap`` = (peak - bound) / peak."""

    mem_id: int
    peak: int
    lower_bound: int
    status: Status
    solver: str

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
    """

    graph: str
    arenas: tuple[ArenaReport, ...]
    decisions: tuple[Decision, ...]
    fallbacks: tuple[str, ...]
    buffer_sizes: tuple[int, ...]
    wall_time: float
    write_backs: tuple[str, ...] = ()
    struck: bool = False

    @property
    def status(self) -> Status:
        """Optimal if every arena is proven smallest, whatever is shared; feasible if stock's plan was taken."""
        proven = bool(self.arenas) and all(a.status is Status.OPTIMAL for a in self.arenas)
        return Status.OPTIMAL if proven else Status.FEASIBLE

    @property
    def elided(self) -> tuple[str, ...]:
        """Names of the concats and views that no longer run as they were."""
        return tuple(d.op for d in self.decisions if d.elided)

    def of(self, share: Share) -> tuple[Decision, ...]:
        """The decisions on ops of one kind."""
        return tuple(d for d in self.decisions if d.share is share)

    def __str__(self) -> str:
        arenas = "; ".join(
            f"arena {a.mem_id}: {a.peak} bytes, bound {a.lower_bound}, gap {a.gap:.1%}, {a.status} by {a.solver}"
            for a in self.arenas
        )
        lines = [f"{self.graph}: {arenas or 'stock plan'} ({self.wall_time:.2f} s)"]
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
        if self.struck:
            lines.append("  the time limit ended the search: another export may get another plan")
        lines += [f"  fell back: {f}" for f in self.fallbacks]
        return "\n".join(lines)


def report_of(
    graph: str, plan: Plan, buffer_sizes: list[int], fallbacks: list[str], write_backs: tuple[str, ...]
) -> GraphReport:
    """The report of a plan that was written back."""
    arenas = tuple(ArenaReport(m, r.peak or 0, r.lower_bound, r.status, r.solver) for m, r in plan.results.items())
    everything = (*fallbacks, *plan.fallbacks)
    sizes = tuple(buffer_sizes)
    return GraphReport(graph, arenas, plan.decisions, everything, sizes, plan.wall_time, write_backs, plan.struck)
