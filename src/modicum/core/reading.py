"""Reading marked trees strictly: no key is ignored, every mistake has a place."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from modicum.core.document import Entries, Items, Kind, Node, Scalar, describe
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.exact import parse_number

#: More problems than this are not collected; the first ones matter.
PROBLEMS_MAX = 50

# Controls, half surrogates, odd line breaks, and what changes the direction of text.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    r"\ud800-\udfff]"
)
_NAME = re.compile(r"\w[\w.+-]{0,127}")
_RELEASE_ID = re.compile(r"\w[\w.:/@+-]{0,199}")


class Problems:
    """Collects mistakes in siblings, so that one run reports them all."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Note an `InputError` raised inside, and go on after the block."""
        try:
            yield
        except InputError as error:
            self._found.extend(error.problems)
            if len(self._found) >= PROBLEMS_MAX:
                self.raise_any()

    def add(self, problem: Problem) -> None:
        """Note a mistake."""
        self._found.append(problem)

    def raise_any(self) -> None:
        """Raise what was found, in the order of the text; return if nothing was."""
        if self._found:
            found = list(dict.fromkeys(self._found))  # The same for two units: once.
            raise InputError(*sorted(found, key=_place)[:PROBLEMS_MAX])


def _place(problem: Problem) -> tuple[str, int, int]:
    mark = problem.mark
    return (mark.file, mark.line, mark.column) if mark else ("", 0, 0)


def fail(
    code: Code,
    message: str,
    node: Node | None = None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    help: str = "",  # noqa: A002 - the word users see
) -> InputError:
    """Return the error for a mistake at `node`, ready to be raised."""
    mark = node.mark if node is not None else None
    return InputError(Problem(code, message, mark, label, tuple(notes), help))


@contextmanager
def placed(node: Node) -> Iterator[None]:
    """Give the place of `node` to mistakes raised inside that have none.

    Raises:
        InputError: What was raised inside, with places.
    """
    try:
        yield
    except InputError as error:
        raise InputError(
            *(
                replace(problem, mark=problem.mark or node.mark)
                for problem in error.problems
            )
        ) from error


