"""Sandboxes by name, and the selection for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modicum.escrow.programs import Program

if TYPE_CHECKING:
    from modicum.api.ports.escrow import Sandbox


def bubblewrap(uid: int | None = None, at_a_time: int = 1) -> Sandbox:
    """Return the sandbox for programs in Python. Nothing is looked for yet."""
    from modicum.sandbox.bubblewrap import Bubblewrap

    return Bubblewrap(uid, at_a_time)


def gvisor(uid: int | None = None, at_a_time: int = 1) -> Sandbox:
    """Return the sandbox for Python programs on a separate kernel, by runsc."""
    from modicum.sandbox.gvisor import Gvisor

    return Gvisor(uid, at_a_time)


def wasm(
    uid: int | None = None, at_a_time: int = 1, fuel: int | None = None
) -> Sandbox:
    """Return the sandbox for modules of WebAssembly. Nothing is looked for yet."""
    from modicum.sandbox.webassembly import FUEL, WebAssembly

    return WebAssembly(uid, at_a_time, FUEL if fuel is None else fuel)


def sandbox_for(
    program: Program, *, uid: int | None = None, at_a_time: int = 1
) -> Sandbox:
    """Return a sandbox for the language of a program."""
    match program.language:
        case "python":
            return bubblewrap(uid, at_a_time)
        case "wasm":
            return wasm(uid, at_a_time)
