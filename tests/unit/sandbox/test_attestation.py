"""What evidence of confidential machines is taken, on a chain that the test makes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from budget import examples
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, VerificationError
from modicum.sandbox.attestation import (
    Evidence,
    NoVerifier,
    SimulatedVerifier,
    simulated_evidence,
)
from modicum.sandbox.sev_snp import SevSnp, Tcb, parse

NONCE = b"n" * 32
MEASUREMENT = bytes(range(48))
CHIP = bytes(range(64))
NOW = "2030-01-01T00:00:00.000000Z"
TCB = Tcb(boot_loader=4, tee=1, snp=22, microcode=213)
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)


@dataclass(frozen=True)
class Chain:
    """Keys and certificates as AMD has them, made here."""

    root_key: rsa.RSAPrivateKey
    root: x509.Certificate
    signer_key: rsa.RSAPrivateKey
    signer: x509.Certificate
    chip_key: ec.EllipticCurvePrivateKey
    chip: x509.Certificate


def certificate(
    name: str,
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
    issuer: tuple[str, rsa.RSAPrivateKey],
    extensions: dict[str, bytes] | None = None,
    years: int = 25,
) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    started = datetime(2026, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer[0]))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(started)
        .not_valid_after(started + timedelta(days=365 * years))
    )
    for identifier, value in (extensions or {}).items():
        extension = x509.UnrecognizedExtension(x509.ObjectIdentifier(identifier), value)
        made = made.add_extension(extension, critical=False)
    return made.sign(issuer[1], hashes.SHA384(), rsa_padding=PSS)


def chip_extensions(tcb: Tcb = TCB, chip: bytes = CHIP) -> dict[str, bytes]:
    parts = {1: tcb.boot_loader, 2: tcb.tee, 3: tcb.snp, 8: tcb.microcode, 9: tcb.fmc}
    found = {
        # A number above 127 takes a zero before it, or it would be negative.
        f"1.3.6.1.4.1.3704.1.3.{at}": bytes((2, 1, n))
        if n < 128
        else bytes((2, 2, 0, n))
        for at, n in parts.items()
    }
    return found | {"1.3.6.1.4.1.3704.1.4": chip}


@pytest.fixture(scope="module")
def chain() -> Chain:
    root_key = rsa.generate_private_key(65537, 4096)
    signer_key = rsa.generate_private_key(65537, 4096)
    chip_key = ec.generate_private_key(ec.SECP384R1())
    return Chain(
        root_key,
        certificate("ARK", root_key, ("ARK", root_key)),
        signer_key,
        certificate("SEV", signer_key, ("ARK", root_key)),
        chip_key,
        certificate("VCEK", chip_key, ("SEV", signer_key), chip_extensions()),
    )


def unsigned(
    changes: dict[int, bytes] | None = None, nonce: bytes = NONCE
) -> bytearray:
    """Return a report by the offsets of AMD's table, without a signature."""
    content = bytearray(1184)
    tcb = bytes((TCB.boot_loader, TCB.tee, 0, 0, 0, 0, TCB.snp, TCB.microcode))
    fields = {
        0x00: struct.pack("<I", 3),
        0x08: struct.pack("<Q", 0x30000),
        0x34: struct.pack("<I", 1),
        0x50: hashlib.sha512(nonce).digest(),
        0x90: MEASUREMENT,
        0x180: tcb,
        0x188: bytes((0x19, 0x11, 1)),
        0x1A0: CHIP,
    }
    for at, value in (fields | (changes or {})).items():
        content[at : at + len(value)] = value
    return content


def signed(content: bytearray, key: ec.EllipticCurvePrivateKey) -> bytes:
    signature = key.sign(bytes(content[:0x2A0]), ec.ECDSA(hashes.SHA384()))
    r, s = decode_dss_signature(signature)
    content[0x2A0 : 0x2A0 + 72] = r.to_bytes(72, "little")
    content[0x2A0 + 72 : 0x2A0 + 144] = s.to_bytes(72, "little")
    return bytes(content)


def shown(chain: Chain, changes: dict[int, bytes] | None = None) -> Evidence:
    return Evidence(
        signed(unsigned(changes), chain.chip_key),
        tuple(
            one.public_bytes(serialization.Encoding.DER)
            for one in (chain.chip, chain.signer)
        ),
    )


