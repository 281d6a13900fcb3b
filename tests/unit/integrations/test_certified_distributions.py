"""Certified distributions beside those of dp-accounting, for the same batches."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from budget import counted, seed

from modicum.accounting.amounts import decimal_of
from modicum.accounting.batch_format import Part
from modicum.accounting.mechanisms import ACCOUNT_KINDS
from modicum.accounting.named_mechanisms import complete_values
from modicum.accounting.privacy_loss import batches
from modicum.accounting.privacy_loss.pairs import Pair, merged
from modicum.core.rationals import LOSS_UNIT
from modicum.integrations.pld.batch import batch_epsilon


def part(kind: str, times: int, **values: Fraction | int) -> Part:
    named = {key.replace("_", "-"): Fraction(one) for key, one in values.items()}
    return Part(kind, tuple(complete_values(ACCOUNT_KINDS[kind], named).items()), times)


def drawn(draw: random.Random) -> Part:
    size = Fraction(draw.randint(15, 90), 10)
    times = draw.choice((1, 10, 40, 300))
    match draw.choice(("laplace", "gaussian", "integers", "normal", "answers", "step")):
        case "laplace":
            return part("laplace", times, scale=size * 4)
        case "gaussian":
            return part("gaussian", times, sigma=size * 4)
        case "integers":
            moved = draw.randint(1, 4)
            return part("discrete-laplace", times, scale=size * 5, sensitivity=moved)
        case "normal":
            return part("discrete-gaussian", times, sigma=size * 4)
        case "answers":
            truth = Fraction(draw.randint(51, 60), 100)
            return part("randomized-response", min(times, 40), truth=truth)
        case _:
            rate = Fraction(1, draw.randint(5, 50))
            noise = size / 2
            return part(
                "dp-sgd", 1, noise_multiplier=noise, sampling_rate=rate, steps=times
            )


def test_they_are_close(capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(f"certified {seed()}")
    ratios = []
    for _ in range(counted(20)):
        parts = [drawn(draw) for _ in range(draw.randint(1, 3))]
        delta = Fraction(1, 10 ** draw.randint(4, 8))
        pairs: list[tuple[Pair, int]] = []
        for one in parts:
            known = ACCOUNT_KINDS[one.kind].pairs
            assert known is not None
            found = known(dict(one.values))
            assert found is not None
            pairs += [(pair, count * one.times) for pair, count in found]
        units = batches.batch_epsilon(merged(pairs), delta)
        assert units is not None
        ratios.append(
            units / LOSS_UNIT / float(decimal_of(batch_epsilon(parts, delta)))
        )
    with capsys.disabled():
        print(f"\nepsilon is {min(ratios):.4f} to {max(ratios):.4f} of dp-accounting's")
    assert min(ratios) > 0.99
    assert max(ratios) < 1.03
