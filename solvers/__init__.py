"""Pure combinatorics on integers: buffers and colocations in, offsets and proofs out.

The names here are the public ones, imported when they are first asked for; the rest may change. The rooms are `problem`
(what is asked, what comes out), `place` (offsets for one choice of ties), `choose` (which ties), `banks` (several
memories), `files`, and `core` in C++; `search` has the table of solvers, `run` the options, `deadline` the clock,
`verifier` the judge. Nothing here imports `planner`. Start reading with `problem`, then `search`.
"""

from __future__ import annotations

from solvers.lazily import exports

TYPE_CHECKING = False  # `typing`'s costs an import
if TYPE_CHECKING:
    from solvers.banks.bank import Bank, BankResult, Excess
    from solvers.banks.checks import verify_banks
    from solvers.banks.solve import solve_banks
    from solvers.files.by_name import read_plan, read_problem, write_plan, write_problem
    from solvers.files.text import FileError
    from solvers.place.bounds import problem_bound
    from solvers.problem.buffers import Buffer, Colocation, Kind, ProblemError
    from solvers.problem.problem import Problem
    from solvers.problem.result import Certificate, Progress, Result, Solution, Status
    from solvers.run import Objective, Options
    from solvers.search import SOLVERS, solve
    from solvers.verifier import VerificationError, verify

__all__ = [
    "SOLVERS",
    "Bank",
    "BankResult",
    "Buffer",
    "Certificate",
    "Colocation",
    "Excess",
    "FileError",
    "Kind",
    "Objective",
    "Options",
    "Problem",
    "ProblemError",
    "Progress",
    "Result",
    "Solution",
    "Status",
    "VerificationError",
    "problem_bound",
    "read_plan",
    "read_problem",
    "solve",
    "solve_banks",
    "verify",
    "verify_banks",
    "write_plan",
    "write_problem",
]

_HOMES = {
    "solvers.banks.bank": ("Bank", "BankResult", "Excess"),
    "solvers.banks.checks": ("verify_banks",),
    "solvers.banks.solve": ("solve_banks",),
    "solvers.files.by_name": ("read_plan", "read_problem", "write_plan", "write_problem"),
    "solvers.files.text": ("FileError",),
    "solvers.place.bounds": ("problem_bound",),
    "solvers.problem.buffers": ("Buffer", "Colocation", "Kind", "ProblemError"),
    "solvers.problem.problem": ("Problem",),
    "solvers.problem.result": ("Certificate", "Progress", "Result", "Solution", "Status"),
    "solvers.run": ("Objective", "Options"),
    "solvers.search": ("SOLVERS", "solve"),
    "solvers.verifier": ("VerificationError", "verify"),
}
"""Where each public name lives."""

if not TYPE_CHECKING:  # a type checker knows the names from above, and no others
    __getattr__, __dir__ = exports(__name__, _HOMES)
