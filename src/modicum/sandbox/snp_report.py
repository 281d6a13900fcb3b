"""The attestation report of AMD SEV-SNP, read from its 1184 bytes.

Source:
    AMD, SEV Secure Nested Paging Firmware ABI Specification (document 56860), the
    structure ATTESTATION_REPORT, versions 2 to 5; guest policy; TCB_VERSION.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from modicum.sandbox.attestation import refused

REPORT_BYTES: Final = 1184
#: How much of it is signed, from its start.
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
    """A report, as it stands there; nobody has checked its signature.

    Attributes:
        version: Of its form.
        policy: What the guest's owner demanded, as bits.
        vmpl: The privilege level of who asked for it; 0 is the highest.
        flags: Which key signed it, and whether the chip's is hidden.
        report_data: What the guest put in.
        measurement: Of what the guest was started with.
        host_data: What the host put in at the start.
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
    """Return a report, read from its bytes.

    Args:
        content: The bytes.

    Raises:
        VerificationError: If they are no report of a known version and signature.
    """
    if len(content) != REPORT_BYTES:
        raise refused(f"a report has {REPORT_BYTES} bytes")
    (version,) = struct.unpack_from("<I", content, 0)
    (policy,) = struct.unpack_from("<Q", content, 0x08)
    vmpl, algorithm = struct.unpack_from("<II", content, 0x30)
    (flags,) = struct.unpack_from("<I", content, 0x48)
    if version not in _VERSIONS:
        raise refused("the version of its report is not known")
    if algorithm != _ECDSA_P384_SHA384:
        raise refused("it is not signed by ECDSA over P-384 with SHA-384")
    if not policy >> 17 & 1:
        raise refused("its policy lacks a bit that is always set")
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
