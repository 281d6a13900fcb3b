"""Attestation of confidential machines, before a key is released to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from modicum.core.errors import Code, Problem, VerificationError

#: A shorter nonce may repeat.
NONCE_BYTES_MIN: Final = 16
NOTHING_VERIFIED: Final = "NOTHING WAS VERIFIED: the code and the machine are unknown"
SIMULATED: Final = "SIMULATED, FOR TESTS ONLY: no hardware attests any of this"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a machine.

    Attributes:
        report: The report signed by its processor.
        certificates: The certificates that lead from it to a root, without the root,
            each as DER or PEM, the processor's own first.
    """

    report: bytes = field(repr=False)
    certificates: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Claims:
    """The verified claims about a machine.

    Attributes:
        verifier: The verifier: `none`, `simulated` or `sev-snp`.
        is_proof: Whether a processor vouches for it.
        warning: Must be shown wherever a claim is; empty for a proof.
        measured: The measurements, by name.
    """

    verifier: str
    is_proof: bool
    warning: str
    measured: Mapping[str, str]


class Verifier(Protocol):
    """A verifier of evidence."""

    def verify(self, evidence: Evidence, nonce: bytes) -> Claims:
        """Return the verified claims of some evidence."""
        ...


def refused(why: str, remedy: str = "run nothing there") -> VerificationError:
    """Return the error that refuses evidence."""
    return VerificationError(
        Problem(
            Code.EVIDENCE_REFUSED,
            f"the evidence of the machine is refused: {why}",
            notes=("it has no key",),
            help=remedy,
        )
    )


class NoVerifier:
    """Verifies nothing, and reports that. For machines that are not confidential."""

    def verify(self, evidence: Evidence, nonce: bytes) -> Claims:
        """Return that nothing is known."""
        del evidence, nonce
        return Claims("none", is_proof=False, warning=NOTHING_VERIFIED, measured={})


class SimulatedVerifier:
    """Accepts evidence that anybody can make; each of its claims is marked as such.

    Args:
        measurements: The accepted measurements, in hexadecimal.
    """

    def __init__(self, measurements: Collection[str]) -> None:
        self._allowed = frozenset(measurements)

    def verify(self, evidence: Evidence, nonce: bytes) -> Claims:
        """Return the claims of simulated evidence."""
        try:
            report = json.loads(evidence.report)
            measurement, given_nonce = str(report["measurement"]), str(report["nonce"])
        except (ValueError, TypeError, KeyError) as error:
            raise refused("it is not simulated evidence") from error
        if given_nonce != nonce_digest(nonce).hex():
            raise refused("it is for another nonce")
        if measurement not in self._allowed:
            raise refused("its measurement is not among the allowed ones")
        measured = {"measurement": f"{measurement} ({SIMULATED})"}
        return Claims("simulated", is_proof=False, warning=SIMULATED, measured=measured)


def simulated_evidence(measurement: str, nonce: bytes) -> Evidence:
    """Return evidence that only a simulated verifier accepts."""
    report = {"measurement": measurement, "nonce": nonce_digest(nonce).hex()}
    return Evidence(json.dumps(report).encode("ascii"))


def nonce_digest(nonce: bytes) -> bytes:
    """Return the 64 bytes that a machine puts into its evidence for a nonce."""
    if len(nonce) < NONCE_BYTES_MIN:
        raise refused(f"a nonce has {NONCE_BYTES_MIN} bytes or more")
    return hashlib.sha512(nonce).digest()
