"""A server bounds what one identity holds reserved, and officers void it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.served import Served, served

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.core.document import from_python
from modicum.core.errors import InputError
from modicum.policy.model import ReservationBound, stricter
from modicum.server.resources import Equipment
from modicum.server.settings.model import RESERVATIONS, Settings
from modicum.server.settings.quotas import Quotas
from modicum.server.settings.reader import read_settings

POLICY = """
modicum: policy/v1
name: held
units: {user: {id: user_id}}
schema: {attributes: {age: low}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 1}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(
        tmp_path / "ledger.db",
        policy=tmp_path / "policy.yaml",
        own=Equipment(reservations=RESERVATIONS),
    ) as found:
        yield found


def release(name: str, rho: float, data_set: str = "visits") -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "mechanisms": [
            {
                "name": "m",
                "mechanism": "gaussian",
                "attributes": ["age"],
                "cost": {"user": {"rho": rho}},
            }
        ],
    }


def test_a_server_bounds_what_an_analyst_holds(server: Served) -> None:
    for name in ("a", "b"):
        reserved = server.post("ann", "/releases", release(name, 0.1))
        assert reserved.json()["status"] == "reserved"
    before = server.get("olga", "/ledger/head").json()
    refused = server.post("ann", "/releases", release("c", 0.1))
    document = refused.json()
    assert (refused.status_code, document["code"], document["kind"]) == (
        409,
        "MOD847",
        "conflict",
    )
    assert document["detail"].startswith("`ann` already holds rho = 0.2 reserved")
    assert any("`a`, `b`" in note for note in document["problems"][0]["notes"])
    assert server.get("olga", "/ledger/head").json() == before
    for how in ("", "?explain=true"):
        check = f"/releases:check{how}"
        checked = server.post("ann", check, release("c", 0.1)).json()
        assert any("refused now" in one for one in checked["notices"])
    # Others are not bounded by it, and whoever commits plans not at all.
    assert server.post("amir", "/releases", release("d", 0.2)).status_code == 200
    for name in ("e", "f"):
        answered = server.post("petra", "/releases", release(name, 0.2))
        assert answered.json()["status"] == "reserved"


def test_an_officer_voids_what_anybody_holds_and_says_why(server: Served) -> None:
    server.post("ann", "/releases", release("a", 0.9))
    assert server.post("olga", "/releases/a:start").status_code == 403
    for reason in ({}, {"reason": ""}):
        assert server.post("olga", "/releases/a:void", reason).status_code == 422
    why = {"reason": "nobody runs it"}
    assert server.post("amir", "/releases/a:void", why).status_code == 403
    canceled = server.post("olga", "/releases/a:void", why)
    assert (canceled.status_code, canceled.json()["status"]) == (200, "canceled")
    last = server.get("ann", "/releases/a").json()["story"][-1]
    assert last["actor"] == "olga"
    assert "nobody runs it" in str(last)
    assert server.post("ann", "/releases", release("b", 0.9)).status_code == 200


@pytest.mark.parametrize(("rho", "days"), [(0.25, 7), (0.26, 1)])
def test_a_reservation_does_not_stand_for_90_days(
    server: Served, rho: float, days: int
) -> None:
    long = server.post(
        "ann",
        "/releases",
        release("a", rho),
        params={"reserve_seconds": 90 * 24 * 3600},
    ).json()
    assert long["status"] == "reserved"
    started = server.get("ann", "/releases/a").json()["story"][0]["at"]
    ends = datetime.fromisoformat(long["expires_at"])
    assert ends - datetime.fromisoformat(started) == timedelta(days=days)
    assert any("one may not hold it longer" in one for one in long["notices"])


def settings(**more: object) -> Settings:
    return read_settings(from_python({"modicum": "server/v1", **more}), Path())


def test_settings_bound_reservations_where_people_are_told_apart() -> None:
    assert settings().bound is None
    assert settings(api_tokens=True).bound == Quotas(
        ReservationBound(Fraction(1, 4), 7)
    )
    wider = {"share": 0.5}
    assert settings(reservations=wider).bound == Quotas(
        ReservationBound(Fraction(1, 2), 7)
    )
    off = settings(api_tokens=True, reservations={"share": 1, "days": 90}).bound
    assert off == Quotas(ReservationBound(Fraction(1), 90))


def test_of_two_bounds_the_smaller_numbers_hold() -> None:
    one, other = ReservationBound(Fraction(1, 4), 7), ReservationBound(None, 3)
    assert stricter(one, other) == ReservationBound(Fraction(1, 4), 3)
    assert stricter(one, None) == stricter(None, one) == one
    half, third = Fraction(1, 2), Fraction(1, 3)
    own = ReservationBound(data_sets={"a": half, "b": third})
    both = stricter(own, ReservationBound(data_sets={"a": third, "c": half}))
    assert both == ReservationBound(data_sets={"a": third, "b": third, "c": half})
    assert stricter(None, None) is None


