"""Decisions about a release: new, repeated, or corrected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from modicum.api.local.balances import LedgerBalances
from modicum.api.local.decision import Decision
from modicum.api.local.explanation.denial_text import unmatched_names
from modicum.api.schema.release import Status
from modicum.core.diagnostics import shortened
from modicum.core.document import Entries, Node
from modicum.core.errors import (
    Code,
    ConflictError,
    Mark,
    Problem,
)
from modicum.core.reader import Problems, place
from modicum.ledger import (
    Balances,
    RecordedRelease,
    ReleaseStatus,
    Standing,
    Verdict,
    decide,
    record_release,
)
from modicum.ledger.cells.axes import space_of
from modicum.ledger.decision.approvals import release_approvals
from modicum.ledger.decision.balances import facts_of
from modicum.ledger.state.lifecycle import id_taken
from modicum.ledger.state.pending import requested_by_another
from modicum.policy import CompiledPolicy, Policy
from modicum.policy.predicates import holds, predicate_text
from modicum.release import ReleaseDraft, read_and_price
from modicum.release.sampling import sampling_note
from modicum.release.unit_losses import STATED

#: A release in any form: a draft, plain data as in a file, or a tree with places.
Description: TypeAlias = "ReleaseDraft | Mapping[str, object] | Node"

#: Maximum number of mechanisms listed in one notice.
_NAMED_MAX = 5


def price_release(
    release: Description, compiled: CompiledPolicy, *, guarded: bool = True
) -> RecordedRelease:
    """Return a release, read and priced under a policy, as the ledger stores it.

    Args:
        release: The release.
        compiled: The policy.
        guarded: Whether the policy's guards apply. Past releases are counted, however
            they are described.

    Raises:
        InputError: With every mistake found.
    """
    vocabulary = compiled.policy.vocabulary
    priced = read_and_price(release, vocabulary)
    recorded = record_release(priced)
    if guarded and compiled.policy.guards:
        marks = [one.mechanism.mark for one in priced.mechanisms]
        _refuse_guarded(recorded, compiled.policy, marks)
    return recorded


def _refuse_guarded(
    recorded: RecordedRelease, policy: Policy, marks: Sequence[Mark | None]
) -> None:
    """Refuse mechanisms whose description lacks what a guard of the policy requires.

    Raises:
        InputError: With the guard's message, for each mechanism and guard.
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
                            f"guard `{guard.name}` ({place(guard.mark)}) requires"
                            f" {predicate_text(guard.unless)}",
                        ),
                    )
                )
    found.raise_any()


def place_of(release: Description) -> Mark | None:
    """Return the position of a release's id, if it comes from a file."""
    if not isinstance(release, Entries):
        return None
    return next((v.mark for key, v in release.entries if key.text == "release"), None)


class Evaluation(msgspec.Struct, frozen=True):
    """The actor and the ledger of an evaluation.

    Attributes:
        ledger: The display name of the ledger.
        book: The book, read up to the head.
        actor: The actor.
    """

    ledger: str
    book: LedgerBalances
    actor: str


def every_period(release: RecordedRelease, compiled: CompiledPolicy) -> str:
    """Return the charged periods of a release without `periods`, such as `every day`.

    Args:
        release: The release.
        compiled: The policy.

    Returns:
        Empty if it names them, or no rule adds up by periods.
    """
    vocabulary = compiled.policy.vocabulary
    static = vocabulary.population.static
    if not vocabulary.clocks or not any(
        one.part.periods is None and static.isdisjoint(one.attributes)
        for one in release.mechanisms
    ):
        return ""
    return charged_periods(compiled)


def charged_periods(compiled: CompiledPolicy) -> str:
    """Return the periods that rules add up by, such as `every day`; empty for none.

    Args:
        compiled: The policy.
    """
    vocabulary = compiled.policy.vocabulary
    units = dict.fromkeys(base.unit for base in compiled.rules.bases)
    periods = dict.fromkeys(space_of(unit, vocabulary).period for unit in units)
    return " and ".join(f"every {one}" for one in periods if one is not None)


