"""A new release: described in a form, as YAML or by SQL, checked, and submitted.

The draft lives in the page: nothing is stored until it is submitted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

from modicum.api import operations
from modicum.api.schema.release import (
    FILE_MAX,
    Decision,
    Option,
    Options,
    QueryInput,
    QueryPlan,
    Vocabulary,
)
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import RefusedError, Relay
from modicum.console.release_file import by_unit, kinds, text_of, texts

DONE.update(
    {
        "submitted": "It is allowed, and its loss is reserved.",
        "requested": "Its approval is requested. Submit it again once it is approved.",
    }
)

#: How a release may be described, and what each is called.
WAYS: Final = {"form": "Form", "yaml": "YAML", "sql": "SQL"}
#: Fields that are about the page, and not about the draft.
_OF_PAGE: Final = frozenset(
    {"csrf", "key", "tag", "do", "use", "take", "to", "way", "reason"}
)
#: The fields of the other ways.
_TEXTS: Final = frozenset({"text", "query", "tables"})
#: The most characters of all variants on a page.
_VARIANTS_SHOWN: Final = 60_000
#: The most characters of a release file that a page offers as a download.
_LINKED: Final = 40_000

_NEW_TEXT: Final = """\
release: my-release-2026-01
mechanisms:
  - mechanism: gaussian
    attributes: []
    sensitivity: {UNIT: {l2: 1}}
    sigma: 40
"""
_NEW_QUERY: Final = """\
release: my-query-2026-01
query:
  sql: |
    SELECT region, COUNT(*) AS people
    FROM customers
    GROUP BY region
  noise: gaussian
  loss: {UNIT: {rho: 0.001}}
"""
_NEW_TABLES: Final = """\
modicum: tables/v1
tables:
  customers:
    one_per: customer_id
    columns:
      customer_id: {type: text}
      region: {type: text, attribute: ATTRIBUTE, values: [north, south]}
