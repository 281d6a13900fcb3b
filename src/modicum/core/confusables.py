"""Names that people take for each other: by look-alikes, and by capitals.

Skeletons are those of Unicode Technical Standard #39, of letters and digits. A table of
Unicode grows: what is stored must not depend on it, only what is accepted anew.
"""

from __future__ import annotations

import unicodedata
from functools import cache

from modicum.core.confusable_letters import LOOKALIKES


def keys(name: str) -> frozenset[str]:
    """Return the keys of a name; confusable names have one in common.

    Examples:
        >>> keys("r-10") & keys("R-lO") != set()
        True
        >>> keys("income").isdisjoint(keys("outcome"))
        True
    """
    folded = name.casefold()
    if name == folded and name.isascii():
        return frozenset((_skeleton(name),))
    # A capital I looks like an l, and means an i.
    return frozenset((_skeleton(name).casefold(), _skeleton(folded)))


def confusable(one: str, other: str) -> bool:
    """Return whether two different names may be taken for each other."""
    return one != other and not keys(one).isdisjoint(keys(other))


def _skeleton(name: str) -> str:
    if name.isascii():  # As most are: several times faster.
        for letter, prototype in _ascii():
            name = name.replace(letter, prototype)
        return name
    return unicodedata.normalize("NFKD", name).translate(_prototypes())


@cache
def _ascii() -> tuple[tuple[str, str], ...]:
    known = _prototypes().items()
    return tuple((chr(one), prototype) for one, prototype in known if one < 128)


@cache
def _prototypes() -> dict[int, str]:
    return {
        ord(letter): prototype
        for prototype, letters in LOOKALIKES
        for letter in letters
    }
