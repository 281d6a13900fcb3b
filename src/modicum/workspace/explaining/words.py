"""A decision in words: lines by rule, with room for what is looked up later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

#: Where lines that were looked up later begin.
_INDENT = " " * 9


class RuleLines(msgspec.Struct, frozen=True):
    """What is said about one rule.

    Attributes:
        rule: Its id; empty for what is said about none.
        lines: The lines.
    """

    rule: str
    lines: tuple[str, ...]


class Added(msgspec.Struct, frozen=True):
    """What the log tells about a denial, in words.

    Attributes:
        rules: Who filled the cells of rules that deny.
        closest: What would pass instead.
    """

    rules: tuple[RuleLines, ...]
    closest: tuple[str, ...]


class Words(msgspec.Struct, frozen=True):
    """A decision in words.

    Attributes:
        headline: The decision in one line.
        reasons: What each rule says, those that deny first.
        rest: What else is to be known.
    """

    headline: str
    reasons: tuple[RuleLines, ...]
    rest: tuple[str, ...]

    def text(self, added: Added | None = None) -> str:
        """Return all of it as one text.

        Args:
            added: What the log tells besides; None for nothing.
        """
        closest = added.closest if added else ()
        told = {one.rule: one.lines for one in added.rules} if added else {}
        lines = self._reasons(told)
        more = (f"  {line}" for line in closest)
        return "\n".join((self.headline, *lines, *more, *self.rest))

    def _reasons(self, told: Mapping[str, Sequence[str]]) -> Iterator[str]:
        for one in self.reasons:
            yield from one.lines
            yield from (f"{_INDENT}{line}" for line in told.get(one.rule, ()))
