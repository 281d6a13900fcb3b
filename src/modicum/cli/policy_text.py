"""Printed output of `modicum policy diff` and `explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from modicum.accounting import Budget, Filter
from modicum.accounting.budgets import ApproxBudget, budget_text, measure, parameter
from modicum.accounting.grid import INFINITE, coordinate_name
from modicum.api.local.explanation.conflicts import Conflict
from modicum.api.local.explanation.contributions import contributors_text, spenders_view
from modicum.api.local.explanation.denial_text import (
    amount,
    amount_text,
    ordered,
    room_text,
)
from modicum.api.local.policies.rule_standing import RuleStanding, in_cells
from modicum.api.local.policies.what_if import Change, Replayed, WhatIf
from modicum.cli.output import fitting
from modicum.cli.policy_rules import when_text
from modicum.cli.policy_simulation_text import past_releases
from modicum.core.errors import Problem
from modicum.core.rationals import DELTA_UNIT, number_spelled
from modicum.policy.changes.differences import Differences, RuleChange, Verdict
from modicum.policy.rule_profile import Neighbors, RuleProfile, coordinate_text
from modicum.policy.rules import Stage

#: Maximum number of names per line, and of lines per heading.
NAMES, LINES = 8, 20


@dataclass(frozen=True, slots=True)
class Met:
    """The effect of a new policy on a ledger.

    Attributes:
        what_if: The history under the new policy.
        before: The rules that history exceeds under the old policy.
        changed: The rules of the new policy that are new or may be tighter.
    """

    what_if: WhatIf
    before: frozenset[str]
    changed: frozenset[str]

    @property
    def problems(self) -> list[Problem]:
        """The obstacles to the change, as mistakes.

        A rule that was exceeded before and is no tighter now is no mistake of it.
        """
        note = "it is also over its limit under the old policy"
        return [
            *self.what_if.problems,
            *(
                replace(problem, notes=(*problem.notes, note))
                if conflict.rule.id in self.before
                else problem
                for conflict in self.what_if.conflicts
                if conflict.rule.id not in self.before
                or conflict.rule.id in self.changed
                for problem in (conflict.problem,)
            ),
        ]


_RULE_VERDICTS = (
    Verdict.TIGHTER,
    Verdict.LOOSER,
    Verdict.CHANGED,
    Verdict.NEW,
    Verdict.REMOVED,
)


def print_diff(
    found: Differences, met: Met | None, *, several_units: bool, whole: bool
) -> None:
    """Print the differences as text."""
    if found.same_document:
        print("SAME     the policies are equivalent")
    elif found.empty:
        print(f"SAME     all {_rules(found.same_rules)}, and all declarations")
    else:
        _print_changes(found, several_units=several_units, whole=whole)
    if met is not None:
        for line in _history_lines(met):
            print(line)


def _print_changes(found: Differences, *, several_units: bool, whole: bool) -> None:
    for verdict in _RULE_VERDICTS:
        changes = [change for change in found.rules if change.verdict is verdict]
        lines = list(_rule_lines(changes, several_units=several_units, whole=whole))
        _print_block(verdict.value.upper(), lines or ["none"], whole=whole)
    beside = [
        f"{one.subject} {one.text}{_aside(one.verdict)}" for one in found.declared
    ]
    if beside:
        _print_block("BESIDE", beside, whole=whole)
    _print_block("SAME", [_rules(found.same_rules)], whole=whole)
    if not found.loosens:
        print("nothing is loosened: all that was denied is still denied")


def _rules(number: int) -> str:
    return f"{number} rule{'' if number == 1 else 's'}"


def _aside(verdict: Verdict) -> str:
    match verdict:
        case Verdict.TIGHTER | Verdict.LOOSER:
            return f" ({verdict.value})"
        case Verdict.CHANGED:
            return " (may be looser)"
        case _:
            return ""


def _print_block(title: str, lines: Sequence[str], *, whole: bool) -> None:
    kept = lines[: fitting(len(lines), None if whole else LINES)]
    for number, line in enumerate(kept):
        print(f"{'' if number else title:<8} {line}")
    if len(lines) > len(kept):
        print(f"{'':<8} … {len(lines) - len(kept)} more lines (--all)")


# --- rules ----------------------------------------------------------------------


def _rule_lines(
    changes: Iterable[RuleChange], *, several_units: bool, whole: bool
) -> Iterator[str]:
    """Yield a line for each group of rules with the same change."""
    groups: dict[tuple[object, ...], list[RuleChange]] = {}
    for change in changes:
        key = (
            change.scope.partition(":")[0],
            change.context,
            change.stage,
            change.unit,
            change.old_budget,
            change.new_budget,
            change.predicate,
            bool(change.covered_by),
            change.across,
        )
        groups.setdefault(key, []).append(change)
    names = {id(group): _names(group, whole=whole) for group in groups.values()}
    width = min(max((len(name) for name in names.values()), default=0), 60)
    for group in groups.values():
        parts = [f"{names[id(group)]:<{width}}", _budget_change(group[0])]
        if several_units:
            parts.append(f"per {group[0].unit}")
        parts += _remarks(group)
        yield "  ".join(parts)


def _names(group: Sequence[RuleChange], *, whole: bool) -> str:
    scopes = [change.scope for change in group]
    name, colon, first = scopes[0].partition(":")
    if colon and len(scopes) > 1:
        inner = [scope.partition(":")[2] for scope in scopes]
        kept = inner[: fitting(len(inner), None if whole else NAMES)]
        more = f", … {len(inner) - len(kept)} more" if len(kept) < len(inner) else ""
        first = "{" + ",".join(kept) + more + "}"
    suffix = "".join(f" @{setting}" for setting in group[0].context)
    return name + colon + first + suffix


def _budget_change(change: RuleChange) -> str:
    old, new = change.old_budget, change.new_budget
    if old is None or new is None:
        return budget_text(old or new)  # type: ignore[arg-type]
    was, now = parameter(old), parameter(new)
    if measure(old) != measure(new) or _delta(old) != _delta(new) or was is None:
        one, other = budget_text(old), budget_text(new)
        return one if one == other else f"{one} -> {other}"
    assert now is not None
    name = measure(new).partition(",")[0]
    if was == now:
        return f"{name} {number_spelled(now)}"
    return f"{name} {number_spelled(was)} -> {number_spelled(now)}"


def _delta(budget: Budget) -> object:
    return budget.delta if isinstance(budget, ApproxBudget) else None


_ABOUT = {
    Verdict.TIGHTER: "matches more mechanisms",
    Verdict.LOOSER: "matches fewer mechanisms",
    Verdict.CHANGED: "matches other mechanisms",
}


def _remarks(group: Sequence[RuleChange]) -> Iterator[str]:
    change = group[0]
    if change.stage is Stage.RELEASE:
        yield "each release alone"
    if change.predicate in _ABOUT:
        yield _ABOUT[change.predicate]
    unchanged = change.old_budget == change.new_budget
    if unchanged and change.budget not in (None, Verdict.SAME):
        yield "under another filter"
    if change.across:
        yield f"compared across {', '.join(change.across)}"
    covers = sorted({one.covered_by for one in group})
    if covers[0]:
        many = f" and {len(covers) - 1} more" if len(covers) > 1 else ""
        yield f"(still covered by {covers[0]}{many})"


# --- history --------------------------------------------------------------------


def _history_lines(met: Met) -> Iterator[str]:
    found = met.what_if
    denied, allowed = found.of(Change.DENIED_NOW), found.of(Change.ALLOWED_NOW)
    yield (
        f"HISTORY  would have denied {len(denied)} of {len(found.replayed)}"
        f" releases{_ids(denied)}"
    )
    if allowed:
        yield f"         would have allowed {len(allowed)} denied ones{_ids(allowed)}"
    for one in found.assumptions:
        yield (
            f"         {one.kind} `{one.subject}` {one.taken}"
            f" ({past_releases(one.releases)})"
        )
    for remark in found.remarks:
        yield f"         {remark}"
    lines = [one.message for one in found.problems]
    for conflict in found.conflicts:
        also = ", as before" if conflict.rule.id in met.before else ""
        lines.append(f"{conflict_line(conflict)}{also}")
    for number, line in enumerate(lines):
        yield f"{'' if number else 'CONFLICT':<8} {line}"


def conflict_line(conflict: Conflict) -> str:
    """Return a conflict in one line."""
    from modicum.api.local.explanation.denial_text import amount_text
    from modicum.ledger.decision.amounts import amounts

    found = amounts(conflict.loss)
    return (
        f"{conflict.rule.id} is already at {found.measure}"
        f" {amount_text(found.together, found.scale)}, more than"
        f" {amount_text(found.limit, found.scale)}"
    )


def _ids(replayed: Sequence[Replayed]) -> str:
    ids = [one.attempt.release.id for one in replayed]
    kept = ids[: fitting(len(ids), NAMES)]
    more = f" … {len(ids) - len(kept)} more" if len(kept) < len(ids) else ""
    return (": " + " ".join(kept) + more) if ids else ""


#: Maximum number of contexts of a scope explained at once.
SHOWN = 6


def print_rule(profile: RuleProfile, standing: RuleStanding | None) -> None:
    """Print a rule in full, as text."""
    rule = profile.rule
    _block("rule", f"{rule.id}   per {rule.unit}   {budget_text(rule.budget)}")
    _block("when", when_text(rule))
    _block("promise", profile.promise)
    places = [
        f"{origin.what}  {origin.mark or ''}".rstrip() for origin in profile.origins
    ]
    _block("from", *places)
    _block("cells", *profile.cells)
    _block("filter", *_filter_lines(profile))
    if profile.unlocking:
        _block("unlocks", profile.unlocking)
    _block("status", _status(profile))
    _block("above", _neighbors(profile.above))
    _block("below", _neighbors(profile.below))
    if standing is not None:
        _block("ledger", *_standing_lines(standing))


def _block(title: str, *lines: str) -> None:
    for number, line in enumerate(lines):
        print(f"{'' if number else title:<7} {line}")


def _filter_lines(profile: RuleProfile) -> Iterator[str]:
    own = profile.own_filter
    if own is None:
        yield "none: the tightest loss of each release is compared with the limit"
    elif not own.enforced:
        yield "none: tracked only"
    elif own.every:
        yield "allows while each of these sums is within its cap"
        yield from _cap_lines(own)
    else:
        one = len(own.caps) == 1
        which = "this sum is" if one else "any of these sums is"
        yield f"{profile.filter_name}: allows while {which} within its cap"
        yield from _cap_lines(own)


def _cap_lines(own: Filter) -> Iterator[str]:
    named = [(coordinate_text(index), amount_text(cap)) for index, cap in own.caps]
    named.append(
        ("and the mechanisms' own deltas", amount_text(own.delta_cap, DELTA_UNIT))
    )
    width = max(len(text) for text, _ in named)
    for text, cap in named:
        yield f"  {text:<{width}}  {cap}"


def _status(profile: RuleProfile) -> str:
    if profile.matches_nothing:
        return "matches no mechanism: it can never deny"
    if profile.witness is None:
        return "binding: it can be the only rule to deny"
    rule, budget = profile.witness
    return f"redundant: {rule} ({budget_text(budget)}) denies whatever this denies"


def _neighbors(found: Neighbors) -> str:
    if not found.count:
        return "none"
    left = found.count - len(found.direct)
    return ", ".join(found.direct) + (f" and {left} more" if left else "")


def _standing_lines(standing: RuleStanding) -> Iterator[str]:
    spent = standing.spent
    if standing.loss.cell:
        yield f"the fullest cell: {standing.loss.cell}"
    before = amount_text(spent.together, spent.scale)
    if not standing.loss.own_filter.enforced:
        yield f"{spent.measure} {before} is spent; there is no limit"
    else:
        limit = amount_text(spent.limit, spent.scale)
        left = room_text(standing.left, spent.scale)
        where = in_cells(standing.loss.cells_denying) if standing.loss.cell else ""
        state = (
            f"left {left}"
            if standing.loss.allowed
            else f"OVER{where}: it denies matching releases there"
        )
        yield f"spent {before} of {spent.measure} {limit}, {state}"
    if standing.rho_left is not None:
        yield (
            f"remaining for a Gaussian mechanism: rho = {room_text(standing.rho_left)}"
        )
    if standing.spenders:
        yield f"spent by {contributors_text(standing.spenders, standing.coordinate)}"


# --- JSON -----------------------------------------------------------------------


def rule_to_dict(
    profile: RuleProfile, standing: RuleStanding | None
) -> dict[str, object]:
    """Return the documented JSON form (docs/reference/json.md)."""
    rule = profile.rule
    redundant = profile.witness
    return {
        "id": rule.id,
        "stage": rule.stage.value,
        "scope": rule.scope,
        "context": list(rule.context),
        "predicate": rule.when,
        "matches_nothing": profile.matches_nothing,
        "unit": rule.unit,
        "budget": budget_text(rule.budget),
        "promise": profile.promise,
        "origins": [
            {"what": origin.what, "source": str(origin.mark) if origin.mark else None}
            for origin in profile.origins
        ],
        "cells": list(profile.cells),
        "filter": _filter_to_dict(profile),
        "unlocking": profile.unlocking or None,
        "witness": None
        if redundant is None
        else {"rule": redundant[0], "budget": budget_text(redundant[1])},
        "above": {"count": profile.above.count, "direct": list(profile.above.direct)},
        "below": {"count": profile.below.count, "direct": list(profile.below.direct)},
        "standing": None if standing is None else _standing_to_dict(standing),
    }


def _filter_to_dict(profile: RuleProfile) -> dict[str, object] | None:
    own = profile.own_filter
    if own is None or not own.enforced:
        return None
    return {
        "name": profile.filter_name,
        "every": own.every,
        "caps": [
            {"coordinate": coordinate_name(index), "cap": amount(cap)}
            for index, cap in own.caps
        ],
        "deltas": amount(own.delta_cap, DELTA_UNIT),
    }


def _standing_to_dict(standing: RuleStanding) -> dict[str, object]:
    found = standing.spent
    spent, limit = ordered(found.together, found.limit, found.scale)
    rho = standing.rho_left
    left = INFINITE if found.limit >= INFINITE else standing.left
    return {
        "cell": standing.loss.cell or None,
        "allowed": standing.loss.allowed,
        "measure": found.measure,
        "spent": spent,
        "limit": limit,
        "left": amount(left, found.scale),
        "rho_left": None if rho is None else amount(rho),
        "spenders": spenders_view(standing.spenders, standing.coordinate),
    }