"""


@page("/new-release", "release-draft.html", "Releases")
async def draft(relay: Relay) -> dict[str, Any]:
    """Return the draft as it was sent, and an empty one at first."""
    vocabulary = await relay.get(operations.VOCABULARY)
    fields = _moved(relay, vocabulary)
    way, is_cut = fields["way"], any(len(fields[one]) > FILE_MAX for one in _TEXTS)
    fields |= {one: fields[one][:FILE_MAX] for one in _TEXTS}
    known = kinds()
    kind = known.get(fields.get("mechanism", ""), known["gaussian"])
    text = "" if way == "sql" else await _text(relay, fields, vocabulary)
    return {
        "vocabulary": vocabulary,
        "fields": fields,
        "kept": _kept(fields, way),
        "way": way,
        "ways": WAYS,
        "kinds": tuple(known),
        "kind": kind,
        "by_unit": by_unit(kind),
        "texts": texts(vocabulary),
        "data_sets": _data_sets(await relay.get(operations.ME)),
        "is_cut": is_cut,
        "file": text,
        "link": _link(text),
        "decision": None,
        "plan": None,
        "options": None,
        "variants": (),
        "mistake": None,
        "was_denied": False,
        "number": lambda text: float(Fraction(text)),
    }


@form("/new-release", draft)
async def check_or_submit(relay: Relay) -> str | dict[str, Any]:
    """Check the draft; or submit it, or request its approval."""
    vocabulary = await relay.get(operations.VOCABULARY)
    fields = _moved(relay, vocabulary)
    shown: dict[str, Any] = {}
    if relay.fields.get("do") == "submit":
        gone = await _submitted(relay, fields, vocabulary)
        if gone is not None:
            return gone
        shown["was_denied"] = True
    whole = relay.fields.get("do", "") != ""
    try:
        return shown | await _checked(relay, fields, vocabulary, whole=whole)
    except RefusedError as refused:
        if refused.status in (401, 403, 429, 503):
            raise
        return shown | {"mistake": refused.problem}


async def _submitted(
    relay: Relay, fields: dict[str, str], vocabulary: Vocabulary
) -> str | None:
    """Submit the draft. Return where it is shown then; None if it was denied."""
    text = await _text(relay, fields, vocabulary)
    reason = fields.get("reason", "").strip()
    reply = await relay.call(operations.SUBMIT_RELEASE, text, reason=reason)
    name = reply.value.release
    if reply.status == 202:
        return after("/requests/{}", name, done="requested")
    if reply.value.decision == "allow":
        return after("/releases/{}", name, done="submitted")
    return None


async def _text(relay: Relay, fields: dict[str, str], vocabulary: Vocabulary) -> str:
    """Return the release file of the draft."""
    if fields["way"] == "form":
        return text_of(fields, vocabulary)
    if fields["way"] == "yaml":
        return fields.get("text", "")
    return (await _planned(relay, fields)).file


async def _planned(relay: Relay, fields: dict[str, str]) -> QueryPlan:
    sent = QueryInput(query=fields.get("query", ""), tables=fields.get("tables", ""))
    return await relay.get(operations.PLAN_QUERY, body=sent)


async def _checked(
    relay: Relay, fields: dict[str, str], vocabulary: Vocabulary, *, whole: bool
) -> dict[str, Any]:
    """Return the decision about the draft; and if `whole`, what else would pass."""
    plan = await _planned(relay, fields) if fields["way"] == "sql" else None
    text = plan.file if plan else await _text(relay, fields, vocabulary)
    explain = "true" if whole else None
    decision = (
        plan.decision
        if plan
        else await relay.get(
            operations.CHECK_RELEASE,
            body=text,
            losses="all",
            explain=explain,
            text="true",
        )
    )
    options = None
    if whole and plan is None and decision.decision == "deny":
        options = await relay.get(operations.RELEASE_OPTIONS, body=text)
    return {
        "file": text,
        "link": _link(text),
        "plan": plan,
        "decision": decision,
        "options": options,
        "variants": _variants(decision, options),
    }


def _variants(decision: Decision, options: Options | None) -> tuple[Option, ...]:
    """Return the variants that pass, as far as a page has room; the closest first."""
    found: list[Option] = []
    fit = decision.explanation.fit if decision.explanation else None
    if fit is not None and fit.release is not None:
        why = (*fit.changes, *fit.why)
        found.append(
            Option(
                kind=fit.vary,
                title="the closest fit",
                release=fit.release,
                why=why,
                only_if=None,
                not_before=None,
            )
        )
    texts_shown = {one.release for one in found}
    listed = options.options if options else ()
    found += (one for one in listed if one.release not in texts_shown)
    return tuple(_within(found, _VARIANTS_SHOWN))


def _within(found: Iterable[Option], most: int) -> Iterable[Option]:
    """Yield variants as long as their texts have no more characters than `most`."""
    for one in found:
        most -= len(one.release)
        if most < 0:
            return
        yield one


def _moved(relay: Relay, vocabulary: Vocabulary) -> dict[str, str]:
    """Return the fields of the draft, after a change of the way or of its text."""
    fields = dict(relay.fields)
    way = fields.get("way") or relay.query.get("way", "")
    fields["way"] = way = way if way in WAYS else "form"
    fields.setdefault("mechanism", "gaussian")
    fields.setdefault("text", _NEW_TEXT)
    fields.setdefault("query", _NEW_QUERY)
    fields.setdefault("tables", _NEW_TABLES)
    if fields.get("take"):
        fields["text"], fields["way"] = fields["take"], "yaml"
    elif fields.get("use"):
        target = "query" if way == "sql" else "text"
        fields[target], fields["way"] = fields["use"], "sql" if way == "sql" else "yaml"
    elif fields.get("to") in WAYS:
        if way == "form" and fields["to"] == "yaml":
            fields["text"] = text_of(fields, vocabulary)
        fields["way"] = fields["to"]
    return fields


def _kept(fields: dict[str, str], way: str) -> dict[str, str]:
    """Return the fields of the other ways, which the page holds as hidden ones."""
    shown = {"yaml": {"text"}, "sql": {"query", "tables"}, "form": set[str]()}[way]
    return {
        name: value
        for name, value in fields.items()
        if name not in _OF_PAGE | shown and (way != "form" or name in _TEXTS)
    }


def _data_sets(me: Any) -> list[str]:
    """Return the data sets that the visitor's roles name."""
    named = {one for sets in me.roles.values() for one in sets}
    return sorted(named - {"*"})


def _link(text: str) -> str:
    """Return the address of a text that is stored nowhere; empty if it is too long."""
    if not text or len(text) > _LINKED:
        return ""
    return "data:application/yaml;base64," + b64encode(text.encode()).decode()
