"""Lock files: an export's plans, kept to be used again as long as the same is asked.

May import: api, program, judge, the solvers and their files. Start with `lock_file`; `lock_format` is the JSON.
"""
