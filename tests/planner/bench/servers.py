"""What runs in a worker process instead of planners: in a module of its own, as it is imported there."""

import os
import time
from dataclasses import replace

from planner.bench.row import RowStatus
from planner.bench.row_file import RowFile
from planner.bench.worker import READY, WorkerReport


def dies(pipe):
    pipe.recv()
    pipe.send(READY)
    os._exit(7)


def hangs(pipe):
    pipe.recv()
    pipe.send(READY)
    time.sleep(600)


def dies_once(pipe):
    """At the planner ``auto``; with another it works."""
    task = pipe.recv()
    if task.planner == "auto":
        os._exit(3)
    pipe.send(READY)
    pipe.send(WorkerReport(RowStatus.FEASIBLE, 5))
    pipe.recv()


def adds_rows(path, rows):
    """One by one, as rows of problems of their own."""
    file = RowFile(path)
    for k, row in enumerate(rows):
        file.add([replace(row, problem=f"p{k}")])
