"""The policy that a server decides by, and where its rules stand."""

from __future__ import annotations

from typing import Final

from modicum.api import operations
from modicum.api.schema import policy as schema
from modicum.api.schema.policy import RuleBalance, RuleStanding
from modicum.client.elsewhere import not_from_here
from modicum.client.problems import not_understood
from modicum.client.retry_connection import Connection, Query, Request
from modicum.client.session import Asking
from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.compiler import compile_text

#: So many rules are asked for at once.
_PAGE: Final = 500
#: So often all of them are, until the pages fit together.
_LOOKS: Final = 5
#: So many spenders of a rule are told.
_SPENDERS: Final = 100


class PolicyView(Asking):
    """The policy of a ledger that a server keeps, and its rules.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._compiled: CompiledPolicy | None = None

    def policy(self) -> CompiledPolicy:
        """Return the policy that the ledger decides by. Writes nothing.

        Raises:
            InputError: If none is active.
        """
        told = self._text_of("active")
        known = self._compiled
        if known is None or known.policy.digest != told.digest:
            known = compile_text(told.text.encode(), f"{told.name} (active)")
            if known.policy.digest != told.digest:
                raise not_understood("its policy has another digest than it says")
            self._compiled = known
        return known

    def policy_text_at(self, seq: int) -> str:
        """Return the text of the policy that held at an entry. Writes nothing.

        Args:
            seq: The number of the entry.

        Returns:
            The text; empty if none held yet.
        """
        held = [one for one in self._held() if one.entry <= seq]
        if not held:
            return ""
        return self._text_of(held[-1].digest).text

    def standings(self) -> list[RuleStanding]:
        """Return where every rule over history stands. Writes nothing.

        Raises:
            UnavailableError: If entries come in between the pages of a long list,
                however often it is asked anew.
        """
        for _ in range(_LOOKS):
            found: list[RuleStanding] = []
            heads: set[str] = set()
            cursor: str | None = ""
            while cursor is not None:
                query: Query = {"limit": _PAGE, "cursor": cursor}
                page = self._connection.call(Request(operations.RULES, query=query))
                found += page.rules
                heads.add(page.ledger.head)
                cursor = page.next
            if len(heads) == 1:
                return found
        raise UnavailableError(
            Problem(
                Code.LEDGER_BUSY,
                "the ledger goes on while its rules are asked for, page by page",
                help="try again later",
            )
        )

    def loss_of(self, rule: Rule) -> RuleStanding:
        """Return where one rule stands, as `standings` does. Writes nothing.

        Args:
            rule: A rule over history.

        Raises:
            InputError: If the active policy has no such rule.
            UsageError: If it looks at one release alone.
        """
        found = self._connection.call(Request(operations.RULE, {"rule": rule.id}))
        if found.standing is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"the rule `{rule.id[:200]}` looks at one release alone",
                    help="ask for one of those that  standings()  tells",
                )
            )
        return found.standing

    def spenders(
        self,
        rule: str,
        *,
        where: object = None,
        periods: object = None,
        groups: object = None,
    ) -> RuleBalance:
        """Return what the fullest cell of a rule was charged, and by whom.

        Args:
            rule: The id of a rule over history.
            where: All cells are looked at: None.
            periods: As `where`.
            groups: As `where`.

        Raises:
            InputError: If there is no such rule.
            UsageError: If only a part of the cells is to be looked at.
        """
        if (where, periods, groups) != (None, None, None):
            raise not_from_here(
                "a part of the cells of a rule",
                "who may read the ledger asks it as it was:"
                "  ws.as_of(ws.head().seq).spenders(…)",
            )
        query: Query = {"rule": rule, "most": _SPENDERS}
        return self._connection.call(Request(operations.RULE_BALANCE, query=query))

    @property
    def active_since(self) -> int:
        """The number of the entry that activated the policy; 0 if there is none."""
        return max((one.entry for one in self._held()), default=0)

    def _held(self) -> tuple[schema.PolicyItem, ...]:
        return self._connection.call(Request(operations.POLICIES)).policies

    def _text_of(self, digest: str) -> schema.PolicyText:
        return self._connection.call(Request(operations.POLICY, {"digest": digest}))
