"""A memory map as one HTML file: drawn on a canvas, with search by name and a card under the pointer; no network."""

from __future__ import annotations

import html as escaping
import json
import re
from typing import Any

from planner.maps import style
from planner.maps.memory_map import Area, MemoryMap, Panel, name_of, printable


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
        "borders": [t if abs(t) < 2**53 else str(t) for t in drawn.borders],  # a script's numbers are no larger
        "panels": [_panel(drawn, p) for p in drawn.panels],
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    notes = [*drawn.notes]
    if any(p.outlines for p in drawn.panels):
        notes.insert(0, "Dashed: shows bytes that others wrote, a concat written in place, or a view.")
    page = {
        "@TITLE@": escaping.escape(printable(drawn.title) or "Memory map"),
        "@DESCRIPTION@": escaping.escape(drawn.description),
        "@NOTES@": "".join(f"<p>{escaping.escape(note)}</p>" for note in notes),
        "@DATA@": text,
    }
    return re.sub("@[A-Z]+@", lambda mark: page.get(mark[0], mark[0]), _PAGE)


def _panel(drawn: MemoryMap, panel: Panel) -> dict[str, Any]:
    column = drawn.column

    def row(a: Area, outline: int) -> list[Any]:
        colour = style.colour_of(name_of(a.buffer))
        card = "\n".join(panel.tooltip(a)[1:])
        return [column[a.start], column[a.end], a.low, a.high, colour, outline, name_of(a.buffer), card]

    areas = [row(a, 0) for a in panel.segments] + [row(a, 1) for a in panel.outlines]
    levels = [
        [address, colour, dashes, what, f"{address:,} bytes"]
        for (address, what), colour, dashes in zip(panel.levels, (style.PEAK, style.BOUND), ([], [7, 4]), strict=False)
    ]
    return {"caption": panel.caption, "levels": levels, "areas": areas}


