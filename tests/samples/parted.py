"""Small policies over people and months, releases about parts, and who was charged."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, TypeAlias

from modicum.api.local.alternatives.trials import HeadView, Trials
from modicum.api.local.evaluation import price_release
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.ledger.decision.balances import ReservedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.release import Part

Written: TypeAlias = dict[str, Any]
#: Somebody: a country and a year of birth.
Person: TypeAlias = tuple[str, int]

TODAY = date(2026, 5, 1).toordinal()
COUNTRIES = ("CH", "DE", "FR", "IT")
YEARS = range(1990, 1994)
MONTHS = tuple(f"2026-{month:02}" for month in range(1, 7))
PEOPLE: tuple[Person, ...] = tuple(product(COUNTRIES, YEARS))

POLICY = """
modicum: policy/v1
name: parted
units:
  user: {id: user_id, neighbors: NEIGHBORS}
  user-month:
    {id: user_id, time: {column: at, period: month}, within: user, neighbors: NEIGHBORS}
labels:
  ml: {values: [none, black-box], default: none}
schema:
  attributes: {age: low, pay: low, born: [low, {}, static]}
population:
  partition_by:
    country: {values: [CH, DE, FR, IT], immutable: [user]}
    birth: {range: [1990, 1993], immutable: [user]}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 2}}
  - {name: month, when: "true", unit: user-month, budget: {rho: 1}}
  - {name: pay, when: '"pay" in m.attributes', unit: user-month, budget: {rho: 0.5}}
extensions:
  - name: ml
    settings:
      standard: {when: 'm.ml == "none"', budget: same, within: black-box}
      black-box: {when: "true", budget: {scale: 3}}
"""


@cache
def policy(neighbors: str = "add-remove") -> CompiledPolicy:
    """Return the policy under one neighboring relation."""
    text = POLICY.replace("NEIGHBORS", neighbors)
    return compile_text(text.encode(), "policy.yaml")


def mechanism(name: str = "counts", **more: Any) -> Written:
    """Return a mechanism that costs rho 0.05 unless it says otherwise."""
    written = {"name": name, "mechanism": "gaussian", "attributes": ["pay"], **more}
    if "sigma" not in more and "cost" not in more:
        written["cost"] = costs("0.05")
    return written


def costs(rho: str) -> Written:
    """Return a declared cost that is the same for both units."""
    return {unit: {"rho": float(rho)} for unit in ("user", "user-month")}


def noise(sigma: str) -> Written:
    """Return noise whose sensitivity is the same for both units."""
    return {
        "sigma": float(sigma),
        "sensitivity": {unit: {"l2": 1} for unit in ("user", "user-month")},
    }


def release(name: str, *mechanisms: Written, **more: Any) -> Written:
    return {"release": name, **more, "mechanisms": list(mechanisms)}


def some(rng: random.Random, number: int, *, large: bool = False) -> Written:
    """Return a random release; its costs are twentieths, so that limits are met."""
    made = [_some(rng, f"m{n}", large) for n in range(rng.choice([1, 1, 2]))]
    return release(f"r-{number}", *made)


def _some(rng: random.Random, name: str, large: bool) -> Written:
    part: Written = {}
    if rng.random() < (0.4 if large else 0.8):
        boxes = [_box(rng) for _ in range(rng.choice([1, 1, 2]))]
        part["where"] = boxes if len(boxes) > 1 else boxes[0]
    if rng.random() < (0.5 if large else 0.85):
        part["periods"] = rng.sample(MONTHS, rng.randint(1, 3))
    attributes = rng.choice([["age"], ["pay"], ["age", "pay"]])
    if rng.random() < 0.05:
        attributes = ["born"]
    rho = rng.choice([1, 2, 3, 5, 8]) / 20
    return mechanism(name, attributes=attributes, cost=costs(str(rho)), **part)


def _box(rng: random.Random) -> Written:
    box: Written = {}
    if rng.random() < 0.7:
        box["country"] = rng.sample(COUNTRIES, rng.randint(1, 2))
    if not box or rng.random() < 0.5:
        first = rng.choice(YEARS)
        box["birth"] = {"from": first, "to": rng.randint(first, YEARS[-1])}
    return box


def priced(written: Written, compiled: CompiledPolicy) -> RecordedRelease:
    return price_release(written, compiled)


def head_view(
    compiled: CompiledPolicy, history: Iterable[RecordedRelease] = ()
) -> HeadView:
    """Return a ledger in memory with these releases in it."""
    reserved = [ReservedRelease(one, TODAY) for one in history]
    seq = len(reserved)
    return HeadView(
        Balances(compiled, reserved), TODAY, seq, "0" * 64, reserved, _unknown
    )


def _unknown(_identifier: str) -> None:
    return None


def trials(
    written: Written, compiled: CompiledPolicy, history: Iterable[Written] = ()
) -> Trials:
    """Return trials of a release, after a history."""
    return Trials(
        head_view(compiled, [priced(one, compiled) for one in history]), written
    )


def filled(rng: random.Random, compiled: CompiledPolicy) -> list[RecordedRelease]:
    """Return a random history in which everything was allowed when it came."""
    balances = Balances(compiled)
    found: list[RecordedRelease] = []
    for number in range(rng.randint(4, 14)):
        one = priced(some(rng, number), compiled)
        if decide(balances, one, TODAY).allowed:
            balances.charge(one, TODAY)
            found.append(one)
    return found


# --- without cells: everybody and every month, one by one -----------------------------


def holds_person(part: Part, person: Person) -> bool:
    """Return whether a part reads somebody."""
    country, year = person
    return part.where is None or any(
        country in dict(box).get("country", (country,))
        and any(year in _years(one) for one in dict(box).get("birth", ((year, year),)))
        for box in part.where
    )


def _years(span: str | tuple[int, int]) -> range:
    assert not isinstance(span, str)
    return range(span[0], span[1] + 1)


def holds_month(part: Part, month: str) -> bool:
    """Return whether a part reads any day of a month."""
    first = date.fromisoformat(f"{month}-01").toordinal()
    last = first + 27  # Months are read as a whole here.
    return part.periods is None or any(
        low <= last and high >= first for low, high in part.periods
    )


def spent(
    history: Iterable[RecordedRelease], person: Person, month: str | None, about: str
) -> dict[str, Fraction]:
    """Return the rho that each release costs somebody, in a month or in all.

    Args:
        history: The releases.
        person: Who.
        month: Which one; None for all of time.
        about: An attribute that mechanisms must read; empty for any.
    """
    found: dict[str, Fraction] = {}
    for one in history:
        for each in one.mechanisms:
            timeless = "born" in each.attributes
            inside = month is None or timeless or holds_month(each.part, month)
            if (
                inside
                and holds_person(each.part, person)
                and (not about or about in each.attributes)
            ):
                unit = "user" if month is None else "user-month"
                rho = Fraction(each.losses[unit].coordinates[1], 10**12)
                found[one.id] = found.get(one.id, Fraction(0)) + rho
    return found
