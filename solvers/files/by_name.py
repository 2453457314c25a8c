"""Problem and plan files by their names. Every error names the file, the line where there is one, and the rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solvers.banks.bank import BankResult
from solvers.files.json_format import (
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
from solvers.files.minimalloc_csv import problem_from_csv, problem_to_csv
from solvers.files.text import FileError, read_text, shown, write_atomically
from solvers.problem.buffers import ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Result

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
    "write_plan",
    "write_problem",
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


def write_problem(problem: Problem, path: str) -> None:
    """Write a problem to a ``.csv`` or ``.json`` file, or as JSON to standard output (``-``).

    Parameters
    ----------
    problem : Problem
    path : str

    Raises
    ------
    FileError
        If the file cannot be written, or is to be CSV, which knows no colocations, and the problem has some.
    """
    suffix = _suffix_of(path, "a problem")
    try:
        text = problem_to_csv(problem) if suffix == ".csv" else problem_to_json(problem)
    except ProblemError as error:
        raise FileError(f"{path}: {error}") from None
    write_atomically(path, text)


def write_plan(
    problem: Problem, result: Result | BankResult, path: str, parameters: Mapping[str, Any] | None = None
) -> None:
    """Write a plan to a ``.json`` file, to standard output (``-``), or into a ``.csv`` as a problem with offsets.

    Parameters
    ----------
    problem : Problem
    result : Result or BankResult
        With a solution.
    path : str
    parameters : dict, optional
        How it was made, to be kept in the file.

    Raises
    ------
    FileError
        If the file cannot be written, or is to be CSV and the plan has banks.
    ValueError
        If the result has no solution.
    """
    suffix = _suffix_of(path, "a plan")
    if result.solution is None:
        raise ValueError(f"the result has no solution to write: it is {result.status}")
    if isinstance(result, BankResult):
        if suffix == ".csv":
            raise FileError(f"{path!r}: a plan with banks is written as .json")
        text = plan_to_json(bank_plan_file(problem, result, parameters or {}))
    elif suffix == ".csv":
        text = problem_to_csv(problem, result.solution.offsets, drop_colocations=True)
    else:
        text = plan_to_json(plan_file(problem, result, parameters or {}))
    write_atomically(path, text)


def _suffix_of(path: str, what: str) -> str:
    suffix = ".json" if path == "-" else Path(path).suffix.lower()
    if suffix not in (".csv", ".json"):
        raise FileError(f"{path!r}: {what} is written as .json or .csv")
    return suffix
