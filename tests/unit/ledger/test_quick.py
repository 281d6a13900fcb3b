"""Balances in matrices: the same answers as the ledger's own, by both engines."""

from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import ledgers
from samples.small import POLICY

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.accounting.grid import DELTA, EPS, RHO, order_index
from modicum.accounting.mechanisms import declared_pure
from modicum.core.errors import InvariantError
from modicum.ledger import Balances, decide
from modicum.ledger.bulk import EngineOf, QuickBalances, numba_engine
from modicum.ledger.bulk.layout import ALWAYS, NEVER, layout_of
from modicum.ledger.decision.balances import reserved_releases
from modicum.ledger.decision.decide import allows
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text

seeds = st.integers(0, 2**64 - 1).map(random.Random)


@pytest.fixture(scope="module")
def engines() -> dict[str, EngineOf | None]:
    return {"numpy": None, "numba": numba_engine()}


def every_way(
    compiled: CompiledPolicy, engines: dict[str, EngineOf | None]
) -> dict[str, QuickBalances]:
    return {
        f"{name}{' pruned' * pruned}": QuickBalances(
            compiled, pruned=pruned, kernel=kernel
        )
        for name, kernel in engines.items()
        for pruned in (True, False)
    }


def same_state(one: QuickBalances, other: QuickBalances) -> bool:
    mine, others = one.engine, other.engine
    return (
        np.array_equal(mine.left, others.left)
        and np.array_equal(mine.rest, others.rest)
        and np.array_equal(mine.carried, others.carried)
    )


def live(compiled: CompiledPolicy) -> range:
    return range(len(compiled.rules))


# --- the same as the ledger -----------------------------------------------------------


@pytest.mark.spec("DEC-1")
@pytest.mark.spec("DEC-4")
@settings(max_examples=examples(60), deadline=None)
@given(rng=seeds, huge=st.sampled_from([False, False, False, True]))
def test_every_way_says_what_the_ledger_says(
    engines: dict[str, EngineOf | None], rng: random.Random, *, huge: bool
) -> None:
    compiled = ledgers.compiled_from(ledgers.policy_text(rng))
    balances, ways = Balances(compiled), every_way(compiled, engines)
    everybody: list[Balances | QuickBalances] = [balances, *ways.values()]
    charged: list[RecordedRelease] = []
    for number in range(10):
        release = ledgers.release(rng, number, huge=huge)
        expected = decide(balances, release).allowed
        found = {name: quick.allows(release) for name, quick in ways.items()}
        assert set(found.values()) == {expected}, found
        assert allows(balances, release) == expected
        if expected or ledgers.chance(rng, 0.2):  # What happened must be counted.
            charged.append(release)
            for one in everybody:
                one.charge(release)
        elif charged and ledgers.chance(rng, 0.5):
            given_up = charged.pop(rng.randrange(len(charged)))
            for one in everybody:
                one.take_back(given_up)
    assert same_state(ways["numpy"], ways["numba"])
    assert same_state(ways["numpy"], QuickBalances(compiled, charged, pruned=False))


TOGETHER = """
modicum: policy/v1
name: together
units: {user: {id: user_id}}
schema: {attributes: {age: low, pay: low, gps: low}}
policies:
  - {name: all, when: '!("gps" in m.attributes)', unit: user,
     budget: {rdp: {4: 1, 16: 2}}}
  - {name: age, when: '"age" in m.attributes', unit: user, budget: {rho: 0.25}}
  - {name: gps, when: '"gps" in m.attributes', unit: user,
     budget: {eps: 1, delta: 1e-6}}
"""


def split(rng: random.Random, whole: int, parts: int) -> list[int]:
    """Return numbers that add up to a whole one."""
    cuts = sorted(rng.randint(0, whole) for _ in range(parts - 1))
    return [b - a for a, b in pairwise([0, *cuts, whole])]


