"""The changes of a new policy: rule by rule, and of other declarations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from modicum.accounting import Budget
from modicum.policy.changes.declarations import Declared, declared_differences
from modicum.policy.changes.rule_comparison import (
    EQUAL,
    Comparison,
    Relation,
    Verdict,
    joined_vocabulary,
)
from modicum.policy.compiler import CompiledPolicy
from modicum.policy.coverage import limited
from modicum.policy.implication.search import implies
from modicum.policy.predicates import Constant
from modicum.policy.rules import Context, RuleScope, RuleSet, Stage

__all__ = ["Declared", "Differences", "RuleChange", "Verdict", "differences"]


class RuleChange(RuleScope, frozen=True):
    """The change of one rule; unchanged rules are only counted.

    Attributes:
        verdict: Anything but `SAME`.
        old: Its id in the old policy; empty if it is new.
        new: Its id in the new policy; empty if it is removed.
        context: Its settings, in the new policy if it is there.
        old_budget: The old limit; None if it is new.
        new_budget: The new limit; None if it is removed.
        predicate: The change of its predicate: a wider one is tighter. None if there is
            nothing to compare it with.
        budget: The change of its limit, under each policy's filter; None likewise.
        covered_by: A rule of the new policy that denies all that the old rule
            denied, so that nothing was loosened; empty if none was found.
        across: Extensions that are in one of the policies only, if the two rules
            are compared in spite of that.
    """

    verdict: Verdict
    old: str
    new: str
    context: tuple[str, ...]
    old_budget: Budget | None
    new_budget: Budget | None
    predicate: Verdict | None
    budget: Verdict | None
    covered_by: str = ""
    across: tuple[str, ...] = ()

    @property
    def loosens(self) -> bool:
        """Whether something that this rule denied may be allowed now."""
        tightening = self.verdict in (Verdict.NEW, Verdict.TIGHTER)
        return not tightening and not self.covered_by


@dataclass(frozen=True)
class Differences:
    """All changes of a new policy.

    Attributes:
        same_document: Whether both are equal, except for comments and layout.
        same_rules: How many rules stay the same.
        rules: The changes of the others, in the order of the new file; removed ones
            last.
        declared: The changes other than of rules.
    """

    same_document: bool
    same_rules: int
    rules: tuple[RuleChange, ...]
    declared: tuple[Declared, ...]

    @cached_property
    def counts(self) -> Mapping[Verdict, int]:
        """The number of rules with each verdict."""
        found = Counter(change.verdict for change in self.rules)
        found[Verdict.SAME] = self.same_rules
        return found

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return not self.rules and not self.declared

    @property
    def loosens(self) -> bool:
        """Whether something that was denied may be allowed now."""
        return any(change.loosens for change in self.rules) or any(
            one.verdict in (Verdict.LOOSER, Verdict.CHANGED) for one in self.declared
        )


def differences(old: CompiledPolicy, new: CompiledPolicy) -> Differences:
    """Return the changes of a new policy.

    Rules are paired by stage, scope, the set of their settings, and unit; where an
    extension is in only one of the policies, a rule is paired with the one in the
    widest setting of that extension. New and removed vacuous rules are left out.
    """
    same_document = old.policy.digest == new.policy.digest
    if same_document:
        return Differences(
            same_document, len(new.rules) + len(new.release_rules), (), ()
        )
    changes: list[RuleChange] = []
    same = 0
    for stage in Stage:
        for change in _Stage(old, new, stage).changes():
            if change is None:
                same += 1
            else:
                changes.append(change)
    changes.sort(key=lambda change: change.verdict is Verdict.REMOVED)
    declared = (
        *declared_differences(old.policy, new.policy),
        *_unmatched_differences(old, new),
    )
    return Differences(same_document, same, tuple(changes), declared)


def _unmatched_differences(
    old: CompiledPolicy, new: CompiledPolicy
) -> Iterator[Declared]:
    """Yield whether more mechanisms are denied because no rule limits them, or fewer.

    A new rule denies more of what it matches; but what no rule limited before, and was
    denied therefore, may be allowed under it.
    """
    was, now = (
        Constant(value=True) if one.policy.allows_unmatched else limited(one.rules)
        for one in (old, new)
    )
    if old.policy.allows_unmatched != new.policy.allows_unmatched:
        looser = new.policy.allows_unmatched
        yield Declared(
            Verdict.LOOSER if looser else Verdict.TIGHTER,
            "unmatched",
            "deny -> allow" if looser else "allow -> deny",
        )
    elif was != now:
        words = joined_vocabulary(old.policy.vocabulary, new.policy.vocabulary)
        if not implies(now, was, words):
            text = "rules limit mechanisms that none did, which was denied before"
            yield Declared(Verdict.LOOSER, "unmatched", text)
        if not implies(was, now, words):
            text = "no rule limits some mechanisms any more: they are denied now"
            yield Declared(Verdict.TIGHTER, "unmatched", text)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Contexts of the old and the new policy, by number.

    Attributes:
        paired: Pairs, each with the extensions that only one policy has.
        removed: Old contexts that have no partner.
        new: New contexts that have no partner.
    """

    paired: tuple[tuple[int, int, tuple[str, ...]], ...]
    removed: tuple[int, ...]
    new: tuple[int, ...]


