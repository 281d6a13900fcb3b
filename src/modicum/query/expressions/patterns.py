"""Regular expressions: those that all engines read alike, and fast.

A pattern is read and written anew, without what engines read differently: `.`, `$` and
classes are spelled out. A part in brackets is not repeated, so no row takes an engine
long.
"""

from __future__ import annotations

import re
import string
from typing import Any, Final

from modicum.query.expressions.facts import Facts, Misfit
from modicum.query.expressions.function import Function, Term, constant, needs, text

_BOOLEAN: Final = Facts("boolean")
#: As for LIKE: an engine may try each repetition at every place of a text.
_REPEATS_MAX: Final = 4
#: It may also try what follows with each alternative.
_CHOICES_MAX: Final = 4
_TIMES_MAX: Final = 100
_LENGTH_MAX: Final = 200
_CLASSES: Final = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": "\t\n\f\r ",
}
#: What means itself behind a backslash.
_SIGNS: Final = frozenset(string.punctuation) - {"_"}
_COUNTED: Final = re.compile(r"\{([0-9]{1,3})(,([0-9]{1,3})?)?\}")


class _Reader:
    """Reads a pattern, and writes it as all engines read it."""

    def __init__(self, pattern: str) -> None:
        self._left = pattern
        self.repeats = self.choices = 0

    def read(self) -> str:
        """Return all of it."""
        found = ""
        while self._left:
            found += self._part()
        return found

    def _in_brackets(self) -> str:
        self.choices += 1
        if self.choices > _CHOICES_MAX:
            raise _too_many()
        self._taken("?:")
        found = "(?:"
        while not self._taken(")"):
            found += self._part()
        return f"{found})" + ("?" if self._taken("?") else "")

    def _taken(self, begin: str) -> bool:
        if not self._left.startswith(begin):
            return False
        self._left = self._left[len(begin) :]
        return True

    def _next(self) -> str:
        if not self._left:
            raise _unread()
        one, self._left = self._left[0], self._left[1:]
        return one

    def _part(self) -> str:
        one = self._next()
        if one == "|":
            return "|"
        if one == "^":
            return r"\A"
        if one == "$":
            return r"\z"
        if one == "(":
            return self._in_brackets()
        if one in "*+?{})":
            raise _unread()
        return self._atom(one) + self._repeated()

    def _atom(self, one: str) -> str:
        if one == ".":
            return "[^\n]"
        if one == "[":
            return self._class()
        if one != "\\":
            return _literal(one)
        named = self._next()
        return f"[{_CLASSES[named]}]" if named in _CLASSES else _escaped(named)

    def _class(self) -> str:
        found = "[^" if self._taken("^") else "["
        before = found
        while not self._taken("]"):
            one = self._next()
            named = self._next() if one == "\\" else ""
            if one == "[" or (one in "^&" and not named):
                raise _unread()
            if named in _CLASSES:
                found += _CLASSES[named]
                continue
            first = _escaped(named) if named else _literal(one)
            if self._left[:1] == "-" and self._left[1:2] not in ("", "]"):
                self._next()
                last = self._next()
                if not (one + last).isalnum() or not (one + last).isascii():
                    raise _unread()
                if named or one > last:
                    raise _unread()
                first += f"-{last}"
            found += first
        if found == before:
            raise _unread()
        return found + "]"

    def _repeated(self) -> str:
        counted = _COUNTED.match(self._left)
        if counted is not None:
            self._taken(counted[0])
            ends = [int(one) for one in (counted[1], counted[3]) if one]
            if max(ends) > _TIMES_MAX or ends != sorted(ends):
                raise _unread()
            self.repeats += counted[2] is not None
            found = counted[0]
        else:
            found = next((one for one in "*+?" if self._taken(one)), "")
            self.repeats += found in ("*", "+")
            self.choices += found == "?"
        if self._left[:1] in ("*", "+", "?", "{"):
            raise _unread()
        return found


def _literal(one: str) -> str:
    return "\\" + one if one in _SIGNS else one


def _escaped(one: str) -> str:
    """Return a character behind a backslash: a sign, which then means itself."""
    if one not in _SIGNS:
        raise _unread()
    return "\\" + one


def _unread() -> Misfit:
    return Misfit(
        "this regular expression is not read",
        "engines read it differently, or may take long for it",
        r"use letters, . [a-z] [^/] \d \w \s, * + ? {2,3}, a|b, (a|b), ^ and $;"
        " or column LIKE 'a%'",
    )


def _too_many() -> Misfit:
    return Misfit(
        f"a regular expression has at most {_LENGTH_MAX} characters, and * + {{2,3}}"
        f" {_REPEATS_MAX} times, ? and brackets {_CHOICES_MAX} times",
        "an engine may take long for more",
    )


def _normal(pattern: str) -> str:
    """Return a pattern as all engines read it.

    Raises:
        Misfit: If there is none.
    """
    if len(pattern) > _LENGTH_MAX:
        raise _too_many()
    reader = _Reader(pattern)
    found = reader.read()
    if reader.repeats > _REPEATS_MAX or reader.choices > _CHOICES_MAX:
        raise _too_many()
    return found


def _typed(one: Facts, pattern: Facts) -> Facts:
    needs("REGEXP_MATCHES", ("text",), one)
    _normal(constant("REGEXP_MATCHES", pattern, "text"))
    return _BOOLEAN


def _written(x: Any, _out: Facts, one: Term, pattern: Term) -> Any:
    normal = text(x, _normal(str(pattern.facts.value)))
    return x.paren(x.RegexpLike(this=one.sql, expression=normal), copy=False)


def _meant(one: str, pattern: str) -> bool:
    return re.search(_normal(pattern).replace(r"\z", r"\Z"), one) is not None


PATTERNS: Final[dict[str, Function]] = {
    "regexp_matches": Function(
        _typed,
        _written,
        _meant,
        ("REGEXP_MATCHES", "REGEXP_LIKE"),
        nodes=("RegexpLike",),
        parts=("this", "expression"),
    ),
}
