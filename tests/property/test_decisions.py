"""Every decision of a random history, against an oracle that reads only the log."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.decisions import CLOSE, Limit, counted_releases, margin
from samples.small import workspace

from modicum.api.local import Workspace
from modicum.core.document import from_python
from modicum.core.errors import ConflictError
from modicum.ledger.log.recorded_release import record_release
from modicum.release import parse_release, price

DELTA = Fraction(1, 10**7)

#: The small organization's rules, written out by hand.
RISKS = {"age": Fraction(2), "diagnosis": Fraction(1), "steps": Fraction(3, 2)}
LEVELS = {
    "member": ({"diagnosis"}, Fraction(6, 5)),
    "strong": ({"diagnosis", "steps"}, Fraction(3, 2)),
    "weak": ({"diagnosis", "steps", "age"}, Fraction(9, 5)),
}


def relaxed(eps: Fraction) -> Fraction:
    """The black-box map: 1 -> 2, 2 -> 5, straight between, proportional below."""
    return 2 * eps if eps <= 1 else 2 + 3 * (eps - 1)


def limits() -> list[Limit]:
    base: list[tuple[str, Any, Fraction]] = [("global", lambda _: True, Fraction(2))]
    for attribute, eps in RISKS.items():
        base.append(
            (f"attr:{attribute}", lambda m, a=attribute: a in m["attributes"], eps)
        )
    for level, (members, eps) in LEVELS.items():
        base.append(
            (
                f"cat:health/{level}",
                lambda m, s=members: not s.isdisjoint(m["attributes"]),
                eps,
            )
        )
    found = []
    for rule, about, eps in base:
        standard = lambda m, f=about: f(m) and m["labels"]["ml"] == "none"  # noqa: E731
        found.append(Limit(f"{rule} @standard", standard, eps, DELTA))
        found.append(Limit(f"{rule} @black-box", about, relaxed(eps), DELTA))
    return found


LIMITS = limits()

numbers = st.sampled_from(["0.0005", "0.002", "0.006", "0.012", "0.02", "0.04"])
costs = st.one_of(
    st.builds(lambda x: {"rho": float(x)}, numbers),
    st.builds(lambda x: {"eps": float(x) * 20}, numbers),
    st.builds(
        lambda x, d: {"eps": float(x) * 20, "delta": d},
        numbers,
        st.sampled_from([1e-9, 1e-8, 2.5e-8]),
    ),
    st.builds(lambda x: {"mu": float(x) * 5}, numbers),
)
mechanisms = st.fixed_dictionaries(
    {
        "mechanism": st.just("declared"),
        "attributes": st.lists(st.sampled_from(list(RISKS)), max_size=3, unique=True),
        "ml": st.sampled_from(["none", "black-box"]),
        "cost": st.fixed_dictionaries({"user": costs}),
    }
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.lists(mechanisms, min_size=1, max_size=3)),
        st.tuples(st.just("past"), st.lists(mechanisms, min_size=1, max_size=2)),
        st.tuples(st.just("void"), st.integers(0, 20)),
        st.tuples(st.just("start"), st.integers(0, 20)),
    ),
    max_size=14,
)


def stored(ws: Workspace, release: dict[str, Any]) -> dict[str, Any]:
    """Return a release as it would be stored, priced but not decided."""
    vocabulary = ws.policy().policy.vocabulary
    recorded = record_release(
        price(parse_release(from_python(release), vocabulary), vocabulary)
    )
    return {
        "mechanisms": [
            {
                "attributes": list(one.attributes),
                "labels": dict(one.labels),
                "losses": {
                    unit: ["inf" if c == 2**62 else c for c in loss.coordinates]
                    for unit, loss in one.losses.items()
                },
            }
            for one in recorded.mechanisms
        ]
    }


@pytest.mark.soak
@pytest.mark.spec("DEC-1")
@pytest.mark.spec("DEC-3")
@settings(max_examples=examples(20))
@given(history=steps)
def test_allowed_exactly_when_every_matching_rule_holds(
    history: list[tuple[str, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ws = workspace(Path(folder))
        for number, (verb, what) in enumerate(history):
            if verb == "submit":
                submit_and_compare(ws, f"r-{number}", what)
            elif verb == "past":
                ws.backfill({"release": f"r-{number}", "mechanisms": what})
            else:
                step(ws, verb, f"r-{what}")
        if history:
            assert workspace(Path(folder)).state().digest() == ws.state().digest()


def submit_and_compare(ws: Workspace, identifier: str, parts: list[Any]) -> None:
    release = {"release": identifier, "mechanisms": parts}
    new = stored(ws, release)
    before = (
        counted_releases(record.payload for record in ws.records())
        if ws._store.exists()
        else []
    )
    checked = ws.check(release)
    decision = ws.submit(release)
    assert checked.verdict.losses == decision.verdict.losses
    for limit in LIMITS:
        matched = [m for m in new["mechanisms"] if limit.about(m)]
        loss = decision.losses.get(limit.rule)
        assert (loss is not None) == bool(matched)
        if loss is None:
            continue
        far = margin(limit, [*before, new], "user")
        if abs(far) > CLOSE:
            assert loss.allowed == (far > 0), (limit.rule, far)
    shown = {one["rule"]: one for one in decision.to_dict()["losses"]}  # type: ignore[attr-defined]
    for one in shown.values():
        over = float(one["together"]) > float(one["limit"])
        assert over == (not one["allowed"]) == (one["rule"] in decision.blocking)
    assert decision.allowed == (not decision.blocking)


def step(ws: Workspace, verb: str, identifier: str) -> None:
    if not ws._store.exists() or identifier not in ws.state().releases:
        return
    try:
        if verb == "void":
            ws.cancel(identifier, reason="test")
        else:
            ws.start(identifier)
    except ConflictError:
        pass


@pytest.mark.spec("DEC-4")
def test_a_release_is_all_or_nothing(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    fits = {
        "mechanism": "declared",
        "attributes": ["age"],
        "cost": {"user": {"rho": 0.001}},
    }
    too_much = {
        "mechanism": "declared",
        "attributes": ["diagnosis"],
        "cost": {"user": {"rho": 0.03}},
    }
    assert not ws.submit({"release": "both", "mechanisms": [fits, too_much]}).allowed
    assert ws.standings()[0].before.units(1) == 0
    assert ws.submit({"release": "one", "mechanisms": [fits]}).allowed


@pytest.mark.spec("DEC-2")
def test_a_rule_for_single_releases_looks_at_one_alone(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    # 1.4 alone passes the cap of 1.5; twice 0.75 in one release does not pass, though
    # each mechanism would.
    big = {
        "mechanism": "declared",
        "attributes": ["age"],
        "cost": {"user": {"eps": 1.4}},
    }
    decision = ws.check({"release": "big", "mechanisms": [big]})
    assert decision.losses["cap"].allowed
    two: list[dict[str, object]] = [
        {
            "name": n,
            "mechanism": "declared",
            "attributes": [],
            "ml": "black-box",
            "cost": {"user": {"eps": 0.76}},
        }
        for n in ("a", "b")
    ]
    decision = ws.check({"release": "two", "mechanisms": two})
    assert decision.blocking == ("cap",)
    for number in range(3):
        ws.backfill({"release": f"old-{number}", "mechanisms": [big]})
    assert ws.check({"release": "new", "mechanisms": [big]}).losses["cap"].allowed


@pytest.mark.spec("DEC-3")
def test_deltas_that_mechanisms_bring_have_a_limit_of_their_own(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    cost = {"eps": 0.01, "delta": 2e-8}
    one = {"mechanism": "declared", "attributes": ["age"], "cost": {"user": cost}}
    assert ws.submit({"release": "first", "mechanisms": [one]}).allowed
    decision = ws.submit({"release": "second", "mechanisms": [one]})
    assert "global @standard" in decision.blocking
    shown = decision.to_dict()["losses"]
    row = next(r for r in shown if r["rule"] == "global @standard")  # type: ignore[attr-defined]
    assert row["measure"] == "delta"
    assert (row["before"], row["together"], row["limit"]) == (2e-8, 4e-8, 2.5e-8)
    assert "own deltas" in decision.explain()
