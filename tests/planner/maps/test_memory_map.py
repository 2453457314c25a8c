"""Pictures: every segment is drawn where it lies, names do no harm, and the same plan gives the same bytes."""

import io
import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.maps.memory_map import LEFT_OUT, MemoryMap, Panel
from planner.maps.render import render
from planner.maps.style import INK, PALETTE, address_ticks, colour_of, fits, step_ticks, text_width
from solvers.files.text import FileError
from solvers.problem.buffers import Buffer, Colocation, ProblemError
from solvers.problem.problem import Problem
from solvers.problem.result import Solution
from solvers.search import solve
from tests.problems import tiling

SVG = "{http://www.w3.org/2000/svg}"


def panel_of(problem, title="greedy"):
    result = solve(problem, "greedy")
    return Panel(title, problem, result.solution, result.lower_bound)


def rectangles(picture):
    """Class, width and tooltip of every rectangle that has a tooltip."""
    root = ET.fromstring(picture)
    titled = [(r, r.find(f"{SVG}title")) for r in root.iter(f"{SVG}rect")]
    return [(r.get("class"), r, title.text) for r, title in titled if title is not None]


def numbers(text):
    return [float(n) for n in re.findall(r"-?[\d.]+", text)]


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))


@pytest.mark.parametrize("count", [1, 20, 200])
def test_every_segment_is_a_rectangle_of_its_bytes_and_steps(count):
    panel = panel_of(tiling(3, count))
    found = rectangles(render([panel], ".svg"))
    assert len(found) == len(panel.segments) == len(data_of(render([panel], ".html"))["panels"][0]["areas"])
    heights = sorted(float(r.get("height")) for _, r, _ in found)
    sizes = sorted(a.high - a.low for a in panel.segments)
    tallest = heights[-1] / sizes[-1]
    assert all(abs(h - max(n * tallest, 0.3)) < 0.5 for h, n in zip(heights, sizes, strict=True))


def test_a_concat_in_place_is_an_outline_and_its_parts_are_filled():
    ties = [Colocation("a", "w", 0), Colocation("b", "w", 8)]
    problem = Problem([Buffer("a", 8, 0, 2), Buffer("b", 8, 1, 3), Buffer("w", 16, 2, 5)], ties)
    classes = [c for c, _, _ in rectangles(render([panel_of(problem)], ".svg"))]
    assert sorted(c == "o" for c in classes) == [False, False, True]
    assert [a[5] for a in data_of(render([panel_of(problem)], ".html"))["panels"][0]["areas"]] == [0, 0, 1]


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_a_name_stands_inside_its_rectangle_along_or_up(shape):
    size = 1 if shape == "wide" else 6
    long = [Buffer(f"conv_{k}", size, 0, 3, label=f"conv_{k}") for k in range(6)]
    steps = [Buffer(f"add_{k}", 6 * size, 3 + k, 4 + k, label=f"add_{k}") for k in range(40)]
    panel = panel_of(Problem(long if shape == "wide" else steps))
    picture = render([panel], ".svg")
    boxes = {
        said.split("\n")[0]: [float(r.get(k)) for k in ("x", "y", "width", "height")]
        for _, r, said in rectangles(picture)
    }
    names = [t for t in ET.fromstring(picture).iter(f"{SVG}text") if t.get("class") == "n"]
    assert {t.text for t in names} == set(boxes)
    for t in names:
        turned = t.get("transform")
        assert (turned is None) == (shape == "wide")
        x, y = numbers(turned)[:2] if turned else (float(t.get("x")), float(t.get("y")))
        left, top, width, height = boxes[t.text]
        assert left < x < left + width
        assert top < y < top + height
        assert text_width(t.text, 11) < (height if turned else width)


@given(st.text(max_size=30), st.floats(0, 500), st.floats(0, 500))
def test_a_name_that_fits_still_fits_with_more_room(name, width, height):
    way = fits(name, width, height)
    if way == "along":
        assert fits(name, width + 10, height + 10) == "along"
    elif way == "up":
        assert fits(name, height, width) == "along"
        assert fits(name, width, height + 10) == "up"


@given(st.integers(1, 10**6), st.data())
def test_the_words_of_peak_and_bound_never_meet(peak, data):
    bound = data.draw(st.integers(0, peak))
    panel = Panel("p", Problem([Buffer("a", peak, 0, 1)]), Solution({"a": 0}), bound)
    words = [t for t in ET.fromstring(render([panel], ".svg")).iter(f"{SVG}text") if t.get("class") == "l"]
    assert [t.text for t in words if t.text.endswith("bytes")] == [f"{at:,} bytes" for at, _ in panel.levels]
    heights = [float(t.get("y")) for t in words]
    assert len(heights) == (2 if bound == peak else 4)
    assert all(b - a >= 11 for a, b in pairwise(heights))


