"""The releases that an identity may see, and placeholders for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from modicum.api.local.governance.requests import requested_in
from modicum.api.local.history import ReleaseEntry
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import may
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.ledger import Spender
from modicum.api.schema.shape import Shape
from modicum.ledger import RecordedRelease, Standing
from modicum.ledger.log.data_sets import data_sets_recorded
from modicum.ledger.state.lifecycle import unknown_release
from modicum.release import Vocabulary

S = TypeVar("S")

#: The placeholder for a release of data sets hidden from the caller.
OTHERS: Final = "(another data set)"


@dataclass(frozen=True, slots=True)
class VisibleRelease:
    """A release as visible to an identity.

    Attributes:
        standing: Its status.
        release: Its contents and loss.
        vocabulary: The units of the active policy.
        story: Its entries, oldest first.
    """

    standing: Standing
    release: RecordedRelease
    vocabulary: Vocabulary
    story: tuple[ReleaseEntry, ...] = ()


# --- one release --------------------------------------------------------------------


def may_see(who: Identity | None, release: RecordedRelease) -> bool:
    """Return whether an identity may see a release.

    Args:
        who: The identity; None for the ledger's keeper, who sees everything.
        release: The release.
    """
    return who is None or may(who, Action.READ_RELEASES, data_sets_recorded(release))


def found(
    view: LedgerView, who: Identity | None, release: str
) -> VisibleRelease | None:
    """Return a visible release; None if there is none.

    Args:
        view: The ledger.
        who: The caller; None for the ledger's keeper, who sees everything.
        release: The id.
    """
    book, _, now = view.current()
    standing = book.standing_at(release, now)
    if standing is None:
        return None
    vocabulary = view.policy().policy.vocabulary
    visible = VisibleRelease(standing, view.release_of(standing), vocabulary)
    return visible if may_see(who, visible.release) else None


def seen(view: LedgerView, who: Identity | None, release: str) -> VisibleRelease:
    """Return a visible release.

    Args:
        view: The ledger.
        who: The caller.
        release: The id.

    Raises:
        InputError: If there is none. The error does not reveal whether one is hidden.
    """
    visible = found(view, who, release)
    if visible is None:
        raise unknown_release(release)
    return visible


def is_known_to(view: LedgerView, who: Identity, release: str) -> bool:
    """Return whether an identity may see the release or request of an id.

    Args:
        view: The ledger.
        who: The caller.
        release: The id.

    Raises:
        InputError: If neither a release nor a request has the id.
    """
    book, read, now = view.current()
    if book.standing_at(release, now) is not None:
        return found(view, who, release) is not None
    request = book.state.waiting.requests.get(release)
    if request is None:
        raise unknown_release(release)
    return may_see(who, requested_in(request, read).release)


def masked(view: LedgerView, who: Identity | None, shape: S) -> S:
    """Return a response without the ids of hidden releases.

    The amounts spent are visible; the releases of other data sets that spent them are
    not.

    Args:
        view: The ledger.
        who: As for `may_see`.
        shape: The answer.
    """
    if who is None or who.may(Action.READ_RELEASES):
        return shape
    known: dict[str, bool] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, Spender):
            name = value.release
            if name not in known:
                known[name] = found(view, who, name) is not None
            return (
                value if known[name] else msgspec.structs.replace(value, release=OTHERS)
            )
        if isinstance(value, Shape):
            fields = msgspec.structs.asdict(value).items()
            return msgspec.structs.replace(value, **{k: walk(v) for k, v in fields})
        if isinstance(value, tuple):
            return tuple(map(walk, value))
        if isinstance(value, dict):
            return {key: walk(one) for key, one in value.items()}
        return value

    result: S = walk(shape)
    return result
