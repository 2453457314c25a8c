"""The ExecuTorch front end: export graph to dataflow and back."""

from planner.executorch.algorithm import arena_algorithm
from planner.executorch.job import ArenaWarning
from planner.executorch.planning_pass import ArenaPlanningPass, arena_planning_pass
from planner.executorch.report import ArenaReport, GraphReport
from solvers.banks import Bank

__all__ = [
    "ArenaPlanningPass",
    "ArenaReport",
    "ArenaWarning",
    "Bank",
    "GraphReport",
    "arena_algorithm",
    "arena_planning_pass",
]
