"""What is told by the bytes of mechanisms is told of nothing else."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from budget import examples
from samples import parted
from samples.parted import COUNTRIES, TODAY, mechanism, policy, priced, release

from modicum.accounting import INFINITE, Loss
from modicum.core.canonical import decode, encode
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.ledger.decision import decide as deciding
from modicum.ledger.decision.limits import Limits
from modicum.ledger.log.codec import likeness, release_from_plain, release_to_plain
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import Part

BOX = ((("country", ("CH",)),),)
PARTS: tuple[parted.Written, ...] = (
    {},
    {"where": {"country": "CH"}},
    {"where": [{"country": "DE"}, {"birth": 1991}], "periods": "2026-03"},
)


def recorded(**more: Any) -> RecordedMechanism:
    (found,) = priced(release("r-1", mechanism(**more)), policy()).mechanisms
    return found


def read_again(found: RecordedRelease) -> RecordedRelease:
    return release_from_plain(decode(encode(release_to_plain(found))))


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("part", PARTS)
def test_bytes_are_the_same_for_all_parts_and_after_reading(
    part: parted.Written, neighbors: str
) -> None:
    compiled = policy(neighbors)
    here, everywhere = (
        priced(release("r-1", mechanism(**one)), compiled) for one in (part, {})
    )
    expected = everywhere.mechanisms[0].alike
    assert expected is not None
    (read,) = read_again(here).mechanisms
    assert here.mechanisms[0].alike == expected
    assert likeness(read) == likeness(read) == expected, "worked out, and kept"
    assert likeness(replace(read)) == expected, "worked out anew"


def test_a_mechanism_that_is_told_over_another_part_keeps_its_bytes() -> None:
    one = recorded()
    moved = one.over(Part(BOX))
    assert moved == replace(one, part=Part(BOX))
    assert moved.alike == one.alike == likeness(replace(one, part=Part(BOX)))
    fresh = replace(one)
    assert fresh.over(Part(BOX)).alike is None, "nothing was known yet"


def test_bytes_differ_where_anything_but_the_part_does() -> None:
    one = recorded()
    loss = one.losses["user"].coordinates
    changes: tuple[dict[str, Any], ...] = (
        {"attributes": ()},
        {"attributes": ("age", "pay")},
        {"labels": {}},
        {"labels": {**one.labels, "ml": "black-box"}},
        {"losses": {}},
        {"losses": {**one.losses, "user": Loss((loss[0], loss[1] + 1, *loss[2:]))}},
        {"losses": {**one.losses, "user": Loss((*loss[:-1], INFINITE))}},
        {"neighbors": {"user": "substitute"}},
        {"description": {**one.description, "kind": "laplace"}},
        {"description": {**one.description, "name": "other"}},
        {"description": {**one.description, "contribution_bound": {"user": 2}}},
        {"description": {**one.description, "contribution_bound": {"user": True}}},
    )
    found = [likeness(replace(one, **change)) for change in changes]
    assert len({likeness(one), *found}) == 1 + len(changes)


# --- what is found at a glance, or was asked before, is what is found slowly ----------


def outcome(balances: Balances, request: RecordedRelease) -> object:
    verdict = decide(balances, request, TODAY)
    result = verdict.losses, verdict.blocking, verdict.rounded, verdict.uncovered
    return verdict.allowed, result


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute", "any-change"])
def test_a_glance_says_what_a_long_look_says(
    monkeypatch: pytest.MonkeyPatch, neighbors: str
) -> None:
    allowed, glances = [], []
    glance = Limits.admit_at_a_glance

    def counted(*args: Any) -> bool:
        glances.append(glance(*args))
        return glances[-1]

    monkeypatch.setattr(Limits, "admit_at_a_glance", counted)
    compiled, rng = policy(neighbors), random.Random(20)
    for _ in range(examples(3)):
        balances = Balances(compiled)
        for number in range(40):
            request = priced(narrow(rng, number), compiled)
            quickly = outcome(balances, request)
            with monkeypatch.context() as patched:
                patched.setattr(deciding, "_FEW", 0)
                assert outcome(balances, request) == quickly
                fresh = Balances(compiled)  # It remembers nothing.
                fresh._families = balances._families
                assert outcome(fresh, read_again(request)) == quickly
            verdict = decide(balances, request, TODAY)
            allowed.append(verdict.allowed)
            if verdict.allowed:
                balances.charge(request, TODAY)
    assert min(allowed.count(True), allowed.count(False)) > 10
    if neighbors == "add-remove":  # Else hardly any release touches one cell only.
        assert min(glances.count(True), glances.count(False)) > 10


def narrow(rng: random.Random, number: int) -> parted.Written:
    """Return a release that mostly touches few cells, so that limits are met."""
    if rng.random() < 0.3:
        return parted.some(rng, number)
    where = {"country": rng.choice(COUNTRIES[:2]), "birth": rng.choice(parted.YEARS)}
    attributes = rng.choice([["age"], ["pay"]])
    rho = rng.choice([1, 3, 5]) / 20
    one = mechanism(
        attributes=attributes,
        cost=parted.costs(str(rho)),
        where=where,
        periods=rng.choice(parted.MONTHS[:2]),
    )
    return release(f"r-{number}", one)
