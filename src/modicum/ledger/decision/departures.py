"""Rules that past releases leave when a policy replaces another one.

A rule keeps its id and its predicate, and yet matches other releases, where a setting
of an extension or a label means something else: the swap of two label values would move
what was released from a strict setting to a lax one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, Problem
from modicum.ledger.decision.rule_matching import facts_of
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.policy import CompiledPolicy

#: The name by which a departure is accepted: no rule id has this form.
DEPARTED = "departed:"
#: Maximum number of releases and of rules named.
_NAMED_MAX = 5


class Departure(NamedTuple):
    """Rules of one scope that past releases no longer match.

    Attributes:
        scope: The scope of the rules.
        rules: Their ids, in the order of the policy.
        releases: The releases, oldest first.
    """

    scope: str
    rules: tuple[str, ...]
    releases: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name by which it is accepted."""
        return DEPARTED + self.scope

    @property
    def problem(self) -> Problem:
        """It as a mistake of the policy."""
        many = len(self.releases)
        return Problem(
            Code.RELEASES_DEPARTED,
            f"{many} past release{' leaves' if many == 1 else 's leave'} the rule"
            f" {shortened(self.rules, _NAMED_MAX)}",
            notes=(
                f"no longer matched: {shortened(self.releases, _NAMED_MAX)}",
                f"or accept that by name:  --accept-conflict {self.name}",
            ),
            help="keep the meaning of the labels and settings, or give the new meaning"
            " a new name",
        )


def departures(
    releases: Iterable[tuple[RecordedRelease, RecordedRelease]],
    replaced: CompiledPolicy,
    successor: CompiledPolicy,
) -> tuple[Departure, ...]:
    """Return the rules that past releases leave, in the order of the successor.

    A rule whose own predicate was changed is not among them: that is an edit which a
    comparison of the policies shows.

    Args:
        releases: The releases that count as spent, oldest first; gone through only if
            needed: each re-keyed to the one policy, and to the other.
        replaced: The policy that is replaced.
        successor: The policy that is to hold.
    """
    before = {base.scope: base.predicate for base in replaced.rules.bases}
    kept = {
        base.scope
        for base in successor.rules.bases
        if before.get(base.scope) == base.predicate
    }
    if not kept or _matches_alike(replaced, successor):
        return ()
    found: dict[int, dict[str, None]] = {}
    for then, now in releases:
        left = dict(_matched(then, replaced, kept))
        for rule, places in _matched(now, successor, kept).items():
            left[rule] = left.get(rule, frozenset()) - places
        for rule, places in left.items():
            number = successor.rules.number(rule)
            if places and number is not None:
                found.setdefault(number, {})[then.id] = None
    by_scope: dict[str, tuple[list[str], dict[str, None]]] = {}
    for number in sorted(found):
        rule = successor.rules.rule_id(number)
        rules, names = by_scope.setdefault(rule.partition(" @")[0], ([], {}))
        rules.append(rule)
        names |= found[number]
    return tuple(
        Departure(scope, tuple(rules), tuple(names))
        for scope, (rules, names) in by_scope.items()
    )


def _matches_alike(replaced: CompiledPolicy, successor: CompiledPolicy) -> bool:
    """Return whether contexts and labels of both policies are the same."""
    then, now = replaced.policy.vocabulary, successor.policy.vocabulary
    settings = [
        {one.suffix: one.predicates for one in policy.rules.contexts}
        for policy in (replaced, successor)
    ]
    same = settings[0].keys() & settings[1].keys()
    return then.labels == now.labels and all(
        settings[0][one] == settings[1][one] for one in same
    )


def _matched(
    release: RecordedRelease, compiled: CompiledPolicy, scopes: set[str]
) -> Mapping[str, frozenset[int]]:
    """Return the rules of some scopes that match a release, and which mechanisms."""
    facts = facts_of(release, compiled.policy.vocabulary)
    return {
        rule.id: frozenset(places)
        for rule, places in compiled.rules.matching(facts)
        if rule.scope in scopes
    }
