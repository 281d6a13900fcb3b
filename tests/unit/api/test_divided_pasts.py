"""What past releases read, where a policy changes values and claims at once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from samples.first_version import as_written_by, with_policy
from samples.redefined import activate, of

from modicum.core.errors import InputError, VerificationError
from modicum.storage.sqlite_store import SqliteStore

LEDGERS = Path(__file__).parents[2] / "golden" / "ledgers"
POLICY = """
modicum: policy/v1
name: pageviews
dp: {accountant: zcdp}
units:
  month: {id: uid, time: {column: COLUMN, period: month}}
  user: {id: uid}
schema: {attributes: {page: low}}
population:
  partition_by:
    region: {values: [EU, US], immutable: [month, user]WAS}
    ward: {values: [a, b], immutable: [WARD]}
policies:
  - {name: short, when: "true", unit: month, budget: {rho: 1}}
  - {name: long, when: "true", unit: user, budget: {rho: 9}}
"""
SWAPPED = ", was: {EU: US, US: EU}"


def policy(column: str = "at", was: str = "", ward: str = "") -> str:
    text = POLICY.replace("COLUMN", column).replace("WAS", was)
    return text.replace("WARD", ward)


def release(name: str, rho: object, **part: Any) -> dict[str, Any]:
    one = {"name": "views", "mechanism": "gaussian", "attributes": ["page"]}
    cost = {unit: {"rho": rho} for unit in ("month", "user")}
    return {"release": name, **part, "mechanisms": [{**one, "cost": cost}]}


def reading(region: str, ward: str) -> dict[str, Any]:
    return {"where": {"region": [region], "ward": [ward]}}


@pytest.mark.spec("REL-16")
@pytest.mark.parametrize("claim", ["", "month, user"])
def test_a_later_claim_does_not_undo_a_swap_of_values(
    tmp_path: Path, claim: str
) -> None:
    of(tmp_path, policy()).submit(release("r-1", 0.9, **reading("EU", "a")))
    activate(tmp_path, policy(was=SWAPPED, ward=claim))
    ws = of(tmp_path)
    assert ws.check(release("r-2", 0.5, **reading("EU", "b"))).allowed
    assert not ws.check(release("r-3", 0.5, **reading("US", "b"))).allowed
    ws.verify()


@pytest.mark.spec("REL-16")
@pytest.mark.parametrize("claim", ["", "month, user"])
def test_a_later_claim_does_not_bring_lost_periods_back(
    tmp_path: Path, claim: str
) -> None:
    march = {"from": "2026-03-01", "to": "2026-03-31"}
    of(tmp_path, policy()).submit(
        release("r-1", 0.1, periods=march, **reading("EU", "a"))
    )
    activate(tmp_path, policy("seen", ward=claim), "unit:month")
    ws = of(tmp_path)
    for month in ("2026-03", "2026-04"):
        one = release("r-2", 0.7, periods=month, **reading("EU", "a"))
        assert not ws.check(one).allowed  # A month moved is two months changed.
    ws.verify()


@pytest.mark.spec("POL-14")
@pytest.mark.parametrize("many", [1, 2, 3, 4])
def test_policies_that_keep_what_was_make_its_step_once(
    tmp_path: Path, many: int
) -> None:
    of(tmp_path, policy()).submit(release("r-1", 0.9, **reading("EU", "a")))
    for number in range(many):
        text = policy(was=SWAPPED).replace("pageviews", f"p-{number}")
        activate(tmp_path, text.replace("rho: 9", f"rho: {9 - number}"))
        of(tmp_path).verify()
    ws = of(tmp_path)
    assert ws.submit(release("r-2", 0.5, **reading("EU", "a"))).allowed
    assert not ws.submit(release("r-3", 0.5, **reading("US", "a"))).allowed
    assert ws.verify().decisions == 3


@pytest.mark.spec("POL-14")
def test_what_a_policy_made_when_it_came_back_the_next_does_not_make_again(
    tmp_path: Path,
) -> None:
    swapped = policy(was=SWAPPED)
    of(tmp_path, swapped).init()
    activate(tmp_path, policy())
    activate(tmp_path, swapped)
    of(tmp_path).submit(release("r-1", 0.9, **reading("EU", "a")))
    activate(tmp_path, policy(was=SWAPPED, ward="user"))
    ws = of(tmp_path)
    assert not ws.check(release("r-2", 0.5, **reading("EU", "a"))).allowed
    assert ws.check(release("r-3", 0.5, **reading("US", "a"))).allowed
    ws.verify()


@pytest.mark.spec("POL-14")
def test_what_a_policy_makes_as_it_comes_back_is_not_what_another_made(
    tmp_path: Path,
) -> None:
    first = policy(was=", was: {EU: US}")
    of(tmp_path, first).init()
    activate(tmp_path, policy(was=", was: {EU: [EU, US]}"))
    of(tmp_path).submit(release("r-1", 0.9, **reading("EU", "a")))
    activate(tmp_path, first)
    for region in ("EU", "US"):
        assert (
            not of(tmp_path).check(release("r-2", 0.5, **reading(region, "a"))).allowed
        )


@pytest.mark.spec("LED-24")
@pytest.mark.parametrize(
    ("texts", "last", "is_short"),
    [
        ([SWAPPED, "", SWAPPED, SWAPPED], "[a, b, c]", True),
        (
            [", was: {EU: US}", ", was: {EU: [EU, US]}", ", was: {EU: US}"],
            "[a, b]",
            True,
        ),
        (["", SWAPPED, SWAPPED], "[a, b, c]", False),
        ([SWAPPED, "", SWAPPED], "[a, b]", False),
    ],
)
def test_an_old_ledger_says_which_values_are_charged_too_little(
    tmp_path: Path, texts: list[str], last: str, *, is_short: bool
) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    policies = [
        policy(was=was).replace("pageviews", f"p-{number}")
        for number, was in enumerate(texts)
    ]
    policies[-1] = policies[-1].replace("[a, b]", last)
    of(new, policies[0]).init()
    for text in policies[1:-1]:
        activate(new, text)
    of(new).submit(release("r-1", 0.9, **reading("EU", "a")))
    written = with_policy([*of(new).records()], policies[-1])
    with SqliteStore(old / "ledger.db", wait_seconds=20).turn() as turn:
        turn.append(as_written_by(5, written))
    if not is_short:
        assert of(old).verify().understated == ()
        return
    with pytest.raises(VerificationError) as caught:
        of(old).verify()
    (problem,) = caught.value.problems
    assert problem.message.startswith("values of `region` are charged too little")
    assert problem.notes == ("these rules undercount: short, long",)
    activate(old, policies[-1].replace("p-", "q-"))
    assert of(old).verify().understated == ()


@pytest.mark.spec("LED-24")
def test_boxes_that_are_charged_already_are_not_charged_too_little(
    tmp_path: Path,
) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    old.mkdir()
    kept = policy(was=SWAPPED)
    of(new, kept).init()
    activate(new, policy())
    activate(new, kept)
    every = {"where": [{"region": ["EU"], "ward": ["a"]}, {"region": ["US"]}]}
    of(new).submit(release("r-1", 0.9, **every))
    last = kept.replace("[a, b]", "[a, b, c]")
    written = with_policy([*of(new).records()], last)
    with SqliteStore(old / "ledger.db", wait_seconds=20).turn() as turn:
        turn.append(as_written_by(5, written))
    # The units are divided by the region only, and both regions are charged.
    assert of(old).verify().understated == ()


@pytest.mark.spec("POL-14")
def test_a_lower_limit_is_accepted_by_what_an_audit_sees(tmp_path: Path) -> None:
    """Its preview and its audit make the same steps."""
    of(tmp_path, policy()).submit(release("r-1", 0.5, **reading("EU", "a")))
    for name in ("second", "third"):
        activate(tmp_path, policy(was=SWAPPED).replace("pageviews", name))
    of(tmp_path).submit(release("r-2", 0.4, **reading("EU", "a")))
    activate(tmp_path, policy(was=SWAPPED).replace("rho: 1}", "rho: 0.6}"))
    assert of(tmp_path).verify().decisions == 2


def test_the_same_policy_is_asked_about_again_whatever_object_it_is(
    tmp_path: Path,
) -> None:
    shutil.copy(LEDGERS / "v4-redefined-unit.db", tmp_path / "ledger.db")
    late = "2029-05-01T12:00:00.000000Z"
    again = of(tmp_path, now=late).policy()
    ws = of(tmp_path, now=late)
    own = ws.policy()
    assert own.policy.digest == again.policy.digest
    found = [ws.governance.preview_activation(one) for one in (own, again)]
    assert [one.open_conflicts for one in found] != [(), ()]
    assert found[0].open_conflicts == found[1].open_conflicts
    with pytest.raises(InputError):
        ws.governance.activate(own, reason="again", accept=["unit:user-time"])
    ws.governance.activate(own, reason="again", accept=["unit:user-time", "all"])
    assert of(tmp_path, now=late).verify().understated == ()
