"""`arena show`: what holds the peak, as text or as a picture."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from planner.commands.common import DONE, check_output, seconds
from solvers.files.text import FileError, write_atomically

NAME = "show"
HELP = "what holds the peak of a problem, a plan or a .pte, as text or as a picture"
EXAMPLE = """example:
  arena show model.pte
  arena show model.pte -o map.html
  arena show model.json --plan plan.json -o map.svg"""

MOST = 12
"""Buffers that the text names."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="PROBLEM|MODEL.pte", help=".csv, .json, .pte, or - for standard input")
    parser.add_argument("--plan", metavar="PLAN", help="the plan of a problem file to look at (else greedy's)")
    parser.add_argument("-o", "--output", metavar="MAP", help="draw a map instead: .svg, .html or .png")
    parser.add_argument("--optional", action="store_true", help="read all colocations as optional")
    parser.add_argument("--all", action="store_true", help="name all buffers that live at the peak")
    parser.add_argument(
        "--time-limit", type=seconds, default=2.0, metavar="S", help="seconds of search for the optimum (default 2)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if args.output is not None:
        check_output(args.output, args.file, (".svg", ".html", ".png"), "a map")
        if args.output == "-":
            raise FileError("-: a map is written to a file")
    is_program = args.file.endswith(".pte")
    if is_program and (args.plan or args.optional):
        raise FileError("--plan and --optional are for problem files: a .pte has its plan")
    reports, panels = _program(args) if is_program else _problem(args)
    if args.output is not None:
        from planner.maps.render import render

        write_atomically(args.output, render(panels, "." + args.output.rsplit(".", 1)[1], args.file))
    for report in reports if args.output is None else ():
        print_report(report, None if args.all else MOST, args.file)
    return DONE


def _program(args: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    from planner.pte.peaks import show
    from planner.pte.program_file import read_pte
    from solvers.run import Options

    reports: list[Any] = []
    panels: list[Any] = []
    for method in show(read_pte(args.file), Options(args.time_limit, reproducible=True)):
        if method.kept:
            sizes = " + ".join(f"{n:,}" for n in method.arenas[1:])
            print(
                f"method {method.name!r}: {sizes} bytes; what they hold cannot be told: {method.kept}", file=sys.stderr
            )
        reports += method.reports
        panels += method.panels
    if not panels and args.output is not None:
        raise FileError(f"{args.file}: there is nothing to draw")
    return reports, panels


def _problem(args: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    from planner.explain.peak import report_problem
    from planner.maps.memory_map import Panel
    from solvers.files import by_name as files
    from solvers.run import Options
    from solvers.search import solve
    from solvers.verifier import VerificationError, verify

    problem = files.read_problem(args.file, args.optional)
    options = Options(args.time_limit, reproducible=True)
    optional = len(problem.required) < len(problem.colocations)
    results = {"greedy": solve(problem, "greedy", options)}
    if not optional and results["greedy"].status == "feasible":  # else choosing would need ortools
        results["best found"] = solve(problem, "native", options)
    found = {name: r for name, r in results.items() if r.solution is not None}
    bound = max(r.lower_bound for r in results.values())
    panels = [Panel(f"{name}, {r.status}", problem, r.solution, bound) for name, r in found.items()]  # type: ignore[arg-type]
    if args.plan:
        plan = files.read_plan(args.plan)
        solution = files.solution_of(plan, problem, args.plan)
        try:
            if banks := files.banks_of(plan, args.plan):
                return _banks(problem, solution, plan, banks)
            verify(problem, solution)
        except VerificationError as error:
            raise FileError(f"{args.plan}: no plan of {args.file}: {error}") from None
        panels = [*panels[:1], Panel(f"{args.plan}, {plan.status}", problem, solution, bound)]
    elif not found:
        raise FileError(f"{args.file}: no plan was found: {results['greedy'].status}")
    else:
        solution = found["greedy"].solution  # type: ignore[assignment]
    return [report_problem(problem, solution, found, problem.name or args.file, bound)], panels


def _banks(problem: Any, solution: Any, plan: Any, banks: Any) -> tuple[list[Any], list[Any]]:
    """A plan with banks: what holds the peak of each."""
    from planner.explain.peak import report_problem
    from planner.maps.memory_map import Panel
    from solvers.banks.checks import parts_of, verify_banks

    verify_banks(problem, banks, plan.arena_of, solution)
    reports, panels = [], []
    for bank, (part, placed) in zip(banks, parts_of(problem, banks, plan.arena_of, solution), strict=True):
        title = f"bank {bank.name} ({bank.size:,} bytes)"
        reports.append(report_problem(part, placed, {}, title))
        panels.append(Panel(title, part, placed))
    return reports, panels


def print_report(report: Any, most: int | None, source: str) -> None:
    """Print what holds a peak.

    Parameters
    ----------
    report : planner.explain.peak.PeakReport
    most : int or None
        Buffers that are named; None for all.
    source : str
        The file, for the command that would help.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(f"{report.title}: {report.peak:,} bytes. {verdict(report, source)}", style="bold"))
    where = report.op or f"step {report.step}"
    holes = f"; {report.holes:,} bytes of the arena are not used then" if report.holes > 0 else ""
    console.print(Text(f"Most is needed in {where}: {report.load:,} bytes{holes}."))
    table = Table("buffer", "bytes", "share", "why it is alive")
    for h in report.holders[:most]:
        share = f"{h.nbytes / report.peak:.1%}" if report.peak else ""
        table.add_row(Text(h.id), f"{h.nbytes:,}", share, Text(h.why))
    if (more := len(report.holders) - len(report.holders[:most])) > 0:
        rest = sum(h.nbytes for h in report.holders[most:])
        table.add_row(
            f"{more} more", f"{rest:,}", f"{rest / report.peak:.1%}" if report.peak else "", "--all names them"
        )
    Console(file=sys.stdout, highlight=False).print(table)
    others = Table("plan", "bytes", "status")
    others.add_row("this one", f"{report.peak:,}", "")
    for name, (peak, status) in report.plans.items():
        others.add_row(name, f"{peak:,}", status)
    others.add_row("bound: no plan needs less", f"{report.bound:,}", "")
    console.print(others)
    for remedy in report.remedies:
        console.print(Text(f"Remedy: {remedy}."))


def verdict(report: Any, source: str) -> str:
    """Is so much needed? In one sentence or two; nothing where there is nothing to compare with."""
    if not report.plans:
        return ""
    if report.peak <= report.bound:
        return "All of it is needed: no plan of this program needs less (proven)."
    best = min((peak for peak, _ in report.plans.values()), default=report.peak)
    command = f"arena replan {source} -o OUT.pte" if source.endswith(".pte") else f"arena plan {source} -o PLAN.json"
    if best >= report.peak:
        return f"Not proven to be needed: no plan needs less than {report.bound:,}; `{command}` searches longer."
    proven = "proven smallest" if best <= report.bound else f"no plan needs less than {report.bound:,}"
    return f"Not all of it is needed: {best:,} would do ({proven}). `{command}` gives it."
