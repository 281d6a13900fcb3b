"""Data sets and contracts of the escrow."""

from __future__ import annotations

from typing import Literal

from modicum.server.models.releases import DecisionForm
from modicum.server.models.shared_forms import Digest, Form, Head, OpenForm, Plain


class VersionForm(Form):
    """A version of a data set."""

    id: str
    version: int


class KeptVersionForm(Form):
    """A version of a data set, in the vault."""

    version: int
    media: Literal["csv", "parquet"]
    table: str
    entry: int
    by: str
    agreed: bool
    digest: Digest
    shredded: bool
    sealed: Digest


class DataSetForm(Form):
    """A data set: whose it is, its limits, and its versions."""

    data: str
    owners: dict[str, list[str]]
    quorum: int
    contracts: int
    bits: int
    versions: list[KeptVersionForm]


class DataSetList(Form):
    """The data sets that whoever asks may ask about, or owns."""

    data_sets: list[DataSetForm]


class ConsentForm(Form):
    """Where the owners of one data set stand."""

    data: str
    need: int
    missing: int
    approved_by: list[str]
    rejected_by: list[str]
    left: list[str]


class VersionSaidForm(VersionForm):
    """What an owner said just now, and where the version stands after it."""

    digest: Digest
    by: str
    approves: bool
    key: str | None
    entry: int
    repeated: bool
    consent: ConsentForm


class ConsentsForm(Form):
    """Where all stand whose agreement a contract takes."""

    given: bool
    lacking: str
    people: int
    by_data: list[ConsentForm]


class FlowForm(Form):
    """A contract, and what became of it."""

    contract: str
    digest: Digest
    flow: Literal["query", "task", "output", "signal", "raw-signal"]
    analyst: str
    recipients: list[str]
    by: str
    at: str
    entry: int
    data: dict[str, VersionForm]
    parent: Digest | None
    expires_at: str
    uses: int
    uses_left: int
    withdrawn: bool
    results: list[str]
    released: int


class LookedForm(FlowForm):
    """A contract as it is listed; `recorded` is there if asked for."""

    stage: str
    consent: ConsentsForm
    recorded: Plain | None = None


class ContractList(Form):
    """The contracts that whoever asks takes part in, or may read, oldest first."""

    contracts: list[LookedForm]


class ContractWordForm(Form):
    """What an owner said once."""

    by: str
    at: str
    approves: bool
    reason: str
    key: str | None
    entry: int


class ContractWordsForm(Form):
    """Where the owners of a contract stand, and what they said."""

    consent: ConsentsForm
    words: list[ContractWordForm]


class PricedForm(Form):
    """A query of a contract, and what the ledger says to it now."""

    release: str
    content: Digest
    text: str
    problem: str | None
    decision: DecisionForm | None


class RemarkForm(Form):
    """Something in a program that is worth a look."""

    line: int
    kind: str
    text: str
    why: str


class ProgramForm(Form):
    """A program as its owners read it."""

    language: Literal["python", "wasm"]
    catalogue: str | None
    digest: Digest
    code: Digest
    code_base64: str
    text: str | None
    arguments: Plain
    range: list[str]
    compares: bool
    tier: str
    seconds: int
    memory_mib: int
    remarks: list[RemarkForm]


class ContractForm(LookedForm):
    """A contract as its owners read it before they agree."""

    reason: str
    terms: Plain
    bits: int | None
    words: list[ContractWordForm]
    follows: list[str]
    shredded: list[str]
    ledger: Head
    queries: list[PricedForm]
    program: ProgramForm | None


class ContractSaidForm(Form):
    """What an owner said just now, and where the contract stands after it."""

    contract: str
    digest: Digest
    by: str
    approves: bool
    key: str | None
    entry: int
    repeated: bool
    consent: ConsentsForm


class BinForm(Form):
    """The ends of the bin that a score lies in."""

    low: str
    high: str


class QueryRiskForm(OpenForm):
    """What an epsilon means for a query, before a row is read; see the reference."""

    contract: str | None
    query: str
    data: VersionForm
    unit: str
    measure: Literal["eps", "rho"]
    asked: str
    loss: str | None
    fits: bool
    note: str


class LetGoForm(Form):
    """What went out under a contract."""

    contract: str
    flow: Literal["output", "signal", "raw-signal"]
    differentially_private: bool
    answers: dict[str, Plain] | None
    score: str | None
    bin: BinForm | None
