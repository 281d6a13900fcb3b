"""Releases as a server names and tells them."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final

from modicum.api.schema.release import ReleaseState
from modicum.client.problems import not_understood
from modicum.client.told import decoded
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing
from modicum.ledger.log.release_codec import release_from_plain
from modicum.ledger.state.lifecycle import unknown_release

#: No release has a longer id.
_ID_CHARACTERS_MAX: Final = 200
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def named(release: str, hole: str = "release") -> dict[str, str]:
    """Return the id of a release, or of a contract, as it goes into an address.

    Args:
        release: The id.
        hole: What the address calls it.

    Raises:
        InputError: If nothing has such an id.
    """
    if not 0 < len(release) <= _ID_CHARACTERS_MAX or release in {".", ".."}:
        raise unknown_release(release)
    return {hole: release}


def recorded_release(told: Any) -> RecordedRelease:
    """Return a release that a server tells as the ledger keeps it.

    Args:
        told: What it tells.

    Raises:
        UnavailableError: If it is none.
    """
    try:
        return release_from_plain(told)
    except ValueError as error:
        raise not_understood(f"its release is none ({error})") from None


def standing_of(told: object) -> Standing:
    """Return where a release stands.

    Args:
        told: What a server tells.

    Raises:
        UnavailableError: If it tells something else.
    """
    one = decoded(ReleaseState, told)
    try:
        status = ReleaseStatus(one.status)
    except ValueError:
        raise not_understood(f"no release is `{one.status[:40]}`") from None
    if not _DAY.fullmatch(one.day):
        raise not_understood(f"no day is `{one.day[:40]}`")
    try:
        day = date.fromisoformat(one.day).toordinal()
    except ValueError:
        raise not_understood(f"no day is `{one.day}`") from None
    return Standing(
        one.release,
        one.content,
        status,
        one.expires_at or "",
        one.entry,
        day,
    )
