"""Programs to replan, as bytes."""

from __future__ import annotations

from planner.api import Request
from planner.executorch.compare import lower, run_program, same_bits, to_program
from planner.program.sharing import Policy
from planner.pte.program_file import parse_pte
from planner.pte.replanning import MethodReport, checked_bytes, replan
from solvers.run import Options


def exported(model, inputs, planning_pass=None, partitioner=None) -> bytes:
    """A program with stock's plan, or another's."""
    return bytes(to_program(lower(model, inputs, partitioner), planning_pass).buffer)


def request(**policy) -> Request:
    return Request(Policy(**policy), options=Options(5, workers=1, reproducible=True))


def replanned(pte: bytes, **policy) -> tuple[bytes, list[MethodReport]]:
    made, reports = replan(parse_pte(pte, "program"), request(**policy))
    return checked_bytes(made, "replanned"), reports


def check_replan(pte: bytes, *runs, **policy) -> MethodReport:
    """Replan a program of one method; it must do what it did, run after run, in no larger arena."""
    data, (report,) = replanned(pte, **policy)
    assert not any("refused" in note for note in report.notes), report.notes
    assert all(new <= old for new, old in zip(report.after.arenas, report.before.arenas, strict=True))
    for before, after in zip(run_program(pte, *runs), run_program(data, *runs), strict=True):
        assert same_bits(before, after)
    return report
