"""Charts: marks where the numbers say, tables of the same, the same bytes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.drawn import (
    SAME,
    check_room,
    corners,
    labels,
    legend_of,
    plots,
    root_of,
    sides,
)
from samples.pages import read

from modicum.core.errors import Code, InputError, InvariantError, ModicumError
from modicum.planner import Choice, Outlook, Rotation, Unlocking, look_ahead
from modicum.reports.charts import (
    Chart,
    accepted_by_size,
    budget_left,
    cell_history,
    meter,
    rotation_outlook,
    save,
    utility_by_round,
)
from modicum.reports.charts.chart import chart as drawn_chart
from modicum.reports.charts.svg import COLORS, Scale, text_width, thinned
from modicum.reports.markup import visible
from modicum.reports.style import CHART_STYLE, STYLE

NAN = float("nan")
HOSTILE = (
    "</title></svg><script>alert(1)</script>\" onload='x' url(x) \x00\x1b[2J\u202e"
)


def outlook(slack: str, active: int = 4) -> Outlook:
    choice = Choice(
        f"slack={slack}", Rotation(active, 6), Unlocking(active, Fraction(slack))
    )
    return look_ahead(choice, [700], rounds=14)


def day(number: int) -> datetime:
    return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number)


CHARGES = [(3, Fraction(1, 10)), (17, Fraction(9, 10)), (40, Fraction(13, 10))]
CHARTS: dict[str, Callable[[], Chart]] = {
    "one": lambda: rotation_outlook([outlook("0.5")]),
    "many": lambda: rotation_outlook([outlook("0"), outlook("0.5", 3), outlook("1")]),
    "utility": lambda: utility_by_round(
        {"dpk": [1, 2, 3], "fcfs": [1.5, 0, 2]}, spread={"dpk": [0.1, 0.2, 0.1]}
    ),
    "one round": lambda: utility_by_round({"dpk": [0]}),
    "accepted": lambda: accepted_by_size(
        {"dpk": {"mice": 0.9, "hares": 0.5}, "fcfs": {"hares": 0.25, "mice": 1}}
    ),
    "left": lambda: budget_left([[1, 0.5, 0], [NAN, 1, 0.25]], ["AT", "CH"]),
    "history": lambda: cell_history([*CHARGES, (60, Fraction(1))], Fraction(1)),
    "times": lambda: cell_history([(day(n), n) for n in range(90)], 100, until=day(99)),
    "infinite": lambda: cell_history([(1, Fraction(1)), (2, inf)], Fraction(2)),
    "unlimited": lambda: cell_history([(1, Fraction(1))], inf),
    "nothing": lambda: cell_history([], Fraction(1)),
}
EVERY = pytest.mark.parametrize("name", CHARTS)


# --- all charts -----------------------------------------------------------------------


@EVERY
def test_every_axis_says_what_it_shows_in_which_unit(name: str) -> None:
    found = plots(CHARTS[name]().svg)
    assert len(found) == (3 if name in ("one", "many") else 1)
    for one in found:
        assert one.title
        names = f"{one.across} {one.up}"
        assert re.search("%|users, on average|segment|epsilon", names)


@EVERY
def test_a_chart_has_a_title_a_sentence_and_a_table(name: str) -> None:
    chart = CHARTS[name]()
    root = root_of(chart.svg)
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    found = [root.findtext(f"*[@id='{one}']") for one in named]
    assert found == [chart.title, chart.sentence]
    assert chart.sentence.endswith(".")
    headings, rows = chart.table
    assert {len(row) for row in rows} <= {len(headings)}
    assert bool(rows) == (name != "nothing")


@EVERY
def test_a_page_decides_about_colors_and_a_policy_about_nothing(name: str) -> None:
    root = root_of(CHARTS[name]().svg)
    for one in root.iter():
        assert not {"style", "href"} & {*one.attrib}
        assert not one.tag.endswith(("style", "script", "image", "use"))
        if "color" in one.attrib:
            first = (one.get("class") or "").split()[0]
            assert one.get("color") == COLORS[first]
    urls = re.findall(r"url\(([^)]*)\)", CHARTS[name]().svg)
    assert {*urls} <= {f"#{one.get('id')}" for one in root.iter() if one.get("id")}


def test_the_style_of_pages_knows_every_class() -> None:
    for kind in COLORS:
        assert re.search(rf"svg \.{kind}(, svg [^{{]*)? {{ color: #", CHART_STYLE), kind
    assert CHART_STYLE in STYLE


@EVERY
def test_nothing_is_cut_off_or_on_top_of_anything_else(name: str) -> None:
    check_room(CHARTS[name]().svg)


@EVERY
def test_the_same_chart_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    save(CHARTS[name](), tmp_path / "1.svg")
    save(CHARTS[name](), tmp_path / "2.SVG")
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.SVG").read_bytes()
    ElementTree.fromstring((tmp_path / "1.svg").read_text("utf-8"))


def test_another_process_draws_the_same_bytes(tmp_path: Path) -> None:
    script = (
        "from modicum.reports.charts import save, utility_by_round\n"
        "save(utility_by_round({'b': [1, 2], 'a': [2, 1]}), 'other.svg')\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    save(utility_by_round({"b": [1, 2], "a": [2, 1]}), tmp_path / "own.svg")
    assert (tmp_path / "own.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_a_page_holds_many_charts() -> None:
    first, second = (
        cell_history(CHARGES, Fraction(1), name=name) for name in ("a-1", "a-2")
    )
    ids = re.findall(r' id="([^"]*)"', first.figure() + second.figure())
    assert len({*ids}) == len(ids) == 6
    for name in ("", "A", "a b", "1a", 'a"', "a)"):
        with pytest.raises(InvariantError):
            drawn_chart(name, "title", "sentence", ((), ()), 1)


def test_a_notebook_and_a_page_show_the_chart_and_its_table() -> None:
    chart = CHARTS["left"]()
    reader = read(chart._repr_html_())
    assert {"figure", "svg", "figcaption", "details", "summary", "table"} <= {
        *reader.tags
    }
    assert reader.said[-4:] == ["CH", "-", "100", "25"]
    assert chart._repr_svg_() == chart.svg
    assert repr(chart) == "<Chart 'Budget left'>"


def hostile(text: str) -> Iterator[Chart]:
    yield utility_by_round({text: [1, 2], "b": [2, 1]}, spread={text: [1, 1]})
    yield accepted_by_size({text: {text: 0.5, "b": 1}})
    yield budget_left([[0.5]], [text], unit=text)
    yield cell_history(CHARGES, Fraction(1), title=text, unit=text)
    choice = Choice(text, Rotation(4, 6), Unlocking(4, Fraction(0)))
    yield rotation_outlook([look_ahead(choice, [700], rounds=14)])


@given(text=st.one_of(st.just(HOSTILE), st.text(max_size=60)))
@settings(max_examples=examples(60), deadline=None)
def test_no_name_breaks_out(text: str) -> None:
    usual = [{*_tags(chart.svg)} for chart in hostile("a")]
    for chart, tags in zip(hostile(text), usual, strict=True):
        assert {*_tags(chart.svg)} == tags
        assert read(chart.figure()).open == []
        everything = "".join(root_of(chart.svg).itertext())
        assert all(one.isprintable() or one == "\n" for one in everything)
        assert visible(chart.sentence) in everything


@pytest.mark.parametrize("text", ["n" * 90, "\N{HIRAGANA LETTER A}" * 60, "a b" * 40])
def test_long_names_have_room(text: str) -> None:
    for chart in hostile(text):
        check_room(chart.svg)
        assert text in "".join(root_of(chart.svg).itertext())


def _tags(svg: str) -> list[str]:
    return [f"{one.tag} {sorted(one.attrib)}" for one in root_of(svg).iter()]


# --- what is drawn --------------------------------------------------------------------


def assert_line(found: list[tuple[float, float]], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for pixel, wanted in zip(found, expected, strict=True):
        assert pixel == pytest.approx(wanted, abs=SAME)


def test_lines_go_through_their_numbers() -> None:
    (plot,) = plots(CHARTS["utility"]().svg)
    lines: dict[str, list[float]] = {"series-1": [1, 2, 3], "series-2": [1.5, 0, 2]}
    for kind, values in lines.items():
        (line,) = plot.kind(kind, "line")
        assert_line(corners(line), plot.at(enumerate(values, 1)))
    (area,) = plot.kind("spread")
    ends = [(1, 0.9), (2, 1.8), (3, 2.9), (3, 3.1), (2, 2.2), (1, 1.1)]
    assert_line(corners(area), plot.at(ends))
    assert (plot.x.pixel(1), plot.x.pixel(3)) == (plot.left, plot.right)
    assert plot.y.pixel(0) == plot.bottom
    entries = legend_of(root_of(CHARTS["utility"]().svg))
    for sample, name in entries:
        kind = f"series-{1 + ['dpk', 'fcfs'].index(name)}"
        assert sample.get("class") == kind
        (line,) = plot.kind(kind, "line")
        assert sample.get("stroke-dasharray") == line.get("stroke-dasharray")
    headings, rows = CHARTS["utility"]().table
    assert headings == ("Round", "dpk", "fcfs", "dpk, ±")
    assert rows == (
        ("1", "1", "1.5", "0.1"),
        ("2", "2", "0", "0.2"),
        ("3", "3", "2", "0.1"),
    )


def test_the_outlook_is_drawn_as_it_is() -> None:
    shown = outlook("0.5")
    users, unlocked, available = plots(rotation_outlook([shown]).svg)
    (line,) = users.kind("line")
    every = [(one.round, float(one.users)) for one in shown.rounds]
    assert_line(corners(line), users.at(every))
    (line,) = unlocked.kind("line")
    assert_line(corners(line), unlocked.at(enumerate([0, 37.5, 75, 87.5, 100])))
    (line,) = available.kind("line")
    # It changes halfway between two rounds.
    turns = [(1, 37.5), (2.5, 37.5), (2.5, 12.5), (4.5, 12.5), (4.5, 37.5)]
    assert_line(corners(line)[: len(turns)], available.at(turns))
    ((left, top, right, bottom),) = available.bars("series-5")
    assert (left, right) == (available.left, available.right)
    heights = available.y.pixel(37.5), available.y.pixel(12.5)
    assert (top, bottom) == pytest.approx(heights, abs=SAME)


def test_the_table_of_an_outlook_has_all_rounds() -> None:
    headings, rows = CHARTS["one"]().table
    assert headings == (
        "Choice",
        "Round or age",
        "Users",
        "Unlocked, %",
        "Available, %",
    )
    assert [row[1] for row in rows] == [str(n) for n in range(15)]
    assert rows[0][2:] == ("-", "0", "-")
    assert [row[3] for row in rows[:6]] == ["0", "37.5", "75", "87.5", "100", "-"]
    assert [row[4] for row in rows[1:5]] == ["37.5", "37.5", "12.5", "12.5"]
    assert len(CHARTS["many"]().table[1]) == 3 * 15


def test_bars_belong_to_the_class_below_them() -> None:
    (plot,) = plots(CHARTS["accepted"]().svg)
    heights = {"series-1": [90, 50], "series-2": [100, 25]}
    for kind, values in heights.items():
        bars = plot.bars(kind)
        assert len(bars) == 2
        for (left, top, right, bottom), (tick, _), value in zip(
            bars, plot.x.ticks, values, strict=True
        ):
            assert abs((left + right) / 2 - tick) < 0.4 * (plot.right - plot.left) / 2
            assert (top, bottom) == pytest.approx(
                (plot.y.pixel(value), plot.bottom), abs=SAME
            )
    assert plot.x.texts == ["mice", "hares"]
    counts = {one.text for one in labels(root_of(CHARTS["accepted"]().svg))}
    assert {"90", "50", "100", "25"} <= counts
    assert CHARTS["accepted"]().table[1] == (
        ("mice", "90", "100"),
        ("hares", "50", "25"),
    )


def test_a_heat_map_is_darker_where_more_is_left() -> None:
    (plot,) = plots(CHARTS["left"]().svg)
    shades = {one.get("fill-opacity"): one for one in plot.kind("cell")}
    first, second, third = (plot.x.pixel(n) for n in (1, 2, 3))
    half = (second - first) / 2
    upper, lower = (pixel for pixel, _ in plot.y.ticks)
    high = lower - upper
    places = {
        "1.00": [(first - half, upper - high / 2), (second - half, lower - high / 2)],
        "0.50": [(second - half, upper - high / 2)],
        "0.00": [(third - half, upper - high / 2)],
        "0.25": [(third - half, lower - high / 2)],
    }
    assert {*shades} == {*places}
    for shade, path in shades.items():
        assert_line(corners(path), places[str(shade)])
    (idle,) = plot.kind("idle")
    assert idle.get("fill") == "url(#left-idle)"
    names = [name for _, name in legend_of(root_of(CHARTS["left"]().svg))]
    assert names == ["0 %", "25 %", "50 %", "75 %", "100 %", "not active"]
    assert "not active" not in budget_left([[0.5]], ["a"]).svg


def test_a_heat_map_names_some_of_many_segments() -> None:
    names = [f"s{n}" for n in range(95)]
    chart = budget_left([[0.5]] * 95, names, first_round=11)
    (plot,) = plots(chart.svg)
    assert plot.y.texts == names[::4]
    assert plot.x.texts == ["11"]
    assert [row[0] for row in chart.table[1]] == names


def test_what_is_left_is_rounded_down() -> None:
    chart = budget_left([[0.12399], [0.99999]], ["a", "b"])
    assert [row[1] for row in chart.table[1]] == ["12.3", "99.9"]
    assert "a has least left of 2 segments: 12.3 %" in chart.sentence


# --- what is spent --------------------------------------------------------------------


def test_a_history_steps_at_its_entries() -> None:
    chart = CHARTS["history"]()
    (plot,) = plots(chart.svg)
    (line,) = plot.kind("line")
    steps = [
        (3, 0),
        (3, 0.1),
        (17, 0.1),
        (17, 0.9),
        (40, 0.9),
        (40, 1.3),
        (60, 1.3),
        (60, 1),
    ]
    assert_line(corners(line), [*plot.at(steps), (plot.right, plot.y.pixel(1))])
    (limit,) = plot.kind("limit")
    assert limit.get("stroke-dasharray")
    height = plot.y.pixel(1)
    assert_line(corners(limit), [(plot.left, height), (plot.right, height)])
    ((left, top, right, bottom),) = plot.bars("over")
    assert (left, right) == pytest.approx(
        (plot.x.pixel(40), plot.x.pixel(60)), abs=SAME
    )
    assert (top, bottom) == pytest.approx(
        (plot.y.pixel(1.3), plot.y.pixel(1)), abs=SAME
    )
    (over,) = plot.kind("bar", "over")
    assert over.get("fill") == "url(#history-over)"  # It is no color alone.
    assert [row[-1] for row in chart.table[1]] == ["within", "within", "over", "within"]
    assert chart.sentence == (
        "The charge is 1 of 1 epsilon after entry 60; it was over the limit after 1 of"
        " 4 entries."
    )


def test_a_charge_is_never_understated() -> None:
    chart = cell_history([(1, Fraction(100001, 10**5))], Fraction(100009, 10**5))
    assert chart.table[1] == (("1", "1.001", "1", "within"),)
    third = cell_history([(1, Fraction(1, 3))], Fraction(1, 3))
    assert third.table[1] == (("1", "0.3334", "0.3333", "within"),)
    assert plots(third.svg)[0].bars("over") == []


def test_an_unknown_charge_reaches_the_upper_end() -> None:
    chart = CHARTS["infinite"]()
    (plot,) = plots(chart.svg)
    ((_, top, right, bottom),) = plot.bars("over")
    assert (top, right) == (plot.top, plot.right)
    assert bottom == pytest.approx(plot.y.pixel(2), abs=SAME)
    assert chart.table[1][1] == ("2", "infinite", "2", "over")
    assert "infinite of 2" in chart.sentence


def test_a_cell_without_a_limit_has_no_line() -> None:
    (plot,) = plots(CHARTS["unlimited"]().svg)
    assert plot.kind("limit") == plot.kind("over") == []
    assert "of infinite epsilon" in CHARTS["unlimited"]().sentence


def test_times_are_dates_in_utc() -> None:
    chart = CHARTS["times"]()
    (plot,) = plots(chart.svg)
    assert plot.across == "time (UTC)"
    first, second, *_ = (
        datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) for text in plot.x.texts
    )
    a_day = (plot.x.ticks[1][0] - plot.x.ticks[0][0]) / (second - first).days
    start = plot.x.ticks[0][0] - a_day * (first - day(0)).days
    assert start == pytest.approx(plot.left, abs=SAME)
    assert plot.left + 99 * a_day == pytest.approx(plot.right, abs=99 * SAME)
    assert chart.table[1][1] == ("2026-03-02 00:00:00Z", "1", "100", "within")
    zone = timezone(timedelta(hours=5))
    other = cell_history(
        [(day(n).astimezone(zone), n) for n in range(90)], 100, until=day(99)
    )
    assert other.svg == chart.svg


def test_nothing_charged_is_said_in_words() -> None:
    chart = CHARTS["nothing"]()
    assert "nothing was charged" in [one.text for one in labels(root_of(chart.svg))]
    assert chart.sentence == "Nothing was charged; the limit is 1 epsilon."


@pytest.mark.parametrize(
    ("share", "width"),
    [
        (Fraction(0), 0),
        (Fraction(1, 3), 40),
        (Fraction(1, 10**9), 1),
        (Fraction(2), 120),
    ],
)
@pytest.mark.parametrize("state", ["ok", "near", "over"])
def test_a_meter_is_as_long_as_its_share(
    share: Fraction, width: int, state: str
) -> None:
    root = root_of(meter(share, "a third", state).replace("<svg", '<svg xmlns="s"', 1))
    rail, spent = (sides(one) for one in root if one.tag.endswith("rect"))
    assert [*rail, *spent] == [0, 0, 120, 10, 0, 0, width, 10]
    kinds = [one.get("class") for one in root if one.get("class")]
    strokes = ["paper"] if state == "over" else []
    assert kinds == ["rail", "fill" if state == "ok" else state, *strokes]
    assert (root.get("role"), root.get("aria-label")) == ("img", "a third")


# --- scales ---------------------------------------------------------------------------


@given(low=st.floats(-1e6, 1e6), size=st.floats(1e-3, 1e12), most=st.integers(3, 12))
@settings(max_examples=examples(300), deadline=None)
def test_ticks_are_round_and_few(low: float, size: float, most: int) -> None:
    scale = Scale(low, low + size, 0, 100)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most + 1
    for tick in ticks:
        assert low - size / 1e6 <= tick <= low + size * (1 + 1e-6)
    for tick in scale.ticks(most, whole=True):
        assert tick == int(tick)


@given(power=st.integers(-12, 12), size=st.floats(1.5, 1e30))
@settings(max_examples=examples(200), deadline=None)
def test_ticks_of_a_logarithmic_scale(power: int, size: float) -> None:
    low = 10.0**power
    ticks = Scale(low, low * size, 0, 100, log=True).ticks()
    assert ticks == sorted({*ticks})
    assert 3 <= len(ticks) <= 10
    for tick in ticks:
        assert low * (1 - 1e-6) <= tick <= low * size * (1 + 1e-6)


def test_numbers_beyond_a_scale_are_at_its_ends() -> None:
    scale = Scale(0, 10, 100, 0)
    assert [scale(one) for one in (-5, 0, 5, 10, inf)] == [100, 100, 50, 0, 0]
    log = Scale(1, 100, 0, 10, log=True)
    assert [log(one) for one in (0, 1, 10, 1000)] == [0, 0, 5, 10]
    with pytest.raises(InvariantError):
        scale(NAN)


def test_labels_are_thinned_to_fit() -> None:
    names = [str(n) for n in range(100)]
    every = thinned(names, 600)
    assert sum(text_width(one) for one in names[::every]) < 600
    assert thinned(names[:5], 600) == 1
    assert thinned(["a" * 999] * 3, 600) == 3


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda: utility_by_round({}),
        lambda: utility_by_round({"a": []}),
        lambda: utility_by_round({"a": [NAN]}),
        lambda: utility_by_round({"a": [1]}, spread={"b": [1]}),
        lambda: utility_by_round({"a": [1]}, spread={"a": [1, 2]}),
        lambda: accepted_by_size({}),
        lambda: accepted_by_size({"a": {}}),
        lambda: accepted_by_size({"a": {"x": 0.5}, "b": {"y": 0.5}}),
        lambda: accepted_by_size({"a": {"x": 1.5}}),
        lambda: budget_left([], []),
        lambda: budget_left([[1]], ["a", "b"]),
        lambda: budget_left([[]], ["a"]),
        lambda: budget_left([[1], [1, 2]], ["a", "b"]),
        lambda: budget_left([[1.5]], ["a"]),
        lambda: cell_history([(1, NAN)], Fraction(1)),
        lambda: cell_history([(1, Fraction(1))], NAN),
        lambda: cell_history([(1, -1.0)], Fraction(1)),
        lambda: cell_history([(2, 0.0), (1, 0.0)], Fraction(1)),
        lambda: cell_history([(datetime(2026, 1, 1), 0.0)], 1.0),  # noqa: DTZ001
    ],
)
def test_numbers_that_do_not_go_together(draw: Any) -> None:
    with pytest.raises(InputError) as caught:
        draw()
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


@pytest.mark.parametrize("file", ["x.png", "x.pdf", "x", ".svg"])
def test_a_name_of_another_kind(file: str, tmp_path: Path) -> None:
    with pytest.raises(ModicumError) as caught:
        save(CHARTS["utility"](), tmp_path / file)
    assert caught.value.code is Code.UNKNOWN_CHOICE
    assert caught.value.problems[0].help == "use a name that ends in .svg"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ModicumError) as caught:
        save(CHARTS["utility"](), tmp_path / "no" / "x.svg")
    assert caught.value.code is Code.FILE_UNREADABLE
