"""A memory map as SVG, HTML or PNG: the one call."""

from __future__ import annotations

from collections.abc import Sequence

from planner.maps.html import html
from planner.maps.memory_map import LEFT_OUT, MemoryMap, Panel
from planner.maps.png import png
from planner.maps.svg import svg
from solvers.files.text import FileError

SUFFIXES = (".svg", ".html", ".png")


def render(panels: Sequence[Panel], suffix: str, title: str = "", left_out: str = LEFT_OUT) -> str | bytes:
    """Draw plans side by side on one scale.

    Parameters
    ----------
    panels : sequence of Panel
    suffix : str
        ``.svg`` or ``.html``, as text, or ``.png``.
    title : str
    left_out : str
        What the picture does not show; it is written under it.

    Raises
    ------
    FileError
        If the suffix is another, or matplotlib, which draws ``.png``, is missing.
    """
    drawn = MemoryMap(tuple(panels), title, left_out)
    if suffix == ".svg":
        return svg(drawn)
    if suffix == ".html":
        return html(drawn)
    if suffix == ".png":
        return png(drawn)
    raise FileError(f"{suffix!r}: a picture is written as {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
