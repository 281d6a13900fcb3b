"""Dominating pairs of the mechanisms of one release, from their stored descriptions.

An audit has compared each description with its losses. What it states about a unit
itself, under the unit's present relation, holds; from everything else only the charge
does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.privacy_loss.pairs import Batch, Pair, merged, pair_of_loss
from modicum.core.canonical import Plain
from modicum.ledger.decision.charges import charged
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import Vocabulary

#: The keys of descriptions whose parameters give a pair. A `selection`, for instance,
#: makes the loss larger than they say.
_OF_ONE_RUN = frozenset(
    {
        *("name", "kind", "attributes", "labels", "parameters", "sensitivity"),
        *("contribution_bound", "public_frame", "cost", "sampling"),
        *("where", "periods", "groups"),
    }
)


def batch_of(each: Iterable[Batch | None]) -> Batch | None:
    """Return the pairs of mechanisms together; None if one has none.

    Args:
        each: The pairs of each mechanism, as from `pairs_of`.
    """
    found: list[tuple[Pair, int]] = []
    for pairs in each:
        if pairs is None:
            return None
        found += pairs
    return merged(found)


def pairs_of(one: RecordedMechanism, unit: str, vocabulary: Vocabulary) -> Batch | None:
    """Return pairs that dominate a mechanism for a unit; None if none are known.

    Args:
        one: The mechanism, recorded since version 6 of the events.
        unit: The unit.
        vocabulary: The present policy's units and their relations.
    """
    pairs = _stated(one, unit, vocabulary)
    return pair_of_loss(charged(one, unit, vocabulary)) if pairs is None else pairs


def _stated(one: RecordedMechanism, unit: str, vocabulary: Vocabulary) -> Batch | None:
    """Return the pairs of the parameters that a description states about a unit."""
    recorded = one.neighbors.get(unit, "add-remove")
    if one.derived is None or unit in one.derived or unit not in one.losses:
        return None
    described, kind_name = one.description, str(one.description.get("kind"))
    if described.keys() - _OF_ONE_RUN:
        return None
    # A cost that is declared may cover more than the parameters do.
    if recorded != vocabulary.relation(unit) or unit in _map(described, "cost"):
        return None
    kind = RELEASE_KINDS.get(kind_name)
    if kind is None or kind.pairs is None:
        return None
    values = {**kind.defaults, **_numbers(described, "parameters")}
    if kind.norm is not None:
        values["sensitivity"] = _numbers(described, "sensitivity")[unit]
    elif kind.local:
        values[kind.repeats] = _numbers(described, "contribution_bound")[unit]
    sampling = _map(described, "sampling")
    if not sampling:
        return kind.pairs(values)
    if sampling["unit"] != unit:
        return None
    rate = Fraction(str(sampling["rate"]))
    if kind.samples:
        return kind.pairs({**values, "sampling-rate": rate})
    return None if kind.pairs_on_sample is None else kind.pairs_on_sample(values, rate)


def _map(described: Mapping[str, Plain], name: str) -> Mapping[str, Plain]:
    found = described.get(name)
    return found if isinstance(found, Mapping) else {}


def _numbers(described: Mapping[str, Plain], name: str) -> dict[str, Fraction]:
    return {key: Fraction(str(x)) for key, x in _map(described, name).items()}
