"""What a policy means: DPolicy read literally (sections 4.1, 4.2), and slowly.

A policy and a release are the plain data of their files, checked already. A budget
is (measure, parameter, delta), or None where nothing is enforced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, TypeAlias

Plain: TypeAlias = Mapping[str, Any]
Budget: TypeAlias = "tuple[str, Fraction, Fraction | None] | None"

METADATA = ("purpose", "requester", "dataset", "audience")
COVERED = {
    "member": {"member"},
    "strong": {"member", "strong"},
    "weak": {"member", "strong", "weak"},
}


class UndefinedError(Exception):
    """A budget map says nothing about the budget it is applied to."""


@dataclass(frozen=True)
class Rule:
    """All of `whens` hold, and one of `reads` is read if that is not None."""

    id: str
    unit: str
    budget: Budget
    whens: tuple[str, ...] = ()
    reads: frozenset[str] | None = None


def exact(number: object) -> Fraction:
    return Fraction(str(number))


def read_budget(policy: Plain, written: Any) -> Budget:
    if written == "unlimited":
        return None
    if isinstance(written, Mapping):
        (measure,) = {"eps", "rho", "mu"} & written.keys()
        value, delta = written[measure], written.get("delta")
    else:
        bare = policy["dp"]["bare_budget"]
        measure = {"zcdp": "rho", "gdp": "mu"}.get(bare["type"], "eps")
        value, delta = written, bare.get("delta")
    return measure, exact(value), None if delta is None else exact(delta)


def look_up(table: Plain, value: Fraction) -> Fraction | None:
    """Return what a table makes of a parameter; None if that is unlimited."""
    points = {exact(key): exact(to) for key, to in table["map"].items()}
    low, high = min(points), max(points)
    if value in points:
        return points[value]
    if value < low and table.get("below") == "proportional":
        return points[low] * value / low
    if value > high and table.get("above") == "last":
        return points[high]
    if value > high and table.get("above") == "unlimited":
        return None
    if low < value < high and table.get("between") in {"linear", "floor"}:
        left = max(key for key in points if key < value)
        right = min(key for key in points if key > value)
        share = (value - left) / (right - left) if table["between"] == "linear" else 0
        return points[left] + share * (points[right] - points[left])
    raise UndefinedError(value)


def changed(policy: Plain, budget_map: Any, budget: Budget) -> Budget:
    if budget_map == "same":
        return budget
    if "to" in budget_map:
        return read_budget(policy, budget_map["to"])
    more = read_budget(policy, budget_map["add"]) if "add" in budget_map else budget
    if budget is None or more is None:
        return None
    measure, value, delta = budget
    if "add" in budget_map:
        if more[0] != measure:
            raise UndefinedError(budget_map)
        return measure, value + more[1], delta
    if "scale" in budget_map:
        return measure, value * exact(budget_map["scale"]), delta
    found = look_up(budget_map, value)
    return None if found is None else (measure, found, delta)


def tags(attribute: Any) -> tuple[str, Plain]:
    """Return an attribute's risk level and its categories with their levels."""
    parts: list[Any] = [attribute] if isinstance(attribute, str) else list(attribute)
    risk: str = parts[0]
    return risk, (parts[1] if len(parts) > 1 else {})


def base_rules(policy: Plain, base: Plain) -> Iterator[Rule]:
    name, unit = base["name"], base["unit"]
    attributes = {
        a: tags(tagged) for a, tagged in policy["schema"]["attributes"].items()
    }
    if "for_each" not in base:
        yield Rule(name, unit, read_budget(policy, base["budget"]), (base["when"],))
    elif base["for_each"] == "attribute":
        for attribute, (risk, _) in attributes.items():
            written = base.get("override", {}).get(attribute, base["budget"].get(risk))
            budget = read_budget(policy, written)
            yield Rule(f"{name}:{attribute}", unit, budget, (), frozenset({attribute}))
    else:
        for category, risk in policy["schema"].get("categories", {}).items():
            whole = read_budget(policy, base["budget"][risk])
            for level, budget_map in base.get("levels", {"member": "same"}).items():
                reads = frozenset(
                    attribute
                    for attribute, (_, categories) in attributes.items()
                    if categories.get(category) in COVERED[level]
                )
                budget = changed(policy, budget_map, whole)
                yield Rule(f"{name}:{category}/{level}", unit, budget, (), reads)


def rules(policy: Plain) -> list[Rule]:
    """Return the rules over history: base rules times settings, in file order."""
    found: list[Rule] = []
    for base in policy.get("policies", []):
        extended = list(base_rules(policy, base))
        for extension in policy.get("extensions", []):
            extended = [
                replace(
                    rule,
                    id=f"{rule.id} @{name}",
                    budget=changed(policy, setting["budget"], rule.budget),
                    whens=(*rule.whens, setting["when"]),
                )
                for rule in extended
                for name, setting in extension["settings"].items()
            ]
        found.extend(extended)
    return found


def release_rules(policy: Plain) -> list[Rule]:
    """Return the rules over one release alone; extensions do not touch them."""
    return [
        r for base in policy.get("per_release", []) for r in base_rules(policy, base)
    ]


_OPERATORS = re.compile(r""""[^"]*"|'[^']*'|&&|\|\||!=|!|\btrue\b|\bfalse\b""")
_PYTHON = {"&&": " and ", "||": " or ", "!": " not ", "true": "True", "false": "False"}


def holds(when: str, m: Plain, release: Plain) -> bool:
    """Return what a CEL text says: it is Python, but for the spelling of operators."""
    python = _OPERATORS.sub(lambda found: _PYTHON.get(found[0], found[0]), when)
    names = {"m": SimpleNamespace(**m), "release": SimpleNamespace(**release)}
    return bool(eval(f"({python})", {"__builtins__": {}}, names))


def scopes(policy: Plain, release: Plain, number: int) -> tuple[Plain, Plain]:
    """Return what predicates see as `m`, mechanism `number` from 1, and `release`."""
    mechanism = release["mechanisms"][number - 1]
    labels = policy.get("labels", {})
    of_release = {n: release.get(n, label["default"]) for n, label in labels.items()}
    of_mechanism = {n: mechanism.get(n, of_release[n]) for n in labels}
    m = {"name": f"mechanism-{number}", **mechanism, **of_mechanism}
    texts = {key: release.get(key, "") for key in METADATA}
    return m, {**texts, "id": release["release"], **of_release}


def matches(policy: Plain, rule: Rule, release: Plain, number: int) -> bool:
    """Return whether a mechanism of a release falls under a rule."""
    m, about = scopes(policy, release, number)
    touched = rule.reads is None or not rule.reads.isdisjoint(m["attributes"])
    return touched and all(holds(when, m, about) for when in rule.whens)


def unmatched(policy: Plain, release: Plain) -> list[str]:
    """Return the mechanisms that deny a release, as no rule over history limits them.

    A rule limits what falls under it if its budget is enforced; what looks at one
    release alone adds nothing up.
    """
    if policy.get("unmatched", "deny") == "allow":
        return []
    limits = [rule for rule in rules(policy) if rule.budget is not None]
    return [
        scopes(policy, release, number)[0]["name"]
        for number in range(1, len(release["mechanisms"]) + 1)
        if not any(matches(policy, rule, release, number) for rule in limits)
    ]
