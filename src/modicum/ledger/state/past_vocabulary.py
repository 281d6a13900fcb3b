"""The effect of a policy on the vocabulary of recorded losses.

A loss is recorded for a unit, and for attributes, by their names. A policy that gives a
name to something else would count the loss for that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, Problem
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy
from modicum.policy.past_units import redefinitions, vocabulary_of
from modicum.release import Vocabulary

#: Maximum number of rules listed.
_NAMED_MAX = 10
#: The name by which a dropped attribute is accepted: no rule id has this form.
ATTRIBUTE = "attribute:"


class Redefined(NamedTuple):
    """A unit whose recorded losses may be too low under a policy's definition.

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
    def problem(self) -> Problem:
        """It as a mistake of the policy."""
        named = shortened(self.rules, _NAMED_MAX)
        notes = [f"losses were recorded for it under the policy of entry {self.seq}"]
        if named:
            notes.append(f"these rules would undercount: {named}")
        return Problem(
            Code.UNIT_REDEFINED,
            f"the unit `{self.unit}` is redefined under the same name: {self.change}",
            notes=tuple(notes),
            help="give the new definition a new name, or restore the old one",
        )


def redefined_units(
    policies: Sequence[ActivePolicy], counted: Sequence[int], compiled: CompiledPolicy
) -> tuple[Redefined, ...]:
    """Return the units of a policy that were others when losses were recorded.

    Args:
        policies: The policies that were activated, oldest first.
        counted: The entries of the releases that count as spent, in order.
        compiled: The policy that is to charge them.

    Raises:
        VerificationError: If an earlier policy cannot be read, and losses count that
            were recorded under it.
    """
    vocabulary = compiled.policy.vocabulary
    # The start of each policy among them.
    starts = [bisect_right(counted, one.seq) for one in policies]
    found: dict[str, Redefined] = {}
    for policy, (first, last) in zip(
        policies, pairwise([*starts, len(counted)]), strict=True
    ):
        if first == last:
            continue
        past = vocabulary_of(policy.text)
        if past is None:
            raise ChainBreakError(policy.seq, "its policy cannot be read")
        for unit, change in redefinitions(past.unit_facts, vocabulary.unit_facts):
            rules = (
                base.scope
                for base in compiled.rules.bases
                if unit in vocabulary.covers.get(base.unit, (base.unit,))
            )
            found.setdefault(
                unit,
                Redefined(unit, change, policy.seq, tuple(dict.fromkeys(rules))),
            )
    return tuple(found.values())


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
        accepted |= {*policy.accepted}
        came = names - known
        known |= names
        later |= dict.fromkeys(came, sorted(vocabulary.attributes - known))
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
            help=f"if one of them is, keep the name `{one}`",
        )
        for one, others in added.items()
    }
