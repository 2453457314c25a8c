"""Public names of a package that are imported when they are first asked for, so that importing it costs nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def exports(package: str, homes: dict[str, tuple[str, ...]]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__`` (PEP 562).

    Parameters
    ----------
    package : str
        Its name.
    homes : dict of str to tuple of str
        The public names that live in each module.
    """
    import sys

    home_of = {name: module for module, names in homes.items() for name in names}
    own = vars(sys.modules[package])

    def get(name: str) -> object:
        import importlib

        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own[name] = getattr(importlib.import_module(home_of[name]), name)
        return own[name]

    def names() -> list[str]:
        return sorted({*own, *home_of})

    return get, names
