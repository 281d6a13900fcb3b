"""Data sets and contracts of the escrow."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from modicum.api.schema.common import Head
from modicum.api.schema.release import Decision
from modicum.api.schema.shape import Digest, Plain, Shape

#: What flows under a contract.
FlowKind: TypeAlias = Literal["query", "task", "output", "signal", "raw-signal"]
#: The form of the rows of a data set.
Media: TypeAlias = Literal["csv", "parquet"]


class Version(Shape, frozen=True, kw_only=True):
    """A version of a data set."""

    id: str
    version: int


class StoredVersion(Shape, frozen=True, kw_only=True):
    """A version of a data set, in the vault."""

    version: int
    media: Media
    table: str
    entry: int
    by: str
    agreed: bool
    digest: Digest
    shredded: bool
    sealed: Digest


class DataSet(Shape, frozen=True, kw_only=True):
    """A data set: whose it is, its limits, and its versions."""

    data: str
    owners: dict[str, tuple[str, ...]]
    quorum: int
    contracts: int
    bits: int
    versions: tuple[StoredVersion, ...]


class DataSetList(Shape, frozen=True, kw_only=True):
    """The data sets that whoever asks may ask about, or owns."""

    data_sets: tuple[DataSet, ...]


class Consent(Shape, frozen=True, kw_only=True):
    """Where the owners of one data set stand."""

    data: str
    need: int
    missing: int
    approved_by: tuple[str, ...]
    rejected_by: tuple[str, ...]
    left: tuple[str, ...]


class VersionVoteReceipt(Version, frozen=True, kw_only=True):
    """What an owner said just now, and where the version stands after it."""

    digest: Digest
    by: str
    approves: bool
    key: str | None
    entry: int
    repeated: bool
    consent: Consent


class Consents(Shape, frozen=True, kw_only=True):
    """Where all stand whose agreement a contract takes."""

    given: bool
    lacking: str
    people: int
    by_data: tuple[Consent, ...]


class Contract(Shape, frozen=True, kw_only=True):
    """A contract, and what became of it."""

    contract: str
    digest: Digest
    flow: FlowKind
    analyst: str
    recipients: tuple[str, ...]
    by: str
    at: str
    entry: int
    data: dict[str, Version]
    parent: Digest | None
    expires_at: str
    uses: int
    uses_left: int
    withdrawn: bool
    results: tuple[str, ...]
    released: int


class ListedContract(Contract, frozen=True, kw_only=True):
    """A contract as it is listed; `recorded` is there if asked for."""

    stage: str
    consent: Consents
    recorded: Plain | UnsetType = UNSET


class ContractList(Shape, frozen=True, kw_only=True):
    """The contracts that whoever asks takes part in, or may read, oldest first."""

    contracts: tuple[ListedContract, ...]


class ContractVote(Shape, frozen=True, kw_only=True):
    """What an owner said once."""

    by: str
    at: str
    approves: bool
    reason: str
    key: str | None
    entry: int


class ContractVotes(Shape, frozen=True, kw_only=True):
    """Where the owners of a contract stand, and what they said."""

    consent: Consents
    words: tuple[ContractVote, ...]


class PricedQuery(Shape, frozen=True, kw_only=True):
    """A query of a contract, and what the ledger says to it now."""

    release: str
    content: Digest
    text: str
    problem: str | None
    decision: Decision | None


class ProgramRemark(Shape, frozen=True, kw_only=True):
    """Something in a program that is worth a look."""

    line: int
    kind: str
    text: str
    why: str


class Program(Shape, frozen=True, kw_only=True):
    """A program as its owners read it."""

    language: Literal["python", "wasm"]
    catalogue: str | None
    digest: Digest
    code: Digest
    code_base64: str
    text: str | None
    arguments: Plain
    range: tuple[str, ...]
    compares: bool
    tier: str
    seconds: int
    memory_mib: int
    remarks: tuple[ProgramRemark, ...]


class ContractDetails(ListedContract, frozen=True, kw_only=True):
    """A contract as its owners read it before they agree."""

    reason: str
    terms: Plain
    bits: int | None
    words: tuple[ContractVote, ...]
    follows: tuple[str, ...]
    shredded: tuple[str, ...]
    ledger: Head
    queries: tuple[PricedQuery, ...]
    program: Program | None


class ContractVoteReceipt(Shape, frozen=True, kw_only=True):
    """What an owner said just now, and where the contract stands after it."""

    contract: str
    digest: Digest
    by: str
    approves: bool
    key: str | None
    entry: int
    repeated: bool
    consent: Consents


class Bin(Shape, frozen=True, kw_only=True):
    """The ends of the bin that a score lies in."""

    low: str
    high: str


class QueryRisk(Shape, frozen=True, kw_only=True):
    """What an epsilon means for a query, before a row is read; see the reference."""

    contract: str | None
    query: str
    data: Version
    unit: str
    measure: Literal["eps", "rho"]
    asked: str
    loss: str | None
    fits: bool
    note: str


class Disclosed(Shape, frozen=True, kw_only=True):
    """What went out under a contract."""

    contract: str
    flow: FlowKind
    differentially_private: bool
    answers: dict[str, Plain] | None
    score: str | None
    bin: Bin | None
