"""The tier `gvisor`, where there is no runsc: it is not there, and says so."""

from __future__ import annotations

import os
import shutil

import pytest
from samples.sandboxed import python, sandbox, users

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Code, InputError, UnavailableError
from modicum.escrow.programs import Program, Range
from modicum.sandbox import gvisor
from modicum.sandbox.gvisor import Gvisor, bundle
from modicum.sandbox.root import python_root

LIMITS = Limits(2.0, 2**28, 16)


def test_without_runsc_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gvisor, "_FOLDERS", "/nonexistent")
    held = Gvisor(users())
    with pytest.raises(UnavailableError) as caught:
        held.score(python("def score(*_):\n    return 1"), {}, None, LIMITS)
    assert caught.value.code is Code.SANDBOX_MISSING
    assert "runsc is not installed" in str(caught.value)


def test_a_runsc_that_runs_nothing_is_not_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox()  # What else it takes is here.
    which = shutil.which
    monkeypatch.setattr(
        shutil,
        "which",
        lambda name, path=None: "/bin/true" if name == "runsc" else which(name),
    )
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UnavailableError) as caught:
        Gvisor(users() or 5000).check()
    assert caught.value.code is Code.SANDBOX_LEAKS


def test_what_runsc_is_told_gives_nothing_more_than_bubblewrap_is() -> None:
    sandbox()
    result = bundle(python_root(), 5000, LIMITS)
    assert all("ro" in mount["options"] for mount in result["mounts"])
    places = {mount["destination"] for mount in result["mounts"]}
    assert places == {inside for inside, _ in python_root().bound} | set(
        python_root().covered
    )
    assert result["root"]["readonly"]
    assert result["process"]["noNewPrivileges"]
    assert result["process"]["capabilities"]["bounding"] == ["CAP_SETUID", "CAP_SETGID"]
    kinds = {each["type"] for each in result["linux"]["namespaces"]}
    assert {"pid", "network", "ipc", "mount"} <= kinds


def test_a_module_is_not_for_it() -> None:
    from fractions import Fraction

    module = Program("wasm", b"\0asm", {}, Range(Fraction(0), Fraction(1)))
    with pytest.raises(InputError):
        Gvisor().score(module, {}, None, LIMITS)
