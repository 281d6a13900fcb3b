"""Releases that are read and priced here, and decided by a server."""

from __future__ import annotations

from typing import Self

from modicum.api.local.evaluation import Description
from modicum.api.local.submit import Submission, prepared, prepared_backfill
from modicum.client.request_encoding import EncodedRequest, encoded
from modicum.client.session import unsupported
from modicum.policy import CompiledPolicy


class RemoteSubmission(Submission, frozen=True):
    """A release that was read and priced, with the request to send.

    The server prices it again, with the same result.

    Attributes:
        sent: The encoded request.
        is_past: Whether it happened before, so that it is counted and not decided.
    """

    sent: EncodedRequest = EncodedRequest(b"")
    is_past: bool = False

    @classmethod
    def made(
        cls,
        release: Description,
        compiled: CompiledPolicy,
        *,
        publish: bool,
        reserve_seconds: int,
    ) -> Self:
        """Return a release to be decided."""
        one = prepared(
            release, compiled, publish=publish, reserve_seconds=reserve_seconds
        )
        return cls._of(one, release, is_past=False)

    @classmethod
    def made_past(cls, release: Description, compiled: CompiledPolicy) -> Self:
        """Return a release to be counted."""
        return cls._of(prepared_backfill(release, compiled), release, is_past=True)

    @classmethod
    def of(cls, one: Submission, *, is_past: bool = False) -> Self:
        """Return a submission that was prepared for this."""
        if not isinstance(one, cls) or one.is_past is not is_past:
            verb = "prepare_backfill" if is_past else "prepare"
            raise unsupported(
                "a release that was prepared elsewhere",
                f"prepare it with  ws.{verb}(…)",
            )
        return one

    @classmethod
    def _of(cls, one: Submission, release: Description, *, is_past: bool) -> Self:
        return cls(
            **{name: getattr(one, name) for name in Submission.__struct_fields__},
            sent=encoded(release),
            is_past=is_past,
        )
