"""Charts of risk: what is drawn is what the table says, and says for whom it is."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from samples.drawn import (
    SAME,
    Plot,
    centers,
    check_room,
    corners,
    labels,
    legend_of,
    plots,
    root_of,
    sides,
)
from samples.risk_studies import (
    COUNTED,
    STUDIES,
    TAU,
    study,
)

from modicum.core.errors import Code, InputError
from modicum.core.rationals import brief
from modicum.reports.charts import Chart, save
from modicum.reports.markup import visible
from modicum.risk.charts.groups import risk_groups, shown_candidates
from modicum.risk.charts.histogram import risk_histogram
from modicum.risk.charts.ranges import risk_ranges
from modicum.risk.selection.thresholds import Statistic
from modicum.risk.study.rounding import at_least, at_most, near
from modicum.risk.study.study import (
    CONTROLLER_ONLY,
    STUDY_ONLY,
    Reference,
    Study,
)
from modicum.risk.study.tables import (
    Table,
    groups_table,
    histogram_table,
    ranges_table,
    units_table,
)


def charts() -> Iterator[tuple[str, str, int]]:
    """Yield the kinds of charts that there are of each study."""
    for name, shown in STUDIES.items():
        yield name, "ranges", 0
        if shown.groups:
            yield name, "groups", 0
        for number in range(len(shown.seen.histograms) if shown.seen else 0):
            yield name, "histogram", number


def fresh(name: str, kind: str, number: int) -> Chart:
    shown = STUDIES[name]
    if kind == "ranges":
        return risk_ranges(shown)
    if kind == "groups":
        return risk_groups(shown)
    assert shown.seen is not None
    return risk_histogram(shown, shown.seen.histograms[number])


#: Charts are looked at only, so that each is drawn once for all tests.
chart_of = cache(fresh)


def ranges_of(name: str) -> list[Plot]:
    return plots(chart_of(name, "ranges", 0).svg)


EVERY = pytest.mark.parametrize(("name", "kind", "number"), [*charts()])
Pixels = tuple[float, ...]


def bars(plot: Plot) -> list[tuple[float, float, float]]:
    """Return the middle, the lower and the upper end of every bar."""
    return [((x + end) / 2, low, top) for x, top, end, low in plot.bars()]


def marks(plot: Plot, *, dots: bool) -> list[tuple[float, float]]:
    """Return where the dots are, or the circles around them."""
    found = [one for one in plot.shapes if one.tag.endswith("circle")]
    return centers([one for one in found if ("hollow" in one.get("class", "")) != dots])


def texts(chart: Chart) -> list[str]:
    return [one.text for one in labels(root_of(chart.svg))]


def assert_same(found: Sequence[Pixels], expected: Sequence[Pixels]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=SAME)


# --- all charts -----------------------------------------------------------------------


@EVERY
def test_every_chart_says_for_whom_it_is(name: str, kind: str, number: int) -> None:
    chart = chart_of(name, kind, number)
    notice = STUDIES[name].notice
    assert (notice is None) == name.startswith("public")
    if notice is None:
        assert "controller" not in chart.svg
    else:
        assert notice in texts(chart)
        assert chart.sentence.startswith(notice)


@EVERY
def test_every_axis_has_a_title_and_a_unit(name: str, kind: str, number: int) -> None:
    for plot in plots(chart_of(name, kind, number).svg):
        assert plot.title
        assert plot.across
        names = f"{plot.across} {plot.up}"
        assert any(unit in names for unit in ("people", "%", "share of the largest"))


@EVERY
def test_a_chart_is_told_to_who_cannot_see_it_and_tells_nothing_else(
    name: str, kind: str, number: int
) -> None:
    chart = chart_of(name, kind, number)
    for message in (str(Path.cwd()), str(Path.home()), socket.gethostname()):
        assert message not in chart.svg
    assert not re.search(r"\b20\d\d-\d\d-\d\d|\d\d:\d\d:\d\d", chart.svg)
    root = root_of(chart.svg)
    assert root.get("role") == "img"
    words = [visible(one) for one in (chart.title, chart.sentence)]
    assert [one.text for one in root[:2]] == words


@EVERY
def test_the_table_of_a_chart_has_the_numbers_of_the_study(
    name: str, kind: str, number: int
) -> None:
    shown = STUDIES[name]
    if kind == "histogram":
        assert shown.seen is not None
        table = histogram_table(shown, shown.seen.histograms[number])
    else:
        table = groups_table(shown) if kind == "groups" else ranges_table(shown)
    chart = chart_of(name, kind, number)
    assert chart.title == table.caption
    assert chart.table == (table.titles, table.rows)


@pytest.mark.parametrize(
    "of",
    [("sixty", "ranges", 0), ("six groups", "groups", 0), ("sum", "histogram", 1)],
)
def test_the_same_study_gives_the_same_bytes(
    of: tuple[str, str, int], tmp_path: Path
) -> None:
    for name in ("1.svg", "2.svg"):
        save(fresh(*of), tmp_path / name)
    one, other = (tmp_path / f"{number}.svg" for number in (1, 2))
    assert one.read_bytes() == other.read_bytes()


@EVERY
def test_nothing_lies_on_top_of_anything_else(
    name: str, kind: str, number: int
) -> None:
    check_room(chart_of(name, kind, number).svg)


@pytest.mark.parametrize("text", ["units of the answer", "n" * 90])
def test_long_names_have_room(text: str) -> None:
    shown = STUDIES["six groups"]
    query, reference = replace(shown.query, unit=text), Reference(7.0, text)
    shown = replace(shown, query=query, reference=reference)
    for chart in (risk_ranges(shown), risk_ranges(replace(shown, reference=None))):
        check_room(chart.svg)
    assert shown.seen is not None
    for one in shown.seen.histograms:
        check_room(risk_histogram(shown, one).svg)


# --- the range plot -------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_bars_go_from_the_least_to_the_greatest(name: str) -> None:
    shown = STUDIES[name]
    names = [brief(one.epsilon) for one in shown.candidates]
    alike = ranges_of(name)[0]
    there = [
        (alike.x.place(place, names), one.rdr)
        for place, one in enumerate(shown.candidates)
        if one.rdr is not None
    ]
    y = alike.y.pixel
    assert_same(bars(alike), [(x, y(one.ratio), y(1)) for x, one in there])
    for which, dots in (("median", False), ("p99", True)):
        values = [(x, one, getattr(one, which)) for x, one in there]
        wanted = [(x, y(one.part(at))) for x, one, at in values if at is not None]
        assert_same(marks(alike, dots=dots), wanted)


@pytest.mark.parametrize("name", STUDIES)
def test_half_widths_are_where_they_are_or_told(name: str) -> None:
    shown = STUDIES[name]
    names = [brief(one.epsilon) for one in shown.candidates]
    error = ranges_of(name)[1]
    unit = 1.0 if shown.reference is None else abs(shown.reference.value) / 100
    widths = [one.half_width / unit for one in shown.candidates]
    drawn = [one for one in widths if one < 1e250]
    assert (len(drawn) < len(widths)) == (name == "extreme")
    points = [
        (error.x.place(at, names), error.y.pixel(width))
        for at, width in enumerate(widths)
        if width < 1e250
    ]
    squares = [sides(one) for one in error.kind("mark")]
    assert_same([((x + end) / 2, (y + low) / 2) for x, y, end, low in squares], points)
    for line in error.kind("line"):
        assert_same(corners(line), points)
    for at, width in enumerate(widths):
        if width >= 1e250:
            x = error.x.place(at, names)
            (text,) = (
                one.text
                for one in labels(root_of(chart_of(name, "ranges", 0).svg))
                if one.text == near(width) and abs(one.x - 4 - x) < SAME
            )
            assert text


def test_what_was_asked_for_is_a_line() -> None:
    for name in ("count", "sixty", "public"):
        alike = ranges_of(name)[0]
        (line,) = alike.kind("target")
        y = alike.y.pixel(0.5)
        assert_same(corners(line), [(alike.left, y), (alike.right, y)])
        entries = legend_of(root_of(chart_of(name, "ranges", 0).svg))
        (sample,) = (one for one, text in entries if text == "target: at least 0.5")
        assert sample.get("stroke-dasharray") == line.get("stroke-dasharray")
    for shown in (STUDIES["two groups"], replace(STUDIES["count"], wanted=None)):
        assert plots(risk_ranges(shown).svg)[0].kind("target") == []


@pytest.mark.parametrize("name", STUDIES)
def test_the_chosen_epsilon_is_marked_and_named(name: str) -> None:
    shown = STUDIES[name]
    found = ranges_of(name)
    names = [brief(one.epsilon) for one in shown.candidates]
    if shown.chosen is None:
        assert not any(plot.kind("chosen") for plot in found)
        assert shown.choice.epsilon is None
        assert "no epsilon was chosen" in found[0].title
        return
    for plot in found:
        (band,) = plot.kind("chosen")
        left, top, right, bottom = sides(band)
        at = shown.candidates.index(shown.chosen)
        assert (left + right) / 2 == pytest.approx(plot.x.place(at, names), abs=SAME)
        assert (top, bottom) == pytest.approx((plot.top, plot.bottom), abs=SAME)
    chosen = f"chosen epsilon: {brief(shown.chosen.epsilon)}"
    assert found[0].title.endswith(chosen)
    sentence = chart_of(name, "ranges", 0).sentence
    assert chosen in sentence
    assert at_most(shown.chosen.half_width) in sentence


def test_a_chosen_epsilon_that_is_not_shown() -> None:
    shown = replace(STUDIES["count"], candidates=STUDIES["count"].candidates[:2])
    title = plots(risk_ranges(shown).svg)[0].title
    assert title.endswith("chosen epsilon: 1, which is not shown")


def test_every_number_below_an_axis_belongs_to_its_bar() -> None:
    for name in ("sixty", "sum", "count"):
        shown = STUDIES[name]
        names = [brief(one.epsilon) for one in shown.candidates]
        alike, error = ranges_of(name)
        assert len(alike.x.ticks) >= 4
        assert alike.x == error.x
        middles = {name: x for name, (x, _, _) in zip(names, bars(alike), strict=True)}
        for x, text in alike.x.ticks:
            assert x == pytest.approx(middles[text], abs=SAME)


def test_nobody_and_nothing_is_said_in_words() -> None:
    message = texts(risk_ranges(STUDIES["nobody"]))
    assert "the table has no people" in message
    assert "the table has no people" in texts(risk_groups(STUDIES["nobody"]))
    assert (
        texts(risk_ranges(STUDIES["public, no candidates"])).count(
            "there are no candidates"
        )
        == 2
    )
    seen = STUDIES["nobody"].seen
    assert seen is not None
    empty = risk_histogram(STUDIES["nobody"], seen.histograms[0])
    assert "the table has no people" in texts(empty)


def test_a_chart_of_a_choice_that_makes_no_promise() -> None:
    advice = STUDIES["count"].choice
    shown = replace(STUDIES["public"], choice=replace(advice, rows=()))
    assert STUDY_ONLY in texts(risk_ranges(shown))


# --- groups ---------------------------------------------------------------------------


def groups_of(name: str) -> Plot:
    (plot,) = plots(chart_of(name, "groups", 0).svg)
    return plot


@pytest.mark.parametrize("name", [name for name, one in STUDIES.items() if one.groups])
def test_a_bar_for_each_group_at_each_epsilon_that_is_shown(name: str) -> None:
    shown, plot = STUDIES[name], groups_of(name)
    some = shown_candidates(shown)
    names = [brief(one.epsilon) for one in some]
    slot = plot.x.place(1, names) - plot.x.place(0, names)
    width = 0.84 / len(shown.groups)
    there = [
        (plot.x.place(at, names) + slot * (width * (number + 0.5) - 0.42), own, one.rdr)
        for number in range(len(shown.groups))
        for at, one in enumerate(some)
        if one.rdr is not None and (own := one.groups[number]) is not None
    ]
    y = plot.y.pixel
    expected = [
        (x, y(all_.part(own.least)), y(all_.part(own.greatest)))
        for x, own, all_ in there
    ]
    assert_same(bars(plot), expected)
    for which, dots in (("median", False), ("p99", True)):
        wanted = [(x, y(all_.part(getattr(own, which)))) for x, own, all_ in there]
        assert_same(marks(plot, dots=dots), wanted)


def test_what_was_asked_of_groups_is_a_line_for_each_epsilon() -> None:
    statistics: list[tuple[Statistic, str]] = [("p99", "p99"), ("max", "greatest")]
    for statistic, which in (*statistics, ("median", "median")):
        usual = STUDIES["two groups"]
        assert usual.wanted is not None
        shown = replace(usual, wanted=replace(usual.wanted, statistic=statistic))
        (plot,) = plots(risk_groups(shown).svg)
        lines = plot.kind("target")
        for (x, _), one, line in zip(
            plot.x.ticks, shown.candidates, lines, strict=True
        ):
            assert one.rdr is not None
            largest = max(getattr(own, which) for own in one.groups)
            y = plot.y.pixel(float(TAU) * largest / one.rdr.greatest)
            (start, high), (end, low) = corners(line)
            assert (high, low) == pytest.approx((y, y), abs=SAME)
            assert (start + end) / 2 == pytest.approx(x, abs=SAME)
    assert groups_of("one group").kind("target") == []


def test_the_legend_looks_like_the_bars_of_each_group() -> None:
    plot = groups_of("six groups")
    entries = legend_of(root_of(chart_of("six groups", "groups", 0).svg))[:6]
    looks = [(one.get("class"), one.get("fill")) for one, _ in entries]
    assert len({kind for kind, _ in looks}) == len({fill for _, fill in looks}) == 6
    # At each epsilon, the groups stand in the order of the legend.
    every = sorted(plot.kind("bar"), key=lambda one: sides(one)[0])
    found = [(one.get("class"), one.get("fill")) for one in every]
    assert found == looks * len(plot.x.ticks)


def test_names_of_groups_are_drawn_as_they_are() -> None:
    """Neither mathematics, nor markup, nor a name to be left out."""
    chart = risk_groups(STUDIES["six groups"])
    message = [name for _, name in legend_of(root_of(chart.svg))]
    shown = STUDIES["six groups"].groups
    assert message[0] == f"_old: {shown[0].people} people"
    assert message[1] == f"$x$: {shown[1].people} people"
    assert message[2].startswith("<script>alert('x')</s…")
    assert message[3] == f"a b\\x1b[2J: {shown[3].people} people"
    assert message[4] == f"{'n' * 21}…{'n' * 11}: {shown[4].people} people"
    assert "<script>" not in chart.svg
    assert "&lt;script&gt;" in chart.svg
    none = risk_groups(STUDIES["empty group"])
    assert [name for _, name in legend_of(root_of(none.svg))][:2] == [
        "some: 9 people",
        "none: nobody",
    ]


def test_names_in_other_scripts(tmp_path: Path) -> None:
    name = "\N{HIRAGANA LETTER A}"
    shown = study(COUNTED, groups={name: [1], "b": [2]})
    save(risk_groups(shown), tmp_path / "groups.svg")
    assert f">{name}: 1 person<" in (tmp_path / "groups.svg").read_text("utf-8")


def test_of_many_epsilons_some_are_shown_and_the_chosen_one() -> None:
    shown = STUDIES["six groups"]
    some = shown_candidates(shown)
    assert 5 <= len(some) <= 9 < len(shown.candidates)
    assert some == sorted(some, key=lambda one: one.epsilon)
    assert shown.chosen in some
    assert some[0] is shown.candidates[0]
    plot = groups_of("six groups")
    assert plot.across == f"epsilon; {len(some)} of 37, all in the table"
    assert shown_candidates(STUDIES["two groups"]) == [
        *STUDIES["two groups"].candidates
    ]


@pytest.mark.parametrize("many", [0, 7])
def test_no_groups_and_too_many(many: int) -> None:
    groups = {f"g{n}": [n] for n in range(many)}
    with pytest.raises(InputError, match=f"there are {many} groups") as caught:
        risk_groups(study(COUNTED, groups=groups))
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


# --- histograms -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, one in STUDIES.items() if one.seen])
def test_a_bar_for_each_bin(name: str) -> None:
    seen = STUDIES[name].seen
    assert seen is not None
    for number, shown in enumerate(seen.histograms):
        chart = chart_of(name, "histogram", number)
        (plot,) = plots(chart.svg)
        if not shown.bins:
            assert plot.bars() == []
            continue
        one = plot.bottom - plot.y.pixel(1)
        assert one > 5  # One person is a bar, too.
        found = plot.bars("series-5")
        heights = [plot.y.pixel(one.people) for one in shown.bins]
        assert_same(
            [(top, low) for _, top, _, low in found],
            [(y, plot.bottom) for y in heights],
        )
        if shown.bins[0].low == shown.bins[0].high:
            message = near if shown.quantity == "rdr" else at_most
            names = [message(one.low) for one in shown.bins]
            assert plot.x.texts == names
            middles = [((x + end) / 2,) for x, _, end, _ in found]
            assert_same(middles, [(x,) for x, _ in plot.x.ticks])
            assert {f"{one.people:,}" for one in shown.bins} <= {*texts(chart)}
        else:
            edges = [
                (plot.x.pixel(one.low), plot.x.pixel(one.high)) for one in shown.bins
            ]
            assert_same([(x, end) for x, _, end, _ in found], edges)


def test_histograms_say_what_is_counted() -> None:
    for name, loss in (("sum", "own epsilon"), ("sixty", "own mu")):
        seen = STUDIES[name].seen
        assert seen is not None
        rdr, own = (
            plots(risk_histogram(STUDIES[name], one).svg)[0] for one in seen.histograms
        )
        assert rdr.across == "RDR, in people"
        assert own.across == loss


# --- the table twin -------------------------------------------------------------------


def column(table: Table, title: str) -> list[str]:
    (place,) = [at for at, one in enumerate(table.titles) if one.startswith(title)]
    return [row[place] for row in table.rows]


@pytest.mark.parametrize("name", STUDIES)
def test_the_table_of_ranges_has_all_candidates(name: str) -> None:
    shown = STUDIES[name]
    table = ranges_table(shown)
    for one, least, largest in zip(
        *(shown.candidates, column(table, "Smallest"), column(table, "Largest RDR")),
        strict=True,
    ):
        if one.rdr is None:
            assert (least, largest) == ("-", "nobody")
        else:
            assert (least, largest) == (at_least(one.rdr.ratio), near(one.rdr.greatest))
    for title, which in (("Median", "median"), ("99 %", "p99")):
        if shown.seen is None:
            assert not any(one.startswith(title) for one in table.titles)
            continue
        assert column(table, title) == [
            "-" if one.rdr is None else at_least(one.rdr.part(getattr(one.rdr, which)))
            for one in shown.candidates
        ]
    widths = column(table, "95 %")
    assert widths == [at_most(one.half_width) for one in shown.candidates]
    chosen = [one for one in column(table, "Epsilon") if one.endswith(" (chosen)")]
    assert len(chosen) == (shown.chosen is not None)
    assert table.notice == shown.notice
    passes = {row.epsilon: row.passes for row in shown.choice.rows}
    words = {True: "yes", False: "no", None: "not evaluated"}
    for one, cell in zip(shown.candidates, column(table, "Meets"), strict=True):
        assert cell == words[passes[one.epsilon]]


def test_half_widths_as_a_part_of_an_answer() -> None:
    shown = STUDIES["sixty"]
    cells = column(ranges_table(shown), "Also in % of that of 2025")
    assert cells == [at_most(one.half_width / 200) for one in shown.candidates]


@pytest.mark.parametrize("name", [name for name, one in STUDIES.items() if one.groups])
def test_the_table_of_groups_has_all_candidates(name: str) -> None:
    shown = STUDIES[name]
    rows = iter(groups_table(shown).rows)
    for one in shown.candidates:
        for group, own in zip(shown.groups, one.groups, strict=True):
            row = next(rows)
            assert row[:3] == (group.name, brief(one.epsilon), f"{group.people:,}")
            if own is None or one.rdr is None:
                assert row[3:] == ("nobody", "-", "-", "-")
                continue
            values = (own.least, own.median, own.p99, own.greatest)
            assert row[3:] == tuple(
                at_least(one.rdr.part(v)) for v in values if v is not None
            )
    assert next(rows, None) is None


def test_the_table_in_units_rounds_losses_up() -> None:
    for name in ("sum", "sixty", "extreme"):
        shown = STUDIES[name]
        table = units_table(shown)
        for row, one in zip(table.rows, shown.candidates, strict=True):
            assert one.rdr is not None
            assert one.losses is not None
            rdr = (one.rdr.least, one.rdr.median, one.rdr.p99, one.rdr.greatest)
            own = (one.losses.median, one.losses.greatest)
            assert row == (
                brief(one.epsilon),
                *(near(value) for value in rdr if value is not None),
                *(at_most(value) for value in own if value is not None),
            )
    assert units_table(STUDIES["nobody"]).rows[0] == ("0.1", "nobody", *"-----")
    assert units_table(STUDIES["public"]).titles == (
        "Epsilon",
        "Smallest RDR, people",
        "Largest",
    )


def test_the_table_of_a_histogram_has_its_bins() -> None:
    for name in ("sum", "count", "nobody"):
        seen = STUDIES[name].seen
        assert seen is not None
        for shown, message in zip(seen.histograms, (near, at_most), strict=True):
            assert histogram_table(STUDIES[name], shown).rows == tuple(
                (message(one.low), message(one.high), f"{one.people:,}")
                for one in shown.bins
            )


def tables(shown: Study) -> Iterator[Table]:
    yield from (ranges_table(shown), units_table(shown), groups_table(shown))
    for one in shown.seen.histograms if shown.seen else ():
        yield histogram_table(shown, one)


@pytest.mark.parametrize("name", STUDIES)
def test_a_table_is_text_in_columns(name: str) -> None:
    for table in tables(STUDIES[name]):
        lines = table.text().splitlines()
        assert all(line.isprintable() for line in lines)
        if STUDIES[name].seen is not None:
            assert lines.pop(0) == CONTROLLER_ONLY
        assert lines.pop(0) == table.caption
        assert len(lines) == 1 + len(table.rows)
        assert len({len(line) for line in lines}) == 1
        for row, line in zip(table.rows, lines[1:], strict=True):
            assert all(one.strip() in line for one in row if one.isprintable())
        for row in table.rows:
            assert len(row) == len(table.titles)
