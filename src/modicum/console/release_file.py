"""The text of a release file from the fields of a form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.kind import Kind
from modicum.api.local.explanation.release_text import release_text
from modicum.api.schema.release import Vocabulary
from modicum.core.rationals import parse_number
from modicum.release.vocabulary import METADATA

#: The measures in which a cost may be declared in the form.
COSTS: Final = ("eps", "delta", "rho", "mu")

Fields = Mapping[str, str]


def kinds() -> dict[str, Kind]:
    """Return the kinds of mechanisms that the form can describe.

    Lists of numbers are left to YAML.
    """
    return {
        name: kind
        for name, kind in RELEASE_KINDS.items()
        if not any(one.listed for one in kind.parameters)
    }


def by_unit(kind: Kind) -> tuple[str, ...]:
    """Return the amounts that the form has for each unit, as `GROUP.KEY`."""
    if kind.norm is not None:
        return tuple(f"sensitivity.{one}" for one in (kind.norm, *kind.of_unit))
    if kind.samples:
        return ()
    if kind.local:
        return ("contribution_bound",)
    return tuple(f"cost.{one}" for one in COSTS)


def texts(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the open texts of a release; a label of the same name replaces one."""
    return tuple(one for one in METADATA if one not in vocabulary.labels)


def text_of(fields: Fields, vocabulary: Vocabulary) -> str:
    """Return the text of the release file that the fields describe.

    Fields that are empty are left out. What is wrong stays in the text: whoever checks
    it reports the mistake.
    """
    release: dict[str, Any] = {"release": fields.get("id", "").strip()}
    for name in vocabulary.labels:
        release |= _given(name, fields.get(f"label.{name}"))
    for name in texts(vocabulary):
        release |= _given(name, fields.get(name))
    release |= _given("periods", fields.get("periods"))
    release["mechanisms"] = [_mechanism(fields, vocabulary)]
    return release_text(release)


def _mechanism(fields: Fields, vocabulary: Vocabulary) -> dict[str, Any]:
    name = fields.get("mechanism", "")
    found: dict[str, Any] = {
        **_given("name", fields.get("name")),
        "mechanism": name,
        "attributes": _lines(fields.get("attributes", "")),
    }
    kind = kinds().get(name)
    if kind is None:
        return found
    for group, amounts in _amounts(fields, kind, vocabulary.units):
        found[group] = amounts
    given = [*kind.described, *(("eps", "delta") if kind.target else ())]
    for key in given:
        found |= _number(key, fields.get(f"parameter.{key}"))
    if kind.local and fields.get("public_frame"):
        found["public_frame"] = True
    rate = _number("rate", fields.get("sampling.rate"))
    if rate:
        found["sampling"] = {"unit": fields.get("sampling.unit", ""), **rate}
    return found


def _amounts(
    fields: Fields, kind: Kind, units: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is given by unit: the sensitivity, the cost or the bound."""
    wanted = by_unit(kind)
    for group in dict.fromkeys(one.partition(".")[0] for one in wanted):
        found: dict[str, Any] = {}
        for unit in units:
            if group in wanted:
                found |= _number(unit, fields.get(f"{group}.{unit}"))
                continue
            keys = [one.partition(".")[2] for one in wanted]
            amount: dict[str, Any] = {}
            for key in keys:
                amount |= _number(key, fields.get(f"{group}.{key}.{unit}"))
            found |= {unit: amount} if amount else {}
        if found:
            yield group, found


def _given(key: str, value: str | None) -> dict[str, Any]:
    """Return a text that was given."""
    stripped = (value or "").strip()
    return {key: stripped} if stripped else {}


def _number(key: str, value: str | None) -> dict[str, Fraction | str]:
    """Return a number that was given, exactly; another text stays one."""
    found = _given(key, value)
    exact = parse_number(found[key]) if found else None
    return found if exact is None else {key: exact}


def _lines(value: str) -> list[str]:
    return [one.strip() for one in value.splitlines() if one.strip()]
