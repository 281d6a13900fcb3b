"""Answers as tables of text, HTML and Arrow."""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import UsageError
from modicum.query import results
from modicum.query.results import HTML_ROWS_MAX, Answers, Estimate, Row, float_at

NUMBERS = st.fractions() | st.integers(-(10**400), 10**400).map(Fraction)


def answers(*rows: tuple[str | int | bool | None, Fraction | None]) -> Answers:
    """Return answers about groups of one key, each ± 1/3."""
    third = Fraction(1, 3)
    return Answers(
        ("page",),
        ("n",),
        tuple(
            Row(
                (key,),
                (
                    Estimate(
                        value,
                        None if value is None else value - third,
                        None if value is None else value + third,
                    ),
                ),
            )
            for key, value in rows
        ),
        Fraction(19, 20),
        ("a <note>",),
    )


@given(value=NUMBERS)
@settings(max_examples=examples(300))
def test_ends_of_intervals_are_rounded_outward_and_no_further(value: Fraction) -> None:
    low, high = (float_at(value, towards=one) for one in (-math.inf, math.inf))
    assert low is not None
    assert high is not None
    assert low == -math.inf or Fraction(low) <= value
    assert high == math.inf or Fraction(high) >= value
    # No float lies between, other than the number itself.
    assert low == high or math.nextafter(low, math.inf) == high
    assert float_at(value) in (low, high)


def test_nothing_stays_nothing() -> None:
    assert float_at(None) is None
    assert float_at(None, towards=math.inf) is None


def test_an_arrow_table_has_keys_values_and_intervals() -> None:
    found = answers(("main", Fraction(-4)), ("help", None)).to_arrow()
    assert found.column_names == ["page", "n", "n.low", "n.high"]
    assert found.column("page").to_pylist() == ["main", "help"]
    assert found.column("n").to_pylist() == [-4.0, None]
    low, high = (found.column(name)[0].as_py() for name in ("n.low", "n.high"))
    assert Fraction(low) < Fraction(-13, 3)
    assert Fraction(high) > Fraction(-11, 3)


def test_columns_keep_their_types_without_rows_and_without_answers() -> None:
    assert answers().to_arrow().schema.field("n").type == pa.float64()
    assert answers(("a", None)).to_arrow().schema.field("n.low").type == pa.float64()


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(results, "import_module", gone)
    with pytest.raises(UsageError, match="`pyarrow` is not installed"):
        answers().to_arrow()
    with pytest.raises(UsageError, match="`pandas` is not installed"):
        answers().to_pandas()


def test_text_has_a_line_for_each_group_and_note() -> None:
    assert str(answers(("main", Fraction(-4)), ("help", None))).splitlines() == [
        "page   n              95 % CI",
        "main  -4  -4.33333 … -3.66667",
        "help   -                - … -",
        "note: a <note>",
    ]


def test_text_obeys_no_key() -> None:
    assert "\x1b" not in str(answers(("\x1b[2J", Fraction(1))))


def test_html_is_escaped_and_bounded() -> None:
    rows = [(f"<b>{one}", Fraction(one)) for one in range(HTML_ROWS_MAX + 3)]
    found = answers(*rows)._repr_html_()
    assert "<b>" not in found
    assert "<note>" not in found
    assert found.count("<tr>") == HTML_ROWS_MAX + 1
    assert "and 3 more rows" in found
    assert "more rows" not in answers(*rows[:HTML_ROWS_MAX])._repr_html_()
