"""Entries of the log, as lists show them."""

from __future__ import annotations

from modicum.api.schema.ledger import Entry
from modicum.ledger import Event, Record
from modicum.ledger.log import escrow_events, events
from modicum.ledger.log.events import Body, event_name
from modicum.ledger.log.request_events import PolicyProposed
from modicum.ledger.state.escrow import EscrowBody

#: A remark is cut to so many characters in a list.
_SHOWN = 60


def entry_view(record: Record, event: Event) -> Entry:
    """Return an entry as an item of a list.

    Args:
        record: The entry as it is stored.
        event: What it says.
    """
    return Entry(
        seq=record.seq,
        at=event.at,
        actor=event.actor,
        kind=event_name(event.body),
        what=what_of(event.body),
        blocking=getattr(event.body, "blocking", ()),
        hash=record.hash,
    )


def what_of(body: Body) -> str:
    """Return what an event is about, in few words.

    Args:
        body: The event.
    """
    match body:
        case (
            events.PolicyActivated(name=name, digest=digest)
            | PolicyProposed(name=name, digest=digest)
        ):
            return f"{name} {digest[:12]}"
        case events.ApprovalGiven(subject=subject, id=identifier, approves=approves):
            named = identifier[:12] if subject == "policy" else identifier
            return f"{subject} {named}: {'approved' if approves else 'rejected'}"
        case events.Annotated(about=about, text=text):
            said = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
            return f"{about}: {said}" if about else said
        case events.GroupActivated(group=group) | events.GroupRetired(group=group):
            return f"group {group}"
        case (
            events.DisclosureRecorded(id=identifier)
            | events.RoundOpened(id=identifier)
            | events.PlanCommitted(id=identifier)
        ):
            return identifier
        case _ if isinstance(body, EscrowBody):
            return _what_of_flow(body)
        case _:
            return body.release if isinstance(body.release, str) else body.release.id


def _what_of_flow(body: EscrowBody) -> str:
    match body:
        case escrow_events.DataRegistered() | escrow_events.DataShredded():
            return f"{body.id} version {body.version}"
        case escrow_events.ContractProposed(contract=contract):
            return f"{contract.flow} {contract.id}"
        case escrow_events.FlowReleased(contract=contract, to=recipient):
            return f"{contract[:12]} to {recipient}"
        case _:
            return body.contract[:12]
