"""Regular expressions: which are read, and that writing them anew changes nothing."""

from __future__ import annotations

import duckdb
import pytest
from samples.declared import TABLES
from samples.drawn_expressions import REGULAR

from modicum.core.errors import Code, InputError
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.parser import parse_query

MORE = [
    "^/shop/[a-z]+$", "a|b", "(a|b)?c", "[^/]+", r"\d{4}-\d{2}", r"[\w.-]+@", "",
    "^(?:foo|bar)$", "[a-z0-9_.-]+", "-", r"x\.y", "_+", "(|a)b", "$a", "a^",
    "^a|b$", r"[\d\s]x", "[$.]", r"[\]\\\^]", "a{2,}", "é{2}", "..",
]  # fmt: skip
TEXTS = [
    "", "a", "b", "ab", "aab", "/shop/toys", "/shop/toys\n", "a\nb", "2026-11", "x.y",
    "xxy", "_", "__", "foo", "bar!", "é", "éé", "😀", "😀😀", "1x", " x", "]", "\\",
    "^", "$", "c", "bc", "-", "ann@b", "a{,3}b", "\r", "\u2028", "\u0085", "it's",
    "!&<~#",
]  # fmt: skip


@pytest.mark.spec("QRY-17")
@pytest.mark.parametrize("pattern", [*MORE, *REGULAR])
def test_a_pattern_matches_what_it_matches_in_duckdb(pattern: str) -> None:
    meant = FUNCTIONS["regexp_matches"].meant
    sql = "SELECT REGEXP_MATCHES(?, ?)"
    connection = duckdb.connect()
    for text in TEXTS:
        found = connection.execute(sql, [text, pattern]).fetchone()
        assert found == (meant(text, pattern),), text
    connection.close()


@pytest.mark.parametrize(
    "pattern",
    ["[a-", "a**", "(a)*", "[[:alpha:]]", r"\bx", "x{3,2}", "x{1", "[]a]", "[a&&b]",
     "a{2}{3}", "(", "a)", "(?i)a", "[z-a]", "a+?", "a+b+c+d+e+", "a?b?c?d?e?", "{2}",
     "a{,3}b", "[a^]",
     "(a)(b)(c)(d)(e)", "a" * 201, "(" * 100, "*a", "[!-~]", "a{1000}"],
)  # fmt: skip
def test_a_pattern_that_engines_may_read_differently_is_refused(pattern: str) -> None:
    sql = f"SELECT COUNT(*) FROM views WHERE REGEXP_MATCHES(page, '{pattern}')"
    with pytest.raises(InputError) as caught:
        parse_query(sql, TABLES)
    assert caught.value.code is Code.DOES_NOT_FIT
    assert "regular expression" in caught.value.problems[0].message
