"""What people ask of the escrow of a server: queries, tasks, and what is to go out."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from modicum.api import operations
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.ports.escrow import Limits
from modicum.client.decoding import decoded, flow_of, named
from modicum.client.request_encoding import EncodedRequest, encoded
from modicum.client.retry_connection import Request
from modicum.client.view import RemoteView
from modicum.core.rationals import number_text
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program
from modicum.ledger.state.flow import Flow

#: Where contracts are.


class RemoteEscrowProposals:
    """What somebody asks of the escrow of a server. The token says who they are.

    Args:
        view: The ledger.
    """

    def __init__(self, view: RemoteView) -> None:
        self._view = view
        self._connection = view.connection

    # --- asking ---

    def ask_query(
        self, heading: Purpose, queries: Sequence[str], *, exact: bool = False
    ) -> Flow:
        """Ask that queries are run on registered data, and their answers withheld."""
        named = {"analyst": heading.analyst} if heading.analyst else {}
        own = {"queries": list(queries), "exact": exact, **named}
        return self._ask("query", heading, own)

    def ask_task(
        self,
        heading: Purpose,
        query: str,
        program: Program,
        *,
        tier: str | None = None,
        limits: Limits | None = None,
        blocks: ByBlocks | None = None,
    ) -> Flow:
        """Ask that a program runs on withheld answers, and its scores are withheld."""
        given = limits or Limits()
        own: dict[str, object] = {
            "query": query,
            "program": {
                "language": program.language,
                "code_base64": base64.b64encode(program.code).decode("ascii"),
                "arguments": dict(program.arguments),
                "range": [str(program.range.low), str(program.range.high)],
                "compares": program.compares,
                "catalogue": program.catalogue,
            },
            **({"tier": tier} if tier is not None else {}),
            "seconds": int(given.seconds),
            "memory_mib": given.memory_mib,
        }
        if blocks is not None:
            unit = {"unit": blocks.unit} if blocks.unit else {}
            own["blocks"] = {
                "number": blocks.number,
                "loss": number_text(blocks.loss),
                "noise": blocks.noise,
                **unit,
            }
        return self._ask("task", heading, own)

    def ask_output(self, heading: Purpose, query: str) -> Flow:
        """Ask that private answers go out."""
        return self._ask("output", heading, {"query": query, **_to(heading)})

    def ask_signal(self, heading: Purpose, task: str) -> Flow:
        """Ask that the score on private answers goes out."""
        return self._ask("signal", heading, {"task": task, **_to(heading)})

    def ask_raw_signal(
        self, heading: Purpose, task: str, *, width: Fraction | None
    ) -> Flow:
        """Ask that the score on exact answers goes out, which no epsilon describes."""
        told = {"exact": True} if width is None else {"width": str(Fraction(width))}
        own = {"task": task, **told, **_to(heading)}
        return self._ask("raw-signal", heading, own)

    def withdraw(self, name: str, *, reason: str) -> Flow:
        """Take back a contract that one asked for, or that gives one something."""
        content = encoded({"reason": reason})
        step = f"withdrawn the contract `{name}`"
        ids = named(name, "name")
        self._connection.ask(
            Request(operations.WITHDRAW_CONTRACT, ids, sent=content, step=step)
        )
        return flow_of(self._one(name))

    # --- inside ---

    def _ask(self, flow: str, heading: Purpose, own: Mapping[str, object]) -> Flow:
        uses = {} if heading.uses is None else {"uses": heading.uses}
        form = {
            "flow": flow,
            "contract": heading.id,
            "reason": heading.reason,
            "lasts_seconds": heading.lasts_seconds,
            **uses,
            **own,
        }
        request = Request(
            operations.PROPOSE_CONTRACT,
            sent=EncodedRequest(msgspec.json.encode(form)),
            step=f"asked for the contract `{heading.id}`",
        )
        self._connection.ask(request)
        return flow_of(self._one(heading.id))

    def _one(self, name: str) -> dict[str, Any]:
        request = Request(operations.CONTRACT, named(name, "name"), {"recorded": True})
        return decoded(dict[str, Any], self._connection.ask(request))


def _to(heading: Purpose) -> dict[str, object]:
    return {"to": list(heading.recipients)} if heading.recipients else {}
