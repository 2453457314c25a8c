"""Colours, ticks and the width of text: what every kind of memory map draws with."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Sequence

INK, MUTED, GRID, PAPER = "#1a1a1a", "#555555", "#e2e2e2", "#ffffff"
PEAK, BOUND = "#b3261e", "#0b57d0"

NAME = 11
"""Size of a name in a rectangle, pixels."""

BORDERED = 3
"""Rectangles narrower or lower than these pixels have no border: it would be all that is seen of them."""

_HUES = 24
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def _oklch(lightness: float, chroma: float, hue: float) -> str:
    """A colour by perceived lightness, chroma and hue (turns), as ``#rrggbb``.

    The matrices are those of B. Ottosson, "A perceptual color space for image processing" (2020).
    """
    a, b = chroma * math.cos(math.tau * hue), chroma * math.sin(math.tau * hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    return "#" + "".join(f"{_srgb(c):02x}" for c in linear)


def _srgb(linear: float) -> int:
    """A linear colour component in [0, 1] as an sRGB byte (IEC 61966-2-1)."""
    c = min(max(linear, 0.0), 1.0)
    return round(255 * (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055))


PALETTE = tuple(
    _oklch(lightness, chroma, hue / _HUES)
    for lightness, chroma in ((0.80, 0.10), (0.89, 0.065))
    for hue in range(_HUES)
)
"""Light colours, on which `INK` reads well."""


def colour_of(name: str) -> int:
    """Index in `PALETTE`: the same name has the same colour in every picture."""
    return hashlib.sha256(name.encode()).digest()[0] % len(PALETTE)


def address_ticks(top: int, most: int) -> list[tuple[int, str]]:
    """At most about ``most`` addresses in ``[0, top]`` at multiples of a power of two, and what to write there."""
    step = 1
    while top // step > most:
        step *= 2
    unit = min(max(top.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    if unit and step * 4 < 1024**unit:
        unit -= 1
    return [(at, f"{at / 1024**unit:,g} {_UNITS[unit]}" if at else "0") for at in range(0, top + 1, step)]


def step_ticks(borders: Sequence[int], most: int) -> list[tuple[int, str]]:
    """About ``most`` columns spread over the time scale, the roundest steps near by, and what to write there."""
    if not borders:
        return []
    last = len(borders) - 1
    apart = max(1, math.ceil(last / max(most, 1)))
    ticks = []
    for middle in range(0, last + 1, apart):
        near = range(max(middle - apart // 4, 0), min(middle + apart // 4, last) + 1)
        column = max(near, key=lambda k: (_roundness(borders[k]), -abs(k - middle)))
        ticks.append((column, f"{borders[column]:,}"))
    return ticks


def _roundness(step: int) -> int:
    """Of 1, 2, 5, 10, 20, ..., how many divide the step."""
    if not step:
        return 99
    return sum(step % (k * 10**power) == 0 for power in range(19) for k in (1, 2, 5))


def fits(name: str, width: float, height: float) -> str | None:
    """How a rectangle of so many pixels has room for its name: ``along`` it, ``up`` it, or not."""
    if max(width, height) < NAME or len(name) > 200:
        return None
    long, tall = text_width(name, NAME) + 6, NAME + 2
    if long <= width and tall <= height:
        return "along"
    return "up" if tall <= width < height and long <= height else None


def text_width(text: str, size: float) -> float:
    """Width of a text in a sans-serif font of that size, seldom too small."""
    return size * sum(_em(c) for c in text)


def _em(c: str) -> float:
    if unicodedata.east_asian_width(c) in "WF" or c in "WM@%mw\ufffd":
        return 1.0
    return 0.75 if c.isupper() else 0.62
