"""Functions of texts: they count characters, and know the letters A to Z."""

from __future__ import annotations

import re
import string
from fractions import Fraction
from typing import Any, Final

from modicum.query.expressions.facts import Facts, Misfit, number, of_text
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
#: Of an integer, with its sign.
_DIGITS: Final = 40
#: What marks `%` and `_` as themselves in a pattern.
_ESCAPE: Final = "!"
_WILD: Final = re.compile(r"[%_!]")
#: Several `%` mean what one does; engines may try them one by one.
_RUNS: Final = re.compile(r"%+")
_RUNS_MAX: Final = 4
#: A text is split into at most so many parts that are named.
_PARTS_MAX: Final = 1_000


#: A text that is joined counts as so many characters at least: engines nest the
#: pieces, and not too deep.
_PIECE: Final = 10


def _typed(name: str) -> Any:
    def typed(*parts: Facts) -> Facts:
        needs(name, ("text",), *parts)
        return of_text(
            sum(one.copies for one in parts),
            sum(max(one.extra, _PIECE) for one in parts)
            if len(parts) > 1
            else parts[0].extra,
        )

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
    return of_text(one.copies, one.extra)


def _piece(x: Any, _out: Facts, one: Term, start: Term, *length: Term) -> Any:
    places = [x.Literal.number(term.facts.low) for term in (start, *length)]
    return call(x, "SUBSTRING", one.sql, *places)


def _piece_meant(one: str, start: int, length: int = _LENGTH_MAX) -> str:
    return one[start - 1 : start - 1 + length]


def _end_typed(one: Facts, length: Facts) -> Facts:
    needs("LEFT and RIGHT", ("text",), one)
    if not 0 <= constant("LEFT and RIGHT", length, "integer") < _LENGTH_MAX:
        raise Misfit("LEFT and RIGHT take a length from 0 on")
    return of_text(one.copies, one.extra)


def _end(name: str) -> Any:
    def written(x: Any, _out: Facts, one: Term, length: Term) -> Any:
        return call(x, name, one.sql, x.Literal.number(length.facts.low))

    return written


def _trimmed(name: str, position: str, meant: Any) -> Function:
    """Return the function that removes spaces at some ends of a text."""

    def written(x: Any, _out: Facts, one: Term) -> Any:
        return x.Trim(this=one.sql, expression=text(x, " "), position=position)

    return Function(_typed(name), written, lambda one: meant(one, " "), (name,))


def _split_typed(one: Facts, by: Facts, place: Facts) -> Facts:
    needs("SPLIT_PART", ("text",), one)
    part = constant("SPLIT_PART", place, "integer")
    if not constant("SPLIT_PART", by, "text") or not 1 <= part <= _PARTS_MAX:
        raise Misfit(
            "SPLIT_PART takes a text that is not empty, and a place from 1 to"
            f" {_PARTS_MAX}",
            "",
            "write SPLIT_PART(column, '/', 2)",
        )
    return of_text(one.copies, one.extra)


def _split(x: Any, _out: Facts, one: Term, by: Term, place: Term) -> Any:
    return call(x, "SPLIT_PART", one.sql, by.sql, x.Literal.number(place.facts.low))


def _split_meant(one: str, by: str, place: int) -> str:
    parts = one.split(by)
    return parts[place - 1] if place <= len(parts) else ""


def _replace_typed(one: Facts, old: Facts, new: Facts) -> Facts:
    needs("REPLACE", ("text",), one)
    after, before = constant("REPLACE", new, "text"), constant("REPLACE", old, "text")
    if not before:
        raise Misfit("REPLACE takes a text that is not empty, and another one")
    times = max(1, -(-len(after) // len(before)))
    return of_text(one.copies * times, one.extra * times)


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


def _packed_typed(*parts: Facts) -> Facts:
    copies, extra = (sum(one.copies for one in parts), sum(one.extra for one in parts))
    return of_text(copies, extra + 2 * _DIGITS * len(parts))


def _packed(x: Any, out: Facts, *terms: Term) -> Any:
    """Return each value behind its length: no others have the same text."""
    pieces = []
    for term in terms:
        value = term.sql if term.facts.type == "text" else cast(x, term.sql, "text")
        size = cast(x, call(x, "LENGTH", value.copy()), "text")
        begun = x.DPipe(this=size, expression=text(x, ":"))
        piece = x.DPipe(this=begun, expression=value)
        known = x.Coalesce(this=piece, expressions=[text(x, "-")])
        pieces.append(Term(known, term.facts))
    return _joined(x, out, *pieces)


def _packed_meant(*values: Plain) -> str:
    return "".join("-" if one is None else _behind_length(one) for one in values)


def _behind_length(value: Plain) -> str:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{len(shown)}:{shown}"


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
    return of_text(one.copies, max(one.extra, _DIGITS))


def _cast_meant(one: Plain) -> str:
    return str(one)


LOWER: Final = _translated(string.ascii_uppercase, string.ascii_lowercase)
_BOTH: Final = ("this", "expression")
TEXTS: Final[dict[str, Function]] = {
    "lower": LOWER,
    "upper": _translated(string.ascii_lowercase, string.ascii_uppercase),
    "trim": _trimmed("TRIM", "BOTH", str.strip),
    "ltrim": _trimmed("LTRIM", "LEADING", str.lstrip),
    "rtrim": _trimmed("RTRIM", "TRAILING", str.rstrip),
    "split_part": Function(
        _split_typed,
        _split,
        _split_meant,
        ("SPLIT_PART",),
        nodes=("SplitPart",),
        parts=("this", "delimiter", "part_index"),
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
    "packed": Function(
        _packed_typed, _packed, _packed_meant, strict=False, copies=(2,)
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
