"""Exact numbers: every spelling of a number is that number, and nothing else is."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.rationals import (
    DELTA_UNIT,
    LOSS_UNIT,
    ceil_units,
    floor_units,
    number_text,
    parse_number,
    rational,
)

TENTH_OF_A_MILLIONTH = Fraction(1, 10**7)


@pytest.mark.spec("ACC-6")
@pytest.mark.parametrize(
    "text",
    [
        *("1e-7", "1E-7", "+1e-7", "1.e-7", "1.0e-7", "1.0E-7", "1.00e-07", "1e-007"),
        *(".1e-6", ".1E-06", "+.1e-6", "0.1e-6", "10e-8", "0.0000001", ".0000001"),
        *("0.00000010", "100000e-12", "00000001e-7", "0.00001e-2", "0.001E-4"),
    ],
)
def test_every_yaml_spelling_of_a_number_is_exactly_it(text: str) -> None:
    assert parse_number(text) == TENTH_OF_A_MILLIONTH
    assert type(parse_number(text)) is Fraction
    negative = "-" + text.removeprefix("+")
    assert parse_number(negative) == -TENTH_OF_A_MILLIONTH


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("-0", Fraction(0)),
        ("00", Fraction(0)),
        ("0e400", Fraction(0)),
        ("1.", Fraction(1)),
        ("1e400", Fraction(10**400)),
        ("1e-400", Fraction(1, 10**400)),
        ("1e+2", Fraction(100)),
        ("9" * 64, Fraction(10**64 - 1)),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_numbers_at_their_ends(text: str, value: Fraction) -> None:
    assert parse_number(text) == value


NOT_NUMBERS = [
    *("", " ", "+", "-", ".", "e5", "1e", "1e+", ".e5", "--1", "+-1", "1-", "1e1.5"),
    *("nan", ".nan", "NaN", ".NaN", ".NAN", "inf", ".inf", "-.inf", "+.Inf", ".INF"),
    *("Infinity", "-Infinity", "1_000", "1__0", "_1", "1_", "1e1_0", "0x1F", "0X1"),
    *("0o17", "0b1", "1:30", "1,5", "1 000", "1/3", "1d", "1.d", "1f", "0x1p4", "1j"),
    *(
        " 1",
        "1 ",
        "1\n",
        "\n1",
        "1\x00",
        "१",
        "\uff11",
        "1e१",
        "²",
        "½",
        "∞",
        "1e-",
        "true",
    ),
    *("1e401", "1e-401", "1e999999999", "1e-999999999", "1e" + "9" * 60, "9" * 65),
    "0." + "0" * 62 + "1",
]


@pytest.mark.spec("ACC-6")
@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_what_is_not_a_finite_decimal_is_none_at_once(text: str) -> None:
    began = time.process_time()
    assert parse_number(text) is None
    assert time.process_time() - began < 0.05


def test_a_megabyte_of_digits_is_refused_without_being_read() -> None:
    began = time.process_time()
    assert parse_number("9" * 1_000_000) is None
    assert time.process_time() - began < 0.05


@settings(max_examples=examples(200))
@given(
    st.from_regex(
        r"[-+]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})([eE][-+]?\d{1,2})?", fullmatch=True
    )
)
def test_a_number_is_what_its_digits_say(text: str) -> None:
    """Digits without the point, times a power of ten: schoolbook place value."""
    if not text.isascii():
        assert parse_number(text) is None
        return
    mantissa, _, exponent = text.lower().partition("e")
    sign = -1 if mantissa.startswith("-") else 1
    whole, _, part = mantissa.lstrip("+-").partition(".")
    truth = sign * Fraction(int(whole + part)) / 10 ** len(part)
    assert parse_number(text) == truth * Fraction(10) ** int(exponent or 0)


@settings(max_examples=examples(200))
@given(st.text(max_size=70))
def test_any_text_is_a_number_or_none(text: str) -> None:
    value = parse_number(text)
    assert value is None or type(value) is Fraction


# --- texts of numbers ---------------------------------------------------------------


@settings(max_examples=examples(200))
@given(
    st.one_of(
        st.fractions(),
        st.builds(
            lambda n, two, five: Fraction(n, 2**two * 5**five),
            st.integers(),
            st.integers(0, 80),
            st.integers(0, 80),
        ),
    )
)
def test_the_text_of_a_number_says_exactly_the_number(value: Fraction) -> None:
    text = number_text(value)
    assert Fraction(text) == value
    if "/" not in text:
        assert "e" not in text
        assert not text.startswith(("+", ".", "-."))
        assert "." not in text or not text.endswith(("0", ".")), "one spelling"
    if "/" not in text and len(text) <= 64:
        assert parse_number(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(-7), "-7"),
        (Fraction(100), "100"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(25, 10), "2.5"),
        (Fraction(1, 10**7), "0.0000001"),
        (Fraction(-1, 3), "-1/3"),
        (Fraction(22, 7), "22/7"),
    ],
)
def test_the_one_text_of_a_number(value: Fraction, text: str) -> None:
    assert number_text(value) == text


# --- Python numbers -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (1e-7, TENTH_OF_A_MILLIONTH),
        (3, Fraction(3)),
        ("1e-7", TENTH_OF_A_MILLIONTH),
        (Decimal("0.30"), Fraction(3, 10)),
        (Decimal("1E-7"), TENTH_OF_A_MILLIONTH),
        (Fraction(1, 3), Fraction(1, 3)),
        (5e-324, Fraction(5, 10**324)),
    ],
)
def test_a_python_number_means_its_shortest_text(
    value: float | str | Decimal | Fraction, exact: Fraction
) -> None:
    assert rational(value) == exact


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), Decimal("sNaN"), "1/3", "x", "", True],
)
def test_what_is_no_number_is_a_value_error(value: float | str | Decimal) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        rational(value)


# --- units --------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(st.fractions(), st.sampled_from([LOSS_UNIT, DELTA_UNIT, 1]))
def test_losses_go_up_and_limits_go_down_by_less_than_a_unit(
    value: Fraction, unit: int
) -> None:
    assert 0 <= ceil_units(value, unit) - value * unit < 1
    assert 0 <= value * unit - floor_units(value, unit) < 1


def test_the_units_are_the_documented_ones() -> None:
    assert (LOSS_UNIT, DELTA_UNIT) == (10**12, 10**18)
    assert ceil_units(Fraction(1, 3)) == 333_333_333_334
    assert floor_units(Fraction(1, 3)) == 333_333_333_333
