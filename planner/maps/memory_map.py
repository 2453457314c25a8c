"""The memory map of plans: what is drawn, and what it says of each buffer.

Time runs across, addresses run up. Every segment of a group is a rectangle: the bytes of one writer, from its birth to
the last need of anyone who shows them. A buffer that owns no bytes, such as a concat whose parts are written in place
or a view, is an outline around the bytes that it shows. All panels of a map share both scales.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from solvers.problem.buffers import Buffer, ProblemError, check_int
from solvers.problem.problem import Problem
from solvers.problem.result import Solution

LEFT_OUT = (
    "Left out, as it lies outside the planned arena: memory inside delegates, scratch memory of kernels, and constants."
)

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # what XML forbids or no one can read


class Area(NamedTuple):
    """Bytes ``[low, high)`` of the arena in steps ``[start, end)``, and the buffer that they are told of."""

    buffer: Buffer
    low: int
    high: int
    start: int
    end: int


@dataclass(frozen=True)
class Panel:
    """One plan to draw.

    Parameters
    ----------
    title : str
    problem : Problem
    solution : Solution
        A verified plan of it; no judging is done here.
    lower_bound : int, optional
        Proven floor of the peak, bytes.
    steps : mapping of int to str
        What runs in a step, for tooltips; steps may be missing.

    Raises
    ------
    ProblemError
        If a buffer has no offset, an active colocation does not exist, or the bound is no floor of the peak.
    """

    title: str
    problem: Problem
    solution: Solution
    lower_bound: int | None = None
    steps: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = f"panel {self.title!r}: "
        for b in self.problem.buffers:
            if b.id not in self.solution.offsets:
                raise ProblemError(f"{name}buffer {b.id!r} has no offset")
            check_int(self.solution.offsets[b.id], f"{name}the offset of buffer {b.id!r}", 0)
        for k in self.solution.active:
            check_int(k, f"{name}an active colocation", 0, len(self.problem.colocations) - 1)
        if self.lower_bound is not None:
            check_int(self.lower_bound, f"{name}lower_bound", 0, self.peak)

    @cached_property
    def peak(self) -> int:
        """Largest offset plus size, bytes; 0 without buffers."""
        return max((self.solution.offsets[b.id] + b.size for b in self.problem.buffers), default=0)

    @cached_property
    def segments(self) -> tuple[Area, ...]:
        """The rectangles, by step of birth and address."""
        found: list[Area] = []
        for group in self.problem.groups(self.solution.active):
            member, place = group.members[0]
            base = self.solution.offsets[member] - place
            found += [
                Area(self.problem.by_id[s.writer], base + s.low, base + s.high, s.start, s.end) for s in group.segments
            ]
        return tuple(sorted(found, key=lambda a: (a.start, a.low, a.end, a.buffer.id)))

    @cached_property
    def outlines(self) -> tuple[Area, ...]:
        """The buffers that own no bytes but show some, by step of birth and address."""
        owners = {a.buffer.id for a in self.segments}
        at = self.solution.offsets
        shown = [b for b in self.problem.buffers if b.size and b.id not in owners]
        areas = (Area(b, at[b.id], at[b.id] + b.size, b.start, b.end) for b in shown)
        return tuple(sorted(areas, key=lambda a: (a.start, a.low, a.end, a.buffer.id)))

    @property
    def levels(self) -> tuple[tuple[int, str], ...]:
        """The peak, then the lower bound if it is known: bytes and what they are; one level where they are equal."""
        if self.lower_bound == self.peak:
            return ((self.peak, "peak = bound"),)
        peak = ((self.peak, "peak"),)
        return peak if self.lower_bound is None else (*peak, (self.lower_bound, "bound"))

    @cached_property
    def caption(self) -> str:
        """Title, peak and gap."""
        said = f"{shortened(printable(self.title), 40)}: peak {self.peak:,} bytes"
        if self.lower_bound is None:
            return said
        return f"{said}, gap {percent(self.peak - self.lower_bound, self.peak)}"

    def tooltip(self, area: Area) -> tuple[str, ...]:
        """What to say of a rectangle or an outline, line by line."""
        b, at = area.buffer, self.solution.offsets[area.buffer.id]
        lines = [
            shortened(name_of(b)),
            f"{b.size:,} bytes at {at:,}, {percent(b.size, self.peak)} of the peak",
            f"lives in steps [{b.start}, {b.end})",
        ]
        if area != (b, at, at + b.size, b.start, b.end):
            lines.append(f"here: bytes [{area.low:,}, {area.high:,}) in steps [{area.start}, {area.end})")
        ends = (("born in", b.start), ("last used by", b.end - 1))
        known = [(said, self.steps[step]) for said, step in ends if step in self.steps]
        return (*lines, *(f"{said} {shortened(printable(op))}" for said, op in known))


@dataclass(frozen=True)
class MemoryMap:
    """Panels on one scale.

    Parameters
    ----------
    panels : sequence of Panel
    title : str
    left_out : str
        What the picture does not show.
    """

    panels: tuple[Panel, ...]
    title: str = ""
    left_out: str = LEFT_OUT

    @cached_property
    def top(self) -> int:
        """Where the address scale ends, bytes; at least 1."""
        return max((p.peak for p in self.panels), default=0) or 1

    @cached_property
    def borders(self) -> tuple[int, ...]:
        """The steps in which something is born or gone, ascending; the time scale has one column from each to the next.

        The steps between change nothing, and are left out.
        """
        areas = (a for p in self.panels for a in (*p.segments, *p.outlines))
        return tuple(sorted({t for a in areas for t in (a.start, a.end)}))

    @cached_property
    def column(self) -> dict[int, int]:
        """The column of the time scale that begins with each border."""
        return {step: k for k, step in enumerate(self.borders)}

    @property
    def columns(self) -> int:
        """Panels beside each other; few columns of time leave room for two."""
        return 2 if len(self.panels) > 1 and len(self.borders) <= 150 else 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not in the picture, one sentence each."""
        said = [printable(self.left_out)] if self.left_out else []
        if self.borders and self.borders[-1] - self.borders[0] >= len(self.borders):
            said.append("The time axis leaves out steps in which no lifetime starts or ends.")
        if empty := max((sum(not b.size for b in p.problem.buffers) for p in self.panels), default=0):
            said.append(f"Buffers of no bytes are not drawn: {empty:,}.")
        return tuple(said)

    @property
    def description(self) -> str:
        """The picture in words."""
        counts = sorted({len(p.problem.buffers) for p in self.panels})
        buffers = " or ".join(f"{n:,}" for n in counts) or "no"
        return f"{buffers} buffers, time across, addresses up. " + "; ".join(p.caption for p in self.panels)


def printable(text: str) -> str:
    """The text without characters that XML forbids or no one can read."""
    return _UNPRINTABLE.sub("\ufffd", text)


def name_of(buffer: Buffer) -> str:
    """What people call it: its label, else its id."""
    return printable(buffer.label or buffer.id)


def shortened(text: str, most: int = 60) -> str:
    """The text, its middle left out if it is long."""
    return text if len(text) <= most else f"{text[: most - 20]}…{text[-19:]}"


def percent(part: int, whole: int) -> str:
    """A share; one that is not zero is not called so."""
    share = part / whole if whole else 0.0
    return "below 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"
