"""The texts of the catalogue, as they are installed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from modicum.escrow.catalog import CATALOGUE


@cache
def installed() -> dict[str, bytes]:
    """Return each text that is there, by its name and version.

    Whether it is the one that was vetted is seen where it is used.
    """
    folder = files("modicum.sandbox") / "programs"
    found = ((name, folder / entry.file) for name, entry in CATALOGUE.items())
    return {name: place.read_bytes() for name, place in found if place.is_file()}
