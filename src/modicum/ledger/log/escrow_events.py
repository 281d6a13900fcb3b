"""The events of an escrow. This page is a storage format, as `events` is.

None of them charges anything: a flow is charged by the release that it names.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from modicum.ledger.log.contracts import Contract
from modicum.ledger.log.event_kind import EventBody, event
from modicum.ledger.log.field_codec import Digest, Digests, Keys

#: The format of rows.
Media: TypeAlias = Literal["csv", "parquet"]


@event(
    "data-registered", 4, "nothing", claims=False, shown="{0.id} version {0.version}"
)
class DataRegistered(EventBody, frozen=True):
    """A version of a data set is in the vault. The first one declares the owners.

    Attributes:
        id: The data set.
        version: The number of the version, from 1.
        sealed: SHA-256 of its encrypted bytes.
        media: The format of rows.
        table: The declaration of its table, as canonical text: columns, types, public
            values.
        owners: Its owners; by name the keys that their agreement must be signed with,
            none if it need not be signed.
        quorum: The number of owners that must agree.
        contracts_max: The maximum number of pending or valid contracts per analyst.
        bits_max: The total number of bits that may be disclosed to one person outside
            differential privacy.
    """

    id: str
    version: int
    sealed: Digest
    media: Media
    table: str
    owners: Keys
    quorum: int
    contracts_max: int
    bits_max: int


@event("data-shredded", 4, "nothing", claims=False, shown="{0.id} version {0.version}")
class DataShredded(EventBody, frozen=True):
    """The key of a version was destroyed: nothing flows from it any more.

    Attributes:
        id: The data set.
        version: The number of the version.
        reason: Why.
    """

    id: str
    version: int
    reason: str


@event(
    "contract-proposed",
    4,
    "nothing",
    claims=False,
    shown="{0.contract.flow} {0.contract.id}",
)
class ContractProposed(EventBody, frozen=True):
    """A contract was proposed.

    Attributes:
        contract: The contract.
        reason: Why.
    """

    contract: Contract
    reason: str


@event("contract-withdrawn", 4, "nothing", claims=False, shown="{0.contract:.12}")
class ContractWithdrawn(EventBody, frozen=True):
    """A proposer withdrew a contract.

    Attributes:
        contract: The contract, by its digest.
        reason: Why.
    """

    contract: Digest
    reason: str


@event("flow-begun", 4, "nothing", claims=False, shown="{0.contract:.12}")
class FlowBegun(EventBody, frozen=True):
    """Rows or withheld answers may be read from here on; the use is counted.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run, from 1.
    """

    contract: Digest
    run: int


@event("flow-withheld", 4, "nothing", claims=False, shown="{0.contract:.12}")
class FlowWithheld(EventBody, frozen=True):
    """A run ended, and its results are in the vault.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run.
        results: By name, the SHA-256 of the encrypted bytes.
    """

    contract: Digest
    run: int
    results: Digests


@event("flow-failed", 4, "nothing", claims=False, shown="{0.contract:.12}")
class FlowFailed(EventBody, frozen=True):
    """A run ended without a result. The cause is not recorded: it may depend on rows.

    Attributes:
        contract: The contract, by its digest.
        run: The number of the run.
    """

    contract: Digest
    run: int


@event("flow-released", 4, "nothing", claims=False, shown="{0.contract:.12} to {0.to}")
class FlowReleased(EventBody, frozen=True):
    """A withheld result is disclosed from here on.

    Attributes:
        contract: The contract, by its digest.
        to: The recipient.
    """

    contract: Digest
    to: str


#: The events of the escrow.
EscrowBody: TypeAlias = (
    DataRegistered
    | DataShredded
    | ContractProposed
    | ContractWithdrawn
    | FlowBegun
    | FlowWithheld
    | FlowFailed
    | FlowReleased
)
