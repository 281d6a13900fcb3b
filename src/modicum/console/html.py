"""Templates as HTML: every value is escaped, and every character can be seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from modicum.api.schema.policy import RuleStanding
from modicum.console.relay import AS_OF
from modicum.core.rationals import rational
from modicum.reports.charts.charges import meter
from modicum.reports.markup import visible
from modicum.reports.style import STYLE
from modicum.risk.study.rounding import at_least, at_most, near

#: The files that browsers load, below `/static`.
STATIC: Final = files("modicum.console") / "static"
#: The style of statements, which pages share.
SHARED_STYLE: Final = "statement.css"


def _final(value: object) -> object:
    """Return a value as it is shown: nothing of it is invisible."""
    if hasattr(value, "__html__"):
        return value
    return "" if value is None else visible(str(value))


def environment() -> Environment:
    """Return the environment of all templates."""
    found = Environment(
        loader=PackageLoader("modicum.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_final,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "loss": at_most,
        "limit": at_least,
        "near": near,
        "time": _time,
        "short": lambda digest: digest[:12],
        "quoted": lambda text: quote(text, safe=""),
        "as_json": _json,
        # What a form sends back is what was written, also what cannot be seen.
        "field": lambda value: escape("" if value is None else value),
    }
    found.globals |= {"url": _url, "asset": asset, "meter": _meter}
    return found


def _meter(one: RuleStanding) -> str:
    """Return a drawing of how full a rule is."""
    share = Fraction(0) if one.share is None else rational(one.share)
    label = f"{at_most(one.spent)} of {at_least(one.limit)}"
    return meter(share, label, state=one.state.lower())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _time(at: str) -> Markup:
    """Return a time in UTC, to the second, as people and programs read it."""
    shown = f"{at[:10]} {at[11:19]} UTC" if len(at) > 10 else at
    return Markup('<time datetime="{}">{}</time>').format(at, shown)


@pass_context
def _url(context: Context, path: str, /, *parts: str | int, **query: Any) -> str:
    """Return the address of a page, at the same point in the past.

    Each `{}` in the path is replaced by one of the parts, quoted.
    """
    found = path.format(*(quote(str(one), safe="") for one in parts))
    kept = {name: one for name, one in query.items() if one not in (None, "", False)}
    if context.get(AS_OF):
        kept.setdefault(AS_OF, context[AS_OF])
    return f"{found}?{urlencode(kept, doseq=True)}" if kept else found


@cache
def static_file(name: str) -> bytes | None:
    """Return a file that browsers load; None if there is none."""
    if name == SHARED_STYLE:
        return STYLE.encode()
    known = _names()
    return known[name].read_bytes() if name in known else None


@cache
def _names() -> Mapping[str, Any]:
    """Return the files below `static`, by their path."""
    found: dict[str, Any] = {}
    waiting = [("", STATIC)]
    while waiting:
        before, folder = waiting.pop()
        for one in folder.iterdir():
            name = f"{before}{one.name}"
            if one.is_dir():
                waiting.append((f"{name}/", one))
            else:
                found[name] = one
    return found


@cache
def asset(name: str) -> str:
    """Return the address of such a file, which changes with its contents."""
    contents = static_file(name)
    assert contents is not None, name
    return f"/static/{hashlib.sha256(contents).hexdigest()[:16]}/{name}"
