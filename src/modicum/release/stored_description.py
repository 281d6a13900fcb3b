"""The cost of a stored description: it is read back, and priced like a new one.

The ledger stores a mechanism's description in one form, that of `Mechanism.plain`. Here
it goes through the same reader as a new release. Its price depends only on a few
fields, on the unit calendar of the days that it names, and on whether it reads timeless
data; so equal ones are priced once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from modicum.accounting import Loss
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.kind import Kind as MechanismKind
from modicum.core.canonical import Plain, encode
from modicum.core.document import Entries, Items, Kind, Node, Scalar
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_spelled
from modicum.release.header import MechanismDefaults
from modicum.release.mechanism_parser import parse_mechanism
from modicum.release.memo import Memo
from modicum.release.model import Mechanism, Release
from modicum.release.parts import Part, Span
from modicum.release.periods import Overlaps, overlaps
from modicum.release.price import price, price_mechanism
from modicum.release.sampling import sampling_from_plain
from modicum.release.selection import DISTRIBUTIONS, KEYS, selection_from_plain
from modicum.release.unit_losses import STATED, stated
from modicum.release.units import kinds
from modicum.release.vocabulary import Vocabulary

#: The fields of a description that its price depends on.
_PRICED_FROM = (
    "kind",
    "parameters",
    "sensitivity",
    "contribution_bound",
    "public_frame",
    "cost",
)
_FIELDS = frozenset({*_PRICED_FROM, "name", "attributes", "labels"})
#: More of these, each present only if the mechanism has it.
_OPTIONAL = ("sampling", "selection", "coefficients", "participation")
_SAMPLING, _SELECTION, _COEFFICIENTS, _PARTICIPATION = _OPTIONAL
_PART = frozenset({"where", "periods", "groups"})
#: The measures in which a cost is written down.
_MEASURES = frozenset({"eps", "delta", "rho", "mu", "rdp", "unlimited"})
#: The format of numbers. Those from a file have fewer than 500 digits; from Python it
#: may be any fraction whose digits Python prints.
_NUMBER = re.compile(r"\d{1,4300}/[1-9]\d{0,4299}|\d{1,500}(\.\d{1,500})?", re.ASCII)
#: Maximum number of prices cached, and length of their descriptions; and of ranges of
#: days with their overlaps of periods.
_PRICES_MAX = 4096
_DAYS_MAX = 4096
_BYTES_MAX = 10_000

_Key: TypeAlias = tuple[bytes, bool, Overlaps | None]


@dataclass(frozen=True, slots=True)
class UnknownDescription:
    """A description with something unknown to this version.

    Attributes:
        why: The unknown part, as text.
    """

    why: str


class Price(NamedTuple):
    """The cost of a mechanism.

    Attributes:
        losses: For each unit of the vocabulary.
        stated: For each unit that has one, the loss by its own parameters and cost,
            that follows from no other unit.
    """

    losses: Mapping[str, Loss]
    stated: Mapping[str, Loss]


class PriceList:
    """The costs of mechanisms under one vocabulary, from their stored descriptions.

    Args:
        vocabulary: The units to price for, and the vocabulary of the descriptions.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._kinds = kinds(vocabulary.unit_facts)
        self._timed = bool(vocabulary.clocks)
        self._known: Memo[_Key, Price] = Memo(_PRICES_MAX)
        self._days: Memo[tuple[Span, ...], Overlaps | None] = Memo(_DAYS_MAX)

    def of(
        self, described: Mapping[str, Plain], attributes: tuple[str, ...], part: Part
    ) -> Price | UnknownDescription:
        """Return the cost of a described mechanism.

        Returns:
            The cost; or why it cannot be computed, where another version may be able
            to.

        Raises:
            InputError: If it is not in the form of a description, or has no price.
        """
        unfamiliar = _unfamiliar(described)
        if unfamiliar:
            return UnknownDescription(unfamiliar)
        static = self._vocabulary.population.static.intersection(attributes)
        written = encode({name: described[name] for name in _priced_from(described)})
        key = written, bool(static), self._within(part)
        known = self._known.get(key)
        if known is not None:
            return known
        mechanism = _read_back(described, sorted(static), self._vocabulary)
        moved = mechanism.over(Part(periods=part.periods))
        (priced,) = price(
            Release("again", {}, {}, (moved,)), self._vocabulary
        ).mechanisms
        own = {
            unit: found.curve.loss()
            for unit in self._vocabulary.units
            if (found := stated(moved, unit, self._vocabulary)) is not None
        }
        cost = Price(priced.losses, own)
        if len(written) > _BYTES_MAX:
            return cost
        return self._known.keep(key, cost)

    def _within(self, part: Part) -> Overlaps | None:
        """Return all that a price can depend on of the days that are read."""
        days = part.periods
        if days is None or not self._timed:
            return None
        known = self._days.get(days)
        if known is not None:
            return known
        return self._days.keep(days, overlaps(self._kinds, days))


