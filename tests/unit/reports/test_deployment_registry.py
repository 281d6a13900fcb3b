"""Records for a public registry of deployments."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from samples.audited import HOSTILE, bundle, log

from modicum.core.errors import InvariantError
from modicum.reports import deployment_registry
from modicum.reports.deployment_registry import (
    UNKNOWN,
    at_least,
    registry_records,
    registry_text,
    slug,
)
from modicum.reports.sources import opened_bundle, report_on
from modicum.storage.proofs.verification import Trust


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("registry") / "bundle"
    path.write_bytes(bundle(log()))
    with opened_bundle(path) as source:
        statement = report_on(source, Trust())
        return registry_records(statement, source.store.read(0))


def test_what_is_out_is_recorded_and_nothing_else(
    records: list[dict[str, Any]],
) -> None:
    """What was given up, denied or is only reserved was not published."""
    names = [one["deployment"]["basic"]["name"] for one in records]
    assert names == ["old", "r-1", "loud"]
    assert {one["status"] for one in records} == {"Draft"}


def test_what_the_ledger_knows_stands_where_a_registry_looks(
    records: list[dict[str, Any]],
) -> None:
    old, published = records[0]["deployment"], records[1]["deployment"]
    assert old["basic"]["publication_date"] == "2024-03-02"
    assert old["basic"]["intended_use"] == HOSTILE
    assert published["basic"]["publication_date"] == "2026-05-01"
    assert "approved by olga" in published["implementation"]["justification"]
    assert "without a decision" in old["implementation"]["justification"]
    assert HOSTILE in old["administrative"]["notes"]
    assert published["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert HOSTILE in published["dp_variant"]["unprotected_quantities"]
    loss = published["privacy_loss"]
    assert loss["privacy_unit"] == "user"
    assert loss["privacy_parameters"]["rho"] == 0.004
    assert loss["privacy_parameters"]["delta"] == 1e-7
    assert 0 < loss["privacy_parameters"]["epsilon"] < 1


@pytest.mark.spec("AUD-7")
def test_what_the_ledger_does_not_know_is_said_to_be_unknown(
    records: list[dict[str, Any]],
) -> None:
    for one in records:
        found = one["deployment"]
        assert found["basic"]["data_curators"][0]["data_curator_name"] == UNKNOWN
        assert found["deployment_model"]["model_name"] == UNKNOWN
        assert found["accounting"]["post_processing"] == UNKNOWN


def test_the_text_reads_as_the_records(records: list[dict[str, Any]]) -> None:
    text = registry_text(records)
    assert YAML(typ="safe", pure=True).load(text) == records
    assert "!" not in {line.strip()[:1] for line in text.splitlines()}
    assert registry_text(records) == text


def test_a_text_that_does_not_read_back_is_not_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvariantError, match="read as written"):
        registry_text([{"loss": float("nan")}])
    assert deployment_registry.PUBLISHED == ("published", "recorded")


@pytest.mark.spec("AUD-7")
@settings(max_examples=examples(200), deadline=None)
@given(
    numerator=st.integers(0, 2**62),
    denominator=st.sampled_from([10**12, 10**18, 3, 7 * 10**9]),
)
def test_a_number_is_never_written_smaller_than_it_is(
    numerator: int, denominator: int
) -> None:
    exact = Fraction(numerator, denominator)
    written = Fraction(repr(at_least(numerator, denominator)))
    assert written >= exact
    assert written - exact <= exact / 2**50


def test_ids_become_addresses() -> None:
    assert slug("Survey 2024/Q3 (v2)") == "survey-2024-q3-v2"
    assert slug("…") == "release"
