"""The data sets of a release, for permission checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from modicum.api.local.evaluation import Description
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Entries, Items, Node, Scalar
from modicum.ledger.log.data_sets import KEY, DataSets, data_sets_named
from modicum.release import ReleaseDraft

_ID: Final = "release"


def data_sets_of(release: Description) -> DataSets:
    """Return the data sets that a description names, before it is read.

    A release that names none is about all of them. A mechanism may name its own, where
    the policy has a label of that name.

    Args:
        release: The release, with or without mistakes.
    """
    if isinstance(release, ReleaseDraft):
        release = release.to_dict()
    if isinstance(release, Mapping):
        return data_sets_named(release.get(KEY), _mappings(release.get("mechanisms")))
    fields = _fields(release)
    mechanisms = fields.get("mechanisms")
    inner = mechanisms.items if isinstance(mechanisms, Items) else ()
    own = [_fields(one).get(KEY) for one in inner]
    return data_sets_named(
        _text(fields.get(KEY)), [{KEY: _text(one)} for one in own if one is not None]
    )


def id_of(release: Description) -> str | None:
    """Return the id that a description names, before it is read; None if it has none.

    Args:
        release: The release, with or without mistakes.
    """
    if isinstance(release, ReleaseDraft):
        release = release.to_dict()
    if isinstance(release, Mapping):
        named = release.get(_ID)
        return named if isinstance(named, str) else None
    return _text(_fields(release).get(_ID))


def may(who: Identity, action: Action, sets: DataSets) -> bool:
    """Return whether an identity may do something with all of some data sets.

    Args:
        who: The caller.
        action: The action.
        sets: The data sets.
    """
    return all(who.may(action, one) for one in sets)


def must(who: Identity, action: Action, sets: DataSets) -> None:
    """Refuse an identity that may not do something with all of some data sets.

    Args:
        who: The caller.
        action: The action.
        sets: The data sets.

    Raises:
        AccessError: If they may not.
    """
    for one in sorted(sets, key=lambda one: (one is not None, one or "")):
        who.must(action, one)


def must_read_some(who: Identity) -> None:
    """Refuse who may read releases of no data set at all.

    Args:
        who: The caller.

    Raises:
        AccessError: If they may not.
    """
    who.must_some(Action.READ_RELEASES)


def _mappings(found: object) -> Iterable[Mapping[str, object]]:
    if not isinstance(found, list | tuple):
        return ()
    return (one for one in found if isinstance(one, Mapping))


def _fields(node: Node) -> Mapping[str, Node]:
    if not isinstance(node, Entries):
        return {}
    return {key.text: value for key, value in node.entries}


def _text(node: Node | None) -> str | None:
    return node.text if isinstance(node, Scalar) else None