def derivations(
    described: Mapping[str, Plain],
    part: Part,
    losses: Mapping[str, Loss],
    vocabulary: Vocabulary,
) -> Mapping[str, str]:
    """Return how the losses of units follow from those of other units, as text.

    Returns:
        By unit; without those whose loss is stated, or would be another one today.
    """
    attributes = described.get("attributes")
    if not isinstance(attributes, Sequence):
        return {}
    static = vocabulary.population.static.intersection(attributes)
    try:
        if _unfamiliar(described):
            return {}
        read = _read_back(described, sorted(static), vocabulary)
        priced = price_mechanism(read.over(Part(periods=part.periods)), vocabulary)
    except InputError:
        return {}
    return {
        unit: source
        for unit, source in priced.sources.items()
        if source not in STATED and priced.losses[unit] == losses.get(unit)
    }


def _unfamiliar(described: Mapping[str, Plain]) -> str:
    """Return the part of a description unknown to this version; "" if none."""
    if not described.keys() >= _FIELDS:
        raise _malformed("a field is missing")
    more = described.keys() - _FIELDS - _PART - {*_OPTIONAL}
    if more:
        return f"its field `{min(more)[:60]}` is unknown to this version"
    kind = described["kind"]
    if not isinstance(kind, str):
        raise _malformed("`kind` is not text")
    if kind not in RELEASE_KINDS:
        return f"mechanisms of the kind `{kind[:60]}` are not priced by this version"
    selection = _mapping(described.get(_SELECTION, {}), _SELECTION)
    law = {str(selection.get("distribution"))} if selection else set[str]()
    more = law.difference(DISTRIBUTIONS) or selection.keys() - KEYS
    if more:
        return f"its selection by `{min(more)[:60]}` is unknown to this version"
    for what, keys, known in _named(described, RELEASE_KINDS[kind]):
        more = keys.keys() - {*known}
        if more:
            return f"its {what} `{min(more)[:60]}` is unknown to this version"
    return ""


def _named(
    described: Mapping[str, Plain], kind: MechanismKind
) -> Iterator[tuple[str, Mapping[str, Plain], Collection[str]]]:
    """Yield the mappings of a description whose keys must be known, and those keys."""
    yield "parameter", _mapping(described["parameters"], "parameters"), kind.described
    sampling = _mapping(described.get(_SAMPLING, {}), _SAMPLING)
    yield "sampling by", sampling, ("unit", "rate")
    takes_part = _mapping(described.get(_PARTICIPATION, {}), _PARTICIPATION)
    for one in takes_part.values():
        yield "participation by", _mapping(one, _PARTICIPATION), kind.of_unit
    for one in _mapping(described["cost"], "cost").values():
        yield "cost in", _mapping(one, "a cost"), _MEASURES


def _priced_from(described: Mapping[str, Plain]) -> tuple[str, ...]:
    """Return the fields that a price depends on; those not always present are last."""
    return (*_PRICED_FROM, *(name for name in _OPTIONAL if name in described))


# --- the form of a new release --------------------------------------------------------


def _read_back(
    described: Mapping[str, Plain], attributes: list[str], vocabulary: Vocabulary
) -> Mechanism:
    """Return a mechanism with everything that its price depends on, but its part."""
    node = _asked(described, attributes)
    mechanism = parse_mechanism(node, 1, MechanismDefaults(), vocabulary)
    for name in _priced_from(described):  # Nothing was read differently.
        if mechanism.plain.get(name) != described[name]:
            raise _malformed(f"`{name}` is not in canonical form")
    return mechanism


