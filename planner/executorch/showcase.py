"""`arena demo`: the issue's example and a real network, stock against ours, on the runtime."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from planner.executorch.compare import Comparison, compare
from planner.executorch.example_models import SinCosCat, UNet
from planner.executorch.planning_pass import arena_planning_pass
from solvers.files.text import FileError, write_atomically


def run_demo(out: str | None, time_limit: float) -> int:
    """Run the demo.

    Parameters
    ----------
    out : str or None
        Folder to write the ``.pte`` files to.
    time_limit : float
        Seconds of search per graph.

    Returns
    -------
    int
        0 if every pair of programs agrees; else 1.

    Raises
    ------
    solvers.files.text.FileError
        If the folder or a file in it cannot be written.
    """
    if out is not None:
        _make_folder(Path(out))
    torch.manual_seed(0)
    cases = [
        ("issue 3210", SinCosCat(), torch.randn(64)),
        ("U-Net 64x64", UNet(), torch.randn(1, 3, 64, 64)),
    ]
    table = Table("model", "plan", "arena bytes", "instructions", "concats", "bytes copied", "equal?", "status")
    well = True
    for name, model, x in cases:
        c = compare(model, (x,), arena_planning_pass(time_limit=time_limit))
        well &= c.agree
        _add_rows(table, name, c)
        if out is not None:
            stem = str(Path(out) / name.replace(" ", "-").lower())
            write_atomically(f"{stem}.stock.pte", c.stock_pte)
            write_atomically(f"{stem}.arena.pte", c.ours_pte)
    Console(width=110).print(table)
    return 0 if well else 1


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made a folder: {error.strerror}") from None


def _add_rows(table: Table, name: str, c: Comparison) -> None:
    said = "bit for bit" if c.equal else "DIFFERENT"
    said += "" if c.ours_near_eager else ", FAR FROM EAGER"
    for plan, facts, equal, status in (
        ("stock greedy", c.stock, "", ""),
        ("arena", c.ours, said, str(c.planning_pass.reports[-1].status)),
    ):
        numbers = (facts.arena, facts.instructions, facts.concats, facts.copied)
        table.add_row(name, plan, *(f"{n:,}" for n in numbers), equal, status)
        name = ""
