"""The verifier `sev-snp`: the signer of a report, its measurement and firmware.

Source:
    AMD, SEV Secure Nested Paging Firmware ABI Specification (document 56860), the
    structure ATTESTATION_REPORT, versions 2 to 5; guest policy; TCB_VERSION.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from modicum.sandbox.attestation import Claims, Evidence, nonce_digest, refused
from modicum.system.clock import SystemClock

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

REPORT_BYTES: Final = 1184
#: Length of the signed part, from its start.
SIGNED_BYTES: Final = 0x2A0
_VERSIONS: Final = (2, 3, 5)
_ECDSA_P384_SHA384: Final = 1
_NUMBER_BYTES: Final = 72
#: From this family of processors on, a TCB begins with the firmware of the FMC.
_FAMILY_TURIN: Final = 0x1A
_VERSION_WITH_FAMILY: Final = 3


@dataclass(frozen=True, slots=True)
class Tcb:
    """The versions of the firmware that a machine's promises hang on.

    Attributes:
        boot_loader: Of the boot loader.
        tee: Of the security processor's operating system.
        snp: Of the SNP firmware.
        microcode: Of the microcode.
        fmc: Of the mutable code that is first, where there is one; otherwise 0.
    """

    boot_loader: int
    tee: int
    snp: int
    microcode: int
    fmc: int = 0

    def is_at_least(self, other: Tcb) -> bool:
        """Whether none of its versions is below another's."""
        return all(
            getattr(self, name) >= getattr(other, name)
            for name in ("boot_loader", "tee", "snp", "microcode", "fmc")
        )

    def __str__(self) -> str:
        versions = (self.fmc, self.boot_loader, self.tee, self.snp, self.microcode)
        return ".".join(map(str, versions))


@dataclass(frozen=True, slots=True)
class Report:
    """A parsed report; its signature is not checked.

    Attributes:
        version: Of its form.
        policy: The requirements of the guest's owner, as bits.
        vmpl: The privilege level of the requester; 0 is the highest.
        flags: Which key signed it, and whether the chip's is hidden.
        report_data: The guest's data.
        measurement: The measurement of the guest at its start.
        host_data: The host's data at the start.
        tcb: The firmware that the signing key was derived for.
        has_fmc: Whether its firmware has an FMC.
        chip_id: Which processor it is.
        signed: The bytes that are signed.
        r: The first number of the signature.
        s: The second number of the signature.
    """

    version: int
    policy: int
    vmpl: int
    flags: int
    report_data: bytes
    measurement: bytes
    host_data: bytes
    tcb: Tcb
    has_fmc: bool
    chip_id: bytes
    signed: bytes
    r: int
    s: int

    @property
    def allows_debugging(self) -> bool:
        """Whether the host may read the guest's memory."""
        return bool(self.policy >> 19 & 1)

    @property
    def allows_migration(self) -> bool:
        """Whether an agent may take the guest to another machine."""
        return bool(self.policy >> 18 & 1)

    @property
    def signing_key(self) -> int:
        """Which key signed it: 0 is the chip's own (VCEK)."""
        return self.flags >> 2 & 0b111

    @property
    def hides_chip(self) -> bool:
        """Whether the chip's id and key are hidden."""
        return bool(self.flags >> 1 & 1)


