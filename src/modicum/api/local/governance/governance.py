"""People have a say: who is asked, and who is missing, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from modicum.api.local.balances import Book
from modicum.api.local.decision import approval_text
from modicum.core.document import from_python
from modicum.core.errors import (
    ApprovalError,
    Code,
    InputError,
    Problem,
    UsageError,
)
from modicum.core.reader import place, text
from modicum.core.text import shortened
from modicum.ledger.decision.approvals import Hearing
from modicum.policy import CompiledPolicy, Policy
from modicum.policy.declarations.roles import meant_by


def refused(message: str, *notes: str) -> ApprovalError:
    """Return the error of somebody who may not say what they say.

    Args:
        message: What they may not.
        notes: Why.
    """
    return ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            message,
            notes=notes,
            help="`approvals`, `activation` and `roles` of the policy say who is asked",
        )
    )


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
        said.append(f"approved by {shortened(one.agreed, 10)}")
    if one.refused:
        said.append(
            f"rejected by {shortened(one.refused, 10)}, who must take that back"
        )
    if one.missing:
        more = f"{one.missing} more" if one.agreed else str(one.missing)
        could = (
            f"of {shortened(one.left, 10)}" if one.left else "and nobody is left to ask"
        )
        said.append(f"missing {more} {could}")
        if one.asking:
            verb = "asks" if len(one.asking) == 1 else "ask"
            said.append(f"not counted: {shortened(one.asking, 10)}, who {verb} for it")
    return "; ".join(said)
