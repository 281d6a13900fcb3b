"""The data sets of the escrow: whose they are, and which versions lie in the vault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from modicum.core.canonical import digest, encode
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.ledger.log.contracts import Version
from modicum.ledger.log.escrow_events import DataRegistered, DataShredded
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.consent import Agreement, Consent, Ownership, consent
from modicum.policy.declarations.roles import person_key

_KEY: Final = re.compile(r"[0-9a-f]{64}")
#: More owners than this never speak to each other.
OWNERS_MAX: Final = 100
#: The role in which people speak to contracts and versions.
OWNER: Final = "owner"
DATA_KIND: Final = "modicum-data-version/v1"
#: Before this version of events, one owner replaced rows alone.
QUORUM_SINCE: Final = 5


class DataVersion(Struct, frozen=True):
    """A version of a data set, in the vault.

    Attributes:
        sealed: SHA-256 of its encrypted bytes.
        media: The format of rows.
        table: The declaration of its table, as canonical text.
        seq: The number of the entry that registered it.
        by: The actor who registered it.
        agreed: Whether enough owners agreed to it; nothing flows from it before.
        shredded: Whether its key was destroyed.
    """

    sealed: str
    media: str
    table: str
    seq: int
    by: str
    agreed: bool = True
    shredded: bool = False

    def content(self, version: Version) -> str:
        """Return the SHA-256 of the content that owners approve.

        Args:
            version: Which version it is.
        """
        return digest(
            encode(
                {
                    "kind": DATA_KIND,
                    "id": version.id,
                    "version": version.number,
                    "sealed": self.sealed,
                    "media": self.media,
                    "table": self.table,
                }
            )
        )


class DataSetTerms(Struct):
    """The owners of a data set, and its limits.

    Attributes:
        ownership: Its owners.
        contracts_max: The maximum number of pending or valid contracts per analyst.
        bits_max: The maximum number of bits disclosed to one person outside
            differential privacy.
    """

    ownership: Ownership
    contracts_max: int
    bits_max: int


class DataSet(DataSetTerms):
    """A data set, as its owners registered it.

    Attributes:
        versions: Its versions by number, oldest first.
    """

    versions: dict[int, DataVersion] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        """The number of the newest version that enough owners agreed to."""
        return max(number for number, one in self.versions.items() if one.agreed)

    @property
    def last(self) -> int:
        """The number of the version that was registered last."""
        return max(self.versions)

    def consent(self, version: Version, votes: Iterable[Agreement]) -> Consent:
        """Return which owners agree to a version, beside who registered it."""
        known = self.versions[version.number]
        # It is not signed: of an owner with keys it is no agreement.
        first = Agreement(known.by, True, (OWNER,), known.seq)  # noqa: FBT003
        return consent(version.id, self.ownership, [first, *votes], ())


def register(
    data: dict[str, DataSet], body: DataRegistered, by: str, seq: int, in_version: int
) -> None:
    """Register a version of a data set; a replacement waits for its owners.

    Args:
        data: The data sets; it is added to them.
        body: The version.
        by: The actor who registers it.
        seq: The number of the entry.
        in_version: The version of the event.

    Raises:
        ConflictError: If a later one exists, or it is not registered by an owner, or
            declares other owners than the first one.
    """
    ownership = Ownership(dict(body.owners), body.quorum)
    known = data.get(body.id)
    if known is None:
        _refuse_ill_owned(body.id, ownership)
    elif (known.ownership, known.contracts_max, known.bits_max) != (
        ownership,
        body.contracts_max,
        body.bits_max,
    ):
        raise _impossible(
            f"version {body.version} of the data set `{body.id}` has other owners or"
            " limits than its first version",
            "owners and limits never change: register it under another id",
        )
    if not ownership.is_owner(by):
        raise _impossible(
            f"`{by}` does not own the data set `{body.id}`",
            "only an owner can register it",
        )
    _refuse_odd_limits(body)
    last = 0 if known is None else known.last
    if body.version <= last:
        raise _impossible(
            f"version {body.version} of the data set `{body.id}` comes after version"
            f" {last}",
            "another version was registered meanwhile: check again",
        )
    one = DataSet(ownership, body.contracts_max, body.bits_max)
    dataset = data.setdefault(body.id, one)
    dataset.versions[body.version] = DataVersion(
        body.sealed, body.media, body.table, seq, by
    )
    if known is not None and in_version >= QUORUM_SINCE:
        _check_again(dataset, Version(body.id, body.version), ())


def waiting(data: Mapping[str, DataSet], identifier: str, content: str) -> Version:
    """Return the pending version with some content.

    Args:
        data: The data sets.
        identifier: The data set.
        content: The SHA-256 of the content that owners approve.

    Raises:
        ConflictError: If none waits.
    """
    known = data.get(identifier)
    for number, one in known.versions.items() if known else ():
        version = Version(identifier, number)
        if not (one.agreed or one.shredded) and one.content(version) == content:
            return version
    raise _impossible(
        f"no version of the data set `{identifier[:200]}` with the digest"
        f" {content[:12]} awaits its owners",
        "list the data sets with  modicum escrow list --data",
    )


def add_vote(
    data: Mapping[str, DataSet], body: ApprovalGiven, votes: Sequence[Agreement]
) -> None:
    """Apply an owner's vote on a pending version.

    Args:
        data: The data sets.
        body: The vote.
        votes: The votes on it, oldest first, including this one as the last.

    Raises:
        ConflictError: If none waits, or they do not speak as an owner of it.
    """
    version, last = waiting(data, body.id, body.content), votes[-1]
    known = data[version.id]
    if not known.ownership.is_owner(last.by) or last.roles != (OWNER,):
        raise _impossible(f"`{last.by}` is not an owner of the data set `{body.id}`")
    _check_again(known, version, votes)


def _check_again(known: DataSet, version: Version, votes: Sequence[Agreement]) -> None:
    """Allow use of a version if enough of its owners agree and none refuses."""
    found = known.consent(version, votes)
    known.versions[version.number] = replace(
        known.versions[version.number],
        agreed=not (found.missing or found.refused),
    )


def shred(data: Mapping[str, DataSet], body: DataShredded, by: str) -> None:
    """End all flows from a version.

    Raises:
        ConflictError: If they do not own it, or it was shredded before.
        InputError: If there is no such version.
    """
    version = version_of(data, Version(body.id, body.version))
    known = data[body.id]
    if not known.ownership.is_owner(by):
        raise _impossible(
            f"`{by}` does not own the data set `{body.id}`",
            "only an owner can shred it",
        )
    if version.shredded:
        raise _impossible(
            f"version {body.version} of the data set `{body.id}` was already shredded"
        )
    known.versions[body.version] = replace(version, shredded=True)


def version_of(data: Mapping[str, DataSet], version: Version) -> DataVersion:
    """Return a version of a data set.

    Args:
        data: The data sets.
        version: Which one.

    Raises:
        InputError: If there is none.
    """
    known = data.get(version.id)
    found = None if known is None else known.versions.get(version.number)
    if found is not None:
        return found
    if known is None:
        message = f"no data set `{version.id}` is registered"
        near = nearest(version.id, list(data))
    else:
        message = f"the data set `{version.id}` has no version {version.number}"
        near = f"its newest is {known.last}"
    raise InputError(
        Problem(
            Code.DATA_SET_UNKNOWN,
            message,
            label=near,
            help="list the contracts with  modicum escrow list",
        )
    )


def _refuse_ill_owned(identifier: str, ownership: Ownership) -> None:
    people = {person_key(name) for name in ownership.owners}
    if len(people) != len(ownership.owners):
        raise _impossible(
            f"the data set `{identifier}` lists an owner twice",
            "case and spaces do not distinguish people",
        )
    if not 1 <= ownership.quorum <= len(people) <= OWNERS_MAX:
        raise _impossible(
            f"of the {len(people)} owners of the data set `{identifier}`"
            f" {ownership.quorum} must approve",
            f"give 1 to {OWNERS_MAX} owners, of whom at least one must approve",
        )


def _refuse_odd_limits(body: DataRegistered) -> None:
    if body.version < 1 or body.contracts_max < 1 or body.bits_max < 0:
        raise _impossible(
            f"the data set `{body.id}` has version {body.version}, and limits of"
            f" {body.contracts_max} contracts and {body.bits_max} bits",
            "versions start at 1; allow at least 1 contract and 0 bits",
        )
    for who, keys in body.owners.items():
        if not all(_KEY.fullmatch(one) for one in keys):
            raise _impossible(
                f"a key of `{who}` is not a public key",
                "write the 64 hexadecimal digits of an Ed25519 key, in lower case",
            )


def _impossible(message: str, remedy: str = "") -> ConflictError:
    return ConflictError(Problem(Code.CONTRACT_REFUSED, message, help=remedy))
