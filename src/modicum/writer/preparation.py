"""Preparation of requests for the queue.

It runs in the thread of the client, so that reading and pricing a release blocks nobody
else. Only fast requests are left to the writer (see `price_cache`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import Error, deepcopy
from functools import partial
from typing import TypedDict, Unpack

from modicum.api.local import Clock
from modicum.api.local.evaluation import Description
from modicum.api.local.submit import Submitter, prepared, prepared_backfill
from modicum.core.document import from_python
from modicum.core.errors import Code, Problem, UsageError
from modicum.ops.wiring import printable_actor
from modicum.policy import CompiledPolicy
from modicum.policy.model import ReservationBound
from modicum.release import ReleaseDraft
from modicum.writer.group_commit import GroupCommit
from modicum.writer.idempotency import Work
from modicum.writer.price_cache import Plain, PriceCache
from modicum.writer.queue import QueuedRequest, not_read


class SubmitOptions(TypedDict):
    """The options of a submission; see `Decider.submit`."""

    publish: bool
    reserve_seconds: int
    bound: ReservationBound | None


class Preparation:
    """Prepares the requests of clients; any thread may use it.

    Args:
        desk: The queue; it knows the deciding policy.
        ledger: The display name of the ledger.
        clock: The time of day.
        policy: The policy that the clients mean; None for the active one.
        actor: The default actor.
    """

    def __init__(
        self,
        desk: GroupCommit,
        ledger: str,
        clock: Clock,
        policy: CompiledPolicy | None,
        actor: str,
    ) -> None:
        self._desk = desk
        self._ledger = ledger
        self._bringing_in = Submitter(ledger, clock)
        self._means_active = policy is None
        self._actor = actor
        self._familiar = PriceCache()

    def signed(self, actor: str) -> str:
        """Return the name that is written into events."""
        return printable_actor(actor) if actor else self._actor

    def compiled(self) -> CompiledPolicy:
        """Return the policy that is decided by, as far as the writer has read."""
        self._desk.open_only()
        compiled = self._desk.policy
        if compiled is None:
            raise UsageError(
                Problem(
                    Code.NO_POLICY,
                    f"{self._ledger} has no active policy",
                    help="give one with  --policy policy.yaml",
                )
            )
        return compiled

    def queued(
        self, release: Description, actor: str, **how: Unpack[SubmitOptions]
    ) -> QueuedRequest:
        """Return who waits for a decision, and for nothing else meanwhile.

        The release is left to the writer to read if its like was read before. Should
        the writer find a mistake, the client is to find it, too: see `submission`.
        """
        plain, compiled = Plain.of(release), self.compiled()
        known = self._known(plain, compiled, actor, how)
        if known is not None:
            return known
        waiting = self.submission(release, actor, **how)
        if plain is not None:
            self._familiar.note(plain, compiled)
        return waiting

    def known(
        self, release: Description, actor: str, **how: Unpack[SubmitOptions]
    ) -> QueuedRequest | None:
        """Return the same, if that takes no time; else None."""
        return self._known(Plain.of(release), self.compiled(), actor, how)

    def _known(
        self,
        plain: Plain | None,
        compiled: CompiledPolicy,
        actor: str,
        how: SubmitOptions,
    ) -> QueuedRequest | None:
        if plain is None or type(how["reserve_seconds"]) is not int:
            return None
        if not self._familiar.knows(plain, compiled):
            return None

        def work(compiled: CompiledPolicy) -> Work:
            one = prepared(plain.read(), compiled, **how)
            return partial(self._bringing_in.answer, one)

        again = work if self._means_active else None
        unread = partial(work, compiled)
        return QueuedRequest(not_read, self.signed(actor), again, unread)

    def submission(
        self, release: Description, actor: str, **how: Unpack[SubmitOptions]
    ) -> QueuedRequest:
        """Return who waits for a decision on a release."""
        own = self._kept(release)

        def work(compiled: CompiledPolicy) -> Work:
            return partial(self._bringing_in.answer, prepared(own, compiled, **how))

        return self._waiting(work, actor)

    def past(self, release: Description, actor: str) -> QueuedRequest:
        """Return who waits for a past release to be counted."""
        own = self._kept(release)

        def work(compiled: CompiledPolicy) -> Work:
            return partial(self._bringing_in.count, prepared_backfill(own, compiled))

        return self._waiting(work, actor)

    def _kept(self, release: Description) -> Description:
        """Return a release that is read again should the policy be replaced.

        By then the caller may have made another one of the same mapping.
        """
        if not self._means_active:
            return release
        plain = Plain.of(release)  # Many times faster than a copy.
        if plain is not None:
            return plain.read()
        try:
            return deepcopy(release)
        except (Error, RecursionError, TypeError):
            # Not all that can be read can be copied, and not all is data.
            if isinstance(release, ReleaseDraft):
                return release.to_node()
            return from_python(release)

    def _waiting(
        self, work: Callable[[CompiledPolicy], Work], actor: str
    ) -> QueuedRequest:
        """Return who waits for work that depends on the policy."""
        again = work if self._means_active else None
        return QueuedRequest(work(self.compiled()), self.signed(actor), again)
