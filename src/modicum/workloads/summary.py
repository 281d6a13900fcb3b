"""A summary of a workload in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modicum.workloads.model import Workload
from modicum.workloads.request_types import RequestType


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a workload that some of its requests make up.

    Attributes:
        requests: How many.
        width: How many elements of the ring they read, added up.
        utility: Their total utility.
    """

    requests: int
    width: int
    utility: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a workload.

    Attributes:
        all: All of it.
        by_type: Each type.
        by_mechanism: Each mechanism.
        by_size: Each size.
        by_round: The number of requests in each round.
    """

    all: Share
    by_type: dict[RequestType, Share]
    by_mechanism: dict[str, Share]
    by_size: dict[str, Share]
    by_round: dict[int, int]


def summary(workload: Workload) -> Summary:
    """Return the summary of a workload."""
    requests, types = workload.requests, workload.types
    columns = np.stack((np.ones(len(requests), int), requests.width, requests.utility))
    sums = np.zeros((len(types), 3), dtype=np.int64)
    np.add.at(sums, requests.type, columns.T)
    by_type = {
        kind: Share(*row) for kind, row in zip(types, sums.tolist(), strict=True)
    }
    numbers = workload.round_numbers
    counts = np.bincount(requests.round - numbers.start, minlength=len(numbers))
    return Summary(
        all=_added(list(by_type.values())),
        by_type=by_type,
        by_mechanism=_grouped(by_type, [kind.mechanism for kind in types]),
        by_size=_grouped(by_type, [kind.size for kind in types]),
        by_round=dict(zip(numbers, counts.tolist(), strict=True)),
    )


def _grouped(by_type: dict[RequestType, Share], names: list[str]) -> dict[str, Share]:
    named = list(zip(names, by_type.values(), strict=True))
    return {
        name: _added([share for other, share in named if other == name])
        for name in dict.fromkeys(names)
    }


def _added(shares: list[Share]) -> Share:
    return Share(
        sum(share.requests for share in shares),
        sum(share.width for share in shares),
        sum(share.utility for share in shares),
    )
