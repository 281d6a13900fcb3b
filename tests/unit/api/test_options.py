"""What may be done about a denial, and what a denial says of itself."""

from __future__ import annotations

import random
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import parted
from samples.parted import costs, mechanism, noise, policy, priced, release, trials
from samples.small import counts, workspace

from modicum.api.local.alternatives.options import options
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.decision import Decision
from modicum.core.errors import UnavailableError, UsageError
from modicum.ledger import Balances, decide
from modicum.ledger.decision.balances import ReservedRelease
from modicum.policy.compiler import compile_text

SEEDS = st.integers(min_value=0, max_value=2**32)
TEXT = parted.POLICY.replace("NEIGHBORS", "add-remove")


def spent(rho: str = "0.5", **more: Any) -> dict[str, Any]:
    """Return a release that spends some of a budget."""
    return release("before", mechanism(cost=costs(rho), **more))


@settings(max_examples=examples(8))
@given(SEEDS, st.sampled_from(["add-remove", "substitute"]))
def test_every_option_was_tried(seed: int, near: str) -> None:
    rng, compiled = random.Random(seed), policy(near)
    history = parted.filled(rng, compiled)
    request = parted.some(rng, 99, large=True)
    found = options(Trials(parted.head_view(compiled, history), request))
    fresh = parted.head_view(compiled, history)
    if decide(fresh.balances, priced(request, compiled), parted.TODAY).allowed:
        assert found == ()
    for one in found:
        assert not one.not_before
        again = priced(dict(one.release), compiled)
        assert decide(fresh.balances, again, parted.TODAY).allowed
        assert again.id == "r-99"
        assert again.content != priced(request, compiled).content
    kinds = [one.kind for one in found]
    order = ["noise", "epsilon", "rho", "mu", "where", "periods", "attribute", "label"]
    order += ["mechanism", "wait"]
    assert kinds == sorted(kinds, key=order.index)


def test_options_come_in_order_and_say_what_they_mean() -> None:
    request = release(
        "asked",
        mechanism("a", attributes=["age", "pay"], **noise("2")),
        mechanism("b", attributes=["age"]),
    )
    full = [spent("0.45", where={"country": "CH"}, periods="2026-04")]
    found = options(trials(request, policy(), full))
    assert [(one.kind, one.title) for one in found] == [
        ("noise", "add more noise"),
        ("where", "read fewer people"),
        ("periods", "read fewer periods"),
        ("attribute", "do not read pay"),
        ("label", "set ml: black-box, if that is true"),
        ("mechanism", "leave out a"),
    ]
    by_kind = {one.kind: one for one in found}
    assert by_kind["where"].why[0] == "without country CH"
    assert by_kind["periods"].why[0] == "without 2026-04"
    gone = "no longer matched: pay @standard"
    assert gone in by_kind["attribute"].why
    assert "does not use pay" in by_kind["attribute"].only_if
    assert "is true of the whole release" in by_kind["label"].only_if
    assert by_kind["label"].release["ml"] == "black-box"
    assert "ml: black-box" in by_kind["label"].text
    assert by_kind["mechanism"].view.only_if is None


def test_waiting_helps_where_distant_periods_are_put_together() -> None:
    text = TEXT.replace("population:", "population:\n  time_detail: {user-month: 3}")
    compiled = compile_text(text.encode(), "policy.yaml")
    # From 2026-08 on all is one: what is read of 2026-09 and 2026-12 adds up there.
    cost = costs("0.3")
    request = release(
        "asked",
        mechanism("a", cost=cost, periods="2026-09"),
        mechanism("b", cost=cost, periods="2026-12"),
    )
    tried = trials(request, compiled)
    wait = {one.kind: one for one in options(tried)}["wait"]
    assert wait.not_before == "2026-07-01"
    assert wait.view.not_before == wait.not_before
    again = priced(dict(wait.release), compiled)
    for day, allowed in (("2026-06-30", False), (wait.not_before, True)):
        on = date.fromisoformat(day).toordinal()
        assert decide(tried.head_view.balances, again, on).allowed is allowed
    # What is full is not emptied by waiting.
    late = release("asked", mechanism(), periods="2026-09")
    full = [spent("0.5", periods="2026-12")]
    assert "wait" not in [one.kind for one in options(trials(late, compiled, full))]


# --- decisions ------------------------------------------------------------------------