class _Stage:
    """The rules of one stage in both policies."""

    def __init__(self, old: CompiledPolicy, new: CompiledPolicy, stage: Stage) -> None:
        self._stage = stage
        self._compare = Comparison(old, new, stage)
        with_extensions = stage is Stage.HISTORY
        self._old_extensions, self._new_extensions = (
            {
                setting.name: extension.name
                for extension in one.policy.extensions
                for setting in extension.settings
                if with_extensions
            }
            for one in (old, new)
        )

    def changes(self) -> Iterator[RuleChange | None]:
        """Yield the change of every rule; None if it is unchanged."""
        pairs = self._pairs()
        old, new = self._compare.old, self._compare.new
        known = {(base.scope, base.unit): n for n, base in enumerate(old.bases)}
        for new_base, base in enumerate(new.bases):
            old_base = known.pop((base.scope, base.unit), None)
            if old_base is None:
                yield from self._all_new(new_base, range(len(new.contexts)))
                continue
            for old_context, new_context, across in pairs.paired:
                yield self._paired(
                    (old_base, old_context), (new_base, new_context), across
                )
            yield from self._all_new(new_base, pairs.new)
            yield from self._all_removed(old_base, pairs.removed)
        for old_base in known.values():
            yield from self._all_removed(old_base, range(len(old.contexts)))

    def _all_new(self, base: int, contexts: Iterable[int]) -> Iterator[RuleChange]:
        for context in contexts:
            if not self._compare.is_nothing(base, context):
                yield self._new(base, context)

    def _all_removed(self, base: int, contexts: Iterable[int]) -> Iterator[RuleChange]:
        for context in contexts:
            if not self._compare.was_nothing(base, context):
                yield self._removed(base, context)

    def _pairs(self) -> _Pairs:
        old, new = self._compare.old.contexts, self._compare.new.contexts
        by_names = {frozenset(context.names): n for n, context in enumerate(old)}
        paired: list[tuple[int, int, tuple[str, ...]]] = []
        left: list[int] = []
        for place, context in enumerate(new):
            partner = by_names.pop(frozenset(context.names), None)
            if partner is None:
                left.append(place)
            else:
                paired.append((partner, place, ()))
        across = self._across(sorted(by_names.values()), left)
        paired += across
        taken_old, taken_new = {one for one, _, _ in across}, {n for _, n, _ in across}
        return _Pairs(
            tuple(paired),
            tuple(n for n in sorted(by_names.values()) if n not in taken_old),
            tuple(n for n in left if n not in taken_new),
        )

    def _across(
        self, old: list[int], new: list[int]
    ) -> list[tuple[int, int, tuple[str, ...]]]:
        """Pair contexts that differ in extensions which one policy does not have."""
        before = set(self._old_extensions.values())
        after = set(self._new_extensions.values())
        if before == after:
            return []
        common = before & after
        olds = self._widest(old, self._compare.old.contexts, common)
        news = self._widest(new, self._compare.new.contexts, common)
        only = tuple(sorted(before ^ after))
        return [(olds[key], news[key], only) for key in news if key in olds]

    def _widest(
        self, places: list[int], contexts: tuple[Context, ...], common: set[str]
    ) -> dict[frozenset[str], int]:
        """Return, by settings of common extensions, the widest of some contexts."""
        extension_of = {**self._old_extensions, **self._new_extensions}
        found: dict[frozenset[str], int] = {}
        for place in places:
            shared, others = set[str](), []
            for setting in contexts[place].settings:
                if extension_of[setting.name] in common:
                    shared.add(setting.name)
                else:
                    others.append(setting.predicate)
            if all(self._compare.implied((_ALWAYS,), one) for one in others):
                found.setdefault(frozenset(shared), place)
        return found

    def _paired(
        self, old: tuple[int, int], new: tuple[int, int], across: tuple[str, ...]
    ) -> RuleChange | None:
        compare = self._compare
        old_budget, new_budget = compare.old.budget(*old), compare.new.budget(*new)
        budget = compare.budgets(old_budget, new_budget)
        was_nothing, is_nothing = compare.was_nothing(*old), compare.is_nothing(*new)
        if was_nothing or is_nothing:  # A vacuous rule is looser than all others.
            predicate = relation = Relation(tight=was_nothing, loose=is_nothing)
        else:
            predicate = compare.predicates(*old, *new)
            relation = budget.both(predicate)
        if relation == EQUAL:
            return None
        return RuleChange(
            verdict=relation.verdict,
            stage=self._stage,
            scope=compare.new.bases[new[0]].scope,
            unit=compare.new.bases[new[0]].unit,
            old=_id(compare.old, *old),
            new=_id(compare.new, *new),
            context=compare.new.contexts[new[1]].names,
            old_budget=old_budget,
            new_budget=new_budget,
            predicate=predicate.verdict,
            budget=budget.verdict,
            covered_by=self._covered(old, relation),
            across=across,
        )

    def _new(self, base: int, context: int) -> RuleChange:
        rules = self._compare.new
        return RuleChange(
            verdict=Verdict.NEW,
            stage=self._stage,
            scope=rules.bases[base].scope,
            unit=rules.bases[base].unit,
            old="",
            new=_id(rules, base, context),
            context=rules.contexts[context].names,
            old_budget=None,
            new_budget=rules.budget(base, context),
            predicate=None,
            budget=None,
        )

    def _removed(self, base: int, context: int) -> RuleChange:
        rules = self._compare.old
        return RuleChange(
            verdict=Verdict.REMOVED,
            stage=self._stage,
            scope=rules.bases[base].scope,
            unit=rules.bases[base].unit,
            old=_id(rules, base, context),
            new="",
            context=rules.contexts[context].names,
            old_budget=rules.budget(base, context),
            new_budget=None,
            predicate=None,
            budget=None,
            covered_by=self._compare.covering(base, context) or "",
        )

    def _covered(self, old: tuple[int, int], relation: Relation) -> str:
        return "" if relation.tight else self._compare.covering(*old) or ""


def _id(rules: RuleSet, base: int, context: int) -> str:
    return rules.bases[base].scope + rules.contexts[context].suffix


_ALWAYS = Constant(value=True)
