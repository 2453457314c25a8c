"""The ExecuTorch front end: export graph to dataflow and back."""

from planner.executorch.algorithm import arena_algorithm
from planner.executorch.job import ArenaWarning
from planner.executorch.pass_report import ArenaReport, GraphReport
from planner.executorch.planning_pass import ArenaPlanningPass, arena_planning_pass
from solvers.banks.bank import Bank

__all__ = [
    "ArenaPlanningPass",
    "ArenaReport",
    "ArenaWarning",
    "Bank",
    "GraphReport",
    "arena_algorithm",
    "arena_planning_pass",
]
