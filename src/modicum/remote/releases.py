"""Releases as a server names and tells them."""

from __future__ import annotations

from datetime import date
from typing import Any, Final
from urllib.parse import quote

from modicum.api.schema.release import ReleaseState
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing
from modicum.ledger.log.release_format import release_from_plain
from modicum.ledger.state.life import unknown_release
from modicum.remote.mistakes import not_understood
from modicum.remote.told import decoded

#: No release has a longer id.
_ID_CHARACTERS_MAX: Final = 200


def release_path(release: str, under: str = "releases") -> str:
    """Return the path of a release, or of a request for it.

    Args:
        release: Its id.
        under: What it is looked for among.

    Raises:
        InputError: If no release has such an id.
    """
    if not 0 < len(release) <= _ID_CHARACTERS_MAX or release in {".", ".."}:
        raise unknown_release(release)
    return f"/{under}/{quoted(release)}"


def quoted(identifier: str) -> str:
    """Return an id as it stands in a path.

    Args:
        identifier: The id.
    """
    return quote(identifier, safe="")


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
    return Standing(
        one.release,
        one.content,
        status,
        one.expires_at or "",
        one.entry,
        date.fromisoformat(one.day).toordinal(),
    )
