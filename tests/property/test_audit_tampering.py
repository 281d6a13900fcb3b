"""No bit of a bundle changes unseen, no history is exchanged behind a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs
from oracle.bundles import holds
from samples import audited
from samples.audited import bundle, bundled, checked, checkpoint, key, log, sealed

from modicum.accounting import Loss
from modicum.core.canonical import encode
from modicum.core.ed25519 import verify_signature
from modicum.core.errors import VerificationError
from modicum.ledger import Record
from modicum.ledger.log.events import (
    Annotated,
    Body,
    PastRecorded,
    PolicyActivated,
    ReleaseDenied,
    ReleaseReserved,
)
from modicum.ledger.proof.checkpoints import Presented, receipt_of
from modicum.ledger.proof.claims import Signed, claim_bytes, read_signed, signed_bytes
from modicum.ledger.proof.zip_format import packed
from modicum.storage.proofs.verification import Trust, require_pinned, verify_log

LAST = len(audited.bodies())


def flip(data: bytes, place: int) -> bytes:
    flipped = bytearray(data)
    flipped[place // 8] ^= 1 << (place % 8)
    return bytes(flipped)


def signed_log() -> list[Signed]:
    return [checkpoint(log(), 5, key()), checkpoint(log(), LAST, key())]


def held(*claims: Signed, trusted: bool = True) -> Trust:
    """Return the trust of somebody who kept claims, and perhaps their keys."""
    keys = frozenset(one.claim.key for one in claims) if trusted else frozenset()
    return Trust(keys, tuple(Presented(one, "kept.json", held=True) for one in claims))


WHOLE = bundle(log(), signed_log())


def test_the_bundle_itself_holds() -> None:
    """By the rules of the manual, too, as somebody else reads them."""
    assert holds(WHOLE)
    verified = checked(WHOLE, Trust(frozenset({key().id})))
    assert verified.report.entries == LAST
    assert verified.report.decisions == 4
    assert verified.pinned == LAST
    assert [one.claim.seq for one in verified.findings] == [5, LAST]
    require_pinned(verified)


@pytest.mark.spec("AUD-2")
@pytest.mark.spec("LED-2")
@settings(max_examples=examples(200), deadline=None)
@given(place=st.integers(0, len(WHOLE) * 8 - 1))
def test_a_flipped_bit_anywhere_in_the_file_is_found(place: int) -> None:
    with pytest.raises(VerificationError):
        checked(flip(WHOLE, place))


@pytest.mark.spec("AUD-2")
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_a_flipped_bit_in_a_member_is_found_behind_a_true_sum(
    data: st.DataObject,
) -> None:
    """The zip is put together anew, so that nothing but the contents can tell."""
    members = bundled(log(), signed_log())
    number = data.draw(st.integers(0, len(members) - 1))
    name, contents = members[number]
    place = data.draw(st.integers(0, len(contents) * 8 - 1))
    members[number] = (name, flip(contents, place))
    changed = b"".join(packed(members))
    assert not holds(changed)
    with pytest.raises(VerificationError):
        checked(changed)


@pytest.mark.spec("AUD-2")
def test_any_flipped_bit_of_a_key_is_found() -> None:
    """Also one that makes it a key of another kind, or of none that is known."""
    members = bundled(log(), signed_log())
    number = next(n for n, (name, _) in enumerate(members) if name.startswith("keys/"))
    name, contents = members[number]
    for place in range(len(contents) * 8):
        members[number] = (name, flip(contents, place))
        changed = b"".join(packed(members))
        assert not holds(changed), place
        with pytest.raises(VerificationError):
            checked(changed)


@pytest.mark.spec("AUD-2")
@settings(max_examples=examples(50), deadline=None)
@given(cut=st.integers(1, len(WHOLE)))
def test_a_cut_file_is_found(cut: int) -> None:
    with pytest.raises(VerificationError):
        checked(WHOLE[:-cut])


@pytest.mark.spec("AUD-2")
@settings(max_examples=examples(15), deadline=None)
@given(more=st.binary(min_size=1, max_size=50))
def test_a_longer_file_is_found(more: bytes) -> None:
    with pytest.raises(VerificationError):
        checked(WHOLE + more)


def members_changed(change: Callable[[list[tuple[str, bytes]]], object]) -> bytes:
    members = bundled(log(), signed_log())
    change(members)
    return b"".join(packed(members))


@pytest.mark.spec("AUD-2")
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_members_dropped_swapped_or_added_are_found(data: st.DataObject) -> None:
    count = len(bundled(log(), signed_log()))
    one = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(0, count - 1).filter(lambda place: place != one))

    def swapped(members: list[tuple[str, bytes]]) -> None:
        members[one], members[other] = members[other], members[one]

    for change in (
        lambda members: members.pop(one),
        swapped,
        lambda members: members.insert(one, ("more.txt", b"")),
    ):
        with pytest.raises(VerificationError):
            checked(members_changed(change))


@pytest.mark.spec("LED-2")
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_records_dropped_swapped_or_repeated_are_found(data: st.DataObject) -> None:
    """Also where the bundle is made anew of them, with a manifest that agrees."""
    one = data.draw(st.integers(0, LAST - 1))
    other = data.draw(st.integers(0, LAST - 1).filter(lambda place: place != one))
    dropped, swapped, repeated = list(log()), list(log()), list(log())
    if one != LAST - 1:
        del dropped[one]
    swapped[one], swapped[other] = swapped[other], swapped[one]
    repeated.insert(one, repeated[one])
    for rows in (dropped, swapped, repeated):
        if tuple(rows) != log():
            with pytest.raises(VerificationError):
                verify_log(rows, [], Trust())


@pytest.mark.spec("AUD-3")
@pytest.mark.spec("LED-2")
@settings(max_examples=examples(30), deadline=None)
@given(seq=st.integers(1, LAST), kept=st.integers(1, LAST))
def test_a_log_behind_a_checkpoint_fails_and_one_ahead_of_it_passes(
    seq: int, kept: int
) -> None:
    trust = held(checkpoint(log(), seq, key()))
    short = bundle(log()[:kept])
    checked(short)  # A log that was cut off is whole: nothing in it tells.
    if kept < seq:
        with pytest.raises(VerificationError, match="were removed"):
            checked(short, trust)
    else:
        assert checked(short, trust).pinned == seq


def forged(place: int, body: Body) -> list[Record]:
    """Return a log that is chained as it must be, with another entry at a place."""
    happened: list[Body] = list(audited.bodies())
    happened[place - 1] = body
    return sealed(happened)


#: A log that holds together, in which the tenth entry is another one.
FORGED = forged(10, Annotated("r-1", "another remark"))


HAPPENED = tuple(audited.bodies())
#: Every entry that brings a release in, with every coordinate that can be lowered.
LOWERED = [
    (seq, index)
    for seq, body in enumerate(HAPPENED, 1)
    if isinstance(body, ReleaseReserved | ReleaseDenied | PastRecorded)
    for index, units in enumerate(body.release.mechanisms[0].losses["user"].coordinates)
    if units
]


def cheaper(seq: int, index: int) -> Body:
    """Return an entry of the log that states one unit less."""
    body = HAPPENED[seq - 1]
    assert isinstance(body, ReleaseReserved | ReleaseDenied | PastRecorded)
    (one,) = body.release.mechanisms
    units = list(one.losses["user"].coordinates)
    units[index] -= 1
    less = replace(one, losses={"user": Loss(tuple(units))})
    return structs.replace(
        body, release=structs.replace(body.release, mechanisms=(less,))
    )


@pytest.mark.spec("AUD-9")
@settings(max_examples=examples(20), deadline=None)
@given(place=st.sampled_from(LOWERED))
def test_a_loss_below_its_price_is_found_in_a_bundle_that_holds_together(
    place: tuple[int, int],
) -> None:
    happened = list(HAPPENED)
    happened[place[0] - 1] = cheaper(*place)
    rows = sealed(happened)
    signed = checkpoint(rows, LAST, key())
    with pytest.raises(VerificationError, match="its description costs"):
        checked(bundle(rows, [signed]), held(signed))


def test_a_history_written_anew_holds_together() -> None:
    assert checked(bundle(FORGED)).report.entries == LAST


@pytest.mark.spec("AUD-3")
@pytest.mark.spec("LED-2")
@pytest.mark.parametrize("seq", range(1, LAST + 1))
def test_a_history_written_anew_is_found_by_a_checkpoint_only(seq: int) -> None:
    trust = held(checkpoint(log(), seq, key()))
    if seq < 10:  # What comes before is what it was.
        assert checked(bundle(FORGED), trust).pinned == seq
    else:
        with pytest.raises(VerificationError, match="is not the one"):
            checked(bundle(FORGED), trust)


def test_a_replaced_policy_is_found_by_its_text_or_by_a_checkpoint() -> None:
    first = audited.bodies()[0]
    assert isinstance(first, PolicyActivated)
    looser = PolicyActivated(
        first.digest, first.name, first.text.replace("budget: 2.0", "budget: 9.0")
    )
    with pytest.raises(VerificationError, match="digest"):
        checked(bundle(forged(1, looser)))
    # Told with its own digest, it is a policy that nothing was decided under.
    with pytest.raises(VerificationError, match="not active"):
        checked(bundle(forged(1, audited.activated(audited.WIDER))))
    # Written anew from the first entry on, it is simply another ledger.
    other = sealed([audited.activated(audited.WIDER)])
    checked(bundle(other))
    with pytest.raises(VerificationError, match="another ledger"):
        checked(bundle(other), held(checkpoint(log(), 1, key())))


def test_a_forged_signature_is_found() -> None:
    honest = checkpoint(log(), 5, key())
    other = checkpoint(log(), 6, key())
    forged_one = Signed(honest.claim, honest.public_key, other.signature)
    with pytest.raises(VerificationError, match="signature"):
        checked(WHOLE, held(forged_one))
    with pytest.raises(VerificationError, match="signature"):
        checked(bundle(log(), [forged_one]))


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_no_bit_of_a_signed_claim_can_change(data: st.DataObject) -> None:
    receipt = receipt_of(log()[3], ledger=log()[0].hash, at=audited.at(0), key=key().id)
    assert receipt is not None
    one = data.draw(st.sampled_from([checkpoint(log(), 5, key()), key().sign(receipt)]))
    line = signed_bytes(one)
    assert read_signed(line) == one
    place = data.draw(st.integers(0, len(line) * 8 - 1))
    try:
        changed = read_signed(flip(line, place))
    except ValueError:
        return
    with pytest.raises(VerificationError):
        checked(WHOLE, held(changed, trusted=False))


@pytest.mark.spec("AUD-4")
def test_a_key_that_nobody_named_proves_nothing() -> None:
    mallory = key(7)
    other = FORGED
    data = bundle(other, [checkpoint(other, LAST, mallory)])
    # Mallory signed what Mallory wrote: it holds together, and pins nothing.
    for trust in (Trust(), Trust(frozenset({key().id}))):
        verified = checked(data, trust)
        assert verified.pinned == 0
        assert not verified.findings[0].trusted
        with pytest.raises(VerificationError, match="no checkpoint is signed"):
            require_pinned(verified)
    # Handed over as if it had been held: its key is not among those named.
    reserved = Trust(frozenset({key().id}), held(checkpoint(other, LAST, mallory)).held)
    with pytest.raises(VerificationError, match="not a trusted key"):
        checked(data, reserved)


@pytest.mark.spec("AUD-3")
def test_a_receipt_pins_its_answer() -> None:
    answers = {4: "allow", 9: "deny", 2: "recorded"}
    ledger = log()[0].hash
    for seq, answer in answers.items():
        receipt = receipt_of(
            log()[seq - 1], ledger=ledger, at=audited.at(0), key=key().id
        )
        assert receipt is not None
        assert receipt.decision == answer
        assert checked(WHOLE, held(key().sign(receipt))).findings[0].claim == receipt
        # A receipt alone is not a checkpoint of the whole.
    assert receipt_of(log()[4], ledger=ledger, at=audited.at(0), key=key().id) is None
    # One that was signed for an answer that the entry does not give is refused.
    denial = receipt_of(log()[8], ledger=ledger, at=audited.at(0), key=key().id)
    assert denial is not None
    lie = key().sign(replace(denial, decision="allow", blocking=()))
    with pytest.raises(VerificationError, match="outcome"):
        checked(WHOLE, held(lie))


def test_a_checkpoint_of_the_last_entry_may_state_the_folded_state() -> None:
    state = checked(WHOLE).report.state_digest
    checked(WHOLE, held(checkpoint(log(), LAST, key(), state)))
    with pytest.raises(VerificationError, match="differs from the signed one"):
        checked(WHOLE, held(checkpoint(log(), LAST, key(), "0" * 64)))


def test_what_is_signed_names_its_kind_and_its_key() -> None:
    one = checkpoint(log(), 5, key())
    payload = claim_bytes(one.claim)
    assert b'"kind":"modicum-checkpoint/v1"' in payload
    assert one.claim.key.encode() in payload


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), value=PLAIN)
def test_a_manifest_that_says_anything_else_is_refused(
    data: st.DataObject, value: Any
) -> None:
    members = bundled(log(), signed_log())
    manifest = json.loads(members[0][1])
    name = data.draw(st.sampled_from(sorted(manifest)))
    assume(value != manifest[name] or isinstance(value, bool))
    members[0] = ("manifest.json", encode(manifest | {name: value}) + b"\n")
    with pytest.raises(VerificationError):
        checked(b"".join(packed(members)))


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), value=PLAIN)
def test_a_claim_that_says_anything_else_is_not_its_signers(
    data: st.DataObject, value: Any
) -> None:
    written = json.loads(signed_bytes(signed_log()[0]))
    part = data.draw(st.sampled_from([written, written["claim"]]))
    name = data.draw(st.sampled_from(sorted(part)))
    assume(value != part[name] or isinstance(value, bool))
    part[name] = value
    try:
        changed = read_signed(encode(written))
    except ValueError:
        return
    assert not changed.is_genuine(verify_signature)
