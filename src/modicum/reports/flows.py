"""Data sets and flows of data, as a statement tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from modicum.ledger.log.contracts import Contract, RawSignalTerms
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.consent import Consents, Ownership
from modicum.policy.declarations.roles import meant_by
from modicum.reports.log_position import Told

#: How a run ended; `no end` if the log does not tell.
Ended: TypeAlias = Literal["withheld", "failed", "no end"]
#: Where a contract stands. `withheld`: it has run, and its results lie in the vault.
#: `permitted`: it may be used. `waiting`: owners must agree first. `ended`: its time is
#: over. `shredded`: its data was.
FlowState: TypeAlias = Literal[
    "withheld",
    "running",
    "let go",
    "withdrawn",
    "ended",
    "shredded",
    "used up",
    "waiting",
    "permitted",
]


@dataclass(slots=True)
class VersionTold:
    """A version of a data set.

    Attributes:
        number: Its number.
        registered: The entry that registered it, and who.
        sealed: SHA-256 of its encrypted bytes.
        media: How its rows are written.
        shredded: The entry that says that its key was destroyed; None if none does.
        reason: Why that was done.
    """

    number: int
    registered: Told
    sealed: str
    media: str
    shredded: Told | None = None
    reason: str = ""


@dataclass(slots=True)
class DataTold:
    """A data set.

    Attributes:
        id: What it is called.
        ownership: Whose it is.
        contracts_max: So many contracts may wait or hold for one analyst at a time.
        bits_max: So many bits may one person be told outside differential privacy.
        versions: Its versions, oldest first.
    """

    id: str
    ownership: Ownership
    contracts_max: int
    bits_max: int
    versions: list[VersionTold] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OwnerWord:
    """What an owner said to a contract once.

    Attributes:
        told: The entry, and who.
        body: What they said.
        key_named: Whether the key that signed it is one that their data set names.
        heard: Whether it could count: agreement of an owner with keys cannot unless
            one of these signed it.
    """

    told: Told
    body: ApprovalGiven
    key_named: bool
    heard: bool


@dataclass(slots=True)
class RunTold:
    """A run of a query or a task.

    Attributes:
        number: Its number, from 1.
        begun: The entry that says that it began, and who.
        agreed: Whose agreement counted when it began, in the order of their names.
        how: How it ended.
        ended: The entry that says so; None if none does.
        results: By name the SHA-256 of what it left in the vault, encrypted.
    """

    number: int
    begun: Told
    agreed: tuple[str, ...]
    how: Ended = "no end"
    ended: Told | None = None
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LetGo:
    """Something that went out.

    Attributes:
        told: The entry, and who.
        to: Who was given it.
        agreed: Whose agreement counted, in the order of their names.
    """

    told: Told
    to: str
    agreed: tuple[str, ...]


@dataclass(slots=True)
class FlowTold:
    """A contract, and what became of it.

    Attributes:
        contract: The contract.
        asked: The entry that proposed it, and who.
        reason: Why it was proposed.
        words: What owners said to it, oldest first.
        runs: What ran under it, oldest first.
        let_go: What went out under it, oldest first.
        withdrawn: The entry that withdrew it; None if none did.
        disclosed: The entry that tells of the disclosure that it is; None if none does.
        consents: Where its owners stand, by what was said last.
        state: Where it stands.
    """

    contract: Contract
    asked: Told
    reason: str
    consents: Consents
    words: list[OwnerWord] = field(default_factory=list)
    runs: list[RunTold] = field(default_factory=list)
    let_go: list[LetGo] = field(default_factory=list)
    withdrawn: Told | None = None
    disclosed: Told | None = None
    state: FlowState = "waiting"

    @property
    def bits(self) -> int:
        """How many bits it tells outside differential privacy, once it lets go."""
        terms = self.contract.terms
        return terms.bits if isinstance(terms, RawSignalTerms) else 0

    @property
    def people(self) -> dict[str, str]:
        """Who learns of what it lets go: one name each, by whom it means."""
        contract = self.contract
        names = (*contract.recipients, contract.analyst)
        return {meant_by(one): one for one in names}


@dataclass(frozen=True, slots=True)
class Bits:
    """What one person was told of a data set outside differential privacy.

    Attributes:
        person: Who.
        data: The data set.
        told: So many bits went out.
        may_follow: So many more may go out under contracts that were asked for.
        allowed: So many the owners allow, in all.
        contracts: What told them, by name, oldest first.
    """

    person: str
    data: str
    told: int
    may_follow: int
    allowed: int
    contracts: tuple[str, ...]
