"""Pages, one module for each entry of the navigation."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def load_pages() -> None:
    """Import every module of this package, so that its pages are registered."""
    for one in iter_modules(__path__):
        import_module(f"{__name__}.{one.name}")
