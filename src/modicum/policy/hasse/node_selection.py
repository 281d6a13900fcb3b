"""Choosing the rules that a diagram shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from modicum.core.errors import Code
from modicum.core.reader import fail, nearest
from modicum.policy.compiler import CompiledPolicy
from modicum.policy.hasse.diagram import RuleOrder, rules_of
from modicum.policy.pruning.logic import Logic
from modicum.policy.rule_lookup import find_rules
from modicum.policy.rules import Stage
from modicum.policy.vacuous_rules import VacuousRules


def chosen_rules(
    compiled: CompiledPolicy,
    *,
    stage: Stage = Stage.HISTORY,
    settings: Collection[str] = (),
    unit: str | None = None,
    binding: bool = False,
) -> list[int]:
    """Return the numbers of the rules selected for a diagram.

    Vacuous rules are left out: they would be below all others.

    Args:
        compiled: The policy.
        stage: Whether they are the rules over history or on each release alone.
        settings: Names of settings; a rule must have all of them.
        unit: Its privacy unit; None for any.
        binding: Whether redundant rules are left out.

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
    if binding:
        found = [number for number in found if pruned.witness[number] < 0]
    nothing = VacuousRules(rules, Logic(compiled.policy.vocabulary))
    found = [number for number in found if number not in nothing]
    if not found:
        raise fail(Code.UNKNOWN_CHOICE, "no rule matches these options")
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


def centers(
    compiled: CompiledPolicy, named: str, settings: Collection[str] = ()
) -> tuple[Stage, list[int]]:
    """Return the rules that a diagram is to be drawn around: a stage, and numbers.

    Args:
        compiled: The policy.
        named: The id of a rule, or its scope.
        settings: If a scope is named: the settings that the rules have.

    Raises:
        InputError: If there is no such rule, or it is about nothing.
    """
    places = find_rules(compiled, named, () if "@" in named else settings)
    stage = places[0].stage
    rules, _ = rules_of(compiled, stage)
    nothing = VacuousRules(rules, Logic(compiled.policy.vocabulary))
    numbers = [
        place.number
        for place in places
        if place.stage is stage and place.number not in nothing
    ]
    if not numbers:
        raise fail(
            Code.UNKNOWN_CHOICE,
            f"`{named[:80]}` matches nothing: no mechanism can match it",
            help="see why with  modicum policy explain FILE RULE",
        )
    return stage, numbers


def related(
    compiled: CompiledPolicy,
    centered: Collection[int],
    among: Iterable[int],
    *,
    stage: Stage = Stage.HISTORY,
) -> list[int]:
    """Return the rules above or below some rules, and these themselves.

    Args:
        compiled: The policy.
        centered: The numbers of these rules.
        among: The numbers of the rules to look at.
        stage: Whether they are the rules over history or on each release alone.
    """
    rules, _ = rules_of(compiled, stage)
    order = RuleOrder(rules, compiled.policy.vocabulary)
    found = {
        other
        for other in among
        if any(
            order.is_below(one, other) or order.is_below(other, one) for one in centered
        )
    }
    return sorted(found.union(centered))
