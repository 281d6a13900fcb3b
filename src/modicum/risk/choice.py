"""A chosen epsilon, with its claim and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import isnan
from typing import ClassVar

from modicum.core.errors import check
from modicum.core.rationals import brief, number_text
from modicum.risk.profile import RELATION


class Claim(Enum):
    """The claim of a choice. Only `DP` may be released and charged as DP."""

    #: The choice, and a release at its epsilon, lose no more than is charged.
    DP = "dp"
    #: For the controller of the data alone: it is computed from rows without noise.
    ADVICE = "controller-only advice"
    #: Published as private, and known not to be, or not proven; for study.
    EXPERIMENTAL = "experimental"


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate.

    Attributes:
        epsilon: The candidate.
        half_width: Half the width of a coordinate's 95 % interval, in units of the
            answer.
        least: The least indicator, in units of the answer; NaN without people.
        greatest: The greatest one; NaN without people.
        ratio: The least over the greatest, 0 to 1; NaN without people.
        passes: Whether the candidate meets the condition; None if it was not evaluated.
    """

    epsilon: Fraction
    half_width: float
    least: float
    greatest: float
    ratio: float
    passes: bool | None

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form."""
        return {
            "epsilon": float(self.epsilon),
            "half_width": self.half_width,
            "least": _there(self.least),
            "greatest": _there(self.greatest),
            "ratio": _there(self.ratio),
            "passes": self.passes,
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """The cost of a private choice, whatever its result.

    The noise is on whole numbers, so nothing better is proven than for any pure
    mechanism of both epsilons together: discrete noise of few steps has a larger Renyi
    loss than continuous noise of the same epsilon.

    Attributes:
        eps_threshold: The threshold's noise has scale sensitivity/eps_threshold.
        eps_queries: The statistics' noise has scale 2 sensitivity/eps_queries.
    """

    eps_threshold: Fraction
    eps_queries: Fraction

    @property
    def eps(self) -> Fraction:
        """The pure loss: both together."""
        return self.eps_threshold + self.eps_queries

    def described(self) -> dict[str, str]:
        """Return the mechanism to be priced."""
        return {
            "kind": "sparse-vector-one-threshold",
            "eps-threshold": number_text(self.eps_threshold),
            "eps-queries": number_text(self.eps_queries),
        }


@dataclass(frozen=True, slots=True)
class Charge:
    """The charges: of the choice itself, and of the release that it is for.

    Attributes:
        release: The mechanism of the release at the chosen epsilon; None if nothing
            was chosen.
        selection: The cost of the choice itself; None if it reads no rows.
    """

    release: Mapping[str, str] | None
    selection: Selection | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form; numbers are exact texts."""
        return {
            "release": None if self.release is None else dict(self.release),
            "selection": self.selection and self.selection.described(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """An epsilon, or a refusal to choose one.

    Its indicators, its sensitivity and its charge hold for the neighboring relation
    `add-remove`: with and without all rows of one person.

    Attributes:
        relation: This relation, as policies call it.
        epsilon: The chosen epsilon; None if none was chosen.
        claim: The claim that it supports.
        method: The name of the algorithm.
        why: Why it is this one, or why there is none; one sentence.
        rows: The candidates, rising. They hold facts about rows unless the claim is
            `dp`.
        charge: What must be charged before the result is disclosed, also for a refusal;
            None if no bound on the loss is known, or nothing was read or chosen.
        caveats: Further conditions; sentences.
        uncapped: The greatest epsilon of all that would pass; None if not computed.
    """

    epsilon: Fraction | None
    claim: Claim
    method: str
    why: str
    rows: tuple[Row, ...] = ()
    charge: Charge | None = None
    caveats: tuple[str, ...] = ()
    uncapped: Fraction | None = None
    relation: ClassVar[str] = RELATION

    def __post_init__(self) -> None:
        promised = self.claim is Claim.DP
        released = self.charge is not None and self.charge.release is not None
        check(
            not promised or released == (self.epsilon is not None),
            "RSK-1: a choice as dp is charged",
        )
        check(
            promised or self.charge is None,
            "RSK-1: a choice without a guarantee has no price",
        )

    def __repr__(self) -> str:
        if self.claim is not Claim.DP:
            return f"<Choice {self.method}: controller only: not for release>"
        text = "none" if self.epsilon is None else brief(self.epsilon)
        return f"<Choice {self.method}: epsilon {text}>"

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form."""
        return {
            "epsilon": _number(self.epsilon),
            "claim": self.claim.value,
            "relation": self.relation,
            "method": self.method,
            "why": self.why,
            "rows": [row.to_dict() for row in self.rows],
            "charge": self.charge and self.charge.to_dict(),
            "caveats": list(self.caveats),
            "uncapped": _number(self.uncapped),
        }


def _there(value: float) -> float | None:
    return None if isnan(value) else value


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
