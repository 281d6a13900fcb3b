"""Packages that offer names of their modules, and import each when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType


class _Package(ModuleType):
    """A package whose names win over its modules of the same names."""

    def __setattr__(self, name: str, value: object) -> None:
        # Importing a module binds it in its package.
        if isinstance(value, ModuleType) and name in vars(self)["_places"]:
            value = getattr(value, name)
        super().__setattr__(name, value)


def facade(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    Args:
        package: The package.
        names: The names that it offers, with spaces between them, by their module.

    Raises:
        AttributeError: For another name.
    """
    places = {name: module for module in names for name in names[module].split()}
    vars(sys.modules[package])["_places"] = places
    sys.modules[package].__class__ = _Package

    def find(name: str) -> object:
        if name not in places:
            message = f"module `{package}` has no attribute `{name}`"
            raise AttributeError(message)
        found: object = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
