"""A decider's ledger, as those see it who govern it, plan on it, or use its escrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.decision import Decision
from modicum.api.local.ledger_view import LedgerView
from modicum.core.document import Node
from modicum.ledger import Standing
from modicum.policy import CompiledPolicy
from modicum.writer.idempotency import IdempotencyKey

T = TypeVar("T")


class Serving(Protocol):
    """The decider operations that governance needs; see there."""

    def turn(
        self,
        work: Callable[[Entry], T],
        *,
        actor: str = "",
        once: IdempotencyKey | None = None,
    ) -> T:
        """Return the result of some work in a turn."""
        ...

    def check(self, release: Node, *, actor: str = "") -> Decision:
        """Return the decision that `submit` would make now."""
        ...

    def submit(self, release: Node, *, actor: str = "") -> Decision:
        """Decide a release and, if it is allowed, reserve its loss."""
        ...

    def start(self, release: str, *, actor: str = "") -> Standing:
        """Note that rows are about to be read."""
        ...

    def publish(self, release: str, *, actor: str = "") -> Standing:
        """Mark a started release as published."""
        ...

    def cancel(self, release: str, *, reason: str, actor: str = "") -> Standing:
        """Give up a reservation that was not started."""
        ...


@dataclass(frozen=True, slots=True)
class Governed:
    """The ledger of a decider, for one actor and one thread.

    Attributes:
        decider: Decides.
        view: A view for this thread.
        actor: The actor.
        once: The idempotency key of the turn; for methods that take one turn.
    """

    decider: Serving
    view: LedgerView
    actor: str
    once: IdempotencyKey | None = None

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Return the result of some work in a turn; its events are durable."""
        return self.decider.turn(work, actor=self.actor, once=self.once)

    def current(self, *, deciding: bool = False) -> tuple[LedgerBalances, Reader, str]:
        """Return the book, its reader, and the time."""
        return self.view.current(deciding=deciding)

    def policy(self) -> CompiledPolicy:
        """Return the policy that is decided by."""
        return self.view.policy()

    # --- releases ---

    def check(self, release: Node) -> Decision:
        """Return the decision that `submit` would make now."""
        return self.decider.check(release, actor=self.actor)

    def submit(self, release: Node) -> Decision:
        """Decide a release and, if it is allowed, reserve its loss."""
        return self.decider.submit(release, actor=self.actor)

    def cancel(self, release: str, *, reason: str) -> Standing:
        """Give up a reservation that was not started."""
        return self.decider.cancel(release, reason=reason, actor=self.actor)

    def start(self, release: str) -> Standing:
        """Note that rows are about to be read."""
        return self.decider.start(release, actor=self.actor)

    def publish(self, release: str) -> Standing:
        """Mark a started release as published."""
        return self.decider.publish(release, actor=self.actor)
