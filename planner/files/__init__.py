"""Plans of a program kept as files: lock files.

May import: api, program, judge, the solvers and their files. Start with `lock`; `lock_format` is the JSON.
"""
