"""People have a say: they approve releases and policies, or refuse them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from modicum.core.document import from_python
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    Problem,
    UsageError,
)
from modicum.core.reading import place, text
from modicum.ledger import State, event_of
from modicum.ledger.deciding.approvals import Hearing, roles_of
from modicum.ledger.log.events import ApprovalGiven
from modicum.policy import CompiledPolicy, Policy
from modicum.policy.declarations.people import meant_by
from modicum.policy.model import Approval
from modicum.workspace.book import Book, Entry
from modicum.workspace.decision import approval_text
from modicum.workspace.governing.topics import Topic


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said, and where the approvals stand after it.

    Attributes:
        topic: What they spoke about.
        by: Who.
        approves: Whether they agree.
        roles: The roles in which they spoke.
        hearings: Where each approval stands, as far as it is known.
        seq: The number of the entry.
        repeated: Whether it is what they said last, so that nothing was added.
    """

    topic: Topic
    by: str
    approves: bool
    roles: tuple[str, ...]
    hearings: tuple[Hearing, ...]
    seq: int
    repeated: bool = False


def say(entry: Entry, topic: Topic, *, approves: bool, reason: str) -> Said:
    """Record what somebody says, unless it is what they said last.

    Args:
        entry: The turn; its actor speaks.
        topic: What they speak about.
        approves: Whether they agree; if not, it is blocked until they do.
        reason: Why, for the record; 1 to 2000 characters.

    Raises:
        ApprovalError: If nobody is asked, or their word would not count.
        ConflictError: If the release stands already.
        InputError: If no reason is given.
        UsageError: If the ledger has no policy.
    """
    state = entry.book.state
    why = reason_text(reason, "approving or rejecting")
    policy = active_policy(entry.book).policy
    if topic.subject == "release":
        _refuse_standing(topic, state)
    roles = _roles(entry.actor, topic, policy, state, approves=approves)
    body = ApprovalGiven(topic.subject, topic.id, topic.content, approves, roles, why)
    before = _said_before(entry, body)
    if before is None:
        entry.add(body)
    heard = topic.hearings_in(state)
    seq = state.seq if before is None else before
    return Said(topic, entry.actor, approves, roles, heard, seq, before is not None)


def _said_before(entry: Entry, body: ApprovalGiven) -> int | None:
    """Return the entry of somebody's last word if it is the same; else None.

    What was said of a policy before the active one came was about another change.
    """
    state = entry.book.state
    said = state.approvals.get((body.subject, body.content), ())
    last = next((one for one in reversed(said) if one.by == entry.actor), None)
    since = state.policy.seq if state.policy and body.subject == "policy" else 0
    if last is None or last.seq <= since:
        return None
    (record,) = islice(entry.read(last.seq - 1), 1)
    return last.seq if event_of(record, last.seq).body == body else None


def _refuse_standing(topic: Topic, state: State) -> None:
    known = state.releases.get(topic.id)
    if known is not None:
        raise ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"{topic.called} is {known.status.value} already: there is nothing to"
                " approve",
            )
        )


def _roles(
    person: str, topic: Topic, policy: Policy, state: State, *, approves: bool
) -> tuple[str, ...]:
    """Return the roles in which somebody speaks; refuse a word that cannot count."""
    roles = roles_of(person, policy)
    heard = topic.hearings(state) if topic.hearings else None
    if heard == ():
        raise _refused(f"{topic.called} needs no approval under the active policy")
    asked = None if heard is None else {r for one in heard for r in one.approval.roles}
    if not roles or (asked is not None and asked.isdisjoint(roles)):
        wanted = " or ".join(sorted(asked)) if asked else "any role"
        raise _refused(
            f"`{person}` cannot speak about {topic.called}",
            f"the active policy does not give them {wanted}",
            *written_otherwise(person, policy),
        )
    if approves and heard is not None:
        _refuse_worthless(person, topic, heard)
    return roles


def written_otherwise(person: str, policy: Policy) -> Iterator[str]:
    """Yield a remark if the roles name somebody, but for capitals.

    Args:
        person: The name, as it was given.
        policy: The policy whose roles may write it otherwise.
    """
    for name in dict.fromkeys(
        one for each in (policy.roles or {}).values() for one in each
    ):
        if name != person and meant_by(name) == meant_by(person):
            yield f"it names `{name}`; the name is to be given as it stands there"


