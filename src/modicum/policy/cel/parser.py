"""From CEL text to a small tree, with the position of each part.

The grammar is that of the CEL specification. Parts outside the subset, such as
arithmetic, are parsed, too: they get a specific error, not a syntax error. Semantics is
up to `modicum.policy.cel.compiler`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from modicum.core.errors import Code
from modicum.policy.cel.tree import (
    Call,
    CelError,
    Choice,
    Comparison,
    Field,
    Item,
    Junction,
    Listing,
    Literal,
    Name,
    Negation,
    Part,
    Place,
    outside,
)

_WHOLE_MAX = 2**63 - 1
_SHORT = {
    "\\": "\\",
    '"': '"',
    "'": "'",
    "n": "\n",
    "t": "\t",
    "r": "\r",
}
_ESCAPES = (
    r"""a text may contain these escapes: \\ \" \' \n \t \r \uXXXX and \UXXXXXXXX"""
)
_PIECE = re.compile(
    r"\\(?:(?P<short>[\\\"'ntr])|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8}))"
    r"|(?P<plain>[^\\]+)"
)


class NotInSubsetError(ValueError):
    """A CEL literal outside the subset; the message gives the reason.

    Attributes:
        help: The remedy.
    """

    def __init__(self, reason: str, help: str) -> None:  # noqa: A002
        super().__init__(reason)
        self.help = help


def text_value(token: str) -> str:
    r"""Return the value of a text literal.

    Raises:
        NotInSubsetError: If it has a prefix, three quotes, or another escape.
    """
    if token[0] not in "\"'":
        raise NotInSubsetError(
            "a text has no prefix before its quotes", "remove the letter"
        )
    if token.startswith(('"""', "'''")):
        raise NotInSubsetError("a text has one quote at each end", "write one of three")
    body = token[1:-1]
    value: list[str] = []
    place = 0
    while place < len(body):
        piece = _PIECE.match(body, place)
        if piece is None:
            raise NotInSubsetError(_ESCAPES, r"write \\ for a backslash")
        value.append(_meant(piece))
        place = piece.end()
    return "".join(value)


def _meant(piece: re.Match[str]) -> str:
    if piece["plain"] is not None:
        return piece["plain"]
    if piece["short"] is not None:
        return _SHORT[piece["short"]]
    code = int(piece["four"] or piece["eight"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise NotInSubsetError(
            f"there is no character with the number {code:#x}", "write another"
        )
    return chr(code)


def whole_value(token: str) -> int:
    """Return the integer of a literal.

    Raises:
        NotInSubsetError: If it does not fit into the 64 bits that CEL gives it.
    """
    few_digits = len(token) <= 20
    value = int(token, 16 if "x" in token else 10) if few_digits else 1 << 64
    if not -_WHOLE_MAX - 1 <= value <= _WHOLE_MAX:
        raise NotInSubsetError(
            "integers have at most 64 bits", "write a smaller number"
        )
    return value


#: Deeper nesting is refused.
NESTING_MAX = 40

_TOKEN = re.compile(
    r"""(?P<blank>[\t\n\f\r ]+|//[^\n]*)"""
    # No backslash escapes anything behind an `r`.
    r'''|(?P<bytes>[bB])?(?P<text>[rR](?:"""[\s\S]*?"""'''
    r"""|'''[\s\S]*?'''|"[^"\n]*"|'[^'\n]*')"""
    r'''|(?:"""(?:[^\\]|\\[\s\S])*?"""'''
    r"""|'''(?:[^\\]|\\[\s\S])*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))"""
    r"|(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)"
    r"|(?P<whole>(?:0x[0-9a-fA-F]+|\d+)(?P<unsigned>[uU])?)"
    r"|(?P<word>[_a-zA-Z]\w*)"
    r"|(?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])",
    re.ASCII,
)
_KINDS = ("text", "float", "whole", "word", "sign")
_CONSTANTS = {"true": True, "false": False, "null": None}
_RELATIONS = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})


def read_cel(source: str) -> Part:
    """Return the tree of a CEL text.

    Raises:
        CelError: If it is not CEL, nests too deeply, or uses something that has no
            meaning anywhere in the subset.
    """
    return _Parser(source).predicate()


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Found(NamedTuple):
    """A part, how many levels it has below it, and where it begins."""

    part: Part
    levels: int
    start: int


