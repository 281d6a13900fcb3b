"""Runs of policy tests: a history, a release, and the decision.

Nothing is written, and no ledger is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import price_release
from modicum.api.local.policies.test_format import (
    NO_GROUPS,
    Outcome,
    PolicyTest,
    planning_of,
)
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.reader import Problems, fail, nearest
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.ledger.decision.approvals import approvals_required
from modicum.ledger.decision.balances import facts_of, reserved_releases
from modicum.policy import CompiledPolicy
from modicum.policy.model import Approval, Guard
from modicum.policy.predicates import Facts, holds
from modicum.release.parts import FIRST_DAY, LAST_DAY

#: Maximum number of ids searched for one similar to an unknown rule.
RULES_SEARCHED = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision in a test.

    Attributes:
        test: The test.
        outcome: The outcome of the release.
        decision: The decision of every rule; None if the release is invalid.
        problems: The mistakes of the release; empty unless it is invalid.
        guards: Names of the guards that refused it.
        approvals: The approvals that it needs.
    """

    test: PolicyTest
    outcome: Outcome
    decision: Decision | None
    problems: tuple[Problem, ...]
    guards: tuple[str, ...]
    approvals: tuple[Approval, ...]

    @property
    def blocking(self) -> tuple[str, ...]:
        """The rules that deny."""
        return self.decision.blocking if self.decision is not None else ()

    @property
    def touched(self) -> tuple[str, ...]:
        """The rules that the release falls under."""
        if self.decision is None:
            return ()
        return tuple(loss.rule.id for loss in self.decision.verdict.losses)

    @property
    def passed(self) -> bool:
        """Whether the answer is the expected one."""
        expected = self.test.expected
        if self.outcome is not expected.outcome:
            return False
        if expected.blocking is not None:
            return {rule for rule, _ in expected.blocking} == set(self.blocking)
        codes = {problem.code for problem in self.problems}
        return expected.code is None or expected.code in codes


def run_test(test: PolicyTest, compiled: CompiledPolicy) -> Answer:
    """Return the decision of a policy in a test."""
    history = _past(test, compiled)
    planning = planning_of(test.groups)
    try:
        release = price_release(test.release, compiled)
    except InputError as error:
        guards = _refusing_guards(test.release, compiled)
        return Answer(test, Outcome.INVALID, None, error.problems, guards, ())
    _refuse_repeated([*history, release], [*test.history, test.release])
    day = _present([*history, release])
    balances = Balances(compiled, reserved_releases(history, day), planning=planning)
    decision = Decision(
        release=release.id,
        verdict=decide(balances, release, day),
        status="checked",
        policy_name=compiled.policy.name,
        policy_digest=compiled.policy.digest,
        policy_active=False,
        seq=0,
        head="0" * 64,
        approvals=approvals_required(release, compiled.policy),
    )
    if not decision.allowed:
        outcome = Outcome.DENY
    elif decision.approvals:
        outcome = Outcome.NEEDS_APPROVAL
    else:
        outcome = Outcome.ALLOW
    return Answer(test, outcome, decision, (), (), decision.approvals)


def _present(releases: Iterable[RecordedRelease]) -> int:
    """Return the day of a test: the last one that it mentions."""
    spans = [
        span
        for release in releases
        for mechanism in release.mechanisms
        for span in mechanism.part.periods or ()
    ]
    ends = (first if last == LAST_DAY else last for first, last in spans)
    return max(ends, default=FIRST_DAY)


def _past(test: PolicyTest, compiled: CompiledPolicy) -> list[RecordedRelease]:
    found = Problems()
    with found.guard():
        _refuse_unknown_rules(test, compiled)
    with found.guard():
        _refuse_groups_without_turns(test, compiled)
    history: list[RecordedRelease] = []
    for node in test.history:
        with found.guard():
            history.append(price_release(node, compiled, guarded=False))
    found.raise_any()
    _refuse_repeated(history, test.history)
    return history


def _refuse_unknown_rules(test: PolicyTest, compiled: CompiledPolicy) -> None:
    stages = (compiled.rules, compiled.release_rules)
    found = Problems()
    for rule, node in test.expected.blocking or ():
        if any(rules.number(rule) is not None for rules in stages):
            continue
        known = [
            rules.rule_id(number)
            for rules in stages
            for number in range(min(len(rules), RULES_SEARCHED))
        ]
        found.add(
            Problem(
                Code.UNKNOWN_CHOICE,
                f'the policy has no rule "{rule[:80]}"',
                node.mark,
                label=nearest(rule, known),
                help="`modicum policy compile FILE` lists its rules",
            )
        )
    found.raise_any()


def _refuse_groups_without_turns(test: PolicyTest, compiled: CompiledPolicy) -> None:
    if test.groups != NO_GROUPS and compiled.policy.rotation is None:
        raise InputError(
            Problem(
                Code.KEYS_CONFLICT,
                "the test has user groups, and the policy has no `rotation`",
                test.groups.mark,
                help="leave `groups` and `retired` out of the test",
            )
        )


def _refuse_repeated(
    releases: Sequence[RecordedRelease], nodes: Sequence[Node]
) -> None:
    """Refuse two releases of one id: in a ledger they would be the same one."""
    seen: set[str] = set()
    for release, node in zip(releases, nodes, strict=True):
        if release.id in seen:
            raise fail(
                Code.DUPLICATE_NAME,
                f"two releases of the test are named `{release.id}`",
                node,
                notes=("a ledger has one release for each id",),
                help="give each release a different id",
            )
        seen.add(release.id)


def _refusing_guards(release: Node, compiled: CompiledPolicy) -> tuple[str, ...]:
    """Return the guards that refuse a release; none if it is malformed anyway."""
    try:
        recorded = price_release(release, compiled, guarded=False)
    except InputError:
        return ()
    facts = facts_of(recorded, compiled.policy.vocabulary)
    return tuple(
        guard.name for guard in compiled.policy.guards if _refuses(guard, facts)
    )


def _refuses(guard: Guard, facts: Iterable[Facts]) -> bool:
    return not all(holds(guard.unless, one) for one in facts)


# --- coverage ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coverage:
    """The parts of a policy that no test covers.

    Attributes:
        rules: The number of rules, over history and on each release alone.
        guards: The number of guards.
        approvals: The number of approvals.
        untouched_rules: Ids of the rules that no tested release falls under.
        untouched_guards: Names of the guards that refused no tested release.
        untouched_approvals: The approvals that no tested release needs.
    """

    rules: int
    guards: int
    approvals: int
    untouched_rules: tuple[str, ...]
    untouched_guards: tuple[str, ...]
    untouched_approvals: tuple[Approval, ...]


def coverage(compiled: CompiledPolicy, answers: Iterable[Answer]) -> Coverage:
    """Return the parts of a policy that no test covers; histories do not count."""
    known = list(answers)
    rules = {rule for answer in known for rule in answer.touched}
    guards = {guard for answer in known for guard in answer.guards}
    approvals = {id(one) for answer in known for one in answer.approvals}
    policy = compiled.policy
    stages = (compiled.release_rules, compiled.rules)
    every = [stage.rule_id(number) for stage in stages for number in range(len(stage))]
    return Coverage(
        rules=len(every),
        guards=len(policy.guards),
        approvals=len(policy.approvals),
        untouched_rules=tuple(rule for rule in every if rule not in rules),
        untouched_guards=tuple(
            guard.name for guard in policy.guards if guard.name not in guards
        ),
        untouched_approvals=tuple(
            approval for approval in policy.approvals if id(approval) not in approvals
        ),
    )
