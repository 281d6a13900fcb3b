"""Work on policies that are not active: checked, compiled, compared, tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from modicum.api import operations
from modicum.api.operations import Operation
from modicum.client.jobs import Job
from modicum.client.problems import SENT, not_understood
from modicum.client.request_encoding import YAML, EncodedRequest
from modicum.client.retry_connection import Connection, Query, Request
from modicum.ops.files.documents import load_policy
from modicum.policy import CompiledPolicy

#: Number of rules per request.
_PAGE: Final = 500


class RemotePolicies:
    """Operations on policies; nothing is written.

    A policy is given compiled, or as the path of its file. Results are plain data, as
    in docs/reference/json.md.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lint(self, policy: CompiledPolicy | str | Path) -> dict[str, Any]:
        """Return what a policy is: `name`, `digest`, `rules`, `warnings` and more."""
        return self._post(operations.LINT_POLICY, policy)

    def compile(self, policy: CompiledPolicy | str | Path) -> dict[str, Any]:
        """Return the compiled policy, with all its rules under `list`."""
        reply = self._post(operations.COMPILE_POLICY, policy, {"limit": _PAGE})
        rules = list(reply["list"])
        while reply["next"] is not None:
            more = {"limit": _PAGE, "cursor": reply["next"]}
            reply = self._post(operations.COMPILE_POLICY, policy, more)
            rules += reply["list"]
        reply["list"] = rules
        del reply["next"]
        return reply

    def diff(
        self, policy: CompiledPolicy | str | Path, *, against: str = "active"
    ) -> dict[str, Any]:
        """Return what a policy tightens and loosens, and where history exceeds it."""
        return self._post(operations.DIFF_POLICY, policy, {"against": against})

    def simulate(self, policy: CompiledPolicy | str | Path) -> Job:
        """Start a simulation of a policy's decisions, release by release."""
        return Job(self._connection, self._post(operations.SIMULATE_POLICY, policy))

    def _post(
        self,
        operation: Operation[Any],
        policy: CompiledPolicy | str | Path,
        query: Query | None = None,
    ) -> dict[str, Any]:
        compiled = policy if isinstance(policy, CompiledPolicy) else load_policy(policy)
        content = policy_sent(compiled)
        reply = self._connection.send(
            Request(operation, query=query or {}, sent=content)
        )
        if not isinstance(reply, dict):
            raise not_understood("it contains no policy")
        return _placed(reply, content.file) if content.file else reply


def policy_sent(policy: CompiledPolicy) -> EncodedRequest:
    """Return a policy as it is sent: its text, with its remarks."""
    own = policy.policy
    marks = (one.mark for one in own.base_policies)
    file = next((mark.file for mark in marks if mark is not None), "")
    return EncodedRequest(own.text.encode(), YAML, file=file)


def _placed(reply: dict[str, Any], file: str) -> dict[str, Any]:
    """Return data about a policy, with the name of its file in each position."""
    for rule in reply.get("list", ()):
        places = (one.removeprefix(f"{SENT}:") for one in rule["source"])
        rule["source"] = [f"{file}:{one}" for one in places]
    for warning in reply.get("warnings", ()):
        if warning["file"] == SENT:
            warning["file"] = file
    return reply
