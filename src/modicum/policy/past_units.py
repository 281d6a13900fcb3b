"""The units of former policies in a ledger, and their changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.policy.parser import parse_policy
from modicum.release import Population, Unit, Vocabulary
from modicum.release.units import Period, Relation, all_steps, owners

#: Maximum number of policies cached.
_REMEMBERED_MAX = 100

#: The fields of `Unit` that define an instance. If one differs, a loss recorded under
#: the name means nothing for the unit.
MEANING = ("id", "period", "column")
#: The fields that claim facts about the data. A loss may have been derived from that of
#: another unit by these, so it is too low if they claim less now.
CLAIMS = ("within", "groups")
#: The fields that are recorded with each loss, which is converted when it is charged
#: (REL-9).
RECORDED = ("neighbors",)


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


def redefinitions(
    old: Mapping[str, Unit], new: Mapping[str, Unit]
) -> Iterator[tuple[str, str]]:
    """Yield the units whose earlier recorded losses may be too low now.

    Of a unit that only one of the policies has, nothing is yielded.

    Args:
        old: The units of a policy that losses were recorded under, by name.
        new: The units of a policy that is to charge these losses.
    """
    same: list[str] = []
    for unit in (unit for unit in new if unit in old):
        differing = [
            f"{field} {was or 'none'} -> {now or 'none'}"
            for field in MEANING
            if (was := getattr(old[unit], field)) != (now := getattr(new[unit], field))
        ]
        if differing:
            yield unit, ", ".join(differing)
        else:
            same.append(unit)
    # That a day lies in its own user is true, claimed or not (`owners`). Under one
    # common relation, only claims make a difference.
    sure = owners(old)
    now_claimed = {
        unit: replace(
            facts,
            within=(*facts.within, *(sure[unit] & {*same})),
            neighbors=old[unit].neighbors,
        )
        if unit in same
        else facts
        for unit, facts in new.items()
    }
    before, after = all_steps(old), all_steps(now_claimed)
    for unit in same:
        weaker = [
            f"one change of it takes {after.get((unit, other), 'any number of')}"
            f" changes of `{other}`, before {before[unit, other]}"
            for other in same
            if (unit, other) in before
            and ((unit, other) not in after or after[unit, other] > before[unit, other])
        ]
        if weaker:
            yield unit, "; ".join(weaker)


def population_of(text: str) -> Population:
    """Return a policy's division of the population.

    For a policy of a version that is no longer readable nothing is known: it divides
    the population by nothing, so that its parts become everything.
    """
    vocabulary = vocabulary_of(text)
    return Population() if vocabulary is None else vocabulary.population