class Fields:
    """The keys of one mapping, taken one by one; what is left over is an error."""

    def __init__(self, node: Node, what: str) -> None:
        if not isinstance(node, Entries):
            raise fail(
                Code.WRONG_TYPE, f"{what} must be a mapping, got {describe(node)}", node
            )
        self.node = node
        self.what = what
        self._left = {key.text: (key, value) for key, value in node.entries}
        self._known: list[str] = []
        self._absent: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> Node:
        """Return the value of a key that must be there.

        Raises:
            InputError: If it is not there.
        """
        value = self.take_optional(key)
        if value is None:
            needed = f"{self.what} needs the key `{key}`"
            for name, (key_node, _) in self._left.items():
                if near := nearest(name, self._absent):
                    raise fail(
                        Code.UNKNOWN_KEY,
                        f"unknown key `{name}` in {self.what}",
                        key_node,
                        label=near,
                        notes=(needed,),
                    )
            raise fail(Code.MISSING_KEY, needed, self.node)
        return value

    def take_optional(self, key: str) -> Node | None:
        """Return the value of a key, or None if the key is absent."""
        self._known.append(key)
        pair = self._left.pop(key, None)
        if pair is None:
            self._absent.append(key)
        return pair[1] if pair is not None else None

    def key_node(self, key: str) -> Scalar:
        """Return the key itself, for its place; the key must not be taken yet."""
        return self._left[key][0]

    def rest(self) -> list[tuple[Scalar, Node]]:
        """Take every key that is left, in the order of the text."""
        pairs = list(self._left.values())
        self._left.clear()
        return pairs

    def finish(self, *, unsupported: Mapping[str, str] | None = None) -> None:
        """Raise if a key was not taken.

        Args:
            unsupported: Keys that the format has and this version does not
                implement, each with what it is for.
        """
        found = Problems()
        for name, (key, _) in self._left.items():
            if unsupported and name in unsupported:
                found.add(
                    Problem(
                        Code.NOT_SUPPORTED,
                        f"`{name}` in {self.what} is not supported by this version",
                        key.mark,
                        notes=(unsupported[name],),
                        help="remove the key; nothing is ever ignored silently",
                    )
                )
            else:
                found.add(
                    Problem(
                        Code.UNKNOWN_KEY,
                        f"unknown key `{name}` in {self.what}",
                        key.mark,
                        label=nearest(name, self._known),
                        help="known keys: " + ", ".join(self._known),
                    )
                )
        found.raise_any()


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the nearest known word, or nothing."""
    close = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else ""


def take_format(fields: Fields, known: str) -> None:
    """Take the key ``format``, which must have the one known value.

    Raises:
        InputError: If it is missing or another.
    """
    node = fields.take("format")
    given = line(node, "`format`")
    if given != known:
        raise fail(
            Code.UNKNOWN_VERSION,
            f"unknown format `{given[:40]}`",
            node,
            help=f"write `format: {known}`",
        )


def items(node: Node, what: str) -> tuple[Node, ...]:
    """Return the items of a list.

    Raises:
        InputError: If it is not a list.
    """
    if not isinstance(node, Items):
        raise fail(
            Code.WRONG_TYPE, f"{what} must be a list, got {describe(node)}", node
        )
    return node.items


def text(node: Node, what: str, *, characters_max: int = 2000) -> str:
    """Return a text; a bare number or boolean is refused rather than guessed at.

    Raises:
        InputError: If it is not text, is too long, or holds control characters.
    """
    if not isinstance(node, Scalar) or node.kind is not Kind.TEXT:
        bare = isinstance(node, Scalar) and node.kind is not Kind.NULL
        raise fail(
            Code.WRONG_TYPE,
            f"{what} must be text, got {describe(node)}",
            node,
            help="put it in quotes" if bare else "",
        )
    if len(node.text) > characters_max:
        raise fail(
            Code.TOO_LARGE, f"{what} has more than {characters_max} characters", node
        )
    if _UNPRINTABLE.search(node.text):
        raise fail(
            Code.NOT_TEXT,
            f"{what} holds a control character or half of a surrogate pair",
            node,
            notes=("it would be shown on other people's terminals",),
        )
    return node.text


def line(node: Node, what: str) -> str:
    """Return a text of one line.

    Raises:
        InputError: If it is not text, is too long, or has line breaks or controls.
    """
    value = text(node, what)
    if "\n" in value or "\t" in value:
        raise fail(Code.NOT_TEXT, f"{what} must be a single line without tabs", node)
    return value


def name(node: Node, what: str) -> str:
    """Return a name: letters, digits, `_.+-`, at most 128 characters, NFC."""
    return _matching(node, what, _NAME, "letters, digits and _ . + -")


def release_id(node: Node, what: str) -> str:
    """Return a release id: a name that may also hold `:/@`, at most 200 characters."""
    return _matching(node, what, _RELEASE_ID, "letters, digits and _ . : / @ + -")


def _matching(node: Node, what: str, pattern: re.Pattern[str], allowed: str) -> str:
    value = text(node, what)
    if not pattern.fullmatch(value) or unicodedata.normalize("NFC", value) != value:
        raise fail(
            Code.BAD_NAME,
            f"{what} is not a valid name: `{value[:60]}`",
            node,
            help=f"use {allowed}, beginning with a letter, digit or _",
        )
    return value


def choice(node: Node, what: str, known: Iterable[str], code: Code) -> str:
    """Return one of a closed set of words.

    Raises:
        InputError: With `code`, if it is none of them.
    """
    options = list(known)
    value = text(node, what)
    if value not in options:
        raise fail(
            code,
            f'unknown {what} "{value[:60]}"',
            node,
            label=nearest(value, options),
            help="known: " + (", ".join(options[:20]) or "none"),
        )
    return value


def boolean(node: Node, what: str) -> bool:
    """Return true or false.

    Raises:
        InputError: If it is neither.
    """
    if not isinstance(node, Scalar) or node.kind is not Kind.BOOLEAN:
        raise fail(
            Code.WRONG_TYPE, f"{what} must be true or false, got {describe(node)}", node
        )
    return node.text.lower() == "true"


def number(node: Node, what: str) -> Fraction:
    """Return the exact value of a finite number.

    Raises:
        InputError: If it is quoted (a text, not a number), NaN, infinite, or
            written with more than 64 characters or a power of ten over 400.
    """
    if not isinstance(node, Scalar) or node.kind is not Kind.NUMBER:
        quoted = (
            isinstance(node, Scalar)
            and node.quoted
            and parse_number(node.text) is not None
        )
        raise fail(
            Code.NOT_A_NUMBER,
            f"{what} must be a number, got {describe(node)}",
            node,
            label="this is text, because of the quotes" if quoted else "",
            help="remove the quotes" if quoted else "",
        )
    value = parse_number(node.text)
    if value is None and "/" in node.text:
        return Fraction(node.text)  # Only from Python: files know no fractions.
    if value is None and re.fullmatch(r"[-+.0-9eE]+", node.text):
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be a number of fewer digits, got `{node.text[:70]}`",
            node,
            notes=("at most 64 characters, and a power of ten of at most 400",),
        )
    if value is None:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be a finite decimal number, got `{node.text[:70]}`",
            node,
            notes=("NaN and infinity are not numbers here",)
            if "n" in node.text.lower()
            else (),
        )
    return value


def positive(node: Node, what: str) -> Fraction:
    """Return a number that is greater than 0.

    Raises:
        InputError: If it is not a number, or not above 0.
    """
    value = number(node, what)
    if value <= 0:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be greater than 0, got {_shown(node)}",
            node,
        )
    return value


def probability(node: Node, what: str) -> Fraction:
    """Return a number strictly between 0 and 1.

    Raises:
        InputError: If it is not a number, or not between them.
    """
    value = number(node, what)
    if not 0 < value < 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must lie strictly between 0 and 1, got {_shown(node)}",
            node,
        )
    return value


def count(node: Node, what: str, *, at_least: int, at_most: int) -> int:
    """Return a whole number within bounds, both included.

    Raises:
        InputError: If it is not a whole number, or out of bounds.
    """
    value = number(node, what)
    if value.denominator != 1 or not at_least <= value <= at_most:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} must be a whole number from {at_least} to {at_most},"
            f" got {_shown(node)}",
            node,
        )
    return value.numerator


def _shown(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else describe(node)


def place(mark: Mark | None) -> str:
    """Return ``file:line`` for a note, or a dash when there is no file."""
    return f"{mark.file}:{mark.line}" if mark is not None else "-"
