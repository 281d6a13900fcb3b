"""Explanations of rules: policy and ledger facts as text and data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction

from modicum.accounting import INFINITE, ApproxBudget, Epsilon
from modicum.accounting.budgets import budget_text
from modicum.accounting.grid import coordinate_name
from modicum.api.schema.policy import ApproxDp
from modicum.api.schema.release import Loss, RuleLines, Sums
from modicum.api.schema.shape import Amount
from modicum.core.diagnostics import shortened
from modicum.core.rationals import LOSS_UNIT, brief, unpadded
from modicum.ledger import RuleLoss, Verdict
from modicum.ledger.decision.amounts import (
    Amounts,
    Approximation,
    amounts,
    approximation,
    sums,
)
from modicum.ledger.decision.unlocked_shares import Locked
from modicum.ledger.state.gaps import GAP_REMEDY
from modicum.policy.rules import Stage
from modicum.release import Span

#: The prefix of lines about a rule.
_INDENT = " " * 9
#: Maximum number of mechanisms without `periods` that are listed.
_NAMED = 5


def reasons(verdict: Verdict) -> Iterator[RuleLines]:
    """Yield the text of each rule, what denies first."""
    if verdict.unmatched:
        yield RuleLines(rule="", lines=tuple(_unmatched_lines(verdict.unmatched)))
    losses = sorted(verdict.losses, key=lambda loss: loss.allowed)
    width = max((len(loss.rule.id) for loss in losses), default=0)
    for loss in losses:
        yield RuleLines(rule=loss.rule.id, lines=tuple(_rule_lines(loss, width)))
    if not losses and not verdict.unmatched:
        yield RuleLines(
            rule="", lines=("  no rule of the policy matches this release",)
        )


def unmatched_names(unmatched: Sequence[str]) -> str:
    """Return mechanisms that no rule limits, as text."""
    return shortened([f"`{name}`" for name in unmatched], _NAMED)


def unmatched_text(unmatched: Sequence[str]) -> str:
    """Return that no rule limits mechanisms, and the remedy."""
    return f"no rule limits {unmatched_names(unmatched)}: {UNMATCHED_REMEDY}"


#: What helps a release with mechanisms that no rule limits. Noise does not.
UNMATCHED_REMEDY = (
    "add a rule to `policies` that matches, or  unmatched: allow  to the policy"
)


def _unmatched_lines(unmatched: Sequence[str]) -> Iterator[str]:
    yield f"  NONE {unmatched_names(unmatched)}: no rule over history limits it"
    yield f"{_INDENT}no noise helps: {UNMATCHED_REMEDY}"


def _rule_lines(loss: RuleLoss, width: int) -> Iterator[str]:
    found = amounts(loss)
    glyph = "ok  " if loss.allowed else "OVER"
    alone = loss.rule.stage is Stage.RELEASE
    shown = "  ".join(
        f"{name} {amount_text(value, found.scale)}"
        for name, value in (
            ("spent", found.before),
            ("this release", found.alone),
            ("total", found.together),
            ("limit", found.limit),
        )
    )
    stage = ", each release alone" if alone else ""
    cell = f", {loss.cell}" if loss.cell else ""
    unlocked = f", {_percent(loss.share)} unlocked" if loss.share < 1 else ""
    yield (
        f"  {glyph} {loss.rule.id:<{width}}  {found.measure}: {shown}"
        f"  (per {loss.rule.unit}{stage}{cell}{unlocked})"
    )
    if not loss.allowed:
        yield from _denial_lines(loss, found)


def cause_text(loss: RuleLoss) -> str:
    """Return why a rule is over its limit, if that is because `periods` are missing."""
    if loss.undated:
        named = shortened(loss.undated, _NAMED)
        return (
            f"charged to every period, because `periods` is missing ({named}):"
            " name the days that are read, such as"
            "  periods: {from: 2026-05-01, to: 2026-05-01}"
        )
    if loss.every_period:
        return (
            "over the limit in every period, including future ones: releases without"
            " `periods` are charged to all; list them with  modicum ledger balance"
            f" {loss.rule.id}"
        )
    return ""


def _denial_lines(loss: RuleLoss, found: Amounts) -> Iterator[str]:
    indent = _INDENT
    cause = cause_text(loss)
    if cause:
        yield f"{indent}{cause}"
    if loss.cells_denying > 1:
        yield f"{indent}{loss.cells_denying} cells deny; {_of_these(loss)}"
    near, summed = approximation(loss), sums(loss)
    if loss.locked is not None:
        yield f"{indent}{locked_text(loss.locked, loss.rule.unit)}"
        yield f"{indent}{locked_remedy(loss.locked, loss.rule.unit)}"
    elif loss.share < 1:
        yield (
            f"{indent}{_percent(loss.share)} of the budget is unlocked so far; the"
            " limits below apply to it"
        )
    if found.measure == "delta":
        yield f"{indent}{_delta_text(loss)}"
    else:
        if near is not None:
            added = loss.rule.stage is Stage.HISTORY
            yield f"{indent}{_approximation_text(near, added=added)}"
        if summed is not None and summed.together >= INFINITE:
            yield f"{indent}no finite bound is proven for any coordinate it sums"
        elif summed is not None:
            yield (
                f"{indent}the filter sums {summed.measure}:"
                f" {amount_text(summed.before)} + {amount_text(summed.alone)}"
                f" = {amount_text(summed.together)}, more than"
                f" {amount_text(summed.limit)}"
            )
    yield (
        f"{indent}the rule: {budget_text(loss.rule.budget)} per {loss.rule.unit},"
        f" when {loss.rule.when}"
    )
    places = [str(mark) for mark in loss.rule.marks if mark is not None]
    if places:
        yield f"{indent}from {' x '.join(places)}"


def _of_these(loss: RuleLoss) -> str:
    """Return how a cell was chosen of those that deny."""
    compared = loss.compared
    cap = dict(loss.own_filter.caps).get(compared) if compared is not None else None
    if compared is None or cap is None or loss.together.units(compared) <= cap:
        return "this is one of them"  # Another coordinate denies, or delta.
    name = coordinate_name(compared)
    return f"this one exceeds its limit by the most {name}"


def _delta_text(loss: RuleLoss) -> str:
    if isinstance(loss.rule.budget, ApproxBudget) and loss.own_filter.caps:
        return (
            "the mechanisms' own deltas exceed the share of delta that the filter"
            f" {loss.filter_name} keeps for them"
        )
    return "the mechanisms' own deltas exceed the delta that the rule allows"


def _approximation_text(near: Approximation, *, added: bool) -> str:
    remark = "; epsilon is sub-additive under this composition" if added else ""
    return (
        f"tightest eps at delta {brief(near.delta)}:"
        f" spent {epsilon_text(near.before)}, this release {epsilon_text(near.alone)},"
        f" total {epsilon_text(near.together)} (by {near.together.method}){remark}"
    )


def _percent(share: Fraction) -> str:
    """Return a share in percent, rounded down."""
    tenths = share.numerator * 1000 // share.denominator
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths / 10} %"


def room_text(units: int, scale: int = LOSS_UNIT) -> str:
    """Return the remainder for display: four digits, rounded down so that it fits."""
    if units >= INFINITE:
        return "inf"
    down = Context(prec=4, rounding=ROUND_DOWN)
    return f"{float(down.divide(Decimal(units), Decimal(scale))):.4g}"


def amount_text(units: int, scale: int = LOSS_UNIT) -> str:
    """Return an amount for display: four significant digits, `inf` if infinite."""
    if units >= INFINITE:
        return "inf"
    return unpadded(f"{units / scale:.4g}")


def epsilon_text(epsilon: Epsilon) -> str:
    """Return an epsilon for display, to four decimals."""
    if epsilon.units >= INFINITE:
        return "inf"
    return f"{epsilon.units / LOSS_UNIT:.4f}"


def loss_view(loss: RuleLoss) -> Loss:
    """Return the public form of one rule's decision about a release."""
    found, summed, near = amounts(loss), sums(loss), approximation(loss)
    together, limit = ordered(found.together, found.limit, found.scale)
    return Loss(
        rule=loss.rule.id,
        unit=loss.rule.unit,
        stage=loss.rule.stage.value,
        cell=loss.cell or None,
        cells_denying=loss.cells_denying,
        allowed=loss.allowed,
        undated=tuple(loss.undated),
        cause=cause_text(loss) or None,
        unlocked=float(loss.share),
        measure=found.measure,
        before=amount(found.before, found.scale),
        alone=amount(found.alone, found.scale),
        together=together,
        limit=limit,
        budget=budget_text(loss.rule.budget),
        filter=None if summed is None else _sums_view(summed),
        approx_dp=None if near is None else _approximation_view(near),
        when=loss.rule.when,
        source=tuple(str(mark) for mark in loss.rule.marks if mark is not None),
    )


