"""What is sealed is the canonical form of the event, or nothing."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any

import pytest
from msgspec.structs import replace
from samples.kinds import BODIES as KINDS
from samples.parted import mechanism, policy, priced, release
from samples.small import NOON
from samples.stored import to_plain

from modicum.core.canonical import encode
from modicum.ledger import GENESIS, Event, RecordedRelease, seal
from modicum.ledger.log.events import (
    Body,
    PastRecorded,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
)

SHA = "d" * 64
TEXTS = ("", "x", 'é\\"\x00\u2028😀\uffff')


class Word(StrEnum):
    """Text that is more than text."""

    X = "x"


def one(**changes: Any) -> RecordedRelease:
    written = release("r-1", mechanism("a"), mechanism("b", where={"country": "CH"}))
    return replace(priced(written, policy()), **changes)


def strictly(event: Event) -> bytes:
    """Return the bytes of a record, worked out anew from each field."""
    return encode({"seq": 7, "prev": GENESIS, "event": to_plain(event)})


BODIES: tuple[Body, ...] = (
    ReleaseReserved(one(), SHA, NOON),
    *[ReleaseReserved(one(id=text), SHA, NOON, (text, "y")) for text in TEXTS],
    *[ReleaseDenied(one(metadata={text: text}), SHA, (text,)) for text in TEXTS],
    *[PastRecorded(one(labels={text: "b", "a": text}), SHA, (text,)) for text in TEXTS],
    PastRecorded(one(given=None), SHA),
    PastRecorded(one(given=("ml", "é")), SHA),
    ReleaseReserved(one(mechanisms=()), SHA, NOON),
    *[kind("r-1") for kind in (ReleaseStarted, ReleasePosted, ReleaseExpired)],
)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("actor", TEXTS)
def test_what_is_sealed_is_written_strictly(body: Body, actor: str) -> None:
    event = Event(NOON, actor, body)
    assert seal(event, 7, GENESIS).payload == strictly(event)


def test_bytes_that_were_worked_out_at_pricing_are_those_of_the_strict_writer() -> None:
    recorded = one()
    anew = replace(
        recorded, mechanisms=tuple(map(dataclasses.replace, recorded.mechanisms))
    )
    assert all(each.written is None for each in anew.mechanisms)
    events = [Event(NOON, "t", ReleaseReserved(r, SHA, NOON)) for r in (recorded, anew)]
    first, second = [seal(event, 7, GENESIS).payload for event in events]
    assert first == second


@pytest.mark.parametrize("body", KINDS, ids=lambda body: body.kind)
def test_every_kind_is_written_strictly(body: Body) -> None:
    event = Event(NOON, "t", body)
    assert seal(event, 7, GENESIS).payload == strictly(event)


@pytest.mark.parametrize(("seq", "previous"), [(1.0, GENESIS), (1, b"0"), (1, 0.5)])
def test_a_number_and_a_hash_are_what_they_are(seq: Any, previous: Any) -> None:
    with pytest.raises(TypeError):
        seal(Event(NOON, "t", ReleaseStarted("r")), seq, previous)


UNUSUAL: tuple[Body, ...] = (
    ReleaseReserved(one(id=Word.X), SHA, NOON),
    ReleaseReserved(one(content=Word.X), SHA, NOON),
    ReleaseReserved(one(), Word.X, NOON),
    ReleaseReserved(one(), SHA, Word.X),
    ReleaseReserved(one(), SHA, NOON, (Word.X,)),
    ReleaseReserved(one(), SHA, NOON, (1,)),  # type: ignore[arg-type]
    ReleaseReserved(one(labels={Word.X: "y"}), SHA, NOON),
    ReleaseReserved(one(labels={"y": Word.X}), SHA, NOON),
    ReleaseReserved(one(metadata={"y": 0.5}), SHA, NOON),
    ReleaseReserved(one(metadata={1: "y"}), SHA, NOON),
    ReleaseReserved(one(metadata={"y": {"z": Word.X}}), SHA, NOON),
    ReleaseReserved(one(given=(Word.X,)), SHA, NOON),
    ReleaseDenied(one(), Word.X, ()),
    ReleaseDenied(one(), SHA, (1.5,)),  # type: ignore[arg-type]
    PastRecorded(one(), Word.X),
    PastRecorded(one(), SHA, (None,)),  # type: ignore[arg-type]
    ReleaseStarted(Word.X),
)


@pytest.mark.parametrize("body", UNUSUAL)
def test_what_is_more_or_less_than_text_is_written_as_text_or_refused(
    body: Body,
) -> None:
    event = Event(NOON, "t", body)
    assert outcome(event) == strict_outcome(event)


def test_who_asks_is_text_too() -> None:
    for event in (
        Event(NOON, Word.X, ReleaseStarted("r-1")),
        Event(Word.X, "t", ReleaseStarted("r-1")),
    ):
        assert outcome(event) == strict_outcome(event)


def test_half_of_a_surrogate_pair_is_refused_by_both() -> None:
    event = Event(NOON, "t", ReleaseReserved(one(metadata={"y": "\ud800"}), SHA, NOON))
    assert outcome(event) is strict_outcome(event) is UnicodeEncodeError


def outcome(event: Event) -> object:
    try:
        return seal(event, 7, GENESIS).payload
    except (TypeError, UnicodeEncodeError) as error:
        return type(error)


def strict_outcome(event: Event) -> object:
    try:
        return strictly(event)
    except (TypeError, UnicodeEncodeError) as error:
        return type(error)
