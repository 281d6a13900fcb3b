"""Data sets and contracts of the escrow."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from modicum.api.schema.approval import Agreement, Asked, OwnerVote, Receipt
from modicum.api.schema.ledger import Head
from modicum.api.schema.release import Decision
from modicum.api.schema.shape import Digest, Plain, Shape

#: The kinds of flow under a contract.
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
    """A version of a data set in the vault.

    Attributes:
        version: Its number.
        media: The format of rows.
        table: The tables file that declares it.
        entry: The entry that registered it.
        by: The actor who registered it.
        agreed: Whether enough owners agreed to it; nothing flows from it before.
        digest: The digest that owners agree to.
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
    """A data set: its owners, limits and versions.

    Attributes:
        data: Its name.
        owners: Its owners.
        quorum: The number of owners that must agree.
        contracts: The maximum number of open contracts per analyst.
        bits: The maximum number of bits disclosed to one person outside differential
            privacy.
        versions: Its versions, oldest first.
    """

    data: str
    owners: dict[str, tuple[str, ...]]
    quorum: int
    contracts: int
    bits: int
    versions: tuple[StoredVersion, ...]


class DataSetList(Shape, frozen=True, kw_only=True):
    """The data sets that the caller owns or may request.

    Attributes:
        data_sets: The data sets.
    """

    data_sets: tuple[DataSet, ...]


class Consent(Agreement, frozen=True, kw_only=True):
    """The votes of the owners of one data set.

    Attributes:
        data: Which.
    """

    data: str


class VersionVoteReceipt(Receipt, frozen=True, kw_only=True):
    """A new vote of an owner, and the state of the version after it.

    Attributes:
        id: The data set.
        version: The number of the version.
        digest: The digest that owners agree to.
        consent: The current votes of its owners.
    """

    id: str
    version: int
    digest: Digest
    consent: Consent


class Consents(Shape, frozen=True, kw_only=True):
    """All consents that a contract needs.

    Attributes:
        given: Whether all required consents are given.
        lacking: The missing consents, as text; empty if none is missing.
        people: The number of people that must agree in total.
        by_data: The consent of the owners, by data set.
    """

    given: bool
    lacking: str
    people: int
    by_data: tuple[Consent, ...]


class Contract(Asked, frozen=True, kw_only=True):
    """A contract and its state.

    Attributes:
        contract: Its id.
        digest: The digest that owners agree to.
        flow: `query`, `task`, `output`, `signal` or `raw-signal`.
        analyst: For whom it is.
        recipients: The recipients of disclosures; empty for a contract that only
            computes.
        data: The data sets that it reads.
        parent: The digest of the contract that it follows from.
        expires_at: When it ends.
        uses: The maximum number of uses.
        uses_left: How often it may still be.
        withdrawn: Whether its requester withdrew it.
        results: The results computed and withheld: `exact`, `private`, both, or none
            yet.
        released: The number of disclosures so far.
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
    """A contract in a list; `recorded` is present on demand.

    Attributes:
        stage: Its stage, as text.
        consent: The consent of its owners.
        recorded: The contract exactly as stored in the ledger, on demand.
    """

    stage: str
    consent: Consents
    recorded: Plain | UnsetType = UNSET


class ContractList(Shape, frozen=True, kw_only=True):
    """The contracts that involve the caller or that they may read, oldest first.

    Attributes:
        contracts: The contracts.
    """

    contracts: tuple[ListedContract, ...]


class ContractVote(OwnerVote, frozen=True, kw_only=True):
    """An owner's recorded vote on a contract."""


class ContractVotes(Shape, frozen=True, kw_only=True):
    """The consents and votes of a contract.

    Attributes:
        consent: The consent of its owners.
        votes: The votes, oldest first.
    """

    consent: Consents
    votes: tuple[ContractVote, ...]


class PricedQuery(Shape, frozen=True, kw_only=True):
    """A query of a contract and the current decision about it.

    Attributes:
        release: The release that it will be.
        content: The digest of the release that it is charged as.
        text: The query file.
        problem: Why it cannot be decided now.
        decision: The current decision; over HTTP without `losses`.
    """

    release: str
    content: Digest
    text: str
    problem: str | None
    decision: Decision | None


class ProgramRemark(Shape, frozen=True, kw_only=True):
    """A passage of a program that reviewers should check.

    Attributes:
        line: The line; 0 if it is about all of it.
        kind: The kind of remark.
        text: The passage.
        why: Why it is worth a look.
    """

    line: int
    kind: str
    text: str
    why: str


class Program(Shape, frozen=True, kw_only=True):
    """A program as shown to owners.

    Attributes:
        language: Its language.
        catalogue: Its name in the catalogue, if its text matches the catalogue.
        digest: The digest of the code and its arguments.
        code: The digest of its code.
        code_base64: Its code.
        text: Its code, if it is Python.
        arguments: Its inputs besides the tables.
        range: The exact bounds of its scores.
        compares: Whether it receives exact and private answers together.
        tier: The sandbox that it runs in.
        seconds: The fixed duration of each run.
        memory_mib: Its memory limit.
        remarks: Passages that reviewers should check.
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
    """A contract as shown to owners before they agree.

    Attributes:
        reason: The requester's reason.
        terms: The terms, as stored in the ledger.
        bits: For a raw signal, the bits that each use discloses; else None.
        votes: The owners' votes, oldest first.
        follows: The contracts that it follows from, by name.
        shredded: Data of it that was destroyed.
        ledger: The history that was looked at.
        queries: Its queries; for a contract that builds on another, those of that
            contract.
        program: The program of a task; None without the vault.
    """

    reason: str
    terms: Plain
    bits: int | None
    votes: tuple[ContractVote, ...]
    follows: tuple[str, ...]
    shredded: tuple[str, ...]
    ledger: Head
    queries: tuple[PricedQuery, ...]
    program: Program | None


class ContractVoteReceipt(Receipt, frozen=True, kw_only=True):
    """A new vote of an owner, and the state of the contract after it.

    Attributes:
        contract: The contract.
        digest: Its digest.
        consent: The current consent of its owners.
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
    """The meaning of an epsilon for a query, computed without reading any row.

    Attributes:
        contract: The contract that has the query; None if it has none yet.
        query: The id of the query.
        data: The data set.
        unit: The unit that the loss is stated for.
        measure: The measure of `requested` and `loss`: `eps` or `rho`.
        requested: The exact loss that the query requests.
        loss: The loss that fits the choice, exactly; None if nothing was chosen.
        fits: Whether the query requests at most that loss.
        note: A further condition on the noise.
        epsilon: The chosen epsilon; None if none was chosen.
        claim: The claim that the choice supports.
        choice: The method of choice.
    """

    contract: str | None
    query: str
    data: Version
    unit: str
    measure: str
    requested: str
    loss: str | None
    fits: bool
    note: str
    epsilon: float | None
    claim: str
    choice: Plain


class Disclosed(Shape, frozen=True, kw_only=True):
    """A disclosure under a contract.

    Attributes:
        contract: The contract.
        flow: The kind of flow.
        differentially_private: False for a raw signal: no epsilon describes its
            disclosure.
        answers: The private answers of an output contract.
        score: The score, as a decimal with enough digits to distinguish adjacent ones
            of the 10⁹ steps of its range.
        bin: The bin that the score lies in.
    """

    contract: str
    flow: Literal["output", "signal", "raw-signal"]
    differentially_private: bool
    answers: dict[str, Plain] | None
    score: str | None
    bin: Bin | None
