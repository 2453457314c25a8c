"""What holds the peak of a plan, in plain words, and what would help.

May import: program, the solvers. Start with `peak`; `remedies` names what would lower it.
"""
