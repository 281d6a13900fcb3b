"""Unlocking: how much of its budget a group may have used by a certain age.

A group of users is active for `rounds` rounds. If its budget were unlocked from the
first round on, the first requests could use it up, and nothing would be left for later
ones. So it is unlocked step by step. The *slack* moves some of it forward: each step of
the first half is larger by this part of an even step, each step of the second half
smaller. The unused budget of an older group can then be used together with that of a
younger one.

Shares are exact. Every limit in ledger units is rounded down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief

#: Maximum number of active rounds of a group: twenty years of weeks.
ROUNDS_MAX = 1040


@dataclass(frozen=True, slots=True)
class Schedule(ABC):
    """The unlocked fraction of a group's budget at each age.

    The share never falls with age, and it is 1 from age `rounds` on.

    Attributes:
        rounds: For how many rounds a group is active.
    """

    rounds: int

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= ROUNDS_MAX:
            raise out_of_range(
                f"a group is active for {self.rounds} rounds",
                f"it is a number from 1 to {ROUNDS_MAX}",
            )

    @abstractmethod
    def _early_share(self, age: int) -> Fraction:
        """Return the share at an age from 1 to `rounds`."""

    def share(self, age: int) -> Fraction:
        """Return the part of its budget that a group of this age may have used.

        Args:
            age: 1 in the round in which the group becomes active; 0 before.

        Returns:
            From 0 to 1, all rounds of its life together.

        Raises:
            InputError: If the age is negative.
        """
        if age < 0:
            raise out_of_range(f"the age of a group is {age}", "it is at least 0")
        if age == 0:
            return Fraction(0)
        return self._early_share(min(age, self.rounds))

    def cap(self, total: int, age: int) -> int:
        """Return the unlocked part of a cap, in whole units, rounded down.

        Args:
            total: The cap of the whole life, in ledger units, at least 0.
            age: As for `share`.

        Raises:
            InputError: If the cap or the age is negative.
        """
        if total < 0:
            raise out_of_range(f"a cap is {total} units", "it is at least 0")
        share = self.share(age)
        return total * share.numerator // share.denominator

    def steps(self) -> tuple[Fraction, ...]:
        """Return the newly unlocked fraction in each round of a group's life."""
        shares = (self.share(age) for age in range(self.rounds + 1))
        return tuple(now - before for before, now in pairwise(shares))

    @property
    def least(self) -> Fraction:
        """The fraction available in every round, whatever was used before."""
        return min(self.steps())

    @property
    def most(self) -> Fraction:
        """The fraction that no round exceeds: that of the newest group."""
        return self.share(1)


@dataclass(frozen=True, slots=True)
class Unlocking(Schedule):
    """Even steps, of which the earlier ones are larger by the slack.

    Attributes:
        rounds: For how many rounds a group is active.
        slack: From 0 to 1: by which part the earlier steps are larger, and the later
            ones smaller. If `rounds` is odd, the step in the middle is even.

    Source:
        Cohere (Küchler et al. 2024), Equation 1. Its two sums are the same as
        ``slack * min(age, rounds - age)``, for even and for odd numbers of rounds.

    Examples:
        >>> [str(step) for step in Unlocking(5, Fraction(1, 2)).steps()]
        ['3/10', '3/10', '1/5', '1/10', '1/10']
        >>> Unlocking(6, Fraction(1, 5)).cap(1000, 4)
        733
    """

    slack: Fraction

    def __post_init__(self) -> None:
        Schedule.__post_init__(self)
        if not 0 <= self.slack <= 1:
            raise out_of_range(
                f"the slack of unlocking is {brief(self.slack)}",
                "it must be from 0 to 1",
            )

    def _early_share(self, age: int) -> Fraction:
        ahead = self.slack * min(age, self.rounds - age)
        return Fraction(age + ahead, self.rounds)


@dataclass(frozen=True, slots=True)
class AtOnce(Schedule):
    """Everything is unlocked at age 1, so a later round may find nothing.

    Examples:
        >>> AtOnce(5).share(1), AtOnce(5).least
        (Fraction(1, 1), Fraction(0, 1))
    """

    def _early_share(self, age: int) -> Fraction:
        return Fraction(1)


def out_of_range(message: str, remedy: str) -> InputError:
    """Return the error of a number that is out of range.

    Examples:
        >>> str(out_of_range("the slack is 2", "it is from 0 to 1"))
        'the slack is 2'
    """
    return InputError(Problem(Code.OUT_OF_RANGE, message, help=remedy))