def verifier(chain: Chain, now: str = NOW) -> SevSnp:
    root = chain.root.public_bytes(serialization.Encoding.PEM)
    return SevSnp((root,), (MEASUREMENT,), TCB, now=lambda: now)


def refusal(check: Callable[[], object]) -> str:
    with pytest.raises(VerificationError) as caught:
        check()
    assert caught.value.code is Code.EVIDENCE_REFUSED
    return str(caught.value)


def test_a_report_that_holds_is_taken(chain: Chain) -> None:
    claims = verifier(chain).verify(shown(chain), NONCE)
    assert claims.is_proof
    assert claims.warning == ""
    assert claims.measured["measurement"] == MEASUREMENT.hex()
    assert claims.measured["chip_id"] == CHIP.hex()
    assert claims.measured["tcb"] == "0.4.1.22.213"


def test_certificates_may_be_pem(chain: Chain) -> None:
    certificates = tuple(
        one.public_bytes(serialization.Encoding.PEM)
        for one in (chain.chip, chain.signer)
    )
    evidence = replace(shown(chain), certificates=certificates)
    assert verifier(chain).verify(evidence, NONCE).is_proof


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({0x00: b"\x01"}, "version of its report"),
        ({0x34: b"\x02"}, "not signed by ECDSA"),
        ({0x08: struct.pack("<Q", 0x10000)}, "lacks a mandatory bit"),
        ({0x08: struct.pack("<Q", 0xB0000)}, "lets the host read the guest's memory"),
        ({0x08: struct.pack("<Q", 0x70000)}, "move the guest elsewhere"),
        ({0x30: b"\x01"}, "privilege level"),
        ({0x48: b"\x04"}, "key of a chip"),
        ({0x48: b"\x02"}, "key of a chip"),
        ({0x50: b"\x00"}, "another nonce"),
        ({0x90: b"\xff"}, "measurement"),
        ({0x180: b"\x05"}, "other firmware"),
        ({0x186: b"\x15"}, "other firmware"),
        ({0x188: b"\x1a"}, "other firmware"),
        ({0x1A0: b"\xff"}, "another chip"),
    ],
)
def test_a_report_of_something_else_is_refused_though_it_is_signed(
    chain: Chain, changes: dict[int, bytes], why: str
) -> None:
    assert why in refusal(lambda: verifier(chain).verify(shown(chain, changes), NONCE))


@pytest.mark.parametrize("at", [0x00, 0x60, 0x95, 0xC0, 0x140, 0x1F0, 0x29F, 0x2A0])
def test_a_report_that_was_changed_is_refused(chain: Chain, at: int) -> None:
    evidence = shown(chain)
    content = bytearray(evidence.report)
    content[at] ^= 4
    changed = replace(evidence, report=bytes(content))
    assert refusal(lambda: verifier(chain).verify(changed, NONCE))


def test_what_the_host_put_in_is_part_of_what_is_signed(chain: Chain) -> None:
    evidence = shown(chain)
    content = bytearray(evidence.report)
    content[0xC0] = 1
    changed = replace(evidence, report=bytes(content))
    assert "signature" in refusal(lambda: verifier(chain).verify(changed, NONCE))


def test_older_firmware_is_refused(chain: Chain) -> None:
    strict = replace(verifier(chain), tcb_min=replace(TCB, snp=23))
    assert "is the minimum" in refusal(lambda: strict.verify(shown(chain), NONCE))
    # Newer microcode does not make up for it.
    strict = replace(verifier(chain), tcb_min=Tcb(0, 0, 23, 0))
    assert "is the minimum" in refusal(lambda: strict.verify(shown(chain), NONCE))


def test_the_key_of_another_root_is_refused(chain: Chain) -> None:
    other_key = rsa.generate_private_key(65537, 2048)
    other = certificate("ARK", other_key, ("ARK", other_key))
    root = other.public_bytes(serialization.Encoding.DER)
    stranger = replace(verifier(chain), roots=(root,))
    assert "root" in refusal(lambda: stranger.verify(shown(chain), NONCE))
    assert "root" in refusal(
        lambda: replace(stranger, roots=()).verify(shown(chain), NONCE)
    )
    # Everything of the stranger's own: well signed, by whom nobody trusts.
    chip = certificate("VCEK", chain.chip_key, ("SEV", other_key), chip_extensions())
    signer = certificate("SEV", other_key, ("ARK", other_key))
    evidence = shown(replace(chain, chip=chip, signer=signer))
    assert "root" in refusal(lambda: verifier(chain).verify(evidence, NONCE))


