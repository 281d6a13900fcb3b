"""`mo.risk.rdr`: what is public, what is taken from rows, and what may be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import modicum as mo
from modicum.core.errors import Code, InputError, UsageError
from modicum.risk.choice import Claim
from modicum.risk.measurement import Risk, choose_publicly, rdr

ROWS = [
    {"user": n % 10, "town": "ab"[n % 2], "cost": float(n % 7), "age": 20 + n % 60}
    for n in range(100)
]
TABLE = pa.Table.from_pylist(ROWS)


class Draws:
    """Draws that are known beforehand."""

    def __init__(self, values: Sequence[int] = (0,) * 99) -> None:
        self.left = list(values)
        self.scales: list[Fraction] = []

    def laplace(self, scale: Fraction) -> int:
        self.scales.append(scale)
        return self.left.pop(0)


class Frame:
    """What frames of pandas and Polars have in common."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def counted(**more: Any) -> Risk:
    return rdr(TABLE, "SELECT COUNT(*) FROM t WHERE age > 70", **more)


def test_one_patient_of_many_has_the_ratio_of_the_paper() -> None:
    table = pa.table({"disease": ["X", "", "", ""]})
    risk = mo.risk.rdr(table, mo.count(where="disease = 'X'"), epsilons=[0.1, 1])
    assert [row.ratio for row in risk.rows()] == pytest.approx([10 / 11, 0.5])


# --- where the data is ----------------------------------------------------------------


def test_all_kinds_of_data_say_the_same(tmp_path: Path) -> None:
    import duckdb

    pq.write_table(TABLE, tmp_path / "t.parquet")
    pa.csv.write_csv(TABLE, tmp_path / "t.csv")
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.register("rows_of_t", TABLE)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows_of_t")
        relation = duckdb.connect().from_arrow(TABLE)
        kinds: list[object] = [
            TABLE,
            tmp_path / "t.parquet",
            str(tmp_path / "t.csv"),
            Frame(),
            relation,
            {"t": TABLE},
        ]
        sql = "SELECT town, AVG(cost) FROM t GROUP BY town"
        result = [
            rdr(kind, sql, unit="user", sensitivity=5, dimensions=2).to_dict()
            for kind in kinds
        ]
    result.append(
        rdr(
            f"{tmp_path}/t.duckdb::t", sql, unit="user", sensitivity=5, dimensions=2
        ).to_dict()
    )
    for other in result[1:]:
        assert other == result[0]


@pytest.mark.parametrize("data", [3, object(), b"x"])
def test_what_is_no_table_is_refused(data: object) -> None:
    with pytest.raises((InputError, UsageError)) as caught:
        rdr(data, "SELECT COUNT(*) FROM t")
    assert caught.value.problems[0].help


def test_tables_are_joined_on_the_person() -> None:
    people = pa.table({"user": [1, 2, 77], "kind": ["a", "b", "c"]})
    risk = rdr(
        {"t": TABLE, "p": people},
        "SELECT kind, COUNT(*) FROM t JOIN p USING (user) GROUP BY kind",
        unit="user",
        rows_max=10,
        dimensions=3,
    )
    assert risk.people == 11  # Who has rows in only one of them is at risk, too.
    assert risk.indicator.distances.greatest == 10


# --- what is public -------------------------------------------------------------------


def test_a_count_of_rows_is_public() -> None:
    risk = counted()
    assert risk.private == ()
    assert risk.noise.sensitivity == 1


@pytest.mark.parametrize(
    ("sql", "more", "words"),
    [
        ("SELECT SUM(cost) FROM t", {}, ["sensitivity"]),
        ("SELECT town, COUNT(*) FROM t GROUP BY town", {}, ["number of values"]),
        ("SELECT COUNT(*) FROM t", {"mechanism": "gaussian"}, ["delta"]),
        (
            "SELECT town, SUM(cost) FROM t GROUP BY town",
            {"mechanism": "gaussian"},
            ["sensitivity", "number of values", "delta"],
        ),
    ],
)
def test_what_is_taken_from_rows_is_named_and_never_released(
    sql: str, more: dict[str, Any], words: list[str]
) -> None:
    risk = rdr(TABLE, sql, **more)
    assert len(risk.private) == len(words)
    for word, fact in zip(words, risk.private, strict=True):
        assert word in fact
    assert risk.choose(0.5, choice="as-published").claim is Claim.ADVICE
    for choice in ("data-independent", "private-selection"):
        with pytest.raises(InputError, match="cannot be released") as caught:
            risk.choose(0.5, choice=choice, allowance=9, eps_select=1, draws=Draws())
        assert caught.value.problems[0].code is Code.NOT_BOUNDED


