"""A memory map as SVG: one file, no scripts, tooltips by ``<title>``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from planner import map_style as style
from planner.memory_map import Area, MemoryMap, Panel, name_of, printable, shortened

WIDTH, PLOT_HEIGHT = 1200, 400
LEFT, RIGHT, ABOVE, BELOW, HEAD, GAP = 84, 16, 54, 44, 34, 20
"""Pixels: the picture, a panel's plot, and the margins around it."""

MANY = 2000
"""More rectangles than these have no borders: borders would be all that is seen."""


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


def frames(drawn: MemoryMap) -> Iterator[tuple[Panel, Frame]]:
    """Every panel, and where it is drawn."""
    across = drawn.columns
    cell = (WIDTH - GAP * (across - 1)) / across
    for k, panel in enumerate(drawn.panels):
        left = (k % across) * (cell + GAP) + LEFT
        top = HEAD + (k // across) * (ABOVE + PLOT_HEIGHT + BELOW) + ABOVE
        yield panel, Frame(drawn, left, top, cell - LEFT - RIGHT, PLOT_HEIGHT)


def height_of(drawn: MemoryMap) -> int:
    """Of the whole picture, pixels."""
    rows = -(-len(drawn.panels) // drawn.columns)
    return HEAD + rows * (ABOVE + PLOT_HEIGHT + BELOW) + 22 + 18 * len(drawn.notes) + 10


def svg(drawn: MemoryMap) -> str:
    """Draw a memory map.

    Parameters
    ----------
    drawn : MemoryMap

    Returns
    -------
    str
        Well-formed XML.
    """
    height = height_of(drawn)
    title = printable(drawn.title) or "Memory map"
    border = 0.4 if sum(len(p.segments) for p in drawn.panels) <= MANY else 0
    colours = "".join(f".c{k}{{fill:{c}}}" for k, c in enumerate(style.PALETTE))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="Inter,Helvetica,Arial,sans-serif" font-size="12" fill="{style.INK}">',
        f"<title>{escape(title)}</title><desc>{escape(drawn.description)}</desc>",
        f"<style>rect{{stroke:#fff;stroke-width:{border}}}"
        ".o{fill:none;stroke:#333;stroke-width:1.2;stroke-dasharray:4 3}"
        f".p{{fill:{style.PAPER};stroke:none}}.n{{pointer-events:none;font-size:11px}}.m{{fill:{style.MUTED}}}"
        f".g{{stroke:{style.GRID};stroke-width:1}}{colours}</style>",
        f'<rect class="p" width="{WIDTH}" height="{height}"/>',
        f'<text x="10" y="22" font-size="16" font-weight="600">{escape(shortened(title, 110))}</text>',
    ]
    for panel, frame in frames(drawn):
        parts += _panel(panel, frame)
    parts += _foot(drawn, height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, f: Frame) -> Iterator[str]:
    yield f'<text x="{f.left:g}" y="{f.top - 34:g}" font-weight="600">{escape(shortened(panel.caption, 95))}</text>'
    for at, label in style.address_ticks(f.drawn.top, 8):
        y = f.y(at)
        yield f'<path class="g" d="M{f.left:.1f} {y:.1f}h{f.width:.1f}"/>'
        yield f'<text class="m" x="{f.left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    for column, label in style.step_ticks(f.drawn.borders, max(2, int(f.width // 90))):
        x = f.x(f.drawn.borders[column])
        yield f'<text class="m" x="{x:.1f}" y="{f.top + f.height + 16:.1f}" text-anchor="middle">{label}</text>'
    middle = f.left + f.width / 2
    yield f'<text class="m" x="{middle:.1f}" y="{f.top + f.height + 33:.1f}" text-anchor="middle">step</text>'
    names: list[str] = []
    for area in panel.segments:
        yield _rectangle(panel, area, f, f"c{style.colour_of(name_of(area.buffer))}")
        names += _name(area, f)
    for area in panel.outlines:
        yield _rectangle(panel, area, f, "o")
    yield from names
    yield from _lines(panel, f)


def _rectangle(panel: Panel, a: Area, f: Frame, kind: str) -> str:
    x, y = f.x(a.start), f.y(a.high)
    said = escape("\n".join(panel.tooltip(a)))
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(f.x(a.end) - x, 0.3):.1f}" '
        f'height="{max(f.y(a.low) - y, 0.3):.1f}"><title>{said}</title></rect>'
    )


def _name(a: Area, f: Frame) -> Iterator[str]:
    """A name, where it fits into the rectangle."""
    x, y = f.x(a.start), f.y(a.high)
    width, height = f.x(a.end) - x, f.y(a.low) - y
    name = name_of(a.buffer)
    if height >= 13 and style.text_width(name, 11) + 6 <= width:
        at = f'x="{x + width / 2:.1f}" y="{y + height / 2 + 4:.1f}"'
        yield f'<text class="n" {at} text-anchor="middle">{escape(name)}</text>'


def _lines(panel: Panel, f: Frame) -> Iterator[str]:
    """The peak, and the bound where it is another."""
    bound = panel.lower_bound
    met = bound == panel.peak
    lines = [(panel.peak, style.PEAK, f"peak {panel.peak:,}" + (" = bound" if met else ""), -5)]
    if bound is not None and not met:
        lines.append((bound, style.BOUND, f"bound {bound:,}", 13))
    for address, colour, label, shift in lines:
        y = f.y(address)
        yield f'<path d="M{f.left:.1f} {y:.1f}h{f.width:.1f}" stroke="{colour}" stroke-width="1.5"/>'
        yield (
            f'<text x="{f.left + f.width:.1f}" y="{y + shift:.1f}" text-anchor="end" fill="{colour}" '
            f'stroke="#fff" stroke-width="3" paint-order="stroke">{label}</text>'
        )


def _foot(drawn: MemoryMap, height: int) -> Iterator[str]:
    y = height - 18 * len(drawn.notes) - 16
    if any(p.outlines for p in drawn.panels):
        yield f'<rect class="o" x="10" y="{y - 10}" width="22" height="11"/>'
        yield f'<text x="38" y="{y}">shows bytes that others wrote: a concat written in place, or a view</text>'
    for k, note in enumerate(drawn.notes):
        yield f'<text class="m" x="10" y="{y + 18 * (k + 1)}">{escape(note)}</text>'
