"""The example organization with people for whom something waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.small import NOON

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL
from modicum.ops.demo import make_demo
from modicum.ops.demo_people import SETTINGS, add_people
from modicum.ops.wiring import open_workspace
from modicum.server.settings.reader import load_settings
from modicum.system.clock import FixedClock


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("demo") / "acme"
    make_demo("acme-health", made, clock=FixedClock(NOON))
    assert not (made / SETTINGS).exists()
    add_people(made, clock=FixedClock(NOON))
    return made


def test_requests_and_a_policy_wait_for_officers(folder: Path) -> None:
    office = open_workspace(folder / "ledger.db", actor="audra").governance
    waiting = {
        one.request.release: [(s.approval.need, s.agreed, s.left) for s in states]
        for one in office.requests()
        for states in [one.approval_states]
    }
    assert waiting == {
        "visits-by-clinic": [(2, ("omar",), ("olga",))],
        "steps-by-age": [(2, (), ("olga", "omar"))],
    }
    (proposed,) = office.proposals()
    assert [s.left for s in proposed.approval_states] == [("olga", "omar")]


def test_a_reservation_waits_for_its_analyst(folder: Path) -> None:
    state = open_workspace(folder / "ledger.db").state()
    assert list(state.open) == ["beds-by-month"]


def test_settings_name_the_people_and_the_ledger(folder: Path) -> None:
    settings = load_settings(folder / SETTINGS)
    assert settings.ledger == str(folder / "ledger.db")
    everything = frozenset({ALL})
    assert settings.local_people == {
        "olga": {Role.PRIVACY_OFFICER: everything},
        "omar": {Role.PRIVACY_OFFICER: everything},
        "dara": {Role.DATA_STEWARD: everything},
        "erin": {Role.PLATFORM_ENGINEER: everything},
        "amir": {Role.ANALYST: everything},
        "audra": {Role.AUDITOR: everything},
    }
