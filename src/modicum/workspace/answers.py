"""Answers to a release: what the rules say, the first time and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from modicum.core.document import Entries, Items, Node, Scalar, from_python
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    Mark,
    Problem,
)
from modicum.core.reading import Problems, place
from modicum.ledger import (
    Balances,
    RecordedRelease,
    ReleaseStatus,
    Standing,
    decide,
    record_release,
)
from modicum.ledger.balances import facts_of
from modicum.ledger.state import id_taken
from modicum.policy import CompiledPolicy, Policy
from modicum.policy.model import Approval
from modicum.policy.predicates import Facts, Scope, holds, words
from modicum.release import ReleaseDraft, parse_release, price
from modicum.workspace.book import Book
from modicum.workspace.decision import Decision, approval_text

#: A release in any form: a draft, plain data as in a file, or a tree with places.
Description: TypeAlias = "ReleaseDraft | Mapping[str, object] | Node"


def price_release(
    release: Description, compiled: CompiledPolicy, *, guarded: bool = True
) -> RecordedRelease:
    """Return a release, read and priced under a policy, as the ledger keeps it.

    Args:
        release: The release.
        compiled: The policy.
        guarded: Whether the guards of the policy look at it. What happened already
            is counted, however badly it is described.

    Raises:
        InputError: With every mistake found.
    """
    vocabulary = compiled.policy.vocabulary
    if isinstance(release, ReleaseDraft):
        node = release.to_node()
    elif isinstance(release, Scalar | Items | Entries):
        node = release
    else:
        node = from_python(release)
    described = parse_release(node, vocabulary)
    recorded = record_release(price(described, vocabulary))
    if guarded:
        marks = [mechanism.mark for mechanism in described.mechanisms]
        _refuse_guarded(recorded, compiled.policy, marks)
    return recorded


def _refuse_guarded(
    recorded: RecordedRelease, policy: Policy, marks: Sequence[Mark | None]
) -> None:
    """Refuse mechanisms whose description lacks what a guard of the policy asks for.

    Raises:
        InputError: With the guard's own words, for each mechanism and guard.
    """
    found = Problems()
    facts = facts_of(recorded, policy.vocabulary)
    for mechanism, one, mark in zip(recorded.mechanisms, facts, marks, strict=True):
        for guard in policy.guards:
            if not holds(guard.unless, one):
                found.add(
                    Problem(
                        Code.GUARDED,
                        f"mechanism `{mechanism.description.get('name', '?')}`:"
                        f" {guard.message}",
                        mark,
                        notes=(
                            f"guard `{guard.name}` ({place(guard.mark)}) asks for"
                            f" {words(guard.unless)}",
                        ),
                    )
                )
    found.raise_any()


def approvals_of(
    recorded: RecordedRelease, compiled: CompiledPolicy
) -> tuple[Approval, ...]:
    """Return the approvals that a release needs under a policy.

    A mechanism may have labels of its own, which rules go by. So an approval applies
    if it does to the release as a whole, or as it reads with the labels of any one of
    its mechanisms.

    Args:
        recorded: The release.
        compiled: The policy.
    """
    facts = facts_of(recorded, compiled.policy.vocabulary)
    readings = [reading for one in facts for reading in (one, _by_own_labels(one))]
    return tuple(
        approval
        for approval in compiled.policy.approvals
        if any(holds(approval.when, reading) for reading in readings)
    )


def _by_own_labels(facts: Facts) -> Facts:
    """Return facts as if the release had the labels of the mechanism."""
    own = {
        (Scope.RELEASE, label): value
        for (scope, label), value in facts.labels.items()
        if scope is Scope.MECHANISM
    }
    return replace(facts, labels={**facts.labels, **own})


def needs_approval(decision: Decision) -> ApprovalError:
    """Return the error that a release must be approved before it is reserved."""
    return ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            f"release `{decision.release}` needs approval",
            notes=tuple(
                f"{approval_text(approval)} ({place(approval.mark)})"
                for approval in decision.approvals
            ),
            help="this version cannot record approvals: nothing was reserved;"
            " what happened already is counted by  modicum release record-past",
        )
    )


def place_of(release: Description) -> Mark | None:
    """Return where the id of a release stands, if it stands in a file."""
    if not isinstance(release, Entries):
        return None
    return next((v.mark for key, v in release.entries if key.text == "release"), None)


def first_answer(
    ledger: str, book: Book, balances: Balances, recorded: RecordedRelease
) -> Decision:
    """Return what the rules say to a release that the ledger does not know."""
    compiled, state = balances.compiled, book.state
    verdict = decide(balances, recorded)
    notices = [
        f"no rule is about mechanism `{name}`: nothing limits it"
        for name in verdict.uncovered
    ]
    if state.policy is None:
        notices.append(
            f"{ledger} holds nothing yet; the first submit activates this policy"
        )
    elif not book.is_active(compiled):
        notices.append(
            "decided under another policy than the active one"
            f" (`{state.policy.name}`, {state.policy.digest[:12]})"
        )
    return Decision(
        release=recorded.id,
        verdict=verdict,
        status="checked",
        policy_name=compiled.policy.name,
        policy_digest=compiled.policy.digest,
        policy_active=book.is_active(compiled),
        seq=state.seq,
        head=state.head,
        notices=tuple(notices),
        approvals=approvals_of(recorded, compiled),
    )


def repeated_answer(
    ledger: str,
    book: Book,
    balances: Balances,
    known: Standing,
    recorded: RecordedRelease,
    *,
    mark: Mark | None,
) -> Decision:
    """Return the answer to a release that stands already; nothing is added.

    Args:
        ledger: What people call the ledger.
        book: The book, read up to the head.
        balances: What was charged, this release included.
        known: Where it stands.
        recorded: The release that was described.
        mark: Where its id stands, for messages.

    Raises:
        ConflictError: If the id stands with other contents, or was given up.
    """
    if known.release.content != recorded.content:
        raise id_taken(known, mark)
    if not known.status.counts:
        raise ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"release `{recorded.id}` is {known.status.value}: its loss is not"
                " counted, and its id is not used again",
                mark,
                help="if it did happen, record it under a new id",
            )
        )
    balances.take_back(known.release)
    try:
        decision = first_answer(ledger, book, balances, recorded)
    finally:
        balances.charge(known.release)
    reserved = known.status is ReleaseStatus.RESERVED
    return replace(
        decision,
        status=known.status.value,
        retry=True,
        expires_at=known.expires_at if reserved else "",
    )
