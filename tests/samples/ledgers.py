"""Random policies of all kinds, and random releases to hold against them."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

from modicum.accounting import COORDINATES, INFINITE, Loss
from modicum.accounting.grid import DELTA
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text

Written: TypeAlias = dict[str, Any]

ATTRIBUTES = ("age", "gps", "icd", "pay")
CATEGORIES = ("health", "money")
RISKS = ("low", "high")
LABELS = {"ml": ("none", "some", "all"), "audience": ("us", "them")}
UNITS = ("user", "week", "month", "day")
#: Which units each of them may lie in.
WITHIN = {"user": (), "week": ("user",), "month": ("user",), "day": ("week", "month")}
#: One unit of a budget, in units of the ledger.
ONE = 10**12
RELATIONS = ("any-change", "any-change", "add-remove")
PREDICATES = (
    "true",
    "true",
    '"age" in m.attributes',
    '"gps" in m.attributes && m.ml == "none"',
    'm.ml != "none"',
    "size(m.attributes) >= 2",
    '!("pay" in m.attributes)',
    'release.purpose == "study"',
    'm.audience == "us" || release.audience == "us"',
    'm.name.startsWith("a")',
)
#: Every one of each family can be scaled, but the last family.
MEASURES: dict[str, Callable[[int], Written]] = {
    "eps": lambda n: {"eps": n},
    "approx": lambda n: {"eps": n, "delta": 1e-7},
    "rho": lambda n: {"rho": n},
    "mu": lambda n: {"mu": n},
    "rdp": lambda n: {"rdp": {"4": n, "16": n + 1}},
}


def chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share


def policy_text(rng: random.Random, *measures: str, ordered: bool = True) -> str:
    """Return a policy as YAML (JSON is YAML).

    Args:
        rng: The dice.
        measures: What budgets are in; by default a random choice.
        ordered: Whether units may lie in each other.
    """
    family = measures or tuple(rng.sample(list(MEASURES), rng.choice([1, 2, 3])))
    units = [one for one in UNITS if one == "user" or chance(rng, 0.5)]

    def budget() -> Any:
        if chance(rng, 0.05):
            return "unlimited"
        return MEASURES[rng.choice(family)](rng.choice([1, 1, 2, 2, 3, 4]))

    def policies(prefix: str, least: int, most: int) -> list[Written]:
        return [
            _base_policy(rng, f"{prefix}{number}", rng.choice(units), budget, family)
            for number in range(rng.randint(least, most))
        ]

    written: Written = {
        "modicum": "policy/v1",
        "name": "random",
        "dp": {"filter": rng.choice(["combined-v1", "combined-v2", "zcdp-v1"])},
        "units": {one: _unit(rng, one, units, ordered=ordered) for one in units},
        "labels": {
            label: {"values": values, "default": rng.choice(values)}
            for label, values in LABELS.items()
        },
        "schema": {
            "categories": {one: rng.choice(RISKS) for one in CATEGORIES},
            "attributes": {one: _attribute(rng) for one in ATTRIBUTES},
        },
        "policies": policies("p", 1, 4),
        "per_release": policies("r", 0, 2),
        "extensions": [
            _extension(rng, label, family) for label in LABELS if chance(rng, 0.5)
        ],
    }
    text = json.dumps({key: part for key, part in written.items() if part != []})
    # Not by the dice: what they draw next does not depend on it.
    if zlib.crc32(text.encode()) % 4:
        text = text.removesuffix("}") + ', "unmatched": "allow"}'
    return text.replace('"4":', "4:").replace('"16":', "16:")  # Orders are numbers.


def _unit(rng: random.Random, unit: str, units: list[str], *, ordered: bool) -> Written:
    larger = [one for one in WITHIN[unit] if one in units and ordered]
    if unit == "day" and ordered and not larger:
        larger = ["user"]
    facts: Written = {"id": "user_id", "neighbors": rng.choice(RELATIONS)}
    if larger and chance(rng, 0.9):
        facts["within"] = larger
    return facts


def _attribute(rng: random.Random) -> list[Any]:
    joined = {
        one: rng.choice(["member", "strong", "weak"])
        for one in CATEGORIES
        if chance(rng, 0.6)
    }
    return [rng.choice(RISKS), joined]


def _base_policy(
    rng: random.Random, name: str, unit: str, budget: Any, family: tuple[str, ...]
) -> Written:
    own: Written = {"name": name, "unit": unit}
    kind = rng.choice(["custom", "custom", "attribute", "category"])
    if kind == "custom":
        return own | {"when": rng.choice(PREDICATES), "budget": budget()}
    own |= {"for_each": kind, "budget": {risk: budget() for risk in RISKS}}
    if kind == "category":
        levels = {"member": "same", "strong": _map(rng, family), "weak": "same"}
        own["levels"] = levels
    return own


def _map(rng: random.Random, family: tuple[str, ...]) -> Any:
    return "same" if "rdp" in family else rng.choice(["same", {"scale": 2}])


def _extension(rng: random.Random, label: str, family: tuple[str, ...]) -> Written:
    values = list(LABELS[label])
    rng.shuffle(values)
    settings: Written = {"any": {"when": "true", "budget": _map(rng, family)}}
    for count in range(1, len(values)):
        listed = ", ".join(json.dumps(one) for one in values[:count])
        settings[f"{count}"] = {
            "when": f"{rng.choice(['m', 'release'])}.{label} in [{listed}]",
            "budget": _map(rng, family),
        }
    named = {f"{label}-{name}": setting for name, setting in settings.items()}
    return {"name": label, "settings": named}


def compiled_from(text: str) -> CompiledPolicy:
    return compile_text(text.encode(), "policy.yaml")


def release(rng: random.Random, number: int, *, huge: bool = False) -> RecordedRelease:
    """Return a release; what is random in it includes what no policy knows.

    Args:
        rng: The dice.
        number: Tells it from others.
        huge: Whether losses are near infinity instead of near the budgets.
    """
    return RecordedRelease(
        id=f"r-{number}",
        content="0" * 64,
        labels=_labels(rng),
        metadata={"purpose": "study"} if chance(rng, 0.5) else {},
        mechanisms=tuple(
            RecordedMechanism(
                description={"name": rng.choice(["a", "b"]), "kind": "declared"},
                attributes=tuple(
                    sorted(rng.sample([*ATTRIBUTES, "old"], rng.choice([0, 1, 1, 2])))
                ),
                labels=_labels(rng),
                losses=_losses(rng, huge=huge) if known else {},
                neighbors={one: "any-change" for one in UNITS if chance(rng, 0.7)},
            )
            for known in (chance(rng, 0.95) for _ in range(rng.choice([1, 1, 2, 2, 3])))
        ),
    )


def _labels(rng: random.Random) -> dict[str, str]:
    return {
        label: rng.choice([*values, "unheard-of"])
        for label, values in LABELS.items()
        if chance(rng, 0.9)
    }


def _losses(rng: random.Random, *, huge: bool) -> dict[str, Loss]:
    same = loss(rng, huge=huge) if chance(rng, 0.4) else None
    return {one: same or loss(rng, huge=huge) for one in UNITS if not chance(rng, 0.07)}


def loss(rng: random.Random, *, huge: bool = False) -> Loss:
    """Return a loss of round numbers, so that sums meet the budgets exactly."""
    if huge:
        sizes = [0, 1, 2**61, INFINITE - 1, INFINITE - 1, INFINITE]
        return Loss(tuple(rng.choice(sizes) for _ in range(COORDINATES)))
    step = rng.choice([0, ONE // 8, ONE // 4, ONE // 2, ONE])
    odd = rng.choice([0, 0, 0, 1, -1])
    values = [
        INFINITE if chance(rng, 0.1) else max(0, rng.randint(0, 2) * step + odd)
        for _ in range(COORDINATES)
    ]
    values[DELTA] = rng.choice([0, 0, 0, 0, 10**10])
    return Loss(tuple(values))
