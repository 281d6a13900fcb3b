"""Texts that no predicate mentions, and that fit what predicates ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from modicum.policy.predicates import TextPasses, TextTest

#: What another text is called where nothing is asked of it.
_READABLE = "something-else"


def another_text(
    mentioned: Collection[str],
    must: Collection[TextPasses],
    may_not: Collection[TextPasses],
) -> str | None:
    """Return a text that is not mentioned and passes some tests, and fails others.

    Where there is one, the barest text is one: it has just the parts that it must
    have, with a strange letter between them. Every text that passes those tests has
    these parts, so it passes whatever the barest one passes.

    Args:
        mentioned: Texts that it may not be.
        must: Tests that it must pass.
        may_not: Tests that it may not pass.

    Returns:
        Such a text, or None if there is none.
    """
    parts = {test: [one.part for one in must if one.test is test] for test in TextTest}
    start = max(parts[TextTest.STARTS_WITH], key=len, default="")
    end = max(parts[TextTest.ENDS_WITH], key=len, default="")
    strange = _strange([*mentioned, *(one.part for one in (*must, *may_not))])
    barest = strange.join([start, *parts[TextTest.CONTAINS], end])
    for text in (_READABLE, barest):
        fits = all(one.test.passes(text, one.part) for one in must)
        if (
            fits
            and text not in mentioned
            and not any(one.test.passes(text, one.part) for one in may_not)
        ):
            return text
    return None


def _strange(texts: Iterable[str]) -> str:
    """Return a letter that occurs in no text."""
    used = set("".join(texts))
    letters = (chr(code) for code in range(ord("a"), 0x10000))
    return next(one for one in letters if one.isalpha() and one not in used)
