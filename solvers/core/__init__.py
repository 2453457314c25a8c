"""The native core, where it was built; everything works without it, and slower."""

from __future__ import annotations

try:
    from solvers.core import _core as core
except ImportError:
    core = None  # type: ignore[assignment]

__all__ = ["core"]
