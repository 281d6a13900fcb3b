"""What a server tells of the escrow, as values."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from modicum.api.local.escrow.approvals import SaidToData
from modicum.api.local.escrow.disclosure import LetGo
from modicum.api.local.views.contracts import recorded_flow
from modicum.api.schema import escrow as schema
from modicum.api.schema.shape import plain
from modicum.client.problems import not_understood
from modicum.client.told import decoded
from modicum.core.errors import InputError
from modicum.escrow.programs import Program, Range
from modicum.ledger.log.contracts import Version
from modicum.ledger.state.consent import Consent, Consents, Ownership
from modicum.ledger.state.datasets import DataSet, DataVersion
from modicum.ledger.state.flow import Flow


def version_of(told: object) -> Version:
    """Return a version of a data set."""
    one = decoded(schema.Version, told)
    return Version(one.id, one.version)


def data_of(told: object) -> dict[str, DataSet]:
    """Return data sets, by name."""
    return {
        one.data: DataSet(
            Ownership(one.owners, one.quorum),
            one.contracts,
            one.bits,
            {
                each.version: DataVersion(
                    each.sealed,
                    each.media,
                    each.table,
                    each.entry,
                    each.by,
                    each.agreed,
                    each.shredded,
                )
                for each in one.versions
            },
        )
        for one in decoded(schema.DataSetList, told).data_sets
    }


def flow_of(told: Mapping[str, Any]) -> Flow:
    """Return a contract; it is what its digest says."""
    try:
        flow = recorded_flow(decoded(dict[str, Any], told.get("recorded")))
    except ValueError as error:
        raise not_understood(str(error)).alone() from None
    if flow.contract.digest != told.get("digest"):
        raise not_understood("its contract is not the one that it names").alone()
    return flow


def consents_of(one: schema.Consents) -> Consents:
    """Return where the owners stand whose agreement a contract takes."""
    return Consents(tuple(map(_consent_of, one.by_data)), one.people)


def _consent_of(one: schema.Consent) -> Consent:
    return Consent(one.data, one.need, one.approved_by, one.rejected_by, one.left)


def program_of(told: object) -> Program | None:
    """Return a program; it is what its digest says. None if there is none."""
    if told is None:
        return None
    one = decoded(schema.Program, told)
    try:
        low, high = map(Fraction, one.range)
        program = Program(
            one.language,
            base64.b64decode(one.code_base64, validate=True),
            one.arguments,
            Range(low, high),
            one.compares,
            one.catalogue or "",
        )
    except (ValueError, ZeroDivisionError, InputError) as error:
        raise not_understood("its program is none").alone() from error
    if program.digest != one.digest:
        raise not_understood("its program is not the one that it names").alone()
    return program


def said_to_data_of(told: object) -> SaidToData:
    """Return what an owner said to a version of their data."""
    one = decoded(schema.VersionVoteReceipt, told)
    return SaidToData(
        Version(one.id, one.version),
        one.digest,
        one.by,
        one.approves,
        _consent_of(one.consent),
        one.entry,
        one.repeated,
        one.key or "",
    )


def let_go_of(told: object) -> LetGo:
    """Return what went out."""
    one = decoded(schema.Disclosed, told)
    return LetGo(
        one.contract,
        one.flow,
        one.differentially_private,
        one.answers,
        one.score,
        None if one.bin is None else plain(one.bin),
    )
