"""An equivalent program with the optimal plan, from a program that is planned already.

Each method is planned on its own. Concats and views whose bytes are in place lose their instruction, elementwise
results are written onto operands that die there; delegates, constants, state and control flow stay untouched. Two
judges pass every plan: the verifier, and the replay of the rewritten method against the one in the file. A method that
would not gain, or that cannot be read for sure, is left as it is, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner import api
from planner.api import REFUSALS, PlanningError
from planner.judge.memory import ReplayError
from planner.judge.replay import replay
from planner.program.dataflow import Dataflow
from planner.pte.accesses import Kept
from planner.pte.method import Method, read_method
from planner.pte.method_flow import flow_of
from planner.pte.method_rewrite import Rewritten, not_expressible, rewrite
from planner.pte.method_trace import trace
from planner.pte.program_file import ProgramFile, parse_pte, to_bytes
from planner.pte.schema import ExecutionPlan
from solvers.files.text import write_atomically


@dataclass(frozen=True)
class MethodFacts:
    """What a method's plan costs: bytes of each arena (by mem_id), instructions, and the bytes that its concats and
    views copy."""

    arenas: tuple[int, ...]
    instructions: int
    copied: int

    @property
    def total(self) -> int:
        """Bytes of all arenas."""
        return sum(self.arenas)


@dataclass(frozen=True)
class MethodReport:
    """What became of a method.

    Attributes
    ----------
    name : str
    before, after : MethodFacts
    plan : api.Plan or None
        The new plan; None if the method is left as it is.
    kept : str
        Why the method is left as it is; empty if it is not.
    notes : tuple of str
        What was given up on the way, and what could not be known.
    """

    name: str
    before: MethodFacts
    after: MethodFacts
    plan: api.Plan | None = None
    kept: str = ""
    notes: tuple[str, ...] = ()


def replan(
    file: ProgramFile, request: api.Request, about: Callable[[str], None] = lambda method: None
) -> tuple[ProgramFile, list[MethodReport]]:
    """Plan every method of a program anew.

    Parameters
    ----------
    file : ProgramFile
        Stays as it is.
    request : api.Request
    about : callable
        Is told the name of each method before it is planned.

    Returns
    -------
    ProgramFile
    list of MethodReport
    """
    plans, reports = [], []
    for plan in file.program.execution_plan:
        about(plan.name)
        made, report = _replan_method(file, plan, request)
        plans.append(made)
        reports.append(report)
    return replace(file, program=replace(file.program, execution_plan=plans)), reports


def checked_bytes(file: ProgramFile, name: str) -> bytes:
    """The file's bytes, read back: they must say what was to be written.

    Raises
    ------
    PlanningError
        If they do not.
    """
    data = to_bytes(file)
    back = parse_pte(data, name)
    if to_bytes(back) != data or back.segments != file.segments:  # as bytes, for a NaN is not equal to itself
        raise PlanningError(f"{name}: the program does not survive being written")
    return data


def write_pte(file: ProgramFile, path: str) -> None:
    """Write a program to a file, once it has been read back and found the same.

    Raises
    ------
    PlanningError
        If it does not survive being written.
    FileError
        If the file cannot be written.
    """
    write_atomically(path, checked_bytes(file, path))


def _replan_method(file: ProgramFile, plan: ExecutionPlan, request: api.Request) -> tuple[ExecutionPlan, MethodReport]:
    try:
        replanning = _Replanning(read_method(file, plan), request)
    except (Kept, ReplayError) as why:
        facts = MethodFacts(tuple(plan.non_const_buffer_sizes), sum(len(c.instructions) for c in plan.chains), 0)
        return plan, MethodReport(plan.name, facts, facts, None, str(why))
    return replanning.run()


class _Replanning:
    def __init__(self, method: Method, request: api.Request) -> None:
        self.method = method
        self.request = request
        self.before = trace(method)
        self.facts = facts_of(method)
        self.notes: list[str] = []
        if method.reader.unknown:
            names = ", ".join(sorted(method.reader.unknown))
            self.notes.append(f"what {names} read and write is not known: their tensors are not shared")

    def run(self) -> tuple[ExecutionPlan, MethodReport]:
        """With sharing, without, or not at all: the first that both judges pass and that needs no more."""
        share = self.request.policy.share
        for policy in dict.fromkeys((share, frozenset())):
            request = replace(self.request, policy=replace(self.request.policy, share=policy))
            try:
                found = self._attempt(request)
            except REFUSALS as error:
                self.notes.append(f"the plan {'with' if policy else 'without'} sharing was refused: {error}")
                continue
            made, plan = found
            after = facts_of(self._after(made))
            if all(new <= old for new, old in zip(after.arenas, self.facts.arenas, strict=True)):
                if after == self.facts:
                    return self._left("there is nothing to gain", plan)
                return made.plan, MethodReport(self.method.plan.name, self.facts, after, plan, "", tuple(self.notes))
            self.notes.append(f"the plan {'with' if policy else 'without'} sharing would need {after.total} bytes")
        return self._left("no plan needs less", None)

    def _left(self, why: str, plan: api.Plan | None) -> tuple[ExecutionPlan, MethodReport]:
        name = self.method.plan.name
        return self.method.plan, MethodReport(name, self.facts, self.facts, plan, why, tuple(self.notes))

    def _attempt(self, request: api.Request) -> tuple[Rewritten, api.Plan]:
        opaque: list[str] = []
        while True:
            flow = flow_of(self.method, opaque)
            plan = api.plan(flow, request)
            inexpressible = not_expressible(plan.decisions)
            if not inexpressible:
                break
            opaque += inexpressible
        made = self._judged(flow, plan)
        return made, plan

    def _judged(self, flow: Dataflow, plan: api.Plan) -> Rewritten:
        made = rewrite(self.method, flow, plan)
        after = self._after(made)
        replay(self.before, trace(after, made.steps), planned_before=True)
        return made

    def _after(self, made: Rewritten) -> Method:
        """The rewritten method; what it reads and writes is known from the old one."""
        return Method(self.method.file, made.plan, [a for _, a in made.steps], self.method, made.regions)


def facts_of(method: Method) -> MethodFacts:
    """Read the facts from a method."""
    copied = sum(
        method.nbytes(i)
        for a in method.accesses
        if method.concat_axis(a) is not None or method.view(a) is not None
        for i in a.writes
    )
    return MethodFacts(tuple(method.plan.non_const_buffer_sizes), len(method.plan.chains[0].instructions), copied)
