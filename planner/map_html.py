"""A memory map as one HTML file: drawn on a canvas, with search by name and a card under the pointer; no network."""

from __future__ import annotations

import html as escaping
import json
from typing import Any

from planner import map_style as style
from planner.memory_map import Area, MemoryMap, Panel, name_of, printable


def html(drawn: MemoryMap) -> str:
    """Draw a memory map.

    Parameters
    ----------
    drawn : MemoryMap

    Returns
    -------
    str
        A page that needs nothing else. Names are data in it, never markup or script.
    """
    data = {
        "columns": max(len(drawn.borders) - 1, 1),
        "across": drawn.columns,
        "top": drawn.top,
        "palette": style.PALETTE,
        "addresses": style.address_ticks(drawn.top, 8),
        "steps": {n: style.step_ticks(drawn.borders, n) for n in (4, 8, 16)},
        "panels": [_panel(drawn, p) for p in drawn.panels],
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    title = escaping.escape(printable(drawn.title) or "Memory map")
    notes = "".join(f"<p>{escaping.escape(note)}</p>" for note in drawn.notes)
    page = {
        "@TITLE@": title,
        "@DESCRIPTION@": escaping.escape(drawn.description),
        "@NOTES@": notes,
        "@PEAK@": style.PEAK,
        "@BOUND@": style.BOUND,
    }
    out = _PAGE
    for mark, value in page.items():
        out = out.replace(mark, value)
    before, after = out.split("@DATA@")
    return before + text + after


def _panel(drawn: MemoryMap, panel: Panel) -> dict[str, Any]:
    column = drawn.column

    def row(a: Area, outline: int) -> list[Any]:
        colour = style.colour_of(name_of(a.buffer))
        card = "\n".join(panel.tooltip(a)[1:])
        return [column[a.start], column[a.end], a.low, a.high, colour, outline, name_of(a.buffer), card]

    areas = [row(a, 0) for a in panel.segments] + [row(a, 1) for a in panel.outlines]
    return {"caption": panel.caption, "peak": panel.peak, "bound": panel.lower_bound, "areas": areas}


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>@TITLE@</title>
<style>
body{font:14px Inter,Helvetica,Arial,sans-serif;margin:16px;color:#1a1a1a;background:#fff}
h1{font-size:18px;margin:0 0 8px}
#panels{display:flex;flex-wrap:wrap;gap:16px}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin:10px 0 4px}
canvas{display:block;width:100%}
#card{position:fixed;display:none;background:#1a1a1a;color:#fff;padding:8px 10px;border-radius:4px;
white-space:pre-line;pointer-events:none;max-width:420px;overflow-wrap:anywhere;z-index:1}
#card b{display:block}
input{font:inherit;padding:4px 8px;width:260px}
#hits,p{color:#555}
p{margin:6px 0}
</style></head><body>
<h1>@TITLE@</h1>
<label>Search by name <input id="search" type="search" autocomplete="off"></label> <span id="hits" role="status"></span>
<div id="panels" role="img" aria-label="@DESCRIPTION@"></div>
<p>Dashed: shows bytes that others wrote, a concat written in place, or a view.</p>
@NOTES@
<div id="card"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const card = document.getElementById("card"), search = document.getElementById("search");
const LEFT = 84, RIGHT = 12, ABOVE = 22, BELOW = 38, HEIGHT = 460;
let wanted = "";
const views = data.panels.map(panel => {
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  const canvas = document.createElement("canvas");
  caption.textContent = panel.caption;
  figure.style.flex = data.across > 1 ? "1 1 45%" : "1 1 100%";
  figure.append(caption, canvas);
  document.getElementById("panels").append(figure);
  const view = {panel, canvas, width: 0};
  canvas.addEventListener("mousemove", event => hover(view, event));
  canvas.addEventListener("mouseleave", () => { card.style.display = "none"; });
  return view;
});
const x = (view, column) => LEFT + (view.width - LEFT - RIGHT) * column / data.columns;
const y = address => ABOVE + (HEIGHT - ABOVE - BELOW) * (1 - address / data.top);
const matches = name => name.toLowerCase().includes(wanted);
function draw(view) {
  const ratio = window.devicePixelRatio || 1, canvas = view.canvas, c = canvas.getContext("2d");
  view.width = canvas.parentElement.clientWidth;
  canvas.width = view.width * ratio; canvas.height = HEIGHT * ratio; canvas.style.height = HEIGHT + "px";
  c.scale(ratio, ratio);
  c.font = "12px Inter,Helvetica,Arial,sans-serif";
  c.fillStyle = "#555"; c.strokeStyle = "#e2e2e2";
  for (const [at, label] of data.addresses) {
    c.beginPath(); c.moveTo(LEFT, y(at)); c.lineTo(view.width - RIGHT, y(at)); c.stroke();
    c.textAlign = "right"; c.fillText(label, LEFT - 6, y(at) + 4);
  }
  c.textAlign = "center";
  const ticks = data.steps[view.width > 1100 ? 16 : view.width > 600 ? 8 : 4];
  for (const [column, label] of ticks) c.fillText(label, x(view, column), HEIGHT - BELOW + 16);
  c.fillText("step", (LEFT + view.width - RIGHT) / 2, HEIGHT - 6);
  for (const [start, end, low, high, colour, outline, name] of view.panel.areas) {
    const left = x(view, start), top = y(high), width = Math.max(x(view, end) - left, .4);
    const height = Math.max(y(low) - top, .4), hit = matches(name);
    c.globalAlpha = wanted && !hit ? .12 : 1;
    if (outline) {
      c.setLineDash([4, 3]); c.strokeStyle = "#333"; c.strokeRect(left, top, width, height); c.setLineDash([]);
      continue;
    }
    c.fillStyle = data.palette[colour]; c.fillRect(left, top, width, height);
    c.lineWidth = wanted && hit ? 2 : .5; c.strokeStyle = wanted && hit ? "#1a1a1a" : "#fff";
    if ((width > 2 && height > 2) || (wanted && hit)) c.strokeRect(left, top, width, height);
    c.lineWidth = 1;
    if (height >= 13 && c.measureText(name).width + 6 <= width) {
      c.fillStyle = "#1a1a1a"; c.fillText(name, left + width / 2, top + height / 2 + 4);
    }
  }
  c.globalAlpha = 1; c.textAlign = "right";
  const p = view.panel, lines = [[p.peak, "@PEAK@", "peak ", -5]];
  if (p.bound !== null && p.bound !== p.peak) lines.push([p.bound, "@BOUND@", "bound ", 14]);
  for (const [at, colour, word, shift] of lines) {
    c.strokeStyle = c.fillStyle = colour; c.lineWidth = 1.5;
    c.beginPath(); c.moveTo(LEFT, y(at)); c.lineTo(view.width - RIGHT, y(at)); c.stroke(); c.lineWidth = 3;
    c.strokeStyle = "#fff";
    const label = word + at.toLocaleString("en") + (at === p.bound && word === "peak " ? " = bound" : "");
    c.strokeText(label, view.width - RIGHT, y(at) + shift); c.fillText(label, view.width - RIGHT, y(at) + shift);
  }
}
function hover(view, event) {
  const box = view.canvas.getBoundingClientRect(), left = event.clientX - box.left, top = event.clientY - box.top;
  const column = (left - LEFT) / (view.width - LEFT - RIGHT) * data.columns;
  const address = (1 - (top - ABOVE) / (HEIGHT - ABOVE - BELOW)) * data.top;
  const inside = a => a[0] <= column && column < a[1] && a[2] <= address && address < a[3];
  const found = view.panel.areas.find(inside);
  card.style.display = found ? "block" : "none";
  if (!found) return;
  const name = document.createElement("b");
  name.textContent = found[6];
  card.replaceChildren(name, found[7]);
  card.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - card.offsetWidth - 8)) + "px";
  card.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - card.offsetHeight - 8)) + "px";
}
search.addEventListener("input", () => {
  wanted = search.value.trim().toLowerCase();
  const count = new Set(data.panels.flatMap(p => p.areas.map(a => a[6])).filter(matches)).size;
  document.getElementById("hits").textContent = wanted ? count + " found" : "";
  views.forEach(draw);
});
addEventListener("resize", () => views.forEach(draw));
views.forEach(draw);
</script></body></html>
"""
