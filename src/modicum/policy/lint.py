"""What is wrong with a policy that reads well: errors of meaning, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from modicum.accounting import Budget, Filter, Unlimited, filter_for
from modicum.accounting.budgets import budget_text, measure, parameter
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.reading import Problems
from modicum.policy.budget_maps import Same
from modicum.policy.implication.search import (
    UndecidedError,
    counterexample,
    satisfiable,
    substituted,
)
from modicum.policy.model import CategoryPolicy, CustomPolicy, Extension, Policy
from modicum.policy.predicates import All, Any, Constant, Predicate, labels_of
from modicum.policy.rules import BaseRule, RuleSet
from modicum.release import Vocabulary

#: Combinations of settings beyond this are not told to the author one by one.
SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """How a mechanism without a label is read.

    Attributes:
        label: The label.
        default: The value that it is read as.
        vocabulary: The words of the policy.
        typical: Base rules such that the limits of every other one are ordered, over
            the contexts, like those of one of them.
    """

    label: str
    default: str
    vocabulary: Vocabulary
    typical: tuple[int, ...]


def refuse_mistakes(policy: Policy, rules: RuleSet, release_rules: RuleSet) -> None:
    """Refuse what an author cannot have meant.

    Raises:
        InputError: If a predicate can never hold, a budget lets nothing pass, or the
            default of a label is not its strictest reading.
    """
    found = Problems()
    _note_never(policy, found)
    for one in (rules, release_rules):
        for budget, rule_id, mark in one.budgets():
            if _nothing_fits(filter_for(budget, policy.filter_name)):
                found.add(_too_small(budget, rule_id, mark))
    for name in policy.vocabulary.labels:
        with found.guard():
            _refuse_loose_default(name, policy, rules, release_rules)
    found.raise_any()


def _nothing_fits(admits: Filter) -> bool:
    caps = [cap for _, cap in admits.caps]
    enough = all if admits.every else any
    return admits.enforced and not enough(cap > 0 for cap in caps)


def _too_small(budget: Budget, rule_id: str, mark: Mark | None) -> Problem:
    return Problem(
        Code.NOTHING_FITS,
        f"no mechanism fits into the budget {budget_text(budget)} (rule {rule_id})",
        mark,
        notes=("limits are counted in whole units of 1e-12, rounded down",),
        help="raise the budget",
    )


def _note_never(policy: Policy, found: Problems) -> None:
    """Note every predicate of the author's that no mechanism can make true."""
    for base in (*policy.base_policies, *policy.per_release):
        if isinstance(base, CustomPolicy):
            what = f"the policy `{base.name}`"
            _note_never_true(base.predicate, what, base.mark, policy, found)
    for extension in policy.extensions:
        for setting in extension.settings:
            what = f"the setting `{setting.name}`"
            _note_never_true(setting.predicate, what, setting.mark, policy, found)


def _note_never_true(
    predicate: Predicate,
    what: str,
    mark: Mark | None,
    policy: Policy,
    found: Problems,
) -> None:
    if not satisfiable(predicate, policy.vocabulary):
        found.add(
            Problem(
                Code.NEVER_TRUE,
                f"{what} is about nothing: its `when` is never true",
                mark,
                notes=("no attributes and labels that exist make it true",),
                help="mend the predicate, or remove it",
            )
        )


# --- the default of a label is its strictest reading ---------------------------