def first_answer(
    evaluation: Evaluation, balances: Balances, recorded: RecordedRelease, day: int
) -> Decision:
    """Return the decision about a release that the ledger does not know.

    Args:
        evaluation: The actor and the ledger.
        balances: The balances.
        recorded: The release.
        day: The day on which it is decided, as an ordinal.
    """
    verdict = decide(balances, recorded, day)
    return answer_to(evaluation, balances.compiled, recorded, verdict)


def answer_to(
    evaluation: Evaluation,
    compiled: CompiledPolicy,
    recorded: RecordedRelease,
    verdict: Verdict,
    status: Status = "checked",
    expires_at: str = "",
) -> Decision:
    """Return the decision about a release from a verdict at the present head.

    Args:
        evaluation: The actor and the ledger.
        compiled: The policy that it was decided by.
        recorded: The release.
        verdict: The decision of each rule.
        status: Its resulting status.
        expires_at: When its reservation expires; empty if there is none.
    """
    book, state = evaluation.book, evaluation.book.state
    is_active = book.is_active(compiled)
    notices = []
    if verdict.uncovered and not verdict.unmatched:
        names = unmatched_names(verdict.uncovered)
        notices.append(f"unmatched, and allowed: {names}; nothing limits it in total")
    if state.policy is None:
        notices.append(
            f"{evaluation.ledger} is empty: the decision assumes an empty ledger"
        )
    elif not is_active:
        notices.append(
            "decided under a policy that is not active"
            f" (`{state.policy.name}`, {state.policy.digest[:12]})"
        )
    notices.extend(_samples(recorded))
    notices.extend(_derived(recorded))
    if compiled.policy.vocabulary.population.static:
        notices.extend(_static(recorded, compiled))
    return Decision(
        release=recorded.id,
        verdict=verdict,
        status=status,
        policy_name=compiled.policy.name,
        policy_digest=compiled.policy.digest,
        policy_active=is_active,
        seq=state.seq,
        head=state.head,
        expires_at=expires_at,
        notices=tuple(notices),
        approvals=tuple(
            one.approval
            for one in release_approvals(
                recorded, compiled.policy, state, evaluation.actor
            )
            if not one.given
        ),
    )


def _samples(recorded: RecordedRelease) -> Iterator[str]:
    """Yield which mechanisms must draw a sample or a number of runs, and how.

    Their losses rely on it.
    """
    for one in recorded.mechanisms:
        name = one.description.get("name", "?")
        sampled = sampling_note(one.description)
        if sampled:
            yield f"mechanism `{name}` runs {sampled}, which must stay secret"
        if "selection" in one.description:
            from modicum.release.selection import selection_note

            repeated = selection_note(one.description)
            yield (
                f"mechanism `{name}` runs {repeated}: the number and the other runs"
                " must stay secret"
            )


def _derived(recorded: RecordedRelease) -> Iterator[str]:
    """Yield of which units the loss follows from that of another unit, and how."""
    found: dict[tuple[str, str], list[str]] = {}
    for number, one in enumerate(recorded.mechanisms):
        if one.sources is None or STATED.issuperset(one.sources.values()):
            continue
        for unit, source in one.sources.items():
            if source not in STATED:
                name = str(one.description.get("name", number + 1))
                found.setdefault((unit, source), []).append(name)
    for (unit, source), names in found.items():
        every = len(names) == len(recorded.mechanisms)
        of = "" if every else f" of {shortened(names, _NAMED_MAX)}"
        yield f"the loss{of} per {unit} is derived from {source}"


