"""The keys of a mapping, each known by name; none is ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from msgspec.structs import replace

from modicum.core.diagnostics import Problems, fail, nearest
from modicum.core.document import Entries, Items, Kind, Node, Scalar, describe
from modicum.core.errors import Code, InputError, Problem


class Fields:
    """The keys of one mapping, taken one by one; unused ones are errors.

    Args:
        node: The mapping.
        what: Its name, for messages.
        help: The remedy if it is something else.

    Raises:
        InputError: If it is no mapping.
    """

    def __init__(
        self,
        node: Node,
        what: str,
        *,
        help: str = "",  # noqa: A002 - the word users see
    ) -> None:
        if not isinstance(node, Entries):
            message = f"{what} must be a mapping, got {describe(node)}"
            raise fail(Code.WRONG_TYPE, message, node, help=_as_mapping(node) or help)
        _refuse_decimal_comma(node)
        self.node = node
        self.what = what
        self._left = {key.text: (key, value) for key, value in node.entries}
        self._known: list[str] = []
        self._absent: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def take(
        self,
        key: str,
        *,
        needed: str = "",
        help: str = "",  # noqa: A002 - the word users see
    ) -> Node:
        """Return the value of a required key.

        Args:
            key: The key.
            needed: The message if it is missing; by default that it is required.
            help: The remedy in that case.

        Raises:
            InputError: If it is missing. A key spelt nearly like the missing one is
                then reported once, here.
        """
        value = self.take_optional(key)
        if value is not None:
            return value
        needed = needed or f"{self.what} needs the key `{key}`"
        for name, (key_node, _) in self._left.items():
            near = nearest(name, self._absent)
            if near:
                del self._left[name]
                raise fail(
                    Code.UNKNOWN_KEY,
                    f"unknown key `{name}` in {self.what}",
                    key_node,
                    label=near,
                    notes=(needed,),
                )
        raise fail(Code.MISSING_KEY, needed, self.node, help=help)

    def take_optional(self, key: str) -> Node | None:
        """Return the value of a key, or None if the key is absent."""
        self._known.append(key)
        pair = self._left.pop(key, None)
        if pair is None:
            self._absent.append(key)
        return pair[1] if pair is not None else None

    def take_pair(self, key: str) -> tuple[Scalar, Node] | None:
        """Return a key with its value, or None if the key is absent."""
        pair = self._left.get(key)
        self.take_optional(key)
        return pair

    def key_node(self, key: str) -> Scalar:
        """Return the key itself, for its position; the key must not be taken yet."""
        return self._left[key][0]

    def rest(self) -> list[tuple[Scalar, Node]]:
        """Take every key that is left, in the order of the text."""
        pairs = list(self._left.values())
        self._left.clear()
        return pairs

    def finish(
        self,
        *,
        unsupported: Mapping[str, str] | None = None,
        slips: Mapping[str, str] | None = None,
    ) -> None:
        """Raise if a key was not taken.

        Args:
            unsupported: Keys of the format that this version does not implement, each
                with its purpose.
            slips: Keys that people write instead of others, each with the remedy.
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
            elif slips and name in slips:
                problem = replace(self._unknown(name, key), help=slips[name])
                found.add(problem)
            else:
                found.add(self._unknown(name, key))
        found.raise_any()

    def refuse_misspelt(self) -> None:
        """Raise if an unused key is spelt nearly like a known one."""
        unknown = (self._unknown(name, key) for name, (key, _) in self._left.items())
        misspelt = [problem for problem in unknown if problem.label]
        if misspelt:
            raise InputError(*misspelt)

    def _unknown(self, name: str, key: Scalar) -> Problem:
        return Problem(
            Code.UNKNOWN_KEY,
            f"unknown key `{name}` in {self.what}",
            key.mark,
            label=nearest(name, self._known),
            help="known keys: " + ", ".join(dict.fromkeys(self._known)),
        )


def _as_mapping(node: Node) -> str:
    """Return how to turn a near-mapping into a mapping."""
    if isinstance(node, Scalar) and node.quoted and node.text[:1] == "{":
        return "leave the quotes around it out"
    names = isinstance(node, Items) and node.items
    if names and all(isinstance(one, Entries) for one in names):
        return "remove the dashes: each name is a key"
    return ""


def has_decimal_comma(text: str) -> bool:
    """Return whether a text is a number but for its comma, such as ``0,5``."""
    return re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text) is not None


def _refuse_decimal_comma(node: Entries) -> None:
    """Refuse ``{eps: 0,5}``, which YAML reads as eps: 0 and a key 5."""
    for (_, value), (key, behind) in pairwise(node.entries):
        if not isinstance(value, Scalar) or not isinstance(behind, Scalar):
            continue
        written = f"{value.text},{key.text}"
        numbers = value.kind is Kind.NUMBER and key.kind is Kind.NUMBER
        if (
            not numbers
            or behind.kind is not Kind.NULL
            or not has_decimal_comma(written)
        ):
            continue
        raise fail(
            Code.NOT_A_NUMBER,
            f"`{written}` is not a number: a comma starts the next entry",
            value,
            label="a decimal comma",
            help=f"write  {value.text}.{key.text}  instead of  {written}",
        )
