"""The heading of a release: all but its mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from modicum.release.parts import EVERYTHING, Part
from modicum.release.sampling import Sampling


class MechanismDefaults(NamedTuple):
    """The defaults of mechanisms.

    Attributes:
        labels: The labels of the release.
        part: The part of the data that it names.
        sampling: Its sampling; each mechanism draws a separate sample.
    """

    labels: Mapping[str, str] = MappingProxyType({})
    part: Part = EVERYTHING
    sampling: Sampling | None = None


class Header(msgspec.Struct, frozen=True):
    """The heading of a release: all but its mechanisms.

    Attributes:
        id: Its id.
        labels: Its labels; mechanisms inherit them.
        metadata: Open text.
        part: The default part of the data of its mechanisms.
        sampling: How the samples are drawn on which they run, likewise.
    """

    id: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    part: Part
    sampling: Sampling | None = None

    @property
    def inherited(self) -> MechanismDefaults:
        """The defaults of its mechanisms."""
        return MechanismDefaults(self.labels, self.part, self.sampling)
