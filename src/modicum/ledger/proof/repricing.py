"""Repricing: no stored loss is less than the cost of its description.

Decisions follow from the losses in entries. Whoever can write an entry could state less
than its mechanisms cost; this check detects that. More is no contradiction: a later
version may prove less for the same description. What cannot be compared is refused as
well, or an unknown word would hide any loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from msgspec.structs import replace

from modicum.accounting import INFINITE, Loss
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.core.errors import InputError
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, number_text
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.release import Vocabulary
from modicum.release.completion import nowhere_more
from modicum.release.memo import Memo
from modicum.release.stored_description import PriceList, UnknownDescription
from modicum.release.unit_losses import rests_on_claims

#: Since this event version, every release has a price. Earlier writers may have allowed
#: what has none today.
_PRICED_SINCE = 2
#: Maximum number of verified mechanisms cached.
_RIGHT_MAX = 4096
#: Maximum number of unpriceable releases listed.
_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class UnpricedRelease:
    """A version-1 release without a price today: its stored losses are unverified.

    Attributes:
        seq: The number of its entry.
        release: Its id.
        mechanism: The name of its first mechanism that has no price.
        why: Why it has no price, as text.
    """

    seq: int
    release: str
    mechanism: str
    why: str


@dataclass(frozen=True, slots=True)
class Unpriced:
    """The releases of version 1 that have no price today.

    Attributes:
        releases: How many entries hold one.
        first: The first few of them.
    """

    releases: int = 0
    first: tuple[UnpricedRelease, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "releases": self.releases,
            "first": [
                {
                    "seq": one.seq,
                    "release": one.release,
                    "mechanism": one.mechanism,
                    "why": one.why,
                }
                for one in self.first
            ],
        }


class _RepricingError(ChainBreakError):
    """A stated loss is wrong or cannot be verified."""

    note = ""
    help = ""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(seq, why)
        (problem,) = self.problems
        self.problems = (replace(problem, notes=(self.note,), help=self.help),)


class UnderstatedError(_RepricingError):
    """An entry states less than the cost of its description."""

    note = (
        "each mechanism is priced again under the policy that was active at its entry;"
        " the stored loss may be larger, never smaller"
    )
    help = (
        "stop using it; restore a copy that verifies, and find out how the entry was"
        " written"
    )


class UnknownDescriptionError(_RepricingError):
    """An entry has a description unknown to this version: nothing can be compared."""

    note = (
        "each mechanism is priced again under the policy that was active at its entry;"
        " a loss that cannot be recomputed is not accepted"
    )
    help = (
        "verify with the version of modicum that wrote the entry; if there is none,"
        " restore a copy that verifies"
    )


class Repricing:
    """Compares stated losses with computed ones, policy after policy.

    Attributes:
        unpriced: The releases of version 1 so far that have no price today.
    """

    def __init__(self) -> None:
        self.unpriced = Unpriced()
        self._vocabulary: Vocabulary | None = None
        self._prices: PriceList
        # By identity: readers give the same bytes as the same mechanism.
        self._right: Memo[int, RecordedMechanism]

    def check(
        self, release: RecordedRelease, vocabulary: Vocabulary, seq: int, version: int
    ) -> None:
        """Refuse a release that states less than it costs, for any unit.

        Args:
            release: The release, which does not contradict itself.
            vocabulary: The vocabulary of the policy that was active at its entry.
            seq: The number of its entry.
            version: The version of its event.

        Raises:
            UnderstatedError: If a mechanism states too little, or has no price though
                it must have one.
            UnfamiliarError: If it must have a price, and this version does not know its
                description.
        """
        if vocabulary is not self._vocabulary:
            self._vocabulary = vocabulary
            self._prices, self._right = PriceList(vocabulary), Memo(_RIGHT_MAX)
        unverified: UnpricedRelease | None = None
        for one in release.mechanisms:
            if self._right.get(id(one)) is one:
                continue
            name = str(one.description["name"])
            try:
                why = self._checked(one, vocabulary, version)
            except _WrongError as wrong:
                found = f"release `{release.id}`, mechanism `{name}`: {wrong}"
                raise wrong.found_as(seq, found) from wrong
            if not why:
                self._right.keep(id(one), one)
            elif unverified is None:
                unverified = UnpricedRelease(seq, release.id, name, why)
        if unverified is not None:
            self._note(unverified)

    def _checked(
        self, one: RecordedMechanism, vocabulary: Vocabulary, version: int
    ) -> str:
        """Return why a mechanism cannot be priced; "" if it was, and nothing is wrong.

        Raises:
            _WrongError: If it states too little, or has no price and must have one.
        """
        _refuse_misplaced(one, vocabulary)
        if version >= _PRICED_SINCE:
            _refuse_missing(one, vocabulary)
        try:
            priced = self._prices.of(one.description, one.attributes, one.part)
        except InputError as error:
            reason = error.problems[0].message
            if version < _PRICED_SINCE:
                return reason
            why = f"its description has no price ({reason})"
            raise _WrongError(why) from error
        if isinstance(priced, UnknownDescription):
            if version < _PRICED_SINCE:
                return priced.why
            why = f"this version of modicum cannot price it: {priced.why}"
            raise _UnknownError(why)
        _refuse_less(one, priced.losses)
        _refuse_derived(one, priced.stated)
        return ""

    def _note(self, one: UnpricedRelease) -> None:
        first = self.unpriced.first
        named = (*first, one) if len(first) < _NAMED_MAX else first
        self.unpriced = Unpriced(self.unpriced.releases + 1, named)


class _WrongError(ValueError):
    """The stated loss is impossible; the caller adds the position."""

    found_as: type[_RepricingError] = UnderstatedError


class _UnknownError(_WrongError):
    """The stated loss cannot be compared with anything."""

    found_as = UnknownDescriptionError


def _refuse_misplaced(one: RecordedMechanism, vocabulary: Vocabulary) -> None:
    """Refuse a loss that is stated where no price can be proven.

    Otherwise a loss for a unit added later would be accepted then. A unit without a
    loss is charged by its covering unit, or without limit. A loss for any change covers
    the others.
    """
    for unit in one.losses:
        if unit not in vocabulary.units:
            why = f"it states a loss for `{unit}`, which is not a unit of the policy"
            raise _WrongError(why)
        stated = one.neighbors.get(unit, "add-remove")
        proven = vocabulary.relation(unit)
        if proven not in (stated, "any-change"):
            why = (
                f"it states a loss for `{unit}` under {stated} neighbors; its"
                f" description is priced under {proven} neighbors"
            )
            raise _WrongError(why)


def _refuse_missing(one: RecordedMechanism, vocabulary: Vocabulary) -> None:
    """Refuse a mechanism without a loss for a unit: every price has one.

    The covering unit's charge would be sound, but not what was decided.
    """
    for unit in vocabulary.units:
        if unit not in one.losses:
            why = f"it states no loss for `{unit}`"
            raise _WrongError(why)


def _refuse_less(one: RecordedMechanism, priced: Mapping[str, Loss]) -> None:
    """Refuse a loss that is less than the price, in any coordinate of any unit."""
    for unit, loss in one.losses.items():
        if loss == priced[unit]:
            continue  # Nearly all are.
        pairs = zip(loss.coordinates, priced[unit].coordinates, strict=True)
        for index, (stated, costs) in enumerate(pairs):
            if stated < costs:
                why = (
                    f"it states {coordinate_name(index)} {_amount(index, stated)} for"
                    f" `{unit}`, and its description costs {_amount(index, costs)}"
                )
                raise _WrongError(why)


def _refuse_derived(one: RecordedMechanism, own: Mapping[str, Loss]) -> None:
    """Refuse a loss that must follow from other units, and is not named as that."""
    if one.derived is None:
        return
    kind, bounds = str(one.description["kind"]), one.description["contribution_bound"]
    assert isinstance(bounds, Mapping)  # It was priced.
    for unit, loss in one.losses.items():
        is_own = unit in own and nowhere_more(own[unit], loss)
        if unit not in one.derived and (
            not is_own or rests_on_claims(kind, bounds.keys(), unit)
        ):
            why = f"its loss for `{unit}` follows from other units, and does not say so"
            raise _WrongError(why)


def _amount(index: int, units: int) -> str:
    if units >= INFINITE:
        return "inf"
    return number_text(Fraction(units, DELTA_UNIT if index == DELTA else LOSS_UNIT))
