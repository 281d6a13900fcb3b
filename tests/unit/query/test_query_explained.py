"""A query as it shows itself: what it costs, what answers are worth, and no value."""

from __future__ import annotations

from fractions import Fraction

from samples import asked

from modicum.core.rationals import brief
from modicum.query.explanation import computed, derivation, errors_of

CANARY = "canary-5309"
SQL = (
    "SELECT page, COUNT(*) AS views, SUM(amount) AS spent FROM views"
    f" WHERE topic = '{CANARY}' GROUP BY page"
)


def test_all_that_is_known_of_a_query_is_told() -> None:
    query = asked.query(SQL)
    document = query.explain()
    lines = document.splitlines()
    assert lines[0] == "query views: 2 mechanisms with gaussian noise"
    for line in query.compiled.lines:
        (text,) = [one for one in lines if one.startswith(f"  {line.statistic.name}:")]
        for unit, loss in computed(query.compiled, line).items():
            assert f"rho {brief(loss)} per {unit}" in text
    assert "groups of the answer: 2" in lines
    for one in errors_of(query.compiled, query.confidence):
        assert f"{one.aggregate}: {one.as_text()} with 95 % confidence" in lines
    assert lines[-len(derivation(query.compiled)) :] == [
        f"  {label}" for label in derivation(query.compiled)
    ]
    assert str(query) == document
    assert CANARY not in document


def test_a_scale_is_told_in_the_units_of_the_answer() -> None:
    """`amount` has a step of 0.5: the noise of its sum is half as wide as its steps."""
    query = asked.query(SQL)
    scales = {line.statistic.name: line.scale for line in query.compiled.lines}
    document = query.explain()
    assert f"views: noise of scale {brief(scales['views'])};" in document
    assert f"spent: noise of scale {brief(scales['spent'] / 2)};" in document


def test_keys_that_noise_tells_are_a_mechanism_as_well() -> None:
    query = asked.query(asked.BY_TOPIC, discover={"delta": Fraction("1e-8")})
    selection = query.compiled.selection
    assert selection is not None
    lines = query.explain().splitlines()
    assert lines[0] == "query views: 2 mechanisms with gaussian noise"
    assert "groups of the answer: noisy discovery" in lines
    (line,) = [one for one in lines if one.startswith(f"  {selection.name}:")]
    assert f"eps {brief(selection.eps['user-day'])}, delta" in line


def test_one_line_says_which_query_it_is() -> None:
    query = asked.query(SQL)
    assert repr(query) == "<query views: 2 mechanisms with gaussian noise>"
    one = asked.query("SELECT COUNT(*) AS n FROM views", release="one")
    assert repr(one) == "<query one: one mechanism with gaussian noise>"


def test_a_notebook_shows_it_as_text() -> None:
    query = asked.query("SELECT AVG(amount) AS mean FROM views", release="a-b")
    shown = query._repr_html_()
    assert shown.startswith("<pre>query a-b:")
    assert "<" not in shown[5:-6]
