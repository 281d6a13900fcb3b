"""Packages that offer names of their modules, and import each when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def facade(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    Args:
        package: The package.
        names: The names that it offers, with spaces between them, by their module.

    Raises:
        AttributeError: When it is asked for another name.
    """
    places = {name: module for module in names for name in names[module].split()}

    def find(name: str) -> object:
        if name not in places:
            message = f"module `{package}` has no attribute `{name}`"
            raise AttributeError(message)
        found: object = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
