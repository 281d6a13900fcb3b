"""Tokens of invalid CEL: enough to diagnose its author's intention."""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec import Struct

from modicum.policy.cel.tree import Place

_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|(?P<remark>//[^\n]*)"
    r"""|(?P<quote>["'])"""
    r"|(?P<curly>[“”„‘’«»])"  # noqa: RUF001 - what word processors write
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<sign>&&|\|\||===|!==|==|!=|<=|>=|<>|=<|=>|=~|[^\s\w])"
)
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())

#: Comparison operators.
RELATIONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
#: The end of a comparison.
TERM_ENDS = frozenset({"&&", "||", "&", "|", ",", "?", ":", ";"})
#: Words often written for `&&` and `||`.
JOINING_WORDS = frozenset({"and", "or"})


class Token(Struct, frozen=True):
    """One word, sign or quoted text.

    Attributes:
        kind: `text`, `quote` (an unclosed one), `curly` (a typographic quote), `word`,
            `number` or `sign`.
        text: How it is written.
        start: Its start in the source, from 0.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Its end in the source."""
        return self.start + len(self.text)

    def is_word(self, words: Collection[str]) -> bool:
        """Return whether it is one of some words, ignoring case."""
        return self.kind == "word" and self.text.lower() in words


class Tokens:
    """The tokens of a source, and how far the parts around them reach."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.all = [
            Token(str(found.lastgroup), found[0], found.start())
            for found in _TOKEN.finditer(source)
            if found.lastgroup != "remark"
        ]
        self.partner, self.lonely = _matched(self.all)

    def at(self, index: int) -> Token | None:
        """Return the token of an index, or None if there is none."""
        return self.all[index] if 0 <= index < len(self.all) else None

    def reach(self, index: int, step: int, *, ends: Collection[str] = ()) -> int:
        """Return the last token of the operand before or after a token.

        Args:
            index: The token; it belongs to the part.
            step: -1 for before, 1 for behind.
            ends: Signs at which the part ends, beside those that end every term.
        """
        while (token := self.at(index + step)) is not None:
            inner = self.partner.get(index + step)
            if inner is not None and (inner - index) * step > 0:
                index = inner  # A bracket that opens in this direction: skip it.
            elif token.text in ends or self._ends_a_term(index + step):
                break
            else:
                index += step
        return index

    def _ends_a_term(self, index: int) -> bool:
        token = self.all[index]
        if token.text in TERM_ENDS or token.text in _OPENING or token.text in _CLOSING:
            return True
        return token.is_word(JOINING_WORDS) and not self._is_field(index)

    def _is_field(self, index: int) -> bool:
        before = self.at(index - 1)
        return before is not None and before.text == "."

    def word(self, index: int, words: Collection[str]) -> Token | None:
        """Return a token if it is one of some words, and not the name of a field."""
        token = self.at(index)
        if token is None or not token.is_word(words) or self._is_field(index):
            return None
        return token

    def cut(self, first: int, last: int) -> str:
        """Return the source from one token to another, both included."""
        if last < first:
            return ""
        return self.source[self.all[first].start : self.all[last].end]

    def place(self, offset: int) -> Place:
        """Return line and column of an offset in the source."""
        before = self.source[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _matched(tokens: list[Token]) -> tuple[dict[int, int], list[int]]:
    """Return the other bracket of every bracket, and brackets that have none."""
    partner: dict[int, int] = {}
    lonely: list[int] = []
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in _OPENING:
            opened.append(index)
        elif token.text in _CLOSING:
            if opened and _OPENING[tokens[opened[-1]].text] == token.text:
                partner[index] = opened[-1]
                partner[opened.pop()] = index
            else:
                lonely.append(index)
    return partner, sorted(lonely + opened)
