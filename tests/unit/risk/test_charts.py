"""Pictures of risk: what is drawn is what the table says, and says for whom it is."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from samples.risk_studies import (
    COUNTED,
    HOSTILE,
    STUDIES,
    TAU,
    study,
)

from modicum.core.errors import Code, InputError
from modicum.core.rationals import brief
from modicum.reports.charts.canvas import drawn, save
from modicum.risk.charts.groups import risk_groups, shown_candidates
from modicum.risk.charts.histogram import risk_histogram
from modicum.risk.charts.ranges import risk_ranges
from modicum.risk.selection.thresholds import Statistic
from modicum.risk.study.rounding import at_least, at_most, near
from modicum.risk.study.study import (
    CONTROLLER_ONLY,
    STUDY_ONLY,
    Study,
)
from modicum.risk.study.tables import (
    Table,
    groups_table,
    histogram_table,
    ranges_table,
    units_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figures() -> Iterator[tuple[str, str, int]]:
    """Yield the kinds of pictures that there are of each study."""
    for name, shown in STUDIES.items():
        yield name, "ranges", 0
        if shown.groups:
            yield name, "groups", 0
        for number in range(len(shown.seen.histograms) if shown.seen else 0):
            yield name, "histogram", number


def fresh(name: str, kind: str, number: int) -> Figure:
    shown = STUDIES[name]
    if kind == "ranges":
        return risk_ranges(shown)
    if kind == "groups":
        return risk_groups(shown)
    assert shown.seen is not None
    return risk_histogram(shown, shown.seen.histograms[number])


#: Figures are looked at only, so that each is drawn once for all tests.
figure_of = cache(fresh)


@cache
def svg_of(name: str, kind: str, number: int) -> str:
    return drawn(figure_of(name, kind, number), ".svg").decode()


def ranges_of(name: str) -> Figure:
    return figure_of(name, "ranges", 0)


EVERY = pytest.mark.parametrize(("name", "kind", "number"), [*figures()])


def bars(axes: Axes) -> list[tuple[float, float, float]]:
    """Return the middle, the lower and the upper end of every bar."""
    found: list[Any] = [bar for one in axes.containers for bar in one]
    return [
        (b.get_x() + b.get_width() / 2, b.get_y(), b.get_y() + b.get_height())
        for b in found
    ]


def marks(axes: Axes, *, dots: bool) -> list[tuple[float, float]]:
    """Return where the dots are, or the circles around them."""
    lines = [
        line
        for line in axes.lines
        if line.get_marker() == "o" and (line.get_markerfacecolor() != "white") is dots
    ]
    return [
        (float(x), float(y))
        for line in lines
        for x, y in zip(*map(np.asarray, line.get_data()), strict=True)
    ]


def texts(figure: Figure) -> list[str]:
    from matplotlib.text import Text

    return [one.get_text() for one in figure.findobj(Text)]


def words_of(figure: Figure) -> str:
    """Return what is told to who cannot see a figure."""
    return str(figure.get_label())


# --- all pictures ---------------------------------------------------------------------


@EVERY
def test_every_picture_says_for_whom_it_is(name: str, kind: str, number: int) -> None:
    text = svg_of(name, kind, number)
    notice = STUDIES[name].notice
    assert (notice is None) == name.startswith("public")
    if notice is None:
        assert "controller" not in text
    else:
        assert f">{notice}<" in text
        assert words_of(figure_of(name, kind, number)).startswith(notice)


@EVERY
def test_every_axis_has_a_title_and_a_unit(name: str, kind: str, number: int) -> None:
    for axes in figure_of(name, kind, number).axes:
        assert axes.get_title(loc="left")
        assert axes.get_xlabel()
        text = f"{axes.get_xlabel()} {axes.get_ylabel()}"
        assert any(unit in text for unit in ("people", "%", "share of the largest"))


@EVERY
def test_a_picture_is_told_to_who_cannot_see_it_and_tells_nothing_else(
    name: str, kind: str, number: int
) -> None:
    text = svg_of(name, kind, number)
    for message in (
        "<dc:date>",
        str(Path.cwd()),
        str(Path.home()),
        socket.gethostname(),
    ):
        assert message not in text
    assert not re.search(r"\b20\d\d-\d\d-\d\d|\d\d:\d\d:\d\d", text)
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root[0].tag.endswith("title")
    assert root[0].text == words_of(figure_of(name, kind, number))


@pytest.mark.parametrize(
    "of",
    [("sixty", "ranges", 0), ("six groups", "groups", 0), ("sum", "histogram", 1)],
)
def test_the_same_study_gives_the_same_bytes(
    of: tuple[str, str, int], tmp_path: Path
) -> None:
    for name in ("1.svg", "2.svg", "1.png", "2.png"):
        save(fresh(*of), tmp_path / name)
    for kind in ("svg", "png"):
        one, other = (tmp_path / f"{number}.{kind}" for number in (1, 2))
        assert one.read_bytes() == other.read_bytes()
        assert str(tmp_path).encode() not in one.read_bytes()


@EVERY
def test_nothing_lies_on_top_of_anything_else(
    name: str, kind: str, number: int
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = figure_of(name, kind, number)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    width, height = canvas.get_width_height()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            boxes = [
                one.get_window_extent()
                for one in axis.get_ticklabels()
                if one.get_text() and one.get_visible()
            ]
            for one, following in pairwise(boxes):
                assert not one.overlaps(following), axes.get_title(loc="left")
        outer = [
            axes.get_tightbbox(),
            *(one.get_window_extent() for one in figure.legends),
        ]
        for box in outer:
            assert box is not None
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1


# --- the range plot -------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_bars_go_from_the_least_to_the_greatest(name: str) -> None:
    shown = STUDIES[name]
    there = [
        (place, one.rdr)
        for place, one in enumerate(shown.candidates)
        if one.rdr is not None
    ]
    alike = ranges_of(name).axes[0]
    expected = [(place, spread.ratio, 1.0) for place, spread in there]
    assert np.allclose(bars(alike), expected or np.empty((0,)), rtol=0, atol=1e-12)
    for which, dots in (("median", False), ("p99", True)):
        values = [(x, one, getattr(one, which)) for x, one in there]
        wanted = [(x, one.part(at)) for x, one, at in values if at is not None]
        assert marks(alike, dots=dots) == wanted


@pytest.mark.parametrize("name", STUDIES)
def test_half_widths_are_where_they_are_or_told(name: str) -> None:
    shown = STUDIES[name]
    error = ranges_of(name).axes[1]
    unit = 1.0 if shown.reference is None else abs(shown.reference.value) / 100
    expected = [one.half_width / unit for one in shown.candidates]
    points = {
        round(float(x)): float(y)
        for line in error.lines
        for x, y in zip(*map(np.asarray, line.get_data()), strict=True)
    }
    labels = {one.xy[0]: one.get_text() for one in error.texts if hasattr(one, "xy")}
    for place, width in enumerate(expected):
        if place in points:
            assert points[place] == width
            assert error.get_ylim()[0] < width < error.get_ylim()[1]
        else:
            assert labels[place] == near(width)
            assert name == "extreme"


def test_what_was_asked_for_is_a_line() -> None:
    for name in ("count", "sixty", "public"):
        dashed = [
            line
            for line in ranges_of(name).axes[0].lines
            if line.get_linestyle() == "--"
        ]
        assert [set(np.asarray(line.get_ydata())) for line in dashed] == [{0.5}]
        assert dashed[0].get_label() == "target: at least 0.5"
    for shown in (STUDIES["two groups"], replace(STUDIES["count"], wanted=None)):
        lines = risk_ranges(shown).axes[0].lines
        assert all(line.get_linestyle() != "--" for line in lines)


@pytest.mark.parametrize("name", STUDIES)
def test_the_chosen_epsilon_is_marked_and_named(name: str) -> None:
    shown = STUDIES[name]
    figure = ranges_of(name)
    title = figure.axes[0].get_title(loc="left")
    bands = [
        (patch.get_x(), patch.get_x() + patch.get_width())  # type: ignore[attr-defined]
        for axes in figure.axes
        for patch in axes.patches
        if patch not in [bar for one in axes.containers for bar in one]
    ]
    if shown.chosen is None:
        assert bands == []
        assert shown.choice.epsilon is None
        assert "no epsilon was chosen" in title
    else:
        at = shown.candidates.index(shown.chosen)
        assert bands == [(at - 0.5, at + 0.5)] * 2
        assert title.endswith(f"chosen epsilon: {brief(shown.chosen.epsilon)}")
        label = words_of(figure)
        assert f"chosen epsilon: {brief(shown.chosen.epsilon)}" in label
        assert at_most(shown.chosen.half_width) in label


def test_a_chosen_epsilon_that_is_not_shown() -> None:
    shown = replace(STUDIES["count"], candidates=STUDIES["count"].candidates[:2])
    title = risk_ranges(shown).axes[0].get_title(loc="left")
    assert title.endswith("chosen epsilon: 1, which is not shown")


def test_every_number_below_an_axis_belongs_to_its_bar() -> None:
    for name in ("sixty", "sum", "count"):
        shown = STUDIES[name]
        for axes in ranges_of(name).axes:
            places = [round(place) for place in axes.get_xticks()]
            names = [one.get_text() for one in axes.get_xticklabels()]
            assert names == [brief(shown.candidates[at].epsilon) for at in places]
            assert len(names) >= 4


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


def test_a_picture_of_a_choice_that_makes_no_promise() -> None:
    advice = STUDIES["count"].choice
    shown = replace(STUDIES["public"], choice=replace(advice, rows=()))
    assert STUDY_ONLY in texts(risk_ranges(shown))


# --- groups ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, one in STUDIES.items() if one.groups])
def test_a_bar_for_each_group_at_each_epsilon_that_is_shown(name: str) -> None:
    shown = STUDIES[name]
    (axes,) = figure_of(name, "groups", 0).axes
    some = shown_candidates(shown)
    expected = [
        (place, one.rdr.part(own.least), one.rdr.part(own.greatest))
        for number in range(len(shown.groups))
        for place, one in enumerate(some)
        if one.rdr is not None and (own := one.groups[number]) is not None
    ]
    found = [(round(x), low, high) for x, low, high in bars(axes)]
    assert np.allclose(found, expected or np.empty((0,)), rtol=0, atol=1e-12)
    # Those of one epsilon stand beside each other in the order of the groups.
    places = [x for x, _, _ in bars(axes)]
    assert len(set(places)) == len(places)
    for which, dots in (("median", False), ("p99", True)):
        wanted = sorted(
            one.rdr.part(getattr(own, which))
            for one in some
            for own in one.groups
            if own is not None and one.rdr is not None
        )
        assert sorted(y for _, y in marks(axes, dots=dots)) == pytest.approx(wanted)


def test_what_was_asked_of_groups_is_a_line_for_each_epsilon() -> None:
    statistics: list[tuple[Statistic, str]] = [("p99", "p99"), ("max", "greatest")]
    for statistic, which in (*statistics, ("median", "median")):
        usual = STUDIES["two groups"]
        assert usual.wanted is not None
        shown = replace(usual, wanted=replace(usual.wanted, statistic=statistic))
        (axes,) = risk_groups(shown).axes
        (lines,) = axes.collections
        segments = lines.get_segments()  # type: ignore[attr-defined]
        for place, (one, segment) in enumerate(
            zip(shown.candidates, segments, strict=True)
        ):
            assert one.rdr is not None
            largest = max(getattr(own, which) for own in one.groups)
            expected = float(TAU) * largest / one.rdr.greatest
            assert segment[:, 1] == pytest.approx([expected] * 2)
            assert round(segment[:, 0].mean(), 9) == place
    (axes,) = risk_groups(STUDIES["one group"]).axes
    assert len(axes.collections) == 0


def test_the_legend_looks_like_the_bars_of_each_group() -> None:
    figure = figure_of("six groups", "groups", 0)
    ((axes,), (legend,)) = (figure.axes, figure.legends)
    looks = []
    for bars_, patch in zip(axes.containers, legend.get_patches(), strict=True):
        first: Any = next(iter(bars_))
        looks.append((patch.get_facecolor(), patch.get_hatch()))
        assert looks[-1] == (first.get_facecolor(), first.get_hatch())
    assert len({color for color, _ in looks}) == len({hatch for _, hatch in looks}) == 6
    # At the first epsilon, the groups stand in the order of the legend.
    starts = [next(iter(bars_)).get_x() for bars_ in axes.containers]
    assert starts == sorted(starts)


def test_names_of_groups_are_drawn_as_they_are() -> None:
    """Neither mathematics, nor markup, nor a name to be left out."""
    figure = risk_groups(STUDIES["six groups"])
    (legend,) = figure.legends
    message = [one.get_text() for one in legend.get_texts()]
    shown = STUDIES["six groups"].groups
    assert message[0] == f"_old: {shown[0].people} people"
    assert message[1] == f"$x$: {shown[1].people} people"
    assert message[2].startswith(HOSTILE[:31])
    assert message[3] == f"a b\\x1b[2J: {shown[3].people} people"
    assert message[4] == f"{'n' * 31}...: {shown[4].people} people"
    text = drawn(figure, ".svg").decode()
    assert "<script>" not in text
    assert f">$x$: {shown[1].people} people<" in text
    assert "&lt;script&gt;" in text
    none = risk_groups(STUDIES["empty group"]).legends[0]
    assert [one.get_text() for one in none.get_texts()][:2] == [
        "some: 9 people",
        "none: nobody",
    ]


def test_names_that_the_font_lacks(tmp_path: Path) -> None:
    name = "\N{HIRAGANA LETTER A}"
    shown = study(COUNTED, groups={name: [1], "b": [2]})
    for kind in ("svg", "png"):
        save(risk_groups(shown), tmp_path / f"groups.{kind}")
    assert f">{name}: 1 person<" in (tmp_path / "groups.svg").read_text("utf-8")


def test_of_many_epsilons_some_are_shown_and_the_chosen_one() -> None:
    shown = STUDIES["six groups"]
    some = shown_candidates(shown)
    assert 5 <= len(some) <= 9 < len(shown.candidates)
    assert some == sorted(some, key=lambda one: one.epsilon)
    assert shown.chosen in some
    assert some[0] is shown.candidates[0]
    (axes,) = risk_groups(shown).axes
    assert axes.get_xlabel() == f"epsilon; {len(some)} of 37, all in the table"
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
        (axes,) = figure_of(name, "histogram", number).axes
        assert [high for _, _, high in bars(axes)] == [one.people for one in shown.bins]
        if not shown.bins:
            continue
        assert axes.get_yscale() == "log"
        assert axes.get_ylim()[0] < 1  # One person is a bar, too.
        if shown.bins[0].low == shown.bins[0].high:
            message = near if shown.quantity == "rdr" else at_most
            names = [one.get_text() for one in axes.get_xticklabels()]
            assert names == [message(one.low) for one in shown.bins]
            counts = [one.get_text() for one in axes.texts]
            assert counts == [f"{one.people:,}" for one in shown.bins]
        else:
            edges = [
                (bar.get_x(), bar.get_x() + bar.get_width())  # type: ignore[attr-defined]
                for bar in axes.patches
            ]
            assert np.allclose(edges, [(one.low, one.high) for one in shown.bins])


def test_histograms_say_what_is_counted() -> None:
    for name, loss in (("sum", "own epsilon"), ("sixty", "own mu")):
        seen = STUDIES[name].seen
        assert seen is not None
        rdr, own = (
            risk_histogram(STUDIES[name], one).axes[0] for one in seen.histograms
        )
        assert rdr.get_xlabel() == "RDR, in people"
        assert own.get_xlabel() == loss


# --- the table twin -------------------------------------------------------------------


def column(table: Table, title: str) -> list[str]:
    (place,) = [at for at, one in enumerate(table.titles) if one.startswith(title)]
    return [row[place] for row in table.rows]


@pytest.mark.parametrize("name", STUDIES)
def test_the_table_of_ranges_has_the_numbers_that_are_drawn(name: str) -> None:
    shown = STUDIES[name]
    table = ranges_table(shown)
    alike, _ = ranges_of(name).axes
    low = {round(x): low for x, low, _ in bars(alike)}
    cells = column(table, "Smallest")
    for place in range(len(shown.candidates)):
        if place in low:
            assert float(cells[place]) == pytest.approx(low[place], abs=2e-4)
            assert Fraction(cells[place]) <= Fraction(low[place]) + Fraction(1, 10**15)
        else:
            assert cells[place] == "-"
            assert column(table, "Largest RDR")[place] == "nobody"
    for title, dots in (("Median", False), ("99 %", True)):
        marked = dict(marks(alike, dots=dots))
        if shown.seen is None:
            assert not any(one.startswith(title) for one in table.titles)
        elif marked:
            assert column(table, title) == [
                at_least(marked[at]) for at in sorted(marked)
            ]
    widths = column(table, "95 %")
    assert widths == [at_most(one.half_width) for one in shown.candidates]
    chosen = [one for one in column(table, "Epsilon") if one.endswith(" (chosen)")]
    assert len(chosen) == (shown.chosen is not None)
    assert table.notice == shown.notice
    passes = {row.epsilon: row.passes for row in shown.choice.rows}
    for one, cell in zip(shown.candidates, column(table, "Meets"), strict=True):
        assert (
            cell
            == {True: "yes", False: "no", None: "not evaluated"}[passes[one.epsilon]]
        )


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


# --- without the extra ----------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda: risk_ranges(STUDIES["count"]),
        lambda: risk_groups(STUDIES["two groups"]),
        lambda: risk_histogram(STUDIES["sum"], STUDIES["sum"].seen.histograms[0]),  # type: ignore[union-attr]
    ],
)
def test_without_matplotlib_it_says_what_to_install(
    draw: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError) as caught:
        draw()
    assert caught.value.problems[0].help == "pip install 'modicum[plots]'"
