"""Several memories of different speed: which buffer goes into which, and where.

May import: choose, place and what they may, and `solvers.search`. Start with `bank` (what is given, what comes out),
then `solve`, the one call; `assignment` searches, `density` makes the first guess, `limits` and `loads` say what no
assignment can hold, `model` is CP-SAT's, `pack` places what is in one bank, `checks` verifies.
"""
