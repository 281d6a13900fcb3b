"""What the page about the sandbox says is so."""

from __future__ import annotations

import re

from samples.escapes import ATTEMPTS
from samples.sandboxed import PROJECT

from modicum.escrow.programs import STEPS
from modicum.sandbox.job import JOB_BYTES_MAX
from modicum.sandbox.scores import BITS_MAX
from modicum.sandbox.seccomp import ALLOWED, FILES
from modicum.sandbox.webassembly import FUEL

PAGE = (PROJECT / "docs/reference/sandbox.md").read_text(encoding="utf-8")


def test_every_attempt_is_named_and_no_other() -> None:
    table = PAGE.partition("| after | attempts |")[2]
    assert re.findall(r"`([a-z0-9-]+)`", table) == [one.name for one in ATTEMPTS]


def test_numbers_are_those_of_the_code() -> None:
    assert f"**{BITS_MAX:.1f} bits**" in PAGE
    assert STEPS == 10**9
    assert "10⁹ + 1 points" in PAGE
    assert JOB_BYTES_MAX == 64 * 2**20
    assert "64 MiB as JSON" in PAGE
    assert FUEL == 10**10
    assert 75 <= len(ALLOWED) + len(FILES) + 5 <= 89
