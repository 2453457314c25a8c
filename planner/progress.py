"""Progress while solving: a few lines a second, to a terminal or to the log.

A solver tells its `Options.progress` of every better plan or bound, one at a time, in the thread that called it: the
engines' own threads only hand their answers over. What that callable raises ends the solve and comes out of it; no
thread of the solver runs on.

The two helpers here pass lines on at a readable pace. A line that came too early waits for its turn; as an engine may
be silent for long after it, a thread of the helper's own lets it out. ::

    with console_progress() as report:
        solve(problem, options=Options(progress=report))
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from solvers.problem.result import Progress
from solvers.run import Listener

log = logging.getLogger("arena")

INTERVAL, HEARTBEAT = 0.5, 5.0
"""Seconds between two lines at least, and, where nothing changes, until the last one is repeated."""

COLUMNS = f"{'time':>9} {'peak':>15} {'bound':>15} {'gap':>8}  engine"


class RateLimit:
    """Passes lines on, at most one per interval.

    The first line is passed on at once, and the last when all is over, if it says more than the one before it. In
    between a line waits until its turn, and a newer one takes its place. Only news are passed on: a lower peak or a
    higher bound. Times are those since this was made, so that they go on from one solve to the next.

    Parameters
    ----------
    sink : callable
        Gets the lines; never two at a time.
    interval, heartbeat : float
        Seconds.
    clock : callable
        Seconds, from any start.
    """

    def __init__(
        self,
        sink: Listener,
        interval: float = INTERVAL,
        heartbeat: float = HEARTBEAT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sink = sink
        self.interval = interval
        self.heartbeat = heartbeat
        self.clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._last: Progress | None = None
        self._waiting: Progress | None = None
        self._shown: Progress | None = None
        self._shown_at = -math.inf

    def __call__(self, line: Progress) -> None:
        """A solver's line."""
        with self._lock:
            self._last = line = replace(line, time=self._elapsed)
            best = self._waiting or self._shown
            if best is None or _is_news(line, best):
                self._waiting = line
            self._pass_if_due()

    def tick(self) -> None:
        """Time went by: pass on what waits, or repeat what was shown long ago."""
        with self._lock:
            self._pass_if_due()
            if self._shown and self._elapsed - self._shown_at >= self.heartbeat:
                self._pass(replace(self._shown, time=self._elapsed))

    def close(self) -> None:
        """It is over: pass on the last line."""
        with self._lock:
            if self._last and (self._shown is None or _content(self._last) != _content(self._shown)):
                self._pass(replace(self._last, time=self._elapsed))

    @property
    def _elapsed(self) -> float:
        return self.clock() - self._started

    def _pass_if_due(self) -> None:
        if self._waiting and self._elapsed - self._shown_at >= self.interval:
            self._pass(self._waiting)

    def _pass(self, line: Progress) -> None:
        self._shown, self._shown_at, self._waiting = line, self._elapsed, None
        self.sink(line)


def _is_news(line: Progress, known: Progress) -> bool:
    lower = line.peak is not None and (known.peak is None or line.peak < known.peak)
    return lower or line.lower_bound > known.lower_bound


def _content(line: Progress) -> tuple[object, ...]:
    return line.peak, line.lower_bound, line.engine


@contextlib.contextmanager
def _limited(sink: Listener) -> Iterator[Listener]:
    """A rate limit, with a thread that lets waiting lines out."""
    limit = RateLimit(sink)
    over = threading.Event()

    def tick() -> None:
        while not over.wait(INTERVAL / 2):
            limit.tick()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield limit
    finally:
        over.set()
        thread.join()
    limit.close()


@contextlib.contextmanager
def console_progress(quiet: bool = False) -> Iterator[Listener | None]:
    """Lines on standard error, under one header, if it is a terminal.

    Parameters
    ----------
    quiet : bool
        No lines at all.

    Yields
    ------
    callable or None
        For `Options.progress`; None where nothing is to be shown.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stderr)
    header = [COLUMNS]

    def show(line: Progress) -> None:
        with contextlib.suppress(OSError):  # the terminal went away: the plan is still wanted
            while header:
                console.print(Text(header.pop(), style="bold"), overflow="ellipsis", no_wrap=True)
            console.print(Text(_row(line)), overflow="ellipsis", no_wrap=True)

    with _limited(show) as report:
        yield report


@contextlib.contextmanager
def log_progress(name: str = "", also: Listener | None = None) -> Iterator[Listener | None]:
    """Lines to the logger ``arena``, at INFO; nothing where that is not switched on.

    Parameters
    ----------
    name : str
        What is being solved: it starts each line.
    also : callable, optional
        Is told of every line, at once.

    Yields
    ------
    callable or None
        For `Options.progress`; None where no one listens.
    """
    if not log.isEnabledFor(logging.INFO):
        yield also
        return
    start = f"{name}: " if name else ""
    with _limited(lambda line: log.info("%s%s", start, _sentence(line))) as logged:

        def both(line: Progress) -> None:
            if also:
                also(line)
            logged(line)

        yield both


def _gap(line: Progress) -> str:
    """``(peak - lower_bound) / peak`` in percent; of an empty arena 0."""
    if line.peak is None:
        return "-"
    return f"{(line.peak - line.lower_bound) / line.peak if line.peak else 0:.2%}"


def _row(line: Progress) -> str:
    peak = "-" if line.peak is None else line.peak
    return f"{line.time:>8.1f}s {peak:>15} {line.lower_bound:>15} {_gap(line):>8}  {line.engine}"


def _sentence(line: Progress) -> str:
    return f"{line.time:.1f} s: peak {line.peak}, bound {line.lower_bound}, gap {_gap(line)}, {line.engine}"