def test_small_buffers_are_seen_in_a_png():
    image = pytest.importorskip("matplotlib.image")
    count = 1500
    panel = panel_of(Problem([Buffer(f"b{k}", 8, k, k + 1) for k in range(count)]))
    pixels = image.imread(io.BytesIO(render([panel], ".png")))[..., :3]
    height, width, _ = pixels.shape
    plot = pixels[height // 3 : height // 2, width // 5 : width * 4 // 5]
    assert (plot.min(axis=2) < 0.97).mean() > 0.99


def test_times_beyond_the_numbers_of_a_script_are_exact():
    panel = panel_of(Problem([Buffer("far", 8, -(2**60) - 1, 2**60 + 1)]))
    assert [int(t) for t in data_of(render([panel], ".html"))["borders"]] == [-(2**60) - 1, 2**60 + 1]


def test_panels_share_one_scale():
    small, large = tiling(1, 10), tiling(1, 10)
    twice = Problem([Buffer(b.id, 2 * b.size, b.start, b.end) for b in large.buffers])
    alone = rectangles(render([panel_of(twice)], ".svg"))
    beside = rectangles(render([panel_of(small), panel_of(twice)], ".svg"))
    heights = [float(r.get("height")) for _, r, _ in beside]
    assert max(heights[: len(small.buffers)]) <= max(heights[len(small.buffers) :]) / 2 + 1
    assert len(beside) == 2 * len(alone)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), st.text())
def test_names_do_no_harm(names, title):
    problem = Problem([Buffer(n, 64, 0, 2, label=n) for n in names])
    offsets = {n: 64 * k for k, n in enumerate(names)}
    panel = Panel(title, problem, Solution(offsets), 64 * len(names), {0: title})
    picture, page = render([panel], ".svg", title), render([panel], ".html", title)
    assert len(rectangles(picture)) == len(names)
    assert len(data_of(page)["panels"][0]["areas"]) == len(names)
    assert page.count("<script") == page.count("</script>") == 2
    picture.encode()
    page.encode()


STRANGE = ["</script><b>", "]]>", "<!--", "&amp;", "\x00\x1b", "\ud800", "$x_1$", "{}%s", "\u540d", "@DATA@", "@NOTES@"]


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names(name):
    panel = Panel(name, Problem([Buffer("b", 1 << 20, 0, 9, label=name)]), Solution({"b": 0}), None)
    assert len(rectangles(render([panel], ".svg", name))) == 1
    page = render([panel], ".html", name)
    assert page.count("</script>") == 2
    assert data_of(page)["panels"][0]["areas"][0][2:4] == [0, 1 << 20]
    assert render([panel], ".png", name)[:4] == b"\x89PNG"


@pytest.mark.parametrize("suffix", [".svg", ".html", ".png"])
@pytest.mark.parametrize(
    "buffers",
    [[], [Buffer("empty", 0, 0, 1)], [Buffer("one", 1, -1, 0)], [Buffer("far", 2**40, -(2**50), 2**50)]],
    ids=["none", "no bytes", "one byte", "huge"],
)
def test_odd_problems_are_drawn(buffers, suffix):
    panel = panel_of(Problem(buffers))
    assert render([panel, panel], suffix)


@pytest.mark.parametrize("suffix", [".svg", ".html", ".png"])
def test_the_same_plan_gives_the_same_bytes(suffix):
    panels = [panel_of(tiling(1, 20))]
    assert render(panels, suffix) == render(panels, suffix)


def test_it_says_what_it_leaves_out_and_the_peak_and_bound():
    problem = Problem([Buffer("a", 3000, 0, 2), Buffer("b", 2000, 1, 3)])
    panel = Panel("loose", problem, Solution({"a": 0, "b": 4000}), 5000)
    for picture in (render([panel], ".svg"), render([panel], ".html")):
        assert LEFT_OUT in picture
        assert "6,000 bytes, gap 16.7 %" in picture
    assert "5,000 bytes</text>" in render([panel], ".svg")
    assert [level[3:] for level in data_of(render([panel], ".html"))["panels"][0]["levels"]] == [
        ["peak", "6,000 bytes"],
        ["bound", "5,000 bytes"],
    ]


def test_four_thousand_buffers_stay_small():
    problem = Problem([Buffer(f"tensor_{k}", 100 + k % 7, k, k + 30) for k in range(4000)])
    panel = panel_of(problem)
    for suffix in (".svg", ".html", ".png"):
        assert len(render([panel, panel], suffix)) < 3_000_000


def test_a_colour_belongs_to_a_name():
    assert {colour_of(f"conv_{k}") for k in range(500)} == set(range(len(PALETTE)))
    assert colour_of("conv_1") == 33  # in every picture, of any run


def test_names_read_well_on_every_colour():
    def luminance(colour):  # WCAG 2.2
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert len(set(PALETTE)) == len(PALETTE)
    assert min((luminance(c) + 0.05) / (luminance(INK) + 0.05) for c in PALETTE) >= 7


@given(st.integers(1, 2**50), st.integers(2, 12))
def test_ticks_are_few_and_inside(top, most):
    ticks = address_ticks(top, most)
    assert 1 <= len(ticks) <= most + 2
    assert all(0 <= at <= top for at, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)
    columns = step_ticks(range(0, 3 * most, 3), most)
    assert all(0 <= k < most for k, _ in columns)


def test_bad_panels_and_suffixes_are_refused():
    problem = Problem([Buffer("a", 8, 0, 1)])
    with pytest.raises(ProblemError, match="'a' has no offset"):
        Panel("x", problem, Solution({}), None)
    with pytest.raises(ProblemError, match="lower_bound"):
        Panel("x", problem, Solution({"a": 0}), 9)
    with pytest.raises(FileError, match="a picture is written as"):
        render([], ".gif")
    assert MemoryMap(()).top == 1