@pytest.mark.spec("DEC-4")
@settings(max_examples=examples(150), deadline=None)
@given(rng=seeds)
def test_mechanisms_of_one_release_count_together(
    engines: dict[str, EngineOf | None], rng: random.Random
) -> None:
    """They fill a budget to its limit, or beyond it by one unit of the ledger."""
    compiled = ledgers.compiled_from(TOGETHER)
    rule = compiled.rules[rng.randrange(3)]
    own_filter = compiled.filter_of(rule.budget)
    count = rng.choice([1, 2, 3, 4])
    columns = [[rng.choice([0, INFINITE])] * count for _ in range(COORDINATES)]
    beyond = rng.choice([0, 1])
    for index, cap in own_filter.caps:
        columns[index] = split(rng, cap + beyond, count)
    columns[DELTA] = split(rng, own_filter.delta_cap + rng.choice([0] * 7 + [1]), count)
    reads = {"all": ["pay"], "age": ["age"], "gps": ["gps"]}[rule.scope]
    parts = tuple(
        RecordedMechanism({}, tuple(reads), {}, {"user": Loss(loss)})
        for loss in zip(*columns, strict=True)
    )
    before = rng.choice([0, 0, rng.randrange(count)])
    history = RecordedRelease("before", "0" * 64, {}, {}, parts[:before])
    release = RecordedRelease("now", "0" * 64, {}, {}, parts[before:])
    expected = decide(Balances(compiled, reserved_releases([history])), release).allowed
    for kernel in engines.values():
        quick = QuickBalances(compiled, [history], kernel=kernel)
        assert quick.allows(release) == expected


HUGE = """
modicum: policy/v1
name: huge
units: {user: {id: user_id}}
schema: {attributes: {age: low}}
policies:
  - {name: most, when: "true", unit: user, budget: {eps: 4611686.018427387902}}
  - {name: some, when: "true", unit: user, budget: {rho: 4000000}}
  - {name: all, when: "true", unit: user, budget: {rdp: {4: 9000000, 16: 4000000}}}
  - {name: none, when: '"age" in m.attributes', unit: user, budget: unlimited}
"""


def sum_of(quick: QuickBalances, row: int, column: int) -> int:
    """Return the whole sum in which an infinite entry counts as 2**62."""
    engine = quick.engine
    return int(engine.carried[row, column]) * INFINITE + int(engine.rest[row, column])


def left_of(cap: int, spent: int) -> int:
    """Return how much may be added to what was spent, within a cap."""
    if cap == ALWAYS:
        return ALWAYS
    return cap - spent if spent <= cap else NEVER


def whole(total: Total, index: int) -> int:
    return total.finite[index] + INFINITE * total.infinite[index]


@settings(max_examples=examples(50), deadline=None)
@given(rng=seeds)
def test_sums_beyond_62_bits_are_exact_and_read_as_infinite(
    engines: dict[str, EngineOf | None], rng: random.Random
) -> None:
    compiled = ledgers.compiled_from(HUGE)
    layout = layout_of(compiled, live(compiled))
    columns, caps = layout.coordinates, layout.caps
    balances, ways = Balances(compiled), every_way(compiled, engines)
    everybody: list[Balances | QuickBalances] = [balances, *ways.values()]
    charged: list[RecordedRelease] = []
    for number in range(12):
        release = ledgers.release(rng, number, huge=True)
        expected = decide(balances, release).allowed
        assert {quick.allows(release) for quick in ways.values()} == {expected}
        back = bool(charged) and ledgers.chance(rng, 0.4)
        moved = charged.pop() if back else release
        for one in everybody:
            (one.take_back if back else one.charge)(moved)
        if not back:
            charged.append(release)
        for row in range(3):
            total = balances.total(compiled.rules[row])
            for column, index in enumerate(columns):
                left = left_of(caps[row, column], total.units(index))
                assert ways["numba"].engine.left[row, column] == left
                assert sum_of(ways["numba"], row, column) == whole(total, index)
    assert same_state(ways["numpy"], ways["numba"])


@settings(max_examples=examples(30), deadline=None)
@given(rng=seeds, huge=st.booleans())
def test_taking_back_restores_every_bit(
    engines: dict[str, EngineOf | None], rng: random.Random, *, huge: bool
) -> None:
    compiled = ledgers.compiled_from(ledgers.policy_text(rng))
    before = [ledgers.release(rng, number, huge=huge) for number in range(4)]
    more = [ledgers.release(rng, 10 + number, huge=huge) for number in range(4)]
    for kernel in engines.values():
        quick = QuickBalances(compiled, before, kernel=kernel)
        for release in more:
            quick.charge(release)
        for release in rng.sample(more, len(more)):
            quick.take_back(release)
        assert same_state(quick, QuickBalances(compiled, before, kernel=kernel))


@pytest.mark.spec("ACC-3")
@pytest.mark.parametrize("name", ["numpy", "numba"])
def test_what_was_never_charged_cannot_be_taken_back(
    engines: dict[str, EngineOf | None], name: str
) -> None:
    compiled = ledgers.compiled_from(HUGE)
    rng = random.Random(7)
    there, never = ledgers.release(rng, 1), ledgers.release(rng, 2, huge=True)
    quick = QuickBalances(compiled, [there], kernel=engines[name])
    with pytest.raises(InvariantError, match="ACC-3"):
        quick.take_back(never)
    assert same_state(quick, QuickBalances(compiled, [there]))


