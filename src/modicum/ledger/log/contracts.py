"""Contracts: which flows, to whom, how often. This page is a storage format.

A contract never changes. It is identified by the SHA-256 of its canonical bytes, and
that digest is what people approve. See ADR 0035.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from modicum.core.canonical import Plain, digest, encode
from modicum.ledger.log.field_codec import (
    CODECS,
    Codec,
    Digest,
    OptionalHash,
    Time,
    codecs_of,
    exactly,
    read_digest,
    read_list,
    read_mapping,
    read_number,
    read_text,
    read_texts,
)

CONTRACT_KIND: Final = "modicum-contract/v1"

#: The results of a run: differentially private or not.
ResultName: TypeAlias = Literal["private", "exact"]
#: Such names, and names of people, in alphabetical order, without duplicates.
ResultNames: TypeAlias = tuple[str, ...]
SortedNames: TypeAlias = tuple[str, ...]
#: The maximum number of bits of an exact score: no more fit into it.
EXACT_BITS: Final = 64


class Charge(NamedTuple):
    """A release whose loss is spent when a flow starts.

    Attributes:
        release: Its id.
        content: SHA-256 of its content, its epsilon included.
        text: The original request: a query file.
    """

    release: str
    content: str
    text: str


class Version(NamedTuple):
    """A version of a data set.

    Attributes:
        id: The data set.
        number: The version, from 1.
    """

    id: str
    number: int


class QueryTerms(Struct, frozen=True):
    """Queries are run, and their answers withheld.

    Attributes:
        charges: The queries, one release for each.
        results: The kinds of answers computed, in alphabetical order.
    """

    charges: tuple[Charge, ...]
    results: ResultNames


class TaskTerms(Struct, frozen=True):
    """A program is run on withheld answers, and its scores withheld.

    Attributes:
        program: The program, as canonical text; it contains the digest of its code.
        tier: The sandbox that it runs in.
        seconds: The fixed duration after which its end is reported.
        memory_mib: Its memory limit.
        results: The kinds of answers that it reads, in alphabetical order.
        blocks: The number of blocks of people, for a differentially private score; 0
            for none.
        charges: The charge of that score; empty without blocks.
    """

    program: str
    tier: str
    seconds: int
    memory_mib: int
    results: ResultNames
    blocks: int = 0
    charges: tuple[Charge, ...] = ()


class OutputTerms(Struct, frozen=True):
    """Private answers are disclosed.

    Attributes:
        result: SHA-256 of the sealed result in the vault.
    """

    result: Digest


class SignalTerms(Struct, frozen=True):
    """A score on private answers is disclosed.

    Attributes:
        result: SHA-256 of the sealed result in the vault.
    """

    result: Digest


class RawSignalTerms(Struct, frozen=True):
    """A score on exact answers is disclosed. That is not differentially private.

    Attributes:
        result: SHA-256 of the sealed result in the vault.
        bins: The number of bins of its range, one of which is disclosed; 0 for the
            exact score.
    """

    result: Digest
    bins: int

    @property
    def bits(self) -> int:
        """The maximum number of bits disclosed: one of its bins, or no score."""
        return self.bins.bit_length() if self.bins else EXACT_BITS


Computing: TypeAlias = QueryTerms | TaskTerms
LettingGo: TypeAlias = OutputTerms | SignalTerms | RawSignalTerms
Terms: TypeAlias = Computing | LettingGo


class Contract(Struct, frozen=True, dict=True):
    """A permitted flow and its conditions.

    Attributes:
        id: Its id.
        analyst: The analyst, who does not count as an approver.
        recipients: The recipients of disclosures, in alphabetical order.
        data: The version of the data for each table of its queries.
        parent: The contract that it follows from, by its digest; empty for none.
        expires_at: From then on it permits nothing.
        uses: The maximum number of uses.
        terms: The terms of the flow.
    """

    id: str
    analyst: str
    recipients: SortedNames
    data: Mapping[str, Version]
    parent: OptionalHash
    expires_at: Time
    uses: int
    terms: Terms

    @property
    def flow(self) -> str:
        """The kind of flow."""
        return FLOWS[type(self.terms)]

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that it is about, in alphabetical order."""
        return tuple(sorted({one.id for one in self.data.values()}))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its canonical bytes."""
        return digest(encode(to_plain(self)))


#: The name of each kind of flow, as it is stored.
FLOWS: Final[Mapping[type[Terms], str]] = {
    QueryTerms: "query",
    OutputTerms: "output",
    TaskTerms: "task",
    SignalTerms: "signal",
    RawSignalTerms: "raw-signal",
}


def to_plain(contract: Contract) -> dict[str, Plain]:
    """Return a contract as plain data, ready for canonical encoding."""
    terms = contract.terms
    return {
        "kind": CONTRACT_KIND,
        "flow": contract.flow,
        **{
            name: codec.write(getattr(contract, name))
            for name, codec in _COMMON.items()
        },
        "terms": {
            name: codec.write(getattr(terms, name))
            for name, codec in _TERMS[type(terms)].items()
        },
    }


def from_plain(plain: Plain) -> Contract:
    """Return the contract that plain data encodes.

    Raises:
        ValueError: If anything is missing, left over, or not of its form.
    """
    fields = read_mapping(plain)
    exactly(fields, _FIELDS)
    if fields["kind"] != CONTRACT_KIND:
        message = f"a contract must be of the kind {CONTRACT_KIND}"
        raise ValueError(message)
    kind = _BY_FLOW.get(read_text(fields["flow"]))
    if kind is None:
        message = f"a flow must be one of {', '.join(_BY_FLOW)}"
        raise ValueError(message)
    codecs, terms = _TERMS[kind], read_mapping(fields["terms"])
    exactly(terms, frozenset(codecs))
    common: dict[str, Any] = {
        name: codec.read(fields[name]) for name, codec in _COMMON.items()
    }
    return Contract(
        **common,
        terms=kind(**{name: codec.read(terms[name]) for name, codec in codecs.items()}),
    )


def _write_charges(charges: tuple[Charge, ...]) -> Plain:
    return [list(one) for one in charges]


def _read_charges(plain: Plain) -> tuple[Charge, ...]:
    return tuple(_read_charge(one) for one in read_list(plain))


def _read_charge(plain: Plain) -> Charge:
    release, content, text = _three(read_list(plain))
    return Charge(read_text(release), read_digest(content), read_text(text))


def _three(items: list[Plain]) -> list[Plain]:
    if len(items) != len(Charge._fields):
        message = "a charge has a release, a content and a text"
        raise ValueError(message)
    return items


def _write_data(data: Mapping[str, Version]) -> Plain:
    return {table: list(one) for table, one in data.items()}


def _read_data(plain: Plain) -> dict[str, Version]:
    return {table: _read_version(one) for table, one in read_mapping(plain).items()}


def _read_version(plain: Plain) -> Version:
    items = read_list(plain)
    if len(items) != len(Version._fields):
        message = "a version has an id and a number"
        raise ValueError(message)
    return Version(read_text(items[0]), read_number(items[1]))


def _read_sorted(plain: Plain) -> tuple[str, ...]:
    texts = read_texts(plain)
    if list(texts) != sorted(set(texts)):
        message = "texts must be in alphabetical order, without duplicates"
        raise ValueError(message)
    return texts


def _read_results(plain: Plain) -> tuple[str, ...]:
    names = _read_sorted(plain)
    if not names or not {"private", "exact"}.issuperset(names):
        message = "results must be private, exact or both"
        raise ValueError(message)
    return names


_CODECS: Final[Mapping[str, Codec]] = {
    **CODECS,
    "Mapping[str, Version]": Codec(_write_data, _read_data),
    "ResultNames": Codec(list, _read_results),
    "SortedNames": Codec(list, _read_sorted),
    "tuple[Charge, ...]": Codec(_write_charges, _read_charges),
}
_COMMON: Final = codecs_of(Contract, _CODECS, but="terms")
_TERMS: Final = {kind: codecs_of(kind, _CODECS) for kind in FLOWS}
_BY_FLOW: Final = {name: kind for kind, name in FLOWS.items()}
_FIELDS: Final = frozenset({"kind", "flow", "terms", *_COMMON})
