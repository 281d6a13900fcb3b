"""What a release says besides its mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from modicum.release.parts import EVERYTHING, Part
from modicum.release.sampling import Sampling


class MechanismDefaults(NamedTuple):
    """What holds for a mechanism that says nothing else.

    Attributes:
        labels: The labels of the release.
        part: The part of the data that it names.
        sampling: The sample that it names; each mechanism draws one of its own.
    """

    labels: Mapping[str, str] = MappingProxyType({})
    part: Part = EVERYTHING
    sampling: Sampling | None = None


class Header(msgspec.Struct, frozen=True):
    """What a release says besides its mechanisms.

    Attributes:
        id: What it is called.
        labels: Its labels; mechanisms inherit them.
        metadata: Open text.
        part: The part of the data that mechanisms read if they say nothing else.
        sampling: How the samples are drawn on which they run, likewise.
    """

    id: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    part: Part
    sampling: Sampling | None = None

    @property
    def inherited(self) -> MechanismDefaults:
        """What its mechanisms inherit."""
        return MechanismDefaults(self.labels, self.part, self.sampling)
