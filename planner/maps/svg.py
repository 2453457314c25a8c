"""A memory map as SVG: one file, no scripts, tooltips by ``<title>``."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from planner.maps import style
from planner.maps.layout import (
    WIDTH,
    Frame,
    Mark,
    Rule,
    Swatch,
    Words,
    foot,
    frames,
    height_of,
    over,
    under,
)
from planner.maps.memory_map import Area, MemoryMap, Panel, name_of, printable, shortened

_LOOKS = {
    "plain": "",
    "caption": 'font-weight="600"',
    "note": 'class="m"',
    "name": 'class="n"',
    "peak": f'class="l" fill="{style.PEAK}"',
    "bound": f'class="l" fill="{style.BOUND}"',
}
"""Attributes of words by their role."""

_CLASSES = {"grid": "g", "peak": "peak", "bound": "bound", "bytes": "c0", "outline": "o"}
"""Classes of rules and swatches by their role."""


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
        f".n{{pointer-events:none;font-size:{style.NAME}px}}.m{{fill:{style.MUTED}}}"
        f".g{{stroke:{style.GRID}}}.l{{font-size:11px}}"
        f".peak{{stroke:{style.PEAK};stroke-width:1.6}}"
        f".bound{{stroke:{style.BOUND};stroke-width:1.6;stroke-dasharray:7 4}}{colours}</style>",
        f'<path fill="{style.PAPER}" d="M0 0h{WIDTH}v{height}H0z"/>',
        f'<text x="10" y="22" font-size="16" font-weight="600">{escape(shortened(title, 110))}</text>',
    ]
    for panel, frame in frames(drawn):
        parts += map(_painted, under(panel, frame))
        parts += _areas(panel, frame)
        parts += map(_painted, over(panel, frame))
    parts += map(_painted, foot(drawn))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _painted(mark: Mark) -> str:
    match mark:
        case Rule(x, y, length, role):
            return f'<path class="{_CLASSES[role]}" d="M{x:.1f} {y:.1f}h{length:.1f}"/>'
        case Swatch(x, y, role):
            return f'<path class="{_CLASSES[role]}" d="M{x:.1f} {y:.1f}h24v12h-24z"/>'
        case Words(x, y, text, role, anchor, turned):
            place = f'transform="translate({x:.1f} {y:.1f})rotate(-90)"' if turned else f'x="{x:.1f}" y="{y:.1f}"'
            anchored = f'text-anchor="{anchor}"' if anchor != "start" else ""
            attributes = " ".join(filter(None, (_LOOKS[role], place, anchored)))
            return f"<text {attributes}>{escape(text)}</text>"


def _areas(panel: Panel, f: Frame) -> Iterator[str]:
    for area in panel.segments:
        yield _rectangle(panel, area, f, f"c{style.colour_of(name_of(area.buffer))}")
    for area in panel.outlines:
        yield _rectangle(panel, area, f, "o")


def _rectangle(panel: Panel, a: Area, f: Frame, kind: str) -> str:
    x, y, width, height = f.box(a)
    width, height = max(width, 0.3), max(height, 0.3)
    border = " b" if kind != "o" and min(width, height) >= style.BORDERED else ""
    said = escape("\n".join(panel.tooltip(a)))
    return (
        f'<rect class="{kind}{border}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"<title>{said}</title></rect>"
    )
