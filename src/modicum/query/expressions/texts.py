"""Functions of texts: they count characters, and know the letters A to Z."""

from __future__ import annotations

import re
import string
from fractions import Fraction
from typing import Any, Final

from modicum.query.expressions.facts import Facts, Misfit, number
from modicum.query.expressions.function import (
    Function,
    Plain,
    Term,
    call,
    cast,
    constant,
    needs,
    text,
)

_TEXT: Final = Facts("text")
_BOOLEAN: Final = Facts("boolean")
#: No text is longer, in characters; too long to be summed without a limit.
_LENGTH_MAX: Final = 2**31
#: What marks `%` and `_` as themselves in a pattern.
_ESCAPE: Final = "!"
_WILD: Final = re.compile(r"[%_!]")
#: Several `%` mean what one does; engines may try them one by one.
_RUNS: Final = re.compile(r"%+")
_RUNS_MAX: Final = 4


def _typed(name: str) -> Any:
    def typed(*parts: Facts) -> Facts:
        needs(name, ("text",), *parts)
        return _TEXT

    return typed


def _translated(before: str, after: str) -> Function:
    """Return the function that replaces letters by others."""

    def written(x: Any, _out: Facts, one: Term) -> Any:
        return call(x, "TRANSLATE", one.sql, text(x, before), text(x, after))

    to_case = "UPPER" if after == string.ascii_uppercase else "LOWER"
    turned = str.maketrans(before, after)
    words = ("UPPER", "UCASE") if to_case == "UPPER" else ("LOWER", "LCASE")
    return Function(
        _typed(to_case),
        written,
        lambda one: one.translate(turned),
        words,
        nodes=(to_case.capitalize(),),
    )


# --- pieces ---------------------------------------------------------------------------


def _piece_typed(one: Facts, start: Facts, *length: Facts) -> Facts:
    needs("SUBSTRING", ("text",), one)
    first = constant("SUBSTRING", start, "integer")
    many = constant("SUBSTRING", length[0], "integer") if length else 0
    if not (1 <= first < _LENGTH_MAX and 0 <= many < _LENGTH_MAX):
        raise Misfit("SUBSTRING takes a place from 1 on, and a length from 0 on")
    return _TEXT


def _piece(x: Any, _out: Facts, one: Term, start: Term, *length: Term) -> Any:
    places = [x.Literal.number(term.facts.low) for term in (start, *length)]
    return call(x, "SUBSTRING", one.sql, *places)


def _piece_meant(one: str, start: int, length: int = _LENGTH_MAX) -> str:
    return one[start - 1 : start - 1 + length]


def _end_typed(one: Facts, length: Facts) -> Facts:
    needs("LEFT and RIGHT", ("text",), one)
    if not 0 <= constant("LEFT and RIGHT", length, "integer") < _LENGTH_MAX:
        raise Misfit("LEFT and RIGHT take a length from 0 on")
    return _TEXT


def _end(name: str) -> Any:
    def written(x: Any, _out: Facts, one: Term, length: Term) -> Any:
        return call(x, name, one.sql, x.Literal.number(length.facts.low))

    return written


def _trim(x: Any, _out: Facts, one: Term) -> Any:
    return x.Trim(this=one.sql, expression=text(x, " "), position="BOTH")


def _replace_typed(one: Facts, old: Facts, new: Facts) -> Facts:
    needs("REPLACE", ("text",), one)
    constant("REPLACE", new, "text")
    if not constant("REPLACE", old, "text"):
        raise Misfit("REPLACE takes a text that is not empty, and another one")
    return _TEXT


def _replace(x: Any, _out: Facts, one: Term, old: Term, new: Term) -> Any:
    return call(x, "REPLACE", one.sql, old.sql, new.sql)


# --- joining --------------------------------------------------------------------------


def _joined(x: Any, _out: Facts, *terms: Term) -> Any:
    first, *others = (term.sql for term in terms)
    for other in others:
        first = x.DPipe(this=first, expression=other)
    return x.paren(first, copy=False)


def _concat(x: Any, out: Facts, *terms: Term) -> Any:
    known = (
        Term(x.Coalesce(this=term.sql, expressions=[text(x, "")]), term.facts)
        for term in terms
    )
    return _joined(x, out, *known)


def _length_typed(one: Facts) -> Facts:
    needs("LENGTH", ("text",), one)
    return number(Fraction(1), 0, _LENGTH_MAX, whole=True)


def _length(x: Any, _out: Facts, one: Term) -> Any:
    return cast(x, call(x, "LENGTH", one.sql), "bigint")


# --- patterns -------------------------------------------------------------------------


def _like_typed(one: Facts, pattern: Facts) -> Facts:
    needs("LIKE", ("text",), one)
    if len(_RUNS.findall(constant("LIKE", pattern, "text"))) > _RUNS_MAX:
        message = f"a pattern has % at most {_RUNS_MAX} times"
        raise Misfit(message, "an engine may take long for more")
    return _BOOLEAN


