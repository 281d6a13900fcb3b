"""What people see: a gallery of SQL that is refused, each with its exact message.

Each case is a query and, behind a line of dashes, what is said of it. After a change of
wording run

    MODICUM_REGENERATE=1 python -m pytest tests/unit/query/test_query_refusals.py

and review the difference: the caret stands under what is wrong, the remedy works.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from samples.declared import TABLES

from modicum.core.errors import Code, InputError
from modicum.query.parser import parse_query

GALLERY = Path(__file__).parents[2] / "golden" / "queries" / "refused.txt"
REGENERATE = bool(os.environ.get("MODICUM_REGENERATE"))
_BETWEEN, _APART = "\n----\n", "\n====\n"


def cases() -> list[tuple[str, str]]:
    """Return each query with what is said of it."""
    blocks = GALLERY.read_text(encoding="utf-8").strip("\n").split(_APART)
    pairs = (block.partition(_BETWEEN) for block in blocks)
    return [(sql, said) for sql, _, said in pairs]


CASES = cases()


def said_of(sql: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_query(sql, TABLES, "query.sql")
    return caught.value.render()


@pytest.mark.skipif(not REGENERATE, reason="the gallery stays as it is")
def test_the_gallery_is_written_anew() -> None:
    blocks = (sql + _BETWEEN + said_of(sql) for sql, _ in CASES)
    GALLERY.write_text(_APART.join(blocks) + "\n", encoding="utf-8")


@pytest.mark.spec("QRY-1")
@pytest.mark.skipif(REGENERATE, reason="the gallery is being written")
@pytest.mark.parametrize(("sql", "said"), CASES, ids=[sql[:60] for sql, _ in CASES])
def test_a_refusal_reads_as_it_always_did(sql: str, said: str) -> None:
    assert said_of(sql) == said


@pytest.mark.skipif(REGENERATE, reason="the gallery is being written")
def test_the_gallery_shows_every_code_of_queries() -> None:
    shown = "\n".join(said for _, said in CASES)
    assert len(CASES) >= 80
    assert len({sql for sql, _ in CASES}) == len(CASES)
    for code in (
        Code.NOT_SQL,
        Code.NOT_IN_SUBSET,
        Code.NOT_BOUNDED,
        Code.UNKNOWN_NAME,
        Code.DOES_NOT_FIT,
    ):
        assert shown.count(f"error[{code.value}]: ") >= 3, code


@pytest.mark.spec("QRY-14")
def test_no_message_repeats_a_value() -> None:
    """Messages may be logged; the line of the text beside them is for the terminal."""
    canary = "Zanzibar"
    for sql in (
        f"SELECT COUNT(*) FROM views WHERE page SIMILAR TO '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE age LIKE '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE age + 1 = '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE event_date + '{canary}' = 1",
        f"SELECT COUNT(*) FROM views WHERE event_time::DATE = '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE ROUND(amount, '{canary}') = 1",
        f"SELECT COUNT(*) FROM views WHERE DATE_PART('{canary}', event_time) = 1",
        f"SELECT COUNT(*) FROM views WHERE DATE_DIFF('{canary}', event_time, '')",
        f"SELECT COUNT(CASE WHEN mobile THEN '{canary}' ELSE 1 END) FROM views",
        f"SELECT COUNT(CASE page WHEN '{canary}' THEN '' ELSE 1 END) FROM views",
        f'SELECT COUNT(CASE WHEN mobile THEN "{canary}" END) FROM views',
        f'SELECT COUNT(COALESCE(page, "{canary}")) FROM views',
        f"SELECT CONCAT(page, '{canary}' + 1) AS c, COUNT(*) FROM views GROUP BY c",
        f"SELECT COUNT(*) FROM views WHERE page = '{canary}' '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE age = '{canary}'",
        f"SELECT '{canary}' FROM views",
        f"SELECT COUNT(*) FROM views WHERE '{canary}'",
        f'SELECT COUNT(*) FROM views WHERE page = "{canary}"',
        f'SELECT COUNT(*) FROM views WHERE "{canary}" = page',
        f'SELECT COUNT(*) FROM views WHERE page IN ("main", "{canary}")',
        f'SELECT COUNT(*) FROM views WHERE page BETWEEN "{canary}" AND "z"',
        f'SELECT COUNT(*) FROM views WHERE page IS "{canary}"',
        f"SELECT COUNT(*) FROM views WHERE page = {canary}",
        f"SELECT COUNT(*) FROM views WHERE page = “{canary}”",
        f"SELECT COUNT(*) FROM views WHERE page = ‘{canary} city’",  # noqa: RUF001
        f"SELECT COUNT(*) FROM views WHERE page = `{canary}`",
        f"SELECT COUNT(*) FROM views WHERE page = '{canary}",
        f"SELECT COUNT(*) FROM views WHERE page = '{canary}' 7",
        f"SELECT COUNT(*) FROM views WHERE page IN ('{canary}' IN '{canary}')",
        f"SELECT COUNT(*) FROM views GROUP BY '{canary}'",
        f"SELECT COUNT(*) AS '{canary}' FROM views",
        f"SELECT COUNT(*) FROM '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE event_date = '{canary}'",
        f"SELECT COUNT(*) FROM views WHERE event_time = TIMESTAMP '{canary}'",
        f"SELECT DATE_TRUNC('{canary}', event_time), COUNT(*) FROM views GROUP BY 1",
    ):
        with pytest.raises(InputError) as caught:
            parse_query(sql, TABLES)
        assert canary not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
