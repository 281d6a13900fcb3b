"""The policy that is shipped as an example, against its own words and the oracle."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from oracle import policy as oracle
from ruamel.yaml import YAML

import modicum
from modicum.accounting import ApproxBudget, Budget, ZcdpBudget
from modicum.core.document import from_python
from modicum.ledger.decision.balances import facts_of
from modicum.ledger.log.recorded_release import record_release
from modicum.policy import CompiledPolicy
from modicum.release import parse_release, price

FOLDER = Path(modicum.__file__).parent / "ops" / "examples" / "acme-health"


@lru_cache
def compiled() -> CompiledPolicy:
    return modicum.load_policy(FOLDER / "policy.yaml")


@lru_cache
def plain() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(FOLDER / "policy.yaml")
    return found


def as_oracle(budget: Budget) -> oracle.Budget:
    if isinstance(budget, ZcdpBudget):
        return "rho", budget.rho, None
    assert isinstance(budget, ApproxBudget)
    return "eps", budget.eps, budget.delta


def test_the_example_has_as_many_rules_as_it_says() -> None:
    found = compiled()
    assert sum(found.base_rules.values()) == 21
    assert len(found.rules) == 42
    assert len(found.release_rules) == 1
    assert found.warnings == ()
    assert dict(found.base_rules) == {"global": 1, "marketing": 1, "attr": 10, "cat": 9}


@pytest.mark.spec("POL-2")
def test_the_example_compiles_to_the_rules_of_the_oracle() -> None:
    for found, expected in (
        (compiled().rules, oracle.rules(plain())),
        (compiled().release_rules, oracle.release_rules(plain())),
    ):
        assert [(rule.id, rule.unit, as_oracle(rule.budget)) for rule in found] == [
            (rule.id, rule.unit, rule.budget) for rule in expected
        ]


@pytest.mark.parametrize(
    ("rule", "eps"),
    [
        ("global @standard", "3"),
        ("global @black-box", "10"),
        ("attr:country @standard", "2.5"),
        ("attr:country @black-box", "7"),
        ("attr:salary @black-box", "2"),
        ("cat:health/member @standard", "1.5"),
        ("cat:health/strong @standard", "1.8"),
        ("cat:health/strong @black-box", "4.2"),  # 3 + 2 * 0.3/0.5
        ("cat:health/weak @standard", "2.25"),
        ("cat:health/weak @black-box", "6"),  # 5 + 2 * 0.25/0.5
        ("cat:location/strong @black-box", "6.6"),  # 5 + 2 * 0.4/0.5
        ("cat:location/weak @black-box", "10"),
    ],
)
def test_limits_of_the_example_worked_out_by_hand(rule: str, eps: str) -> None:
    (budget,) = (found.budget for found in compiled().rules if found.id == rule)
    assert budget == ApproxBudget(Fraction(eps), Fraction(1, 10**7))


def releases() -> list[dict[str, Any]]:
    """Return releases of one to three mechanisms over all contexts and attributes."""
    attributes = list(plain()["schema"]["attributes"])
    read = [list(one) for n in (0, 1, 2) for one in combinations(attributes, n)]
    contexts: list[dict[str, str]] = [
        {
            key: value
            for key, value in zip(("ml", "audience"), values, strict=True)
            if value
        }
        for values in product((None, "none", "black-box"), (None, "internal", "public"))
    ]
    cost = {"patient": {"eps": 1}}
    found: list[dict[str, Any]] = []
    for number, (one, of_release) in enumerate(product(read, contexts)):
        own = contexts[number % len(contexts)]
        purpose = ("marketing", "research")[number % 2]
        described = [
            {"mechanism": "declared", "attributes": one, "cost": cost, **own},
            {"mechanism": "declared", "attributes": read[number % 30], "cost": cost},
        ][: 1 + number % 2]
        release = {"release": f"r-{number}", "purpose": purpose, **of_release}
        found.append({**release, "mechanisms": described})
    return found


@pytest.mark.spec("POL-7")
@pytest.mark.spec("REL-6")
def test_the_rules_of_the_example_match_what_the_oracle_says() -> None:
    vocabulary = compiled().policy.vocabulary
    expected = [*oracle.rules(plain()), *oracle.release_rules(plain())]
    matched = 0
    for release in releases():
        node = from_python(release)
        recorded = record_release(price(parse_release(node, vocabulary), vocabulary))
        facts = facts_of(recorded, vocabulary)
        sets = (compiled().rules, compiled().release_rules)
        found = {rule.id: at for one in sets for rule, at in one.matching(facts)}
        matched += len(found)
        places = range(len(release["mechanisms"]))
        for rule in expected:
            about = tuple(
                at for at in places if oracle.matches(plain(), rule, release, at + 1)
            )
            assert found.get(rule.id, ()) == about, (rule.id, release)
    assert matched > 1000
