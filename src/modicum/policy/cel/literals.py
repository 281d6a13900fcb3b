"""What CEL's literals stand for: texts with their escapes, and whole numbers."""

from __future__ import annotations

import re

_WHOLE_MAX = 2**63 - 1
_SHORT = {
    "\\": "\\",
    '"': '"',
    "'": "'",
    "n": "\n",
    "t": "\t",
    "r": "\r",
}
_ESCAPES = r"""of escapes, a text may hold \\ \" \' \n \t \r \uXXXX and \UXXXXXXXX"""
_PIECE = re.compile(
    r"\\(?:(?P<short>[\\\"'ntr])|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8}))"
    r"|(?P<plain>[^\\]+)"
)


class NotInSubsetError(ValueError):
    """A literal that CEL has and the subset leaves out; the message says why.

    Attributes:
        help: What to write instead.
    """

    def __init__(self, reason: str, help: str) -> None:  # noqa: A002
        super().__init__(reason)
        self.help = help


def text_value(token: str) -> str:
    r"""Return the text that a literal stands for.

    Args:
        token: The literal with its quotes, such as ``"it\'s"``.

    Raises:
        NotInSubsetError: If it has a prefix, three quotes, or another escape.
    """
    if token[0] not in "\"'":
        raise NotInSubsetError(
            "a text has no letter before its quotes", "remove the letter"
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
    """Return the whole number that a literal stands for.

    Args:
        token: The literal, decimal or hexadecimal.

    Raises:
        NotInSubsetError: If it does not fit into the 64 bits that CEL gives it.
    """
    few_digits = len(token) <= 20
    value = int(token, 16 if "x" in token else 10) if few_digits else 1 << 64
    if not -_WHOLE_MAX - 1 <= value <= _WHOLE_MAX:
        raise NotInSubsetError(
            "whole numbers have at most 64 bits", "write a smaller number"
        )
    return value
