"""Queries that are drawn: what is written is what is read, and noise breaks nothing."""

from __future__ import annotations

import dataclasses as dc
import random

import pytest
from budget import examples, seed
from msgspec.structs import replace
from samples.declared import TABLES
from samples.drawn_queries import WORDS, drawn, spoiled
from samples.written_expressions import untyped

from modicum.core.errors import Code, ModicumError
from modicum.query.model import Query
from modicum.query.parser import parse_query


def plain(query: Query) -> Query:
    """Return a query whose expressions are written in one way."""
    keys = tuple(dc.replace(one, value=untyped(one.value)) for one in query.keys)
    asked = (dc.replace(one, value=untyped(one.value)) for one in query.aggregates)
    where = untyped(query.where)
    return replace(query, keys=keys, aggregates=tuple(asked), where=where)


@pytest.mark.spec("QRY-1")
def test_what_is_written_is_what_is_read() -> None:
    for place in range(examples(400)):
        query, text = drawn(place)
        read = parse_query(text, TABLES)
        assert plain(read) == plain(query), text


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
