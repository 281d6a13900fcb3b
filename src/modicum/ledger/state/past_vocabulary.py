"""The effect of a policy on the vocabulary of recorded losses.

A loss is recorded for a unit, and for attributes, by their names. A policy that defines
a unit of that name otherwise charges what the loss proves for it
(`release.entailment`); people accept that by name. Policies that were activated before
events of version 6 count the loss as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, Problem
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy
from modicum.policy.past_units import vocabulary_of
from modicum.release import Vocabulary
from modicum.release.entailment import entailment

#: Maximum number of rules listed.
_NAMED_MAX = 10
#: The names by which a dropped attribute and a redefined unit are accepted: no rule id
#: has this form.
ATTRIBUTE = "attribute:"
UNIT = "unit:"


class Held(Protocol):
    """An active or former policy, and the entry that activated it."""

    @property
    def text(self) -> str:
        """The text of the policy."""
        ...

    @property
    def seq(self) -> int:
        """The number of the entry that activated it."""
        ...

    @property
    def entails(self) -> bool:
        """Whether old losses are charged to it by the definitions of units."""
        ...


class Redefined(NamedTuple):
    """A unit of a policy whose recorded losses are of another definition.

    Attributes:
        unit: Its name.
        change: The difference, as text.
        seq: The entry of an earlier policy under which losses were recorded.
        rules: The scopes of the rules that count them.
    """

    unit: str
    change: str
    seq: int
    rules: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name by which it is accepted."""
        return UNIT + self.unit

    def problem(self, *, effect: Sequence[str] = (), counted: bool = False) -> Problem:
        """Return it as a mistake of the policy.

        Args:
            effect: The effect on balances, line by line, if it may be accepted.
            counted: Whether the policy is active, and counts the losses as they are.
        """
        named = shortened(self.rules, _NAMED_MAX)
        notes = [f"losses were recorded for it under the policy of entry {self.seq}"]
        if counted:
            if named:
                notes.append(f"these rules undercount: {named}")
            help_ = "activate a policy anew: it charges what these losses prove"
        else:
            notes += effect
            notes.append(f"or accept that by name:  --accept-conflict {self.name}")
            help_ = "give the new definition a new name, or restore the old one"
        return Problem(
            Code.UNIT_REDEFINED,
            f"the unit `{self.unit}` is redefined under the same name: {self.change}",
            notes=tuple(notes),
            help=help_,
        )


def redefined_units(
    policies: Sequence[ActivePolicy],
    counted: Sequence[int],
    compiled: CompiledPolicy,
    releases: Iterable[RecordedRelease] | None = None,
) -> tuple[Redefined, ...]:
    """Return the units of a policy that were defined otherwise for recorded losses.

    Args:
        policies: The policies that were activated, oldest first.
        counted: The entries of the releases that count as spent, in order.
        compiled: The policy that is to charge them.
        releases: The releases that count as spent; gone through only if needed. Without
            them, any loss may have been derived.

    Raises:
        VerificationError: If an earlier policy cannot be read, and losses count that
            were recorded under it.
    """
    vocabulary = compiled.policy.vocabulary
    # The start of each policy among them.
    starts = [bisect_right(counted, one.seq) for one in policies]
    found: dict[str, Redefined] = {}
    derived: _Derived | None = None
    for policy, (first, last) in zip(
        policies, pairwise([*starts, len(counted)]), strict=True
    ):
        if first == last:
            continue
        past = vocabulary_of(policy.text)
        if past is None:
            raise ChainBreakError(policy.seq, "its policy cannot be read")
        proven = entailment(past.unit_facts, vocabulary.unit_facts)
        changes = dict(proven.redefined)
        if proven.weaker.keys() - changes.keys():
            if derived is None:
                derived = _derived(releases)
            changes |= {
                unit: change
                for unit, change in proven.weaker.items()
                if derived.may_be(unit) and unit not in changes
            }
        for unit, change in changes.items():
            names = {unit, *(one for one, own in proven.same.items() if own == unit)}
            rules = (
                base.scope
                for base in compiled.rules.bases
                if names & {*vocabulary.covers.get(base.unit, (base.unit,))}
            )
            found.setdefault(
                unit,
                Redefined(unit, change, policy.seq, tuple(dict.fromkeys(rules))),
            )
    return tuple(found.values())


class _Derived(NamedTuple):
    """The units of which losses follow from those of others; None if unknown."""

    units: frozenset[str] | None

    def may_be(self, unit: str) -> bool:
        """Return whether a loss of a unit may have been derived."""
        return self.units is None or unit in self.units


