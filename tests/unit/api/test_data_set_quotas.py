"""All identities together reserve only so much of a limit for one data set."""

from __future__ import annotations

from typing import Any

import pytest
from oracle.auditor import audit as audit_again
from samples.reserved import BOUND, DAY, POLICY, Ledger, release

from modicum.api.local import submit
from modicum.api.local.submit import HeldTooMuchError
from modicum.ledger import ChainBreakError
from modicum.policy.changes.declarations import declared_differences
from modicum.policy.compiler import compile_text
from modicum.system.clock import add_seconds

QUOTA = "reservations: {data_sets: {visits: {share: 0.5}}}\n"


def about(name: str, rho: str, data_set: str | None = "visits") -> dict[str, Any]:
    return {**release(name, rho), **({"dataset": data_set} if data_set else {})}


@pytest.mark.spec("LED-36")
def test_all_identities_together_hold_a_share_and_the_refusal_says_whose() -> None:
    ledger = Ledger(QUOTA)
    ann, bob = ledger.by("ann"), ledger.by("bob")
    ann.submit(about("a", "0.3"))
    bob.submit(about("b", "0.2"))
    before = ann.state().seq
    with pytest.raises(HeldTooMuchError) as caught:
        bob.submit(about("c", "0.1"))
    (problem,) = caught.value.problems
    assert problem.message == (
        "data set `visits` already holds rho = 0.5 reserved and not started under rule"
        " `all`, and this release adds rho = 0.1: all identities together may hold"
        " rho = 0.5"
    )
    assert problem.notes == (
        "that is 50 % of the limit, the quota of data set `visits`",
        "reserved and not started: `a` of `ann`, `b` of `bob`",
        "nothing was written",
    )
    assert ann.state().seq == before
    assert bob.submit(about("other", "0.1", "labs")).status == "reserved"
    # It names no data set, so it may be about any.
    with pytest.raises(HeldTooMuchError):
        bob.submit(about("any", "0.1", None))
    for blank in ("", " "):
        with pytest.raises(HeldTooMuchError) as caught:
            bob.submit({**about("any", "0.1"), "dataset": blank})
    (problem,) = caught.value.problems
    assert problem.notes[-1] == "it names no `dataset`, so it counts for each data set"
    ann.start("a")
    assert bob.submit(about("c", "0.1")).status == "reserved"
    ledger.audit()


def test_hidden_reservations_are_counted_and_not_named() -> None:
    ledger = Ledger(QUOTA)
    ledger.by("ann").submit(about("a", "0.3"))
    ledger.by("bob").submit(about("b", "0.2", None))
    with pytest.raises(HeldTooMuchError) as caught:
        ledger.by("bob").submit(about("c", "0.1"))
    shown = caught.value.without({"b"}).problems[0]
    assert shown.notes[1] == "reserved and not started: `a` of `ann` and 1 other"
    none = caught.value.without({"a", "b"})
    assert none.problems[0].notes[1] == "reserved and not started: 2 others"
    assert "bob" not in none.render()


def test_a_check_is_exact_where_a_reservation_is_due() -> None:
    ledger = Ledger(QUOTA)
    ann, bob = ledger.by("ann"), ledger.by("bob")
    ann.submit(about("a", "0.3"), reserve_seconds=60)
    ann.submit(about("b", "0.2"), reserve_seconds=DAY)
    assert any("refused now" in one for one in bob.check(about("c", "0.1")).notices)
    ledger.clock.time = add_seconds(ledger.clock.time, 3600)
    assert not bob.check(about("c", "0.3")).notices
    assert any("refused now" in one for one in bob.check(about("d", "0.31")).notices)
    assert bob.submit(about("c", "0.3")).status == "reserved"
    ledger.audit()


def test_a_single_release_may_take_more_for_a_day() -> None:
    ledger = Ledger(QUOTA)
    ledger.by("ann").submit(about("large", "0.6"), reserve_seconds=30 * DAY)
    assert ledger.lasts("large") == DAY
    ledger.audit()


def test_a_renamed_data_set_keeps_what_is_held() -> None:
    label = "labels: {dataset: {values: [%s, rest], default: rest%s}}\n"
    ledger = Ledger(label % ("visit", ""))
    ledger.by("ann").submit(about("a", "0.5", "visit"))
    renamed = label % ("visits", ", was: {visit: visits}")
    ledger.policy = compile_text((POLICY + renamed + QUOTA).encode(), "policy.yaml")
    ledger.by("ann").governance.activate(ledger.policy, reason="a better name")
    with pytest.raises(HeldTooMuchError, match="data set `visits` already holds"):
        ledger.by("bob").submit(about("b", "0.1"))
    ledger.audit()


@pytest.mark.parametrize(("rhos", "days"), [(("0.3", "0.3"), 1), (("0.6",), 7)])
def test_an_audit_finds_what_was_held_beyond_the_quota(
    rhos: tuple[str, ...], days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "seconds_held", lambda one, *_: one.reserve_seconds)
    ledger = Ledger(QUOTA)
    for number, rho in enumerate(rhos):
        who = ledger.by(f"p{number}")
        who.submit(about(f"r-{number}", rho), reserve_seconds=days * DAY)
    with pytest.raises(ChainBreakError, match="the policy allows data set `visits`"):
        ledger.audit()
    rows = [(one.seq, one.payload, one.hash) for one in ledger.store.read(0)]
    (found,) = audit_again(lambda: rows).mistakes
    assert found.endswith(f"r-{len(rhos) - 1} is reserved beyond a quota")


def test_a_smaller_share_is_tighter() -> None:
    def compiled(bound: str) -> Any:
        return compile_text((POLICY + bound).encode(), "policy.yaml").policy

    def found(old: str, new: str) -> list[tuple[str, str]]:
        return [
            (one.verdict.value, one.text)
            for one in declared_differences(compiled(old), compiled(new))
            if one.subject == "reservations"
        ]

    assert found("", QUOTA) == [("tighter", "share of data set `visits`: 1 -> 0.5")]
    assert found(QUOTA, "") == [("looser", "share of data set `visits`: 0.5 -> 1")]
    assert compiled(BOUND).reservations.data_sets == {}
