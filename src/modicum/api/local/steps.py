"""The life of a release that was brought in: started, posted, or given up."""

from __future__ import annotations

from modicum.api.local.balances import Entry
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.reader import text
from modicum.ledger import Standing
from modicum.ledger.log.events import ReleasePosted, ReleaseStarted, ReleaseVoided
from modicum.ledger.state.lifecycle import next_status, unknown_release


def step(
    body: ReleaseStarted | ReleasePosted | ReleaseVoided, entry: Entry
) -> Standing:
    """Return where a release stands after a step of its life.

    Args:
        body: The step.
        entry: The turn.

    Raises:
        InputError: If the ledger knows no such release.
        ConflictError: If it is not where the step begins.
    """
    releases = entry.book.state.releases
    standing = releases.get(body.release)
    if standing is None:
        raise unknown_release(body.release)
    next_status(standing, body, entry.now)
    entry.add(body)
    return releases[body.release]


def giving_up(release: str, reason: str) -> ReleaseVoided:
    """Return the step by which a release is given up.

    Args:
        release: The id.
        reason: Why, for the record; 1 to 2000 characters.

    Raises:
        InputError: If no reason is given, or a longer one.
    """
    why = text(from_python(reason), "the reason").strip()
    if not why:
        raise InputError(Problem(Code.MISSING_KEY, "voiding a release needs a reason"))
    return ReleaseVoided(release, why)
