"""Who filled a cell: the shares of a sum are the sum, cell by cell."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import parted
from samples.parted import (
    COUNTRIES,
    MONTHS,
    PEOPLE,
    TODAY,
    costs,
    mechanism,
    policy,
    priced,
    release,
    spent,
)
from samples.small import counts, workspace

from modicum.accounting import Total
from modicum.api.local.alternatives.trials import HeadView
from modicum.api.local.cell_balance import cell_balance, part_named, rule_named
from modicum.api.local.explanation.budget_fit import smallest_budget
from modicum.api.local.explanation.charges import cells_of, denying_cell, spent_in
from modicum.api.local.explanation.conflicts import conflicts
from modicum.core.errors import InputError
from modicum.ledger import Balances, decide
from modicum.ledger.decision.balances import ReservedRelease
from modicum.ledger.decision.decide import verdict_over_history
from modicum.policy.compiler import compile_text

SEEDS = st.integers(min_value=0, max_value=2**32)


@settings(max_examples=examples(25))
@given(SEEDS)
def test_a_cell_is_filled_by_those_who_read_it(seed: int) -> None:
    """Everybody and every month by itself says the same as the cells."""
    rng, compiled = random.Random(seed), policy()
    history = [priced(parted.some(rng, n), compiled) for n in range(rng.randint(0, 9))]
    head_view = parted.head_view(compiled, history)
    person, month = rng.choice(PEOPLE), rng.choice([None, *MONTHS])
    about = rng.choice(["", "pay"]) if month else ""
    name = {"": "all" if month is None else "month", "pay": "pay"}[about]
    part = part_named(
        compiled, where={"country": person[0], "birth": person[1]}, periods=month
    )
    found = cell_balance(head_view, rule_named(compiled, f"{name} @black-box"), part)
    expected = spent(history, person, month, about)
    assert found.cells == 1
    assert {
        one.release: Fraction(one.units, 10**12) for one in found.spenders
    } == expected
    assert found.loss.before.units(1) == sum(expected.values()) * 10**12
    assert [one.units for one in found.spenders] == sorted(
        (one.units for one in found.spenders), reverse=True
    )
    assert found.nearby == 0


@settings(max_examples=examples(20))
@given(SEEDS, st.sampled_from(["add-remove", "substitute", "any-change"]))
def test_shares_add_up_in_every_cell(seed: int, near: str) -> None:
    rng, compiled = random.Random(seed), policy(near)
    reserved = [
        ReservedRelease(
            priced(parted.some(rng, n), compiled), TODAY, rng.random() < 0.8
        )
        for n in range(rng.randint(0, 6))
    ]
    balances = Balances(compiled, reserved)
    for rule in compiled.rules:
        cells = cells_of(balances, rule)
        totals = {cell.total for cell in cells}
        assert totals == set(balances.cells(rule)[0].totals())
        for cell in rng.sample(cells, min(len(cells), 4)):
            together = Total()
            for one in spent_in(cell, reserved, compiled):
                together = together.joined(one.total)
            assert together == cell.total


@settings(max_examples=examples(20))
@given(SEEDS, st.sampled_from(["add-remove", "substitute"]))
def test_the_cell_that_denies_is_the_one_that_is_told(seed: int, near: str) -> None:
    rng, compiled = random.Random(seed), policy(near)
    head_view = parted.head_view(compiled, parted.filled(rng, compiled))
    request = priced(parted.some(rng, 99, large=True), compiled)
    for loss in decide(head_view.balances, request, TODAY).losses:
        cell = denying_cell(head_view.balances, request, TODAY, loss)
        assert (cell.text, cell.total) == (loss.cell, loss.before)


@settings(max_examples=examples(20))
@given(SEEDS, st.sampled_from(["add-remove", "substitute"]))
def test_the_smallest_budget_fits_every_cell_and_no_less_does(
    seed: int, near: str
) -> None:
    rng, compiled = random.Random(seed), policy(near)
    reserved = [
        ReservedRelease(priced(parted.some(rng, n, large=True), compiled), TODAY)
        for n in range(rng.randint(3, 9))
    ]
    balances = Balances(compiled, reserved)
    name = compiled.policy.filter_name
    found = {one.rule.id: one for one in conflicts(reserved, compiled)}
    for rule in compiled.rules:
        loss = verdict_over_history(balances, rule)
        assert loss.allowed == (rule.id not in found)
        if loss.allowed:
            continue
        result = found[rule.id]
        each = [
            smallest_budget(rule.budget, name, total)
            for total in balances.cells(rule)[0].totals()
        ]
        assert result.fits in each
        rhos = [getattr(one, "rho", None) for one in each]
        assert getattr(result.fits, "rho", None) == max(one for one in rhos if one)
        taken = sum(one.units for one in result.contributors)
        assert taken == result.loss.before.units(result.coordinate)


def test_cells_that_cannot_be_told_apart_are_charged_for_others() -> None:
    compiled = policy()
    reserved = [
        ReservedRelease(
            priced(release(f"r-{n}", mechanism(where={"country": one})), compiled)
        )
        for n, one in enumerate(COUNTRIES)
    ]
    balances = Balances(compiled, reserved, segments_max=2)
    head_view = HeadView(balances, TODAY, 4, "0" * 64, reserved, lambda _: None)
    part = part_named(compiled, where={"country": "IT"})
    found = cell_balance(head_view, rule_named(compiled, "pay @standard"), part)
    assert [one.release for one in found.spenders] != []
    assert found.nearby == found.loss.before.units(1) - 5 * 10**10 > 0
    assert found.view(1).nearby == pytest.approx(found.nearby / 10**12)


def test_only_known_rules_and_cells_are_looked_at() -> None:
    compiled = policy()
    for named, text in (
        ("pya", "no rule matches"),
        ("pay", "matches 2 rules"),
    ):
        with pytest.raises(InputError) as caught:
            rule_named(compiled, named)
        assert text in caught.value.render()
    with pytest.raises(InputError) as caught:
        part_named(compiled, where={"country": "XX"}, periods="winter", groups=3)
    assert len(caught.value.problems) == 3
    capped = parted.POLICY.replace("NEIGHBORS", "add-remove") + (
        "per_release:\n  - {name: cap, when: 'true', unit: user, budget: {rho: 9}}\n"
    )
    with pytest.raises(InputError) as caught:
        rule_named(compile_text(capped.encode(), "policy.yaml"), "cap")
    assert "it has no balance" in caught.value.render()


def test_a_workspace_tells_who_spent_most(tmp_path: Path) -> None:
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    ws = workspace(tmp_path, policy=text)
    for name, rho, where in (
        ("a", "0.1", "CH"),
        ("b", "0.3", "CH"),
        ("c", "0.2", "DE"),
    ):
        own = mechanism(cost=costs(rho), where={"country": where}, periods="2026-04")
        assert ws.submit(release(name, own)).allowed
    ws.cancel("a", reason="called off")
    found = ws.spenders("pay @standard", where={"country": "CH"}, periods="2026-04")
    assert [one.release for one in found.spenders] == ["b"]
    assert found.loss.cell == "country CH, 2026-04"
    assert found.seq == ws.state().seq
    assert ws.spenders("pay @standard").loss.cell == "country CH, 2026-04"
    then = ws.as_of(4).spenders("pay @standard", where={"country": "CH"})
    assert [(one.release, one.share) for one in then.spenders] == [
        ("b", Fraction(3, 4)),
        ("a", Fraction(1, 4)),
    ]


def test_user_groups_are_cells_of_their_own(tmp_path: Path) -> None:
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    grouped = text.replace("population:", "population:\n  groups: {immutable: [user]}")
    ws = workspace(tmp_path, policy=grouped)
    for name, groups in (("a", 3), ("b", {"from": 2, "to": 3}), ("c", 7)):
        assert ws.submit(release(name, mechanism(), groups=groups)).allowed
    for some, named in ((3, ["a", "b"]), (2, ["b"]), ([7, 8], ["c"]), (8, [])):
        found = ws.spenders("month @standard", groups=some)
        assert [one.release for one in found.spenders] == named
    assert ws.spenders("month @standard").loss.cell == "group 3"


def test_the_history_of_a_cell_is_what_it_was_charged_at_each_entry(
    tmp_path: Path,
) -> None:
    view, rule = workspace(tmp_path), "global @standard"
    view.init()
    for number, rho in enumerate(("0.003", "0.001", "0.002")):
        view.submit(counts(f"r-{number}", rho=rho))
    found = view.spenders(rule).view(1)
    assert len(found.history) == 3
    assert found.history[-1].spent == found.spent
    for step in found.history:
        then = view.as_of(step.entry).spenders(rule).view(1)
        assert (step.spent, then.limit) == (then.spent, found.limit)
    view.cancel("r-1", reason="x")
    entries = [one.entry for one in found.history]
    later = view.spenders(rule).view(1).history
    assert [one.entry for one in later] == [entries[0], entries[2]]
    assert later[-1].spent < found.spent


def test_a_cell_whose_charge_is_not_fully_known_has_no_history() -> None:
    compiled = policy()
    history = [priced(parted.some(random.Random(1), 1), compiled)]
    head_view = parted.head_view(compiled, history)  # It has no entries.
    found = cell_balance(head_view, rule_named(compiled, "all @black-box"))
    assert found.view(1).history == ()
