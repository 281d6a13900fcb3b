"""Why nothing of a limit may be used, in words, and what helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.ledger.decision.locked import Locked
from modicum.release import Span

#: So many spans of groups are named.
_SPANS_MAX = 5


def locked_text(locked: Locked, unit: str) -> str:
    """Return why nothing is unlocked in a cell.

    Args:
        locked: Why.
        unit: The privacy unit of the rule.
    """
    return f"nothing is unlocked there: {' and '.join(_causes(locked, unit))}"


def locked_remedy(locked: Locked, unit: str) -> str:
    """Return what helps where nothing is unlocked.

    Args:
        locked: Why.
        unit: The privacy unit of the rule.
    """
    if locked.unit:
        return f"unlock some of it:  modicum plan open ID --unlock {unit}=SHARE"
    if not locked.open:
        return "the next group begins with the next round:  modicum plan open"
    named = written_groups(locked.open)
    if locked.unnamed:
        return f"name those that are open:  {named}"
    wait = "wait, or " if locked.ahead else ""
    return f"{wait}name only groups that are open:  {named}"


def written_groups(spans: Sequence[Span]) -> str:
    """Return groups as a release names them, the newest if they are many.

    Args:
        spans: The groups, in order; at least one.
    """
    shown = spans[-_SPANS_MAX:]
    if len(shown) == 1 and shown[0][0] < shown[0][1]:
        return f"groups: {_item(shown[0])}"
    return f"groups: [{', '.join(map(_item, shown))}]"


def _causes(locked: Locked, unit: str) -> Iterator[str]:
    if locked.unit:
        yield f"the open round has `{unit}` at 0 % of every budget"
    elif locked.unnamed:
        yield (
            "the release names no `groups`, and so reads those, too, that have not"
            " begun"
        )
    else:
        if locked.closed:
            yield f"{_groups(locked.closed, 'has', 'have')} retired (retired: closed)"
        if locked.ahead:
            yield f"{_groups(locked.ahead, 'has', 'have')} not begun"
        if locked.never:
            yield f"{_groups(locked.never, 'never begins', 'never begin')}"


def _groups(spans: Sequence[Span], one: str, several: str) -> str:
    first, last = spans[0][0], spans[-1][1]
    if first == last:
        return f"group {first} {one}"
    said = [_span(span) for span in spans[:_SPANS_MAX]]
    if len(spans) > _SPANS_MAX:
        said.append("others")
    return f"groups {', '.join(said)} {several}"


def _span(span: Span) -> str:
    low, high = span
    return str(low) if low == high else f"{low} to {high}"


def _item(span: Span) -> str:
    low, high = span
    return str(low) if low == high else f"{{from: {low}, to: {high}}}"
