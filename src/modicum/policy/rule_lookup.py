"""Finding rules by the names that people use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modicum.core.diagnostics import close_matches
from modicum.core.errors import Code, InputError, Problem
from modicum.policy.changes.rule_comparison import stage_rules
from modicum.policy.compiler import CompiledPolicy
from modicum.policy.rules import RuleSet, Stage


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a rule: its stage, and its number in the rules of that stage."""

    stage: Stage
    number: int


def find_rules(
    compiled: CompiledPolicy, named: str, context: Iterable[str] = ()
) -> tuple[Place, ...]:
    """Return the rules that a name and some settings mean, in the policy's order.

    Args:
        compiled: The policy.
        named: The id of a rule, or its scope; settings in any order.
        context: Further settings.

    Returns:
        At least one place; a scope means its rules in all contexts that have the
        settings.

    Raises:
        InputError: If there is no such rule.
    """
    scope, *inside = (part.strip() for part in named.split("@"))
    settings = {*inside, *context} - {""}
    found = [
        Place(stage, number)
        for stage in (Stage.HISTORY, Stage.RELEASE)
        for number in _numbers(stage_rules(compiled, stage), scope, settings)
    ]
    if not found:
        raise _unknown(compiled, scope, settings)
    return tuple(found)


def _numbers(rules: RuleSet, scope: str, settings: set[str]) -> Iterator[int]:
    for base, one in enumerate(rules.bases):
        if one.scope == scope:
            for place, context in enumerate(rules.contexts):
                if settings <= set(context.names):
                    yield base * len(rules.contexts) + place


def _unknown(compiled: CompiledPolicy, scope: str, settings: set[str]) -> InputError:
    rules, alone = compiled.rules, compiled.release_rules
    scopes = list(dict.fromkeys(base.scope for base in (*rules.bases, *alone.bases)))
    known = [setting.name for settings in rules.extensions for setting in settings]
    unknown = sorted(settings - set(known))
    if scope not in scopes:
        message, near = (
            f"no rule matches `{scope[:80]}`",
            close_matches(scope, scopes)[:3],
        )
    elif unknown:
        message = f"no extension has a setting `{unknown[0][:80]}`"
        near = close_matches(unknown[0], known)[:3] or known
    else:
        message = f"`{scope}` has no rule in the context {' '.join(sorted(settings))}"
        near = [setting.name for setting in rules.contexts[0].settings]
    kind = scope.partition(":")[0]
    alike = [one for one in scopes if one.partition(":")[0] == kind] or scopes
    notes = (
        f"nearest: {', '.join(near)}" if near else f"known: {', '.join(alike[:5])}",
    )
    remedy = (
        "list the rules with  modicum policy compile policy.yaml ; "
        " modicum policy show > policy.yaml  writes the active policy"
    )
    return InputError(Problem(Code.UNKNOWN_CHOICE, message, notes=notes, help=remedy))
