"""One deadline, made at the top and handed down; by the wall, or by work that is the same on every machine."""

from __future__ import annotations

import math
import threading
import time

POLL = 0.05
"""Seconds between two looks at the clock while others work."""


class Clock:
    """Wall time from now on; an event stops it early."""

    reproducible = False

    def __init__(self, wall_limit: float, stop: threading.Event | None = None) -> None:
        self.started = time.monotonic()
        self.wall_limit = wall_limit
        self.stop = stop
        self.struck = False

    @property
    def elapsed(self) -> float:
        """Seconds on the wall since the start."""
        return time.monotonic() - self.started

    @property
    def halted(self) -> bool:
        """Is it over whatever else is planned: is the wall limit reached, or was it stopped?"""
        if self.elapsed >= self.wall_limit or (self.stop is not None and self.stop.is_set()):
            self.struck = True
        return self.struck

    @property
    def now(self) -> float:
        """Seconds."""
        return math.inf if self.halted else self.elapsed

    def spend(self, work: float) -> None:
        """Engines report what they did, work seconds."""


class WorkClock(Clock):
    """Counts work instead, as if one worker did it all: the same on every machine, and for any number of workers.

    The wall limit stops it all the same; then ``struck`` says so.
    """

    reproducible = True

    def __init__(self, wall_limit: float, stop: threading.Event | None = None) -> None:
        super().__init__(wall_limit, stop)
        self.spent = 0.0

    @property
    def now(self) -> float:
        """Work seconds."""
        return math.inf if self.halted else self.spent

    def spend(self, work: float) -> None:
        """Engines report what they did, work seconds."""
        self.spent += work


class Deadline:
    """A point in time of a clock.

    Parameters
    ----------
    seconds : float
        From now; infinity for no limit.
    clock : Clock, optional
        The wall's where not given.
    """

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self.clock = clock or Clock(seconds)
        self.started = time.monotonic()
        self._at = self.clock.now + seconds

    @property
    def elapsed(self) -> float:
        """Seconds on the wall since this was made."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left on the clock, at least 0."""
        now = self.clock.now
        return 0.0 if now >= self._at else self._at - now

    @property
    def wall_left(self) -> float:
        """Seconds left on the wall, at least 0."""
        wall = max(0.0, self.clock.wall_limit - self.clock.elapsed)
        return wall if self.clock.reproducible else min(wall, self.left)

    @property
    def passed(self) -> bool:
        """Is the time up?"""
        return self.left <= 0.0

    def part(self, share: float) -> Deadline:
        """A deadline that leaves the rest of the time to others."""
        return Deadline(self.left * share, self.clock)
