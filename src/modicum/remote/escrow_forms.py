"""What a server tells of the escrow, as values."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

import msgspec

from modicum.core.errors import InputError
from modicum.escrow.programs import Program, Range
from modicum.ledger.log.contracts import Version
from modicum.ledger.state.consent import Consent, Consents, Ownership
from modicum.ledger.state.data_sets import DataSet, DataVersion
from modicum.ledger.state.flow import Flow
from modicum.remote.mistakes import not_understood
from modicum.remote.told import plain_as
from modicum.workspace.documents.contracts import recorded_flow
from modicum.workspace.escrowing.letting_go import LetGo
from modicum.workspace.escrowing.speaking import SaidToData


class _ToldVersion(msgspec.Struct):
    id: str
    version: int


class _KeptVersion(msgspec.Struct):
    version: int
    media: str
    table: str
    entry: int
    by: str
    agreed: bool
    shredded: bool
    sealed: str


class _ToldData(msgspec.Struct):
    data: str
    owners: dict[str, tuple[str, ...]]
    quorum: int
    contracts: int
    bits: int
    versions: tuple[_KeptVersion, ...]


class _ToldConsent(msgspec.Struct):
    data: str
    need: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    left: tuple[str, ...]


class _ToldConsents(msgspec.Struct):
    people: int
    by_data: tuple[_ToldConsent, ...]


class _ToldProgram(msgspec.Struct):
    language: Literal["python", "wasm"]
    catalogue: str | None
    digest: str
    code_base64: str
    arguments: dict[str, Any]
    range: tuple[str, str]
    compares: bool


class ToldSaid(msgspec.Struct):
    """What an owner said to a contract.

    Attributes:
        contract: What it is called.
        digest: Its content.
        by: Who.
        approves: Whether they agree.
        key: The public key that signed it, in hexadecimal; None if nobody did.
        entry: The number of the entry.
        repeated: Whether it is what they said last.
        consent: Where the owners stand.
    """

    contract: str
    digest: str
    by: str
    approves: bool
    key: str | None
    entry: int
    repeated: bool
    consent: dict[str, Any]


class _ToldSaidToData(msgspec.Struct):
    id: str
    version: int
    digest: str
    by: str
    approves: bool
    key: str | None
    entry: int
    repeated: bool
    consent: _ToldConsent


class _ToldLetGo(msgspec.Struct):
    contract: str
    flow: str
    differentially_private: bool
    answers: dict[str, dict[str, Any]] | None
    score: str | None
    bin: dict[str, str] | None


def version_of(told: object) -> Version:
    """Return a version of a data set."""
    one = plain_as(_ToldVersion, told)
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
        for one in plain_as(tuple[_ToldData, ...], told)
    }


def flow_of(told: Mapping[str, Any]) -> Flow:
    """Return a contract; it is what its digest says."""
    try:
        flow = recorded_flow(plain_as(dict[str, Any], told.get("recorded")))
    except ValueError as error:
        raise not_understood(str(error)).alone() from None
    if flow.contract.digest != told.get("digest"):
        raise not_understood("its contract is not the one that it names").alone()
    return flow


def consents_of(told: object) -> Consents:
    """Return where the owners stand whose agreement a contract takes."""
    one = plain_as(_ToldConsents, told)
    return Consents(tuple(map(_consent_of, one.by_data)), one.people)


def _consent_of(one: _ToldConsent) -> Consent:
    return Consent(one.data, one.need, one.approved_by, one.rejected_by, one.left)


def program_of(told: object) -> Program | None:
    """Return a program; it is what its digest says. None if there is none."""
    if told is None:
        return None
    one = plain_as(_ToldProgram, told)
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
    one = plain_as(_ToldSaidToData, told)
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
    one = plain_as(_ToldLetGo, told)
    return LetGo(
        one.contract,
        one.flow,
        one.differentially_private,
        one.answers,
        one.score,
        one.bin,
    )