class _Parser:
    """Recursive descent. Errors of the syntax go before those of the subset."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = list(self._cut())
        self._next = 0
        self._depth = 0
        self._refused: list[tuple[int, Callable[[], CelError]]] = []

    def predicate(self) -> Part:
        found = self._choice()
        if self._next < len(self._tokens):
            raise self._unexpected()
        if found.levels > NESTING_MAX:
            raise _too_deep()
        if self._refused:
            # The first one in the text; of those that begin there, the outermost.
            first = min(start for start, _ in self._refused)
            raise next(make for at, make in reversed(self._refused) if at == first)()
        return found.part

    # --- tokens ---

    def _cut(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._source):
            match = _TOKEN.match(self._source, at)
            if match is None:
                from modicum.policy.cel.hints import syntax_error

                raise syntax_error(self._source, self._place(at))
            if match["blank"] is None:
                kind = next(one for one in _KINDS if match[one] is not None)
                if match["bytes"]:
                    kind = "bytes"
                elif match["unsigned"]:
                    kind = "float"  # Nothing can be compared with either.
                yield _Token(kind, match[0], at)
            at = match.end()

    def _place(self, at: int) -> Place:
        before = self._source[:at]
        return before.count("\n") + 1, at - before.rfind("\n")

    def _peek(self) -> str:
        """Return the next sign or word; empty for another token, and at the end."""
        if self._next == len(self._tokens):
            return ""
        token = self._tokens[self._next]
        return token.text if token.kind in {"word", "sign"} else ""

    def _take(self) -> _Token:
        if self._next == len(self._tokens):
            raise self._unexpected()
        self._next += 1
        return self._tokens[self._next - 1]

    def _takes(self, *signs: str) -> bool:
        """Take the next token if it is one of these."""
        if self._peek() not in signs:
            return False
        self._next += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._unexpected()

    def _name(self) -> _Token:
        token = self._take()
        if token.kind != "word" or token.text in _CONSTANTS:
            self._next -= 1
            raise self._unexpected()
        return token

    def _unexpected(self) -> CelError:
        """Return the error for the next token; at the end, it points to the last."""
        from modicum.policy.cel.hints import syntax_error

        index = min(self._next, len(self._tokens) - 1)
        at = self._place(self._tokens[index].start) if self._tokens else (1, 1)
        return syntax_error(self._source, at)

    def _refuse(self, start: int, make: Callable[[], CelError] | None = None) -> _Found:
        """Record a part outside the subset; a constant replaces it."""
        at = self._place(start)
        self._refused.append((start, make or partial(outside, at)))
        return _Found(Literal(None, at), 0, start)

    # --- operators, from those that bind least ---

    def _choice(self) -> _Found:
        self._depth += 1
        if self._depth > NESTING_MAX + 1:
            raise _too_deep()
        found = self._any()
        if self._takes("?"):
            yes = self._any()
            self._expect(":")
            no = self._choice()
            part = Choice(found.part, yes.part, no.part, found.part.at)
            found = _above(part, found.start, found, yes, no)
        self._depth -= 1
        return found

    def _any(self) -> _Found:
        return self._junction("||", self._all)

    def _all(self) -> _Found:
        return self._junction("&&", self._relation)

    def _junction(self, sign: str, term: Callable[[], _Found]) -> _Found:
        found = [term()]
        while self._takes(sign):
            found.append(term())
        if len(found) == 1:
            return found[0]
        part = Junction(sign, tuple(one.part for one in found), found[0].part.at)
        return _above(part, found[0].start, *found)

    def _relation(self) -> _Found:
        left = self._sum()
        relations = 0
        while (sign := self._peek()) in _RELATIONS:
            self._take()
            right = self._sum()
            relations += 1
            if relations > 1:
                from modicum.policy.cel.hints import chained

                self._refuse(
                    left.start, partial(chained, self._source, self._place(left.start))
                )
            part = Comparison(sign, left.part, right.part, left.part.at)
            left = _above(part, left.start, left, right)
        return left

    def _sum(self) -> _Found:
        found = self._sign()
        while self._takes("+", "-", "*", "/", "%"):
            self._sign()
            found = self._refuse(found.start)
        return found

    def _sign(self) -> _Found:
        if self._peek() not in {"!", "-"}:
            return self._member()
        sign = self._take()
        for number in self._tokens[self._next : self._next + 1]:
            touches = number.start == sign.start + 1
            if sign.text == "-" and number.kind in _NUMBERS and touches:
                signed = _Token(number.kind, f"-{number.text}", sign.start)
                self._tokens[self._next] = signed
                return self._member()
        self._depth += 1
        if self._depth > NESTING_MAX + 1:
            raise _too_deep()
        inner = self._sign()
        self._depth -= 1
        if sign.text == "-":
            return self._refuse(sign.start)
        part = Negation(inner.part, self._place(sign.start))
        return _above(part, sign.start, inner)

    # --- operands ---

    def _member(self) -> _Found:
        found = self._primary()
        at = self._place(found.start)
        while self._peek() in {".", "[", "{"}:
            sign = self._take().text
            if sign == "{":
                self._pairs(self._name)
                found = self._refuse(found.start)
            elif sign == "[":
                key = self._choice()
                self._expect("]")
                part: Part = Item(found.part, key.part, at)
                found = _above(part, found.start, found, key)
            else:
                name = self._name()
                if self._takes("("):
                    given = self._list(")")
                    arguments = tuple(one.part for one in given)
                    part = Call(found.part, name.text, arguments, at)
                    found = _above(part, found.start, found, *given)
                else:
                    place = self._place(name.start)
                    part = Field(found.part, name.text, place, at)
                    found = _above(part, found.start, found)
        return found

    def _primary(self) -> _Found:
        token = self._take()
        at = self._place(token.start)
        if token.kind != "sign":
            return self._word(token) if token.kind == "word" else self._number(token)
        if token.text == "(":
            inner = self._choice()
            self._expect(")")
            return _above(inner.part, token.start, inner)
        if token.text == "[":
            items = self._list("]")
            part = Listing(tuple(one.part for one in items), at)
            return _above(part, token.start, *items)
        if token.text == "{":
            self._pairs(self._choice)
            return self._refuse(token.start)
        if token.text == ".":  # A name of the outermost scope.
            self._name()
            if self._takes("("):
                self._list(")")
            return self._refuse(token.start)
        self._next -= 1
        raise self._unexpected()

    def _word(self, token: _Token) -> _Found:
        at = self._place(token.start)
        if token.text in _CONSTANTS:
            value = _CONSTANTS[token.text]
            return _Found(Literal(value, at, token.text), 0, token.start)
        self._next -= 1
        self._name()
        if not self._takes("("):
            return _Found(Name(token.text, at), 0, token.start)
        given = self._list(")")
        if token.text.lower() == "not":
            from modicum.policy.cel.hints import negation_as_function

            return self._refuse(
                token.start, partial(negation_as_function, self._source)
            )
        part = Call(None, token.text, tuple(one.part for one in given), at)
        return _above(part, token.start, *given)

    def _number(self, token: _Token) -> _Found:
        at = self._place(token.start)
        value: str | int | None = None
        try:
            if token.kind == "whole":
                value = whole_value(token.text)
            elif token.kind == "text":
                value = text_value(token.text)
        except NotInSubsetError as error:
            why = partial(outside, at, str(error), help=error.help)
            return self._refuse(token.start, why)
        return _Found(Literal(value, at, token.text), 0, token.start)

    def _list(self, end: str) -> list[_Found]:
        """Return the items up to a bracket, and take it."""
        if self._takes(end):
            return []
        items = [self._choice()]
        while self._takes(","):
            items.append(self._choice())
        self._expect(end)
        return items

    def _pairs(self, key: Callable[[], object]) -> None:
        """Parse the contents of braces."""
        if self._takes("}"):
            return
        while True:
            key()
            self._expect(":")
            self._choice()
            if not self._takes(","):
                break
        self._expect("}")


_NUMBERS = frozenset({"whole", "float"})


def _above(part: Part, start: int, *below: _Found) -> _Found:
    return _Found(part, 1 + max((one.levels for one in below), default=0), start)


def _too_deep() -> CelError:
    return CelError(
        Code.CEL_LIMIT, f"the predicate nests deeper than {NESTING_MAX} levels"
    )