def _static(recorded: RecordedRelease, compiled: CompiledPolicy) -> Iterator[str]:
    """Yield which attributes have a release charged to every period."""
    read = {name for one in recorded.mechanisms for name in one.attributes}
    static = sorted(read & compiled.policy.vocabulary.population.static)
    every = charged_periods(compiled) if static else ""
    if every:
        names = shortened([f"`{one}`" for one in static])
        yield (
            f"it reads {names}, declared static: it is charged to {every}, also to"
            " those that `periods` leaves out"
        )


def refuse_other(
    known: Standing, recorded: RecordedRelease, mark: Mark | None = None
) -> None:
    """Refuse a release that cannot use its id.

    Args:
        known: The status of the id.
        recorded: The release that was described.
        mark: The position of its id, for messages.

    Raises:
        ConflictError: If the id is in use with other contents, or was canceled.
    """
    if known.content != recorded.content:
        raise id_taken(known, mark)
    if not known.status.counts:
        raise ConflictError(
            Problem(
                Code.RELEASE_STATE,
                f"release `{recorded.id}` is {known.status.value}: its loss is not"
                " counted, and its id cannot be reused",
                mark,
                help="submit it under a new id; if it was published, record it under a"
                " new id",
            )
        )


class ConfusableIdError(ConflictError):
    """A new id looks like the id of a release.

    Args:
        identifier: The new id.
        existing: The id of the release, which may be hidden from who asks.
        mark: The position of the new id.
    """

    def __init__(self, identifier: str, existing: str, mark: Mark | None) -> None:
        super().__init__(
            Problem(
                Code.RELEASE_CONFLICT,
                f"the id `{identifier}` looks like that of release `{existing}`",
                mark,
                notes=(f"they are spelled {existing!a} and {identifier!a}",),
                help="give the new release an id that looks different",
            )
        )
        self.existing = existing


def refuse_lookalike(book: LedgerBalances, identifier: str, mark: Mark | None) -> None:
    """Refuse a new id that looks like the id of a release.

    Ids that are in the ledger already are not compared.

    Raises:
        ConfusableIdError: If it does.
    """
    existing = book.lookalike_of(identifier)
    if existing is not None:
        raise ConfusableIdError(identifier, existing, mark)


def refuse_requested(
    book: LedgerBalances, one: RecordedRelease, by: str, mark: Mark | None
) -> None:
    """Refuse a new release whose id another one has, or looks like that of one.

    Args:
        book: The book, read up to the head; the id is not in use.
        one: The release.
        by: The submitter.
        mark: The position of its id, for messages.

    Raises:
        ConflictError: If another actor requested different contents under this id, or
            it looks like the id of a release.
    """
    refuse_lookalike(book, one.id, mark)
    known = book.state.waiting.held_by_another(one.id, one.content, by)
    if known is not None:
        raise requested_by_another(known, mark)


def corrected_answer(
    evaluation: Evaluation,
    balances: Balances,
    known: Standing,
    charged: RecordedRelease,
    now: RecordedRelease,
) -> Decision:
    """Return the decision about a past release under a corrected description.

    Args:
        evaluation: The actor and the ledger.
        balances: The balances, this release included.
        known: Its status.
        charged: The release as it was charged.
        now: The release as it is to be charged.
    """
    balances.take_back(charged, known.day)
    try:
        decision = first_answer(evaluation, balances, now, known.day)
    finally:
        balances.charge(charged, known.day)
    return replace(decision, status=known.status.value)


def repeated_answer(
    evaluation: Evaluation,
    balances: Balances,
    known: Standing,
    charged: RecordedRelease,
) -> Decision:
    """Return the decision about an already accepted release; nothing is added.

    Args:
        evaluation: The actor and the ledger.
        balances: The balances, this release included.
        known: Its status.
        charged: The release as it was charged.
    """
    decision = corrected_answer(evaluation, balances, known, charged, charged)
    reserved = known.status is ReleaseStatus.RESERVED
    return replace(
        decision,
        retry=True,
        expires_at=known.expires_at if reserved else "",
    )
