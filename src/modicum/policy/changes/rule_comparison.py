"""Which of two rules denies more: predicates by implication, budgets by filters.

A rule is *no looser* than another one of the same stage and unit if it matches at least
the same mechanisms, and admits no total that the other one denies. Each distinct pair
is compared once, so that policies of 200,000 rules, which have few distinct parts, are
compared in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from modicum.accounting import ApproxBudget, Budget
from modicum.accounting.filters.comparison import no_looser, no_looser_alone
from modicum.core.rationals import LOSS_UNIT
from modicum.policy.compiler import CompiledPolicy
from modicum.policy.predicates import Constant, Predicate, ReadsAny
from modicum.policy.pruning.logic import Logic
from modicum.policy.rules import RuleSet, Stage
from modicum.policy.vacuous_rules import VacuousRules
from modicum.release import Label, Vocabulary


class Verdict(Enum):
    """The change of a rule, or of a part of it."""

    SAME = "same"
    TIGHTER = "tighter"
    LOOSER = "looser"
    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"


class Relation(NamedTuple):
    """The order of a new and an old part; both are false if incomparable.

    Attributes:
        tight: Whether the new is no looser than the old.
        loose: Whether the old is no looser than the new.
    """

    tight: bool
    loose: bool

    def both(self, other: Relation) -> Relation:
        """Return the order of two combined parts."""
        return Relation(self.tight and other.tight, self.loose and other.loose)

    @property
    def verdict(self) -> Verdict:
        """Return the relation as one word."""
        if self.tight:
            return Verdict.SAME if self.loose else Verdict.TIGHTER
        return Verdict.LOOSER if self.loose else Verdict.CHANGED


EQUAL = Relation(tight=True, loose=True)


def stage_rules(compiled: CompiledPolicy, stage: Stage) -> RuleSet:
    """Return the rules of one stage."""
    return compiled.rules if stage is Stage.HISTORY else compiled.release_rules


class Comparison:
    """Compares rules of one stage of an old policy with rules of a new one.

    Args:
        old: The old policy.
        new: The new policy.
        stage: The stage.
    """

    def __init__(self, old: CompiledPolicy, new: CompiledPolicy, stage: Stage) -> None:
        self.old, self.new = stage_rules(old, stage), stage_rules(new, stage)
        self._policies = old, new
        self._stage = stage
        self._logic = Logic(
            joined_vocabulary(old.policy.vocabulary, new.policy.vocabulary)
        )
        self._old_nothing = VacuousRules(self.old, self._logic)
        self._new_nothing = VacuousRules(self.new, self._logic)
        self._budgets: dict[tuple[Budget, Budget], Relation] = {}
        self._bases: dict[tuple[int, int], Relation] = {}
        self._contexts: dict[tuple[int, int], bool] = {}
        self._covers = _Covers(self)

    def budgets(self, old: Budget, new: Budget) -> Relation:
        """Return the order of a new and an old budget."""
        found = self._budgets.get((old, new))
        if found is None:
            found = self._compared(old, new)
            self._budgets[old, new] = found
        return found

    def predicates(
        self, old_base: int, old_context: int, new_base: int, new_context: int
    ) -> Relation:
        """Return the order of a new and an old predicate."""
        alone = self._alone(old_base, new_base)
        same = self._same_context(old_context, new_context)
        if same and alone == EQUAL:
            return EQUAL
        narrow = self._parts(self.old, old_base, old_context)
        wide = self._parts(self.new, new_base, new_context)
        return Relation(
            (same and alone.tight) or self._implies(narrow, wide),
            (same and alone.loose) or self._implies(wide, narrow),
        )

    def was_nothing(self, base: int, context: int) -> bool:
        """Return whether a rule of the old policy is about nothing."""
        return base * len(self.old.contexts) + context in self._old_nothing

    def is_nothing(self, base: int, context: int) -> bool:
        """Return whether a rule of the new policy is about nothing."""
        return base * len(self.new.contexts) + context in self._new_nothing

    def covering(self, old_base: int, old_context: int) -> str | None:
        """Return a new rule that denies all that an old rule denied, if one is found.

        It has the same unit. Base predicates and settings are compared one by one; an
        implication of all of them together may be missed.
        """
        return self._covers.of(old_base, old_context)

    def implied(self, narrow: Iterable[Predicate], wide: Predicate) -> bool:
        """Return whether predicates that hold together imply another one."""
        return self._logic.implies(tuple(narrow), wide)

    def _compared(self, old: Budget, new: Budget) -> Relation:
        one, other = self._policies
        if self._stage is Stage.RELEASE:
            return Relation(no_looser_alone(new, old), no_looser_alone(old, new))
        if one.policy.filter_name == other.policy.filter_name:
            by_eps = _by_eps(old, new)
            if by_eps is not None:
                return by_eps
        old_filter, new_filter = one.filter_of(old), other.filter_of(new)
        return Relation(
            no_looser(new_filter, old_filter), no_looser(old_filter, new_filter)
        )

    def _alone(self, old_base: int, new_base: int) -> Relation:
        """Return the order of base predicates in all contexts at once."""
        key = old_base, new_base
        if key not in self._bases:
            old = self.old.bases[old_base].predicate
            new = self.new.bases[new_base].predicate
            self._bases[key] = Relation(
                self.implied((old,), new), self.implied((new,), old)
            )
        return self._bases[key]

    def _same_context(self, old_context: int, new_context: int) -> bool:
        key = old_context, new_context
        if key not in self._contexts:
            old = self.old.contexts[old_context].predicates
            new = self.new.contexts[new_context].predicates
            self._contexts[key] = set(old) == set(new)
        return self._contexts[key]

    def _implies(
        self, narrow: tuple[Predicate, ...], wide: tuple[Predicate, ...]
    ) -> bool:
        return all(self._logic.implies(narrow, part) for part in wide)

    @staticmethod
    def _parts(rules: RuleSet, base: int, context: int) -> tuple[Predicate, ...]:
        return rules.bases[base].predicate, *rules.contexts[context].predicates


class _Covers:
    """Finds new rules that are at least as tight as an old one."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._always: list[int] = []
        self._readers: dict[str, set[int]] = {}
        self._asked: list[int] = []
        self._wider_bases: dict[tuple[str, Predicate], dict[Budget, int]] = {}
        self._wider_contexts: dict[int, list[int]] = {}
        self._found: dict[
            tuple[Budget, tuple[Budget, ...], int], tuple[Budget, int] | None
        ] = {}
        for place, base in enumerate(comparison.new.bases):
            match base.predicate:
                case Constant(value=True):
                    self._always.append(place)
                case ReadsAny(attributes=attributes):
                    for attribute in attributes:
                        self._readers.setdefault(attribute, set()).add(place)
                case _:
                    self._asked.append(place)

    def of(self, old_base: int, old_context: int) -> str | None:
        old, new = self._comparison.old, self._comparison.new
        bases = self._bases(old_base)
        limit = old.budget(old_base, old_context)
        key = limit, tuple(bases), old_context
        if key not in self._found:
            self._found[key] = self._first(limit, bases, old_context)
        found = self._found[key]
        if found is None:
            return None
        budget, context = found
        return new.bases[bases[budget]].scope + new.contexts[context].suffix

    def _first(
        self, limit: Budget, bases: dict[Budget, int], old_context: int
    ) -> tuple[Budget, int] | None:
        for budget, base in bases.items():
            for context in self._contexts(old_context):
                own = self._comparison.new.budget(base, context)
                if self._comparison.budgets(limit, own).tight:
                    return budget, context
        return None

    def _bases(self, old_base: int) -> dict[Budget, int]:
        """Return, of the new base rules with wider predicates, one for each budget."""
        base = self._comparison.old.bases[old_base]
        key = base.unit, base.predicate
        if key not in self._wider_bases:
            found: dict[Budget, int] = {}
            for place in sorted(self._wider(base.predicate)):
                other = self._comparison.new.bases[place]
                if other.unit == base.unit:
                    found.setdefault(other.budget, place)
            self._wider_bases[key] = found
        return self._wider_bases[key]

    def _wider(self, narrow: Predicate) -> set[int]:
        new, implied = self._comparison.new, self._comparison.implied
        numbers: Iterable[int] = self._asked
        found = set(self._always)
        if isinstance(narrow, ReadsAny) and narrow.attributes:
            nothing: set[int] = set()
            sets = (self._readers.get(one, nothing) for one in narrow.attributes)
            found |= set.intersection(*sets)
        else:
            numbers = range(len(new.bases))
        found.update(p for p in numbers if implied((narrow,), new.bases[p].predicate))
        return found

    def _contexts(self, old_context: int) -> list[int]:
        if old_context not in self._wider_contexts:
            comparison = self._comparison
            narrow = comparison.old.contexts[old_context].predicates
            self._wider_contexts[old_context] = [
                place
                for place, context in enumerate(comparison.new.contexts)
                if all(comparison.implied(narrow, one) for one in context.predicates)
            ]
        return self._wider_contexts[old_context]


def _by_eps(old: Budget, new: Budget) -> Relation | None:
    """Compare (eps, delta) budgets of one filter and one delta without their caps.

    Every cap increases with eps, and the one on eps itself, or on the orders closest to
    it, by as much as eps does. None if that is inconclusive.
    """
    if not (isinstance(old, ApproxBudget) and isinstance(new, ApproxBudget)):
        return None
    if old.delta != new.delta or abs(old.eps - new.eps) * LOSS_UNIT < _CLEAR:
        return None
    return Relation(tight=new.eps < old.eps, loose=old.eps < new.eps)


#: Budgets that differ by less, in ledger units, may have the same caps.
_CLEAR = 2


def joined_vocabulary(old: Vocabulary, new: Vocabulary) -> Vocabulary:
    """Return a vocabulary with the words of both: its proofs hold in each."""
    labels = dict(old.labels)
    for name, label in new.labels.items():
        values = (*label.values, *(labels[name].values if name in labels else ()))
        labels[name] = Label(tuple(dict.fromkeys(values)), label.default)
    return Vocabulary(
        attributes=old.attributes | new.attributes,
        labels=labels,
        units=tuple(dict.fromkeys((*new.units, *old.units))),
        neighbors=new.neighbors,
    )
