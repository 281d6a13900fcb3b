"""The effect of a policy on the vocabulary of recorded losses.

A loss is recorded for a unit, and for attributes, by their names. A policy that defines
a unit of that name otherwise charges what the loss proves for it
(`release.entailment`); people accept that by name. Policies that were activated before
events of version 6 count the loss as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
            help_ = "activate another policy: it is charged for what these losses prove"
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
    releases: Iterable[RecordedRelease],
) -> tuple[Redefined, ...]:
    """Return the redefined units of a policy that the one before it did not have so.

    Args:
        policies: The policies before it, oldest first; the last one is replaced.
        counted: The entries of the releases that count as spent, in order.
        compiled: The policy that is to charge them.
        releases: These releases; gone through only if needed.

    Raises:
        VerificationError: If an earlier policy cannot be read, and losses count that
            were recorded under it.
    """
    replaced = policies[-1] if policies else None
    before = (
        None
        if replaced is None or not replaced.entails
        else vocabulary_of(replaced.text)
    )
    found: dict[str, Redefined] = {}
    derived: bool | None = None
    for policy, past in _counted_policies(policies, counted):
        proven = entailment(past.unit_facts, compiled.policy.vocabulary.unit_facts)
        changes = dict(proven.redefined)
        if proven.weaker:
            if derived is None:
                derived = any(
                    one.derived is None or one.derived
                    for release in releases
                    for one in release.mechanisms
                )
            changes |= _claims(proven.weaker) if derived else {}
        if before is not None and changes:
            known = entailment(past.unit_facts, before.unit_facts)
            asked = {**_claims(known.weaker), **known.redefined}
            changes = {k: text for k, text in changes.items() if asked.get(k) != text}
        _add(found, changes, policy.seq, proven.same, compiled)
    return tuple(found.values())


def units_redefined_by_name(
    policies: Sequence[ActivePolicy], counted: Sequence[int], compiled: CompiledPolicy
) -> tuple[Redefined, ...]:
    """Return the units of a policy that counts old losses by the names of units.

    Of these losses, a rule shows less than was released. Claims are compared of units
    that both policies have.

    Args:
        policies: The policies that were activated, oldest first.
        counted: As for `redefined_units`.
        compiled: The policy.

    Raises:
        VerificationError: As `redefined_units` does.
    """
    found: dict[str, Redefined] = {}
    for policy, past in _counted_policies(policies, counted):
        proven = entailment(past.unit_facts, compiled.policy.vocabulary.unit_facts)
        kept = {one for one, own in proven.same.items() if one == own}
        weaker = {k: text for k, text in proven.weaker.items() if kept.issuperset(k)}
        changes = {**_claims(weaker), **proven.redefined}
        _add(found, changes, policy.seq, proven.same, compiled)
    return tuple(found.values())


def _counted_policies(
    policies: Sequence[ActivePolicy], counted: Sequence[int]
) -> Iterator[tuple[ActivePolicy, Vocabulary]]:
    """Yield the policies under which releases were recorded that count."""
    # The start of each policy among the releases.
    starts = [bisect_right(counted, one.seq) for one in policies]
    for policy, (first, last) in zip(
        policies, pairwise([*starts, len(counted)]), strict=True
    ):
        if first == last:
            continue
        past = vocabulary_of(policy.text)
        if past is None:
            raise ChainBreakError(policy.seq, "its policy cannot be read")
        yield policy, past


def _claims(weaker: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Return weaker claims by unit."""
    found: dict[str, list[str]] = {}
    for (unit, _), text in weaker.items():
        found.setdefault(unit, []).append(text)
    return {unit: "; ".join(texts) for unit, texts in found.items()}


def _add(
    found: dict[str, Redefined],
    changes: Mapping[str, str],
    seq: int,
    same: Mapping[str, str],
    compiled: CompiledPolicy,
) -> None:
    covers = compiled.policy.vocabulary.covers
    for unit, change in changes.items():
        names = {unit, *(one for one, own in same.items() if own == unit)}
        rules = (
            base.scope
            for base in compiled.rules.bases
            if names & {*covers.get(base.unit, (base.unit,))}
        )
        one = Redefined(unit, change, seq, tuple(dict.fromkeys(rules)))
        found.setdefault(unit, one)


def is_entailed(policies: Sequence[Held], text: str) -> bool:
    """Return whether a policy is charged for old losses by the definitions of units.

    Args:
        policies: The policies that were activated, oldest first.
        text: The text of the policy; unless it is active, it would be activated now.
    """
    return not policies or policies[-1].text != text or policies[-1].entails


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

    They were read by a release, are missing from the policy, and were neither accepted
    as removed nor mapped by `was` since a policy had them last; and the policy has an
    attribute that no policy had until they first occurred, or one that was mapped to
    them.

    Args:
        policies: The policies that were activated, oldest first.
        releases: The releases that count as spent; gone through only if needed.
        vocabulary: The vocabulary of the policy.

    Returns:
        By the name under which each is accepted, in order, the mistake.
    """
    found = replaced_attributes(policies, releases, vocabulary)
    return {ATTRIBUTE + one: _dropped(one, names) for one, names in found.items()}


def replaced_attributes(
    policies: Sequence[ActivePolicy],
    releases: Iterable[RecordedRelease],
    vocabulary: Vocabulary,
    agreed_last: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Return by attribute that a policy may have renamed its possible names now.

    Args:
        policies: As for `dropped_attributes`.
        releases: As for `dropped_attributes`.
        vocabulary: As for `dropped_attributes`.
        agreed_last: What was accepted when the policy was activated.
    """
    accepted: set[str] = set()
    known: set[str] = set()
    later: dict[str, frozenset[str]] = {}
    former: dict[str, set[str]] = {}
    steps = [(vocabulary_of(one.text), one.accepted) for one in policies]
    before: Mapping[str, tuple[str, ...]] = {}
    for past, agreed in [*steps, (vocabulary, agreed_last)]:
        names = past.attributes if past else frozenset()
        renamed = past.renamed if past else {}
        accepted -= {ATTRIBUTE + one for one in names}
        # What the policy before already had was a step of that one.
        new = {one: now for one, now in renamed.items() if now != before.get(one)}
        for one, now in new.items():
            for name in now:
                former.setdefault(name, set()).update({one}, former.get(one, ()))
        accepted |= {ATTRIBUTE + one for one in new.keys() - names}
        accepted |= {*agreed}
        before, came = renamed, names - known
        known |= names
        later |= dict.fromkeys(came, vocabulary.attributes - known)
    may_be = {
        one: sorted(names)
        for one, first in later.items()
        if (names := first | (vocabulary.attributes & former.get(one, set())))
        and one not in vocabulary.attributes
        and ATTRIBUTE + one not in accepted
    }
    if not may_be:
        return {}
    read = {
        attribute
        for release in releases
        for one in release.mechanisms
        for attribute in one.attributes
    }
    return {one: may_be[one] for one in sorted(read & may_be.keys())}


def _dropped(one: str, names: Sequence[str]) -> Problem:
    """Return the mistake of an attribute that may have another name now."""
    others = shortened([f"`{name}`" for name in names], _NAMED_MAX)
    new = names[0]
    return Problem(
        Code.ATTRIBUTE_DROPPED,
        f"the attribute `{one}` is removed, and one of {others} may be its new name",
        notes=(
            "past releases count by its name, and would no longer count under another"
            " one",
            "if none of them is, accept that by name:"
            f"  --accept-conflict {ATTRIBUTE}{one}",
        ),
        help=f"if one of them is, add  was: {{{one}: {new}}}  to `schema`",
    )
