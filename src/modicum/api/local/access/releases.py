"""Which releases an export is about, and their grants at the head of a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modicum.api.local.access.grants import READING, Access, Granting, no_access
from modicum.api.local.access.row_filters import Columns
from modicum.api.local.history import denied_release
from modicum.api.local.ledger_view import LedgerView
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    UsageError,
)
from modicum.ledger import Standing
from modicum.ledger.state.rounds import Planning
from modicum.release import Vocabulary

#: Maximum number of finished releases listed in a message.
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """The subject of an export; exactly one field is set.

    Attributes:
        releases: Ids of releases; each must be reserved or started.
        plan: The id of a plan: its releases that may read something.
        round: The id of a round: those of all its plans.
    """

    releases: tuple[str, ...] = ()
    plan: str = ""
    round: str = ""


def exported_access(view: LedgerView, wanted: Wanted, columns: Columns) -> Access:
    """Return the grants of releases at the head of a ledger. Writes nothing."""
    book, read, now = view.current()
    active = book.active()
    if active is None:
        raise UsageError(Problem(Code.NO_POLICY, "the ledger has no active policy"))
    vocabulary = active.policy.vocabulary
    _refuse_unknown(columns, vocabulary)
    standings = []
    for identifier in _identifiers(book.state.planning, wanted):
        standing = book.standing_at(identifier, now)
        if standing is None:
            raise denied_release(identifier, read(0))
        standings.append(standing)
    reading = tuple(one for one in standings if one.status in READING)
    others = tuple(one for one in standings if one.status not in READING)
    if others and wanted.releases:
        raise no_access(others[0])
    if not reading:
        raise _all_over(wanted.plan or wanted.round, others)
    granting = Granting(vocabulary, book.state.policies, columns)
    return Access(
        seq=book.state.seq,
        head=book.state.head,
        policy=active.policy.digest,
        grants=tuple(
            grant
            for one in reading
            for grant in granting.grants(one, view.release_of(one))
        ),
        left_out=others,
    )


def _identifiers(planning: Planning, wanted: Wanted) -> Iterable[str]:
    """Return the ids of the selected releases, without duplicates."""
    found = wanted.releases
    if wanted.plan:
        plan = planning.plans.get(wanted.plan)
        if plan is None:
            raise _unknown("plan", wanted.plan, planning.plans)
        found = plan.releases
    elif wanted.round:
        if wanted.round not in planning.rounds:
            raise _unknown("round", wanted.round, planning.rounds)
        plans = planning.plans.values()
        found = tuple(
            each for one in plans if one.round == wanted.round for each in one.releases
        )
    if not found:
        named = wanted.plan or wanted.round
        message = f"`{named}` contains no release"
        raise InputError(Problem(Code.PLAN_UNKNOWN, message))
    return dict.fromkeys(found)


def _all_over(named: str, others: Sequence[Standing]) -> ConflictError:
    """Return the error for a plan or round all of whose releases are finished."""
    shown = [f"`{one.id}` is {one.status.value}" for one in others[:_NAMED]]
    if len(others) > _NAMED:
        shown.append(f"{len(others) - _NAMED} more are finished")
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"no release of `{named}` grants access any more",
            notes=(", ".join(shown),),
            help="submit what is still needed again, in a new plan",
        )
    )


def _refuse_unknown(columns: Columns, vocabulary: Vocabulary) -> None:
    """Refuse a column for something that the policy does not know: it was mistyped."""
    known = {
        *vocabulary.attributes,
        *vocabulary.population.partitions,
        *vocabulary.clocks,
        *(unit.id for unit in vocabulary.unit_facts.values()),
    }
    for name in columns.named:
        if name not in known:
            raise InputError(
                Problem(
                    Code.UNKNOWN_ATTRIBUTE,
                    f"a column is given for `{name[:60]}`, which the policy does not"
                    " define",
                    help="known: " + ", ".join(sorted(known)[:20]),
                )
            )


def _unknown(what: str, identifier: str, known: Iterable[str]) -> InputError:
    listed = ", ".join(list(known)[-20:])
    return InputError(
        Problem(
            Code.PLAN_UNKNOWN,
            f"unknown {what} `{identifier[:200]}`",
            help=f"known: {listed}" if listed else "",
        )
    )
