"""Slips in query and tables files: each is met where it is, with what is meant."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from samples import asked

from modicum.accounting.budgets import ApproxBudget
from modicum.accounting.calibration import meets
from modicum.accounting.mechanisms import declared_zcdp
from modicum.api.local.evaluation import price_release
from modicum.core.errors import Code, InputError, Problem
from modicum.ops.files.queries import load_query
from modicum.query.request_format import QUERY_KEYS

QUERY = """\
release: views
periods: 2026-10
query:
  tables: tables.yaml
  sql: SELECT page, COUNT(*) AS n FROM views GROUP BY page
  bounds: {user-day: 10}
  noise: gaussian
  loss: {user-day: {rho: 0.015}}
"""
UNDER = sorted({"tables", *QUERY_KEYS})
BESIDE = [
    "release", "periods", "where", "groups", "sampling", "purpose", "requester",
    "dataset", "audience", "utility", "evidence",
]  # fmt: skip
LABELED = asked.POLICY + "labels: {salt: {values: [a], default: a}}\n"


def problems(
    folder: Path, text: str, *, tables: str = asked.TABLES, policy: str = asked.POLICY
) -> tuple[Problem, ...]:
    """Return the mistakes in a query file, none if it is read."""
    (folder / "tables.yaml").write_text(tables)
    (folder / "q.yaml").write_text(text)
    try:
        load_query(folder / "q.yaml", asked.compiled(policy))
    except InputError as error:
        return error.problems
    return ()


def moved(key: str, *, up: bool) -> str:
    """Return the query file with a key on the wrong level, and on no other."""
    lines = [one for one in QUERY.splitlines() if not one.strip().startswith(f"{key}:")]
    return "\n".join([*lines, f"{'' if up else '  '}{key}: 1", ""])


def test_the_query_itself_is_read(tmp_path: Path) -> None:
    assert problems(tmp_path, QUERY) == ()


@pytest.mark.parametrize("key", UNDER)
def test_a_key_beside_the_query_is_sent_below_it(tmp_path: Path, key: str) -> None:
    (problem,) = problems(tmp_path, moved(key, up=True))
    assert problem.code is Code.UNKNOWN_KEY
    assert problem.message == f"`{key}` is next to `query`, and belongs under it"
    assert problem.help == f"indent `{key}` below  query:"
    assert problem.mark is not None
    assert problem.mark.source == f"{key}: 1"


@pytest.mark.parametrize("key", BESIDE)
def test_a_key_under_the_query_is_sent_beside_it(tmp_path: Path, key: str) -> None:
    (problem,) = problems(tmp_path, moved(key, up=False))
    assert problem.code is Code.UNKNOWN_KEY
    assert problem.message == f"`{key}` is under `query`, and belongs next to it"
    assert problem.help == f"write `{key}` without indentation"


def test_a_query_that_is_not_indented_at_all_is_told_of_each_key(
    tmp_path: Path,
) -> None:
    flat = QUERY.replace("query:\n", "").replace("\n  ", "\n")
    found = problems(tmp_path, flat)
    assert [one.message.split("`")[1] for one in found] == [
        "tables", "sql", "bounds", "noise", "loss",
    ]  # fmt: skip


def test_a_label_may_be_called_like_a_key_of_queries(tmp_path: Path) -> None:
    assert problems(tmp_path, QUERY + "salt: a\n", policy=LABELED) == ()
    (problem,) = problems(tmp_path, QUERY + "salt: a\n")
    assert "belongs under" in problem.message


@pytest.mark.parametrize(
    ("was", "written", "label"),
    [
        ("  bounds", "  bound", "bounds"),
        ("  sql", "  SQL", "sql"),
        ("query:", "qurey:", "query"),
        ("tables:", "table:", "tables"),
        ("noise:", "nosie:", "noise"),
        ("gaussian", "Gaussian", "gaussian"),
        ("gaussian", "gauss", "gaussian"),
        ("bounds: {user-day", "bounds: {user_day", "user-day"),
        ("loss: {user-day", "loss: {userday", "user-day"),
        ("{rho:", "{Rho:", "rho"),
        ("{rho: 0.015}", "{epsilon: 1}", "eps"),
        ("loss:", "weights: {N: 2}\n  loss:", "n"),
        ("loss:", "discover: {dleta: 1e-8}\n  loss:", "delta"),
        ("SELECT page", "SELECT pgae", "page"),
        ("FROM views", "FROM view", "views"),
    ],
)
def test_what_is_meant_in_a_query_file_stands_beside_it(
    tmp_path: Path, was: str, written: str, label: str
) -> None:
    assert QUERY.count(was) == 1
    said = problems(tmp_path, QUERY.replace(was, written))
    assert f'did you mean "{label}"?' in [one.label for one in said]


@pytest.mark.parametrize(
    ("was", "written", "label"),
    [
        ("    columns:", "    colums:", "columns"),
        ("row_id: view_id", "rowid: view_id", "row_id"),
        ("row_id: view_id", "row_id: view-id", "view_id"),
        ("bounds: [0, 8]", "bound: [0, 8]", "bounds"),
        ("values: [help, main]", "value: [help, main]", "values"),
        ("attribute: topic", "atribute: topic", "attribute"),
        ("attribute: topic", "attribute: topics", "topic"),
        ("tables:", "table:", "tables"),
        ("type: timestamp", "type: datetime", "timestamp"),
        ("view_id: {type: integer}", "view_id: {type: BIGINT}", "integer"),
        ("user_id: {type: text}", "user_id: {type: string}", "text"),
        ("type: number", "type: double", "number"),
        ("type: number", "type: Number", "number"),
    ],
)
def test_what_is_meant_in_a_tables_file_stands_beside_it(
    tmp_path: Path, was: str, written: str, label: str
) -> None:
    assert asked.TABLES.count(was) == 1
    (problem,) = problems(
        tmp_path, QUERY, tables=asked.TABLES.replace(was, written)
    )  # One slip, one problem.
    assert problem.label == f'did you mean "{label}"?'


@pytest.mark.parametrize(
    ("was", "written", "help_"),
    [
        ("{user-day: {rho: 0.015}}", "{rho: 0.015}", "loss: {user: {rho: 0.015}}"),
        ("{user-day: {rho: 0.015}}", "0.015", "loss: {user: {eps: …}}"),
        ("{rho: 0.015}", "0.015", "loss: {user-day: {eps: …}}"),
        ("{user-day: 10}", "10", "bounds: {user: …}"),
        ("loss:", "discover: 1e-8\n  loss:", "discover: {delta: 1e-8}"),
        ("loss:", "confidence: 95\n  loss:", "0.95"),
        ("loss:", "confidence: 99.5\n  loss:", "0.995"),
    ],
)
def test_a_value_without_its_mapping_is_told_how_it_is_written(
    tmp_path: Path, was: str, written: str, help_: str
) -> None:
    (problem,) = problems(tmp_path, QUERY.replace(was, written))
    assert problem.help == f"write  {help_}"


def test_a_column_that_is_only_a_type_is_told_how_it_is_written(tmp_path: Path) -> None:
    tables = asked.TABLES.replace("{type: integer}", "integer")
    (problem,) = problems(tmp_path, QUERY, tables=tables)
    assert problem.help == "write  view_id: {type: integer}"


def test_a_file_of_another_kind_is_told_from_a_query(tmp_path: Path) -> None:
    for text in (asked.TABLES, asked.POLICY):
        (problem,) = problems(tmp_path, text)
        assert "is the header of another kind of file" in problem.message
    (problem,) = problems(tmp_path, "SELECT COUNT(*) FROM views")
    assert problem.help.startswith("start with  release: ID")


def test_a_tables_file_that_is_not_there_is_met_where_it_is_named(
    tmp_path: Path,
) -> None:
    (problem,) = problems(tmp_path, QUERY.replace("tables.yaml", "other.yaml"))
    assert problem.code is Code.FILE_UNREADABLE
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.column) == (4, 11)


def test_all_that_does_not_fit_is_said_in_one_run(tmp_path: Path) -> None:
    tables = asked.TABLES.replace(", bounds: [0, 8]", "").replace(
        ", values: [help, main]", ""
    )
    sql = "SELECT page, SUM(amount) AS a, AVG(amount) AS b FROM views GROUP BY page"
    text = QUERY.replace("{user-day: 10}", "{}")
    text = text.replace("SELECT page, COUNT(*) AS n FROM views GROUP BY page", sql)
    found = problems(tmp_path, text, tables=tables)
    said = [one.message for one in found]
    assert "not all values of the keys are public: `page`" in said
    assert said.count("`amount` of `views` has no bounds") == 1
    assert any("has no bound" in one for one in said)


def test_all_that_does_not_fit_in_the_sql_is_said_in_one_run(tmp_path: Path) -> None:
    sql = (
        "SELECT page, SUM(page) AS a, AVG(pgae) AS b FROM views"
        " WHERE topic = 3 AND amount > 'x' GROUP BY page"
    )
    text = QUERY.replace("SELECT page, COUNT(*) AS n FROM views GROUP BY page", sql)
    said = [one.message for one in problems(tmp_path, text)]
    assert len(said) == 4
    assert "the value does not fit `topic`, which is a text" in said
    assert any("`amount`" in one for one in said)
    assert any(one == "SUM takes numbers, and `page` is a text" for one in said)
    assert any("`pgae`" in one for one in said)


def test_a_wrong_loss_and_wrong_weights_are_said_in_one_run(tmp_path: Path) -> None:
    text = QUERY.replace("{rho:", "{eps:") + "  weights: {z: 2}\n"
    codes = {one.code for one in problems(tmp_path, text)}
    assert codes == {Code.DOES_NOT_FIT, Code.UNKNOWN_NAME}


def test_a_unit_that_nothing_bounds_is_bounded_in_the_query(tmp_path: Path) -> None:
    text = QUERY.replace("periods: 2026-10\n", "")
    (tmp_path / "tables.yaml").write_text(asked.TABLES)
    (tmp_path / "q.yaml").write_text(text)
    policy = asked.compiled(asked.POLICY)
    with pytest.raises(InputError) as caught:
        price_release(load_query(tmp_path / "q.yaml", policy).described, policy)
    assert caught.value.code is Code.COST_NOT_DERIVABLE
    help_ = caught.value.problems[0].help
    assert (
        "`sensitivity: {user: {l2: …}}` too (in a query, `bounds: {user: …}`)" in help_
    )
    bounded = text.replace("{user-day: 10}", "{user-day: 10, user: 90}")
    (tmp_path / "q.yaml").write_text(bounded)
    price_release(load_query(tmp_path / "q.yaml", policy).described, policy)


# --- epsilon of Gaussian noise --------------------------------------------------


def rho_of(folder: Path, loss: str) -> Fraction:
    (folder / "tables.yaml").write_text(asked.TABLES)
    (folder / "q.yaml").write_text(QUERY.replace("{rho: 0.015}", loss))
    query = load_query(folder / "q.yaml", asked.compiled(asked.POLICY))
    return query.compiled.request.loss


@pytest.mark.parametrize(("eps", "delta"), [("1", "1e-6"), ("0.05", "1e-9")])
def test_a_loss_in_eps_and_delta_of_gaussian_noise_becomes_rho(
    tmp_path: Path, eps: str, delta: str
) -> None:
    rho = rho_of(tmp_path, f"{{eps: {eps}, delta: {delta}}}")
    target = ApproxBudget(Fraction(eps), Fraction(delta))
    assert meets(declared_zcdp(rho=rho), target)
    assert not meets(declared_zcdp(rho=rho * Fraction(1_000_001, 1_000_000)), target)


def test_a_loss_in_eps_of_gaussian_noise_asks_for_delta(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, QUERY.replace("{rho: 0.015}", "{eps: 1}"))
    assert problem.code is Code.DOES_NOT_FIT
    assert "or a `delta` as well" in problem.help
    assert "modicum account mechanism gaussian --for eps=1,delta=…" in problem.help


@pytest.mark.parametrize(
    ("was", "written"),
    [("  noise: gaussian", "  noise: laplace"),
     ("  noise:", "  discover: {delta: 1e-9}\n  noise:"),
     ("query:", "sampling: {unit: user, rate: 0.1, by: poisson}\nquery:")],
)  # fmt: skip
def test_a_loss_in_eps_and_delta_is_refused_where_nothing_is_proven(
    tmp_path: Path, was: str, written: str
) -> None:
    text = QUERY.replace("{rho: 0.015}", "{eps: 1, delta: 1e-6}")
    assert problems(tmp_path, text) == ()
    found = problems(tmp_path, text.replace(was, written))
    assert [one.code for one in found] == [Code.DOES_NOT_FIT]


@pytest.mark.parametrize(
    ("was", "written", "said"),
    [
        ("noise: gaussian", "noise: {gaussian: {epsilon: 1}}", "noise: gaussian"),
        ("  loss:", "  epsilon: 1\n  los:", 'did you mean "loss"?'),
        ("{rho: 0.015}", "{eps: 1, delta: 2}", "strictly between 0 and 1"),
        ("{rho: 0.015}", "{rho: 1, delta: 1e-6}", "{eps: …, delta: …}"),
    ],
)
def test_an_epsilon_in_the_wrong_place_is_told_the_right_one(
    tmp_path: Path, was: str, written: str, said: str
) -> None:
    found = problems(tmp_path, QUERY.replace(was, written))
    assert said in "\n".join(one.render() for one in found)
