"""Choosing the rules that a diagram shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from modicum.core.errors import Code
from modicum.core.reading import fail, nearest
from modicum.policy.compile import CompiledPolicy
from modicum.policy.hasse.diagram import rules_of
from modicum.policy.hasse.order import RuleOrder
from modicum.policy.rules import Stage


def chosen_rules(
    compiled: CompiledPolicy,
    *,
    stage: Stage = Stage.HISTORY,
    settings: Collection[str] = (),
    unit: str | None = None,
    constraining: bool = False,
) -> list[int]:
    """Return the numbers of the rules that a diagram is asked for.

    Args:
        compiled: The policy.
        stage: Whether they are the rules over history or on each release alone.
        settings: Names of settings; a rule must have all of them.
        unit: Its privacy unit; None for any.
        constraining: Whether implied rules are left out.

    Raises:
        InputError: If there is no such setting or unit, or no rule is left.
    """
    rules, pruned = rules_of(compiled, stage)
    known = [setting.name for each in rules.extensions for setting in each]
    for setting in settings:
        _refuse_unknown("setting", setting, known, Code.UNKNOWN_CHOICE)
    if unit is not None:
        units = compiled.policy.vocabulary.units
        _refuse_unknown("unit", unit, units, Code.UNKNOWN_UNIT)
    contexts = [
        place
        for place, context in enumerate(rules.contexts)
        if set(settings) <= set(context.names)
    ]
    found = [
        base_place * len(rules.contexts) + place
        for base_place, base in enumerate(rules.bases)
        if unit in (None, base.unit)
        for place in contexts
    ]
    if constraining:
        found = [number for number in found if pruned.witness[number] < 0]
    if not found:
        raise fail(Code.UNKNOWN_CHOICE, "no rule of the policy is like that")
    return found


def _refuse_unknown(what: str, word: str, known: Iterable[str], code: Code) -> None:
    options = list(dict.fromkeys(known))
    if word not in options:
        raise fail(
            code,
            f'unknown {what} "{word[:60]}"',
            label=nearest(word, options),
            help="known: " + (", ".join(options[:20]) or "none"),
        )


def rule_number(compiled: CompiledPolicy, rule_id: str) -> tuple[Stage, int]:
    """Return the stage of a rule and its number.

    Raises:
        InputError: If there is no such rule.
    """
    for stage in Stage:
        number = rules_of(compiled, stage)[0].number(rule_id)
        if number is not None:
            return stage, number
    rules = compiled.rules if len(compiled.rules) else compiled.release_rules
    scopes = [base.scope + rules.contexts[0].suffix for base in rules.bases]
    raise fail(
        Code.UNKNOWN_CHOICE,
        f'there is no rule "{rule_id[:80]}"',
        label=nearest(rule_id, scopes),
        help="`modicum policy compile` lists them",
    )


def related(
    compiled: CompiledPolicy,
    number: int,
    among: Iterable[int],
    *,
    stage: Stage = Stage.HISTORY,
) -> list[int]:
    """Return the rules that stand above or below a rule, and itself.

    Args:
        compiled: The policy.
        number: The number of the rule.
        among: The numbers of the rules to look at.
        stage: Whether they are the rules over history or on each release alone.
    """
    rules, _ = rules_of(compiled, stage)
    order = RuleOrder(rules, compiled.policy.vocabulary)
    found = {
        other
        for other in among
        if order.is_below(number, other) or order.is_below(other, number)
    }
    return sorted(found | {number})