def test_a_role_holds_less_and_the_widest_of_several_counts(tmp_path: Path) -> None:
    roles = {"analyst": {"share": 0.125, "days": 2}, "data-steward": {"days": 5}}
    quotas = settings(reservations={"roles": roles}).bound
    assert quotas is not None
    visits = frozenset({"visits"})

    def of(*held: Role) -> ReservationBound | None:
        return quotas.of(Identity("ann", dict.fromkeys(held, visits)), visits)

    analyst = ReservationBound(Fraction(1, 8), 2, "analyst")
    assert of(Role.ANALYST) == analyst
    assert of(Role.DATA_STEWARD) == ReservationBound(Fraction(1, 4), 5)
    assert of(Role.ANALYST, Role.DATA_STEWARD) == of(Role.DATA_STEWARD)
    # An engineer of one data set commits no plans, and has no quota of the role.
    assert of(Role.ANALYST, Role.PLATFORM_ENGINEER) == RESERVATIONS.everybody
    engineer = Identity("pat", {Role.PLATFORM_ENGINEER: frozenset({ALL})})
    assert quotas.of(engineer, visits) is None
    (tmp_path / "policy.yaml").write_text(POLICY)
    own, policy = Equipment(reservations=quotas), tmp_path / "policy.yaml"
    with served(tmp_path / "ledger.db", policy=policy, own=own) as server:
        assert server.post("ann", "/releases", release("a", 0.1)).status_code == 200
        refused = server.post("ann", "/releases", release("b", 0.1))
        assert refused.json()["code"] == "MOD847"
        assert "12.5 % of the limit, the quota of the role `analyst`" in refused.text
        checked = server.post("ann", "/releases:check", release("b", 0.1)).json()
        assert any("refused now" in one for one in checked["notices"])
        batch = {"releases": [release("b", 0.1), release("c", 0.1)]}
        answers = server.post("ann", "/releases:batch", batch).json()["answers"]
        assert [one["problem"]["code"] for one in answers] == ["MOD847"] * 2


def test_only_roles_that_submit_have_quotas() -> None:
    with pytest.raises(InputError, match="auditor"):
        settings(reservations={"roles": {"auditor": {"days": 1}}})


def test_a_data_set_has_a_quota_and_hidden_reservations_are_not_named(
    tmp_path: Path,
) -> None:
    part = {"visits": {"share": 0.5}, "7": {"share": 0.1}}
    quotas = settings(reservations={"share": 1, "days": 90, "data_sets": part}).bound
    assert quotas is not None
    assert quotas.everybody.data_sets == {
        "visits": Fraction(1, 2),
        "7": Fraction(1, 10),
    }
    (tmp_path / "policy.yaml").write_text(POLICY)
    own, policy = Equipment(reservations=quotas), tmp_path / "policy.yaml"
    with served(tmp_path / "ledger.db", policy=policy, own=own) as server:
        unnamed = release("secret", 0.4)
        del unnamed["dataset"]
        for who, one in (("amir", unnamed), ("ann", release("a", 0.1))):
            assert server.post(who, "/releases", one).json()["status"] == "reserved"
        alone = server.post("ann", "/releases", release("b", 0.1))
        batch = {"releases": [release("b", 0.1)]}
        several = server.post("ann", "/releases:batch", batch)
        checked = server.post("ann", "/releases:check", release("b", 0.1))
        assert "refused now: data set `visits` already holds rho = 0.5" in checked.text
        assert alone.status_code == 409
        for refused in (alone, several):
            assert "MOD847" in refused.text
            assert "`a` of `ann` and 1 other" in refused.text
        for answer in (alone, several, checked):
            assert "secret" not in answer.text
            assert "amir" not in answer.text
        # They may see it. Who commits plans is bounded by it, too.
        for who in ("amir", "petra"):
            refused = server.post(who, "/releases", release("c", 0.1))
            assert "`secret` of `amir`, `a` of `ann`" in refused.text
        other = server.post("lee", "/releases", release("d", 0.1, "labs"))
        assert other.json()["status"] == "reserved"


def test_the_quota_of_a_data_set_is_not_for_a_role() -> None:
    roles = {"analyst": {"data_sets": {"visits": {"share": 0.5}}}}
    with pytest.raises(InputError, match="data_sets"):
        settings(reservations={"roles": roles})
