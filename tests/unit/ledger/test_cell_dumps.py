"""Balances as bytes, and back."""

from __future__ import annotations

import random

import pytest
from samples import divided

from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.decide import decide
from modicum.policy import CompiledPolicy


def grown(seed: int) -> tuple[CompiledPolicy, Balances, divided.Releases, int]:
    rng = random.Random(seed)
    compiled = divided.policy(rng)
    balances, day = Balances(compiled), divided.DAWN
    releases = divided.Releases(rng, compiled)
    for number in range(8):
        day += rng.choice([0, 1, 5])
        new = releases.make(number, day)
        balances.charge(new, day)
        if rng.random() < 0.3:
            balances.take_back(new, day)
    return compiled, balances, releases, day


@pytest.mark.parametrize("seed", range(6))
def test_restored_balances_go_on_as_if_nothing_had_been(seed: int) -> None:
    compiled, balances, releases, day = grown(seed)
    again = Balances.restored(compiled, balances.dump())
    assert again.dump() == balances.dump()
    for number in range(100, 106):
        new = releases.make(number, day)
        one, other = decide(balances, new, day), decide(again, new, day)
        assert one.losses == other.losses
        balances.charge(new, day)
        again.charge(new, day)
        assert again.dump() == balances.dump()


def test_a_dump_that_is_odd_is_refused() -> None:
    compiled, balances, _, _ = grown(1)
    dumped = balances.dump()
    unit = next(iter(dumped))
    with pytest.raises(ValueError, match="other units"):
        Balances.restored(compiled, {})
    for data in (b"", dumped[unit][:-8], dumped[unit] + bytes(8), dumped[unit][1:]):
        with pytest.raises((ValueError, OverflowError)):
            Balances.restored(compiled, {**dumped, unit: data})
