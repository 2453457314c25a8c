"""One deadline, made at the top and handed down."""

from __future__ import annotations

import time


class Deadline:
    """A point in time.

    Parameters
    ----------
    seconds : float
        From now; infinity for no limit.
    """

    def __init__(self, seconds: float) -> None:
        self.started = time.monotonic()
        self._at = self.started + seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Is the time up?"""
        return self.left <= 0.0

    def part(self, share: float) -> Deadline:
        """A deadline that leaves the rest of the time to others."""
        return Deadline(self.left * share)
