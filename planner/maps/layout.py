"""Where everything stands in a picture: panels, ticks, names, levels and legend, as marks on a page in pixels.

The painters of SVG and PNG draw these marks, and the rectangles, with what they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from planner.maps import style
from planner.maps.memory_map import Area, MemoryMap, Panel, name_of

WIDTH, PLOT_HEIGHT = 1200, 400
LEFT, ABOVE, BELOW, HEAD, GAP = 88, 44, 44, 34, 20
"""Pixels: the picture, a panel's plot, and the margins around it."""


class Words(NamedTuple):
    """A line of text on its baseline at ``(x, y)``, pixels.

    ``role`` is ``plain``, ``caption`` (bold), ``note`` (muted), ``name`` (in a rectangle), ``peak`` or ``bound``;
    ``anchor`` is what of it stands at x: ``start``, ``middle`` or ``end``; ``turned`` words run upwards.
    """

    x: float
    y: float
    text: str
    role: str = "plain"
    anchor: str = "start"
    turned: bool = False


class Rule(NamedTuple):
    """A line to the right from ``(x, y)``, pixels; ``role`` is ``grid``, ``peak`` or ``bound``."""

    x: float
    y: float
    length: float
    role: str


class Swatch(NamedTuple):
    """A box in the legend, 24 by 12 pixels; ``role`` is ``bytes`` or ``outline``."""

    x: float
    y: float
    role: str


Mark = Words | Rule | Swatch


@dataclass(frozen=True)
class Frame:
    """Where a panel's plot lies, pixels; and the scales of the map."""

    drawn: MemoryMap
    left: float
    top: float
    width: float
    height: float

    def x(self, step: int) -> float:
        """Of a step at which something is born or gone."""
        columns = max(len(self.drawn.borders) - 1, 1)
        return self.left + self.width * self.drawn.column[step] / columns

    def y(self, address: float) -> float:
        """Of an address."""
        return self.top + self.height * (1 - address / self.drawn.top)

    def box(self, a: Area) -> tuple[float, float, float, float]:
        """Left, top, width and height of an area, pixels."""
        return self.x(a.start), self.y(a.high), self.x(a.end) - self.x(a.start), self.y(a.low) - self.y(a.high)


def frames(drawn: MemoryMap) -> Iterator[tuple[Panel, Frame]]:
    """Every panel, and where it is drawn."""
    across = drawn.columns
    cell = (WIDTH - GAP * (across - 1)) / across
    said = [words for p in drawn.panels for at, what in p.levels for words in (what, f"{at:,} bytes")]
    right = 26 + max((style.text_width(words, 11) for words in said), default=0)
    for k, panel in enumerate(drawn.panels):
        left = (k % across) * (cell + GAP) + LEFT
        top = HEAD + (k // across) * (ABOVE + PLOT_HEIGHT + BELOW) + ABOVE
        yield panel, Frame(drawn, left, top, cell - LEFT - right, PLOT_HEIGHT)


def height_of(drawn: MemoryMap) -> int:
    """Of the whole picture, pixels."""
    rows = -(-len(drawn.panels) // drawn.columns)
    return HEAD + rows * (ABOVE + PLOT_HEIGHT + BELOW) + 26 + 18 * len(drawn.notes) + 10


def under(panel: Panel, f: Frame) -> Iterator[Mark]:
    """What stands behind a panel's rectangles and around them: caption, grid, ticks."""
    yield Words(f.left, f.top - 24, panel.caption, "caption")
    for at, label in style.address_ticks(f.drawn.top, 8):
        y = f.y(at)
        yield Rule(f.left, y, f.width, "grid")
        yield Words(f.left - 6, y + 4, label, "note", "end")
    for column, label in style.step_ticks(f.drawn.borders, max(2, int(f.width // 70))):
        yield Words(f.x(f.drawn.borders[column]), f.top + f.height + 16, label, "note", "middle")
    x, y = f.left + f.width / 2, f.top + f.height / 2
    yield Words(x, f.top + f.height + 33, "step", "note", "middle")
    yield Words(f.left - 74, y, "address", "note", "middle", turned=True)
    if not panel.segments:
        yield Words(x, y, "no bytes to place", "note", "middle")


def over(panel: Panel, f: Frame) -> Iterator[Mark]:
    """What stands on a panel's rectangles: names where there is room, the peak and the bound."""
    for area in panel.segments:
        name = name_of(area.buffer)
        left, top, width, height = f.box(area)
        x, y = left + width / 2, top + height / 2
        way = style.fits(name, width, height)
        if way == "along":
            yield Words(x, y + 4, name, "name", "middle")
        elif way == "up":
            yield Words(x + 4, y, name, "name", "middle", turned=True)
    end = f.left + f.width
    for n, (address, what) in enumerate(panel.levels):
        y, role = f.y(address), "bound" if n else "peak"
        yield Rule(f.left, y, f.width + 8, role)
        middle = y + _apart(panel, f) * (1 if n else -1)
        yield Words(end + 12, middle - 2, what, role)
        yield Words(end + 12, middle + 11, f"{address:,} bytes", role)


def _apart(panel: Panel, f: Frame) -> float:
    """How far the words of two levels move from their lines so as not to meet, pixels."""
    heights = [f.y(address) for address, _ in panel.levels]
    return max(0.0, (28 - (heights[-1] - heights[0])) / 2) if len(heights) > 1 else 0.0


def foot(drawn: MemoryMap) -> Iterator[Mark]:
    """The legend and the notes."""
    outlines = any(p.outlines for p in drawn.panels)
    bounds = any(len(p.levels) > 1 for p in drawn.panels)
    signs = {
        "bytes": ("the bytes of one buffer", True),
        "outline": ("shows bytes that others wrote: a concat written in place, or a view", outlines),
        "peak": ("peak", True),
        "bound": ("lower bound, proven", bounds),
    }
    x, y = 10.0, height_of(drawn) - 18 * len(drawn.notes) - 20
    for role, (words, is_used) in signs.items():
        if is_used:
            yield Swatch(x, y - 10, role) if role in ("bytes", "outline") else Rule(x, y - 4, 24, role)
            yield Words(x + 31, y, words)
            x += 40 + 0.9 * style.text_width(words, 12)
    for k, note in enumerate(drawn.notes):
        yield Words(10, y + 4 + 18 * (k + 1), note, "note")
