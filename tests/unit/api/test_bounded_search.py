"""A search for what would pass takes so much work at most, and says if it ended."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import asked as asked_query
from samples import parted
from samples.parted import costs, mechanism, noise, policy, priced, release
from samples.small import workspace

from modicum.api.local.alternatives import trials as searching
from modicum.api.local.alternatives.largest_fit import largest_fit
from modicum.api.local.alternatives.options import options
from modicum.api.local.alternatives.trials import WORK_MAX, Trials
from modicum.api.local.evaluation import price_release
from modicum.api.local.explanation.remedies import ENDED_EARLY, Fit
from modicum.api.local.queries.actions import Queries
from modicum.ledger import decide

SEEDS = st.integers(min_value=0, max_value=2**32)
VARIED = ("noise", "rho", "where", "periods")
TEXT = parted.POLICY.replace("NEIGHBORS", "add-remove")


class Counted:
    """Counts the mechanisms that are priced, whatever the search itself counts."""

    def __init__(self, patched: pytest.MonkeyPatch, work_max: int | None) -> None:
        self.variants: list[int] = []
        really = price_release

        def price(variant: Any, compiled: Any) -> Any:
            self.variants.append(len(variant["mechanisms"]))
            return really(variant, compiled)

        patched.setattr(searching, "price_release", price)
        if work_max is not None:
            patched.setattr(searching, "WORK_MAX", work_max)


def some_asked(rng: random.Random) -> Any:
    """Return a release of several mechanisms, with noise or with declared costs."""
    many = [
        mechanism(
            f"n{number}",
            attributes=["pay"],
            **(noise(rng.choice(["2", "9"])) if rng.random() < 0.5 else {}),
        )
        for number in range(rng.randint(1, 3))
    ]
    asked = parted.some(rng, 99, large=True)
    return {**asked, "mechanisms": [*asked["mechanisms"], *many]}


def passes(variant: Any, compiled: Any, history: Any) -> bool:
    fresh = parted.head_view(compiled, history)
    return decide(fresh.balances, priced(variant, compiled), parted.TODAY).allowed


@settings(max_examples=examples(12))
@given(SEEDS, st.sampled_from([*VARIED, "options"]))
def test_a_search_ends_early_where_its_work_is_used_up_and_only_there(
    seed: int, vary: str
) -> None:
    rng, compiled = random.Random(seed), policy()
    history = parted.filled(rng, compiled)
    asked = some_asked(rng)
    ask = options if vary == "options" else lambda one: largest_fit(one, vary)
    with pytest.MonkeyPatch.context() as patched:
        counted = Counted(patched, 10**9)
        free = Trials(parted.head_view(compiled, history), asked)
        whole: Any = ask(free)
    assert not whole.ended_early
    # The release itself is no variant; it is priced whenever a search looks at it.
    work = sum(counted.variants) - (len(asked["mechanisms"]) if looked(free) else 0)
    for most in {0, rng.randint(0, work), rng.randint(0, work), work, work + 1}:
        with pytest.MonkeyPatch.context() as patched:
            counted = Counted(patched, most)
            tried = Trials(parted.head_view(compiled, history), asked)
            found: Any = ask(tried)
        done = sum(counted.variants) - (
            len(asked["mechanisms"]) if looked(tried) else 0
        )
        # It goes over by less than one variant, and is never behind its bound.
        assert done < most + len(asked["mechanisms"])
        assert done == work or (done >= most and found.ended_early)
        if done == work and most > work:
            assert (found, found.ended_early) == (whole, False)
        if found.ended_early:
            released = [
                one.release for one in ([found] if isinstance(found, Fit) else found)
            ]
            for variant in released:
                assert variant is None or passes(dict(variant), compiled, history)
            if isinstance(found, Fit):
                claims_nothing(found)


def looked(tried: Trials) -> bool:
    """Return whether the release itself was priced."""
    return "recorded" in vars(tried)


def claims_nothing(fit: Fit) -> None:
    """Check that nothing is said of what was not tried."""
    assert fit.why[-1] == ENDED_EARLY
    assert fit.to_dict()["ended_early"] is True
    if not fit.found:
        assert fit.why == (ENDED_EARLY,)
        assert fit.explain().startswith(f"nothing found, varying {fit.vary} ")
    elif fit.vary in ("noise", "rho"):
        assert fit.why == (ENDED_EARLY,)
    text = fit.explain()
    for claim in ("nothing fits", "however", "of it passes", "cannot be read"):
        assert claim not in text


def test_twenty_mechanisms_are_searched_to_the_end() -> None:
    names = [f"m{number}" for number in range(20)]
    every = [
        mechanism(name, attributes=["age", "pay"], **noise("9")) for name in names[:10]
    ]
    every += [mechanism(name, cost=costs("0.002")) for name in names[10:]]
    full = release("before", mechanism(cost=costs("0.45")), periods="2026-04")
    tried = parted.trials(release("asked", *every), policy(), [full])
    found = options(tried)
    assert {"noise", "periods", "attribute", "label"} <= {one.kind for one in found}
    assert not found.ended_early
    # Even with as many variants of parts as there may be.
    assert 20 * 2 * searching_tries() <= WORK_MAX


def searching_tries() -> int:
    from modicum.api.local.alternatives.smaller_parts import TRIES_MAX

    return TRIES_MAX


def test_the_best_so_far_is_told_without_calling_it_the_closest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = release("asked", mechanism(**noise("2")), mechanism("b", **noise("2")))
    full = release("before", mechanism(cost=costs("0.45")))
    closest = largest_fit(parted.trials(asked, policy(), [full]), "noise")
    assert closest.release is not None
    assert any("with less of it" in line for line in closest.why)
    monkeypatch.setattr(searching, "WORK_MAX", 44)
    early = largest_fit(parted.trials(asked, policy(), [full]), "noise")
    assert early.release is not None
    more: Any = early.release["mechanisms"]
    least: Any = closest.release["mechanisms"]
    assert more[0]["sigma"] > least[0]["sigma"]
    assert early.why == (ENDED_EARLY,)
    monkeypatch.setattr(searching, "WORK_MAX", 6)
    none = largest_fit(parted.trials(asked, policy(), [full]), "noise")
    assert (none.release, none.why) == (None, (ENDED_EARLY,))


def test_a_denial_says_that_the_search_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = workspace(tmp_path, policy=TEXT)
    assert ws.submit(release("a", mechanism(cost=costs("0.45")))).allowed
    asked = release("asked", mechanism(**noise("2")), mechanism("b", **noise("2")))
    assert ENDED_EARLY not in ws.check(asked).explain()
    monkeypatch.setattr(searching, "WORK_MAX", 44)
    text = ws.check(asked).explain()
    assert "would be allowed with: counts: sigma " in text
    assert ENDED_EARLY in text
    monkeypatch.setattr(searching, "WORK_MAX", 6)
    decision = ws.check(asked)
    text = decision.explain()
    assert f"  {ENDED_EARLY}" in text
    assert "no change" not in text
    document: Any = decision.to_dict(deep=True)
    assert document["explanation"]["fit"]["ended_early"] is True
    assert decision.options().ended_early
    assert "spent by a" in text  # Who filled the cells is told all the same.


def test_a_query_says_that_the_search_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, query = (
        asked_query.workspace(tmp_path),
        asked_query.query(loss={"user-day": {"rho": Fraction("0.06")}}),
    )
    decision = Queries(ledger).plan(query)
    assert not decision.allowed
    assert not decision.options().ended_early
    monkeypatch.setattr(searching, "WORK_MAX", 2)
    fit = decision.largest_fit("loss")
    assert (fit.found, fit.why) == (False, (ENDED_EARLY,))
    assert decision.options().ended_early
    found = decision.explanation()
    assert found is not None
    assert found.fit.why == (ENDED_EARLY,)


def test_what_takes_long_to_price_counts_as_more_until_its_price_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch, 3 * (searching.SLOW_WORK + 2))
    sampled = {
        "name": "s",
        "mechanism": "laplace",
        "attributes": ["pay"],
        "scale": 0.001,
        "sensitivity": {unit: {"l1": 1} for unit in ("user", "user-month")},
        "sampling": {"unit": "user", "rate": 0.5},
    }
    trials = parted.trials(release("asked", sampled, mechanism("b")), policy(), [])
    assert largest_fit(trials, "noise").why == (ENDED_EARLY,)
    assert trials.tried == 3
    # Of other parts, the price is known.
    counted = Counted(monkeypatch, searching.SLOW_WORK + 2 * 5)
    trials = parted.trials(release("asked", sampled, mechanism("b")), policy(), [])
    for month in range(1, 7):
        part = {**trials.base, "periods": f"2026-0{month}"}
        assert (trials.priced(part) is None) == (month == 6)
    assert len(counted.variants) == 5
