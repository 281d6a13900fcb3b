"""What comes out of a sandbox, and when; without one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import pytest
from budget import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from samples.sandboxed import record, told_in

from modicum.api.ports.escrow import SECONDS_MIN, Limits, Sandbox, score_to_bytes
from modicum.core.errors import InputError
from modicum.escrow.programs import STEPS, Program, Range, Table
from modicum.sandbox.factory import bubblewrap, gvisor, sandbox_for, wasm
from modicum.sandbox.fixed_time import Run
from modicum.sandbox.job import job_bytes
from modicum.sandbox.scores import BITS_MAX, on_grid, score_of
from modicum.sandbox.slots import Slots

UNIT = Range(Fraction(0), Fraction(1))
SHORT = Limits(seconds=1.0, memory_bytes=2**28, processes=4)


@given(
    st.fractions(min_value=-(10**9), max_value=10**9),
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**9),
    st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=examples(300, plain=100))
def test_a_score_is_in_its_range_on_its_grid_and_near(
    low: Fraction, width: Fraction, score: float
) -> None:
    span = Range(low, low + width)
    found = on_grid(score, span)
    assert span.low <= Fraction(found) <= span.high or math.isclose(
        found, float(span.low), rel_tol=1e-15
    )
    # Half a step, and what a float cannot tell.
    slack = width / STEPS / 2 + Fraction(math.ulp(found)) * 2
    assert abs(Fraction(found) - span.clamp(Fraction(score))) <= slack
    assert on_grid(found, span) == found


def test_as_many_scores_as_were_said_can_be_told() -> None:
    few = Range(Fraction(0), Fraction(STEPS))
    assert on_grid(7.4, few) == 7.0
    assert {on_grid(n / 16, few) for n in range(161)} == set(map(float, range(11)))
    assert 29.8 < BITS_MAX < 29.9


ENDS = st.one_of(
    st.fractions(-(10**100), 10**100),
    st.integers(-(10**100), 10**100).map(Fraction),
    st.floats(-9e99, 9e99).map(Fraction),
    st.builds(lambda n, d: Fraction(n, 10**d), st.integers(-9, 9), st.integers(0, 900)),
)
RECORDS = st.one_of(st.binary(max_size=12), st.floats().map(record))


@given(RECORDS, ENDS, ENDS)
@example(record(1.7976931348623157e308), Fraction(0), Fraction(10**100))
@example(record(-1.7976931348623157e308), Fraction(-(10**100)), Fraction(10**100))
@settings(max_examples=examples(500, plain=300))
def test_whatever_a_program_writes_telling_it_does_not_fail(
    content: bytes, one: Fraction, other: Fraction
) -> None:
    assume(one != other)
    span = Range(min(one, other), max(one, other))
    found = score_of(content, span)
    assert found is None or math.isfinite(found)
    score_to_bytes(found)


@pytest.mark.parametrize("digits", [0, 250, 9000])
def test_ranges_beyond_what_can_be_told_are_none(digits: int) -> None:
    """A score beyond all floats would fail its run, for whoever asked to see."""
    Range(Fraction(-(10**100)), Fraction(10**100))
    end = Fraction(10**100 + 1) * 10**digits
    for low, high in ((Fraction(0), end), (-end, Fraction(0)), (end, end + 1)):
        with pytest.raises(InputError, match="exceed 10"):
            Range(low, high)


def test_a_score_that_is_no_float_is_none() -> None:
    span = Range(Fraction(0), Fraction(1))
    object.__setattr__(span, "high", Fraction(19 * 10**307))  # None can be made.
    assert score_of(record(1.7976931348623157e308), span) is None
    assert score_of(record(0.0), span) == 0.0


@given(st.binary(max_size=12))
def test_any_bytes_are_a_score_or_none(content: bytes) -> None:
    found = score_of(content, UNIT)
    assert found is None or (len(content) == 8 and 0 <= found <= 1)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_no_number_is_no_score(score: float) -> None:
    assert score_of(record(score), UNIT) is None
    assert score_of(record(0.5), UNIT) == 0.5
    assert score_of(record(0.5) + b"S", UNIT) is None
    assert score_of(record(0.5)[:-1], UNIT) is None
    assert score_of(b"", UNIT) is None


def test_ends_that_are_no_floats_are_not_left() -> None:
    thirds = Range(Fraction(-1, 3), Fraction(1, 3))
    for score in (-9.0, 9.0):
        found = Fraction(on_grid(score, thirds))
        assert thirds.low <= found <= thirds.high


def telling(score: float, ends: list[float] | None = None) -> Run:
    """Return a run that tells a score at once."""

    @contextmanager
    def run(end_at: float, _: int | None) -> Iterator[float]:
        if ends is not None:
            ends.append(end_at)
        yield score

    return run


def test_a_run_is_told_at_its_end_not_before() -> None:
    started = time.monotonic()
    assert told_in(Slots(None, 1), SHORT, telling(0.5)) == 0.5
    assert 1.0 <= time.monotonic() - started < 1.5


def test_an_error_is_told_at_its_end_too() -> None:
    @contextmanager
    def fails(end_at: float, _: int | None) -> Iterator[float]:
        if end_at:
            raise ZeroDivisionError
        yield 0.5

    started, one = time.monotonic(), Slots(None, 1)
    with pytest.raises(ZeroDivisionError):
        told_in(one, SHORT, fails)
    assert 1.0 <= time.monotonic() - started < 1.5
    one.free(one.take())


def test_time_is_left_to_end_a_run() -> None:
    ends: list[float] = []
    started = time.monotonic()
    told_in(Slots(None, 1), SHORT, telling(0.5, ends))
    assert 0.6 < ends[0] - started < 0.8


@pytest.mark.parametrize(
    "limits", [Limits(0.9, 2**20, 4), Limits(-1.0, 2**20, 4), Limits(2.0, 2**33, 4)]
)
def test_times_that_are_too_short_are_refused(limits: Limits) -> None:
    with pytest.raises(InputError):
        told_in(Slots(None, 1), limits, telling(0.5))
    assert SECONDS_MIN == 1.0


def test_a_job_is_json_that_does_not_tell_its_order() -> None:
    program = Program("python", "größe".encode(), {"b": 1, "a": "x"}, UNIT)
    tables = {
        "t": Table(("x", "y"), ((1, math.nan), (True, -math.inf), (None, "ä"))),
        "a": Table((), ()),
    }
    content = job_bytes(program, tables, None)
    assert content == job_bytes(program, dict(reversed(tables.items())), None)
    assert content is not None

    def strict(_: str) -> None:
        raise AssertionError

    assert json.loads(content, parse_constant=strict) == {
        "arguments": {"a": "x", "b": 1},
        "code": "größe",
        "reference": None,
        "tables": {
            "a": {"columns": [], "rows": []},
            "t": {
                "columns": ["x", "y"],
                "rows": [[1, None], [True, None], [None, "ä"]],
            },
        },
    }


def test_each_language_has_its_sandbox() -> None:
    python = Program("python", b"score = 1", {}, UNIT)
    module = Program("wasm", b"\0asm", {}, UNIT)
    made: list[Sandbox] = [sandbox_for(python, uid=5000), sandbox_for(module)]
    made += [bubblewrap(), wasm(), gvisor()]
    tiers = [one.tier for one in made]
    assert tiers == ["bubblewrap", "wasm", "bubblewrap", "wasm", "gvisor"]
