"""Common options and output of commands that verify a log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.output import print_json
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.ledger.proof.checkpoints import Finding
    from modicum.ledger.proof.repricing import Unpriced
    from modicum.storage.proofs.verification import Verified

PublicKeys = Annotated[
    list[Path] | None,
    typer.Option(
        "--public-key",
        help="A public key that you trust; repeatable.",
        metavar="FILE",
    ),
]
Claims = Annotated[
    list[Path] | None,
    typer.Option(
        "--checkpoint",
        help="A checkpoint or receipt that you kept; repeatable.",
        metavar="FILE",
    ),
]
RequireCheckpoint = Annotated[
    bool,
    typer.Option(
        "--require-checkpoint",
        help="Exit with code 6 unless a checkpoint signed by a trusted key is valid.",
    ),
]


def print_verified(name: str, verified: Verified, *, as_json: bool) -> None:
    """Print the verification result of a log."""
    if as_json:
        print_json(verified.to_dict())
        return
    report = verified.report
    print(
        f"{name}: chain ok, {report.entries} entries,"
        f" {report.decisions} decisions replayed, all match\n  head {report.head}"
    )
    if report.signed:
        print(
            f"  {report.signed} of {report.approvals} approvals are signed, and all"
            " signatures are valid"
        )
    for problem in report.gaps.problems():
        print(f"  {printable(problem.message)}")
    for seq in report.gaps.accepted:
        print(f"  entries were lost; two people accepted that, with entry {seq}")
    if report.unpriced.releases:
        print(f"  {printable(_unpriced_text(report.unpriced))}")
    if verified.noted is not None:
        print(f"  the given hash is that of entry {verified.noted}")
    for finding in verified.findings:
        print(f"  {printable(_finding_text(finding))}")
    if verified.findings or verified.keys_named:
        print(f"  {_pinned_text(verified)}")


def _unpriced_text(unpriced: Unpriced) -> str:
    count = unpriced.releases
    named = [
        f"entry {one.seq} (`{one.release}`, mechanism `{one.mechanism}`): {one.why}"
        for one in unpriced.first
    ]
    if count > len(named):
        named.append(f"and {count - len(named)} more")
    what = "release" if count == 1 else "releases"
    return (
        f"{count} {what} could not be priced again; their recorded losses are"
        f" taken as they are: {'; '.join(named)}"
    )


def _finding_text(finding: Finding) -> str:
    from modicum.ledger.proof.claims import Receipt

    claim = finding.claim
    what = "checkpoint"
    if isinstance(claim, Receipt):
        what = f"receipt for {claim.release} ({claim.decision})"
    whose = "trusted" if finding.trusted else "an untrusted key"
    return (
        f"{what} ({finding.source}): entry {claim.seq} is valid, signed"
        f" {claim.at} by {claim.key[:12]} ({whose})"
    )


def _pinned_text(verified: Verified) -> str:
    entries, pinned = verified.report.entries, verified.pinned
    if not pinned:
        return "no entry is signed by a trusted key"
    if pinned == entries:
        return f"all {entries} entries are signed by trusted keys"
    return (
        f"entries 1 to {pinned} are signed by trusted keys;"
        f" entries {pinned + 1} to {entries} by none"
    )


#: Number of digits of a head that commands print; fewer are not accepted.
DIGITS_MIN = 12
_HEAD = re.compile(rf"[0-9a-f]{{{DIGITS_MIN},64}}")


def noted_head(given: str, option: str = "--head") -> str:
    """Return the digits of a head that was noted, as the value of an option."""
    digits = given.strip().lower()
    if not _HEAD.fullmatch(digits):
        raise typer.BadParameter(
            f"not a head: a head is {DIGITS_MIN} to 64 hexadecimal digits, as"
            " `status` and `ledger list` print them",
            param_hint=option,
        )
    return digits


def whole_head(digits: str, hashes: Iterable[str]) -> str:
    """Return the hash that begins with some digits; the digits if none does."""
    found = {one for one in hashes if one.startswith(digits)}
    if len(found) > 1:
        raise typer.BadParameter(
            f"{len(found)} entries have a hash with this prefix: give more digits",
            param_hint="--head",
        )
    return found.pop() if found else digits
