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
    approval_cases = statement.story.approval_cases
    yield element("p", _counts(approval_cases.votes))
    yield element("p", limitations.WORDS, class_="soft")
    yield from _waiting(approval_cases.waiting)
    changes = [one for one in approval_cases.in_order if one.subject == "policy"]
    others = [one for one in approval_cases.in_order if one.subject != "policy"]
    yield from _case_table("Every change of the policy, newest first", changes)
    if others:
        yield from _case_table(
            "Requests for approval of releases, newest first", others
        )
    if approval_cases.votes:
        yield from _vote_table(approval_cases.votes)
        yield from _keys(approval_cases.votes)


def _counts(votes: Sequence[CaseVote]) -> str:
    if not votes:
        return "There are no votes."
    signed = [one for one in votes if one.body.key]
    named = sum(one.key_named for one in signed)
    times = "once" if len(votes) == 1 else f"{len(votes)} times"
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
        [(*_request_cells(one), _needs(one)) for one in newest(waiting)],
    )
    yield from left_out(len(waiting))


def _needs(case: Case) -> str:
    if case.outdated:
        return "requested under an earlier policy; it must be requested again"
    return "; ".join(map(approval_state_text, case.missing)) or (
        "no approval is needed"
    )


def _case_table(caption: str, approval_cases: Sequence[Case]) -> Iterator[Markup]:
    yield table(
        caption,
        _COLUMNS,
        [
            (
                *_request_cells(one),
                _vote_text(one.votes),
                _stands(one),
                _counted(one.counted),
            )
            for one in newest(approval_cases)
        ],
    )
    yield from left_out(len(approval_cases))


def _request_cells(case: Case) -> tuple[str, str, str]:
    """Return the subject of a case, its last requester, and the reason."""
    requests = [one for one in case.steps if one.what == "requested"]
    if not requests:
        return _about(case), "nobody", ""
    times = f", the last of {len(requests)} times" if len(requests) > 1 else ""
    return _about(case), f"{_by(requests[-1])}{times}", requests[-1].reason


def _about(case: Case) -> str:
    if case.subject != "policy":
        return f"{case.subject} {case.id}"
    digest = case.id[:_KEY_SHOWN]
    return f"policy {case.name} ({digest})" if case.name else f"policy {digest}"


def _by(step: Step) -> str:
    return f"{step.entry.actor}, {when(step.entry)}"


def _vote_text(votes: Sequence[CaseVote]) -> str:
    """Return the last votes on a subject, oldest first."""
    more = len(votes) - _NAMED
    texts = [f"{more} earlier"] if more > 0 else []
    texts += [
        f"{one.entry.actor} {_verb(one)} (entry {one.entry.seq}"
        f"{', signed' if one.body.key else ''})"
        for one in votes[-_NAMED:]
    ]
    return "; ".join(texts) or NOTHING


def _verb(vote: CaseVote) -> str:
    return "agrees" if vote.body.approves else "refuses"


def _stands(case: Case) -> str:
    if case.state in ("pending", "outdated", "not requested"):
        return case.state
    last = case.steps[-1]
    reason = f": {last.reason}" if last.reason else ""
    return f"{last.what} by {_by(last)}{reason}"


def _counted(people: Sequence[Counted]) -> str:
    texts = [
        f"{one.by} (entry {one.seq}, {_key_text(one.key, named=one.key_named)})"
        for one in people[:_NAMED]
    ]
    if len(people) > _NAMED:
        texts.append(f"{len(people) - _NAMED} more")
    return "; ".join(texts) or NOTHING


def _key_text(key: str, *, named: bool) -> str:
    if not key:
        return "not signed"
    whose = (
        "their own key" if named else ("a key that the policy does not list for them")
    )
    return f"signed by {key[:_KEY_SHOWN]}, {whose}"


def _vote_table(votes: Sequence[CaseVote]) -> Iterator[Markup]:
    yield table(
        "Every vote, newest first, under the policy of that time",
        ("About", "Who", "As", "Says", "When", "Reason", "Signature"),
        [_vote_cells(one) for one in newest(votes)],
    )
    yield from left_out(len(votes))


def _vote_cells(vote: CaseVote) -> Sequence[Child]:
    body = vote.body
    uncounted = "" if vote.countable else "; it does not count"
    return (
        f"{body.subject} {body.id}",
        vote.entry.actor,
        ", ".join(body.roles) or NOTHING,
        _verb(vote),
        when(vote.entry),
        body.reason,
        f"{_key_text(body.key, named=vote.key_named)}{uncounted}",
    )


def _keys(votes: Sequence[CaseVote]) -> Iterator[Markup]:
    """Yield the keys that signed, in full: a short form could be met on purpose."""
    people: dict[str, dict[str, None]] = {}
    for one in votes:
        if one.body.key:
            people.setdefault(one.body.key, {})[one.entry.actor] = None
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