def test_what_is_given_is_public() -> None:
    risk = rdr(
        TABLE,
        "SELECT town, SUM(cost) FROM t GROUP BY town",
        mechanism="gaussian",
        bounds=(0, 5),
        dimensions=2,
        delta="1e-6",
    )
    assert risk.private == ()
    assert risk.noise.sensitivity == 5
    choice = risk.choose(0.5)
    assert choice.claim is Claim.DP
    assert choice.epsilon is not None


def test_values_outside_of_bounds_count_as_the_nearer_one() -> None:
    near = rdr(TABLE, "SELECT SUM(cost) FROM t", bounds={"cost": (1, 4)})
    assert near.indicator.distances.values.tolist() == [1, 2, 3, 4]
    assert near.losses(1).greatest == pytest.approx(1)


def test_a_sum_needs_bounds_where_persons_have_several_rows() -> None:
    with pytest.raises(InputError, match="have no bound") as caught:
        rdr(TABLE, "SELECT SUM(cost) FROM t", unit="user")
    assert "bounds" in caught.value.problems[0].help


@pytest.mark.spec("RSK-13")
@pytest.mark.parametrize(
    ("sql", "dimensions"),
    [
        ("SELECT town, COUNT(*) FROM t GROUP BY town", 2),
        ("SELECT town, COUNT(*), SUM(cost) FROM t GROUP BY town", 4),
        ("SELECT town, COUNT(*) FROM t WHERE cost > 99 GROUP BY town", 0),
        ("SELECT town, COUNT(*) FROM t JOIN p USING (user) GROUP BY town", 0),
        ("SELECT COUNT(*), SUM(cost) FROM t", 2),
        ("SELECT town, COUNT(*) * 1 FROM t GROUP BY town", 2),
    ],
)
def test_groups_of_nobody_are_in_the_answer(sql: str, dimensions: int) -> None:
    table = TABLE.set_column(0, "user", pa.nulls(100, pa.int64()))
    people = pa.table({"user": pa.nulls(3, pa.int64())})
    risk = rdr({"t": table, "p": people}, sql, unit="user", sensitivity=1)
    assert risk.people == 0
    assert risk.influence.dimensions == dimensions


# --- what may be chosen ---------------------------------------------------------------


@pytest.mark.spec("RSK-5")
def test_the_default_is_the_same_for_all_tables() -> None:
    fewer = TABLE.slice(0, 3)
    for tau in (0.9, 0.5, 0.1):
        choices = [
            rdr(table, "SELECT COUNT(*) FROM t WHERE age > 70").choose(tau).to_dict()
            for table in (TABLE, fewer, TABLE.slice(0, 0))
        ]
        assert choices[0] == choices[1] == choices[2]


@pytest.mark.spec("RSK-5")
def test_the_default_reads_no_row(tmp_path: Path) -> None:
    from modicum.engines.duckdb_engine import DuckdbEngine

    def fetched(*_: object) -> None:
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckdbEngine, "_fetch", fetched)
        patch.setattr(DuckdbEngine, "_select", fetched)
        found = choose_publicly(TABLE, "SELECT COUNT(*) FROM t WHERE age > 70", 0.5)
    assert found.to_dict() == counted().choose(0.5).to_dict()


@pytest.mark.parametrize(
    ("sql", "more", "word"),
    [
        ("SELECT SUM(cost) FROM t", {}, "bounds"),
        ("SELECT town, COUNT(*) FROM t GROUP BY town", {}, "dimensions"),
        ("SELECT COUNT(*) FROM t", {"mechanism": "gaussian"}, "delta"),
        ("SELECT SUM(cost) / 2 FROM t", {"sensitivity": 3}, "dimensions"),
    ],
)
def test_the_default_says_what_it_has_to_know(
    sql: str, more: dict[str, Any], word: str
) -> None:
    with pytest.raises(InputError) as caught:
        choose_publicly(TABLE, sql, 0.5, **more)
    (problem,) = caught.value.problems
    assert word in problem.message + problem.help


def test_a_private_selection_draws_from_what_is_given() -> None:
    draws = Draws()
    found = counted().choose(
        0.5, choice="private-selection", allowance=5, eps_select=2, draws=draws
    )
    assert found.claim is Claim.DP
    assert found.charge is not None
    assert found.charge.selection is not None
    assert found.charge.selection.eps == 2
    # 9 are counted, and stand out above 1.
    assert found.epsilon == 1
    assert len(draws.scales) > 1


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"choice": "private-selection"}, "allowance"),
        ({"choice": "private-selection", "allowance": 3}, "eps_select"),
        ({"choice": "best"}, "choice"),
        ({"choice": "find-and-release"}, "max_variance"),
        ({"choice": "find-and-release", "max_variance": 1, "people": 9}, "eps_select"),
        ({"max_variance": 1}, "does not take `max_variance=`"),
        ({"between": ("a", "b")}, "does not take `between=`"),
    ],
)
def test_what_contradicts_is_refused(more: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word) as caught:
        counted().choose(0.5, **more)
    assert caught.value.problems[0].help


