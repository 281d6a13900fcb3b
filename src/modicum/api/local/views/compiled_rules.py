"""Public forms of compiled rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import asdict

from modicum.accounting.budgets import budget_text
from modicum.api.local.views.ledger import problems_view
from modicum.api.schema import policy as schema
from modicum.policy import CompiledPolicy, Rule, RuleSet
from modicum.policy.pruning.logic import Logic
from modicum.policy.vacuous_rules import VacuousRules


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule, and whether it can ever matter.

    Attributes:
        rules: The rules of its stage.
        number: Its number among them.
        witness: The number of a rule that implies it; -1 if none does.
        matches_nothing: Whether no mechanism can fall under it.
    """

    rules: RuleSet
    number: int
    witness: int
    matches_nothing: bool

    @property
    def rule(self) -> Rule:
        """The rule itself."""
        return self.rules[self.number]

    @property
    def status(self) -> str:
        """Return whether it can have an effect, as text."""
        if self.matches_nothing:
            return "matches nothing"
        return "binding" if self.witness < 0 else "redundant"


def compiled_rules(
    compiled: CompiledPolicy, start: int = 0, stop: int | None = None
) -> Iterator[CompiledRule]:
    """Yield the rules over history, and then those on each release alone."""
    logic = Logic(compiled.policy.vocabulary)
    before = 0
    for rules, pruned in (
        (compiled.rules, compiled.pruned),
        (compiled.release_rules, compiled.pruned_alone),
    ):
        nothing = VacuousRules(rules, logic)
        for number in range(len(rules))[_within(start, stop, before)]:
            yield CompiledRule(rules, number, pruned.witness[number], number in nothing)
        before += len(rules)


def compiled_rule(compiled: CompiledPolicy, identifier: str) -> CompiledRule | None:
    """Return the rule with an id; None if there is none."""
    before = 0
    for rules in (compiled.rules, compiled.release_rules):
        number = rules.number(identifier)
        if number is not None:
            place = before + number
            return next(compiled_rules(compiled, place, place + 1))
        before += len(rules)
    return None


def _within(start: int, stop: int | None, before: int) -> slice:
    """Return the slice of a stage's rules, after `before` rules of earlier stages."""
    last = None if stop is None else max(stop - before, 0)
    return slice(max(start - before, 0), last)


def kept(witness: Sequence[int]) -> tuple[int, int]:
    """Return how many rules are binding, and how many are redundant."""
    count = sum(1 for one in witness if one < 0)
    return count, len(witness) - count


def by_unit(compiled: CompiledPolicy) -> dict[str, tuple[int, int]]:
    """Return for each unit how many rules over history constrain or are redundant."""
    contexts = len(compiled.rules.contexts)
    binding: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for place, base in enumerate(compiled.rules.bases):
        own = compiled.pruned.witness[place * contexts : (place + 1) * contexts]
        binding[base.unit] += sum(1 for one in own if one < 0)
        every[base.unit] += contexts
    return {unit: (binding[unit], every[unit] - binding[unit]) for unit in every}


def counts_view(compiled: CompiledPolicy) -> schema.RuleCounts:
    """Return how many rules there are."""
    binding, redundant = kept(compiled.pruned.witness)
    alone, alone_redundant = kept(compiled.pruned_alone.witness)
    return schema.RuleCounts(
        rules=len(compiled.rules),
        release_rules=len(compiled.release_rules),
        binding=binding,
        redundant=redundant,
        release_binding=alone,
        release_redundant=alone_redundant,
    )


def compiled_view(compiled: CompiledPolicy) -> schema.PolicySummary:
    """Return a compiled policy without the list of its rules."""
    policy = compiled.policy
    return schema.PolicySummary(
        name=policy.name,
        digest=policy.digest,
        filter=policy.filter_name,
        base_rules=sum(compiled.base_rules.values()),
        extensions={
            extension.name: tuple(setting.name for setting in extension.settings)
            for extension in policy.extensions
        },
        **asdict(counts_view(compiled)),
        units={
            unit: schema.UnitCounts(binding=binding, redundant=redundant)
            for unit, (binding, redundant) in by_unit(compiled).items()
        },
        warnings=problems_view(compiled.warnings),
    )


def compiled_rule_view(one: CompiledRule) -> schema.CompiledRule:
    """Return a rule, and whether it can ever matter."""
    rule, witness = one.rule, one.witness
    base = rule.marks[0]
    return schema.CompiledRule(
        id=rule.id,
        stage=rule.stage.value,
        scope=rule.scope,
        context=tuple(rule.context),
        predicate=rule.when,
        unit=rule.unit,
        budget=budget_text(rule.budget),
        status="binding" if witness < 0 else "redundant",
        witness=None if witness < 0 else one.rules.rule_id(witness),
        matches_nothing=one.matches_nothing,
        source=tuple(str(mark) for mark in rule.marks if mark is not None),
        line=base.line if base is not None else None,
    )