_PAGE = r"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>@TITLE@</title>
<style>
body{font:14px Helvetica,Arial,sans-serif;margin:16px;color:#1a1a1a;background:#fff}
h1{font-size:18px;margin:0 0 8px;overflow-wrap:anywhere}
#panels{display:grid;gap:4px 16px}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin:10px 0 4px}
canvas{display:block;width:100%;cursor:crosshair}
#card,#band{position:fixed;display:none;pointer-events:none;z-index:1}
#card{background:#1a1a1a;color:#fff;padding:8px 10px;border-radius:4px;white-space:pre-line;max-width:420px;
overflow-wrap:anywhere}
#card b{display:block}
#card b:not(:first-child){margin-top:8px}
#band{border:1px solid #1a1a1a;background:#0001}
input,button{font:inherit;padding:4px 8px}
input{width:260px}
#hits,p{color:#555}
p{margin:6px 0}
</style></head><body>
<h1>@TITLE@</h1>
<label>Search by name <input id="search" type="search" autocomplete="off"></label>
<button id="all" type="button" disabled>Show all</button> <span id="hits" role="status"></span>
<div id="panels" role="img" aria-label="@DESCRIPTION@"></div>
<p>Drag a rectangle to look closer; double click to see all again. Enter in the search goes from match to match.</p>
@NOTES@
<div id="card"></div><div id="band"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const $ = id => document.getElementById(id), data = JSON.parse($("data").textContent);
const LEFT = 88, ABOVE = 16, BELOW = 40, INK = "#1a1a1a", MUTED = "#555";
const FONT = "px Helvetica,Arial,sans-serif", UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const all = {left: 0, right: data.columns, low: 0, high: data.top};
let shown = all, wanted = "", found = [], current = -1;
const grouped = number => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const right = 30 + 6.2 * Math.max(0, ...data.panels.flatMap(p => p.levels.map(l => l[4].length)));
const plots = data.panels.map(panel => {
  const figure = document.createElement("figure"), caption = document.createElement("figcaption");
  const plot = {panel, canvas: document.createElement("canvas"), width: 0, height: 0};
  caption.textContent = panel.caption;
  figure.append(caption, plot.canvas);
  $("panels").append(figure);
  plot.canvas.addEventListener("pointermove", event => hover(plot, event));
  plot.canvas.addEventListener("pointerleave", () => { $("card").style.display = "none"; });
  plot.canvas.addEventListener("pointerdown", event => drag(plot, event));
  plot.canvas.addEventListener("dblclick", () => look(all));
  return plot;
});
$("panels").style.gridTemplateColumns = `repeat(${data.across},minmax(0,1fr))`;
const x = (plot, column) => LEFT + plot.width * (column - shown.left) / (shown.right - shown.left);
const y = (plot, address) => ABOVE + plot.height * (shown.high - address) / (shown.high - shown.low);
function place(plot, event) {
  const box = plot.canvas.getBoundingClientRect();
  const across = (event.clientX - box.left - LEFT) / plot.width, down = (event.clientY - box.top - ABOVE) / plot.height;
  const inside = v => Math.min(1, Math.max(0, v));
  return {column: shown.left + (shown.right - shown.left) * inside(across),
    address: shown.high - (shown.high - shown.low) * inside(down),
    inside: across === inside(across) && down === inside(down)};
}
function look(part) {
  shown = part;
  $("all").disabled = part === all;
  $("card").style.display = "none";
  plots.forEach(draw);
}
function addressTicks(most) {
  let step = 1, unit = 0;
  while ((shown.high - shown.low) / step > most) step *= 2;
  while (unit < 6 && shown.high >= 1024 ** (unit + 1) && step * 4 >= 1024 ** (unit + 1)) unit += 1;
  const ticks = [];
  for (let at = Math.ceil(shown.low / step) * step; at <= shown.high; at += step) {
    const label = (at / 1024 ** unit).toLocaleString("en", {maximumFractionDigits: 3});
    ticks.push([at, at ? label + " " + UNITS[unit] : "0"]);
  }
  return ticks;
}
function roundness(step) {
  if (step === 0) return 99;
  let count = 0;
  for (let power = 1; power <= Math.abs(step); power *= 10)
    for (const k of [1, 2, 5]) count += step % (k * power) === 0;
  return count;
}
function stepTicks(most) {
  const first = Math.max(0, Math.ceil(shown.left)), last = Math.min(data.borders.length - 1, Math.floor(shown.right));
  const apart = Math.max(1, Math.ceil((last - first) / most)), ticks = [];
  for (let middle = first; middle <= last; middle += apart) {
    let best = middle;
    for (let k = Math.max(middle - (apart >> 2), first); k <= Math.min(middle + (apart >> 2), last); k += 1)
      if (roundness(Number(data.borders[k])) > roundness(Number(data.borders[best]))) best = k;
    ticks.push([best, grouped(data.borders[best])]);
  }
  return ticks;
}
function draw(plot) {
  const ratio = window.devicePixelRatio || 1, canvas = plot.canvas, c = canvas.getContext("2d");
  const outer = canvas.parentElement.clientWidth, rows = Math.ceil(plots.length / data.across);
  plot.width = Math.max(100, outer - LEFT - right);
  plot.height = Math.min(640, Math.max(280, (innerHeight - 210) / rows - ABOVE - BELOW - 40));
  const tall = plot.height + ABOVE + BELOW;
  canvas.width = outer * ratio; canvas.height = tall * ratio; canvas.style.height = tall + "px";
  c.scale(ratio, ratio);
  const bottom = ABOVE + plot.height, end = LEFT + plot.width;
  c.font = 12 + FONT; c.fillStyle = MUTED; c.strokeStyle = "#e2e2e2"; c.textAlign = "right";
  for (const [at, label] of addressTicks(8)) {
    c.beginPath(); c.moveTo(LEFT, y(plot, at)); c.lineTo(end, y(plot, at)); c.stroke();
    c.fillText(label, LEFT - 6, y(plot, at) + 4);
  }
  c.textAlign = "center";
  for (const [column, label] of stepTicks(plot.width / 70)) c.fillText(label, x(plot, column), bottom + 16);
  c.fillText("step", (LEFT + end) / 2, tall - 6);
  upwards(c, "address", 16, ABOVE + plot.height / 2);
  c.save();
  c.beginPath(); c.rect(LEFT - 1, ABOVE - 1, plot.width + 2, plot.height + 2); c.clip();
  const hits = new Set(wanted ? found.map(f => f.area) : []);
  for (const area of plot.panel.areas) if (!hits.has(area)) paint(c, plot, area, wanted ? .15 : 1, false);
  for (const area of plot.panel.areas) if (hits.has(area)) paint(c, plot, area, 1, true);
  c.restore();
  levels(c, plot, end);
}
function paint(c, plot, [start, stop, low, high, colour, outline, name], alpha, marked) {
  if (stop < shown.left || start > shown.right || high < shown.low || low > shown.high) return;
  const least = marked ? 3 : .4, left = x(plot, start), top = y(plot, high);
  const width = Math.max(x(plot, stop) - left, least), height = Math.max(y(plot, low) - top, least);
  c.globalAlpha = alpha;
  c.lineWidth = marked ? 2 : outline ? 1.2 : .5;
  c.strokeStyle = marked ? INK : outline ? "#333" : "#fff";
  c.setLineDash(outline ? [4, 3] : []);
  c.fillStyle = data.palette[colour];
  if (!outline) c.fillRect(left, top, width, height);
  if (outline || marked || (width >= 3 && height >= 3)) c.strokeRect(left, top, width, height);
  if (outline || Math.max(width, height) < 12) return;
  const seen = [Math.max(left, LEFT), Math.min(left + width, LEFT + plot.width),
    Math.max(top, ABOVE), Math.min(top + height, ABOVE + plot.height)];
  const wide = seen[1] - seen[0], tall = seen[3] - seen[2], long = c.measureText(name).width + 6;
  const across = (seen[0] + seen[1]) / 2, down = (seen[2] + seen[3]) / 2;
  c.fillStyle = INK;
  if (long <= wide && tall >= 13) c.fillText(name, across, down + 4);
  else if (long <= tall && tall > wide && wide >= 13) upwards(c, name, across + 4, down);
}
function upwards(c, text, across, down) {
  c.save(); c.translate(across, down); c.rotate(-Math.PI / 2); c.fillText(text, 0, 0); c.restore();
}
function levels(c, plot, end) {
  const heights = plot.panel.levels.map(level => y(plot, level[0]));
  const apart = heights.length > 1 ? Math.max(0, (28 - heights[1] + heights[0]) / 2) : 0;
  c.textAlign = "left"; c.lineWidth = 1.6; c.font = 11 + FONT;
  plot.panel.levels.forEach(([at, colour, dashes, what, number], n) => {
    const level = heights[n], words = level + (n ? apart : -apart);
    if (at < shown.low || at > shown.high) return;
    c.strokeStyle = c.fillStyle = colour; c.setLineDash(dashes);
    c.beginPath(); c.moveTo(LEFT, level); c.lineTo(end + 8, level); c.stroke();
    c.fillText(what, end + 12, words - 2); c.fillText(number, end + 12, words + 11);
  });
}
function hover(plot, event) {
  const {column, address, inside} = place(plot, event), card = $("card");
  const under = a => a[0] <= column && column < a[1] && a[2] <= address && address < a[3];
  const here = inside ? plot.panel.areas.filter(under) : [];
  card.style.display = here.length ? "block" : "none";
  card.replaceChildren(...here.slice(0, 4).flatMap(area => {
    const name = document.createElement("b");
    name.textContent = area[6];
    return [name, area[7]];
  }));
  card.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - card.offsetWidth - 8)) + "px";
  card.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - card.offsetHeight - 8)) + "px";
}
function drag(plot, event) {
  if (event.button) return;
  const from = place(plot, event), canvas = plot.canvas, band = $("band").style;
  canvas.setPointerCapture(event.pointerId);
  canvas.onpointermove = to => {
    band.display = "block";
    band.left = Math.min(event.clientX, to.clientX) + "px"; band.width = Math.abs(to.clientX - event.clientX) + "px";
    band.top = Math.min(event.clientY, to.clientY) + "px"; band.height = Math.abs(to.clientY - event.clientY) + "px";
  };
  canvas.onpointercancel = () => { band.display = "none"; canvas.onpointermove = canvas.onpointerup = null; };
  canvas.onpointerup = end => {
    canvas.onpointercancel();
    if (Math.abs(end.clientX - event.clientX) < 5 || Math.abs(end.clientY - event.clientY) < 5) return;
    const to = place(plot, end), columns = [from.column, to.column], addresses = [from.address, to.address];
    const part = {left: Math.min(...columns), right: Math.max(...columns),
      low: Math.min(...addresses), high: Math.max(...addresses)};
    if (part.right - part.left >= .1 && part.high - part.low >= 1) look(part);
  };
}
function say() {
  const names = new Set(found.map(f => f.area[6])).size;
  const at = current < 0 ? names + " found" : `${found[current].area[6]}: ${current + 1} of ${found.length}`;
  $("hits").textContent = wanted ? at : "";
}
$("search").addEventListener("input", () => {
  wanted = $("search").value.trim().toLowerCase();
  current = -1;
  found = plots.flatMap(p => p.panel.areas.map(area => ({area}))).filter(f => f.area[6].toLowerCase().includes(wanted));
  say();
  plots.forEach(draw);
});
$("search").addEventListener("keydown", event => {
  if (event.key !== "Enter" || !wanted || !found.length) return;
  current = (current + (event.shiftKey ? found.length - 1 : 1)) % found.length;
  const [start, stop, low, high] = found[current].area, more = Math.max(6, 2 * (stop - start)), over = 3 * (high - low);
  say();
  look({left: Math.max(0, start - more), right: Math.min(data.columns, stop + more),
    low: Math.max(0, low - over), high: Math.min(data.top, high + over)});
});
$("all").addEventListener("click", () => look(all));
addEventListener("resize", () => plots.forEach(draw));
plots.forEach(draw);
</script></body></html>
"""
