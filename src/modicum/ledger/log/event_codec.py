"""Events as plain data, and back. This page is a storage format: see ADR 0003.

The fields of each kind stand in one table. Older versions knew fewer kinds and fewer
fields; what they did not know has its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from modicum.core.canonical import Joined, Plain
from modicum.ledger.log import contracts
from modicum.ledger.log.events import (
    EVENT_VERSION,
    NAMES,
    Annotated,
    ApprovalGiven,
    Body,
    ContractProposed,
    ContractWithdrawn,
    DataRegistered,
    DataShredded,
    DisclosureRecorded,
    Event,
    FlowBegun,
    FlowFailed,
    FlowReleased,
    FlowWithheld,
    GroupActivated,
    GroupRetired,
    PastRecorded,
    PastRedescribed,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RequestWithdrawn,
    RoundOpened,
    event_name,
)
from modicum.ledger.log.field_codec import (
    DIGEST,
    DIGESTS,
    FLAG,
    HASH_OR_EMPTY,
    KEYS,
    NUMBER,
    SHARES,
    SIGNATURE_OR_EMPTY,
    TEXT,
    TEXT_MAP,
    TEXTS,
    TIME,
    Codec,
    exactly,
    one_of,
    read_mapping,
    read_text,
    read_time,
)
from modicum.ledger.log.release_codec import (
    read_part,
    release_from_plain,
    release_joined,
    release_to_plain,
)
from modicum.release.parts import part_to_plain


def to_plain(event: Event) -> dict[str, Plain]:
    """Return the event as plain data of this version, ready for canonical encoding."""
    body = event.body
    codecs = _FORMS[type(body)].codecs
    plain = {name: codec.write(getattr(body, name)) for name, codec in codecs.items()}
    return {**_heading(event), "body": plain}


def to_joined(event: Event) -> dict[str, Joined]:
    """Return the event as `to_plain` does; the mechanisms of it are written already."""
    body = event.body
    joined: dict[str, Joined] = {
        name: release_joined(getattr(body, name))
        if codec is _RELEASE
        else codec.write(getattr(body, name))
        for name, codec in _FORMS[type(body)].codecs.items()
    }
    return {**_heading(event), "body": joined}


class LaterVersionError(ValueError):
    """An event of a version that came after this version of modicum."""


def from_plain(plain: Plain) -> Event:
    """Return the event that plain data encodes.

    Raises:
        LaterVersionError: If it is of a later version.
        ValueError: If anything is missing, left over, or not of its form.
    """
    fields = read_mapping(plain)
    exactly(fields, _EVENT_FIELDS)
    version = fields["v"]
    if type(version) is not int or not 1 <= version <= EVENT_VERSION:
        message = f"event version {version} is not one of 1 to {EVENT_VERSION}"
        is_later = type(version) is int and version > EVENT_VERSION
        raise LaterVersionError(message) if is_later else ValueError(message)
    kind = read_text(fields["kind"])
    form = _BY_NAME[version].get(kind)
    if form is None:
        message = f"unknown kind of event `{kind}`"
        raise ValueError(message)
    body = _read_body(form, read_mapping(fields["body"]), version)
    return Event(read_time(fields["at"]), read_text(fields["actor"]), body, version)


def _heading(event: Event) -> dict[str, Plain]:
    return {
        "v": EVENT_VERSION,
        "at": event.at,
        "actor": event.actor,
        "kind": event_name(event.body),
    }


class _Form(Struct, frozen=True):
    """How one kind of event is stored.

    Attributes:
        body: The kind.
        codecs: How each of its fields is stored, by name.
        since: The version that the kind came with.
        later: Fields that came later than the kind, and with which version.
    """

    body: type[Body]
    codecs: Mapping[str, Codec]
    since: int = 1
    later: Mapping[str, int] = field(default_factory=dict)

    def fields(self, version: int) -> frozenset[str]:
        """Return the names of the fields that a version has."""
        return frozenset(
            name for name in self.codecs if self.later.get(name, 1) <= version
        )


def _read_body(form: _Form, plain: Mapping[str, Any], version: int) -> Body:
    names = _FIELDS[version][form.body]
    exactly(plain, names)
    codecs = form.codecs
    values: dict[str, Any] = {
        name: release_from_plain(value, version)
        if codecs[name] is _RELEASE
        else codecs[name].read(value)
        for name, value in plain.items()
    }
    return form.body(**values)


_RELEASE = Codec(release_to_plain, release_from_plain)
_PART = Codec(part_to_plain, read_part)
_CONTRACT = Codec(contracts.to_plain, contracts.from_plain)
_BY_ID = {"release": TEXT}
_RUN = {"contract": DIGEST, "run": NUMBER}

_FORMS: Mapping[type[Body], _Form] = {
    form.body: form
    for form in (
        _Form(
            PolicyActivated,
            {
                "digest": DIGEST,
                "name": TEXT,
                "text": TEXT,
                "reason": TEXT,
                "accepted": TEXTS,
            },
            later={"reason": 2, "accepted": 2},
        ),
        _Form(
            ReleaseReserved,
            {
                "release": _RELEASE,
                "policy": DIGEST,
                "expires_at": TIME,
                "approved_by": TEXTS,
            },
            later={"approved_by": 2},
        ),
        _Form(ReleaseStarted, _BY_ID),
        _Form(ReleasePosted, _BY_ID),
        _Form(ReleaseVoided, {"release": TEXT, "reason": TEXT}),
        _Form(ReleaseExpired, _BY_ID),
        _Form(
            ReleaseDenied, {"release": _RELEASE, "policy": DIGEST, "blocking": TEXTS}
        ),
        _Form(
            PastRecorded,
            {"release": _RELEASE, "policy": DIGEST, "assumptions": TEXTS},
            later={"assumptions": 2},
        ),
        _Form(
            PastRedescribed,
            {
                "release": _RELEASE,
                "before": _RELEASE,
                "policy": DIGEST,
                "reason": TEXT,
                "approved_by": TEXTS,
            },
            since=5,
        ),
        _Form(
            ApprovalGiven,
            {
                "subject": one_of("release", "policy", "plan", "contract", "data"),
                "id": TEXT,
                "content": DIGEST,
                "approves": FLAG,
                "roles": TEXTS,
                "reason": TEXT,
                "head": HASH_OR_EMPTY,
                "key": HASH_OR_EMPTY,
                "signature": SIGNATURE_OR_EMPTY,
            },
            since=2,
            later={"head": 3, "key": 3, "signature": 3},
        ),
        _Form(Annotated, {"about": TEXT, "text": TEXT}, since=2),
        _Form(
            DisclosureRecorded,
            {
                "id": TEXT,
                "what": TEXT,
                "attributes": TEXTS,
                "part": _PART,
                "reason": TEXT,
                "metadata": TEXT_MAP,
            },
            since=2,
        ),
        _Form(RoundOpened, {"id": TEXT, "unlocked": SHARES}, since=2),
        _Form(GroupActivated, {"group": NUMBER, "round": TEXT}, since=2),
        _Form(GroupRetired, {"group": NUMBER, "round": TEXT}, since=2),
        _Form(
            PlanCommitted,
            {"id": TEXT, "round": TEXT, "content": DIGEST, "releases": TEXTS},
            since=2,
        ),
        _Form(
            ReleaseRequested,
            {"release": _RELEASE, "policy": DIGEST, "reason": TEXT},
            since=3,
        ),
        _Form(RequestWithdrawn, {"release": TEXT, "reason": TEXT}, since=3),
        _Form(
            PolicyProposed,
            {"digest": DIGEST, "name": TEXT, "text": TEXT, "reason": TEXT},
            since=3,
        ),
        _Form(
            DataRegistered,
            {
                "id": TEXT,
                "version": NUMBER,
                "sealed": DIGEST,
                "media": one_of("csv", "parquet"),
                "table": TEXT,
                "owners": KEYS,
                "quorum": NUMBER,
                "contracts_max": NUMBER,
                "bits_max": NUMBER,
            },
            since=4,
        ),
        _Form(DataShredded, {"id": TEXT, "version": NUMBER, "reason": TEXT}, since=4),
        _Form(ContractProposed, {"contract": _CONTRACT, "reason": TEXT}, since=4),
        _Form(ContractWithdrawn, {"contract": DIGEST, "reason": TEXT}, since=4),
        _Form(FlowBegun, _RUN, since=4),
        _Form(FlowWithheld, {**_RUN, "results": DIGESTS}, since=4),
        _Form(FlowFailed, _RUN, since=4),
        _Form(FlowReleased, {"contract": DIGEST, "to": TEXT}, since=4),
    )
}

_EVENT_FIELDS = frozenset({"v", "at", "actor", "kind", "body"})
_VERSIONS = range(1, EVENT_VERSION + 1)
_FIELDS = {
    version: {body: form.fields(version) for body, form in _FORMS.items()}
    for version in _VERSIONS
}
_BY_NAME = {
    version: {
        name: form
        for body, name in NAMES.items()
        if (form := _FORMS[body]).since <= version
    }
    for version in _VERSIONS
}
