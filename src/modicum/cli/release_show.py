"""`modicum release show`: a release as the ledger remembers it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger, ReleaseId
from modicum.cli.output import next_step, print_json, reporting, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.history import ReleaseEntry
    from modicum.ledger import RecordedRelease, Standing
    from modicum.ledger.log.recorded_release import RecordedMechanism
    from modicum.release import Vocabulary

#: Maximum number of coefficients that are shown.
_SHOWN_MAX = 8


def show(
    release: ReleaseId, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show a release: its contents, losses and history.

    For a denied one, shows when it was denied, and exits with code 4.
    """
    from modicum.api.local.history import denied_release, history_of
    from modicum.api.local.views.releases import details_view
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        view = open_view(ledger)
        book, read, now = view.current()
        standing = book.standing_at(release, now)
        if standing is None:
            raise denied_release(release, read(0))
        story = history_of(release, read(0))
        vocabulary = view.policy().policy.vocabulary
        if as_json:
            print_json(
                details_view(standing, view.release_of(standing), vocabulary, story)
            )
            return
        print_standing(standing)
        for line in _shown(standing, view.release_of(standing), story, vocabulary):
            print(printable(f"  {line}"))


def print_standing(standing: Standing) -> None:
    """Print the status of a release, in one line."""
    from modicum.ledger.state.lifecycle import ReleaseStatus

    status = standing.status
    first = status in (ReleaseStatus.RESERVED, ReleaseStatus.RECORDED)
    where = "entry" if first else "reserved in entry"
    print(printable(f"{standing.id}: {status.value} ({where} {standing.seq})"))


def _shown(
    standing: Standing,
    release: RecordedRelease,
    story: Iterable[ReleaseEntry],
    vocabulary: Vocabulary,
) -> Iterator[str]:
    from modicum.release.vocabulary import QUERY

    if standing.expires_at:
        step = next_step(standing.id, of_query=QUERY in release.metadata)
        yield f"reserved until {standing.expires_at}; {step}"
    for one in story:
        yield f"entry {one.seq}  {seconds(one.event.at)}  {_happened(one)}"
    for key, value in {**release.metadata, **release.labels}.items():
        yield f"{key}: {value}"
    for mechanism in release.mechanisms:
        yield from _mechanism(mechanism, vocabulary)


def _happened(one: ReleaseEntry) -> str:

    body = one.event.body
    more = [
        f"{label} {value if isinstance(value, str) else ', '.join(value)}"
        for label, value in (
            ("approved by", getattr(body, "approved_by", ())),
            ("denied by", getattr(body, "causes", ())),
            ("reason:", getattr(body, "reason", "")),
            ("remark:", getattr(body, "text", "")),
        )
        if value
    ]
    return "; ".join((f"{body.kind} by {one.event.actor}", *more))


def _mechanism(mechanism: RecordedMechanism, vocabulary: Vocabulary) -> Iterator[str]:
    from modicum.release.sampling import sampling_note
    from modicum.release.selection import selection_note
    from modicum.release.stored_description import derivations

    described: Mapping[str, Any] = mechanism.description
    yield f"mechanism {described.get('name')} ({described.get('kind')})"
    yield f"  reads {', '.join(mechanism.attributes) or 'no attribute'}"
    yield from (f"  {line}" for line in _part(mechanism))
    for note in (sampling_note(described), selection_note(described)):
        if note:
            yield f"  runs {note}"
    for key in ("parameters", "sensitivity", "contribution_bound"):
        values = described.get(key) or {}
        if values:
            text = ", ".join(f"{name} {value}" for name, value in values.items())
            yield f"  {text}" if key == "parameters" else f"  {_words(key)} {text}"
    for unit, taken in (described.get("participation") or {}).items():
        text = ", ".join(f"{name} {value}" for name, value in taken.items())
        yield f"  {text} per {unit}"
    coefficients = described.get("coefficients") or ()
    if coefficients:
        shown = ", ".join(coefficients[:_SHOWN_MAX])
        more = ", …" if coefficients[_SHOWN_MAX:] else ""
        yield f"  coefficients {shown}{more}"
    for unit, cost in (described.get("cost") or {}).items():
        text = json.dumps(cost, ensure_ascii=False)
        yield f"  declared cost per {unit}: {text}"
    derived = derivations(described, mechanism.part, mechanism.losses, vocabulary)
    for unit, loss in mechanism.losses.items():
        how = f"  (derived from {derived[unit]})" if unit in derived else ""
        yield f"  per {unit}: {_loss_text(loss.coordinates)}{how}"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _part(mechanism: RecordedMechanism) -> Iterator[str]:
    """Yield whose rows a mechanism reads, and of when; nothing if it is all of them."""
    from modicum.api.local.alternatives.part_text import box_text, days_text

    part = mechanism.part
    if part.where is not None:
        yield f"where {'; or '.join(map(box_text, part.where))}"
    if part.periods is not None:
        yield f"periods {', '.join(days_text(*span) for span in part.periods)}"
    if part.groups is not None:
        spans = (dict.fromkeys(map(str, span)) for span in part.groups)
        yield f"groups {', '.join(map('..'.join, spans))}"


def _loss_text(coordinates: tuple[int, ...]) -> str:
    from modicum.accounting.grid import DELTA, EPS, MU2, RHO, coordinate_name
    from modicum.api.local.explanation.denial_text import amount_text
    from modicum.core.rationals import DELTA_UNIT

    called = {MU2: "mu2 (mu squared)"}
    parts = [
        f"{called.get(index, coordinate_name(index))} {amount_text(coordinates[index])}"
        for index in (EPS, RHO, MU2)
    ]
    if coordinates[DELTA]:
        parts.append(f"delta {amount_text(coordinates[DELTA], DELTA_UNIT)}")
    return ", ".join(parts)
