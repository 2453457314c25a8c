"""The commands of `arena`, one file each: its arguments, and what it does.

May import: everything, where a command needs it and not at the top, so that `arena` starts at once. Start with
`common`, what they share; `planner.cli` puts them together.
"""