def _part_typed(one: Facts, part: Facts) -> Facts:
    needs("STARTS_WITH, ENDS_WITH and CONTAINS", ("text",), one)
    constant("STARTS_WITH, ENDS_WITH and CONTAINS", part, "text")
    return _BOOLEAN


def _like(x: Any, _out: Facts, one: Term, pattern: Term) -> Any:
    return _matches(x, one.sql, _escaped(str(pattern.facts.value), wild="%_"))


def _matches(x: Any, value: Any, pattern: str) -> Any:
    like = x.Like(this=value, expression=text(x, pattern))
    return x.paren(x.Escape(this=like, expression=text(x, _ESCAPE)), copy=False)


def _escaped(written: str, wild: str = "") -> str:
    """Return a pattern of a text, in which some characters stay wild."""
    found = _WILD.sub(
        lambda one: one[0] if one[0] in wild else _ESCAPE + one[0], written
    )
    return _RUNS.sub("%", found) if wild else found


def _like_meant(one: str, pattern: str) -> bool:
    parts = (
        "." if each == "_" else re.escape(each) for each in _RUNS.sub("%", pattern)
    )
    regular = "".join(parts).replace("%", ".*")
    return re.fullmatch(regular, one, re.DOTALL) is not None


def _ilike(x: Any, out: Facts, one: Term, pattern: Term) -> Any:
    small = LOWER.written(x, _TEXT, one)
    lower = LOWER.meant(str(pattern.facts.value))
    return _matches(x, small, _escaped(lower, wild="%_"))


def _ilike_meant(one: str, pattern: str) -> bool:
    return _like_meant(LOWER.meant(one), LOWER.meant(pattern))


def _part(before: str, after: str) -> Any:
    """Return the SQL of whether a constant is at some place of a text."""

    def written(x: Any, _out: Facts, one: Term, part: Term) -> Any:
        pattern = before + _escaped(str(part.facts.value)) + after
        return _matches(x, one.sql, pattern)

    return written


def _cast(x: Any, _out: Facts, one: Term) -> Any:
    return cast(x, one.sql, "text")


def _cast_typed(one: Facts) -> Facts:
    needs("CAST to text", ("text", "integer"), one)
    return _TEXT


def _cast_meant(one: Plain) -> str:
    return str(one)


LOWER: Final = _translated(string.ascii_uppercase, string.ascii_lowercase)
_BOTH: Final = ("this", "expression")
TEXTS: Final[dict[str, Function]] = {
    "lower": LOWER,
    "upper": _translated(string.ascii_lowercase, string.ascii_uppercase),
    "trim": Function(
        _typed("TRIM"), _trim, lambda one: one.strip(" "), ("TRIM",), nodes=("Trim",)
    ),
    "substring": Function(
        _piece_typed,
        _piece,
        _piece_meant,
        ("SUBSTRING", "SUBSTR"),
        nodes=("Substring",),
        parts=("this", "start", "length"),
    ),
    "left": Function(
        _end_typed, _end("LEFT"), lambda one, n: one[:n], ("LEFT",), nodes=("Left",),
        parts=_BOTH,
    ),
    "right": Function(
        _end_typed, _end("RIGHT"), lambda one, n: one[len(one) - min(n, len(one)) :],
        ("RIGHT",), nodes=("Right",), parts=_BOTH,
    ),
    "replace": Function(
        _replace_typed,
        _replace,
        lambda one, old, new: one.replace(old, new),
        ("REPLACE",),
        nodes=("Replace",),
        parts=("this", "expression", "replacement"),
    ),
    "joined": Function(
        _typed("||"), _joined, lambda *parts: "".join(parts), nodes=("DPipe",),
        parts=_BOTH, ignored=("safe",),
    ),
    "concat": Function(
        _typed("CONCAT"),
        _concat,
        lambda *parts: "".join(part or "" for part in parts),
        ("CONCAT",),
        nodes=("Concat",),
        parts=("expressions",),
        ignored=("safe", "coalesce"),
        strict=False,
    ),
    "length": Function(
        _length_typed, _length, len, ("LENGTH", "LEN", "CHAR_LENGTH"), nodes=("Length",)
    ),
    "like": Function(_like_typed, _like, _like_meant),
    "ilike": Function(_like_typed, _ilike, _ilike_meant),
    "starts_with": Function(
        _part_typed, _part("", "%"), str.startswith, ("STARTS_WITH",),
        nodes=("StartsWith",), parts=_BOTH,
    ),
    "ends_with": Function(
        _part_typed, _part("%", ""), str.endswith, ("ENDS_WITH",),
        nodes=("EndsWith",), parts=_BOTH,
    ),
    "contains": Function(
        _part_typed, _part("%", "%"), lambda one, part: part in one, ("CONTAINS",),
        nodes=("Contains",), parts=_BOTH,
    ),
    "text": Function(_cast_typed, _cast, _cast_meant),
}  # fmt: skip
