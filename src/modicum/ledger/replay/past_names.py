"""What changed meanings of names do to releases that were recorded before.

A policy is asked about them when it is activated. Those that were activated before
events of version 6 were not asked about all: their rules may show less than was
released, and verification tells so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, Problem
from modicum.ledger.cells.axes import space_of
from modicum.ledger.decision.departures import (
    Departure,
    Matched,
    departures,
    may_depart,
)
from modicum.ledger.decision.rule_matching import facts_of
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.past_vocabulary import (
    is_entailed,
    replaced_attributes,
    units_redefined_by_name,
)
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import ReadsAny, atoms
from modicum.release import Partition
from modicum.release.parts import Box, Values

#: Releases that count as spent, as recorded, each with the number of its entry.
Counted: TypeAlias = Iterable[tuple[RecordedRelease, int]]
#: Maximum number of rules named.
_NAMED_MAX = 10
#: Boxes, any of which a row may lie in; None for everybody.
Boxes: TypeAlias = tuple[Box, ...] | None
#: Maximum number of cells compared one by one.
_CELLS_MAX = 10_000
#: A policy comes back with the third one at the earliest.
_COMES_BACK = 3


class Understated(NamedTuple):
    """Rules of an active policy that show less than was released.

    Attributes:
        subject: The unit, attribute or rule whose past it is about.
        rules: The scopes of the rules.
        problem: It as a mistake of the policy.
    """

    subject: str
    rules: tuple[str, ...]
    problem: Problem


class _Compiled:
    """The policies of a log, compiled where they are needed."""

    def __init__(self, policies: Sequence[ActivePolicy]) -> None:
        self._policies = policies
        self._seqs = [one.seq for one in policies]
        self._found: dict[str, CompiledPolicy] = {}

    def at(self, seq: int) -> CompiledPolicy:
        """Return the policy that held when an entry was made."""
        held = self._policies[max(bisect_right(self._seqs, seq) - 1, 0)]
        if held.digest not in self._found:
            text = held.text.encode("utf-8")
            self._found[held.digest] = compile_text(text, f"policy of entry {held.seq}")
        return self._found[held.digest]


def departed(
    policies: Sequence[ActivePolicy], releases: Counted, successor: CompiledPolicy
) -> tuple[Departure, ...]:
    """Return the rules that past releases leave as a policy replaces the last one.

    If the last one was activated before version 6, nobody was asked about those that
    left before: each release is compared with the policy that it was recorded under.

    Args:
        policies: The policies that were activated, oldest first.
        releases: The releases, oldest first; gone through only if needed.
        successor: The policy that is to hold.
    """
    if not policies:
        return ()
    compiled = _Compiled(policies)
    replaced = compiled.at(policies[-1].seq)
    if not policies[-1].entails:
        return departures(
            _since_recorded(compiled, releases, policies, successor), successor
        )
    if not may_depart(replaced, successor):
        return ()
    then = Migration(policies, replaced.policy.vocabulary)
    now = Migration(policies, successor.policy.vocabulary)
    return departures(
        (
            Matched(replaced, then.release(one, seq), now.release(one, seq))
            for one, seq in releases
        ),
        successor,
    )


def _since_recorded(
    compiled: _Compiled,
    releases: Counted,
    policies: Sequence[ActivePolicy],
    successor: CompiledPolicy,
) -> Iterator[Matched]:
    """Yield the releases by the policy that each was recorded under."""
    if any(may_depart(compiled.at(one.seq), successor) for one in policies):
        now = Migration(policies, successor.policy.vocabulary)
        for one, seq in releases:
            yield Matched(compiled.at(seq), one, now.release(one, seq))


def understated(
    policies: Sequence[ActivePolicy],
    counted: Sequence[int],
    releases: Callable[[], Counted],
    compiled: CompiledPolicy,
) -> tuple[Understated, ...]:
    """Return what an active policy shows too little of, as nobody was asked about it.

    Args:
        policies: The policies that were activated, oldest first.
        counted: The entries of the releases that count as spent, in order.
        releases: Returns these releases; called only if needed.
        compiled: The policy that counts; if it is not the last of these, nothing is.
    """
    if is_entailed(policies, compiled.policy.text):
        return ()
    found = [
        Understated(one.unit, one.rules, one.problem(counted=True))
        for one in units_redefined_by_name(policies, counted, compiled)
        if one.rules
    ]
    if len({one.digest for one in policies}) > 1:
        found += _claimed_later(policies, releases(), compiled)
        found += _made_again(policies, releases, compiled)
        found += _replaced(policies, releases(), compiled)
        left = _since_recorded(_Compiled(policies), releases(), policies, compiled)
        found += (
            Understated(one.scope, one.rules, one.understated)
            for one in departures(left, compiled)
        )
    return tuple(found)


def _claimed_later(
    policies: Sequence[ActivePolicy], releases: Counted, compiled: CompiledPolicy
) -> Iterator[Understated]:
    """Yield the units that were not known to keep a value when a part was read."""
    vocabulary = compiled.policy.vocabulary
    if not vocabulary.population.partitions and not vocabulary.population.grouped:
        return
    migration = Migration(policies, vocabulary, compiled.policy.text, entails=True)
    found: dict[str, dict[str, None]] = {}
    first: dict[str, str] = {}
    for release, seq in releases:
        one = migration.release(release, seq)
        for rule, places in compiled.rules.matching(facts_of(one, vocabulary)):
            if any(rule.unit in one.mechanisms[place].undivided for place in places):
                found.setdefault(rule.unit, {})[rule.scope] = None
                first.setdefault(rule.unit, release.id)
    for unit, rules in found.items():
        problem = Problem(
            Code.UNIT_REDEFINED,
            f"the unit `{unit}` is said to keep a value or a group, and was not known"
            " to keep it before",
            notes=(
                f"before that, `{first[unit]}` read a part of the data",
                f"these rules undercount: {shortened([*rules], _NAMED_MAX)}",
            ),
            help="activate another policy: it charges such releases to every part",
        )
        yield Understated(unit, (*rules,), problem)


def _made_again(
    policies: Sequence[ActivePolicy],
    releases: Callable[[], Counted],
    compiled: CompiledPolicy,
) -> Iterator[Understated]:
    """Yield the attributes whose `was` moved losses away from a value they are about.

    Before version 6, `was` of a policy that came back was mistaken for that of another.
    """
    vocabulary = compiled.policy.vocabulary
    if not vocabulary.population.partitions or len(policies) < _COMES_BACK:
        return
    text = compiled.policy.text
    then, now = (
        Migration(policies, vocabulary, text, entails=entails)
        for entails in (False, True)
    )
    divides = {unit: space_of(unit, vocabulary).partitions for unit in vocabulary.units}
    found: dict[str, dict[str, None]] = {}
    for release, seq in releases():
        parts = [
            (then.part(one.part, seq).where, now.part(one.part, seq).where)
            for one in release.mechanisms
        ]
        if all(before in (None, after) for before, after in parts):
            continue
        facts = facts_of(now.release(release, seq), vocabulary)
        for rule, places in compiled.rules.matching(facts):
            own = divides[rule.unit]
            if any(_goes_beyond(own, *parts[place]) for place in places):
                for one in own:
                    if one.was:
                        found.setdefault(one.name, {})[rule.scope] = None
    for name, rules in found.items():
        problem = Problem(
            Code.RELEASES_DEPARTED,
            f"values of `{name}` are charged too little: a policy that came back mapped"
            " them by `was`",
            notes=(f"these rules undercount: {shortened([*rules], _NAMED_MAX)}",),
            help="activate another policy: it charges such releases to all that their"
            " values may be",
        )
        yield Understated(name, (*rules,), problem)


def _goes_beyond(divides: Sequence[Partition], before: Boxes, after: Boxes) -> bool:
    """Return whether boxes have a cell that those before had not, if that is known."""
    if before is None:
        return False
    every = after or ((),)
    axes = {one.name: [*_points(one, (*before, *every))] for one in divides}
    if prod(map(len, axes.values())) > _CELLS_MAX:
        return True

    def cells(boxes: Iterable[Box]) -> set[tuple[object, ...]]:
        return {
            cell
            for box in map(dict, boxes)
            for cell in product(
                *(
                    [one for one in axis if name not in box or _is_in(one, box[name])]
                    for name, axis in axes.items()
                )
            )
        }

    return not cells(every) <= cells(before)


def _points(partition: Partition, boxes: Iterable[Box]) -> Iterator[str | int]:
    """Yield values of an attribute, one for each piece that boxes cut it into."""
    if partition.values is not None:
        yield from partition.values
        return
    spans = (
        span
        for box in boxes
        for span in dict(box).get(partition.name, ())
        if not isinstance(span, str)
    )
    cuts = {partition.low, *(cut for low, high in spans for cut in (low, high + 1))}
    yield from (one for one in cuts if partition.low <= one <= partition.high)


def _is_in(value: str | int, values: Values) -> bool:
    if isinstance(value, str):
        return value in values
    return any(
        span[0] <= value <= span[1] for span in values if not isinstance(span, str)
    )


def _replaced(
    policies: Sequence[ActivePolicy], releases: Counted, compiled: CompiledPolicy
) -> Iterator[Understated]:
    """Yield the attributes that may have been renamed, and nobody was asked."""
    vocabulary = compiled.policy.vocabulary
    names = Migration(policies, vocabulary)
    gone = replaced_attributes(
        policies[:-1],
        (names.release(one, seq) for one, seq in releases),
        vocabulary,
        policies[-1].accepted,
    )
    for attribute, may_be in gone.items():
        rules = [
            base.scope
            for base in compiled.rules.bases
            if any(
                isinstance(one, ReadsAny) and not one.attributes.isdisjoint(may_be)
                for one in atoms(base.predicate)
            )
        ]
        others = shortened([f"`{one}`" for one in may_be], _NAMED_MAX)
        problem = Problem(
            Code.ATTRIBUTE_DROPPED,
            f"the attribute `{attribute}` was removed, and one of {others} may be its"
            " new name",
            notes=(
                "nobody was asked about it",
                f"these rules may undercount: {shortened(rules, _NAMED_MAX)}",
            ),
            help="activate another policy: it asks about this attribute",
        )
        if rules:
            yield Understated(attribute, tuple(rules), problem)