def _sums_view(summed: Amounts) -> Sums:
    together, cap = ordered(summed.together, summed.limit, summed.scale)
    return Sums(
        coordinate=summed.measure,
        before=amount(summed.before),
        alone=amount(summed.alone),
        together=together,
        cap=cap,
    )


def _approximation_view(near: Approximation) -> ApproxDp:
    return ApproxDp(
        delta=float(near.delta),
        before=amount(near.before.units),
        alone=amount(near.alone.units),
        together=amount(near.together.units),
        method=near.together.method,
    )


def amount(units: int, scale: int = LOSS_UNIT) -> Amount:
    """Return an amount in ledger units as the nearest float."""
    return Amount(math.inf if units >= INFINITE else units / scale)


def ordered(together: int, limit: int, scale: int) -> tuple[Amount, Amount]:
    """Return two amounts as floats in the same order as the exact ones.

    Beyond 9007 two different amounts can share their nearest float; then the
    larger one is shown one step higher.
    """
    shown, shown_limit = amount(together, scale), amount(limit, scale)
    if together > limit and shown <= shown_limit < math.inf:
        shown = Amount(math.nextafter(shown_limit, math.inf))
    return shown, shown_limit


#: Maximum number of group ranges listed.
_SPANS_MAX = 5


def locked_text(locked: Locked, unit: str) -> str:
    """Return why nothing is unlocked in a cell."""
    return f"nothing is unlocked: {' and '.join(_causes(locked, unit))}"


