"""One choice of active colocations, and the best offsets for it.

May import: problem, the native core, and the top modules deadline, run and verifier. Start with `fixed_choice` (a
problem under one choice: bounds, greedy, the plan in hand), then `improve` (the exact search: a `race` of
`native_jobs`, with `cp_sat` beside it). `bounds` proves floors, `first_fit` and `stock` are the greedy ones, `orders`
their orders.
"""
