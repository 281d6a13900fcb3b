"""The tree of a predicate, with the position of each part."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from modicum.core.errors import Code

#: Line and column within the predicate, both from 1.
Place: TypeAlias = tuple[int, int]


class Rewrite(Struct, frozen=True):
    """A remedy: a replacement and the replaced text.

    Attributes:
        old: The text in the predicate; empty for everything around the position.
        new: The replacement.
    """

    old: str
    new: str


class CelError(Exception):
    """A mistake in a predicate, with its position."""

    def __init__(
        self,
        code: Code,
        message: str,
        at: Place = (1, 1),
        *,
        label: str = "",
        notes: tuple[str, ...] = (),
        help: str = "",  # noqa: A002 - the word users see
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.label = label
        self.notes = notes
        self.help = help
        self.rewrite: Rewrite | None = None

    def mended_by(self, rewrite: Rewrite | None) -> CelError:
        """Return the error itself, with a rewrite, which precedes `help`."""
        self.rewrite = rewrite
        return self


class Literal(Struct, frozen=True):
    """A constant; None is one of a kind that nothing can be compared with."""

    value: str | int | bool | None
    at: Place
    written: str = ""


class Listing(Struct, frozen=True):
    """``[a, b]``."""

    items: tuple[Part, ...]
    at: Place


class Name(Struct, frozen=True):
    """``m``."""

    name: str
    at: Place


class Field(Struct, frozen=True):
    """``owner.name``."""

    owner: Part
    name: str
    name_at: Place
    at: Place


class Item(Struct, frozen=True):
    """``owner[key]``."""

    owner: Part
    key: Part
    at: Place


class Call(Struct, frozen=True):
    """``function(arguments)``, or ``owner.function(arguments)``."""

    owner: Part | None
    function: str
    arguments: tuple[Part, ...]
    at: Place


class Negation(Struct, frozen=True):
    """``!part``."""

    part: Part
    at: Place


class Junction(Struct, frozen=True):
    """``a && b && c``, or with ``||``."""

    operator: str
    parts: tuple[Part, ...]
    at: Place


class Comparison(Struct, frozen=True):
    """``left == right``, with any operator that relates."""

    operator: str
    left: Part
    right: Part
    at: Place


class Choice(Struct, frozen=True):
    """``condition ? yes : no``."""

    condition: Part
    yes: Part
    no: Part
    at: Place


Part: TypeAlias = (
    Literal
    | Listing
    | Name
    | Field
    | Item
    | Call
    | Negation
    | Junction
    | Comparison
    | Choice
)


#: The remedy where there is none more specific.
_SUBSET = (
    "use ==, !=, <, <=, >, >=, in, &&, ||, !, ?:, exists, all, size, has, startsWith,"
    " endsWith, contains"
)


def outside(at: Place, reason: str = "", *, help: str = _SUBSET) -> CelError:  # noqa: A002
    """Return the error for CEL outside the subset.

    Args:
        at: Its position.
        reason: The reason; may be empty.
        help: The remedy.
    """
    return CelError(
        Code.CEL_SUBSET,
        "this is outside the CEL subset of this version",
        at,
        notes=(reason,) if reason else (),
        help=help,
    )
