r"""JSON's two escapes of one character, which YAML does not know.

JSON writes a character beyond the basic plane as two halves, `\ud83d\ude00`; libyaml
refuses each. So they are replaced, character by character, by escapes that the text
contains nowhere else, which keeps all places, and are put back into the values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count

from msgspec import Struct

# An escape: not a backslash that is escaped itself.
_HALF = re.compile(r"(?<!\\)(?:\\\\)*\\u([dD][89a-fA-F][0-9a-fA-F]{2})")
_PRIVATE = re.compile(r"[uU](?:0000)?([ef][0-9a-f]{3})", re.IGNORECASE)
_FIRST, _LAST = 0xE000, 0xF8FF


class Halves(Struct, frozen=True):
    """What stands for the halves of characters in a text.

    Attributes:
        characters: By the code point that stands for a half, the half.
        spelled: By an escape that stands for another, that one as written.
    """

    characters: Mapping[int, str]
    spelled: Mapping[str, str]

    def back(self, value: str, style: str | None) -> str:
        """Return the value of a scalar as its author wrote it."""
        if style == '"':
            return value.translate(self.characters)
        return re.sub(
            r"\\u[ef][0-9a-f]{3}",
            lambda found: self.spelled.get(found[0], found[0]),
            value,
        )


def without_halves(text: str) -> tuple[str, Halves] | None:
    """Return a text without escapes of halves, and how to put them back.

    None if it contains more different ones than there are characters to stand for them.
    """
    written = dict.fromkeys(_HALF.findall(text))
    taken = {int(code, 16) for code in _PRIVATE.findall(text)}
    taken.update(map(ord, set(text)))
    free = (code for code in count(_FIRST) if code not in taken)
    stands = dict(zip(written, free, strict=False))
    if stands and max(stands.values()) > _LAST:
        return None
    shown = _HALF.sub(lambda found: f"{found[0][:-4]}{stands[found[1]]:04x}", text)
    return shown, Halves(
        {code: chr(int(half, 16)) for half, code in stands.items()},
        {f"\\u{code:04x}": f"\\u{half}" for half, code in stands.items()},
    )


def joined(value: str) -> str | None:
    """Return a text with the halves of each character joined; None if one is alone."""
    try:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None
