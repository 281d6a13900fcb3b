"""Sandboxes by name: which one holds a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modicum.escrow.programs import Program

if TYPE_CHECKING:
    from modicum.api.ports.escrow import Sandbox


def bubblewrap(uid: int | None = None, at_a_time: int = 1) -> Sandbox:
    """Return the sandbox for programs in Python. Nothing is looked for yet.

    Args:
        uid: As root, the user that programs run as, and that nobody else is; with
            several at a time, the first of as many. For others it is left out.
        at_a_time: How many run at once; others wait. Programs that run at once share
            processors and caches, through which they can tell each other something.
    """
    from modicum.sandbox.bubblewrap import Bubblewrap

    return Bubblewrap(uid, at_a_time)


def gvisor(uid: int | None = None, at_a_time: int = 1) -> Sandbox:
    """Return the sandbox for programs in Python on a kernel of their own, by runsc.

    Args:
        uid: As for `bubblewrap`.
        at_a_time: As for `bubblewrap`.
    """
    from modicum.sandbox.gvisor import Gvisor

    return Gvisor(uid, at_a_time)


def wasm(
    uid: int | None = None, at_a_time: int = 1, fuel: int | None = None
) -> Sandbox:
    """Return the sandbox for modules of WebAssembly. Nothing is looked for yet.

    Args:
        uid: As for `bubblewrap`.
        at_a_time: As for `bubblewrap`.
        fuel: How much a module may do, about an instruction each; None for 10**10.
    """
    from modicum.sandbox.webassembly import FUEL, WebAssembly

    return WebAssembly(uid, at_a_time, FUEL if fuel is None else fuel)


def sandbox_for(
    program: Program, *, uid: int | None = None, at_a_time: int = 1
) -> Sandbox:
    """Return a sandbox that holds programs in the language of one.

    Args:
        program: The program.
        uid: As for `bubblewrap`.
        at_a_time: As for `bubblewrap`.
    """
    match program.language:
        case "python":
            return bubblewrap(uid, at_a_time)
        case "wasm":
            return wasm(uid, at_a_time)
