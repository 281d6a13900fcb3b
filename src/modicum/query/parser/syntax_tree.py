"""The allowed tokens of a query, and its syntax tree."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code, InputError
from modicum.query.parser.lexer import Lines, cut, quiet
from modicum.query.parser.sql_text import CLAUSES, SYNTAX, SqlText, refuse_odd_quotes
from modicum.query.refusals import INNER_QUERY, Reason, refused

if TYPE_CHECKING:
    from sqlglot import Token, exp

#: A longer text is refused, in bytes.
TEXT_MAX: Final = 64 * 1024
#: Deeper nesting is refused: sqlglot needs some forty calls for each level, and
#: Python allows a thousand.
DEPTH_MAX: Final = 16
#: Maximum number of consecutive names in a supported query.
_NAMES_MAX: Final = 4
#: Joins that wait for their condition, and nested type names with parentheses, are
#: refused beyond these: sqlglot takes twice as long for each one more.
_JOINS_MAX: Final = 8
_TYPES_MAX: Final = 3

_VALUES: Final = frozenset({"NUMBER", "STRING", "IDENTIFIER", "VAR", "DCOLON"})
#: Words that are no names unless quoted, whatever sqlglot makes of them.
_NO_NAMES: Final = frozenset(
    [
        "LIMIT",
        "OFFSET",
        "OVER",
        "FILTER",
        "EXISTS",
        "WINDOW",
        "PIVOT",
        "UNPIVOT",
        "INTERVAL",
        "LEFT",
        "RIGHT",
        "FULL",
        "NATURAL",
        "SEMI",
        "ANTI",
        "ASOF",
        "ALL",
        "ANY",
        "SOME",
        "COLLATE",
        "ESCAPE",
        "UNNEST",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_DATETIME",
        "ISNULL",
        "OPERATOR",
        "OVERLAPS",
    ]
)
_SIGNS: Final = frozenset({"NOT", "DASH"})
#: Words between which an expression is nested as between brackets.
_CASES: Final = {"CASE": 1, "END": -1}
#: Words before the bracket of a subquery.
_BEFORE_QUERIES: Final = ("FROM", "JOIN", "AS", "IN", "EXISTS")
#: Words that are functions before a bracket.
_CALLED: Final = frozenset({"LEFT", "RIGHT", "REPLACE"})
_ORDINARY: Final = frozenset("\n\r\t")


def read_tree(
    text: str, source: str, declared: Iterable[str] = ()
) -> tuple[exp.Select, SqlText]:
    """Return the tree of a query, and its text.

    Args:
        text: The text.
        source: Its name.
        declared: Names of tables and columns, some of which may be words of SQL.

    Raises:
        InputError: If it is too long or too deep, is no SQL, or is no SELECT.
    """
    lines = Lines(text, source)
    _refuse_unprintable(text, lines)
    tokens = cut(text, lines)
    from sqlglot import exp

    if not tokens:
        raise refused(Code.NOT_SQL, "the query is empty", None, reason=Reason())
    sql = SqlText(text, source, tokens, declared)
    refuse_odd_quotes(sql)
    _refuse_tokens(sql)
    tree = _tree(text, sql)
    if type(tree) is not exp.Select:
        raise sql.unread(tree)
    return tree, sql


def _refuse_unprintable(text: str, lines: Lines) -> None:
    size = len(text.encode(errors="surrogatepass"))
    if size > TEXT_MAX:
        message = f"the query is longer than {TEXT_MAX // 1024} KiB"
        raise refused(Code.NOT_IN_SUBSET, message, None, reason=Reason())
    for place, one in enumerate(text):
        if one not in _ORDINARY and unicodedata.category(one) in _HIDDEN:
            raise refused(
                Code.NOT_SQL,
                "the query contains a control character or an invisible one",
                lines.mark(place, place + 1),
                reason=Reason("a reader could not see the difference"),
            )


#: Control characters, invisible and bidirectional characters, half surrogates,
#: unassigned characters, odd line breaks.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


# --- tokens ---------------------------------------------------------------------------


def _refuse_tokens(sql: SqlText) -> None:
    """Refuse tokens that no supported query contains, before a tree is built."""
    if sql.word(0) not in ("SELECT", "WITH"):
        reason = Reason("one query is one SELECT over declared tables")
        raise sql.unread_at(0, reason)
    if sql.word(1) == "TOP" and sql.kind(2) == "NUMBER":
        raise sql.unread_at(1)
    names = _names()
    types = _types()
    depths, within, signs, row, joins, cases = [0], [0], 0, 0, 0, 0
    openers = [""]
    for place, token in enumerate(sql.tokens):
        kind = token.token_type.name
        _refuse_kind(sql, place, names, openers[-1])
        signs = signs + 1 if kind in _SIGNS else signs
        if kind == "L_PAREN":
            depths.append(depths[-1] + 1 + signs)
            within.append(within[-1] + (sql.kind(place - 1) in types))
            openers.append(sql.word(place - 1))
            signs = 0
        elif kind == "R_PAREN" and len(depths) > 1:
            depths.pop()
            within.pop()
            openers.pop()
        cases = max(cases + _CASES.get(kind, 0), 0)
        row = row + 1 if kind in names and kind not in SYNTAX else 0
        if kind == "JOIN":
            joins += 1
        elif kind in {"ON", "USING"}:
            joins = max(joins - 1, 0)
        if depths[-1] + signs + cases > DEPTH_MAX or row > _NAMES_MAX:
            raise _too_deep(sql, place, row)
        if joins > _JOINS_MAX or within[-1] > _TYPES_MAX:
            message = "the query has joins without conditions, or types within types"
            mark = sql.mark(token)
            raise refused(Code.NOT_IN_SUBSET, message, mark, reason=Reason())
        signs = signs if kind in _SIGNS else 0


def _too_deep(sql: SqlText, place: int, row: int) -> InputError:
    token = sql.tokens[place]
    if row > _NAMES_MAX:
        return no_sql(sql, token)
    message = f"the query is nested more than {DEPTH_MAX} deep"
    return refused(Code.NOT_IN_SUBSET, message, sql.mark(token), reason=Reason())


@cache
def _names() -> frozenset[str]:
    """Return the types of tokens that names and values may have."""
    from sqlglot.dialects.dialect import Dialect

    parser = type(Dialect.get_or_raise("duckdb").parser())
    known = {one.name for one in parser.ID_VAR_TOKENS}
    return frozenset(known | _VALUES) - _NO_NAMES


@cache
def _types() -> frozenset[str]:
    """Return the types of tokens that name types."""
    from sqlglot.dialects.dialect import Dialect

    parser = type(Dialect.get_or_raise("duckdb").parser())
    return frozenset(one.name for one in parser.TYPE_TOKENS)


def _refuse_kind(sql: SqlText, place: int, names: frozenset[str], opener: str) -> None:
    """Refuse a token; the opener is the word before the brackets that it is in."""
    token = sql.tokens[place]
    kind = token.token_type.name
    within = kind == "ORDER_BY" and [
        sql.word(one) for one in range(max(place - 3, 0), place)
    ] == ["WITHIN", "GROUP", "("]
    if kind == "DOT" and sql.kind(place + 1) == "NUMBER":
        raise sql.unread_at(place + 1, Reason("", "write a 0 before the point"))
    again = kind == "SELECT" and place > 0
    several = kind == "SEMICOLON"
    if sql.word(place) in CLAUSES and sql.word(place - 1) != "WITHIN":
        raise no_sql(sql, token)
    if again and sql.word(place - 1) == "(":
        before = 2 + (sql.word(place - 2) == "(")  # (SELECT …) UNION ALL (SELECT …)
        if sql.word(place - before) not in (*_BEFORE_QUERIES, "ALL"):
            raise sql.unread_at(place, INNER_QUERY)
        again = False
    elif again and sql.word(place - 1) == ")" and sql.word(0) == "WITH":
        again = False
    elif again and opener in _BEFORE_QUERIES:
        again = sql.word(place - 1) not in ("UNION", "ALL", "DISTINCT")
    called = kind in _CALLED and sql.word(place + 1) == "("
    known = (kind in SYNTAX and not again and not several) or kind in names
    clause = _is_clause(sql, place, opener) or _of_query(sql, place, opener)
    if not (known or within or called or clause):
        raise sql.unread_at(place)


def _is_clause(sql: SqlText, place: int, opener: str) -> bool:
    """Return whether a word begins a clause about answers, or one in brackets."""
    kind = sql.kind(place)
    if kind in ("LIMIT", "OFFSET"):
        return sql.kind(place + 1) == "NUMBER"
    if kind == "INTERVAL":
        return sql.kind(place + 1) in ("NUMBER", "STRING")
    if kind in ("OVER", "FILTER"):
        return sql.word(place - 1) == ")" and sql.word(place + 1) == "("
    if kind == "HAVING":
        return opener == ""
    return kind in ("ORDER_BY", "PARTITION_BY") and opener in ("", "OVER")


def _of_query(sql: SqlText, place: int, opener: str) -> bool:
    """Return whether a word belongs to a subquery, or to a join."""
    kind, behind = sql.kind(place), sql.word(place + 1)
    if kind == "WITH":
        return place == 0 or behind in ("ROLLUP", "CUBE")
    if kind in ("LEFT", "OUTER", "SEMI", "ANTI"):
        return behind in ("OUTER", "JOIN")
    if kind == "EXISTS":
        return behind == "("
    if kind in ("UNION", "ALL"):
        word = sql.word(place - 1)
        return opener in _BEFORE_QUERIES and (kind == "UNION" or word == "UNION")
    return kind == "HAVING" and "SELECT" in map(sql.word, range(1, place))


# --- the tree -------------------------------------------------------------------------


def _tree(text: str, sql: SqlText) -> exp.Expr:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import ParseError, SqlglotError

    try:
        with quiet():
            parser = Dialect.get_or_raise("duckdb").parser()
            trees = parser.parse(list(sql.tokens), text)
    except ParseError as error:
        raise no_sql(sql, _offending(sql, error)) from None
    except RecursionError:
        message = "the query is nested too deep"
        raise refused(Code.NOT_IN_SUBSET, message, None, reason=Reason()) from None
    except (SqlglotError, ValueError, TypeError, LookupError, AttributeError):
        raise no_sql(sql, sql.tokens[-1]) from None  # It failed at this token.
    if len(trees) != 1 or trees[0] is None:
        raise no_sql(sql, sql.tokens[-1])
    tree: exp.Expr = trees[0]
    return tree


def _offending(sql: SqlText, error: Exception) -> Token:
    """Return the token that a mistake of sqlglot's is about."""
    found = getattr(error, "errors", None) or [{}]
    place = found[0].get("line"), found[0].get("col")
    return next(
        (one for one in sql.tokens if (one.line, one.col) == place), sql.tokens[-1]
    )


def no_sql(sql: SqlText, token: Token) -> InputError:
    """Return the error for a text that is no SQL, ready to be raised."""
    text = sql.text_of(token)
    shown = f"`{text[:40]}`" if text else "a value"
    wrong = f"{shown} is not expected here, or something is missing"
    if token is sql.tokens[-1]:
        wrong = "something is missing or too much at its end"
    message = f"the text is not SQL: {wrong}"
    reason = sql.reserved(sql.tokens.index(token)) or Reason()
    return refused(Code.NOT_SQL, message, sql.mark(token), reason=reason)
