"""Data sets and contracts of the escrow."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from modicum.api.schema.approval import Agreement, Asked, OwnerVote, Receipt
from modicum.api.schema.ledger import Head
from modicum.api.schema.release import Decision
from modicum.api.schema.shape import Digest, Plain, Shape

#: What flows under a contract.
FlowKind: TypeAlias = Literal["query", "task", "output", "signal", "raw-signal"]
#: The form of the rows of a data set.
Media: TypeAlias = Literal["csv", "parquet"]


class Version(Shape, frozen=True, kw_only=True):
    """A version of a data set.

    Attributes:
        id: The data set.
        version: The number of the version.
    """

    id: str
    version: int


class StoredVersion(Shape, frozen=True, kw_only=True):
    """A version of a data set, in the vault.

    Attributes:
        version: Its number.
        media: How its rows are written.
        table: The tables file that declares it.
        entry: The entry that registered it.
        by: Who registered it.
        agreed: Whether enough owners agreed to it; nothing flows from it before.
        digest: The digest of what owners agree to.
        shredded: Whether it was destroyed.
        sealed: SHA-256 of its encrypted bytes.
    """

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
    """A data set: whose it is, its limits, and its versions.

    Attributes:
        data: What it is called.
        owners: Whose it is.
        quorum: So many owners must agree.
        contracts: So many contracts may be open for one analyst.
        bits: So many bits may one person be told outside differential privacy.
        versions: Its versions, oldest first.
    """

    data: str
    owners: dict[str, tuple[str, ...]]
    quorum: int
    contracts: int
    bits: int
    versions: tuple[StoredVersion, ...]


class DataSetList(Shape, frozen=True, kw_only=True):
    """The data sets that whoever asks may ask about, or owns.

    Attributes:
        data_sets: The data sets.
    """

    data_sets: tuple[DataSet, ...]


class Consent(Agreement, frozen=True, kw_only=True):
    """Where the owners of one data set stand.

    Attributes:
        data: Which.
    """

    data: str


class VersionVoteReceipt(Receipt, frozen=True, kw_only=True):
    """A vote that an owner cast just now, and where the version stands after it.

    Attributes:
        id: The data set.
        version: The number of the version.
        digest: The digest of what owners agree to.
        consent: Where its owners stand now.
    """

    id: str
    version: int
    digest: Digest
    consent: Consent


class Consents(Shape, frozen=True, kw_only=True):
    """Where all stand whose agreement a contract takes.

    Attributes:
        given: Whether all have agreed that must.
        lacking: What is missing, in words; empty if nothing is.
        people: So many people must agree in all.
        by_data: Where the owners of each data set stand.
    """

    given: bool
    lacking: str
    people: int
    by_data: tuple[Consent, ...]


class Contract(Asked, frozen=True, kw_only=True):
    """A contract, and what became of it.

    Attributes:
        contract: What it is called.
        digest: Its digest: what owners agree to.
        flow: `query`, `task`, `output`, `signal` or `raw-signal`.
        analyst: For whom it is.
        recipients: Who may have what goes out; empty of what only runs.
        data: What it reads.
        parent: The digest of the contract that it follows from.
        expires_at: When it ends.
        uses: How often it may be used.
        uses_left: How often it may still be.
        withdrawn: Whether whoever asked for it took it back.
        results: What it computed and what is withheld: `exact`, `private`, both, or
            nothing yet.
        released: How often something went out.
    """

    contract: str
    digest: Digest
    flow: FlowKind
    analyst: str
    recipients: tuple[str, ...]
    data: dict[str, Version]
    parent: Digest | None
    expires_at: str
    uses: int
    uses_left: int
    withdrawn: bool
    results: tuple[str, ...]
    released: int


class ListedContract(Contract, frozen=True, kw_only=True):
    """A contract as it is listed; `recorded` is there if asked for.

    Attributes:
        stage: Where it stands, in words for people.
        consent: Where its owners stand.
        recorded: The contract exactly as the ledger keeps it, if asked for.
    """

    stage: str
    consent: Consents
    recorded: Plain | UnsetType = UNSET


class ContractList(Shape, frozen=True, kw_only=True):
    """The contracts that whoever asks takes part in, or may read, oldest first.

    Attributes:
        contracts: The contracts.
    """

    contracts: tuple[ListedContract, ...]


class ContractVote(OwnerVote, frozen=True, kw_only=True):
    """What an owner said to a contract once."""


class ContractVotes(Shape, frozen=True, kw_only=True):
    """Where the owners of a contract stand, and what they said.

    Attributes:
        consent: Where its owners stand.
        words: Their votes, oldest first.
    """

    consent: Consents
    words: tuple[ContractVote, ...]


class PricedQuery(Shape, frozen=True, kw_only=True):
    """A query of a contract, and what the ledger says to it now.

    Attributes:
        release: The release that it will be.
        content: The digest of what it is charged as.
        text: The query file.
        problem: Why it cannot be decided now.
        decision: What the ledger says to it now; over HTTP without `losses`.
    """

    release: str
    content: Digest
    text: str
    problem: str | None
    decision: Decision | None


class ProgramRemark(Shape, frozen=True, kw_only=True):
    """Something in a program that is worth a look.

    Attributes:
        line: The line; 0 if it is about all of it.
        kind: What it is.
        text: What stands there.
        why: Why it is worth a look.
    """

    line: int
    kind: str
    text: str
    why: str


class Program(Shape, frozen=True, kw_only=True):
    """A program as its owners read it.

    Attributes:
        language: What it is written in.
        catalogue: What the catalogue calls it, if its text is that of the catalogue.
        digest: Its digest, with all that it is given.
        code: The digest of its code.
        code_base64: Its code.
        text: Its code, if it is Python.
        arguments: What it is given beside the tables.
        range: Between which scores it tells, exactly.
        compares: Whether it is given exact and private answers together.
        tier: The sandbox that it runs in.
        seconds: How long each run takes.
        memory_mib: How much memory it may use.
        remarks: What is worth a look.
    """

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
    """A contract as its owners read it before they agree.

    Attributes:
        reason: Why it is asked for.
        terms: What flows, as the ledger keeps it.
        bits: Of a raw signal, how many bits each use tells; None of others.
        words: What owners said, oldest first.
        follows: The contracts that it follows from, by name.
        shredded: Data of it that was destroyed.
        ledger: The history that was looked at.
        queries: Its queries; of what follows, those that it follows from.
        program: The program of a task; None without the vault.
    """

    reason: str
    terms: Plain
    bits: int | None
    words: tuple[ContractVote, ...]
    follows: tuple[str, ...]
    shredded: tuple[str, ...]
    ledger: Head
    queries: tuple[PricedQuery, ...]
    program: Program | None


class ContractVoteReceipt(Receipt, frozen=True, kw_only=True):
    """A vote that an owner cast just now, and where the contract stands after it.

    Attributes:
        contract: The contract.
        digest: Its digest.
        consent: Where its owners stand now.
    """

    contract: str
    digest: Digest
    consent: Consents


class Bin(Shape, frozen=True, kw_only=True):
    """The ends of the bin that a score lies in.

    Attributes:
        low: The lower end, exactly.
        high: The upper end, exactly.
    """

    low: str
    high: str


class QueryRisk(Shape, frozen=True, kw_only=True):
    """What an epsilon means for a query, before a row is read.

    Attributes:
        contract: The contract that has the query; None if it has none yet.
        query: The id of the query.
        data: The data set.
        unit: The unit that the loss is stated for.
        measure: The scale of `asked` and `loss`: `eps` or `rho`.
        asked: The loss that the query asks for, exactly.
        loss: The loss that fits the choice, exactly; None if nothing was chosen.
        fits: Whether the query asks for no more than that.
        note: What else must be known of the noise.
        epsilon: What was chosen; None if nothing was.
        claim: What may be said of the choice.
        choice: How it was chosen.
    """

    contract: str | None
    query: str
    data: Version
    unit: str
    measure: str
    asked: str
    loss: str | None
    fits: bool
    note: str
    epsilon: float | None
    claim: str
    choice: Plain


class Disclosed(Shape, frozen=True, kw_only=True):
    """What went out under a contract.

    Attributes:
        contract: The contract.
        flow: What kind of flow it is.
        differentially_private: False of a raw signal: no epsilon describes what it
            tells.
        answers: The private answers of an output.
        score: The score, as a decimal with the digits that tell it from the next of the
            10⁹ steps of its range.
        bin: The bin that the score lies in.
    """

    contract: str
    flow: Literal["output", "signal", "raw-signal"]
    differentially_private: bool
    answers: dict[str, Plain] | None
    score: str | None
    bin: Bin | None
