"""The form in which a server tells decisions (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from modicum.remote.hearings import ToldApproval
from modicum.remote.rules import Head
from modicum.workspace.explaining.words import Added, RuleLines


class Loss(msgspec.Struct, frozen=True):
    """What a rule says to a release (docs/reference/json.md), on the filter's scale.

    Attributes:
        rule: The id of the rule.
        unit: Its privacy unit.
        stage: `release` or `history`.
        cell: The cell in words; None if the rule has one cell only.
        cells_denying: How many cells deny.
        allowed: Whether it lets the release pass.
        unlocked: What part of its budget is unlocked, from 0 to 1.
        measure: What is compared.
        before: What was charged before.
        alone: What the release adds.
        together: Both; infinite if no bound is proven.
        limit: What is admitted.
        budget: The budget in words.
        when: When the rule holds.
        undated: If the rule denies it, and would not deny it alone: its mechanisms that
            are charged to every period, because they name no `periods`.
        cause: Why it denies, if that is because of missing `periods`, in words.
    """

    rule: str
    unit: str
    stage: str
    cell: str | None
    cells_denying: int
    allowed: bool
    unlocked: float
    measure: str
    before: float
    alone: float
    together: float
    limit: float
    budget: str
    when: str
    undated: tuple[str, ...] = ()
    cause: str | None = None


class DecidedBy(msgspec.Struct):
    """The policy that it was decided by."""

    name: str
    digest: str
    active: bool


class ToldWords(msgspec.Struct):
    """The reasons of a decision in words, and what was found out about a denial."""

    reasons: tuple[RuleLines, ...] = ()
    added: Added | None = None


class ToldDecision(msgspec.Struct):
    """A decision."""

    decision: str
    release: str
    status: str
    retry: bool
    blocking: tuple[str, ...]
    policy: DecidedBy
    ledger: Head
    expires_at: str | None
    approvals: tuple[ToldApproval, ...]
    notices: tuple[str, ...]


def words_of(told: Mapping[str, object]) -> ToldWords:
    """Return the prose of a decision; none if it is not there, or not of this form.

    Args:
        told: The decision, as the server tells it.
    """
    try:
        return msgspec.convert(told.get("words") or {}, ToldWords)
    except msgspec.ValidationError:
        return ToldWords()
