"""User groups take turns otherwise: what is said to loosen nothing loosens nothing."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from budget import counted, examples, seed
from samples.small import POLICY, compiled

from modicum.api.local.policies.test_format import UserGroups, planning_of
from modicum.core.document import from_python
from modicum.ledger import Balances, RecordedRelease, decide, record_release
from modicum.ledger.decision.balances import reserved_releases
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Verdict, differences
from modicum.policy.model import Retired, RotationRule
from modicum.release import parse_release, price

HEAD = POLICY.split("policies:")[0]
GROUPED = HEAD + "population: {groups: {immutable: [user]}}\npolicies:\n"
BUDGETS = ("{rho: 0.01}", "{rho: 0.03}", "{eps: 0.5}", "{eps: 1, delta: 1e-7}")
SLACKS = ("0", "0.25", "0.5", "1")
LAST = 5


def some_rotation(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return ""
    active, slack = rng.randint(1, LAST), rng.choice(SLACKS)
    retired = rng.choice(["closed", "first-come"])
    return f"rotation: {{active: {active}, slack: {slack}, retired: {retired}}}\n"


def share_at(rule: RotationRule | None, age: int | None) -> Fraction:
    """Return what a group of an age may have used; of a retired one, without an age.

    Who had all its turns has retired, too, whoever let it stay. Step by step: an early
    step is larger by the slack, a late one smaller.
    """
    if rule is None:
        return Fraction(1)
    if age is None or age > rule.schedule.rounds:
        return Fraction(rule.retired is Retired.FIRST_COME)
    rounds, slack = rule.schedule.rounds, rule.schedule.slack
    unlocked = Fraction(0)
    for step in range(1, min(age, rounds) + 1):
        early, late = 2 * step <= rounds, 2 * (step - 1) >= rounds
        unlocked += (1 + slack * (early - late)) / rounds
    return unlocked


def test_what_is_said_of_a_change_is_what_every_age_shows() -> None:
    rng = random.Random(f"turns {seed()}")
    seen = dict.fromkeys(Verdict, 0)
    rules = 'policies: [{name: all, when: "true", unit: user, budget: {rho: 1}}]\n'
    text = GROUPED.replace("policies:\n", rules)
    for _ in range(counted(300)):
        old, new = (compiled(text + some_rotation(rng)) for _ in range(2))
        result = {
            one.verdict
            for one in differences(old, new).declared
            if one.subject == "rotation"
        }
        pairs = [
            (share_at(old.policy.rotation, age), share_at(new.policy.rotation, age))
            for age in (None, *range(LAST + 3))
        ]
        assert (Verdict.LOOSER in result) == any(now > was for was, now in pairs)
        assert (Verdict.TIGHTER in result) == any(now < was for was, now in pairs)
        assert result <= {Verdict.LOOSER, Verdict.TIGHTER, Verdict.SAME}
        for verdict in result:
            seen[verdict] += 1
    assert min(seen[one] for one in (Verdict.LOOSER, Verdict.TIGHTER)) > 60
    assert seen[Verdict.SAME] > 1


# --- decisions ------------------------------------------------------------------------


def some_policy(rng: random.Random, budgets: list[str]) -> CompiledPolicy:
    rules = (
        f"  - {{name: r{place}, when: 'true', unit: user, budget: {budget}}}\n"
        for place, budget in enumerate(budgets)
    )
    return compiled(GROUPED + "".join(rules) + some_rotation(rng))


def some_release(rng: random.Random, number: int) -> RecordedRelease:
    vocabulary = compiled(
        GROUPED + "  - {name: r, when: 'true', unit: user, budget: {rho: 1}}\n"
    ).policy.vocabulary
    cost: dict[str, Any] = rng.choice([{"rho": 0.001}, {"rho": 0.004}, {"eps": 0.05}])
    groups = sorted(rng.sample(range(1, 7), rng.randint(1, 3)))
    described = {
        "release": f"r-{number}",
        **({"groups": groups} if rng.random() < 0.9 else {}),
        "mechanisms": [
            {"mechanism": "declared", "attributes": ["age"], "cost": {"user": cost}}
        ],
    }
    return record_release(
        price(parse_release(from_python(described), vocabulary), vocabulary)
    )


def some_groups(rng: random.Random) -> UserGroups:
    ages = {group: rng.randint(1, LAST + 1) for group in range(1, 7)}
    retired = tuple(group for group in ages if rng.random() < 0.15)
    return UserGroups(
        {group: age for group, age in ages.items() if group not in retired},
        retired,
        None,
    )


def test_a_policy_that_loosens_nothing_lets_nothing_more_in() -> None:
    rng = random.Random(f"decisions {seed()}")
    denied, compared, looser = 0, 0, 0
    releases = [some_release(rng, number) for number in range(60)]
    for _ in range(examples(250)):
        budgets = rng.choices(BUDGETS, k=rng.randint(1, 2))
        old = some_policy(rng, budgets)
        fewer = rng.random() < 0.3
        new = some_policy(rng, rng.sample(budgets, 1) if fewer else budgets)
        loosens = differences(old, new).loosens
        planning = planning_of(some_groups(rng))
        *past, release = rng.sample(releases, 5)
        was, now = (
            decide(
                Balances(one, reserved_releases(past), planning=planning), release
            ).allowed
            for one in (old, new)
        )
        if not loosens:
            assert was or not now
            compared += 1
            denied += not was
        looser += loosens and now and not was
    assert compared > examples(250) // 6
    assert compared // 10 < denied
    assert looser > 3