def test_a_preference_is_needed() -> None:
    with pytest.raises(InputError):
        counted().choose(choice="as-published")
    with pytest.raises(InputError):
        counted().choose()


class FrameOfPandas(Frame):
    __module__ = "pandas.core.frame"


@pytest.mark.parametrize("form", ["csv", "pandas", "arrow"])
def test_types_that_rows_decide_bar_a_private_selection(
    tmp_path: Path, form: str
) -> None:
    pa.csv.write_csv(TABLE, tmp_path / "t.csv")
    rows = {"csv": tmp_path / "t.csv", "pandas": FrameOfPandas(), "arrow": TABLE}
    risk = rdr(rows[form], "SELECT COUNT(*) FROM t")
    assert risk.choose(0.5).claim is Claim.DP  # It reads no row.
    more: dict[str, Any] = {"allowance": 9, "eps_select": 1, "draws": Draws()}
    if form == "arrow":
        assert risk.choose(0.5, choice="private-selection", **more).claim is Claim.DP
        return
    with pytest.raises(InputError, match="types"):
        risk.choose(0.5, choice="private-selection", **more)


@pytest.mark.spec("RSK-9")
def test_variances_are_found_privately_or_as_published() -> None:
    more: dict[str, Any] = {"max_variance": "0.01", "people": 100, "eps_select": 9}
    proven = counted().choose(choice="find-and-release", draws=Draws(), **more)
    study = counted().choose(
        choice="find-and-release-as-published", draws=Draws(), **more
    )
    assert proven.claim is Claim.DP
    assert study.claim is Claim.EXPERIMENTAL
    # Without noise: 9 of 100 people differ from the others.
    variance = 0.09 * 0.91
    wanted = max(
        one for one in counted().candidates if variance / (1 + 1 / one) ** 2 <= 0.01
    )
    assert proven.epsilon == study.epsilon == wanted


@pytest.mark.spec("RSK-7")
def test_averages_are_not_chosen_privately_and_nothing_is_drawn() -> None:
    risk = rdr(TABLE, "SELECT AVG(cost) FROM t", bounds=(0, 7))
    draws = Draws()
    found = risk.choose(
        0.5, choice="private-selection", allowance=9, eps_select=1, draws=draws
    )
    assert found.epsilon is None
    assert draws.scales == []


# --- groups, pictures, words ----------------------------------------------------------


def test_groups_are_compared_by_name_or_condition() -> None:
    named = counted(groups={"old": "age > 60", "young": "age <= 60"})
    plain = counted(groups=["age > 60", "age <= 60"])
    assert named.groups == ("old", "young")
    assert plain.groups == ("age > 60", "age <= 60")
    one = named.choose(0.9, choice="as-published", between=("old", "young"))
    other = plain.choose(0.9, choice="as-published", between=plain.groups)
    assert one.epsilon == other.epsilon


@pytest.mark.parametrize("name", ["r.html", "r.svg"])
def test_a_report_or_picture_is_written(name: str, tmp_path: Path) -> None:
    risk = counted(epsilons=[0.5, 1, 2])
    risk.save(tmp_path / name, risk.choose(0.5, choice="as-published"), tau=0.5)
    written = (tmp_path / name).read_bytes()
    assert len(written) > 1000
    assert b"For the controller of the data only" in written
    assert str(tmp_path).encode() not in written


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        counted(epsilons=[1]).save(tmp_path / "no" / "r.html")


def test_what_is_shown_has_no_numbers_by_accident() -> None:
    risk = counted()
    assert "controller only" in repr(risk)
    assert "not for release" in repr(risk.choose(0.5, choice="as-published"))
    assert "controller" in risk._repr_html_()


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"mechanism": "cauchy"}, "mechanism"),
        ({"epsilons": []}, "candidates"),
        ({"epsilons": [0]}, "0"),
        ({"dimensions": 0}, "coordinates"),
        ({"sensitivity": -1}, "sensitivity"),
        ({"mechanism": "gaussian", "delta": 2}, "delta"),
        ({"bounds": (3, 1)}, "bounds"),
        ({"unit": "users"}, "users"),
        ({"groups": ["agee > 3"]}, "agee"),
    ],
)
def test_mistakes_are_told_with_a_remedy(more: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word) as caught:
        counted(**more)
    assert caught.value.problems[0].help


def test_infinite_answers_are_refused_without_a_number() -> None:
    table = pa.table({"x": [1.0, float("inf"), 7.25]})
    with pytest.raises(InputError) as caught:
        rdr(table, "SELECT AVG(x) FROM t", sensitivity=1)
    assert "7.25" not in str(caught.value)
