"""The ExecuTorch front end: an export's graph to a dataflow and back. Only here is torch imported.

May import: api, lock, program, judge, progress, pte (its table of operators), the solvers. Start with `planning_pass`,
then `job`, the planning of one graph; `nodes` and `in_place` say what ExecuTorch's ops mean; `graph_flow`,
`graph_trace` and `graph_rewrite` lead to the planner, to the judge, and back; `write_backs`, `branches`, `copies` and
`target_banks` are a subject each. `algorithm` is for stock's suites, `pass_report` what was done; `compare`,
`showcase`, `example_models`, `stock_planners` and `operator_table` are for tests, the demo and the benchmarks.
"""

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
