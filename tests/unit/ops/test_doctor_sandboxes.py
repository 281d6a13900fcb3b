"""What the doctor says of sandboxes: there, not there, or not what they say."""

from __future__ import annotations

import os

import pytest
from samples.escrows import OpenSandbox
from samples.small import NOON

from modicum.core.errors import UnavailableError
from modicum.ops.doctor.checks import examine
from modicum.ops.doctor.findings import Status
from modicum.ops.doctor.sandboxes import check_sandboxes, sandboxes
from modicum.sandbox.problems import leaking, missing
from modicum.system.clock import FixedClock


class Broken(OpenSandbox):
    """A sandbox that cannot be used."""

    def check(self) -> None:
        if self.tier == "leaky":
            raise UnavailableError(leaking(self.tier, "rights of root got out"))
        raise UnavailableError(
            missing("nothing is there", "install it"),
            missing("nobody is named", "name somebody"),
        )


def test_a_sandbox_that_holds_its_test_can_be_used() -> None:
    (one,) = check_sandboxes([OpenSandbox()])
    assert (one.check, one.status) == ("sandbox wasm", Status.OK)
    assert one.facts == {"usable": True}


def test_what_is_missing_is_told_with_every_remedy() -> None:
    (one,) = check_sandboxes([Broken()])
    assert one.status is Status.WARN
    assert one.message == "nothing is there; nobody is named"
    assert one.remedy == "install it; name somebody"
    assert one.facts == {"usable": False, "code": "MOD855"}


def test_a_sandbox_that_leaks_is_wrong() -> None:
    found = examine(None, FixedClock(NOON), boxes=[Broken(tier="leaky")])
    (one,) = [one for one in found.findings if one.check == "sandbox leaky"]
    assert one.status is Status.FAIL
    assert "rights of root got out" in one.message
    assert "rights of root" not in str(one.to_facts())
    assert found.count(Status.FAIL)


def test_sandboxes_are_tried_only_if_somebody_asks() -> None:
    found = examine(None, FixedClock(NOON))
    assert not [one for one in found.findings if one.check.startswith("sandbox")]


def test_as_root_somebody_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = list(check_sandboxes(sandboxes(None)))
    assert [one.check for one in found] == [
        "sandbox bubblewrap",
        "sandbox gvisor",
        "sandbox wasm",
    ]
    for one in found:
        assert one.status is Status.WARN
        assert "as root, programs need a dedicated user" in one.message
        assert "uid" in one.remedy
