"""Requests to a server's escrow: queries, tasks, and disclosures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from msgspec import UNSET

from modicum.api import operations
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.ports.escrow import Limits
from modicum.api.schema.approval import Reason
from modicum.api.schema.escrow_input import (
    BlocksInput,
    ContractProposal,
    OutputProposal,
    ProgramInput,
    QueryProposal,
    RawSignalProposal,
    SignalProposal,
    TaskProposal,
)
from modicum.client.decoding import decoded, flow_of, named
from modicum.client.request_encoding import sent
from modicum.client.retry_connection import Request
from modicum.client.view import RemoteView
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program
from modicum.ledger.state.flow import Flow

#: The path of contracts.


class RemoteEscrowProposals:
    """Requests to a server's escrow. The token identifies the actor.

    Args:
        view: The ledger.
    """

    def __init__(self, view: RemoteView) -> None:
        self._view = view
        self._connection = view.connection

    # --- requests ---

    def submit_query(
        self, heading: Purpose, queries: Sequence[str], *, exact: bool = False
    ) -> Flow:
        """Request to run queries on registered data and withhold their answers."""
        return self._propose(
            QueryProposal(
                **_fields(heading),
                queries=tuple(queries),
                exact=exact,
                analyst=heading.analyst or UNSET,
            )
        )

    def submit_task(
        self,
        heading: Purpose,
        query: str,
        program: Program,
        *,
        tier: str | None = None,
        limits: Limits | None = None,
        blocks: ByBlocks | None = None,
    ) -> Flow:
        """Request to run a program on withheld answers and withhold its scores."""
        given = limits or Limits()
        return self._propose(
            TaskProposal(
                **_fields(heading),
                query=query,
                program=ProgramInput(
                    language=program.language,
                    code_base64=base64.b64encode(program.code).decode("ascii"),
                    arguments=dict(program.arguments),
                    range=(program.range.low, program.range.high),
                    compares=program.compares,
                    catalogue=program.catalogue,
                ),
                tier=tier or UNSET,
                seconds=int(given.seconds),
                memory_mib=given.memory_mib,
                blocks=UNSET if blocks is None else _blocks(blocks),
            )
        )

    def submit_output(self, heading: Purpose, query: str) -> Flow:
        """Request the disclosure of private answers."""
        own = {**_fields(heading), "to": tuple(heading.recipients)}
        return self._propose(OutputProposal(query=query, **own))

    def submit_signal(self, heading: Purpose, task: str) -> Flow:
        """Request the disclosure of the score on private answers."""
        own = {**_fields(heading), "to": tuple(heading.recipients)}
        return self._propose(SignalProposal(task=task, **own))

    def submit_raw_signal(
        self, heading: Purpose, task: str, *, width: Fraction | None
    ) -> Flow:
        """Request the disclosure of the score on exact answers, without any epsilon."""
        own = {**_fields(heading), "to": tuple(heading.recipients)}
        if width is None:
            return self._propose(RawSignalProposal(task=task, exact=True, **own))
        return self._propose(RawSignalProposal(task=task, width=Fraction(width), **own))

    def withdraw(self, name: str, *, reason: str) -> Flow:
        """Withdraw a contract as its requester or one of its recipients."""
        content = sent(Reason(reason=reason))
        step = f"withdrawn the contract `{name}`"
        ids = named(name, "name")
        self._connection.send(
            Request(operations.WITHDRAW_CONTRACT, ids, sent=content, step=step)
        )
        return flow_of(self._one(name))

    # --- inside ---

    def _propose(self, form: ContractProposal) -> Flow:
        request = Request(
            operations.PROPOSE_CONTRACT,
            sent=sent(form),
            step=f"requested the contract `{form.contract}`",
        )
        self._connection.send(request)
        return flow_of(self._one(form.contract))

    def _one(self, name: str) -> dict[str, Any]:
        request = Request(operations.CONTRACT, named(name, "name"), {"recorded": True})
        return decoded(dict[str, Any], self._connection.send(request))


def _fields(heading: Purpose) -> dict[str, Any]:
    return {
        "contract": heading.id,
        "reason": heading.reason,
        "lasts_seconds": heading.lasts_seconds,
        "uses": UNSET if heading.uses is None else heading.uses,
    }


def _blocks(blocks: ByBlocks) -> BlocksInput:
    return BlocksInput(
        number=blocks.number,
        loss=blocks.loss,
        unit=blocks.unit or UNSET,
        noise=blocks.noise,
    )