def _derived(releases: Iterable[RecordedRelease] | None) -> _Derived:
    if releases is None:
        return _Derived(None)
    units: set[str] = set()
    for release in releases:
        for one in release.mechanisms:
            if one.derived is None:
                return _Derived(None)
            units.update(one.derived)
    return _Derived(frozenset(units))


def newly_redefined(
    policies: Sequence[ActivePolicy],
    counted: Sequence[int],
    compiled: CompiledPolicy,
    releases: Iterable[RecordedRelease],
) -> tuple[Redefined, ...]:
    """Return the redefined units of a policy that the one before it did not have so.

    Args:
        policies: The policies before it, oldest first; the last one is replaced.
        counted: As for `redefined_units`.
        compiled: The policy.
        releases: As for `redefined_units`.
    """
    found = redefined_units(policies, counted, compiled, releases)
    replaced = policies[-1] if policies else None
    if not found or replaced is None or not replaced.entails:
        return found
    past = vocabulary_of(replaced.text)
    if past is None:
        return found
    facts = compiled.policy.vocabulary.unit_facts
    proven = entailment(past.unit_facts, facts)
    changed = {*proven.redefined, *proven.weaker}
    return tuple(
        one for one in found if one.unit in changed or one.unit not in past.units
    )


def is_entailed(policies: Sequence[Held], text: str) -> bool:
    """Return whether a policy is charged for old losses by the definitions of units.

    Args:
        policies: The policies that were activated, oldest first.
        text: The text of the policy; unless it is active, it would be activated now.
    """
    return not policies or policies[-1].text != text or policies[-1].entails


def understated_units(
    policies: Sequence[ActivePolicy], counted: Sequence[int], compiled: CompiledPolicy
) -> tuple[Redefined, ...]:
    """Return the redefined units with rules that count old losses as they are.

    Args:
        policies: The policies that were activated, oldest first.
        counted: As for `redefined_units`.
        compiled: The policy that counts.
    """
    if is_entailed(policies, compiled.policy.text):
        return ()
    found = redefined_units(policies, counted, compiled)
    return tuple(one for one in found if one.rules)


def new_attributes(
    policies: Sequence[ActivePolicy], vocabulary: Vocabulary
) -> frozenset[str]:
    """Return the attributes of a policy that no earlier one had."""
    known = [vocabulary_of(one.text) for one in policies]
    return vocabulary.attributes.difference(*(one.attributes for one in known if one))


def dropped_attributes(
    policies: Sequence[ActivePolicy],
    releases: Iterable[RecordedRelease],
    vocabulary: Vocabulary,
) -> dict[str, Problem]:
    """Return the attributes that a policy may have renamed.

    They were read by a release, are missing from the policy, and were not accepted as
    removed since a policy had them last; and the policy has an attribute that no policy
    had until they first occurred.

    Args:
        policies: The policies that were activated, oldest first.
        releases: The releases that count as spent; gone through only if needed.
        vocabulary: The vocabulary of the policy.

    Returns:
        By the name under which each is accepted, in order, the mistake.
    """
    accepted: set[str] = set()
    known: set[str] = set()
    later: dict[str, list[str]] = {}
    for policy in policies:
        past = vocabulary_of(policy.text)
        names = past.attributes if past else frozenset()
        accepted -= {ATTRIBUTE + one for one in names}
        accepted |= {ATTRIBUTE + one for one in (past.renamed if past else ())}
        accepted |= {*policy.accepted}
        came = names - known
        known |= names
        later |= dict.fromkeys(came, sorted(vocabulary.attributes - known))
    accepted |= {ATTRIBUTE + one for one in vocabulary.renamed}
    may_be = {
        one: new
        for one, new in later.items()
        if new and one not in vocabulary.attributes and ATTRIBUTE + one not in accepted
    }
    if not may_be:
        return {}
    read = {
        attribute
        for release in releases
        for one in release.mechanisms
        for attribute in one.attributes
    }
    added = {
        one: shortened([f"`{new}`" for new in may_be[one]], _NAMED_MAX)
        for one in sorted(read & may_be.keys())
    }
    return {
        ATTRIBUTE + one: Problem(
            Code.ATTRIBUTE_DROPPED,
            f"the attribute `{one}` is removed, and one of {others} may be its new"
            " name",
            notes=(
                "past releases count by its name, and would no longer count under"
                " another one",
                "if none of them is, accept that by name:"
                f"  --accept-conflict {ATTRIBUTE}{one}",
            ),
            help=f"if one of them is, add  was: {{{one}: {new}}}  to `schema`",
        )
        for one, others in added.items()
        for new in may_be[one][:1]
    }
