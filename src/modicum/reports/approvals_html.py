"""Approvals: requests, votes, and what is pending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.api.local.governance.approval_cases import approval_state_text
from modicum.core.diagnostics import shortened
from modicum.reports import limitations
from modicum.reports.approval_cases import Case, CaseVote, Counted, Step
from modicum.reports.markup import Child, Markup, element, table
from modicum.reports.statement import Statement
from modicum.reports.text import NOTHING, SHOWN, left_out, newest, when

#: Maximum number of people or votes in a table cell.
_NAMED = 10
#: Displayed length of a key beside each vote; a separate table has the full keys.
_KEY_SHOWN = 12

_COLUMNS = ("About", "Requested by", "Why", "Said", "Decision", "Counted")


def who_agreed(statement: Statement) -> Iterator[Markup]:
    """Yield the approvals, their keys, and what is pending."""
    matters = statement.story.matters
    yield element("p", _counts(matters.words))
    yield element("p", limitations.WORDS, class_="soft")
    yield from _waiting(matters.waiting)
    changes = [one for one in matters.every if one.subject == "policy"]
    others = [one for one in matters.every if one.subject != "policy"]
    yield from _matters("Every change of the policy, newest first", changes)
    if others:
        yield from _matters("Requests for approval of releases, newest first", others)
    if matters.words:
        yield from _words(matters.words)
        yield from _keys(matters.words)


def _counts(words: Sequence[CaseVote]) -> str:
    if not words:
        return "There are no votes."
    signed = [one for one in words if one.body.key]
    named = sum(one.key_named for one in signed)
    times = "once" if len(words) == 1 else f"{len(words)} times"
    holds = ", and all signatures are valid" if signed else ""
    return (
        f"People voted {times}. Signed votes: {len(signed)}{holds}; signed by a key"
        f" that the policy then listed for the voter: {named}."
    )


def _waiting(waiting: Sequence[Case]) -> Iterator[Markup]:
    if not waiting:
        yield element("p", "Nothing awaits approval.")
        return
    yield table(
        "Pending approvals, newest first",
        ("About", "Requested by", "Why", "Approvals"),
        [(*_asked(one), _needs(one)) for one in newest(waiting)],
    )
    yield from left_out(len(waiting))


def _needs(matter: Case) -> str:
    if matter.outdated:
        return "requested under an earlier policy; it must be requested again"
    return "; ".join(map(approval_state_text, matter.hearings)) or (
        "no approval is needed"
    )


def _matters(caption: str, matters: Sequence[Case]) -> Iterator[Markup]:
    yield table(
        caption,
        _COLUMNS,
        [
            (*_asked(one), _said(one.words), _stands(one), _counted(one.counted))
            for one in newest(matters)
        ],
    )
    yield from left_out(len(matters))


def _asked(matter: Case) -> tuple[str, str, str]:
    """Return the subject of a case, its last requester, and the reason."""
    asked = [one for one in matter.steps if one.what == "asked"]
    if not asked:
        return _about(matter), "nobody", ""
    times = f", the last of {len(asked)} times" if len(asked) > 1 else ""
    return _about(matter), f"{_by(asked[-1])}{times}", asked[-1].reason


def _about(matter: Case) -> str:
    if matter.subject != "policy":
        return f"{matter.subject} {matter.id}"
    digest = matter.id[:_KEY_SHOWN]
    return f"policy {matter.name} ({digest})" if matter.name else f"policy {digest}"


def _by(step: Step) -> str:
    return f"{step.told.actor}, {when(step.told)}"


def _said(words: Sequence[CaseVote]) -> str:
    """Return the last votes on a subject, oldest first."""
    more = len(words) - _NAMED
    said = [f"{more} earlier"] if more > 0 else []
    said += [
        f"{one.told.actor} {_verb(one)} (entry {one.told.seq}"
        f"{', signed' if one.body.key else ''})"
        for one in words[-_NAMED:]
    ]
    return "; ".join(said) or NOTHING


def _verb(word: CaseVote) -> str:
    return "agrees" if word.body.approves else "refuses"


def _stands(matter: Case) -> str:
    if matter.state in ("pending", "outdated", "not asked"):
        return matter.state
    last = matter.steps[-1]
    reason = f": {last.reason}" if last.reason else ""
    return f"{last.what} by {_by(last)}{reason}"


def _counted(people: Sequence[Counted]) -> str:
    said = [
        f"{one.by} (entry {one.seq}, {_key_words(one.key, named=one.key_named)})"
        for one in people[:_NAMED]
    ]
    if len(people) > _NAMED:
        said.append(f"{len(people) - _NAMED} more")
    return "; ".join(said) or NOTHING


def _key_words(key: str, *, named: bool) -> str:
    if not key:
        return "not signed"
    whose = (
        "their own key" if named else ("a key that the policy does not list for them")
    )
    return f"signed by {key[:_KEY_SHOWN]}, {whose}"


def _words(words: Sequence[CaseVote]) -> Iterator[Markup]:
    yield table(
        "Every vote, newest first, under the policy of that time",
        ("About", "Who", "As", "Says", "When", "Reason", "Signature"),
        [_word_cells(one) for one in newest(words)],
    )
    yield from left_out(len(words))


def _word_cells(word: CaseVote) -> Sequence[Child]:
    body = word.body
    unheard = "" if word.heard else "; it does not count"
    return (
        f"{body.subject} {body.id}",
        word.told.actor,
        ", ".join(body.roles) or NOTHING,
        _verb(word),
        when(word.told),
        body.reason,
        f"{_key_words(body.key, named=word.key_named)}{unheard}",
    )


def _keys(words: Sequence[CaseVote]) -> Iterator[Markup]:
    """Yield the keys that signed, in full: a short form could be met on purpose."""
    people: dict[str, dict[str, None]] = {}
    for one in words:
        if one.body.key:
            people.setdefault(one.body.key, {})[one.told.actor] = None
    if not people:
        return
    yield table(
        "Every signing key, to compare with the keys that people give you",
        ("Key", "Signed as"),
        [
            (element("code", key), shortened(list(names), _NAMED))
            for key, names in list(people.items())[:SHOWN]
        ],
    )
    yield from left_out(len(people))
