"""Rules that past releases leave when a policy replaces another one.

A rule keeps its id, and yet matches other releases, where a setting of an extension, a
label or a category means something else: the swap of two label values would move what
was released from a strict setting to a lax one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, Problem
from modicum.ledger.decision.rule_matching import facts_of
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.model import CategoryPolicy

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
        return self._problem(
            f"or accept that by name:  --accept-conflict {self.name}",
            "keep the meaning of the labels and settings, or give the new meaning a new"
            " name",
        )

    @property
    def understated(self) -> Problem:
        """It as a mistake of a policy that is active and was not asked about it."""
        return self._problem(
            "they undercount, and nobody was asked",
            "activate another policy: it asks about these releases",
        )

    def _problem(self, note: str, remedy: str) -> Problem:
        many = len(self.releases)
        return Problem(
            Code.RELEASES_DEPARTED,
            f"{many} past release{' leaves' if many == 1 else 's leave'} the rule"
            f" {shortened(self.rules, _NAMED_MAX)}",
            notes=(f"no longer matched: {shortened(self.releases, _NAMED_MAX)}", note),
            help=remedy,
        )


class Matched(NamedTuple):
    """A release that counts as spent, as two policies match it.

    Attributes:
        by: The earlier policy.
        then: The release re-keyed to it.
        now: The release re-keyed to the later one.
    """

    by: CompiledPolicy
    then: RecordedRelease
    now: RecordedRelease


def departures(
    releases: Iterable[Matched], successor: CompiledPolicy
) -> tuple[Departure, ...]:
    """Return the rules that past releases leave, by scope.

    Args:
        releases: The releases that count as spent, oldest first.
        successor: The later policy.
    """
    heirs: dict[str, Mapping[str, frozenset[str]]] = {}
    contexts = {one.suffix for one in successor.rules.contexts}
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for by, then, now in releases:
        own = heirs.get(by.policy.digest)
        if own is None:
            own = heirs[by.policy.digest] = _heirs(by, successor)
        if not own:
            continue
        after = _places(now, successor)
        for (scope, suffix), places in _places(then, by).items():
            if scope not in own or suffix not in contexts:
                continue
            kept = (after.get((one, suffix), frozenset()) for one in own[scope])
            if places.difference(*kept):
                rules, names = found.setdefault(scope, ({}, {}))
                rules[scope + suffix] = None
                names[then.id] = None
    return tuple(
        Departure(scope, (*rules,), (*names,))
        for scope, (rules, names) in found.items()
    )


def may_depart(earlier: CompiledPolicy, later: CompiledPolicy) -> bool:
    """Return whether releases may leave a rule: if not only rules were edited."""
    return bool(_heirs(earlier, later))


def _heirs(
    earlier: CompiledPolicy, later: CompiledPolicy
) -> Mapping[str, frozenset[str]]:
    """Return by scope the scopes of the later policy that count the same releases.

    That is the scope itself, or that of any new category for one that is gone. There
    are none if all names have the same meaning: then an edit of a rule is a change that
    a comparison of the policies shows.
    """
    if _means_alike(earlier, later):
        return {}
    scopes = {base.scope for base in later.rules.bases}
    found = {
        base.scope: frozenset({base.scope})
        for base in earlier.rules.bases
        if base.scope in scopes
    }
    then, now = earlier.policy, later.policy
    new = now.categories.keys() - then.categories.keys()
    for base in then.base_policies if new else ():
        if isinstance(base, CategoryPolicy):
            for gone in then.categories.keys() - now.categories.keys():
                for level in base.levels:
                    one, *those = (
                        f"{base.name}:{category}/{level.value}"
                        for category in (gone, *new)
                    )
                    found[one] = frozenset(those)
    return found


def _means_alike(earlier: CompiledPolicy, later: CompiledPolicy) -> bool:
    """Return whether what the earlier policy names has the same meaning later."""
    then, now = earlier.policy, later.policy
    settings, others = (
        {one.suffix: one.predicates for one in policy.rules.contexts}
        for policy in (earlier, later)
    )
    labels, others_labels = then.vocabulary.labels, now.vocabulary.labels
    return (
        now.vocabulary.renamed.items() <= then.vocabulary.renamed.items()
        and all(label == others_labels.get(name) for name, label in labels.items())
        and all(one == others.get(name, one) for name, one in settings.items())
        and all(
            (one.memberships or {}) == (now.attributes[name].memberships or {})
            for name, one in then.attributes.items()
            if name in now.attributes
        )
    )


def _places(
    release: RecordedRelease, compiled: CompiledPolicy
) -> Mapping[tuple[str, str], frozenset[int]]:
    """Return by scope and setting which mechanisms of a release match the rule."""
    facts = facts_of(release, compiled.policy.vocabulary)
    return {
        (rule.scope, rule.id.removeprefix(rule.scope)): frozenset(places)
        for rule, places in compiled.rules.matching(facts)
    }