def test_a_chip_that_the_signer_did_not_sign_is_refused(chain: Chain) -> None:
    other_key = rsa.generate_private_key(65537, 2048)
    chip = certificate("VCEK", chain.chip_key, ("SEV", other_key), chip_extensions())
    evidence = shown(replace(chain, chip=chip))
    assert "not signed" in refusal(lambda: verifier(chain).verify(evidence, NONCE))


def test_a_certificate_without_what_amd_writes_is_refused(chain: Chain) -> None:
    chip = certificate("VCEK", chain.chip_key, ("SEV", chain.signer_key))
    evidence = shown(replace(chain, chip=chip))
    assert "AMD's form" in refusal(lambda: verifier(chain).verify(evidence, NONCE))


def test_certificates_are_taken_in_their_time_alone(chain: Chain) -> None:
    for now in ("2025-12-31T00:00:00.000000Z", "2052-01-01T00:00:00.000000Z"):
        late = partial(verifier(chain, now).verify, shown(chain), NONCE)
        assert "not valid" in refusal(late)


def test_the_layout_of_newer_processors_is_read(chain: Chain) -> None:
    tcb = Tcb(boot_loader=5, tee=6, snp=7, microcode=8, fmc=9)
    chip = certificate(
        "VCEK", chain.chip_key, ("SEV", chain.signer_key), chip_extensions(tcb)
    )
    changes = {0x180: bytes((9, 5, 6, 7, 0, 0, 0, 8)), 0x188: b"\x1a"}
    evidence = shown(replace(chain, chip=chip), changes)
    newer = replace(verifier(chain), tcb_min=tcb)
    assert newer.verify(evidence, NONCE).measured["tcb"] == "9.5.6.7.8"


@pytest.mark.parametrize("certificates", [(), (b"x", b"y"), (b"",) * 3])
def test_other_certificates_are_refused(
    chain: Chain, certificates: tuple[bytes, ...]
) -> None:
    evidence = replace(shown(chain), certificates=certificates)
    assert refusal(lambda: verifier(chain).verify(evidence, NONCE))


def test_a_nonce_that_may_come_again_is_refused(chain: Chain) -> None:
    assert "nonce" in refusal(lambda: verifier(chain).verify(shown(chain), b"n" * 15))


@given(st.binary(max_size=1300) | st.binary(min_size=1184, max_size=1184))
@settings(max_examples=examples(200, plain=50))
def test_any_bytes_are_a_report_or_refused(content: bytes) -> None:
    found = None
    with suppress(VerificationError):
        found = parse(content)
    assert found is None or len(content) == 1184


def test_none_says_that_nothing_was_verified() -> None:
    claims = NoVerifier().verify(Evidence(b"anything"), b"")
    assert not claims.is_proof
    assert claims.verifier == "none"
    assert "NOTHING WAS VERIFIED" in claims.warning
    assert claims.measured == {}


def test_simulated_evidence_says_so_in_every_claim() -> None:
    claims = SimulatedVerifier(["ab"]).verify(simulated_evidence("ab", NONCE), NONCE)
    assert not claims.is_proof
    assert "SIMULATED" in claims.warning
    assert all("SIMULATED" in text for text in claims.measured.values())


def test_simulated_evidence_is_refused_as_real_evidence_is(chain: Chain) -> None:
    simulated = SimulatedVerifier(["ab"])
    for evidence, nonce in (
        (simulated_evidence("cd", NONCE), NONCE),
        (simulated_evidence("ab", NONCE), b"o" * 32),
        (Evidence(b"{}"), NONCE),
        (Evidence(b"\xff"), NONCE),
        (shown(chain), NONCE),
    ):
        assert refusal(partial(simulated.verify, evidence, nonce))
    real = verifier(chain)
    assert refusal(lambda: real.verify(simulated_evidence("ab", NONCE), NONCE))