def _refuse_worthless(person: str, topic: Topic, heard: Sequence[Hearing]) -> None:
    """Refuse an agreement that would not count."""
    if any(person in (*one.agreed, *one.left, *one.refused) for one in heard):
        return
    asks = any(person in one.asking for one in heard)
    raise _refused(
        f"`{person}` cannot approve {topic.called}",
        "who asks for it does not approve it"
        if asks
        else "they agreed already under a name that differs in capitals only",
    )


def _refused(message: str, *notes: str) -> ApprovalError:
    return ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            message,
            notes=notes,
            help="`approvals`, `activation` and `roles` of the policy say who is asked",
        )
    )


def active_policy(book: Book) -> CompiledPolicy:
    """Return the policy that holds.

    Raises:
        UsageError: If the ledger has none.
    """
    compiled = book.active()
    if compiled is None:
        raise UsageError(
            Problem(
                Code.NO_POLICY,
                "the ledger has no active policy",
                help="make one with  modicum init --policy policy.yaml",
            )
        )
    return compiled


def reason_text(given: str, of: str) -> str:
    """Return a reason without blanks at its ends.

    Args:
        given: The reason.
        of: What needs it, for messages.

    Raises:
        InputError: If there is none, or it is no text.
    """
    why = text(from_python(given), "the reason").strip()
    if not why:
        raise InputError(Problem(Code.MISSING_KEY, f"{of} needs a reason"))
    return why


# --- what is missing --------------------------------------------------------------


def missing_approvals(heard: Iterable[Hearing]) -> tuple[Hearing, ...]:
    """Return the approvals that are not given, or that somebody refuses."""
    return tuple(one for one in heard if not one.given)


def needs_approval(
    called: str, missing: Sequence[Hearing], command: str
) -> ApprovalError:
    """Return the error that people must agree first.

    Args:
        called: What people call it.
        missing: The approvals that are not given.
        command: The command by which somebody agrees.
    """
    return ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            f"{called} needs approval",
            notes=tuple(
                f"{hearing_text(one)} ({place(one.approval.mark)})" for one in missing
            ),
            help=_remedy(missing, command),
        )
    )


def _remedy(missing: Sequence[Hearing], command: str) -> str:
    stuck = [one for one in missing if one.missing > len(one.left) and not one.refused]
    if not stuck:
        return f"they agree with  {command} FILE --reason …"
    if all(one.missing <= len(one.left) + len(one.asking) for one in stuck):
        return "let somebody else ask for it, who is not needed to approve it"
    return "name people in `roles` of the policy"


def hearing_text(one: Hearing) -> str:
    """Return where an approval stands, in words."""
    said = [approval_text(one.approval)]
    if one.agreed:
        said.append(f"approved by {_names(one.agreed)}")
    if one.refused:
        said.append(f"rejected by {_names(one.refused)}, who must take that back")
    if one.missing:
        more = f"{one.missing} more" if one.agreed else str(one.missing)
        could = f"of {_names(one.left)}" if one.left else "and nobody is left to ask"
        said.append(f"missing {more} {could}")
        if one.asking:
            verb = "asks" if len(one.asking) == 1 else "ask"
            said.append(f"not counted: {_names(one.asking)}, who {verb} for it")
    return "; ".join(said)


def _names(people: Sequence[str], most: int = 10) -> str:
    left = len(people) - most
    return ", ".join(people[:most]) + (f" and {left} more" if left > 0 else "")


def hearing_to_dict(one: Hearing) -> dict[str, object]:
    """Return where an approval stands, as plain JSON (docs/reference/json.md)."""
    return {
        **approval_to_dict(one.approval),
        "given": one.given,
        "missing": one.missing,
        "approved_by": list(one.agreed),
        "rejected_by": list(one.refused),
        "left": list(one.left),
        "asking": list(one.asking),
    }


def approval_to_dict(approval: Approval) -> dict[str, object]:
    """Return what an approval asks for, as plain JSON."""
    return {
        "need": approval.need,
        "from": list(approval.roles),
        "requester_may_approve": approval.requester_may_approve,
    }
