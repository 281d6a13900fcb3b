"""What may be held reserved by identity and data set, against sums by cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.auditor import audit as audit_again

from modicum.api.local import Workspace
from modicum.api.local.dry_run import TrialStore
from modicum.core.errors import Code, ConflictError
from modicum.ledger import audit
from modicum.policy.compiler import compile_text
from modicum.system.clock import FixedClock, add_seconds

DAY = 24 * 3600
COUNTRIES = ("CH", "DE", "FR")
SHARE, DAYS = Fraction(1, 4), 3
#: By data set, the share of all identities.
SETS = {"visits": Fraction(3, 10), "labs": Fraction(1, 10)}
#: By rule: which attribute it is about, and its cap in twentieths of rho.
RULES = {"all": (None, 40), "pay": ("pay", 20)}

POLICY = """
modicum: policy/v1
name: held
units: {user: {id: user_id}}
schema: {attributes: {age: low, pay: low}}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user]}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 2}}
  - {name: pay, when: '"pay" in m.attributes', unit: user, budget: {rho: 1}}
reservations:
  share: 0.25
  days: 3
  data_sets: {visits: {share: 0.3}, labs: {share: 0.1}}
"""
COMPILED = compile_text(POLICY.encode(), "policy.yaml")

ASKED = st.tuples(
    st.just("reserve"),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["age", "pay"]),
    st.sets(st.sampled_from(COUNTRIES), min_size=1),
    st.integers(1, 8),
    st.sampled_from([60, DAY, 2 * DAY, 5 * DAY]),
    st.sampled_from([None, "visits", "labs", "other"]),
)
STEPS = st.tuples(st.sampled_from(["start", "void"]), st.integers(0, 20))


#: Who reserves which attribute, where, at which cost, and of which data set.
Asked: TypeAlias = tuple[str, str, frozenset[str], int, str | None]


@dataclass
class Oracle:
    """What each identity and data set holds, a number for each cell of each rule."""

    held: dict[tuple[str, str, str], int] = field(default_factory=dict)
    open: dict[str, Asked] = field(default_factory=dict)
    spent: dict[tuple[str, str], int] = field(default_factory=dict)

    def cells(self, attribute: str, countries: frozenset[str]) -> list[tuple[str, str]]:
        return [
            (rule, country)
            for rule, (about, _) in RULES.items()
            for country in countries
            if about in (None, attribute)
        ]

    def quotas(self, who: str, about: str | None) -> list[tuple[str, Fraction]]:
        """Return the keys of sums, and the share of each."""
        sets = [one for one in SETS if about in (None, one)]
        return [(f"of {who}", SHARE), *((one, SETS[one]) for one in sets)]

    def answer(self, asked: Asked) -> str:
        """Return `deny`, `held`, `large` or `small`."""
        who, attribute, countries, cost, about = asked
        large = False
        for cell in self.cells(attribute, countries):
            cap = RULES[cell[0]][1]
            if self.spent.get(cell, 0) + cost > cap:
                return "deny"
        for rule, country in self.cells(attribute, countries):
            for key, share in self.quotas(who, about):
                most = share * RULES[rule][1]
                before = self.held.get((key, rule, country), 0)
                if before and before + cost > most:
                    return "held"
                large |= cost > most
        return "large" if large else "small"

    def reserve(self, name: str, asked: Asked) -> None:
        self.open[name] = asked
        self._add(name, 1, spends=True)

    def end(self, name: str, *, canceled: bool) -> None:
        self._add(name, -1, spends=canceled)
        del self.open[name]

    def _add(self, name: str, sign: int, *, spends: bool) -> None:
        who, attribute, countries, cost, about = self.open[name]
        for rule, country in self.cells(attribute, countries):
            for holder, _ in self.quotas(who, about):
                key = holder, rule, country
                self.held[key] = self.held.get(key, 0) + sign * cost
            if spends:
                cell = rule, country
                self.spent[cell] = self.spent.get(cell, 0) + sign * cost


def written(name: str, asked: Asked) -> Any:
    _, attribute, countries, cost, about = asked
    return {
        "release": name,
        **({} if about is None else {"dataset": about}),
        "mechanisms": [
            {
                "name": "m",
                "mechanism": "gaussian",
                "attributes": [attribute],
                "where": {"country": sorted(countries)},
                "cost": {"user": {"rho": cost / 20}},
            }
        ],
    }


@pytest.mark.spec("LED-23", "LED-36")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(ASKED | STEPS, min_size=5, max_size=20))
def test_holdings_are_bounded_by_cell_identity_and_data_set(steps: list[Any]) -> None:
    store = TrialStore("the ledger", lambda after: iter(()), 0)
    clock, oracle = FixedClock("2026-05-01T12:00:00.000000Z"), Oracle()
    people = {
        who: Workspace(store, clock, policy=COMPILED, actor=who)
        for who in ("ann", "bob")
    }
    for number, (kind, *rest) in enumerate(steps):
        clock.time = add_seconds(clock.time, 1)  # Too little for anything to expire.
        if kind != "reserve":
            names = sorted(oracle.open)
            if names:
                name = names[rest[0] % len(names)]
                if kind == "start":
                    people["ann"].start(name)
                else:
                    people["ann"].cancel(name, reason="x")
                oracle.end(name, canceled=kind == "void")
            continue
        who, attribute, countries, cost, seconds, about = rest
        asked = who, attribute, frozenset(countries), cost, about
        name, expected = f"r-{number}", oracle.answer(asked)
        release = written(name, asked)
        if people[who].exists():
            checked = people[who].check(release)
            refused = any("is refused now" in one for one in checked.notices)
            assert refused == (expected == "held")
        if expected == "held":
            with pytest.raises(ConflictError) as caught:
                people[who].submit(release, reserve_seconds=seconds)
            assert caught.value.code is Code.HELD_TOO_MUCH
            continue
        found = people[who].submit(release, reserve_seconds=seconds)
        if not found.allowed:
            assert expected == "deny"
            continue
        assert expected in ("large", "small")
        most = DAY if expected == "large" else DAYS * DAY
        assert found.expires_at == add_seconds(clock.time, min(seconds, most))
        oracle.reserve(name, asked)
    if people["ann"].exists():
        audit(store.read(0))
        rows = [(one.seq, one.payload, one.hash) for one in store.read(0)]
        assert audit_again(lambda: rows).mistakes == []
