"""A small log with every kind of entry that a statement tells about, and bundles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from io import BytesIO
from typing import Any

from msgspec.structs import replace

from modicum.api.local.evaluation import price_release
from modicum.ledger import GENESIS, Balances, Event, Record, RecordedRelease, seal
from modicum.ledger.decision.decide import decide
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    PastRecorded,
    PolicyActivated,
    ReleaseDenied,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.proof.bundle import Survey, members
from modicum.ledger.proof.bundle_reader import BundleReader
from modicum.ledger.proof.claims import Checkpoint, Signed
from modicum.ledger.proof.zip_format import Member, packed, unpacked
from modicum.release import EVERYTHING
from modicum.storage.proofs.signing_keys import SigningKey
from modicum.storage.proofs.verification import Trust, Verified, verify_log
from samples.small import POLICY, compiled, counts

#: The small policy, which asks for approval of what goes to the press.
ASKING = (
    POLICY
    + """
roles: {privacy-officer: [olga]}
approvals: [{when: 'release.purpose == "press"', need: 1, from: [privacy-officer]}]
"""
)
#: The same rules, somewhat wider.
WIDER = ASKING.replace("budget: 2.0}", "budget: 3.0}").replace(
    "name: small", "name: wider"
)
#: What a hostile writer would like a browser, a terminal or YAML to obey.
HOSTILE = "</td><script>alert('&\"x')</script> ]]> -- : #\\"
LATER = "2026-06-01T12:00:00.000000Z"


def at(minute: int) -> str:
    return f"2026-05-01T12:{minute:02}:00.000000Z"


def priced(release: str, policy: str = ASKING, **more: Any) -> RecordedRelease:
    return price_release(counts(release, **more), compiled(policy))


def described_anew(release: RecordedRelease) -> RecordedRelease:
    """Return a release whose content is that of what it says now."""
    plain = {
        "id": release.id,
        "labels": {name: release.labels[name] for name in release.given or ()},
        "metadata": dict(release.metadata),
        "mechanisms": [dict(one.description) for one in release.mechanisms],
    }
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return replace(release, content=sha256(text.encode()).hexdigest())


def activated(text: str, **more: Any) -> PolicyActivated:
    policy = compiled(text).policy
    return PolicyActivated(policy.digest, policy.name, policy.text, **more)


def bodies() -> list[Body]:
    """Return what happens in the sample, in order."""
    digest, wider = compiled(ASKING).policy.digest, compiled(WIDER).policy.digest
    huge = priced("huge", rho="3")
    denial = decide(Balances(compiled(ASKING)), huge, 1).blocking
    request = priced("r-1", rho="0.004", purpose="press")
    past = priced("old", rho="0.004", released_on="2024-03-02", purpose=HOSTILE)
    return [
        activated(ASKING),
        PastRecorded(past, digest, (f"the noise was Gaussian {HOSTILE}",)),
        ApprovalGiven(
            "release", "r-1", request.content, True, ("privacy-officer",), HOSTILE
        ),
        ReleaseReserved(request, digest, LATER, ("olga",)),
        ReleaseStarted("r-1"),
        ReleasePosted("r-1"),
        ReleaseReserved(priced("r-2", rho="0.002"), digest, LATER),
        ReleaseVoided("r-2", f"called off {HOSTILE}"),
        ReleaseDenied(huge, digest, denial),
        Annotated("r-1", f"checked by hand {HOSTILE}"),
        DisclosureRecorded(
            "court-order", HOSTILE, ("diagnosis",), EVERYTHING, "ordered", {}
        ),
        PastRecorded(priced("loud", rho="0.05"), digest),
        activated(WIDER, reason=HOSTILE, accepted=("attr:diagnosis @standard",)),
        ReleaseReserved(priced("r-4", WIDER, attributes=()), wider, LATER),
    ]


def sealed(happened: Iterable[Body]) -> list[Record]:
    """Return a log in which this happens, chained as it must be."""
    rows: list[Record] = []
    previous = GENESIS
    for seq, body in enumerate(happened, 1):
        event = Event(at(seq), "ana", body)
        if isinstance(body, ApprovalGiven):
            signed_at = body if body.head else replace(body, head=previous)
            event = Event(at(seq), "olga", signed_at)
        rows.append(seal(event, seq, previous))
        previous = rows[-1].hash
    return rows


@cache
def log() -> tuple[Record, ...]:
    """Return the sample log."""
    return tuple(sealed(bodies()))


@cache
def key(number: int = 0) -> SigningKey:
    """Return a key that is the same in every run."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


def checkpoint(
    records: Sequence[Record], seq: int, by: SigningKey, state: str | None = None
) -> Signed:
    claim = Checkpoint(records[0].hash, seq, records[seq - 1].hash, at(0), by.id, state)
    return by.sign(claim)


def bundled(records: Sequence[Record], signed: Sequence[Signed] = ()) -> list[Member]:
    """Return the members of a bundle of some records."""
    return list(members(Survey(records).manifest(signed), signed, records))


def bundle(records: Sequence[Record], signed: Sequence[Signed] = ()) -> bytes:
    """Return a bundle of some records."""
    return b"".join(packed(bundled(records, signed)))


def checked(data: bytes, trust: Trust | None = None) -> Verified:
    """Return what a bundle is worth."""
    reader = BundleReader(unpacked(BytesIO(data).read))
    carried = [(one, "the bundle") for one in reader.checkpoints]
    return verify_log(reader.records(), carried, trust or Trust())