def locked_remedy(locked: Locked, unit: str) -> str:
    """Return the remedy where nothing is unlocked."""
    if locked.gap:
        return GAP_REMEDY
    if locked.unit:
        return f"unlock a share:  modicum plan open ID --unlock {unit}=SHARE"
    if not locked.open:
        return "the next group starts with the next round:  modicum plan open"
    named = written_groups(locked.open)
    if locked.unnamed:
        return f"name those that are open:  {named}"
    wait = "wait, or " if locked.ahead else ""
    return f"{wait}name only groups that are open:  {named}"


def written_groups(spans: Sequence[Span]) -> str:
    """Return groups as a release names them, the newest if they are many."""
    shown = spans[-_SPANS_MAX:]
    if len(shown) == 1 and shown[0][0] < shown[0][1]:
        return f"groups: {_item(shown[0])}"
    return f"groups: [{', '.join(map(_item, shown))}]"


def _causes(locked: Locked, unit: str) -> Iterator[str]:
    if locked.gap:
        yield f"{locked.gap}, and what they spent is not known"
    elif locked.unit:
        yield f"the open round has `{unit}` at 0 % of every budget"
    elif locked.unnamed:
        yield (
            "the release names no `groups`, and so also reads those that have not"
            " started"
        )
    else:
        if locked.closed:
            yield f"{_groups(locked.closed, 'has', 'have')} retired (retired: closed)"
        if locked.ahead:
            yield f"{_groups(locked.ahead, 'has', 'have')} not started"
        if locked.never:
            yield f"{_groups(locked.never, 'never starts', 'never start')}"


def _groups(spans: Sequence[Span], one: str, several: str) -> str:
    first, last = spans[0][0], spans[-1][1]
    if first == last:
        return f"group {first} {one}"
    texts = [_span(span) for span in spans[:_SPANS_MAX]]
    if len(spans) > _SPANS_MAX:
        texts.append("others")
    return f"groups {', '.join(texts)} {several}"


def _span(span: Span) -> str:
    low, high = span
    return str(low) if low == high else f"{low} to {high}"


def _item(span: Span) -> str:
    low, high = span
    return str(low) if low == high else f"{{from: {low}, to: {high}}}"
