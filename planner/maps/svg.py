"""A memory map as SVG: one file, no scripts, tooltips by ``<title>``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from planner.maps import style
from planner.maps.memory_map import Area, MemoryMap, Panel, name_of, printable, shortened

WIDTH, PLOT_HEIGHT = 1200, 400
LEFT, ABOVE, BELOW, HEAD, GAP = 88, 44, 44, 34, 20
"""Pixels: the picture, a panel's plot, and the margins around it."""


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
    right = 26 + max((style.text_width(f"{at:,} bytes", 11) for p in drawn.panels for at, _ in p.levels), default=0)
    for k, panel in enumerate(drawn.panels):
        left = (k % across) * (cell + GAP) + LEFT
        top = HEAD + (k // across) * (ABOVE + PLOT_HEIGHT + BELOW) + ABOVE
        yield panel, Frame(drawn, left, top, cell - LEFT - right, PLOT_HEIGHT)


def height_of(drawn: MemoryMap) -> int:
    """Of the whole picture, pixels."""
    rows = -(-len(drawn.panels) // drawn.columns)
    return HEAD + rows * (ABOVE + PLOT_HEIGHT + BELOW) + 26 + 18 * len(drawn.notes) + 10


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
    colours = "".join(f".c{k}{{fill:{c}}}" for k, c in enumerate(style.PALETTE))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="Inter,Helvetica,Arial,sans-serif" font-size="12" fill="{style.INK}">',
        f"<title>{escape(title)}</title><desc>{escape(drawn.description)}</desc>",
        "<style>.b{stroke:#fff;stroke-width:.5}rect:hover{stroke:#1a1a1a;stroke-width:2}"
        ".o{fill:none;stroke:#333;stroke-width:1.2;stroke-dasharray:4 3}"
        f".n{{pointer-events:none;font-size:{style.NAME}px;text-anchor:middle}}.m{{fill:{style.MUTED}}}"
        f".g{{stroke:{style.GRID}}}.l{{font-size:11px}}"
        f".peak{{stroke:{style.PEAK};stroke-width:1.6}}"
        f".bound{{stroke:{style.BOUND};stroke-width:1.6;stroke-dasharray:7 4}}{colours}</style>",
        f'<path fill="{style.PAPER}" d="M0 0h{WIDTH}v{height}H0z"/>',
        f'<text x="10" y="22" font-size="16" font-weight="600">{escape(shortened(title, 110))}</text>',
    ]
    for panel, frame in frames(drawn):
        parts += _panel(panel, frame)
    parts += _foot(drawn, height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, f: Frame) -> Iterator[str]:
    yield f'<text x="{f.left:g}" y="{f.top - 24:g}" font-weight="600">{escape(panel.caption)}</text>'
    for at, label in style.address_ticks(f.drawn.top, 8):
        y = f.y(at)
        yield f'<path class="g" d="M{f.left:.1f} {y:.1f}h{f.width:.1f}"/>'
        yield f'<text class="m" x="{f.left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    for column, label in style.step_ticks(f.drawn.borders, max(2, int(f.width // 70))):
        x = f.x(f.drawn.borders[column])
        yield f'<text class="m" x="{x:.1f}" y="{f.top + f.height + 16:.1f}" text-anchor="middle">{label}</text>'
    x, y = f.left + f.width / 2, f.top + f.height / 2
    yield f'<text class="m" x="{x:.1f}" y="{f.top + f.height + 33:.1f}" text-anchor="middle">step</text>'
    turned = f'transform="translate({f.left - 74:.1f} {y:.1f})rotate(-90)"'
    yield f'<text class="m" {turned} text-anchor="middle">address</text>'
    if not panel.segments:
        yield f'<text class="m" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">no bytes to place</text>'
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
    width, height = max(f.x(a.end) - x, 0.3), max(f.y(a.low) - y, 0.3)
    border = " b" if kind != "o" and min(width, height) >= style.BORDERED else ""
    said = escape("\n".join(panel.tooltip(a)))
    return (
        f'<rect class="{kind}{border}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"<title>{said}</title></rect>"
    )


def _name(a: Area, f: Frame) -> Iterator[str]:
    """A name, where it fits into the rectangle, along or up."""
    name, x, y = name_of(a.buffer), (f.x(a.start) + f.x(a.end)) / 2, (f.y(a.low) + f.y(a.high)) / 2
    way = style.fits(name, f.x(a.end) - f.x(a.start), f.y(a.low) - f.y(a.high))
    if way == "along":
        yield f'<text class="n" x="{x:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
    elif way == "up":
        yield f'<text class="n" transform="translate({x + 4:.1f} {y:.1f})rotate(-90)">{escape(name)}</text>'


def _lines(panel: Panel, f: Frame) -> Iterator[str]:
    """The peak, and the bound where it is another; what they are stands to their right."""
    end = f.left + f.width
    for n, (address, what) in enumerate(panel.levels):
        y = f.y(address)
        kind, colour = ("bound", style.BOUND) if n else ("peak", style.PEAK)
        yield f'<path class="{kind}" d="M{f.left:.1f} {y:.1f}h{f.width + 8:.1f}"/>'
        middle = y + apart(panel, f) * (1 if n else -1)
        for line, down in ((what, -2), (f"{address:,} bytes", 11)):
            yield f'<text class="l" x="{end + 12:.1f}" y="{middle + down:.1f}" fill="{colour}">{line}</text>'


def apart(panel: Panel, f: Frame) -> float:
    """How far the words of two levels move from their lines so as not to meet, pixels."""
    heights = [f.y(address) for address, _ in panel.levels]
    return max(0.0, (28 - (heights[-1] - heights[0])) / 2) if len(heights) > 1 else 0.0


def signs(drawn: MemoryMap) -> Iterator[tuple[str, str, float]]:
    """The legend: class of the sign, its words, and where it begins, pixels from the left."""
    x = 10.0
    used = {
        "c0": ("the bytes of one buffer", True),
        "o": (
            "shows bytes that others wrote: a concat written in place, or a view",
            any(p.outlines for p in drawn.panels),
        ),
        "peak": ("peak", True),
        "bound": ("lower bound, proven", any(len(p.levels) > 1 for p in drawn.panels)),
    }
    for kind, (words, is_used) in used.items():
        if is_used:
            yield kind, words, x
            x += 40 + 0.9 * style.text_width(words, 12)


def _foot(drawn: MemoryMap, height: int) -> Iterator[str]:
    y = height - 18 * len(drawn.notes) - 20
    for kind, words, x in signs(drawn):
        box = f"M{x:.1f} {y - 10}h24v12h-24z" if kind in ("c0", "o") else f"M{x:.1f} {y - 4}h24"
        yield f'<path class="{kind}" d="{box}"/><text x="{x + 31:.1f}" y="{y}">{words}</text>'
    for k, note in enumerate(drawn.notes):
        yield f'<text class="m" x="10" y="{y + 4 + 18 * (k + 1)}">{escape(note)}</text>'
