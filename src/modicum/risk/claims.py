"""What may be said of an epsilon that was chosen."""

from __future__ import annotations

from enum import Enum


class Claim(Enum):
    """What a choice promises. Only what is `DP` may be released and charged as DP."""

    #: The choice, and a release at its epsilon, lose no more than what is charged.
    DP = "dp"
    #: For the controller of the data alone: it is computed from rows without noise.
    ADVICE = "controller-only advice"
    #: Published as private, and known not to be, or not proven; for study.
    EXPERIMENTAL = "experimental"
