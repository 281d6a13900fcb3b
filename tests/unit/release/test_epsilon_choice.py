"""A release says how its epsilon was chosen; only what claims DP is taken."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from samples import audited
from samples.small import compiled

from modicum.api.local.evaluation import price_release
from modicum.core.errors import Code, InputError
from modicum.ledger.log.events import ReleaseReserved
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.proof.consistency import contradiction

POLICY = compiled(audited.ASKING)


def recorded(**more: Any) -> RecordedRelease:
    mechanism = {
        "mechanism": "laplace",
        "attributes": ["age"],
        "sensitivity": {"user": {"l1": 1}},
        "scale": 10,
    }
    plain = {"release": "r-1", "mechanisms": [mechanism], **more}
    return price_release(plain, POLICY)


@pytest.mark.spec("RSK-16")
@pytest.mark.parametrize("method", ["data-independent", "private-selection"])
def test_what_claims_dp_is_taken_and_kept(method: str) -> None:
    found = recorded(epsilon_choice=f"dp by {method}")
    assert found.metadata["epsilon_choice"] == f"dp by {method}"
    assert contradiction(found, POLICY.policy.vocabulary) == ""


@pytest.mark.spec("RSK-16")
@pytest.mark.parametrize(
    ("claim", "method"),
    [
        ("controller-only advice", "find-epsilon-from-rdr"),
        ("experimental", "find-epsilon-from-pri"),
        ("DP", "data-independent"),
        ("d", "private-selection"),
        ("dp", "find-epsilon-from-rdr"),
        ("dp", "my-own"),
    ],
)
def test_what_claims_less_is_refused(claim: str, method: str) -> None:
    with pytest.raises(InputError) as caught:
        recorded(epsilon_choice=f"{claim} by {method}")
    (problem,) = caught.value.problems
    assert problem.code is Code.NO_CLAIM
    assert claim in problem.message
    assert "private-selection" in problem.help


@pytest.mark.spec("RSK-16")
@pytest.mark.parametrize("text", ["dp", "", "dp by ", "dp by Two Words", "by x", 3])
def test_what_is_no_claim_and_method_is_refused(text: Any) -> None:
    with pytest.raises(InputError):
        recorded(epsilon_choice=text)


@pytest.mark.spec("RSK-16")
@pytest.mark.parametrize(
    "text", ["experimental by from-pri", "dpx by x", "", "dp by x", "dp"]
)
def test_an_audit_finds_what_was_written_all_the_same(text: str) -> None:
    forged = replace(recorded(), metadata={"epsilon_choice": text})
    assert "chosen" in contradiction(forged, POLICY.policy.vocabulary)


# --- a label of that name would hide the check ----------------------------------------

HIDING = audited.ASKING.replace(
    "labels:", "labels:\n  epsilon_choice: {values: [bold, shy], default: shy}"
)


@pytest.mark.spec("RSK-16")
def test_no_policy_is_taken_up_with_a_label_of_that_name() -> None:
    with pytest.raises(InputError) as caught:
        compiled(HIDING).refuse_mistakes()
    (problem,) = caught.value.problems
    assert problem.code is Code.BAD_NAME
    assert "`epsilon_choice`" in problem.message


def test_a_ledger_with_such_a_label_stays_readable() -> None:
    digest = compiled(HIDING).policy.digest
    release = audited.priced("r-1", HIDING, epsilon_choice="bold")
    reserved = ReleaseReserved(release, digest, audited.LATER)
    sealed = audited.sealed([audited.activated(HIDING), reserved])
    found = audited.checked(audited.bundle(sealed))
    assert (found.report.decisions, found.report.unpriced.releases) == (1, 0)