def test_a_denial_tells_who_filled_the_cell_and_what_would_pass(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=TEXT)
    for name, rho in (("a", "0.1"), ("b", "0.35")):
        own = mechanism(cost=costs(rho), where={"country": "CH"}, periods="2026-04")
        assert ws.submit(release(name, own)).allowed
    request = release("asked", mechanism(**noise("2")))
    for decision in (ws.check(request), ws.submit(request)):
        text = decision.explain()
        assert "pay @standard" in text
        assert "country CH, 2026-04" in text
        assert "spent by b (rho 0.35, 77 %), a (rho 0.1, 22 %)" in text
        assert "remaining for a Gaussian mechanism: rho = 0.05" in text
        assert "would be allowed with: counts: sigma 3.163 instead of 2" in text
        assert "spent by" not in decision.explain(deep=False)
        document = decision.to_dict(deep=True)["explanation"]
        assert isinstance(document, dict)
        assert document["cells"][0]["spenders"][0]["release"] == "b"
        assert document["fit"]["changes"] == ["counts: sigma 3.163 instead of 2"]
        assert decision.to_dict()["explanation"] is None
        assert decision.to_dict()["rounded"] == []
    fit = decision.largest_fit()
    assert fit.release is not None
    assert fit.seq == ws.state().seq == decision.seq + 1
    again = ws.submit(fit.release)
    assert again.allowed
    assert "would be allowed" not in again.explain()
    assert again.to_dict(deep=True)["explanation"] is None
    # It stands now: there is nothing to change, and the same release is told so.
    assert "already exists (reserved)" in again.largest_fit().why[0]
    assert again.options() == ()
    assert decision.options() == ()


def test_a_ledger_that_is_not_there_yet_is_looked_at_too(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=TEXT)
    decision = ws.check(release("asked", mechanism(cost=costs("0.7"))))
    assert "would be allowed with: counts: rho per user 0.5" in decision.explain()
    assert "spent by" not in decision.explain()
    assert ws.spenders("pay @standard").spenders == ()
    with pytest.raises(UsageError):
        ws.as_of(1)
    assert list(tmp_path.iterdir()) == []


def test_what_is_found_is_found_at_the_present_head(tmp_path: Path) -> None:
    ws = workspace(tmp_path, policy=TEXT)
    first = ws.check(release("asked", mechanism(cost=costs("0.7"))))
    assert ws.submit(release("other", mechanism(cost=costs("0.4")))).allowed
    fit = first.largest_fit("rho")
    assert fit.changes[0] == "counts: rho per user 0.1 instead of 0.7"
    assert fit.seq == 2 > first.seq


def test_what_cannot_be_looked_at_again_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = workspace(tmp_path, policy=TEXT)
    one = ws.prepare(release("asked", mechanism(cost=costs("0.7"))))
    (decision,) = ws.submit_many([one])
    assert not isinstance(decision, Exception)
    with pytest.raises(UsageError):
        decision.largest_fit()
    with pytest.raises(UsageError):
        decision.options()
    assert "would be allowed" not in decision.explain()
    decision = ws.check(release("asked", mechanism(cost=costs("0.7"))))
    whole = decision.explain()

    def gone(*_: object) -> None:
        raise UnavailableError(*caught)

    with pytest.raises(UsageError) as mistake:
        ws.as_of(99)
    caught = mistake.value.problems
    monkeypatch.setattr(ws._store, "read", gone)
    # The reasons stand, also where the ledger cannot be read any more.
    assert decision.explain() == decision.explain(deep=False)
    assert whole.startswith(decision.explain(deep=False)[:60])


def test_too_many_cells_are_said() -> None:
    compiled = policy()
    cells = [
        ReservedRelease(
            priced(release(f"r-{n}", mechanism(where={"country": one})), compiled)
        )
        for n, one in enumerate(parted.COUNTRIES)
    ]
    request = priced(release("asked", mechanism(where={"birth": 1991})), compiled)
    shown = []
    for most in (2, 100):
        verdict = decide(Balances(compiled, cells, segments_max=most), request)
        decision = Decision("asked", verdict, "checked", "parted", "", True, 4, "")
        shown.append((decision.to_dict()["rounded"], decision.explain()))
    assert shown[0][0] == ["user", "user-month"]
    assert "note: the cells of user-month are too many to separate" in shown[0][1]
    assert shown[1][0] == []
    assert "note:" not in shown[1][1]


def test_numbers_that_no_file_can_hold_are_explained_and_varied(tmp_path: Path) -> None:
    """From Python, a number may be a third."""
    third = counts("third")
    third["mechanisms"][0]["cost"]["user"]["rho"] = Fraction(1000, 3)
    ledger = workspace(tmp_path)
    denied = ledger.submit(third)
    assert not denied.allowed
    assert "third" in str(denied)
    assert denied.explain()
    found = denied.largest_fit("rho")
    assert found.release is not None
    assert ledger.check(found.release).allowed
    assert denied.options()
