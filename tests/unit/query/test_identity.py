"""The digest of a query tells apart all that could answer otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from modicum.core.document import Entries
from modicum.core.errors import InputError
from modicum.ops.files.documents import load_policy
from modicum.ops.files.queries import load_query
from modicum.release.parser import parse_release

POLICY = """
modicum: policy/v1
name: one
dp: {bare_budget: {type: pure-dp}}
units: {user: {id: user_id}}
schema: {categories: {}, attributes: {page: [low, {}], pay: [low, {}]}}
policies: [{name: all, when: "true", unit: user, budget: 9}]
"""
TABLES = """
modicum: tables/v1
tables:
  views:
    row_id: view_id
    columns:
      view_id: {type: integer}
      user_id: {type: text}
      page: {type: text, values: [a, b]}
      pay: {type: number, step: 0.5, bounds: [0, 10]}
"""
QUERY = """
release: r
query:
  tables: tables.yaml
  sql: SELECT page, SUM(pay) AS n FROM views WHERE page = 'a' GROUP BY page
  bounds: {user: 2}
  noise: laplace
  loss: {user: {eps: 1}}
"""


def identity(folder: Path, tables: str = TABLES, query: str = QUERY) -> str:
    """Return the digest that stands in the release of a query."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "tables.yaml").write_text(tables)
    (folder / "query.yaml").write_text(query)
    policy = load_policy(folder / "policy.yaml")
    found = load_query(folder / "query.yaml", policy)
    release = parse_release(found.described, policy.policy.vocabulary)
    assert isinstance(found.described, Entries)
    return release.metadata["query"]


@pytest.mark.spec("QRY-16")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("page = 'a'", "NOT page IN ('a') AND user_id = 'u7'"),
        ("AS n", "AS  n"),
        ("user: 2", "user: 3"),
        ("eps: 1", "eps: 2"),
        ("laplace\n", "laplace\n  confidence: 0.9\n"),
        ("laplace\n", "laplace\n  weights: {n: 2}\n"),
        ("laplace\n", "laplace\n  bins: 64\n"),
        ("laplace\n", "laplace\n  discover: {delta: 0.01}\n"),
        ("laplace\n", "laplace\n  salt: xyz\n"),
        ("laplace\n  loss: {user: {eps: 1}}", "gaussian\n  loss: {user: {rho: 1}}"),
        ("bounds: [0, 10]", "bounds: [-5, 10]"),
        ("bounds: [0, 10]", "bounds: [0, 20]"),
        ("step: 0.5, bounds: [0, 10]", "step: 1, bounds: [0, 10]"),
        ("values: [a, b]", "values: [a, c]"),
        ("values: [a, b]", "values: [b, a]"),
        ("attribute", "attribute"),
        ("row_id: view_id", "row_id: [view_id, user_id]"),
        ("row_id: view_id", "row_id: view_id\n    one_per: user_id"),
        ("user_id: {type: text}", "user_id: {type: integer}"),
    ],
)
def test_whatever_changes_an_answer_changes_it(
    old: str, new: str, tmp_path: Path
) -> None:
    first = identity(tmp_path)
    assert identity(tmp_path) == first
    changed = identity(tmp_path, TABLES.replace(old, new), QUERY.replace(old, new))
    assert (changed == first) is (old == new)


def test_what_is_no_digest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    policy = load_policy(tmp_path / "policy.yaml")
    identity(tmp_path)
    node = load_query(tmp_path / "query.yaml", policy).described
    assert isinstance(node, Entries)
    wrong = tuple(
        (key, key if key.text == "query" else value) for key, value in node.entries
    )
    with pytest.raises(InputError, match="digest"):
        parse_release(Entries(wrong, None), policy.policy.vocabulary)