def parse(content: bytes) -> Report:
    """Return a report, read from its bytes."""
    if len(content) != REPORT_BYTES:
        raise refused(f"a report has {REPORT_BYTES} bytes")
    (version,) = struct.unpack_from("<I", content, 0)
    (policy,) = struct.unpack_from("<Q", content, 0x08)
    vmpl, algorithm = struct.unpack_from("<II", content, 0x30)
    (flags,) = struct.unpack_from("<I", content, 0x48)
    if version not in _VERSIONS:
        raise refused("the version of its report is unknown")
    if algorithm != _ECDSA_P384_SHA384:
        raise refused("it is not signed by ECDSA over P-384 with SHA-384")
    if not policy >> 17 & 1:
        raise refused("its policy lacks a mandatory bit")
    family = content[0x188] if version >= _VERSION_WITH_FAMILY else 0
    has_fmc = family >= _FAMILY_TURIN
    signature = content[SIGNED_BYTES:]
    return Report(
        version=version,
        policy=policy,
        vmpl=vmpl,
        flags=flags,
        report_data=content[0x50:0x90],
        measurement=content[0x90:0xC0],
        host_data=content[0xC0:0xE0],
        tcb=_tcb(content[0x180:0x188], has_fmc=has_fmc),
        has_fmc=has_fmc,
        chip_id=content[0x1A0:0x1E0],
        signed=content[:SIGNED_BYTES],
        r=int.from_bytes(signature[:_NUMBER_BYTES], "little"),
        s=int.from_bytes(signature[_NUMBER_BYTES : 2 * _NUMBER_BYTES], "little"),
    )


def _tcb(content: bytes, *, has_fmc: bool) -> Tcb:
    if has_fmc:
        fmc, boot_loader, tee, snp = content[:4]
        return Tcb(boot_loader, tee, snp, content[7], fmc)
    return Tcb(content[0], content[1], content[6], content[7])


_VCEK: Final = 0
_CHAIN: Final = 2
# AMD's extensions in the certificate of a chip's key: what it was derived from.
_TCB_PARTS: Final[Mapping[str, str]] = {
    "boot_loader": "1.3.6.1.4.1.3704.1.3.1",
    "tee": "1.3.6.1.4.1.3704.1.3.2",
    "snp": "1.3.6.1.4.1.3704.1.3.3",
    "microcode": "1.3.6.1.4.1.3704.1.3.8",
}
_TCB_FMC: Final = "1.3.6.1.4.1.3704.1.3.9"
_CHIP: Final = "1.3.6.1.4.1.3704.1.4"
_DER_INTEGER, _DER_OCTETS = 0x02, 0x04
_CHIP_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class SevSnp:
    """Accepts reports of AMD SEV-SNP that lead to a pinned root.

    Attributes:
        roots: The trusted certificates (ARK), as DER or PEM, from the operator; none is
            included in modicum, and none is fetched.
        measurements: The accepted measurements, each 48 bytes.
        tcb_min: The oldest accepted firmware.
        vmpl_max: The lowest privilege level that may request a report; 0 is the
            highest.
        now: Returns the time.
    """

    roots: Sequence[bytes]
    measurements: Collection[bytes]
    tcb_min: Tcb
    vmpl_max: int = 0
    now: Callable[[], str] = SystemClock().now

    def verify(self, evidence: Evidence, nonce: bytes) -> Claims:
        """Return the claims that a processor proves."""
        report = parse(evidence.report)
        if len(evidence.certificates) != _CHAIN:
            raise refused("it needs the certificates of the VCEK and the ASK")
        chip, signer = (_certificate(each) for each in evidence.certificates)
        self._refuse_other_chain(chip, signer)
        _refuse_other_chip(report, chip)
        _refuse_other_signature(report, chip)
        self._refuse_other_guest(report, nonce)
        measured = {
            "measurement": report.measurement.hex(),
            "host_data": report.host_data.hex(),
            "chip_id": report.chip_id.hex(),
            "tcb": str(report.tcb),
            "policy": f"{report.policy:#x}",
            "vmpl": str(report.vmpl),
        }
        return Claims("sev-snp", is_proof=True, warning="", measured=measured)

    def _refuse_other_chain(self, chip: Certificate, signer: Certificate) -> None:
        roots = [_certificate(each) for each in self.roots]
        root = next((one for one in roots if _signed(signer, one)), None)
        if root is None or not _signed(root, root):
            raise refused("its certificates do not lead to a trusted root")
        if not _signed(chip, signer):
            raise refused("the key of its chip is not signed by the key it names")
        moment = datetime.fromisoformat(self.now())
        for one in (chip, signer, root):
            if not one.not_valid_before_utc <= moment <= one.not_valid_after_utc:
                raise refused(
                    "a certificate is not valid now",
                    "correct the clock, or fetch the certificates again",
                )

    def _refuse_other_guest(self, report: Report, nonce: bytes) -> None:
        if report.report_data != nonce_digest(nonce):
            raise refused("it is for another nonce")
        if report.measurement not in self.measurements:
            raise refused(
                "its measurement is not among the allowed ones",
                "compare how the guest is started with what was allowed",
            )
        if report.allows_debugging:
            raise refused("its policy lets the host read the guest's memory")
        if report.allows_migration:
            raise refused("its policy lets an agent move the guest elsewhere")
        if report.vmpl > self.vmpl_max:
            raise refused("its requester has too low a privilege level")
        if not report.tcb.is_at_least(self.tcb_min):
            raise refused(
                f"its firmware is {report.tcb}, and {self.tcb_min} is the minimum",
                "update the firmware of the machine",
            )


