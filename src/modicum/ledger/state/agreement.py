"""What people say to what they are asked about."""

from __future__ import annotations

from modicum.core.record import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """What somebody said to what needs their agreement.

    Attributes:
        by: Who.
        approves: Whether they agree.
        roles: The roles in which they spoke.
        seq: The number of the entry.
        key: The public key that it is signed with, in hexadecimal; empty if it is not
            signed. The signature was checked.
    """

    by: str
    approves: bool
    roles: tuple[str, ...]
    seq: int
    key: str = ""
