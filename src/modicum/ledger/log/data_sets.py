"""The data sets that releases are about, for permissions and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from modicum.ledger.log.recorded_release import RecordedRelease

#: The key with which releases and mechanisms name their data set.
KEY: Final = "dataset"

#: The names of data sets; None among them means all.
DataSets = frozenset[str | None]


def data_sets_recorded(release: RecordedRelease) -> DataSets:
    """Return the data sets that a release in the ledger is about.

    Args:
        release: The release.
    """
    labels = {**release.metadata, **release.labels}
    return data_sets_named(labels.get(KEY), [one.labels for one in release.mechanisms])


def data_sets_named(
    own: object, mechanisms: Iterable[Mapping[str, object]]
) -> DataSets:
    """Return the data sets that a release and its mechanisms name.

    Args:
        own: The data set of the release, if it is text.
        mechanisms: The keys of each mechanism.
    """
    each = [own, *(one[KEY] for one in mechanisms if KEY in one)]
    return frozenset(
        one if isinstance(one, str) and one.strip() else None for one in each
    )
