"""What happens in the escrow, as events. This page is a storage format: see ADR 0035.

They came with version 4. None of them charges anything: what a flow costs is charged by
the release that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from modicum.core.record import dataclass
from modicum.ledger.log.contracts import Contract


@dataclass(frozen=True, slots=True)
class DataRegistered:
    """A version of a data set lies in the vault. Its first version says whose it is.

    Attributes:
        id: The data set.
        version: The number of the version, from 1.
        sealed: SHA-256 of its encrypted bytes.
        media: How its rows are written.
        table: What its table is, as canonical text: columns, types, what is public.
        owners: Whose it is; by name the keys that their agreement must be signed with,
            none if it need not be signed.
        quorum: So many of them must agree.
        contracts_max: So many contracts may wait or hold for one analyst at a time.
        bits_max: So many bits may one person be told of it outside differential
            privacy, in all.
    """

    id: str
    version: int
    sealed: str
    media: Literal["csv", "parquet"]
    table: str
    owners: Mapping[str, tuple[str, ...]]
    quorum: int
    contracts_max: int
    bits_max: int


@dataclass(frozen=True, slots=True)
class DataShredded:
    """The key of a version was destroyed: nothing flows from it any more.

    Attributes:
        id: The data set.
        version: The number of the version.
        reason: Why.
    """

    id: str
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class ContractProposed:
    """Somebody asks for a flow of data.

    Attributes:
        contract: The contract.
        reason: Why.
    """

    contract: Contract
    reason: str


@dataclass(frozen=True, slots=True)
class ContractWithdrawn:
    """Who asked for a flow does not ask for it any more.

    Attributes:
        contract: The contract, by its digest.
        reason: Why.
    """

    contract: str
    reason: str


@dataclass(frozen=True, slots=True)
class FlowBegun:
    """Rows or withheld answers may be read from here on; the use is counted.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run, from 1.
    """

    contract: str
    run: int


@dataclass(frozen=True, slots=True)
class FlowWithheld:
    """A run has ended, and what it computed lies in the vault.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run.
        results: By name, the SHA-256 of the encrypted bytes.
    """

    contract: str
    run: int
    results: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FlowFailed:
    """A run has ended without a result. Why is not told: it may be a fact about rows.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run.
    """

    contract: str
    run: int


@dataclass(frozen=True, slots=True)
class FlowReleased:
    """Something that was withheld goes out from here on.

    Attributes:
        contract: The contract, by its digest.
        to: Who is given it.
    """

    contract: str
    to: str
