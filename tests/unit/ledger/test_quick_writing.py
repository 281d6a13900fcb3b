"""Quick writing writes what strict writing writes, or leaves the entry to it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any

import pytest
from msgspec.structs import replace
from samples.parted import mechanism, policy, priced, release
from samples.small import NOON

from modicum.core.canonical import join
from modicum.ledger import GENESIS, Event, RecordedRelease, seal
from modicum.ledger.log.event_codec import to_joined
from modicum.ledger.log.events import (
    Annotated,
    Body,
    PastRecorded,
    PolicyActivated,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.log.fast_codec import write_release_entry

SHA = "d" * 64
TEXTS = ("", "x", 'é\\"\x00\u2028😀\uffff')


class Word(StrEnum):
    """Text that is more than text."""

    X = "x"


def one(**changes: Any) -> RecordedRelease:
    written = release("r-1", mechanism("a"), mechanism("b", where={"country": "CH"}))
    return replace(priced(written, policy()), **changes)


def strictly(event: Event) -> bytes:
    return join({"seq": 7, "prev": GENESIS, "event": to_joined(event)})


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
def test_what_is_written_quickly_is_written_strictly(body: Body, actor: str) -> None:
    event = Event(NOON, actor, body)
    assert write_release_entry(event, 7, GENESIS) == strictly(event)


def test_bytes_that_were_worked_out_at_pricing_are_those_of_the_strict_writer() -> None:
    recorded = one()
    anew = replace(
        recorded, mechanisms=tuple(map(dataclasses.replace, recorded.mechanisms))
    )
    assert all(each.written is None for each in anew.mechanisms)
    events = [Event(NOON, "t", ReleaseReserved(r, SHA, NOON)) for r in (recorded, anew)]
    first, second = [write_release_entry(event, 7, GENESIS) for event in events]
    assert first == second


@pytest.mark.parametrize(
    "body",
    [
        PolicyActivated(SHA, "name", "text"),
        ReleaseVoided("r-1", "why"),
        Annotated("r-1", "text"),
    ],
)
def test_other_entries_are_left_to_the_strict_writer(body: Body) -> None:
    event = Event(NOON, "t", body)
    assert write_release_entry(event, 7, GENESIS) is None
    assert seal(event, 7, GENESIS).payload == strictly(event)


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
def test_what_is_more_or_less_than_text_is_left_to_the_strict_writer(
    body: Body,
) -> None:
    event = Event(NOON, "t", body)
    assert write_release_entry(event, 7, GENESIS) is None
    assert outcome(event) == strict_outcome(event)


def test_who_asks_is_text_too() -> None:
    for event in (
        Event(NOON, Word.X, ReleaseStarted("r-1")),
        Event(Word.X, "t", ReleaseStarted("r-1")),
    ):
        assert write_release_entry(event, 7, GENESIS) is None
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
