"""Queries that are drawn: what is written is what is read, and noise breaks nothing."""

from __future__ import annotations

import random

import pytest
from budget import examples, seed
from msgspec.structs import replace
from samples.declared import TABLES
from samples.drawn_queries import WORDS, drawn, spoiled

from modicum.core.errors import Code, ModicumError
from modicum.query.model import AllOf, AnyOf, Condition, Not
from modicum.query.parser import parse_query


def flat(one: Condition) -> Condition:
    """Return a condition in which no AND is in an AND without need, nor OR in OR."""
    match one:
        case Not(inner):
            return Not(flat(inner))
        case AllOf(parts) | AnyOf(parts):
            kind = type(one)
            found: list[Condition] = []
            for part in map(flat, parts):
                found.extend(part.parts if isinstance(part, kind) else [part])
            return kind(tuple(found))
        case _:
            return one


@pytest.mark.spec("QRY-1")
def test_what_is_written_is_what_is_read() -> None:
    for place in range(examples(400)):
        query, text = drawn(place)
        read = parse_query(text, TABLES)
        assert replace(read, where=None) == replace(query, where=None), text
        assert (read.where is None) == (query.where is None), text
        if read.where is not None and query.where is not None:
            assert flat(read.where) == flat(query.where), text


# --- noise ----------------------------------------------------------------------------


def outcome(text: str) -> Code | None:
    """Return the code of a refusal, None if the text is read; nothing else happens."""
    try:
        query = parse_query(text, TABLES)
    except ModicumError as error:
        marks = [problem.mark for problem in error.problems]
        for mark in marks:
            assert mark is None or mark.column - 1 + mark.length <= len(mark.source) + 1
        return error.code
    assert query.aggregates
    return None


@pytest.mark.spec("QRY-1")
def test_texts_that_are_spoiled_are_read_or_refused() -> None:
    codes: dict[Code | None, int] = {}
    for place in range(examples(900)):
        dice = random.Random(f"spoiled {seed()} {place}")
        text = spoiled(dice, drawn(place)[1])
        code = outcome(text)
        codes[code] = codes.get(code, 0) + 1
    for code in (None, Code.NOT_SQL, Code.NOT_IN_SUBSET, Code.UNKNOWN_NAME):
        assert codes.get(code, 0) >= 20, codes


def test_words_in_any_order_are_read_or_refused() -> None:
    for place in range(examples(700)):
        dice = random.Random(f"words {seed()} {place}")
        words = dice.choices(WORDS, k=dice.randint(1, 25))
        head = dice.choice(["SELECT ", "SELECT COUNT(*) FROM views WHERE ", ""])
        outcome(head + dice.choice([" ", ""]).join(words))


def test_bytes_are_read_or_refused() -> None:
    for place in range(examples(300)):
        dice = random.Random(f"bytes {seed()} {place}")
        noise = dice.randbytes(dice.randint(0, 60))
        outcome("SELECT " + noise.decode(dice.choice(["latin-1", "utf-16"]), "replace"))


@pytest.mark.parametrize("cut", range(4))
def test_every_beginning_of_a_query_is_read_or_refused(cut: int) -> None:
    text = drawn(cut)[1]
    for end in range(0, len(text), 2):
        outcome(text[:end])
