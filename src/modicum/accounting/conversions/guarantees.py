"""Single guarantees and targets: the terms of named conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from modicum.accounting.amounts import ZERO, Amount
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief

#: The measures of a guarantee; ``eps-delta`` is epsilon with a delta above 0.
Measure: TypeAlias = Literal["eps", "eps-delta", "rho", "mu", "rdp"]
#: The measures of a target; ``pure`` is epsilon without any delta.
Wanted: TypeAlias = Literal["pure", "eps", "delta", "rho", "mu", "rdp"]

#: The name of each measure in a sentence.
WORDS = {
    "eps": "pure epsilon",
    "eps-delta": "(epsilon, delta)",
    "pure": "pure epsilon",
    "delta": "delta at an epsilon",
    "rho": "zCDP",
    "mu": "Gaussian DP",
    "rdp": "the Renyi divergence at an order",
}


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One guarantee, of a mechanism that runs some number of times.

    Attributes:
        measure: Its measure.
        value: epsilon, rho or mu, >= 0; unused for ``rdp``.
        delta: Above 0 for ``eps-delta``, else 0.
        points: For ``rdp``, orders above 1, rising, and the divergence at each.
        times: The number of runs, >= 1, all parameters fixed in advance.
    """

    measure: Measure
    value: Fraction = ZERO
    delta: Fraction = ZERO
    points: tuple[tuple[Fraction, Fraction], ...] = ()
    times: int = 1

    def __post_init__(self) -> None:
        numbers = [self.value, *(divergence for _, divergence in self.points)]
        if min(numbers) < 0:
            raise _wrong(f"{brief(min(numbers))} is negative", "no loss is below 0")
        if (self.measure == "eps-delta") != (self.delta > 0) or not 0 <= self.delta < 1:
            raise _wrong(
                f"delta {brief(self.delta)} is invalid for {WORDS[self.measure]}",
                "delta is between 0 and 1, and needs an epsilon",
            )
        orders = [order for order, _ in self.points]
        if (self.measure == "rdp") != bool(orders) or orders != sorted(set(orders)):
            raise _wrong(
                "the orders are not increasing, or are missing",
                "list the orders of a Renyi guarantee, each once",
            )
        if orders and orders[0] <= 1:
            raise _wrong(
                f"the order {brief(orders[0])} is not above 1",
                "a Renyi guarantee has orders above 1",
            )
        if self.times < 1:
            raise _wrong(f"{self.times} runs", "a mechanism runs at least once")


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a conversion.

    Attributes:
        measure: The measure of the result.
        at: For ``eps`` the delta, for ``delta`` the epsilon, for ``rdp`` the order;
            0 for the others.
    """

    measure: Wanted
    at: Fraction = ZERO

    def __post_init__(self) -> None:
        if self.measure == "eps" and not 0 < self.at < 1:
            raise _wrong(
                f"delta {brief(self.at)} is not between 0 and 1",
                "give the delta at which to bound epsilon, such as 1e-6",
            )
        if self.measure == "delta" and self.at < 0:
            raise _wrong(
                f"epsilon {brief(self.at)} is negative",
                "give the epsilon at which to bound delta",
            )
        if self.measure == "rdp" and self.at <= 1:
            raise _wrong(
                f"the order {brief(self.at)} is not above 1",
                "give the order at which to bound the divergence",
            )


#: Maps a guarantee and a target parameter to a bound of the result.
Formula: TypeAlias = Callable[[Guarantee, Fraction], Amount]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A named conversion from one measure to another.

    Attributes:
        name: Unique among the conversions between the same two measures.
        sources: The measures it begins with.
        target: The measure of the answer.
        compute: The formula; its result is never below the true value.
        condition: When it holds, beyond what the measures themselves imply.
        reference: The source of the proof.
    """

    name: str
    sources: tuple[Measure, ...]
    target: Wanted
    compute: Formula
    condition: str
    reference: str


#: The relations that a single guarantee may be stated under.
RELATIONS = ("add-remove", "substitute")


def check_relation(proven: str, wanted: str) -> None:
    """Refuse to read a guarantee under another neighboring relation.

    Args:
        proven: ``add-remove`` or ``substitute``.
        wanted: The same choice.

    Raises:
        InputError: If the two differ, or one is unknown.

    Examples:
        >>> check_relation("substitute", "add-remove")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: no guarantee under `substitute` ...
    """
    for relation in (proven, wanted):
        if relation not in RELATIONS:
            raise InputError(
                Problem(
                    Code.UNKNOWN_CHOICE,
                    f"unknown neighboring relation `{relation[:40]}`",
                    help=f"known: {', '.join(RELATIONS)}",
                )
            )
    if proven == wanted:
        return
    if proven == "add-remove":
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "a conversion keeps the neighboring relation: `add-remove` is not"
                " `substitute`",
                notes=("a substitution removes one instance and adds another",),
                help="`modicum account compose` with `target: substitute` prices it",
            )
        )
    raise InputError(
        Problem(
            Code.NOT_SUPPORTED,
            "no guarantee under `substitute` implies one under `add-remove`",
            notes=(
                "only one of them allows publishing the size of the data at no cost",
            ),
            help="prove the guarantee of the mechanism under `add-remove`",
        )
    )


def _wrong(what: str, remedy: str) -> InputError:
    return InputError(Problem(Code.OUT_OF_RANGE, what, help=remedy))
