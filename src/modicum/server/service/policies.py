"""Policies: read, compiled, compared, and put in the place of each other."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.core.document import from_python
from modicum.ledger import RuleLoss, State
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy
from modicum.policy.compile import compile_policy
from modicum.policy.parse import parse_policy
from modicum.server.bodies import TREE_BYTES, Body
from modicum.server.service.refusals import not_found
from modicum.server.service.threads import Threads
from modicum.workspace.ledger_view import LedgerView
from modicum.workspace.permissions.actions import Action
from modicum.workspace.permissions.identity import Identity
from modicum.workspace.spenders import CellBalance

#: Means the policy that holds, wherever a digest is asked for.
ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class Standings:
    """Where rules stand.

    Attributes:
        losses: What each rule was charged.
        compiled: The policy whose rules they are.
        state: The state that it was found on; it is not to be changed.
    """

    losses: tuple[RuleLoss, ...]
    compiled: CompiledPolicy
    state: State


class Policies:
    """What can be done with policies and their rules.

    Args:
        threads: Where the ledger is looked at.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    # --- policies ---

    async def history(self, who: Identity) -> tuple[ActivePolicy, ...]:
        """Return the policies that were active, oldest first; the last one is.

        Args:
            who: Who asks.

        Raises:
            AccessError: If they may not.
        """
        who.must(Action.READ_POLICY)
        return await self._threads.look(lambda view: tuple(view.state().policies))

    async def one(self, who: Identity, digest: str) -> ActivePolicy:
        """Return a policy that is or was active.

        Args:
            who: Who asks.
            digest: Its digest, or `active`.

        Raises:
            AccessError: If they may not.
            InputError: If there is no such policy.
        """
        found = await self.history(who)
        for one in reversed(found):
            if digest in (ACTIVE, one.digest):
                return one
        raise not_found(
            f"the ledger knows no policy `{digest[:64]}`",
            "name one by its digest, or `active`",
        )

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

    async def standings(self, who: Identity) -> Standings:
        """Return where every rule over history stands.

        Args:
            who: Who asks.

        Raises:
            AccessError: If they may not.
        """
        who.must(Action.READ_RULES)

        def look(view: LedgerView) -> Standings:
            return Standings(tuple(view.standings()), view.policy(), view.state())

        return await self._threads.study(look)

    async def spenders(self, who: Identity, rule: str) -> CellBalance:
        """Return what the fullest cell of a rule was charged, and by whom.

        Args:
            who: Who asks.
            rule: The id of a rule over history.

        Raises:
            AccessError: If they may not.
            InputError: If there is no such rule.
        """
        who.must(Action.READ_RULES)
        return await self._threads.study(lambda view: view.spenders(rule))


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
