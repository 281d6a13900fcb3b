"""Plots: the same bytes every time, axes with units, mistakes with remedies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest

from modicum.core.errors import Code, InputError, ModicumError
from modicum.planner import Choice, Outlook, Rotation, Unlocking, look_ahead
from modicum.reports.charts import (
    accepted_by_size,
    budget_left,
    rotation_outlook,
    save,
    utility_by_round,
)
from modicum.reports.charts.canvas import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAN = float("nan")


def outlook(slack: str, active: int = 4) -> Outlook:
    choice = Choice(
        f"slack={slack}", Rotation(active, 6), Unlocking(active, Fraction(slack))
    )
    return look_ahead(choice, [700], rounds=14)


FIGURES: dict[str, Callable[[], Figure]] = {
    "one": lambda: rotation_outlook([outlook("0.5")]),
    "many": lambda: rotation_outlook([outlook("0"), outlook("0.5", 3), outlook("1")]),
    "utility": lambda: utility_by_round(
        {"dpk": [1, 2, 3], "fcfs": [1.5, 0, 2]}, spread={"dpk": [0.1, 0.2, 0.1]}
    ),
    "accepted": lambda: accepted_by_size(
        {"dpk": {"mice": 0.9, "hares": 0.5}, "fcfs": {"hares": 0.25, "mice": 1}}
    ),
    "left": lambda: budget_left([[1, 0.5, 0], [NAN, 1, 0.25]], ["AT", "CH"]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_axis_says_what_it_shows_in_which_unit(name: str) -> None:
    figure = FIGURES[name]()
    for axes in figure.axes:
        labels = [axes.get_xlabel(), axes.get_ylabel()]
        if axes.get_label() != "<colorbar>":
            assert axes.get_title(loc="left")
            assert all(labels)
        assert any(
            word in label
            for label in labels
            for word in ("%", "users, on average", "round", "segment")
        )


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_figure_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    save(FIGURES[name](), tmp_path / "1.svg")
    save(FIGURES[name](), tmp_path / "2.SVG")
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.SVG").read_bytes()
    text = (tmp_path / "1.svg").read_text()
    ElementTree.fromstring(text)
    assert "<dc:date>" not in text
    assert ">round<" in text or ">size of the request<" in text  # Text stays text.


def test_pixels_are_the_same_as_well(tmp_path: Path) -> None:
    for name in ("1.png", "2.png"):
        save(FIGURES["left"](), tmp_path / name)
    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()
    assert (tmp_path / "1.png").read_bytes().startswith(b"\x89PNG")


def test_another_process_draws_the_same_bytes(tmp_path: Path) -> None:
    script = (
        "from modicum.reports.charts import save, utility_by_round\n"
        "save(utility_by_round({'b': [1, 2], 'a': [2, 1]}), 'other.svg')\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    save(utility_by_round({"b": [1, 2], "a": [2, 1]}), tmp_path / "own.svg")
    assert (tmp_path / "own.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_settings_of_the_machine_do_not_matter(tmp_path: Path) -> None:
    import matplotlib as mpl

    save(FIGURES["accepted"](), tmp_path / "plain.svg")
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30}):
        save(FIGURES["accepted"](), tmp_path / "odd.svg")
        assert mpl.rcParams["font.size"] == 30
    assert (tmp_path / "odd.svg").read_bytes() == (tmp_path / "plain.svg").read_bytes()


# --- what is drawn --------------------------------------------------------------------


def test_the_outlook_is_drawn_as_it_is() -> None:
    shown = outlook("0.5")
    users, unlocked, available = rotation_outlook([shown]).axes
    for axes, expected in (
        (users, [float(one.users) for one in shown.rounds]),
        (unlocked, [0, 37.5, 75, 87.5, 100]),
        (available, [37.5, 37.5, 12.5, 12.5] * 3),
    ):
        assert np.array_equal(axes.lines[0].get_ydata(), expected)


def test_bars_belong_to_the_class_below_them() -> None:
    (axes,) = FIGURES["accepted"]().axes
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    places: dict[tuple[str, float], float] = {}
    for bar in axes.patches:
        middle = bar.get_x() + bar.get_width() / 2  # type: ignore[attr-defined]
        places[names[round(middle)], middle] = bar.get_height()  # type: ignore[attr-defined]
    assert sorted((name, height) for (name, _), height in places.items()) == [
        ("hares", 25),
        ("hares", 50),
        ("mice", 90),
        ("mice", 100),
    ]


def test_a_heat_map_names_some_of_many_segments() -> None:
    names = [f"s{n}" for n in range(95)]
    axes = budget_left([[0.5]] * 95, names, first_round=11).axes[0]
    shown = [tick.get_text() for tick in axes.get_yticklabels()]
    assert shown == names[::4]
    assert list(axes.get_yticks()) == list(range(0, 95, 4))
    assert axes.get_xlim() == (10.5, 11.5)


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda: utility_by_round({}),
        lambda: utility_by_round({"a": []}),
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
    ],
)
def test_numbers_that_do_not_go_together(draw: Any) -> None:
    with pytest.raises(InputError) as caught:
        draw()
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


def test_a_name_that_says_no_kind(tmp_path: Path) -> None:
    with pytest.raises(ModicumError) as caught:
        save(FIGURES["utility"](), tmp_path / "x.pdf")
    assert caught.value.code is Code.UNKNOWN_CHOICE
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ModicumError) as caught:
        save(FIGURES["utility"](), tmp_path / "no" / "x.svg")
    assert caught.value.code is Code.FILE_UNREADABLE


def test_without_matplotlib_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError) as caught, styled():
        pass
    assert caught.value.code is Code.NOT_SUPPORTED
    assert caught.value.problems[0].help == "pip install 'modicum[plots]'"
