"""What an author cannot have meant: rules about nothing, budgets for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modicum.accounting import Budget, Filter, filter_for
from modicum.accounting.budgets import budget_text
from modicum.accounting.filters.comparison import filters_alone
from modicum.core.errors import Code, Mark, Problem
from modicum.core.reader import Problems
from modicum.policy.implication.search import satisfiable
from modicum.policy.lint.errors import refuse_loose_defaults
from modicum.policy.lint.same_people import written_twice
from modicum.policy.model import CategoryPolicy, CustomPolicy, Policy
from modicum.policy.predicates import Predicate
from modicum.policy.rules import RuleSet
from modicum.release.vocabulary import CHOICE


def refuse_mistakes(policy: Policy, rules: RuleSet, release_rules: RuleSet) -> None:
    """Refuse what an author cannot have meant.

    Args:
        policy: The policy.
        rules: Its rules over history.
        release_rules: Its rules on each release alone.

    Raises:
        InputError: If there is no rule at all, a predicate can never hold, a budget
            lets nothing pass, the default of a label is not its strictest
            reading, a label has the name of a check, or one person stands in the roles
            under two names.
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
    for problem in written_twice(policy):
        found.add(problem)
    found.raise_any()


def _hides_a_check(policy: Policy) -> Problem:
    # Not where policies are read: a ledger may hold one that is older than the key.
    return Problem(
        Code.BAD_NAME,
        f"`{CHOICE}` cannot be the name of a label",
        policy.label_marks.get(CHOICE),
        notes=("under that name a release says how its epsilon was chosen",),
        help="give the label another name",
    )


def _no_rules(policy: Policy) -> Problem:
    first = next(iter((*policy.base_policies, *policy.per_release)), None)
    of_what = "categories" if isinstance(first, CategoryPolicy) else "attributes"
    return Problem(
        Code.NEVER_TRUE,
        "the policy limits nothing: it compiles to no rule",
        None if first is None else first.mark,
        notes=(f"the schema has no {of_what} that a rule could be about",),
        help=f'declare {of_what}, or add a policy with  when: "true"',
    )


# --- predicates that are never true ---------------------------------------------


@dataclass(frozen=True, slots=True)
class _Claim:
    """A predicate of the author's, which something should make true."""

    what: str
    predicate: Predicate
    mark: Mark | None
    result: str = "is about nothing: its `when` is never true"
    help: str = "mend the predicate, or remove it"

    def problem(self) -> Problem:
        """Return the mistake that nothing makes it true."""
        return Problem(
            Code.NEVER_TRUE,
            f"{self.what} {self.result}",
            self.mark,
            notes=("no attributes and labels that exist make it true",),
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
            help="`unless` says what a mechanism must fulfill; mend the predicate",
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
