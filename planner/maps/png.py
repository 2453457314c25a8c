"""A memory map as PNG, through matplotlib; laid out as the SVG is."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

from planner.files.text import FileError
from planner.maps import style
from planner.maps.memory_map import Area, MemoryMap, Panel, name_of, printable, shortened
from planner.maps.svg import WIDTH, Frame, apart, frames, height_of, signs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI, SCALE = 100, 2
"""Pixels of layout in an inch, and how many pixels of the file each of them gets."""

_POINT = 72 / DPI  # points in a pixel of layout
_LINES = {"peak": (style.PEAK, "-"), "bound": (style.BOUND, "--")}


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
        page = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0), zorder=1)  # over the plots
        page.set_axis_off()
        _write(page, 10, 22, shortened(printable(drawn.title) or "Memory map", 110), 16, weight="bold")
        for panel, frame in frames(drawn):
            _panel(figure, page, panel, frame, height)
        _foot(page, drawn, height)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=DPI * SCALE, metadata={"Software": None})
    return out.getvalue()


def _panel(figure: Figure, page: Axes, panel: Panel, f: Frame, height: int) -> None:
    columns, top = max(len(f.drawn.borders) - 1, 1), f.drawn.top
    place = (f.left / WIDTH, 1 - (f.top + f.height) / height, f.width / WIDTH, f.height / height)
    ax = figure.add_axes(place, xlim=(0, columns), ylim=(0, top))
    ax.set_axis_off()
    for at, label in style.address_ticks(top, 8):
        ax.axhline(at, color=style.GRID, lw=_POINT, zorder=0, clip_on=False)
        _write(page, f.left - 6, f.y(at) + 4, label, 12, "right", style.MUTED)
    for column, label in style.step_ticks(f.drawn.borders, max(2, int(f.width // 70))):
        _write(page, f.x(f.drawn.borders[column]), f.top + f.height + 16, label, 12, "center", style.MUTED)
    x, y = f.left + f.width / 2, f.top + f.height / 2
    _write(page, x, f.top + f.height + 33, "step", 12, "center", style.MUTED)
    _write(page, f.left - 74, y, "address", 12, "center", style.MUTED, rotation=90)
    _write(page, f.left, f.top - 24, panel.caption, 12, weight="bold")
    if not panel.segments:
        _write(page, x, y, "no bytes to place", 12, "center", style.MUTED)
    _areas(ax, panel, f)
    for a in panel.segments:
        name, x, y = name_of(a.buffer), (f.x(a.start) + f.x(a.end)) / 2, (f.y(a.low) + f.y(a.high)) / 2
        way = style.fits(name, f.x(a.end) - f.x(a.start), f.y(a.low) - f.y(a.high))
        if way == "along":
            _write(page, x, y + 4, name, style.NAME, "center")
        elif way == "up":
            _write(page, x + 4, y, name, style.NAME, "center", rotation=90)
    _levels(page, panel, f)


def _areas(ax: Axes, panel: Panel, f: Frame) -> None:
    """Rectangles, those that are wide and high enough with a border, and outlines."""
    from matplotlib.collections import PolyCollection

    def corners(a: Area) -> list[tuple[int, int]]:
        left, right = f.drawn.column[a.start], f.drawn.column[a.end]
        return [(left, a.low), (right, a.low), (right, a.high), (left, a.high)]

    colours = [style.PALETTE[style.colour_of(name_of(a.buffer))] for a in panel.segments]
    seen = [min(f.x(a.end) - f.x(a.start), f.y(a.low) - f.y(a.high)) >= style.BORDERED for a in panel.segments]
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


def _levels(page: Axes, panel: Panel, f: Frame) -> None:
    """The peak, and the bound where it is another; what they are stands to their right."""
    end = f.left + f.width
    for n, (address, what) in enumerate(panel.levels):
        y = f.y(address)
        colour, dashes = _LINES["bound" if n else "peak"]
        page.plot((f.left, end + 8), (y, y), dashes, color=colour, lw=1.6 * _POINT)
        middle = y + apart(panel, f) * (1 if n else -1)
        _write(page, end + 12, middle - 2, what, 11, colour=colour)
        _write(page, end + 12, middle + 11, f"{address:,} bytes", 11, colour=colour)


def _foot(page: Axes, drawn: MemoryMap, height: int) -> None:
    y = height - 18 * len(drawn.notes) - 20
    for kind, words, x in signs(drawn):
        if kind in _LINES:
            colour, dashes = _LINES[kind]
            page.plot((x, x + 24), (y - 4, y - 4), dashes, color=colour, lw=1.6 * _POINT)
        else:
            face, edge, line = ("none", "#333333", "--") if kind == "o" else (style.PALETTE[0], "none", "-")
            xs, ys = (x, x + 24, x + 24, x), (y - 10, y - 10, y + 2, y + 2)
            page.fill(xs, ys, facecolor=face, edgecolor=edge, linestyle=line, linewidth=1.2 * _POINT)
        _write(page, x + 31, y, words, 12)
    for k, note in enumerate(drawn.notes):
        _write(page, 10, y + 4 + 18 * (k + 1), note, 12, colour=style.MUTED)


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
