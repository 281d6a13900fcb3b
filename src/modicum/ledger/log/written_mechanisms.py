"""Priced mechanisms as the bytes that the ledger stores, put together from parts.

Most releases repeat what another one said, over another part of the data. So what does
not depend on the part is written once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from modicum.accounting import INFINITE, Loss
from modicum.core.canonical import Plain, Written, encode
from modicum.release import PricedMechanism, Relation
from modicum.release.parts import part_written
from modicum.release.priced_release import Elsewhere


def losses_to_plain(losses: Mapping[str, Loss]) -> dict[str, Plain]:
    """Return losses by privacy unit as plain data.

    Args:
        losses: The losses.
    """
    return {
        unit: ["inf" if value == INFINITE else value for value in loss.coordinates]
        for unit, loss in losses.items()
    }


def elsewhere(one: PricedMechanism) -> Elsewhere:
    """Return what a mechanism is stored as, whatever part of the data it reads.

    Args:
        one: The mechanism.
    """
    known = one.elsewhere.get()
    return one.elsewhere.keep(_elsewhere(one)) if known is None else known


def written_mechanism(one: PricedMechanism) -> Written:
    """Return the bytes of a mechanism as the ledger stores it.

    Args:
        one: The mechanism.
    """
    _, where, periods, groups = part_written(one.mechanism.part)
    known = elsewhere(one)
    return Written(
        b'{"attributes":%b,"description":%b,"groups":%b,%b,"periods":%b,"where":%b}'
        % (known.first, one.mechanism.encoded, groups, known.later, periods, where)
    )


def _elsewhere(one: PricedMechanism) -> Elsewhere:
    attributes = tuple(sorted(one.mechanism.attributes))
    neighbors: dict[str, Relation] = {
        unit: relation
        for unit, relation in one.neighbors.items()
        if relation != "add-remove"
    }
    later: dict[str, Plain] = {
        "labels": dict(one.labels),
        "losses": losses_to_plain(one.losses),
    }
    if neighbors:  # Left out otherwise, so that one mechanism has one encoding.
        later["neighbors"] = dict(neighbors)
    first, last = encode(attributes), encode(later)[1:-1]
    described = one.mechanism.pieces.whole()
    return Elsewhere(
        attributes,
        MappingProxyType(dict(one.losses)),
        MappingProxyType(neighbors),
        first,
        last,
        alike=b'{"attributes":%b,"description":%b,%b}' % (first, described, last),
    )
