"""Problem and plan files by their names. Every error names the file, the line where there is one, and the rule."""

from __future__ import annotations

from pathlib import Path

from planner.files.json_format import (
    PlanFile,
    bank_plan_file,
    banks_of,
    plan_file,
    plan_from_json,
    plan_to_json,
    problem_from_json,
    problem_hash,
    problem_to_json,
    solution_of,
)
from planner.files.minimalloc_csv import problem_from_csv, problem_to_csv
from planner.files.text import FileError, read_text, shown, write_atomically
from solvers.problem.problem import Problem

__all__ = [
    "FileError",
    "PlanFile",
    "bank_plan_file",
    "banks_of",
    "plan_file",
    "plan_to_json",
    "problem_from_csv",
    "problem_from_json",
    "problem_hash",
    "problem_to_csv",
    "problem_to_json",
    "read_plan",
    "read_problem",
    "solution_of",
    "write_atomically",
]


def read_problem(path: str, optional: bool = False) -> Problem:
    """Read a problem from a ``.csv`` or ``.json`` file, or from standard input (``-``), told apart by its first
    character.

    Parameters
    ----------
    path : str
    optional : bool
        Read all colocations as optional.

    Raises
    ------
    FileError
        If the file cannot be read or breaks a rule.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".json") and path != "-":
        raise FileError(f"{path}: a problem is a .csv or .json file, or - for standard input")
    text = read_text(path)
    is_json = suffix == ".json" or (path == "-" and text.lstrip()[:1] in ("{", "["))
    name = shown(path)
    return problem_from_json(text, name, optional) if is_json else problem_from_csv(text, name)


def read_plan(path: str) -> PlanFile:
    """Read a JSON plan from a file, or from standard input (``-``). Raises `FileError`."""
    return plan_from_json(read_text(path), shown(path))
