"""Consent to a flow of data: which of its owners agree, and who is missing.

An owner's last vote counts. A refusal blocks until it is withdrawn: no number of
approvals outvotes it. The proposer of a flow, its analyst and its recipients do not
count as approvers. See ADR 0035 and 0048.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from modicum.ledger.log.contracts import Contract, RawSignalTerms
from modicum.policy.declarations.roles import person_key


class Agreement(Struct, frozen=True):
    """A vote on something that needs consent.

    Attributes:
        by: The actor.
        approves: Whether they agree.
        roles: The roles in which they spoke.
        seq: The number of the entry.
        key: The public key that it is signed with, in hexadecimal; empty if it is not
            signed. The signature was checked.
    """

    by: str
    approves: bool
    roles: tuple[str, ...]
    seq: int
    key: str = ""


#: An exact score that is not differentially private needs two people, whatever quorum
#: owners set.
PEOPLE_FOR_EXACT: Final = 2


class Ownership(Struct, frozen=True):
    """The ownership of a data set.

    Attributes:
        owners: By name the keys that their agreement must be signed with; none if it
            need not be signed.
        quorum: The number of owners that must agree.
    """

    owners: Mapping[str, tuple[str, ...]]
    quorum: int

    def is_owner(self, person: str) -> bool:
        """Return whether a person owns a data set, by exact name."""
        return person in self.owners


class Consent(Struct, frozen=True):
    """The consent of the owners of one data set.

    Attributes:
        data: The data set.
        quorum: The number of owners that must agree.
        agreed: The owners who agree and count, in the order of their names.
        refused: The owners who refuse, in the order of their names.
        left: The owners who could still agree, in the order of their names.
    """

    data: str
    quorum: int
    agreed: tuple[str, ...]
    refused: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def missing(self) -> int:
        """The number of further owners that must agree."""
        return max(self.quorum - len(self.agreed), 0)


class Consents(Struct, frozen=True):
    """All consents that a contract needs.

    Attributes:
        by_data: Of each data set, in alphabetical order.
        people: The number of different people that must agree in total.
    """

    by_data: tuple[Consent, ...]
    people: int

    @property
    def lacking(self) -> str:
        """The missing consents, as text; empty if none is missing."""
        refused = {name for one in self.by_data for name in one.refused}
        if refused:
            return f"{_named(refused)} rejected it"
        for one in self.by_data:
            if one.missing:
                whom = _named(one.left) or "no owner is left"
                return f"{one.missing} more must approve for `{one.data}`: {whom}"
        agreed = {person_key(name) for one in self.by_data for name in one.agreed}
        if len(agreed) < self.people:
            return f"{self.people} people must approve, and {len(agreed)} did"
        return ""

    @property
    def given(self) -> bool:
        """Whether enough owners of everything agree, and nobody refuses."""
        return not self.lacking

    @property
    def attainable(self) -> bool:
        """Whether there are enough owners who may agree at all."""
        able = {
            one.data: {person_key(name) for name in (*one.agreed, *one.left)}
            for one in self.by_data
        }
        people = {name for names in able.values() for name in names}
        return len(people) >= self.people and all(
            len(able[one.data]) >= one.quorum for one in self.by_data
        )


def consents(
    contract: Contract,
    ownerships: Mapping[str, Ownership],
    votes: Iterable[Agreement] = (),
    by: str | None = None,
) -> Consents:
    """Return the consents that a contract needs.

    Args:
        contract: The contract.
        ownerships: The owners of each of its data sets.
        votes: The votes, oldest first; signatures were checked.
        by: The proposer; None if that was before version 5 of events, when a proposer
            counted among those who agree.
    """
    statements = list(votes)
    out = {contract.analyst, *contract.recipients, *([] if by is None else [by])}
    by_data = tuple(
        consent(name, ownerships[name], statements, out) for name in contract.data_sets
    )
    terms = contract.terms
    exactly = isinstance(terms, RawSignalTerms) and not terms.bins
    return Consents(by_data, PEOPLE_FOR_EXACT if exactly else 1)


def consent(
    data: str, ownership: Ownership, votes: Iterable[Agreement], out: Collection[str]
) -> Consent:
    """Return the consent of the owners of one data set.

    Args:
        data: The data set.
        ownership: Its owners.
        votes: The votes, oldest first; signatures were checked.
        out: Those who do not count as approvers.
    """
    last = {
        one.by: one.approves
        for one in votes
        if ownership.is_owner(one.by) and _is_heard(one, ownership)
    }
    people_out = {person_key(one) for one in out}
    may = {one for one in ownership.owners if person_key(one) not in people_out}
    agreed = {one for one, approves in last.items() if approves} & may
    refused = {one for one, approves in last.items() if not approves}
    return Consent(
        data,
        ownership.quorum,
        tuple(sorted(agreed)),
        tuple(sorted(refused)),
        tuple(sorted(may - agreed - refused)),
    )


def _is_heard(one: Agreement, ownership: Ownership) -> bool:
    """Return whether a vote counts: a refusal always, an approval by the right key."""
    keys = ownership.owners[one.by]
    return not one.approves or not keys or one.key in keys


def _named(people: Collection[str]) -> str:
    return ", ".join(f"`{one}`" for one in sorted(people))