def _refuse_loose_default(
    name: str, policy: Policy, rules: RuleSet, release_rules: RuleSet
) -> None:
    """Refuse a label by whose absence a mechanism would escape a rule.

    For every value of the label, and every rule that a mechanism with it falls
    under, a mechanism without the label falls under a rule about the same scope
    that is at least as tight.
    """
    label = policy.vocabulary.labels[name]
    typical = _typical(rules)

    def escape(default: str) -> tuple[str, str] | None:
        reading = Reading(name, default, policy.vocabulary, typical)
        for value in label.values:
            rule = (
                _escaped_base(rules.bases, reading, value)
                or _escaped_base(release_rules.bases, reading, value)
                or _escaped_context(rules, reading, value)
            )
            if rule is not None:
                return value, rule
        return None

    found = escape(label.default)
    if found is None:
        return
    value, rule = found
    better = [one for one in label.values if escape(one) is None]
    remedy = (
        f"make `{better[0]}` the default"
        if better
        else f"let the rule cover `{label.default}` too, or add as the default a"
        " value `unknown`, which every rule covers that covers any other value"
    )
    raise InputError(
        Problem(
            Code.LOOSE_DEFAULT,
            f"the default of label `{name}` is not its strictest reading",
            policy.label_marks.get(name),
            notes=(
                f"with {name} = {value}, a mechanism falls under {rule}",
                f"without the label it reads as {label.default}, and falls under"
                " nothing as tight",
            ),
            help=remedy,
        )
    )


def _escaped_base(
    bases: Sequence[BaseRule], reading: Reading, value: str
) -> str | None:
    """Return a rule that is escaped by leaving out a label, before the contexts."""
    for base in bases:
        if reading.label not in labels_of(base.predicate):
            continue
        as_tight = tuple(
            substituted(other.predicate, reading.label, reading.default)
            for other in bases
            if other.unit == base.unit and no_looser(other.budget, base.budget)
        )
        given = substituted(base.predicate, reading.label, value)
        if _escapes(given, as_tight, reading.vocabulary):
            return f"`{base.scope}` with {budget_text(base.budget)}"
    return None


def _escaped_context(rules: RuleSet, reading: Reading, value: str) -> str | None:
    """Return a rule that is escaped by leaving out a label, in some context."""
    together = [All(context.predicates) for context in rules.contexts]
    given = [substituted(one, reading.label, value) for one in together]
    left_out = [substituted(one, reading.label, reading.default) for one in together]
    looked_at = [
        place for place, one in enumerate(together) if reading.label in labels_of(one)
    ]
    for base_place in reading.typical if looked_at else ():
        row = rules.row(base_place)
        for place in looked_at:
            as_tight = tuple(
                one
                for one, budget in zip(left_out, row, strict=True)
                if no_looser(budget, row[place])
            )
            if _escapes(given[place], as_tight, reading.vocabulary):
                suffix = rules.contexts[place].suffix
                scope = rules.bases[base_place].scope
                return f"`{scope}{suffix}` with {budget_text(row[place])}"
    return None


def _typical(rules: RuleSet) -> tuple[int, ...]:
    """Return base rules such that all others have their limits ordered like one."""
    budgets = {
        base.budget: place for place, base in reversed([*enumerate(rules.bases)])
    }
    orders = {_order_of(rules.row(place)): place for place in budgets.values()}
    return tuple(sorted(orders.values()))


def _order_of(row: Sequence[Budget]) -> object:
    """Return what is the same for budgets that are ordered in the same way."""
    limited = [one for one in row if not isinstance(one, Unlimited)]
    kinds = {(measure(one), getattr(one, "delta", None)) for one in limited}
    numbers = {parameter(one) for one in limited}
    if len(kinds) > 1 or None in numbers:
        return tuple(row)
    ranks = {number: rank for rank, number in enumerate(sorted(filter(None, numbers)))}
    return tuple(ranks.get(parameter(one)) for one in row)


def _escapes(
    narrow: Predicate, as_tight: tuple[Predicate, ...], vocabulary: Vocabulary
) -> bool:
    try:
        return counterexample(narrow, Any(as_tight), vocabulary) is not None
    except UndecidedError:
        return True  # What is not proven is not relied on.


@lru_cache(maxsize=65536)
def no_looser(first: Budget, second: Budget) -> bool:
    """Return whether a budget is at least as tight as another of its measure."""
    if isinstance(second, Unlimited) or first == second:
        return True
    mine, other = parameter(first), parameter(second)
    if measure(first) != measure(second) or mine is None or other is None:
        return False
    no_larger: bool = getattr(first, "delta", 0) <= getattr(second, "delta", 0)
    return mine <= other and no_larger


# --- warnings ------------------------------------------------------------------