def _asked(described: Mapping[str, Plain], attributes: list[str]) -> Entries:
    """Return a description as in a release."""
    kind = str(described["kind"])
    norm = RELEASE_KINDS[kind].norm or "l1"  # Without a sensitivity, none may be given.
    more = _mapping(described.get(_PARTICIPATION, {}), _PARTICIPATION)
    moves: dict[str, Plain] = {
        unit: {norm: value, **_mapping(more.get(unit, {}), _PARTICIPATION)}
        for unit, value in _mapping(described["sensitivity"], "sensitivity").items()
    }

    def amounts(value: Plain) -> Node:
        return _entries(value, norm, _number)

    nodes: dict[str, Node] = {
        "mechanism": _word(kind),
        "attributes": Items(tuple(map(_word, attributes)), None),
    }
    for name, value in _mapping(described["parameters"], "parameters").items():
        nodes[name] = _number(value)
    if _COEFFICIENTS in described:
        nodes[_COEFFICIENTS] = _list(described[_COEFFICIENTS])
    for name, plain, read in (
        ("sensitivity", moves, amounts),
        ("contribution_bound", described["contribution_bound"], _count),
        ("cost", described["cost"], _cost),
    ):
        if plain != {}:
            nodes[name] = _entries(plain, name, read)
    framed = described["public_frame"]
    if not isinstance(framed, bool):
        raise _malformed("`public_frame` is neither true nor false")
    if _SAMPLING in described:
        nodes[_SAMPLING] = _sampling(described[_SAMPLING])
    if _SELECTION in described:
        nodes[_SELECTION] = _selection(described[_SELECTION])
    if framed:
        nodes["public_frame"] = Scalar(Kind.BOOLEAN, "true", quoted=False, mark=None)
    return Entries(tuple((_word(key), value) for key, value in nodes.items()), None)


def _sampling(plain: Plain) -> Node:
    try:
        found = sampling_from_plain(plain)
    except ValueError as error:
        raise _malformed(str(error)) from error
    rate = Scalar(Kind.NUMBER, number_spelled(found.rate), quoted=False, mark=None)
    return Entries(((_word("unit"), _word(found.unit)), (_word("rate"), rate)), None)


def _selection(plain: Plain) -> Node:
    try:
        selection_from_plain(plain)
    except ValueError as error:
        raise _malformed(str(error)) from error

    def value(text: Plain) -> Node:
        stated = str(text)
        if stated in DISTRIBUTIONS:
            return _word(stated)
        spelled = number_spelled(Fraction(stated))
        return Scalar(Kind.NUMBER, spelled, quoted=False, mark=None)

    return _entries(plain, _SELECTION, value)


def _list(plain: Plain) -> Node:
    if not isinstance(plain, list | tuple):
        raise _malformed("`coefficients` is not a list")
    return Items(tuple(map(_number, plain)), None)


def _cost(plain: Plain) -> Node:
    def amount(value: Plain) -> Node:
        return _by_order(value) if isinstance(value, Mapping) else _number(value)

    return _entries(plain, "a cost", amount)


def _by_order(plain: Mapping[str, Plain]) -> Node:
    pairs = ((_number(order), _number(most)) for order, most in plain.items())
    return Entries(tuple(pairs), None)


def _entries(plain: Plain, what: str, read: Callable[[Plain], Node]) -> Node:
    pairs = _mapping(plain, what).items()
    return Entries(tuple((_word(key), read(value)) for key, value in pairs), None)


def _mapping(plain: Plain, what: str) -> Mapping[str, Plain]:
    if not isinstance(plain, Mapping):
        raise _malformed(f"`{what}` is not a mapping")
    return plain


def _word(text: str) -> Scalar:
    return Scalar(Kind.TEXT, text, quoted=True, mark=None)


def _number(plain: Plain) -> Scalar:
    """Return a number as a file can hold it, however many digits are stored."""
    if not isinstance(plain, str) or not _NUMBER.fullmatch(plain):
        raise _malformed("a number is not in canonical form")
    spelled = number_spelled(Fraction(plain))
    return Scalar(Kind.NUMBER, spelled, quoted=False, mark=None)


def _count(plain: Plain) -> Scalar:
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise _malformed("a count is not an integer")
    return Scalar(Kind.NUMBER, str(plain), quoted=False, mark=None)


def _malformed(why: str) -> InputError:
    return InputError(
        Problem(Code.WRONG_TYPE, f"it is not a stored description: {why}")
    )
