"""The pages of the console, and their forms: each declared once, where it is answered.

A new page is a function with a decorator, and its template.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from modicum.console.relay import Relay

#: Returns what a template shows.
View: TypeAlias = Callable[[Relay], Awaitable[dict[str, Any]]]
#: Does what a form requests. Returns the address of the page to show then, or what its
#: own page shows in addition: an answer that is shown once, and not kept.
Act: TypeAlias = Callable[[Relay], Awaitable[str | dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        path: Its path, with parameters as in `Operation.path`.
        template: The name of its template.
        view: Returns what it shows.
        section: The entry of the navigation that it belongs to; empty for none.
    """

    path: str
    template: str
    view: View
    section: str


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a page.

    Attributes:
        path: The path that it is sent to.
        act: Does what it requests.
        page: The page that it is on, which shows why it was refused.
    """

    path: str
    act: Act
    page: View


#: The navigation: sections by name, with their paths, in order.
SECTIONS: Final = {
    "Overview": "/",
    "Releases": "/releases",
    "Requests": "/requests",
    "Rounds": "/rounds",
    "Policy": "/policy",
    "Rules": "/rules",
    "Risk": "/risk",
    "Escrow": "/escrow",
    "Ledger": "/ledger",
    "Audit": "/audit",
    "Settings": "/settings",
}

#: What a page says after a form was accepted, by the key in its address.
DONE: Final[dict[str, str]] = {}

PAGES: Final[dict[str, Page]] = {}
FORMS: Final[dict[str, Form]] = {}


def page(path: str, template: str, section: str = "") -> Callable[[View], View]:
    """Return a decorator that registers a page; see `Page`."""

    def register(view: View) -> View:
        assert path not in PAGES, path
        PAGES[path] = Page(path, template, view, section)
        return view

    return register


def after(path: str, *parts: str | int, done: str) -> str:
    """Return the address of a page that says, once, that a form was accepted.

    Each `{}` in the path is replaced by one of the parts, quoted.
    """
    assert done in DONE, done
    quoted = (quote(str(one), safe="") for one in parts)
    return f"{path.format(*quoted)}?done={done}"


def form(path: str, page: View) -> Callable[[Act], Act]:
    """Return a decorator that registers a form; see `Form`."""

    def register(act: Act) -> Act:
        assert path not in FORMS, path
        FORMS[path] = Form(path, act, page)
        return act

    return register
