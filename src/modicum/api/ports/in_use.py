"""A reservation in use, as those see it who run something under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from modicum.policy.past_units import Known


class InUse(Protocol):
    """A reservation in use."""

    @property
    def release(self) -> str:
        """The id of the release."""
        ...

    def unit(self, name: str) -> Known:
        """Return what the policy said about a unit when the release was reserved."""
        ...

    def must_run(self) -> None:
        """Return if rows may be read now."""
        ...

    def claim(self, mechanism: str) -> None:
        """Note that a mechanism runs now; each may do so once."""
        ...

    def before_post(self, ending: Callable[[], None]) -> None:
        """Let something look whether all went as reserved, before it is posted."""
        ...
