"""What one identity may reserve within some days, against sums of fractions by cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.api.local import Workspace
from modicum.api.local.dry_run import TrialStore
from modicum.core.errors import Code, ConflictError
from modicum.ledger import audit
from modicum.policy.compiler import compile_text
from modicum.system.clock import FixedClock, add_seconds

DAY = 24 * 3600
COUNTRIES = ("CH", "DE", "FR")
#: By rule of `per_release`: its attribute, its cap in twentieths of rho, its days; 7
#: stands for those of the active policy.
RULES = {"cap": (None, 8, None), "week": (None, 10, 7), "pay": ("pay", 4, 2)}

POLICY = """
modicum: policy/v1
name: split
units: {user: {id: user_id}}
schema: {attributes: {age: low, pay: low}}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user]}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 100}}
per_release:
  - {name: cap, when: "true", unit: user, budget: {rho: 0.4}}
  - {name: week, when: "true", unit: user, budget: {rho: 0.5}, requester_days: 7}
  - {name: pay, when: '"pay" in m.attributes', unit: user, budget: {rho: 0.2},
     requester_days: 2}
"""
COMPILED = {
    days: compile_text(POLICY.replace("days: 7", f"days: {days}").encode(), "p.yaml")
    for days in (2, 3, 7)
}

SUBMITTED = st.tuples(
    st.just("submit"),
    st.sampled_from(["ann", "Ann", "bob"]),
    st.sampled_from(["age", "pay"]),
    st.sets(st.sampled_from(COUNTRIES), min_size=1),
    st.integers(1, 9),
    st.booleans(),
)
STEPS = st.tuples(
    st.sampled_from(["start", "void", "wait", "wait", "policy", "restart"]),
    st.integers(0, 20),
)


@dataclass
class Release:
    who: str
    attribute: str
    countries: frozenset[str]
    cost: int
    day: int


@dataclass
class Oracle:
    """All releases whose loss counts, one by one, and the days of rule `week`."""

    counted: dict[str, Release] = field(default_factory=dict)
    week: int = 7

    def answer(self, new: Release) -> str:
        """Return `allow`, `deny` or `split`."""
        split = False
        for attribute, cap, declared in RULES.values():
            if attribute not in (None, new.attribute):
                continue
            if new.cost > cap:
                return "deny"
            days = self.week if declared == 7 else declared
            for country in new.countries:
                before = sum(
                    one.cost
                    for one in self.counted.values()
                    if one.who == new.who
                    and attribute in (None, one.attribute)
                    and country in one.countries
                    and one.day > new.day - (days or 0)
                )
                split |= days is not None and before + new.cost > cap
        return "split" if split else "allow"


def written(name: str, new: Release) -> Any:
    return {
        "release": name,
        "mechanisms": [
            {
                "name": "m",
                "mechanism": "gaussian",
                "attributes": [new.attribute],
                "where": {"country": sorted(new.countries)},
                "cost": {"user": {"rho": new.cost / 20}},
            }
        ],
    }


class Run:
    """A ledger in memory, the people who use it, and the oracle."""

    def __init__(self) -> None:
        self.store = TrialStore("the ledger", lambda after: iter(()), 0)
        self.clock = FixedClock("2026-05-01T12:00:00.000000Z")
        self.oracle = Oracle()
        self.people: dict[str, Workspace] = {}
        self.open: list[str] = []
        self.day = 0

    def by(self, who: str) -> Workspace:
        if who not in self.people:
            policy = COMPILED[self.oracle.week]
            self.people[who] = Workspace(
                self.store, self.clock, policy=policy, actor=who
            )
        return self.people[who]

    def step(self, kind: str, number: int) -> None:
        match kind:
            case "wait":
                self.day += number % 4
                self.clock.time = add_seconds(self.clock.time, number % 4 * DAY)
            case "policy":
                self.oracle.week = (2, 3, 7)[number % 3]
                self.people.clear()
                chosen, active = (
                    COMPILED[self.oracle.week],
                    self.by("bob").state().policy,
                )
                if active is not None and active.digest != chosen.policy.digest:
                    self.by("bob").governance.activate(chosen, reason="other days")
            case "restart":
                self.people.clear()
            case _:
                if self.open:
                    self.end(kind, self.open.pop(number % len(self.open)))

    def end(self, kind: str, name: str) -> None:
        if kind == "start":
            self.by("bob").start(name)
        else:
            self.by("bob").cancel(name, reason="x")
            del self.oracle.counted[name]

    def submit(self, name: str, who: str, new: Release, *, publish: bool) -> None:
        release, expected = written(name, new), self.oracle.answer(new)
        checked = self.by(who).check(release)
        assert checked.allowed == (expected != "deny")
        refused = any("is refused now" in one for one in checked.notices)
        assert refused == (expected == "split")
        if expected == "split":
            with pytest.raises(ConflictError) as caught:
                self.by(who).submit(release, publish=publish)
            assert caught.value.code is Code.SPLIT_TOO_FAR
            return
        found = self.by(who).submit(release, publish=publish, reserve_seconds=90 * DAY)
        assert found.allowed == (expected == "allow")
        if found.allowed:
            self.oracle.counted[name] = new
            self.open += [] if publish else [name]


@pytest.mark.spec("LED-28")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(SUBMITTED | STEPS, max_size=25))
def test_what_one_identity_reserves_is_summed_over_days(steps: list[Any]) -> None:
    run = Run()
    for number, (kind, *rest) in enumerate(steps):
        if kind == "submit":
            who, attribute, countries, cost, publish = rest
            new = Release(who.lower(), attribute, frozenset(countries), cost, run.day)
            run.submit(f"r-{number}", who, new, publish=publish)
        else:
            run.step(kind, *rest)
    if run.by("bob").state().seq:
        audit(run.store.read(0))
