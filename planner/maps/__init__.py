"""Pictures of plans: memory maps as SVG, HTML and PNG.

May import: the solvers' problem and files. Start with `memory_map`, the picture as data; `layout` puts it on a page as
marks, which `svg` and `png` paint; `html` draws in the browser; `style` has colours and ticks; `render` is the one
call.
"""
