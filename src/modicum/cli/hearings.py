"""What commands print of approvals: where each stands, and what people said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.governance.approval_cases import Spoken
    from modicum.ledger.decision.approvals import Hearing


def hearing_lines(heard: Iterable[Hearing]) -> Iterator[str]:
    """Yield where each approval stands, and whether it is given.

    Args:
        heard: The approvals.
    """
    from modicum.api.local.governance.governance import hearing_text

    return (
        printable(f"{'ok     ' if one.given else 'MISSING'}  {hearing_text(one)}")
        for one in heard
    )


def spoken_line(one: Spoken, besides: str = "") -> str:
    """Return what somebody said once.

    Args:
        one: What they said.
        besides: Why it does not count here; empty if it does.
    """
    verb = "approved" if one.approves else "rejected"
    about = f"{verb} ({besides})" if besides else verb
    roles = " and ".join(one.roles)
    signed = f", signed with {one.key[:12]}" if one.key else ""
    return printable(
        f"entry {one.seq}  {one.at[:10]}  {one.by} {about} as {roles}{signed}:"
        f" {one.reason}"
    )


# --- JSON -----------------------------------------------------------------------
