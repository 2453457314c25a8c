"""What to place and what it means: front ends, what may share, the second judge, pictures, the command.

The names here are the public ones, imported when they are first asked for; the rest may change. ExecuTorch's pass is
`planner.executorch.arena_planning_pass`. The way through is one line: a front end (`executorch` or `pte`) makes a
dataflow (`program`), `api.plan` asks the solvers, the `judge` runs the rewritten program, the front end writes it back.
Beside it are `lock`, `explain`, `maps`, `bench`, `commands` with `cli`, and `progress`. Only `executorch`
imports torch. Start reading with `api`.
"""

from __future__ import annotations

from solvers.lazily import exports

TYPE_CHECKING = False  # `typing`'s costs an import
if TYPE_CHECKING:
    from planner.api import BanksExceeded, Plan, PlanningError, Request, plan
    from planner.judge.memory import ReplayError
    from planner.maps.memory_map import Panel
    from planner.maps.render import render
    from planner.program.dataflow import Dataflow, Op, OpKind, Role, Tensor
    from planner.program.share_rules import Share
    from planner.program.sharing import Decision, Outcome, Policy
    from planner.pte.program_file import ProgramFile, read_pte
    from planner.pte.replanning import MethodReport, replan, write_pte
    from solvers.files.text import FileError

__all__ = [
    "BanksExceeded",
    "Dataflow",
    "Decision",
    "FileError",
    "MethodReport",
    "Op",
    "OpKind",
    "Outcome",
    "Panel",
    "Plan",
    "PlanningError",
    "Policy",
    "ProgramFile",
    "ReplayError",
    "Request",
    "Role",
    "Share",
    "Tensor",
    "plan",
    "read_pte",
    "render",
    "replan",
    "write_pte",
]

_HOMES = {
    "planner.api": ("BanksExceeded", "Plan", "PlanningError", "Request", "plan"),
    "planner.judge.memory": ("ReplayError",),
    "planner.maps.memory_map": ("Panel",),
    "planner.maps.render": ("render",),
    "planner.program.dataflow": ("Dataflow", "Op", "OpKind", "Role", "Tensor"),
    "planner.program.share_rules": ("Share",),
    "planner.program.sharing": ("Decision", "Outcome", "Policy"),
    "planner.pte.program_file": ("ProgramFile", "read_pte"),
    "planner.pte.replanning": ("MethodReport", "replan", "write_pte"),
    "solvers.files.text": ("FileError",),
}
"""Where each public name lives."""

if not TYPE_CHECKING:  # a type checker knows the names from above, and no others
    __getattr__, __dir__ = exports(__name__, _HOMES)
