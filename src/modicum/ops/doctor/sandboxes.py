"""Checks of the sandboxes of an escrow: is each there, and does it hold its test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from modicum.core.errors import Code, UnavailableError
from modicum.ops.doctor.findings import Finding, Status
from modicum.sandbox import factory

if TYPE_CHECKING:
    from modicum.api.ports.escrow import Sandbox


def sandboxes(uid: int | None) -> Iterator[Sandbox]:
    """Yield the sandbox of each tier. Nothing is looked for yet."""
    for tier in (factory.bubblewrap, factory.gvisor, factory.wasm):
        yield tier(uid)


def check_sandboxes(boxes: Iterable[Sandbox]) -> Iterator[Finding]:
    """Yield of each sandbox whether programs can be held by it here."""
    for box in boxes:
        yield _checked(box)


def _checked(box: Sandbox) -> Finding:
    name = f"sandbox {box.tier}"
    try:
        box.check()
    except UnavailableError as error:
        codes = {one.code for one in error.problems}
        # A missing sandbox is harmless; a leaking one is not.
        leaks = codes != {Code.SANDBOX_MISSING}
        return Finding(
            name,
            Status.FAIL if leaks else Status.WARN,
            "; ".join(one.message for one in error.problems),
            "; ".join(one.help for one in error.problems if one.help),
            {"usable": False, "code": error.problems[0].code.value},
        )
    message = "available; it passed its self-test"
    return Finding(name, Status.OK, message, facts={"usable": True})
