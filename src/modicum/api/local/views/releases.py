"""Public forms of releases: status, loss and history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from modicum.accounting.grid import DELTA, coordinate_name
from modicum.api.local.decision import Decision, LossesShown
from modicum.api.local.explanation.denial_text import amount
from modicum.api.local.explanation.remedies import Explanation, Options
from modicum.api.local.history import ReleaseEntry
from modicum.api.schema import release as schema
from modicum.api.schema.ledger import Head
from modicum.api.schema.shape import Plain
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT
from modicum.ledger import RecordedRelease, Standing
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import Vocabulary
from modicum.release.parts import part_to_plain
from modicum.release.stored_description import derivations


def listed_view(one: Standing) -> schema.ListedRelease:
    """Return the status of a release, as a list item."""
    return schema.ListedRelease(
        release=one.id,
        status=one.status.value,
        entry=one.seq,
        day=date.fromordinal(one.day).isoformat(),
        expires_at=one.expires_at or None,
    )


def release_view(
    standing: Standing, release: RecordedRelease, vocabulary: Vocabulary
) -> schema.PricedRelease:
    """Return a release: its description, loss and status."""
    return schema.PricedRelease(
        release=release.id,
        status=standing.status.value,
        entry=standing.seq,
        expires_at=standing.expires_at or None,
        labels=dict(release.labels),
        metadata=dict(release.metadata),
        content=release.content,
        mechanisms=tuple(
            _mechanism_to_dict(one, vocabulary) for one in release.mechanisms
        ),
    )


def details_view(
    standing: Standing,
    release: RecordedRelease,
    vocabulary: Vocabulary,
    story: Iterable[ReleaseEntry],
    recorded: Plain | UnsetType = UNSET,
) -> schema.ReleaseDetails:
    """Return a release with its history."""
    return schema.ReleaseDetails(
        **asdict(release_view(standing, release, vocabulary)),
        day=date.fromordinal(standing.day).isoformat(),
        story=tuple(map(_event_view, story)),
        recorded=recorded,
    )


def _event_view(one: ReleaseEntry) -> schema.ReleaseEvent:
    body = one.event.body
    return schema.ReleaseEvent(
        entry=one.seq,
        at=one.event.at,
        actor=one.event.actor,
        kind=body.kind,
        approved_by=tuple(getattr(body, "approved_by", ())),
        blocking=tuple(getattr(body, "blocking", ())),
        unmatched=tuple(getattr(body, "unmatched", ())),
        reason=getattr(body, "reason", "") or getattr(body, "text", "") or None,
    )


def _mechanism_to_dict(
    one: RecordedMechanism, vocabulary: Vocabulary
) -> dict[str, object]:
    losses = {
        unit: {
            coordinate_name(index): amount(
                units, DELTA_UNIT if index == DELTA else LOSS_UNIT
            )
            for index, units in enumerate(loss.coordinates)
        }
        for unit, loss in one.losses.items()
    }
    return {
        **one.description,
        "labels": dict(one.labels),
        **part_to_plain(one.part),
        "losses": losses,
        "derived": dict(derivations(one.description, one.part, one.losses, vocabulary)),
    }


def decision_view(
    decision: Decision,
    found: Explanation | None = None,
    *,
    text: bool = False,
    losses: LossesShown = "all",
) -> schema.Decision:
    """Return a decision, with why it is denied."""
    shown = decision.view(found, losses="all" if text else losses)
    if not text:
        return shown
    added = None if found is None else found.details
    return replace(shown, text=replace(decision.details, added=added))


def options_view(decision: Decision, found: Options) -> schema.Options:
    """Return the single changes after which a release would be allowed."""
    return schema.Options(
        decision="allow" if decision.allowed else "deny",
        release=decision.release,
        options=tuple(one.view for one in found),
        ended_early=found.ended_early,
        ledger=Head(seq=decision.seq, head=decision.head),
    )
