"""HTML from Python values: text is escaped unless it is markup already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

#: Tags that have no contents and no end.
_EMPTY = frozenset({"meta", "rect", "path", "circle"})


class Markup(str):
    """Text that is HTML already, made by this module only."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return it as templates insert it."""
        return self


Child: TypeAlias = "str | Markup"


def element(tag: str, *children: Child, **attributes: str) -> Markup:
    """Return an element."""
    named = "".join(
        f' {name.removesuffix("_").replace("_", "-")}="{escape(visible(value))}"'
        for name, value in attributes.items()
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{named}>" if tag == "meta" else f"<{tag}{named}/>")
    return Markup(f"<{tag}{named}>{joined(children)}</{tag}>")


def joined(children: Iterable[Child]) -> Markup:
    """Return contents one after the other; plain text is escaped."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else escape(visible(child))
            for child in children
        )
    )


def visible(text: str) -> str:
    """Return a text in which every character can be seen: others as an escape."""
    return "".join(
        one
        if one.isprintable() or one == "\n"
        else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def table(
    caption: str, titles: Sequence[str], rows: Iterable[Sequence[Child]]
) -> Markup:
    """Return a table whose first column names its rows."""
    head = element("tr", *(element("th", one, scope="col") for one in titles))
    lines = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", *lines),
    )
