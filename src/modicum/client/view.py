"""A ledger that a server keeps, as one may look at it: nothing here writes a byte."""

from __future__ import annotations

from typing import Final

from modicum.api import operations
from modicum.api.local.evaluation import Description
from modicum.api.local.submit import Submission
from modicum.api.schema import policy as schema
from modicum.api.schema.policy import RuleBalance, RuleStanding
from modicum.client.decision import RemoteDecision, decision_of
from modicum.client.decoding import named, recorded_release, standing_of
from modicum.client.local_pricing import RemoteSubmission
from modicum.client.log_view import LogView
from modicum.client.problems import not_understood
from modicum.client.request_encoding import EncodedRequest, encoded
from modicum.client.retry_connection import Connection, Query, Request
from modicum.client.session import Session, unsupported
from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.ledger import RecordedRelease, Standing
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.compiler import compile_text

#: Number of rules per request.
_PAGE: Final = 500
#: So often all of them are, until the pages fit together.
_LOOKS: Final = 5
#: Maximum number of spenders of a rule.
_SPENDERS: Final = 100


class PolicyView(Session):
    """The policy of a ledger that a server keeps, and its rules.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._compiled: CompiledPolicy | None = None

    def policy(self) -> CompiledPolicy:
        """Return the policy that the ledger decides by. Writes nothing."""
        reply = self._text_of("active")
        known = self._compiled
        if known is None or known.policy.digest != reply.digest:
            known = compile_text(reply.text.encode(), f"{reply.name} (active)")
            if known.policy.digest != reply.digest:
                raise not_understood("its policy does not match its digest")
            self._compiled = known
        return known

    def policy_text_at(self, seq: int) -> str:
        """Return the text of the policy that held at an entry. Writes nothing."""
        held = [one for one in self._held() if one.entry <= seq]
        if not held:
            return ""
        return self._text_of(held[-1].digest).text

    def standings(self) -> list[RuleStanding]:
        """Return the status of every rule over history. Writes nothing."""
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
                "the ledger changed while its rules were read, page by page",
                help="try again later",
            )
        )

    def loss_of(self, rule: Rule) -> RuleStanding:
        """Return the status of one rule, as `standings` does. Writes nothing."""
        found = self._connection.call(Request(operations.RULE, {"rule": rule.id}))
        if found.standing is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"the rule `{rule.id[:200]}` checks each release alone",
                    help="use one of  standings()",
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
        """Return the charge of the fullest cell of a rule, by release."""
        if (where, periods, groups) != (None, None, None):
            raise unsupported(
                "a part of the cells of a rule",
                "readers of the ledger can use its state at an entry:"
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


class RemoteView(PolicyView, LogView):
    """A read-only view of a ledger on a server. The token identifies the actor.

    Args:
        connection: The server.
    """

    def check(self, release: Description) -> RemoteDecision:
        """Return the decision that `submit` would make now. Writes nothing."""
        return self._check(encoded(release))

    def check_prepared(self, one: Submission, *, actor: str = "") -> RemoteDecision:
        """Return the decision that `submit` would make about a prepared release."""
        if actor not in {"", self.actor}:
            raise unsupported(
                "the response is for another user",
                "connect with their token: the token determines the user",
            )
        return self._check(RemoteSubmission.of(one).sent)

    def standing(self, release: str) -> Standing:
        """Return the status of a release. Writes nothing."""
        request = Request(operations.RELEASE, named(release))
        return standing_of(self._connection.send(request))

    def release_of(self, standing: Standing) -> RecordedRelease:
        """Return the contents and loss of a release, as stored. Writes nothing.

        Args:
            standing: Its status in this ledger.

        Raises:
            UnavailableError: If the server returns another release.
        """
        request = Request(operations.RELEASE, named(standing.id), {"recorded": True})
        reply = self._connection.send(request)
        found = recorded_release(reply.get("recorded"))
        if (found.id, found.content) != (standing.id, standing.content):
            raise not_understood("it is about another release")
        return found

    def _check(self, content: EncodedRequest) -> RemoteDecision:
        request = Request(operations.CHECK_RELEASE, query={"text": True}, sent=content)
        return decision_of(self._connection.send(request), self._connection, content)
