"""Logs of escrows as plain entries: drawn, changed, and chained again."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, TypeAlias

from msgspec.structs import replace
from oracle.escrow import digest_of

from modicum.api.local.evaluation import price_release
from modicum.core.errors import ModicumError
from modicum.ledger import GENESIS, Event, Record, State
from modicum.ledger.log.approval_statement import signed, statement_bytes
from modicum.ledger.log.chain import seal
from modicum.ledger.log.codec import from_plain
from modicum.ledger.log.escrow_events import DataRegistered
from modicum.ledger.log.events import ApprovalGiven, Body, ReleaseReserved
from modicum.ledger.log.recorded_release import RecordedRelease
from samples.audited import activated, key
from samples.contracts import PEOPLE, SHA, Drawer
from samples.small import compiled, counts

Plain: TypeAlias = dict[str, Any]

#: The key of every owner who has one.
OWN = key(7)
#: A policy that the auditor of the tests can count under.
POLICY = """
modicum: policy/v1
name: charged
dp: {filter: zcdp-v1}
units: {user: {id: user_id}}
schema: {attributes: {diagnosis: low}}
policies: [{name: all, when: "true", unit: user, budget: {rho: 2}}]
"""
DIGEST = compiled(POLICY).policy.digest


@cache
def drawn(seed: int, steps: int = 150) -> tuple[Record, ...]:
    """Return a log in which only happens what may."""
    state, rows = State(), list[Record]()
    drawer = Drawer(
        random.Random(seed),
        state.escrow,
        lambda contract: state.approvals.get(("contract", contract), ()),
        _releases(),
    )
    draws = ("olga", activated(POLICY)), *(None for _ in range(steps))
    for draw in draws:
        drawer.now += draw is None and drawer.random.random() < 0.08
        by, body = draw or drawer.draw()
        head = rows[-1].hash if rows else GENESIS
        event = Event(drawer.at(), by, _here(body, by, head))
        row = seal(event, len(rows) + 1, head)
        try:
            state.apply(event, row.hash)
        except ModicumError:
            continue
        rows.append(row)
    return tuple(rows)


@cache
def _releases() -> tuple[RecordedRelease, ...]:
    policy = compiled(POLICY)
    return tuple(
        price_release(counts(f"r-{number}", rho="0.000001"), policy)
        for number in range(1, 30)
    )


def _here(body: Body, by: str, head: str) -> Body:
    """Return what the drawer drew, under this policy, and with a key that can sign."""
    if isinstance(body, ReleaseReserved):
        return replace(body, policy=DIGEST)
    if isinstance(body, DataRegistered):
        own = {
            name: (OWN.public.hex(),) if keys else ()
            for name, keys in body.owners.items()
        }
        return replace(body, owners=own)
    if isinstance(body, ApprovalGiven):
        there = replace(body, head=head, key="", signature="")
        if body.key:
            return signed(there, by=by, policy=DIGEST, signer=OWN)
        return there
    return body


def plain(rows: Sequence[Record]) -> list[Plain]:
    """Return what happens in a log."""
    return [json.loads(one.payload)["event"] for one in rows]


def chained(events: Sequence[Plain]) -> list[Record]:
    """Return a log in which this happens, without a flaw in its chain.

    Who forges it has every key: what was signed is signed again.
    """
    rows, head = list[Record](), GENESIS
    for seq, event in enumerate(events, 1):
        votes = event["kind"] == "approval-given"
        here = _said_at(event, head) if votes else event
        record = {"seq": seq, "prev": head, "event": here}
        text = json.dumps(
            record, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        head = hashlib.sha256(text.encode()).hexdigest()
        rows.append(Record(seq, text.encode(), head))
    return rows


def _said_at(event: Plain, head: str) -> Plain:
    event = deepcopy(event)
    event["body"]["head"] = head
    if event["body"]["key"]:
        body = from_plain(event).body
        assert isinstance(body, ApprovalGiven)
        by, own = event["actor"], event["body"]["key"]
        message = statement_bytes(body, by=by, policy=DIGEST, key=own)
        event["body"]["signature"] = OWN.signature_of(message).hex()
    return event


# --- forging ------------------------------------------------------------------


def forged(events: list[Plain], luck: random.Random) -> list[Plain]:
    """Return a log with one entry removed, moved, doubled or changed."""
    found = deepcopy(events)
    place = luck.randrange(1, len(found))
    luck.choice((_remove, _double, _move, _postpone, *(_change,) * 6))(
        found, place, luck
    )
    return found


def _remove(events: list[Plain], place: int, _: random.Random) -> None:
    del events[place]


def _double(events: list[Plain], place: int, _: random.Random) -> None:
    events.insert(place, deepcopy(events[place]))


def _move(events: list[Plain], place: int, luck: random.Random) -> None:
    event = events.pop(place)
    to = luck.randrange(1, len(events) + 1)
    event["at"] = events[to - 1]["at"]
    events.insert(to, event)


def _postpone(events: list[Plain], place: int, luck: random.Random) -> None:
    day = luck.randint(1, 31)
    at = f"2026-01-{day:02}T00:00:00.000000Z"
    for event in events[place:]:
        event["at"] = max(event["at"], at)


def _change(events: list[Plain], place: int, luck: random.Random) -> None:
    event = events[place]
    body, kind = event["body"], event["kind"]
    changes: list[Callable[[], None]] = [
        lambda: event.update(actor=luck.choice(PEOPLE)),
    ]
    if luck.random() < 0.05:
        event["v"] = 4
    new = luck.choice(PEOPLE)
    match kind:
        case "data-registered":
            changes = [
                lambda: body.update(version=body["version"] + luck.choice((-1, 1, 2))),
                lambda: body.update(quorum=luck.randint(0, 3)),
                lambda: body.update(bits_max=luck.choice((0, 5, 64))),
                lambda: body.update(contracts_max=luck.randint(0, 3)),
                lambda: body["owners"].update({new: [OWN.public.hex()]}),
                lambda: body["owners"].pop(luck.choice(list(body["owners"]))),
            ]
        case "contract-proposed":
            changes += [lambda: _change_contract(events, place, luck)] * 6
        case "approval-given":
            changes += [
                lambda: body.update(approves=not body["approves"]),
                lambda: body.update(key="", signature=""),
                lambda: body.update(content=SHA),
            ]
        case "flow-begun" | "flow-withheld" | "flow-failed":
            changes = [lambda: body.update(run=body["run"] + 1), *changes]
            if kind == "flow-withheld":
                changes.append(lambda: body["results"].update(private=SHA))
        case "flow-released":
            changes = [lambda: body.update(to=new)]
        case "disclosure-recorded":
            changes = [lambda: body.update(id="something else")]
        case _:
            pass
    luck.choice(changes)()


def _change_contract(events: list[Plain], place: int, luck: random.Random) -> None:
    """Change a contract; all that is about it is about what it says now."""
    contract = events[place]["body"]["contract"]
    before, terms = digest_of(contract), contract["terms"]
    changes: list[Plain] = [
        {"uses": luck.randint(0, 3)},
        {"expires_at": f"2026-01-{luck.randint(1, 31):02}T00:00:00.000000Z"},
        {"analyst": luck.choice(PEOPLE)},
        {"recipients": sorted(luck.sample(PEOPLE, luck.randint(0, 2)))},
        {"parent": luck.choice(("", SHA))},
        {"id": f"c-{luck.randint(1, 60)}"},
    ]
    contract.update(luck.choice(changes))
    if "bins" in terms and luck.random() < 0.5:
        terms["bins"] = luck.choice((0, 4, 20, 2**70))
    if "result" in terms and luck.random() < 0.3:
        terms["result"] = SHA
    if luck.random() < 0.2:
        return  # People agreed to something else.
    after = digest_of(contract)
    text = json.dumps(events[place + 1 :]).replace(before, after)
    events[place + 1 :] = json.loads(text)
