"""The state of the access trail, for metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetState:
    """The state of a target.

    Attributes:
        target: Its place in the settings, and its kind.
        is_reached: Whether the last attempt to send succeeded.
        behind: How many events it has not received, as far as this process knows.
    """

    target: str
    is_reached: bool
    behind: int


@dataclass(frozen=True, slots=True)
class TrailState:
    """The state of the access trail of a process.

    Attributes:
        waiting: How many events are not stored yet.
        left_out: How many events this process counted only.
        is_written: Whether the last attempt to store events succeeded.
        targets: The state of each target.
    """

    waiting: int = 0
    left_out: int = 0
    is_written: bool = True
    targets: tuple[TargetState, ...] = ()
