"""What is left of budgets: against every element of a small ring, one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from budget import examples

from modicum.accounting.filters.unlock_schedule import Unlocking
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.simulation.leftovers import Leftovers, left_over
from modicum.planner.simulation.setting import Setting, prices
from modicum.planner.simulation.simulation import Run, simulate, tried_in
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.model import Workload

ROUNDS = 4
SETTING = Setting(schedule=Unlocking(3, Fraction(1, 2)), attempts=2)


def small(seed: int, domain: int = 30) -> Workload:
    whole = cohere("w4", Recipe(seed=seed, rounds=5, domain=domain))
    kept = np.arange(0, len(whole.requests), 10)
    return replace(whole, requests=whole.requests.chosen(kept))


def slowly(run: Run, parts: int) -> list[list[float]]:
    """Return the same by charging every element of every group by itself."""
    workload, setting = run.workload, run.setting
    requests, size = workload.requests, workload.domain
    priced = prices(workload.types, setting)
    total = [int(cap) for cap in priced.total]
    active = setting.schedule.rounds
    charged = [[[0] * len(total) for _ in range(size)] for _ in range(active)]
    columns = []
    for number in workload.round_numbers:
        before = np.where(run.accepted_in < number, run.accepted_in, -1)
        tried = tried_in(requests, number, setting.attempts, before)
        reads = {i: elements(workload, i) for i in map(int, tried)}
        for i in map(int, tried[run.accepted_in[tried] == number]):
            for group in charged:
                for element in reads[i]:
                    for a, cost in enumerate(priced.costs[requests.type[i]]):
                        group[element][a] += int(cost)
        least = [
            min(
                max(
                    max(0.0, 1 - float(spent / (cap * setting.schedule.share(age))))
                    for spent, cap in zip(group[element], total, strict=True)
                )
                for age, group in enumerate(charged, start=1)
            )
            for element in range(size)
        ]
        columns.append(by_part(by_place(least, list(reads.values())), parts))
        charged = [[[0] * len(total) for _ in range(size)], *charged[:-1]]
    return [list(row) for row in zip(*columns, strict=True)]


def elements(workload: Workload, request: int) -> set[int]:
    first = int(workload.requests.first[request])
    width = int(workload.requests.width[request])
    return {(first + step) % workload.domain for step in range(width)}


def by_place(least: list[float], reads: list[set[int]]) -> list[float]:
    """Return for each element the least of its place: where the same requests read.

    A place is an interval: it ends where a request begins or ends, and at 0.
    """
    size = len(least)
    cuts = [0]
    for element in range(1, size):
        if any((element in read) != (element - 1 in read) for read in reads):
            cuts.append(element)
    # Where one request ends and another begins, nothing may seem to change.
    return [
        value
        for begin, end in zip(cuts, [*cuts[1:], size], strict=True)
        for value in [min(least[begin:end])] * (end - begin)
    ]


def by_part(values: list[float], parts: int) -> list[float]:
    wide = len(values) // parts
    return [sum(values[i * wide : (i + 1) * wide]) / wide for i in range(parts)]


@pytest.mark.parametrize("seed", range(examples(4)))
def test_the_same_as_element_by_element(seed: int) -> None:
    run = simulate(small(seed), replace(SETTING, solver="dpk"), NumpyEngine)
    assert 0 < int(run.accepted.sum()) < len(run.accepted)
    found = left_over(run, 10)
    slow = np.array(slowly(run, 10))
    assert found.shares.shape == (10, 5)
    np.testing.assert_allclose(found.shares, slow, atol=1e-9)
    assert found.shares.min() < 0.3 < found.shares.max()


def test_names_are_the_elements() -> None:
    run = simulate(small(1), SETTING, NumpyEngine)
    assert left_over(run, 10).names[:2] == ("0 to 2", "3 to 5")
    assert left_over(run, 7).names[-1] == "25 to 29"
    assert len(left_over(run, 48).names) == 30


def nothing_accepted(setting: Setting) -> Leftovers:
    workload = small(0)
    nobody = np.full(len(workload.requests), -1, np.int64)
    return left_over(Run(workload, setting, nobody))


def test_nothing_accepted_leaves_all() -> None:
    np.testing.assert_allclose(nothing_accepted(SETTING).shares, 1)
    whole = nothing_accepted(replace(SETTING, partitioning=False))
    assert (whole.names, whole.shares.tolist()) == (("everybody",), [[1.0] * 5])


def test_blocks_are_there_while_they_are_active() -> None:
    found = nothing_accepted(replace(SETTING, blocks=True))
    there = ~np.isnan(found.shares)
    assert (found.shares[there] == 1).all()
    # Twelve blocks of 5,000 users join in a round; a block is active for three.
    assert set(there.sum(axis=0).tolist()) <= {36, 37}
    assert set(there.sum(axis=1).tolist()) <= {1, 2, 3}
    first = found.names.index("block 130")
    assert there[first].sum() <= 3


def test_blocks_are_charged_what_was_accepted() -> None:
    """One coordinate only: what is gone from all blocks is what was accepted."""
    whole = cohere("w1", Recipe(rounds=1))
    setting = replace(SETTING, blocks=True, solver="fcfs")
    run = simulate(whole, setting, NumpyEngine)
    priced = prices(whole.types, setting)
    assert len(priced.total) == 1
    (column,) = left_over(run).shares.T
    requests = whole.requests
    rates = [float(kind.sampling) for kind in whole.types]
    wanted = sum(
        int(priced.costs[kind, 0]) * int(rates[kind] * len(column))
        for kind in requests.type[run.accepted]
    )
    ages = np.array(ages_of(column, setting))
    caps = [setting.schedule.cap(int(priced.total[0]), age) for age in ages]
    gone = float((np.array(caps) * (1 - column)).sum())
    assert wanted > 0
    assert gone == pytest.approx(wanted)


def ages_of(column: np.ndarray, setting: Setting) -> list[int]:
    """Return the ages of the blocks of round 11, which are those of the last three."""
    joined = [
        round_
        for round_ in range(12)
        for block in range(12 * 13)
        if round_ * 60_480 <= (block + 1) * 5_000 < (round_ + 1) * 60_480
    ]
    ages = [12 - round_ for round_ in joined if 12 - round_ <= setting.schedule.rounds]
    assert len(ages) == len(column)
    return ages
