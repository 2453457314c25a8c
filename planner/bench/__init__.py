"""Problems times planners: measured in processes of their own, judged by the verifier, written down row by row.

May import: the solvers, and one module of the executorch front end, where a planner asks for it. Start with `runner`;
`contenders` and `peers` are the planners, one adapter each, `kinds` what sharing they are offered, `worker` the process
that they run in; `row`, `summary` and `tables` are what comes out.
"""
