"""What a release says besides its mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from modicum.release.parts import Part


class Heading(NamedTuple):
    """What a release says besides its mechanisms.

    Attributes:
        id: What it is called.
        labels: Its labels; mechanisms inherit them.
        metadata: Open text.
        part: The part of the data that mechanisms read if they say nothing else.
    """

    id: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    part: Part
