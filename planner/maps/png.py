"""A memory map as PNG, through matplotlib; laid out as the SVG is."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

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
from solvers.files.text import FileError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI, SCALE = 100, 2
"""Pixels of layout in an inch, and how many pixels of the file each of them gets."""

_POINT = 72 / DPI  # points in a pixel of layout

_LOOKS = {
    "plain": (12, style.INK),
    "caption": (12, style.INK),
    "note": (12, style.MUTED),
    "name": (style.NAME, style.INK),
    "peak": (11, style.PEAK),
    "bound": (11, style.BOUND),
}
"""Size (pixels of layout) and colour of words by their role."""

_LINES = {"grid": (style.GRID, 1.0, "-"), "peak": (style.PEAK, 1.6, "-"), "bound": (style.BOUND, 1.6, "--")}
"""Colour, width (pixels of layout) and dashes of rules by their role."""


def png(drawn: MemoryMap) -> bytes:
    """Draw a memory map; raises `FileError` if matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise FileError("matplotlib is missing: pip install 'arena-planner[plot]'") from None
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font that lacks a letter shows a box
        matplotlib.rcdefaults()
        height = height_of(drawn)
        figure = Figure((WIDTH / DPI, height / DPI), dpi=DPI)
        FigureCanvasAgg(figure)
        back, page = (_page(figure, height, zorder) for zorder in (-1, 1))  # behind the plots, and over them
        _write(page, 10, 22, shortened(printable(drawn.title) or "Memory map", 110), 16, weight="bold")
        for panel, frame in frames(drawn):
            for mark in under(panel, frame):
                _paint(back, mark)
            _areas(_plot(figure, frame, height), panel, frame)
            for mark in over(panel, frame):
                _paint(page, mark)
        for mark in foot(drawn):
            _paint(page, mark)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=DPI * SCALE, metadata={"Software": None})
    return out.getvalue()


def _page(figure: Figure, height: int, zorder: int) -> Axes:
    """Axes over the whole figure, in pixels of layout."""
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0), zorder=zorder)
    page.set_axis_off()
    return page


def _plot(figure: Figure, f: Frame, height: int) -> Axes:
    """Axes of a panel's rectangles: columns of time across, addresses up."""
    place = (f.left / WIDTH, 1 - (f.top + f.height) / height, f.width / WIDTH, f.height / height)
    plot = figure.add_axes(place, xlim=(0, max(len(f.drawn.borders) - 1, 1)), ylim=(0, f.drawn.top))
    plot.set_axis_off()
    return plot


def _paint(page: Axes, mark: Mark) -> None:
    match mark:
        case Rule(x, y, length, role):
            colour, width, dashes = _LINES[role]
            page.plot((x, x + length), (y, y), dashes, color=colour, lw=width * _POINT)
        case Swatch(x, y, role):
            face, edge, line = ("none", "#333333", "--") if role == "outline" else (style.PALETTE[0], "none", "-")
            xs, ys = (x, x + 24, x + 24, x), (y, y, y + 12, y + 12)
            page.fill(xs, ys, facecolor=face, edgecolor=edge, linestyle=line, linewidth=1.2 * _POINT)
        case Words(x, y, text, role, anchor, turned):
            size, colour = _LOOKS[role]
            align = {"start": "left", "middle": "center", "end": "right"}[anchor]
            bold = "bold" if role == "caption" else "normal"
            _write(page, x, y, text, size, align, colour, 90 if turned else 0, bold)


def _areas(ax: Axes, panel: Panel, f: Frame) -> None:
    """Rectangles, those that are wide and high enough with a border, and outlines."""
    from matplotlib.collections import PolyCollection

    def corners(a: Area) -> list[tuple[int, int]]:
        left, right = f.drawn.column[a.start], f.drawn.column[a.end]
        return [(left, a.low), (right, a.low), (right, a.high), (left, a.high)]

    colours = [style.PALETTE[style.colour_of(name_of(a.buffer))] for a in panel.segments]
    seen = [min(f.box(a)[2:]) >= style.BORDERED for a in panel.segments]
    ax.add_collection(
        PolyCollection(
            [corners(a) for a in panel.segments],
            facecolors=colours,
            edgecolors=["white" if s else c for s, c in zip(seen, colours, strict=True)],
            linewidths=[0.5 * _POINT if s else 0.3 * _POINT for s in seen],
        )
    )
    ax.add_collection(
        PolyCollection(
            [corners(a) for a in panel.outlines],
            facecolors="none",
            edgecolors="#333333",
            linewidths=1.2 * _POINT,
            linestyles="--",
            clip_on=False,
        )
    )


def _write(
    page: Axes,
    x: float,
    y: float,
    text: str,
    size: float,
    align: str = "left",
    colour: str = style.INK,
    rotation: float = 0,
    weight: str = "normal",
) -> None:
    """A line of text on its baseline, ``size`` in pixels of layout; never read as a formula."""
    page.text(
        x,
        y,
        text,
        fontsize=0.92 * size * _POINT,  # DejaVu Sans is wider than the fonts of browsers
        color=colour,
        horizontalalignment=align,
        verticalalignment="baseline",
        rotation=rotation,
        rotation_mode="anchor",
        fontweight=weight,
        parse_math=False,
    )