# --- how it is laid out ---------------------------------------------------------------


def test_only_what_can_deny_has_a_row_and_only_what_is_capped_a_column() -> None:
    compiled = ledgers.compiled_from(HUGE)
    layout = layout_of(compiled, live(compiled))
    four, sixteen = order_index(Fraction(4)), order_index(Fraction(16))
    assert layout.coordinates == (DELTA, EPS, RHO, four, sixteen)
    assert layout.caps.tolist() == [
        [0, INFINITE - 2, NEVER, NEVER, NEVER],
        [0, NEVER, 4 * 10**18, NEVER, NEVER],
        [0, ALWAYS, ALWAYS, INFINITE - 1, 4 * 10**18],
    ]
    assert layout.rows.every.tolist() == [False, False, True]


def test_rows_of_a_base_rule_lie_side_by_side() -> None:
    compiled = ledgers.compiled_from(POLICY)
    layout = layout_of(compiled, [0, 1, 5, 6, 7])
    rows = layout.rows
    assert rows.first_row.tolist() == [0, 2, 3, 5]
    assert rows.context.tolist() == [0, 1, 1, 0, 1]
    assert len(layout.caps) == 5


# --- the engines ----------------------------------------------------------------------


def test_loops_are_compiled_once_for_all_policies(
    engines: dict[str, EngineOf | None],
) -> None:
    from modicum.ledger.bulk import numba_kernel

    loops: list[Any] = [
        numba_kernel._admits_one,
        numba_kernel._admits_all,
        numba_kernel._move,
    ]
    before = [len(loop.signatures) for loop in loops]
    rng = random.Random(3)
    for _ in range(5):
        compiled = ledgers.compiled_from(ledgers.policy_text(rng))
        quick = QuickBalances(compiled, kernel=engines["numba"])
        for number in range(5):
            quick.allows(ledgers.release(rng, number))
            quick.charge(ledgers.release(rng, number))
    assert before == [1, 1, 1]
    assert [len(loop.signatures) for loop in loops] == before


def test_a_loop_that_cannot_be_kept_on_disk_is_compiled_all_the_same() -> None:
    from modicum.ledger.bulk.numba_kernel import compiled

    names: dict[str, object] = {}
    exec("def twice(n):\n    return 2 * n", names)  # It has no file.
    loop = compiled(names["twice"])  # type: ignore[type-var]
    assert loop(21) == 42  # type: ignore[operator]


def test_without_numba_there_is_no_compiled_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("modicum.ledger.bulk.matrix_balances.find_spec", lambda _: None)
    assert numba_engine() is None


def test_one_shot_decisions_load_neither_numba_nor_scipy() -> None:
    script = """
import random, sys
from samples import ledgers
from modicum.ledger.bulk import QuickBalances
rng = random.Random(1)
compiled = ledgers.compiled_from(ledgers.policy_text(rng))
QuickBalances(compiled, [ledgers.release(rng, 1)]).allows(ledgers.release(rng, 2))
print(" ".join({one.split(".")[0] for one in sys.modules}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "tests"},
    )
    loaded = set(done.stdout.split())
    assert "modicum" in loaded
    assert not {"numba", "scipy"} & loaded


PURPOSES = """
modicum: policy/v1
name: purposes
units: {user: {id: user_id}}
labels: {purpose: {values: [ads, care], default: ads}}
schema: {attributes: {age: low}}
policies: [{name: all, when: "true", unit: user, budget: {eps: 2}}]
extensions:
  - name: purpose
    settings:
      selling: {when: 'm.purpose == "ads"', budget: {to: {eps: 1}}}
      any: {when: "true", budget: same}
"""


@pytest.mark.parametrize("order", [("care", "ads"), ("ads", "care")])
def test_what_was_open_text_once_is_told_apart(order: tuple[str, str]) -> None:
    """Two old releases with the same labels, and different text that is a label now."""
    compiled = compile_text(PURPOSES.encode(), "policy.yaml")
    loss = declared_pure(eps=Fraction(3, 2)).loss()
    one = RecordedMechanism({"name": "a", "kind": "declared"}, (), {}, {"user": loss})
    quick = QuickBalances(compiled)
    for purpose in order:
        release = RecordedRelease(purpose, "0" * 64, {}, {"purpose": purpose}, (one,))
        expected = decide(Balances(compiled), release).allowed
        assert expected == (purpose == "care")
        assert quick.allows(release) == expected
