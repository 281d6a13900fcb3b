"""Rules for single releases: how many cells deny, and what was read as too fine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest
from budget import examples
from samples import parted
from samples.parted import TODAY, costs, mechanism, priced, release

from modicum.accounting.grid import RHO
from modicum.api.local.decision import Decision
from modicum.core.rationals import LOSS_UNIT
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.ledger.cells import partition
from modicum.ledger.decision.single_release import RuleLoss
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text

#: Over history, only what one user tells in all of time is limited.
POLICY = """
modicum: policy/v1
name: alone
units:
  user: {id: user_id}
  user-month: {id: user_id, time: {column: at, period: month}, within: user}
labels:
  ml: {values: [none, black-box], default: none}
schema:
  attributes: {age: low, pay: low, born: [low, {}, static]}
population:
  partition_by:
    country: {values: [CH, DE, FR, IT], immutable: [user]}
    birth: {range: [1990, 1993], immutable: [user]}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 50}}
per_release:
  - {name: once, when: "true", unit: user-month, budget: {rho: LIMIT}}
"""
#: A month that no release names.
ELSEWHERE = "2027-01"


@cache
def policy(limit: str) -> CompiledPolicy:
    return compile_text(POLICY.replace("LIMIT", limit).encode(), "policy.yaml")


def rho_of(loss: RuleLoss) -> Fraction:
    return Fraction(loss.alone.units(RHO), LOSS_UNIT)


# --- how many cells deny --------------------------------------------------------------


def combined(rng: random.Random, number: int) -> parted.Written:
    """Return a release of several mechanisms that read parts of their own."""
    made = [
        one
        for again in range(rng.randint(1, 3))
        for one in parted.some(rng, again)["mechanisms"]
    ]
    named = [{**one, "name": f"m{place}"} for place, one in enumerate(made)]
    return release(f"r-{number}", *named)


def together(asked: RecordedRelease) -> dict[frozenset[int], Fraction]:
    """Return what those mechanisms cost that anybody meets in any month, by whom."""
    found = {}
    for person in parted.PEOPLE:
        for month in (*parted.MONTHS, ELSEWHERE):
            met = frozenset(
                place
                for place, one in enumerate(asked.mechanisms)
                if parted.holds_person(one.part, person)
                and ("born" in one.attributes or parted.holds_month(one.part, month))
            )
            found[met] = sum(
                (
                    Fraction(
                        asked.mechanisms[place].losses["user-month"].coordinates[RHO],
                        LOSS_UNIT,
                    )
                    for place in met
                ),
                Fraction(0),
            )
    return found


def test_denying_cells_are_counted_as_by_going_through_everybody() -> None:
    """A cell is whoever meets the same mechanisms."""
    rng = random.Random(5)
    compiled = policy("0.4")
    counts: list[int] = []
    for number in range(examples(150)):
        asked = priced(combined(rng, number), compiled)
        verdict = decide(Balances(compiled), asked, TODAY)
        once = next(one for one in verdict.losses if one.rule.id == "once")
        cells = together(asked)
        over = [rho for rho in cells.values() if rho > Fraction("0.4")]
        assert once.cells_denying == len(over)
        assert once.allowed == (not over)
        assert rho_of(once) == max(cells.values())
        assert verdict.blocking == (("once",) if over else ())
        counts.append(len(over))
    assert {0, 1, 2} <= set(counts)
    assert max(counts) > 3


def test_as_many_cells_as_deny_are_told() -> None:
    asked = priced(
        release(
            "asked",
            mechanism("a", cost=costs("0.3"), where={"country": "CH"}),
            mechanism("b", cost=costs("0.3"), where={"country": "DE"}),
            mechanism("c", cost=costs("0.1"), where={"birth": 1991}),
        ),
        policy("0.2"),
    )
    verdict = decide(Balances(policy("0.2")), asked, TODAY)
    decision = Decision("asked", verdict, "checked", "alone", "", True, 0, "")
    document = decision.to_dict()["losses"]
    assert isinstance(document, Sequence)
    # Those of CH and of DE, each apart from who was born in 1991.
    assert [one["cells_denying"] for one in document] == [4, 0]


# --- too fine by itself ---------------------------------------------------------------

#: Every other month, and one between them: nobody meets both in one month.
FINE = release(
    "fine",
    mechanism("often", periods=["2026-01", "2026-03", "2026-05"]),
    mechanism("once", periods=["2026-02"]),
)


@pytest.mark.spec("DEC-9")
def test_a_release_that_is_too_fine_by_itself_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = policy("0.08")
    asked = priced(FINE, compiled)
    exact = decide(Balances(compiled), asked, TODAY)
    assert exact.allowed
    assert exact.rounded == ()
    # Now the months between count as read, too.
    monkeypatch.setattr(partition, "ARRANGEMENT_MAX", 4)
    coarse = decide(Balances(compiled), asked, TODAY)
    assert coarse.blocking == ("once",)
    assert [rho_of(one) for one in coarse.losses] == [Fraction("0.1")] * 2
    assert coarse.rounded == ("user-month",)
    decision = Decision("fine", coarse, "checked", "alone", "", True, 0, "")
    assert decision.to_dict()["rounded"] == ["user-month"]
    text = decision.explain()
    assert "note: the cells of user-month are too many to separate" in text


def test_a_unit_is_named_once_whoever_was_charged_for_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    also = '  - {name: ever, when: "true", unit: user, budget: {rho: 9}}\n'
    text = POLICY.replace("LIMIT", "1") + also
    compiled = compile_text(text.encode(), "policy.yaml")
    where = [{"country": "CH", "birth": 1990}, {"country": "FR", "birth": 1992}]
    asked = priced(release("fine", mechanism(where=where)), compiled)
    assert decide(Balances(compiled), asked, TODAY).rounded == ()
    monkeypatch.setattr(partition, "ARRANGEMENT_MAX", 2)
    coarse = decide(Balances(compiled), asked, TODAY)
    # `once` and `ever` by themselves, and `all` over history, of the unit of `ever`.
    assert sorted(coarse.rounded) == ["user", "user-month"]
    assert [one.rule.id for one in coarse.losses] == ["once", "ever", "all"]
