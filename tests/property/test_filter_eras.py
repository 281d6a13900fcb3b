"""The delta that the filters of a history promise, against a union over its eras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from budget import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from samples.small import NOON, compiled

from modicum.accounting import FILTERS
from modicum.api.local import Workspace
from modicum.core.errors import Code, InputError
from modicum.core.rationals import parse_number
from modicum.reports.sources import opened_ledger, report_on
from modicum.reports.statement import RuleLine
from modicum.storage.proofs.verification import Trust
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

#: Each grows in both parts, so that the published filter is proven for any two.
LIMITS = (("2", "1e-7"), ("2", "2e-7"), ("3", "5e-7"), ("4", "1e-6"))
RULES = ("first", "second")
#: The place of a limit; None for a rule that is missing, -1 for one in rho.
Limit = int | None
filters = st.sampled_from(sorted(FILTERS))
limits = st.sampled_from([None, -1, *range(len(LIMITS))])


@dataclass(frozen=True)
class Policy:
    """A filter, and the limit of each rule."""

    filter: str
    limits: tuple[Limit, ...]

    @property
    def text(self) -> str:
        lines = [
            f'  - {{name: {name}, when: "true", unit: user, budget: {_budget(limit)}}}'
            for name, limit in zip(RULES, self.limits, strict=True)
            if limit is not None
        ]
        return "\n".join(
            [
                "modicum: policy/v1",
                "name: changing",
                f"dp: {{filter: {self.filter}}}",
                "units: {user: {id: uid}}",
                "schema: {attributes: {page: low}}",
                "policies:",
                '  - {name: always, when: "true", unit: user, budget: {rho: 1}}',
                *lines,
            ]
        )

    def delta(self, rule: int) -> Fraction | None:
        limit = self.limits[rule]
        if limit is None or limit < 0:
            return None
        return parse_number(LIMITS[limit][1])


def _budget(limit: int) -> str:
    if limit < 0:
        return "{rho: 2}"
    eps, delta = LIMITS[limit]
    return f"{{eps: {eps}, delta: {delta}}}"


policies = st.builds(Policy, filters, st.tuples(limits, limits))


@dataclass
class Oracle:
    """Failures by era, each of the filter that has the last word in it.

    Attributes:
        happened: Policies, and the names of releases, in order.
        gone: The releases that never were.
    """

    happened: list[Policy | str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    def eras(self) -> list[Policy]:
        """Return the policies under which somebody may have seen an answer."""
        counted = [
            place
            for place, one in enumerate(self.happened)
            if isinstance(one, str) and one not in self.gone
        ]
        if not counted:
            return []
        first = counted[0]
        before = [one for one in self.happened[:first] if isinstance(one, Policy)]
        after = [one for one in self.happened[first:] if isinstance(one, Policy)]
        return [before[-1], *after]

    def union(self, rule: int, eras: Sequence[Policy], now: Policy) -> Fraction:
        """Return the probability that any era's filter fails, at most."""
        present = now.delta(rule)
        assert present is not None
        failures = sorted(
            (one.filter, one.delta(rule) or present)
            for one in eras
            if any(one.delta(any_rule) for any_rule in range(len(RULES)))
        )
        # Eras of one filter fail together: the tighter limit stops earlier.
        by_filter = groupby(failures, key=lambda one: one[0])
        total = sum((max(group)[1] for _, group in by_filter), Fraction(0))
        return total or present


class History:
    """A ledger, and what the oracle knows of it."""

    def __init__(self, folder: Path, first: Policy) -> None:
        self._folder = folder
        self.oracle = Oracle([first])
        self._ws(first).init()

    def _ws(self, policy: Policy | None = None) -> Workspace:
        return Workspace(
            SqliteStore(self._folder / "ledger.db", wait_seconds=20),
            FixedClock(NOON),
            policy=None if policy is None else compiled(policy.text),
            actor="ann",
        )

    def release(self, name: str, *, given_up: bool) -> None:
        mechanism: dict[str, Any] = {
            "name": "views",
            "mechanism": "laplace",
            "attributes": ["page"],
            "cost": {"user": {"eps": 0.001}},
        }
        content = {"release": name, "mechanisms": [mechanism]}
        assert self._ws().submit(content, publish=not given_up).allowed
        self.oracle.happened.append(name)
        if given_up:
            self._ws().cancel(name, reason="not needed")
            self.oracle.gone.add(name)

    def change(self, policy: Policy) -> None:
        """Activate a policy; a further filter must be accepted, for its price."""
        eras = self.oracle.eras()
        office, new = self._ws().governance, compiled(policy.text)
        priced = [rule for rule in range(len(RULES)) if policy.delta(rule) is not None]
        deciding = {
            one.filter
            for one in eras
            if any(one.delta(rule) for rule in range(len(RULES)))
        }
        is_further = bool(priced and deciding) and policy.filter not in deciding
        event(f"a further filter: {is_further}")
        try:
            office.activate(new, reason="a change")
        except InputError as error:
            assert is_further
            (problem,) = error.problems
            assert problem.code is Code.FILTER_CHANGED
            told = {}
            for note in problem.notes[1:-1]:
                figures, _, rules = note.partition(" for ")
                _, before, _, after = figures.split()
                for rule in rules.split(", "):
                    told[rule] = parse_number(before), parse_number(after)
            assert told == {
                RULES[rule]: (
                    self.oracle.union(rule, eras, policy),
                    self.oracle.union(rule, [*eras, policy], policy),
                )
                for rule in priced
            }
            accept = [f"filter:{policy.filter}"]
            office.activate(new, reason="a change", accept=accept)
        else:
            assert not is_further
        self.oracle.happened.append(policy)

    def lines(self) -> dict[str, RuleLine]:
        """Return the rules of the statement, which verifies the ledger."""
        with opened_ledger(self._folder / "ledger.db") as source:
            return {one.id: one for one in report_on(source, Trust()).rules}


steps = st.lists(
    st.one_of(policies, st.sampled_from(["release", "given up"])),
    min_size=1,
    max_size=8,
)


@pytest.mark.spec("POL-22")
@pytest.mark.spec("POL-23")
@settings(max_examples=examples(300), deadline=None)
@given(policies, steps)
def test_a_change_of_filters_costs_what_the_union_of_eras_costs(
    first: Policy, changes: list[Policy | str]
) -> None:
    with TemporaryDirectory() as folder:
        history = History(Path(folder), first)
        now = first
        for number, one in enumerate(changes):
            if isinstance(one, str):
                history.release(f"r-{number}", given_up=one == "given up")
            elif one != now:
                history.change(one)
                now = one
        eras = history.oracle.eras()
        lines = history.lines()
        for rule, name in enumerate(RULES):
            if now.delta(rule) is None:
                assert name not in lines or lines[name].delta is None
            else:
                expected = history.oracle.union(rule, eras, now)
                assert lines[name].delta == expected
                event(f"{len({one.filter for one in eras})} filters")
