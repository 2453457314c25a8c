"""The native core in C++, where it was built; everything works without it, and slower.

May import: nothing. Start with ``search.hpp``, the depth-first search; ``first_fit.hpp``, ``swaps.hpp`` and
``stock.hpp`` are the greedy ones, ``instance.hpp`` what they work on; ``module.cpp`` and ``_core.pyi`` what Python
sees.
"""

from __future__ import annotations

try:
    from solvers.core import _core as core
except ImportError:
    core = None  # type: ignore[assignment]

__all__ = ["core"]
