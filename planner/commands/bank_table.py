"""What `arena plan --bank` prints."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvers.banks.bank import BankResult
    from solvers.problem.problem import Problem


def print_banks(problem: Problem, result: BankResult, args: argparse.Namespace) -> None:
    """Print a result with banks: a row for each, or one JSON object; why there is no plan, to standard error."""
    if args.json:
        print(json.dumps(_row(result)))
    elif args.output != "-" and result.solution is not None:
        _print_table(problem, result)
    if result.solution is None:
        print(f"arena: {result.status}: {result.excess or 'pinned buffers overlap in every bank'}", file=sys.stderr)


def _bytes_in(result: BankResult) -> list[int]:
    """By bank, the sizes of what is in it."""
    return [sum(b.size for b in p.buffers) for p in result.problems]


def _row(result: BankResult) -> dict[str, Any]:
    rows = [
        {
            "name": bank.name,
            "mem_id": bank.mem_id,
            "capacity": bank.size,
            "buffers": len(p.buffers),
            "bytes": size,
            "peak": r.peak,
            "lower_bound": r.lower_bound,
            "status": str(r.status),
            "solver": r.solver,
        }
        for bank, p, r, size in zip(result.banks, result.problems, result.results, _bytes_in(result), strict=False)
    ]
    return {
        "status": str(result.status),
        "best_assignment": result.best_assignment,
        "weights": result.weights,
        "bounds": result.bounds,
        "banks": rows,
        "wall_time": result.wall_time,
        "struck": result.struck,
        "excess": dataclasses.asdict(result.excess) if result.excess else None,
        "offsets": dict(result.solution.offsets) if result.solution else None,
        "arena_of": dict(result.bank_of) if result.solution else None,
    }


def _print_table(problem: Problem, result: BankResult) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("bank", "buffers", "bytes in it", "peak", "capacity", "status")
    for bank, p, r, size in zip(result.banks, result.problems, result.results, _bytes_in(result), strict=True):
        row = (str(len(p.buffers)), str(size), str(r.peak), str(bank.size), str(r.status))
        table.add_row(Text(bank.name), *row)
    Console(file=sys.stdout).print(table)
    total, first = sum(_bytes_in(result)), _bytes_in(result)[0]
    share = f"{first / total:.1%} of all bytes in {result.banks[0].name!r}, " if total else ""
    if result.best_assignment:
        proof = "proven the most"
    else:
        proof = f"at most {result.bounds[0] / total:.1%} can be" if total else "not proven the most"
    name = problem.name or "plan"
    print(f"{name}: {result.status}, {share}{proof}, {result.wall_time:.2f} s", file=sys.stderr)
