"""The utility of a release to its requester; only planning rounds use it.

It is not part of the description: two releases that differ in it are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from modicum.core.document import Entries, Items, Node, Scalar, from_python
from modicum.core.errors import Code
from modicum.core.rationals import number_text
from modicum.core.reader import fail, number, refuse_nothing
from modicum.release.builders import ReleaseDraft
from modicum.release.vocabulary import UTILITY, Vocabulary

__all__ = [
    "DIGITS_MAX",
    "UTILITY",
    "UTILITY_MAX",
    "UTILITY_USUAL",
    "Description",
    "exact_utility",
    "read_utility",
    "stated_utility",
]

#: A release in any form: a draft, plain data as in a file, or a tree with places.
Description: TypeAlias = "ReleaseDraft | Mapping[str, object] | Node"

#: The default utility of a release.
UTILITY_USUAL = Fraction(1)
#: A larger one is refused.
UTILITY_MAX = 10**9
#: The same limit applies to digits before or after the point, and above or below the
#: line of a fraction: a plan stores it exactly, as text.
DIGITS_MAX = 40
_EXACT = re.compile(
    rf"\d{{1,{DIGITS_MAX}}}([./]\d{{1,{DIGITS_MAX}}})?",
    re.ASCII,
)


def stated_utility(release: Description, vocabulary: Vocabulary) -> Node | None:
    """Return the value of `utility` in a release; None if there is none.

    Args:
        release: The release.
        vocabulary: The words it may use. A label named `utility` is that label, and no
            utility.

    Raises:
        InputError: If it is a value that a file could not contain.
    """
    if UTILITY in vocabulary.labels:
        return None
    if isinstance(release, ReleaseDraft):
        release = release.fields
    if isinstance(release, Entries):
        return next((v for key, v in release.entries if key.text == UTILITY), None)
    if isinstance(release, Scalar | Items) or UTILITY not in release:
        return None
    return from_python(release[UTILITY])


def read_utility(node: Node) -> Fraction:
    """Return a utility, exactly.

    Raises:
        InputError: If it is no number from 0 to `UTILITY_MAX`, or has more than
            `DIGITS_MAX` digits.
    """
    what = f"`{UTILITY}`"
    refuse_nothing(node, what)
    value = number(node, what)
    if not 0 <= value <= UTILITY_MAX:
        shown = node.text if isinstance(node, Scalar) else ""
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be between 0 and {UTILITY_MAX}, got {shown}",
            node,
        )
    if not _is_brief(value):
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be a number with fewer digits",
            node,
            notes=(f"at most {DIGITS_MAX} on each side of the point, written in full",),
        )
    return value


def exact_utility(text: str) -> Fraction | None:
    """Return the utility stored as text in a plan; None if the text is invalid.

    Args:
        text: The text, as `number_text` writes it.
    """
    if not _EXACT.fullmatch(text):
        return None
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return None


def _is_brief(value: Fraction) -> bool:
    """Return whether a plan can hold a number; a longer one is not even written."""
    few = value.denominator <= 10**DIGITS_MAX
    return few and _EXACT.fullmatch(number_text(value)) is not None
