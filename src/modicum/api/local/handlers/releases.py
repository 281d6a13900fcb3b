"""Releases of a ledger: listed, and one with its story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta

from modicum.api import operations
from modicum.api.local.handlers.pagination import (
    LOOKED_AT,
    Cursor,
    Limit,
    after_of,
    cursor_of,
)
from modicum.api.local.handlers.registry import answers
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import may
from modicum.api.local.views.releases import details_view, listed_view
from modicum.api.local.visibility import seen
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.ledger import Head
from modicum.api.schema.release import (
    LabelValues,
    ReleaseDetails,
    ReleasePage,
    Vocabulary,
)
from modicum.ledger import Standing
from modicum.ledger.log.codec import release_to_plain
from modicum.ledger.state.lifecycle import ReleaseStatus

#: Maximum number of ids searched for one page.
SEARCHED: Final = 100_000

_Order = Literal["oldest", "newest"]
#: The names of the lists that cursors belong to.
_LISTS: Final[Mapping[_Order, str]] = {
    "oldest": "releases",
    "newest": "releases-newest",
}

ReleaseId = Annotated[str, Meta(min_length=1, max_length=200)]


@answers(operations.RELEASES, Action.READ_RELEASES, anywhere=True)
def releases(  # noqa: PLR0913 - the parameters of a query
    view: LedgerView,
    who: Identity | None,
    status: Annotated[
        list[ReleaseStatus], Meta(description="only those with this status")
    ] = [],  # noqa: B006 - never changed
    *,
    search: Annotated[
        str,
        Meta(
            max_length=200, description="only those with this in their id, in any case"
        ),
    ] = "",
    order: Annotated[
        _Order, Meta(description="by the entry that recorded them")
    ] = "oldest",
    limit: Limit = 100,
    cursor: Cursor = "",
) -> ReleasePage:
    """Return the visible releases. A page may end early: go on until `next` is null."""
    start = after_of(_LISTS[order], cursor)
    book, _, now = view.current()
    state, sought = book.state, search.casefold()
    rows, wanted = state.releases, frozenset(map(ReleaseStatus, status))
    ids = (
        rows.after(start) if order == "oldest" else rows.before(start or state.seq + 1)
    )
    found: list[Standing] = []
    scanned, last, more = 0, "", None
    for count, identifier in enumerate(ids):
        if len(found) == limit or scanned == LOOKED_AT or count == SEARCHED:
            more = rows[last].seq
            break
        last = identifier
        if not sought or sought in identifier.casefold():
            scanned += 1
            one = book.standing_at(identifier, now)
            assert one is not None
            if (not wanted or one.status in wanted) and _visible(view, who, one):
                found.append(one)
    return ReleasePage(
        releases=tuple(map(listed_view, found)),
        next=cursor_of(_LISTS[order], more),
        ledger=Head(seq=state.seq, head=state.head),
    )


@answers(operations.RELEASE)
def release(
    view: LedgerView,
    who: Identity | None,
    release: ReleaseId,
    *,
    recorded: Annotated[
        bool, Meta(description="include the exact form stored in the ledger")
    ] = False,
) -> ReleaseDetails:
    """Return a release: its description, loss and history."""
    visible = seen(view, who, release)
    story = view.story(release, visible.standing.seq)
    plain = release_to_plain(visible.release) if recorded else UNSET
    return details_view(
        visible.standing, visible.release, visible.vocabulary, story, plain
    )


@answers(operations.VOCABULARY, Action.READ_POLICY, tag=lambda one: one.policy)
def vocabulary(view: LedgerView, _: Identity | None) -> Vocabulary:
    """Return the names that a release may use under the policy."""
    policy = view.policy().policy
    known = policy.vocabulary
    labels = {
        name: LabelValues(values=one.values, default=one.default)
        for name, one in known.labels.items()
    }
    return Vocabulary(
        policy=policy.digest,
        labels=labels,
        attributes=tuple(sorted(known.attributes)),
        units=known.units,
    )


def _visible(view: LedgerView, who: Identity | None, standing: Standing) -> bool:
    # Readers of all releases need not have each one read from the log.
    if who is None or who.may(Action.READ_RELEASES):
        return True
    return may(who, Action.READ_RELEASES, view.data_sets(standing))
