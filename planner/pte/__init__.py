"""The front end for ``.pte`` files: shown and replanned without torch, without executorch, and without the model.

May import: api, program, judge, explain, maps, the solvers. Start with `replanning` and `peaks`, the two use cases;
`program_file` reads and writes by `schema` and `flatbuffer`, `accesses` reads instructions by the table of `operators`,
`method` finds who shows whose bytes; `method_flow`, `method_trace` and `method_rewrite` lead to the planner, to the
judge, and back.
"""
