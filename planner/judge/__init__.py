"""The second judge: it runs the rewritten program symbolically, byte by byte, and knows no dataflow and no sharing.

May import: only `planner.program.tensor_layout` and `views`, to read what a copy moves. Start with `replay`; `memory`
is what every byte holds meanwhile, `moves` which bytes a concat or a view moves.
"""
