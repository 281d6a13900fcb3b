"""The closest allowed variant of a release: least noise, most data.

The search assumes nothing about how rules compose. Every variant is read, priced and
decided like any release, at one head; the result was allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.api.local.alternatives.smaller_parts import larger_part
from modicum.api.local.alternatives.trials import Trials, full_rules
from modicum.api.local.explanation.budget_fit import least
from modicum.api.local.explanation.denial_text import unmatched_text
from modicum.api.local.explanation.release_text import (
    Path,
    Written,
    name_of,
    number_at,
    with_mechanisms,
    with_number,
)
from modicum.api.local.explanation.remedies import Fit
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_spelled
from modicum.core.reader import nearest
from modicum.ledger import Verdict

#: The number of four-digit numbers per power of ten.
RUNGS = 9000

_TEN = Fraction(10)


def number_on(rung: int) -> Fraction:
    """Return the number on a rung; the next rung has the next larger one.

    Examples:
        >>> number_on(0), number_on(1), number_on(-1)
        (Fraction(1, 1), Fraction(1001, 1000), Fraction(9999, 10000))
    """
    decade, place = divmod(rung, RUNGS)
    return (1000 + place) * _TEN ** (decade - 3)


def rung_below(value: Fraction) -> int:
    """Return the rung of the largest number of four digits that is not above a value.

    Examples:
        >>> number_on(rung_below(Fraction("8.02199")))
        Fraction(8021, 1000)
        >>> rung_below(Fraction("0.09999")), rung_below(Fraction(10))
        (-9001, 9000)
    """
    decade = len(str(value.numerator)) - len(str(value.denominator))
    while _TEN**decade > value:
        decade -= 1
    while _TEN ** (decade + 1) <= value:
        decade += 1
    return decade * RUNGS + int(value / _TEN ** (decade - 3)) - 1000


def rung_above(value: Fraction) -> int:
    """Return the rung of the least number of four digits that is not below a value.

    Examples:
        >>> number_on(rung_above(Fraction("8.02101")))
        Fraction(4011, 500)
    """
    rung = rung_below(value)
    return rung if number_on(rung) == value else rung + 1


#: The parameters that may vary, as text.
VARIED = {
    "noise": "the noise of mechanisms: `sigma`, `scale`, `noise-multiplier`, and the"
    " `eps` of choices by noise; the `truth` of randomized response is not varied",
    "sigma": "the `sigma` of mechanisms",
    "scale": "the `scale` of mechanisms",
    "epsilon": "the `eps` of declared costs",
    "rho": "the `rho` of declared costs",
    "mu": "the `mu` of declared costs",
    "sampling_rate": "the `rate` of samples",
    "where": "the part of the population",
    "periods": "the periods",
}

#: The noise of all kinds, or one of its parameters.
_OF_NOISE = ("noise", "sigma", "scale")
#: The keys of costs that are varied.
_OF_COSTS = {"epsilon": "eps", "rho": "rho", "mu": "mu"}
_RATE = "sampling_rate"

#: The search covers this many powers of ten up and down.
_DECADES = 12
_MOST = 2 * _DECADES * RUNGS


def largest_fit(trials: Trials, vary: str, mechanism: str | None = None) -> Fit:
    """Return the closest variant of a release that every rule allows.

    The variant with the least noise, the largest declared cost, or the largest part of
    the data. Numbers have four significant digits, rounded such that the variant itself
    is allowed. If the search exceeds its limit, the result is the closest found so far,
    marked as such.
    """
    if vary not in VARIED:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f'unknown parameter "{vary[:60]}"',
                label=nearest(vary, VARIED),
                help="known: " + ", ".join(VARIED),
            )
        )
    chosen = _chosen(trials.base["mechanisms"], mechanism)
    if trials.verdict.unmatched:  # Predicates see none of the parameters.
        return trials.nothing(vary, unmatched_text(trials.verdict.unmatched))
    if vary in ("where", "periods"):
        return larger_part(trials, vary, chosen)
    mechanisms = _sampled(trials.base) if vary == _RATE else trials.base["mechanisms"]
    slots = tuple(_slots(mechanisms, vary, chosen))
    if not slots:
        whose = "the mechanism has" if mechanism else "no mechanism has"
        no = " not" if mechanism else ""
        return trials.nothing(vary, f"{whose}{no} this parameter: {VARIED[vary]}")
    return _Ladder(trials, vary, mechanisms, slots).fit()


def _sampled(release: Written) -> list[Written]:
    """Return the mechanisms that state their own sampling, if any."""
    inherited = {"sampling": release["sampling"]} if "sampling" in release else {}
    return [{**inherited, **one} for one in release["mechanisms"]]


def _chosen(mechanisms: Sequence[Written], named: str | None) -> frozenset[int]:
    """Return the positions of the mechanisms that may vary."""
    names = [name_of(one, place) for place, one in enumerate(mechanisms)]
    if named is None:
        return frozenset(range(len(names)))
    if named not in names:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f'the release has no mechanism "{named[:60]}"',
                label=nearest(named, names),
                help="known: " + ", ".join(names[:20]),
            )
        )
    return frozenset({names.index(named)})


class _Slot(Struct, frozen=True):
    """A number that is varied.

    Attributes:
        place: The place of its mechanism.
        path: Its keys there.
        rising: Whether more of it costs more.
    """

    place: int
    path: Path
    rising: bool = True

    def rounded(self, number: Fraction) -> int:
        """Return the nearest rung that costs no more than a number."""
        return rung_below(number) if self.rising else rung_above(number)

    def scaled(self, number: Fraction, factor: Fraction) -> Fraction:
        """Return a number on a rung that has more noise by a factor, or less."""
        less = number / factor if self.rising else number * factor
        return number_on(self.rounded(less))


def _slots(
    mechanisms: Sequence[Written], vary: str, chosen: frozenset[int]
) -> Iterator[_Slot]:
    for place in sorted(chosen):
        one = mechanisms[place]
        # A label of the policy may have the name of a parameter; its value is text.
        numbers = {
            key: parameter
            for key, parameter in RELEASE_KINDS[one["mechanism"]].described.items()
            if key in one and not isinstance(one[key], str)
        }
        for key, parameter in numbers.items():
            if vary in ("noise", key) and vary in _OF_NOISE and parameter.of_noise:
                yield _Slot(place, (key,), parameter.rising)
        if vary == _RATE and "sampling" in one:
            yield _Slot(place, ("sampling", "rate"))
        # A cost beside the inputs of a price is an upper bound, and stays.
        if vary in _OF_COSTS and not numbers:
            for unit, cost in one.get("cost", {}).items():
                if _OF_COSTS[vary] in cost:
                    yield _Slot(place, ("cost", unit, _OF_COSTS[vary]))


class _Ladder:
    """Variants of a release in one order: each further step costs no more.

    The first of the varied numbers has the value of the step; the others keep their
    ratio to it, rounded to four digits in the direction that costs less.
    """

    def __init__(
        self,
        trials: Trials,
        vary: str,
        mechanisms: list[Written],
        slots: tuple[_Slot, ...],
    ) -> None:
        self._trials = trials
        self._vary = vary
        self._slots = slots
        self._mechanisms = mechanisms
        self._numbers = [
            number_at(self._mechanisms[slot.place], slot.path) for slot in slots
        ]
        self._more = vary in _OF_NOISE  # Whether more of it costs less.
        self._verdicts: dict[int, Verdict | None] = {}

    def fit(self) -> Fit:
        """Return the variant that costs most and passes."""
        step = least(self._passes, start=_DECADES * RUNGS, most=_MOST)
        if step is None:
            return self._nothing()
        if step == 1:
            less = "less" if self._more else "more"
            why = f"even with 10^{_DECADES} times {less} of it, no rule denies"
            return self._trials.nothing(self._vary, why)
        numbers = self._at(step)
        return self._trials.fit(
            self._vary,
            self._variant(numbers),
            self._changes(numbers),
            self._closer(step),
        )

    def _passes(self, step: int) -> bool:
        if not self._trials.goes_on():  # Neither is it known that it is denied.
            return False
        verdict = self._trials.decision(self._variant(self._at(step)))
        self._verdicts[step] = verdict
        return verdict is not None and verdict.allowed

    def _at(self, step: int) -> list[Fraction]:
        """Return the numbers of a step; the further it is, the less they cost."""
        first, number = self._slots[0], self._numbers[0]
        turn = -1 if first.rising else 1
        found = number_on(first.rounded(number) + turn * (step - _DECADES * RUNGS))
        factor = number / found if first.rising else found / number
        pairs = zip(self._slots, self._numbers, strict=True)
        return [slot.scaled(one, factor) for slot, one in pairs]

    def _variant(self, numbers: Sequence[Fraction]) -> Written:
        mechanisms = list(self._mechanisms)
        for slot, number in zip(self._slots, numbers, strict=True):
            mechanisms[slot.place] = with_number(
                mechanisms[slot.place], slot.path, number
            )
        return with_mechanisms(self._trials.base, mechanisms)

    def _changes(self, numbers: Sequence[Fraction]) -> Iterator[str]:
        for slot, was, now in zip(self._slots, self._numbers, numbers, strict=True):
            named = name_of(self._mechanisms[slot.place], slot.place)
            whose = f" per {slot.path[1]}" if slot.path[0] == "cost" else ""
            what = slot.path[-1] + whose
            yield (
                f"{named}: {what} {number_spelled(now)} instead of"
                f" {number_spelled(was)}"
            )

    def _closer(self, step: int) -> Iterator[str]:
        """Yield why the next variant, which costs more, does not pass."""
        if step - 1 not in self._verdicts:  # The search ended before.
            return
        less = "less" if self._more else "more"
        for line in full_rules(self._verdicts[step - 1]):
            yield f"with {less} of it, {line}"

    def _nothing(self) -> Fit:
        if self._trials.ended_early:
            return self._trials.nothing(self._vary)
        amount = "more" if self._more else "less"
        verdict = self._verdicts[max(self._verdicts)]
        most = f"even with 10^{_DECADES} times {amount} of it"
        lines = (f"{most}, {line}" for line in full_rules(verdict))
        return self._trials.nothing(self._vary, *lines)
