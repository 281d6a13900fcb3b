"""The default of a label is its strictest reading: omitting it never helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from modicum.accounting import Budget, Filter, Unlimited, filter_for
from modicum.accounting.budgets import budget_text, measure, parameter
from modicum.accounting.filters.comparison import filters_alone
from modicum.core.errors import Code, Mark, Problem
from modicum.core.reader import Problems, place
from modicum.policy.coverage import limited
from modicum.policy.implication.search import (
    UndecidedError,
    counterexample,
    satisfiable,
    substituted,
)
from modicum.policy.lint.confusable_names import confusable_within
from modicum.policy.lint.dead_limits import no_looser
from modicum.policy.lint.idle_declarations import written_twice
from modicum.policy.model import Approval, CategoryPolicy, CustomPolicy, Policy
from modicum.policy.predicates import Any, Constant, Not, Predicate, Scope, labels_of
from modicum.policy.rules import BaseRule, RuleSet
from modicum.release import Vocabulary
from modicum.release.vocabulary import CHOICE

BOTH, RELEASE = frozenset(Scope), frozenset({Scope.RELEASE})


@dataclass(frozen=True, slots=True)
class LabelReading:
    """The reading of a description with a label, and of one without it.

    Attributes:
        label: The label.
        value: Its value.
        default: Its value when it is left out.
        scopes: Where it is given or left out; elsewhere it is given in any case.
        vocabulary: The vocabulary of the policy.
    """

    label: str
    value: str
    default: str
    scopes: frozenset[Scope]
    vocabulary: Vocabulary

    def given(self, predicate: Predicate) -> Predicate:
        """Return a predicate about descriptions that give the label."""
        return substituted(predicate, self.label, self.value, self.scopes)

    def left_out(self, predicate: Predicate) -> Predicate:
        """Return a predicate about descriptions without the label."""
        return substituted(predicate, self.label, self.default, self.scopes)

    def escapes(self, narrow: Predicate, instead: Sequence[Predicate]) -> bool:
        """Return whether a match of `narrow` may match none of `instead`.

        Args:
            narrow: The condition on a description with the label.
            instead: Equally strict conditions, on descriptions without it.
        """
        try:
            example = counterexample(narrow, Any(tuple(instead)), self.vocabulary)
        except UndecidedError:
            return True  # Unproven claims are not relied on.
        return example is not None


@dataclass(frozen=True, slots=True)
class Escape:
    """A check that can be evaded by omitting a label.

    Attributes:
        kind: Its kind: a rule, an approval, a guard or a denial.
        given: The facts of a description with the label.
        left_out: The result without the label.
    """

    kind: str
    given: str
    left_out: str


#: Finds checks that can be evaded by omitting a label.
_Search = Callable[[LabelReading], Escape | None]


def refuse_loose_defaults(
    policy: Policy, rules: RuleSet, release_rules: RuleSet, found: Problems
) -> None:
    """Report every label whose omission would let a release evade a check.

    For every value of the label, whatever rule a mechanism with it matches, without the
    label it matches a rule about the same scope that is at least as tight; whatever
    approval a release with it needs, without the label it needs one at least as
    demanding; and what a guard refuses, some guard refuses then too, as what is denied
    because no rule limits it is denied then.
    """
    lines = _lines(rules)
    some = Constant(value=True) if policy.allows_unmatched else limited(rules)
    searches: tuple[_Search, ...] = (
        lambda reading: _escaped_base(rules.bases, reading),
        lambda reading: _escaped_base(release_rules.bases, reading),
        lambda reading: _escaped_context(rules, lines, reading),
        lambda reading: _escaped_approval(policy.approvals, reading),
        lambda reading: _escaped_guard(policy, reading),
        lambda reading: _escaped_denial(some, reading),
    )
    for name in policy.vocabulary.labels:
        problem = _loose_default(name, policy, searches)
        if problem is not None:
            found.add(problem)


def _loose_default(
    name: str, policy: Policy, searches: Sequence[_Search]
) -> Problem | None:
    vocabulary = policy.vocabulary
    label = vocabulary.labels[name]

    def escape(default: str) -> tuple[str, Escape] | None:
        # A mechanism inherits its release's labels; or only the mechanism has some.
        for value, scopes in product(label.values, (BOTH, RELEASE)):
            reading = LabelReading(name, value, default, scopes, vocabulary)
            for search in searches:
                found = search(reading)
                if found is not None:
                    return value, found
        return None

    found = escape(label.default)
    if found is None:
        return None
    value, escaped = found
    better = [one for one in label.values if escape(one) is None]
    remedy = (
        f"make `{better[0]}` the default"
        if better
        else f"add a rule that limits `{value}`, too"
        if escaped.kind == "denial"
        else f"let the {escaped.kind} also cover `{label.default}`, or add as the"
        f" default a value `unknown`, which every {escaped.kind} covers that covers"
        " any other value"
    )
    return Problem(
        Code.LOOSE_DEFAULT,
        f"the default of label `{name}` is not its strictest reading",
        policy.label_marks.get(name),
        notes=(
            f"with {name} = {value}, {escaped.given}",
            f"without the label it reads as {label.default}, and {escaped.left_out}",
        ),
        help=remedy,
    )


def _escaped_denial(some: Predicate, reading: LabelReading) -> Escape | None:
    """Return that a rule limits only without the label what is denied with it.

    Args:
        some: Holds for what some rule over history limits, and so may be allowed.
        reading: The label.
    """
    if reading.label not in labels_of(some):
        return None
    denied = Not(reading.given(some))
    if not reading.escapes(denied, [Not(reading.left_out(some))]):
        return None
    given = "it may be denied because no rule limits it"
    return Escape("denial", given, "a rule may limit it, so that it is allowed")


# --- rules -----------------------------------------------------------------------


def _escaped_base(bases: Sequence[BaseRule], reading: LabelReading) -> Escape | None:
    """Return a rule that is escaped, before the contexts."""
    for base in bases:
        if reading.label not in labels_of(base.predicate):
            continue
        as_tight = [
            reading.left_out(other.predicate)
            for other in bases
            if other.unit == base.unit and no_looser(other.budget, base.budget)
        ]
        if reading.escapes(reading.given(base.predicate), as_tight):
            return _escaped_rule(base.scope, base.budget)
    return None


def _escaped_context(
    rules: RuleSet, lines: Sequence[Sequence[Line]], reading: LabelReading
) -> Escape | None:
    """Return a rule that is evaded in some context.

    Extensions are checked one by one: if in each a setting that is as tight replaces
    another one, all other settings being the same, they can be exchanged one after the
    other. That is exact unless several extensions use the label.
    """
    for settings, in_order in zip(rules.extensions, lines, strict=True):
        predicates = [setting.predicate for setting in settings]
        if not any(reading.label in labels_of(one) for one in predicates):
            continue
        left_out = [reading.left_out(one) for one in predicates]
        for line in in_order:
            row = [rules.budget(line.base, context) for context in line.contexts]
            for place_of_setting, one in enumerate(predicates):
                own = row[place_of_setting]
                as_tight = [
                    other
                    for other, budget in zip(left_out, row, strict=True)
                    if no_looser(budget, own)
                ]
                if reading.escapes(reading.given(one), as_tight):
                    suffix = rules.contexts[line.contexts[place_of_setting]].suffix
                    return _escaped_rule(rules.bases[line.base].scope + suffix, own)
    return None


def _escaped_rule(rule_id: str, budget: Budget) -> Escape:
    return Escape(
        "rule",
        f"a mechanism falls under `{rule_id}` with {budget_text(budget)}",
        "is covered by no equally strict rule",
    )


@dataclass(frozen=True, slots=True)
class Line:
    """The rules that differ in the setting of one extension only.

    Attributes:
        base: Their base rule.
        contexts: Their contexts, one for each setting, in file order.
    """

    base: int
    contexts: range


def _lines(rules: RuleSet) -> tuple[tuple[Line, ...], ...]:
    """Return for each extension lines such that every other is ordered like one."""
    budgets = {
        base.budget: number for number, base in reversed([*enumerate(rules.bases)])
    }
    found: list[tuple[Line, ...]] = []
    for extension in range(len(rules.extensions)):
        orders: dict[object, Line] = {}
        for base in budgets.values():
            row = rules.row(base)
            for contexts in rules.lines(extension):
                order = _order_of([row[context] for context in contexts])
                orders.setdefault(order, Line(base, contexts))
        found.append(tuple(orders.values()))
    return tuple(found)


def _order_of(row: Sequence[Budget]) -> object:
    """Return a key that is equal for budgets with the same order."""
    limited = [one for one in row if not isinstance(one, Unlimited)]
    kinds = {(measure(one), getattr(one, "delta", None)) for one in limited}
    numbers = {parameter(one) for one in limited}
    if len(kinds) > 1 or None in numbers:
        return tuple(row)
    rising = sorted(filter(None, numbers))
    ranks: dict[Fraction | None, int] = {one: rank for rank, one in enumerate(rising)}
    return tuple(ranks.get(parameter(one)) for one in row)


# --- approvals and guards --------------------------------------------------------


def _escaped_approval(
    approvals: Sequence[Approval], reading: LabelReading
) -> Escape | None:
    for approval in approvals:
        if reading.label not in labels_of(approval.when):
            continue
        as_demanding = [
            reading.left_out(other.when)
            for other in approvals
            if _no_less_demanding(other, approval)
        ]
        if reading.escapes(reading.given(approval.when), as_demanding):
            return Escape(
                "approval",
                f"a release needs approval by {approval.need} of"
                f" {' or '.join(approval.roles)} ({place(approval.mark)})",
                "needs no equally strict approval",
            )
    return None


def _no_less_demanding(one: Approval, other: Approval) -> bool:
    """Return whether all who satisfy `one` satisfy `other` too."""
    # Of those who satisfy `one`, at most one is the requester.
    may_not_count = one.requester_may_approve and not other.requester_may_approve
    counted = one.need - may_not_count
    return counted >= other.need and set(one.roles) <= set(other.roles)


def _escaped_guard(policy: Policy, reading: LabelReading) -> Escape | None:
    refused = [reading.left_out(Not(guard.unless)) for guard in policy.guards]
    for guard in policy.guards:
        if reading.label not in labels_of(guard.unless):
            continue
        if reading.escapes(reading.given(Not(guard.unless)), refused):
            return Escape(
                "guard",
                f"guard `{guard.name}` ({place(guard.mark)}) can refuse a mechanism",
                "no guard refuses it",
            )
    return None


def refuse_mistakes(policy: Policy, rules: RuleSet, release_rules: RuleSet) -> None:
    """Refuse likely mistakes.

    Raises:
        InputError: If there is no rule at all, a predicate can never hold, a budget
            allows nothing, the default of a label is not its strictest reading, a label
            has the name of a check, one person is in the roles under two names, or two
            names look alike.
    """
    found = Problems()
    if CHOICE in policy.vocabulary.labels:
        found.add(_hides_a_check(policy))
    if not rules and not release_rules:
        found.add(_no_rules(policy))
    for claim in _claims(policy):
        if not satisfiable(claim.predicate, policy.vocabulary):
            found.add(claim.problem())
    for budget, rule_id, mark in rules.budgets():
        if _nothing_fits(filter_for(budget, policy.filter_name)):
            found.add(_too_small(budget, rule_id, mark))
    # A single release is held against the budget itself: no filter cuts it down.
    for budget, rule_id, mark in release_rules.budgets():
        if _nothing_fits(*filters_alone([budget])):
            found.add(_too_small(budget, rule_id, mark))
    refuse_loose_defaults(policy, rules, release_rules, found)
    for problem in (*written_twice(policy), *confusable_within(policy)):
        found.add(problem)
    found.raise_any()


def _hides_a_check(policy: Policy) -> Problem:
    # Not where policies are read: a ledger may hold one that is older than the key.
    return Problem(
        Code.BAD_NAME,
        f"`{CHOICE}` is not allowed as the name of a label",
        policy.label_marks.get(CHOICE),
        notes=("releases use this name for how their epsilon was chosen",),
        help="give the label another name",
    )


def _no_rules(policy: Policy) -> Problem:
    first = next(iter((*policy.base_policies, *policy.per_release)), None)
    of_what = "categories" if isinstance(first, CategoryPolicy) else "attributes"
    return Problem(
        Code.NEVER_TRUE,
        "the policy limits nothing: it compiles to no rule",
        None if first is None else first.mark,
        notes=(f"the schema has no {of_what} for a rule",),
        help=f'declare {of_what}, or add a policy with  when: "true"',
    )


# --- predicates that are never true ---------------------------------------------


@dataclass(frozen=True, slots=True)
class _Claim:
    """A predicate of the author's, which something should make true."""

    what: str
    predicate: Predicate
    mark: Mark | None
    result: str = "matches nothing: its `when` is never true"
    help: str = "correct the predicate, or remove it"

    def problem(self) -> Problem:
        """Return the mistake that nothing makes it true."""
        return Problem(
            Code.NEVER_TRUE,
            f"{self.what} {self.result}",
            self.mark,
            notes=("no combination of attributes and labels makes it true",),
            help=self.help,
        )


def _claims(policy: Policy) -> Iterator[_Claim]:
    for base in (*policy.base_policies, *policy.per_release):
        if isinstance(base, CustomPolicy):
            yield _Claim(f"the policy `{base.name}`", base.predicate, base.mark)
    for extension in policy.extensions:
        for setting in extension.settings:
            what = f"the setting `{setting.name}`"
            yield _Claim(what, setting.predicate, setting.mark)
    for guard in policy.guards:
        yield _Claim(
            f"the guard `{guard.name}`",
            guard.unless,
            guard.mark,
            result="refuses every release: its `unless` is never true",
            help="`unless` is what a mechanism must fulfill; correct the predicate",
        )
    for approval in policy.approvals:
        what = f"the approval by {' or '.join(approval.roles)}"
        yield _Claim(what, approval.when, approval.mark)


# --- budgets that nothing fits into ----------------------------------------------


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
