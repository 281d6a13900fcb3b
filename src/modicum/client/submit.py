"""Submission of releases to a server: one by one, or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from modicum.api import operations
from modicum.api.local.evaluation import Description
from modicum.api.local.submit import RESERVATION_SECONDS, Submission
from modicum.client.decision import RemoteDecision, decision_of
from modicum.client.local_pricing import RemoteSubmission
from modicum.client.problems import mistake_in
from modicum.client.release_batches import answers_in, batches_of, together
from modicum.client.request_encoding import EncodedRequest, encoded
from modicum.client.retry_connection import Request
from modicum.client.view import RemoteView
from modicum.core.errors import Code, InputError, ModicumError, UnavailableError

_STEP_TAKEN = (
    "the release may be reserved: check with  ws.standing(ID)  , or submit it again:"
    " the same id is one release"
)


class RemoteSubmit(RemoteView):
    """A ledger on a server that accepts releases.

    Args:
        connection: The server.
    """

    def submit(
        self,
        release: Description,
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
    ) -> RemoteDecision:
        """Decide a release and, if it is allowed, reserve its loss.

        Submitting the same id with the same contents again changes nothing. A denial is
        recorded and spends nothing; its id may be submitted again.
        """
        return self._submit(
            encoded(release), publish=publish, reserve_seconds=reserve_seconds
        )

    def prepare(
        self,
        release: Description,
        *,
        publish: bool = False,
        reserve_seconds: int = RESERVATION_SECONDS,
    ) -> Submission:
        """Return a release for `submit_many`, read and priced here. Writes nothing."""
        return RemoteSubmission.made(
            release, self.policy(), publish=publish, reserve_seconds=reserve_seconds
        )

    def submit_many(
        self, submissions: Sequence[Submission]
    ) -> list[RemoteDecision | ModicumError]:
        """Decide releases one after the other; each is durable by itself.

        They are sent together. Should the server be lost meanwhile, repeat all of them:
        the same id with the same contents is one release.
        """
        found: list[RemoteDecision | ModicumError] = []
        for some in batches_of([RemoteSubmission.of(one) for one in submissions]):
            answers = self._submit_batch(some) if len(some) > 1 else None
            if answers is None:
                answers = [_or_mistake(self._submit_prepared, one) for one in some]
            found += answers
        return found

    def backfill(self, release: Description) -> RemoteDecision:
        """Count a release that happened before. It cannot be denied."""
        return self._record(encoded(release))

    def prepare_backfill(self, release: Description) -> Submission:
        """Return a past release for `backfill_many`. Writes nothing."""
        return RemoteSubmission.made_past(release, self.policy())

    def backfill_many(
        self, submissions: Sequence[Submission]
    ) -> list[RemoteDecision | ModicumError]:
        """Count releases that happened before, one after the other."""
        each = [RemoteSubmission.of(one, is_past=True) for one in submissions]
        return [_or_mistake(self._record, one.sent) for one in each]

    # --- inside ---

    def _submit(
        self, content: EncodedRequest, *, publish: bool, reserve_seconds: int
    ) -> RemoteDecision:
        request = Request(
            operations.SUBMIT_RELEASE,
            query={
                "publish": publish,
                "reserve_seconds": reserve_seconds,
                "text": True,
            },
            sent=content,
            step="reserved the loss of the release",
        )
        return self._decide(request, content)

    def _submit_prepared(self, one: RemoteSubmission) -> RemoteDecision:
        return self._submit(
            one.sent, publish=one.publish, reserve_seconds=one.reserve_seconds
        )

    def _submit_batch(
        self, some: Sequence[RemoteSubmission]
    ) -> list[RemoteDecision | ModicumError] | None:
        """Submit releases together; None if the server takes only single ones."""
        request = Request(
            operations.SUBMIT_BATCH,
            query={
                "publish": some[0].publish,
                "reserve_seconds": some[0].reserve_seconds,
                "text": True,
            },
            sent=EncodedRequest(together(some)),
            step="reserved the loss of the releases",
        )
        try:
            reply = self._connection.send(request)
        except InputError as refused:
            # An older server does not know the path; another may limit bodies further.
            if refused.code not in (Code.NOT_FOUND, Code.NOT_ACCEPTED, Code.TOO_LARGE):
                raise
            return None
        answers = answers_in(reply, len(some))
        return [
            self._answered(answer, one.sent)
            for answer, one in zip(answers, some, strict=True)
        ]

    def _answered(
        self, answer: dict[str, Any], content: EncodedRequest
    ) -> RemoteDecision | ModicumError:
        """Return the decision about a release of a batch, or its mistake."""
        problem = answer.get("problem")
        if problem is not None:
            return mistake_in(problem, content).alone()
        return self._decided(answer.get("decision"), content)

    def _record(self, content: EncodedRequest) -> RemoteDecision:
        request = Request(
            operations.BACKFILL,
            query={"text": True},
            sent=content,
            step="recorded the release",
        )
        return self._decide(request, content)

    def _decide(self, request: Request[Any], content: EncodedRequest) -> RemoteDecision:
        return self._decided(self._connection.send(request), content)

    def _decided(self, reply: Any, content: EncodedRequest) -> RemoteDecision:
        try:
            if isinstance(reply, dict) and reply.get("text") is None:
                reply = self._told_again(reply, content)
            return decision_of(reply, self._connection, content)
        except UnavailableError as error:
            # The step was executed, whatever the response looks like.
            raise UnavailableError(
                replace(error.problems[0], help=_STEP_TAKEN)
            ) from error

    def _told_again(self, reply: dict[str, Any], content: EncodedRequest) -> Any:
        """Return a decision with its text, which the stored response lacks.

        It keeps a short answer for a step whose first one was lost. That one counts,
        even if the release would be decided otherwise by now.
        """
        again = Request(operations.CHECK_RELEASE, query={"text": True}, sent=content)
        now = self._connection.send(again)
        if not isinstance(now, dict) or any(
            now.get(key) != reply.get(key)
            for key in ("decision", "over_limit", "unmatched")
        ):
            return {**reply, "losses": reply.get("losses") or []}
        # A repeated step gets the first response, not that the release is already
        # accepted.
        keys = ("status", "retry", "expires_at", "blocking")
        first = {key: reply.get(key) for key in keys}
        if not now.get("retry"):
            return {**now, **first}
        return {**now, **first, "text": None}


def _or_mistake(
    decide: Callable[[Any], RemoteDecision], one: Any
) -> RemoteDecision | ModicumError:
    """Return a decision, or the mistake that is made of one release alone."""
    try:
        return decide(one)
    except UnavailableError:
        raise
    except ModicumError as mistake:
        return mistake