def _refuse_other_chip(report: Report, chip: Certificate) -> None:
    if report.signing_key != _VCEK or report.hides_chip:
        raise refused("it is not signed by the key of a chip that it names")
    if _octets(_extension(chip, _CHIP)) != report.chip_id:
        raise refused("its key is of another chip")
    parts = dict(_TCB_PARTS)
    if report.has_fmc:
        parts["fmc"] = _TCB_FMC
    for name, identifier in parts.items():
        if _integer(_extension(chip, identifier)) != getattr(report.tcb, name):
            raise refused("its key is of other firmware")


def _refuse_other_signature(report: Report, chip: Certificate) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    key = chip.public_key()
    is_p384 = isinstance(key, ec.EllipticCurvePublicKey) and isinstance(
        key.curve, ec.SECP384R1
    )
    if not is_p384:
        raise refused("the key of its chip is not of the curve P-384")
    assert isinstance(key, ec.EllipticCurvePublicKey)
    signature = encode_dss_signature(report.r, report.s)
    try:
        key.verify(signature, report.signed, ec.ECDSA(hashes.SHA384()))
    except InvalidSignature as error:
        raise refused("its signature is invalid") from error


def _certificate(content: bytes) -> Certificate:
    from cryptography import x509

    try:
        if content.lstrip().startswith(b"-----BEGIN"):
            return x509.load_pem_x509_certificate(content)
        return x509.load_der_x509_certificate(content)
    except ValueError as error:
        raise refused("one of its certificates cannot be read") from error


def _signed(certificate: Certificate, by: Certificate) -> bool:
    """Whether a certificate was signed by another's key, with RSA-PSS and SHA-384."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key, how = by.public_key(), certificate.signature_algorithm_parameters
    if (
        certificate.issuer != by.subject
        or not isinstance(key, rsa.RSAPublicKey)
        or not isinstance(how, padding.PSS)
        or not isinstance(certificate.signature_hash_algorithm, hashes.SHA384)
    ):
        return False
    try:
        key.verify(
            certificate.signature,
            certificate.tbs_certificate_bytes,
            how,
            certificate.signature_hash_algorithm,
        )
    except InvalidSignature:
        return False
    return True


def _extension(chip: Certificate, identifier: str) -> bytes:
    from cryptography import x509

    try:
        found = chip.extensions.get_extension_for_oid(x509.ObjectIdentifier(identifier))
    except (x509.ExtensionNotFound, ValueError) as error:
        raise refused("the certificate of its chip is not one of AMD's form") from error
    value = found.value
    return value.value if isinstance(value, x509.UnrecognizedExtension) else b""


def _integer(content: bytes) -> int:
    """Return a small number of ASN.1; -1 if it is none."""
    is_number = len(content) >= 3 and content[0] == _DER_INTEGER
    is_whole = is_number and content[1] == len(content) - 2 <= 2
    return int.from_bytes(content[2:], "big") if is_whole else -1


def _octets(content: bytes) -> bytes:
    """Return the id of a chip, which is bare or an ASN.1 string."""
    is_wrapped = content[:2] == bytes((_DER_OCTETS, _CHIP_BYTES))
    return content[2:] if is_wrapped and len(content) > _CHIP_BYTES else content
