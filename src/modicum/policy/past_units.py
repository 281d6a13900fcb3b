"""The vocabulary of former policies in a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.policy.parser import parse_policy
from modicum.release import Population, Vocabulary
from modicum.release.units import Period, Relation

#: Maximum number of policies cached.
_REMEMBERED_MAX = 100


class Known(NamedTuple):
    """The identification of a unit's instances, and the relation of its losses.

    Attributes:
        id: The column that identifies a row's instance; None if undeclared.
        period: How long an instance lasts; None for all of time.
        clock: The column with the time of a row.
        neighbors: The relation that losses for it are proven under.
    """

    id: str | None
    period: Period | None
    clock: str | None
    neighbors: Relation


@lru_cache(maxsize=_REMEMBERED_MAX)
def vocabulary_of(text: str) -> Vocabulary | None:
    """Return the vocabulary of a policy.

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
    """Return the units of a policy, by name; None as above."""
    vocabulary = vocabulary_of(text)
    if vocabulary is None:
        return None
    return {unit: _known(unit, vocabulary) for unit in vocabulary.units}


def _known(unit: str, vocabulary: Vocabulary) -> Known:
    facts, relation = vocabulary.unit_facts.get(unit), vocabulary.relation(unit)
    if facts is None:
        return Known(None, None, None, relation)
    return Known(facts.id, facts.period, facts.column, relation)


def population_of(text: str) -> Population:
    """Return a policy's division of the population.

    For a policy of a version that is no longer readable nothing is known: it divides
    the population by nothing, so that its parts become everything.
    """
    vocabulary = vocabulary_of(text)
    return Population() if vocabulary is None else vocabulary.population
