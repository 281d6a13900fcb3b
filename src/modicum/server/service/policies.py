"""Policies: read, compiled, compared, and put in the place of each other."""

from __future__ import annotations

from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import from_python
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_policy
from modicum.policy.parser import parse_policy
from modicum.server.inputs.body import TREE_BYTES, Body
from modicum.server.service.threads import Threads

#: Means the policy that holds, wherever a digest is asked for.
ACTIVE = "active"


class Policies:
    """What can be done with policies and their rules.

    Args:
        threads: Where the ledger is looked at.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    # --- policies ---

    async def compile(self, who: Identity, body: Body) -> CompiledPolicy:
        """Return what a policy compiles to; mistakes are told with their places.

        Args:
            who: Who asks.
            body: The policy.

        Raises:
            AccessError: If they may not.
            InputError: With every mistake in it.
        """
        who.must(Action.COMPILE_POLICY)
        return await self._threads.compile(who.name, lambda: compiled_body(body))

    # --- rules ---


def compiled_body(body: Body) -> CompiledPolicy:
    """Return what a policy that was sent compiles to; within `Threads.compile`.

    Args:
        body: The policy.

    Raises:
        InputError: With every mistake in it. Of much JSON no place is known.
    """
    small = len(body.text) <= TREE_BYTES
    node = body.tree() if small else from_python(body.description())
    compiled = compile_policy(parse_policy(node, body.text.decode("utf-8-sig")))
    _ = compiled.warnings  # They take as long, and are kept.
    return compiled
