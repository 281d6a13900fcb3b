"""Releases as plain JSON: where each stands, what it costs, and its story."""

from __future__ import annotations

from datetime import date

from modicum.accounting.grid import DELTA, coordinate_name
from modicum.core.exact import DELTA_UNIT, LOSS_UNIT
from modicum.ledger import RecordedRelease, Standing
from modicum.ledger.log.events import event_name
from modicum.ledger.log.recorded import RecordedMechanism
from modicum.release import Vocabulary
from modicum.release.described import derivations
from modicum.release.parts import part_to_plain
from modicum.workspace.explaining.explain import json_number
from modicum.workspace.release_story import Happened


def listed_to_dict(one: Standing) -> dict[str, object]:
    """Return where a release stands, as an item of a list.

    Args:
        one: Where it stands.
    """
    return {
        "release": one.id,
        "status": one.status.value,
        "entry": one.seq,
        "day": date.fromordinal(one.day).isoformat(),
        "expires_at": one.expires_at or None,
    }


def release_to_dict(
    standing: Standing, release: RecordedRelease, vocabulary: Vocabulary
) -> dict[str, object]:
    """Return a release as plain JSON.

    Args:
        standing: Where it stands.
        release: What it is and costs.
        vocabulary: The units of the policy, to tell how losses are derived.
    """
    return {
        "release": release.id,
        "status": standing.status.value,
        "entry": standing.seq,
        "expires_at": standing.expires_at or None,
        "labels": dict(release.labels),
        "metadata": dict(release.metadata),
        "content": release.content,
        "mechanisms": [
            _mechanism_to_dict(one, vocabulary) for one in release.mechanisms
        ],
    }


def happened_to_dict(one: Happened) -> dict[str, object]:
    """Return an entry about a release as plain JSON.

    Args:
        one: The entry.
    """
    body = one.event.body
    return {
        "entry": one.seq,
        "at": one.event.at,
        "actor": one.event.actor,
        "kind": event_name(body),
        "approved_by": list(getattr(body, "approved_by", ())),
        "blocking": list(getattr(body, "blocking", ())),
        "reason": getattr(body, "reason", "") or getattr(body, "text", "") or None,
    }


def _mechanism_to_dict(
    one: RecordedMechanism, vocabulary: Vocabulary
) -> dict[str, object]:
    losses = {
        unit: {
            coordinate_name(index): json_number(
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
