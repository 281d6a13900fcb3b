"""What would pass instead of a query that is denied: changes of its file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import asked

import modicum as mo
from modicum.api.local import Workspace
from modicum.api.local.queries.actions import Queries
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.query.query_file import QueryFile, read_query_file

#: The day may lose 0.05, the month 0.75.
OVER = {"user-day": {"rho": Fraction("0.06")}}


def planned(ledger: Workspace, query: QueryFile) -> Any:
    return Queries(ledger).plan(query)


def read(plain: Any) -> QueryFile:
    policy = asked.compiled()
    known = asked.tables(policy), policy.policy.vocabulary
    return read_query_file(from_python(plain), *known, policy.policy.digest)


def allowed(ledger: Workspace, plain: Any) -> bool:
    return ledger.check(read(plain).described).allowed


def with_loss(query: QueryFile, rho: Fraction) -> dict[str, Any]:
    return asked.document(loss={query.request.unit: {"rho": rho}})


@pytest.fixture
def ledger(tmp_path: Path) -> Workspace:
    return asked.workspace(tmp_path)


@given(spent=st.integers(1, 49), rho=st.integers(51, 900))
@settings(max_examples=examples(12), deadline=None)
def test_the_largest_loss_of_four_digits_that_passes_is_found(
    tmp_path_factory: pytest.TempPathFactory, spent: int, rho: int
) -> None:
    ledger = asked.workspace(tmp_path_factory.mktemp("ledger"))
    before = asked.query(
        release="before", loss={"user-day": {"rho": Fraction(spent, 1000)}}
    )
    assert ledger.submit(before.described).allowed
    query = asked.query(loss={"user-day": {"rho": Fraction(rho, 1000)}})
    decision = planned(ledger, query)
    assert not decision.allowed
    fit = decision.largest_fit("loss")
    assert fit.release is not None
    assert decision.largest_fit("noise").release == fit.release
    assert allowed(ledger, fit.release)
    found = read(fit.release).request.loss
    assert found == Fraction(str(fit.release["query"]["loss"]["user-day"]["rho"]))
    # The next number of four digits does not pass.
    digits = len(str(int(found * 10**9)))
    above = found + Fraction(10) ** (digits - 9 - 4)
    assert not allowed(ledger, with_loss(query, above))
    assert allowed(ledger, with_loss(query, found))


def test_what_would_pass_is_named_in_words_of_the_query(ledger: Workspace) -> None:
    decision = planned(ledger, asked.query(loss=OVER))
    text = decision.explain()
    assert "would be allowed with: loss of user-day: rho 0.05 instead of 0.06" in text
    assert "sigma" not in text.split("would be allowed")[1]
    fit = decision.to_dict(deep=True)["explanation"]["fit"]
    assert fit["vary"] == "loss"
    assert "sigma" not in fit["release"]


def test_a_variant_that_reads_what_no_table_tells_is_refused() -> None:
    """Only the same plan needs no second look."""
    divided = "population: {partition_by: {country: {values: [CH, DE]}}}\n"
    policy = asked.compiled(asked.POLICY + divided)
    known = asked.tables(policy), policy.policy.vocabulary, policy.policy.digest
    query = read_query_file(from_python(asked.document()), *known)
    elsewhere = asked.document(heading={"where": {"country": ["CH"]}})
    for variant_of in (None, query):
        with pytest.raises(InputError, match="no table of the query has"):
            read_query_file(from_python(elsewhere), *known, variant_of=variant_of)
    less = asked.document(loss={"user-day": {"rho": Fraction("0.001")}})
    found = read_query_file(from_python(less), *known, variant_of=query)
    assert found == read_query_file(from_python(less), *known)


def test_options_are_query_files_that_pass(ledger: Workspace) -> None:
    """October is spent, in part: reading other days would do, or a smaller loss."""
    spent = asked.query(release="before", loss={"user-day": {"rho": Fraction("0.03")}})
    assert ledger.submit(spent.described).allowed
    query = asked.query(
        periods={"from": "2026-10", "to": "2026-11"},
        loss={"user-day": {"rho": Fraction("0.04")}},
    )
    options = planned(ledger, query).options()
    kinds = [one.kind for one in options]
    assert kinds[0] == "loss"
    assert set(kinds) <= {"loss", "where", "periods", "label", "wait"}
    assert "periods" in kinds
    for one in options:
        assert "mechanisms" not in one.release
        node = read_document(one.text.encode(), "option.yaml")
        policy = asked.compiled()
        known = asked.tables(policy), policy.policy.vocabulary
        found = read_query_file(node, *known, policy.policy.digest)
        assert ledger.check(found.described).allowed, one.kind


def test_a_query_has_no_scale_to_vary(ledger: Workspace) -> None:
    decision = planned(ledger, asked.query(loss=OVER))
    for vary, mechanism in (("sigma", None), ("noise", "views"), ("scale", None)):
        fit = decision.largest_fit(vary, mechanism)
        assert not fit.found
    with pytest.raises(InputError, match="no mechanism"):
        decision.largest_fit("loss", "gone")
    with pytest.raises(InputError, match="unknown parameter"):
        decision.largest_fit("lots")


def test_nothing_is_offered_where_nothing_helps(ledger: Workspace) -> None:
    most = {"rho": Fraction("0.05")}
    full = mo.declared(attributes=["page"], cost={"user-day": most, "user-month": most})
    release = mo.Release("before", periods="2026-10", mechanisms=[full])
    assert ledger.submit(release).allowed
    decision = planned(ledger, asked.query())
    assert not decision.largest_fit("loss").found
    assert decision.options() == ()
    assert "no single-parameter change would fit" in decision.explain()


def test_what_passes_or_stands_has_nothing_to_change(ledger: Workspace) -> None:
    query = asked.query()
    assert not planned(ledger, query).largest_fit("loss").found
    ledger.submit(query.described)
    fit = planned(ledger, query).largest_fit("loss")
    assert "already exists (reserved)" in fit.why[0]
