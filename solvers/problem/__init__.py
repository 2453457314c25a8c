"""What is asked and what comes out: buffers, colocations, groups, the problem, its exact reductions, the result.

May import: the native core. Start with `buffers` (a storage request, a tie), then `problem`; `groups` says how tied
buffers become rigid shapes, `reduce` how these become the smallest equivalent integer problem.
"""
