"""What the units of a policy that a ledger held were."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.policy.parse import parse_policy
from modicum.release import Vocabulary
from modicum.release.units import Period, Relation

#: So many policies are remembered.
_REMEMBERED_MAX = 100


class Known(NamedTuple):
    """What tells the instances of a unit apart, and what a loss for it promises.

    Attributes:
        id: The column that tells whose a row is; None if nothing is said about it.
        period: How long an instance lasts; None for all of time.
        clock: The column that tells when a row happened.
        neighbors: The relation that losses for it are proven under.
    """

    id: str | None
    period: Period | None
    clock: str | None
    neighbors: Relation


@lru_cache(maxsize=_REMEMBERED_MAX)
def vocabulary_of(text: str) -> Vocabulary | None:
    """Return the words of a policy.

    Args:
        text: The text of the policy, as a ledger holds it.

    Returns:
        None if it is of a version that cannot be read any more.
    """
    try:
        node = read_document(text.encode("utf-8"), "a past policy")
        return parse_policy(node, text).vocabulary
    except InputError:
        return None


@lru_cache(maxsize=_REMEMBERED_MAX)
def units_of(text: str) -> Mapping[str, Known] | None:
    """Return what the units of a policy were, by their names.

    Args:
        text: The text of the policy, as a ledger holds it.

    Returns:
        None if it is of a version that cannot be read any more.
    """
    vocabulary = vocabulary_of(text)
    if vocabulary is None:
        return None
    return {unit: _known(unit, vocabulary) for unit in vocabulary.units}


def _known(unit: str, vocabulary: Vocabulary) -> Known:
    facts, relation = vocabulary.unit_facts.get(unit), vocabulary.relation(unit)
    if facts is None:
        return Known(None, None, None, relation)
    return Known(facts.id, facts.period, facts.column, relation)