def warnings_of(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield what is allowed but probably not meant."""
    yield from _lonely_categories(policy)
    yield from _untold_attributes(policy)
    yield from _uncovered_levels(policy)
    yield from _unchanged_nowhere(policy)
    yield from _unreachable(policy, rules)
    everything = any(
        isinstance(base, CustomPolicy) and base.predicate == Constant(value=True)
        for base in policy.base_policies
    )
    if policy.base_policies and not everything:
        yield Problem(
            Code.NO_CATCH_ALL,
            "no base policy covers every mechanism",
            help='nothing limits a mechanism outside all rules; add  when: "true"',
        )


def _lonely_categories(policy: Policy) -> Iterator[Problem]:
    joined = {
        category
        for attribute in policy.attributes.values()
        for category in attribute.memberships or {}
    }
    for category in policy.categories:
        if category not in joined:
            yield Problem(
                Code.UNKNOWN_CATEGORY,
                f"no attribute joins the category `{category}`",
                help="its rules can never match",
            )


def _untold_attributes(policy: Policy) -> Iterator[Problem]:
    """Yield attributes of which nobody said whether they belong to a category."""
    asked = any(
        isinstance(base, CategoryPolicy)
        for base in (*policy.base_policies, *policy.per_release)
    )
    for attribute in policy.attributes.values() if asked else ():
        if attribute.memberships is None:
            yield Problem(
                Code.UNKNOWN_CATEGORY,
                f"nothing says to which categories `{attribute.name}` belongs",
                attribute.mark,
                notes=("no category rule is about it",),
                help=f"write  [{attribute.risk}, {{CATEGORY: member}}], or"
                f"  [{attribute.risk}, {{}}]  if it belongs to none",
            )


def _uncovered_levels(policy: Policy) -> Iterator[Problem]:
    """Yield memberships of attributes that no rule of a category policy covers."""
    for base in policy.base_policies:
        if not isinstance(base, CategoryPolicy):
            continue
        covered = {level for rule in base.levels for level in rule.includes()}
        for attribute in policy.attributes.values():
            for category, level in (attribute.memberships or {}).items():
                if level not in covered:
                    yield Problem(
                        Code.NO_CATCH_ALL,
                        f"policy `{base.name}` has no {level.value} rule:"
                        f" `{attribute.name}` in `{category}` escapes it",
                        base.mark,
                        help=f"add  levels: {{{level.value}: …}}",
                    )


def _unchanged_nowhere(policy: Policy) -> Iterator[Problem]:
    for extension in policy.extensions:
        if not _has_same(extension):
            yield Problem(
                Code.NO_CATCH_ALL,
                f"extension `{extension.name}` changes the budget in every setting",
                extension.mark,
                help="one setting usually keeps it:  budget: same",
            )


def _has_same(extension: Extension) -> bool:
    return any(
        isinstance(setting.budget_map.form, Same) for setting in extension.settings
    )


def _unreachable(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield contexts, and custom rules in contexts, that no mechanism reaches."""
    vocabulary = policy.vocabulary
    possible = []
    for context in rules.contexts:
        if satisfiable(All(context.predicates), vocabulary):
            possible.append(context)
        else:
            yield _never(f"no rule @{' @'.join(context.names)} can match", None)
    for base in policy.base_policies:
        if not isinstance(base, CustomPolicy) or not labels_of(base.predicate):
            continue
        never = [
            context.suffix
            for context in possible
            if not satisfiable(All((base.predicate, *context.predicates)), vocabulary)
        ]
        if never:
            shown = ", ".join(f"`{base.name}{one}`" for one in never[:SHOWN_MAX])
            more = len(never) - SHOWN_MAX
            listed = shown + (f" and {more} more" if more > 0 else "")
            yield _never(f"no mechanism can fall under {listed}", base.mark)


def _never(message: str, mark: Mark | None) -> Problem:
    return Problem(
        Code.NEVER_TRUE,
        message,
        mark,
        notes=("what the two ask of labels excludes each other",),
        help="harmless, unless another predicate was meant",
    )
