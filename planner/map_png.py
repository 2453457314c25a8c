"""A memory map as PNG, through matplotlib."""

from __future__ import annotations

import io
import warnings

from planner import map_style as style
from planner.map_svg import WIDTH, Frame, height_of
from planner.memory_map import Area, MemoryMap, Panel, name_of, printable, shortened
from planner.textfiles import FileError

DPI, SCALE = 100, 2
"""Dots per inch of layout, and how many pixels each of them gets."""


def png(drawn: MemoryMap) -> bytes:
    """Draw a memory map; raises `FileError` if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise FileError("matplotlib is missing: pip install 'arena-planner[plot]'") from None
    figure = Figure((WIDTH / DPI, height_of(drawn) / DPI), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(_plain(shortened(printable(drawn.title) or "Memory map", 110)), fontsize=12)
    across = drawn.columns
    rows = max(1, -(-len(drawn.panels) // across))
    axes = figure.subplots(rows, across, squeeze=False)
    for k, ax in enumerate(axes.flat):
        if k < len(drawn.panels):
            _panel(ax, drawn, drawn.panels[k])
        else:
            ax.set_axis_off()
    notes = list(drawn.notes)
    if any(p.outlines for p in drawn.panels):
        notes.insert(0, "Dashed: shows bytes that others wrote, a concat written in place, or a view.")
    figure.supxlabel(_plain("\n".join(notes)), fontsize=8, color=style.MUTED)
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font that lacks a letter shows a box
        figure.savefig(out, format="png", dpi=DPI * SCALE, metadata={"Software": None})
    return out.getvalue()


def _panel(ax: object, drawn: MemoryMap, panel: Panel) -> None:
    from matplotlib.collections import PolyCollection

    column = drawn.column

    def corners(a: Area) -> list[tuple[int, int]]:
        left, right = column[a.start], column[a.end]
        return [(left, a.low), (right, a.low), (right, a.high), (left, a.high)]

    colours = [style.PALETTE[style.colour_of(name_of(a.buffer))] for a in panel.segments]
    ax.add_collection(  # type: ignore[attr-defined]
        PolyCollection([corners(a) for a in panel.segments], facecolors=colours, edgecolors="white", linewidths=0.3)
    )
    ax.add_collection(  # type: ignore[attr-defined]
        PolyCollection([corners(a) for a in panel.outlines], facecolors="none", edgecolors="#333333", linestyles="--")
    )
    plot = Frame(drawn, 0, 0, WIDTH / drawn.columns - 100, 360)
    for a in panel.segments:
        name = name_of(a.buffer)
        width, height = plot.x(a.end) - plot.x(a.start), plot.y(a.low) - plot.y(a.high)
        if height >= 13 and style.text_width(name, 11) + 6 <= width:
            middle = ((column[a.start] + column[a.end]) / 2, (a.low + a.high) / 2)
            ax.text(*middle, _plain(name), ha="center", va="center", fontsize=7)  # type: ignore[attr-defined]
    ax.axhline(panel.peak, color=style.PEAK, lw=1.2, label=f"peak {panel.peak:,}")  # type: ignore[attr-defined]
    if panel.lower_bound is not None:
        label = f"bound {panel.lower_bound:,}"
        ax.axhline(panel.lower_bound, color=style.BOUND, lw=1.2, ls=":", label=label)  # type: ignore[attr-defined]
    ax.legend(loc="lower right", fontsize=7, framealpha=0.9)  # type: ignore[attr-defined]
    ax.set_title(_plain(shortened(panel.caption, 95)), fontsize=9, loc="left")  # type: ignore[attr-defined]
    ticks = style.address_ticks(drawn.top, 8)
    ax.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=8)  # type: ignore[attr-defined]
    steps = style.step_ticks(drawn.borders, 12 // drawn.columns)
    ax.set_xticks([k for k, _ in steps], [label for _, label in steps], fontsize=8)  # type: ignore[attr-defined]
    ax.set_xlabel("step", fontsize=8)  # type: ignore[attr-defined]
    ax.set_xlim(0, max(len(drawn.borders) - 1, 1))  # type: ignore[attr-defined]
    ax.set_ylim(0, drawn.top * 1.05)  # type: ignore[attr-defined]


def _plain(text: str) -> str:
    """Text that is no formula to matplotlib."""
    return text.replace("$", r"\$")
