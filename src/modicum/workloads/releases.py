"""Requests as releases: the submission of an analyst for each."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.model import Requests, Workload
from modicum.workloads.request_types import Pricing


def release_of(
    workload: Workload,
    index: int,
    *,
    unit: str = "user",
    partition: str = "",
    pricing: Pricing = "tight",
) -> dict[str, object]:
    """Return a request as a release, in the form of a release file.

    Args:
        workload: The workload.
        index: Which one of its requests.
        unit: The privacy unit whose instances are counted, under add-remove.
        partition: The partitioning attribute whose elements are the ring, a range from
            0; if empty, the release has no part of the data.
        pricing: How a cost is computed that is declared.

    Returns:
        A release of one mechanism with its utility, which reads the attributes `a0`,
        `a1` and so on of its labels. The context of S1 is the label `ml`. The month of
        S3 is omitted: it has no place in a calendar.
    """
    requests = workload.requests
    labels = requests.labels
    read = () if labels is None else labels.attributes_of(index)
    kind = requests.of_type(index)
    mechanism = kind.described(unit, [f"a{number}" for number in read], pricing)
    if partition:
        where = _where(workload.domain, requests, index)
        mechanism |= {"where": {partition: where}} if where else {}
    number = int(requests.id[index])
    release: dict[str, object] = {
        "release": f"{workload.name}-{workload.seed}-{workload.repetition}-{number}",
        "utility": int(requests.utility[index]),
        "mechanisms": [mechanism],
    }
    if labels is not None and bool(labels.black_box[index]):
        release["ml"] = "black-box"
    return release


def _where(domain: int, requests: Requests, index: int) -> list[object]:
    """Return the spans of the ring that a request reads; none if it reads all."""
    return [
        {"from": begin, "to": end - 1} for begin, end in spans(domain, requests, index)
    ]


def spans(domain: int, requests: Requests, index: int) -> list[tuple[int, int]]:
    """Return the elements that a request reads, as half-open spans without a wrap.

    Args:
        domain: How many elements the ring has.
        requests: The requests.
        index: Which one of them.

    Returns:
        One span, or two if it reads on over the end of the ring; none if it reads
        the whole ring.
    """
    first, width = int(requests.first[index]), int(requests.width[index])
    if width == domain:
        return []
    end = first + width
    if end <= domain:
        return [(first, end)]
    return [(0, end - domain), (first, domain)]


# --- batches --------------------------------------------------------------------------


def batch_of(
    workload: Workload,
    number: int | None = None,
    *,
    unit: str = "user",
    partition: str = "",
    pricing: Pricing = "tight",
) -> str:
    """Return the requests of a round as the text of a file of requests, in YAML.

    Args:
        workload: The workload.
        number: The round; by default the first one with requests.
        unit: As for `release_of`.
        partition: As for `release_of`.
        pricing: As for `release_of`.

    Raises:
        InputError: If the workload has no such round.
    """
    number = workload.first_round if number is None else number
    known = workload.round_numbers
    if number not in known:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"the workload has no round {number}",
                help=f"it has the rounds {known[0]} to {known[-1]}",
            )
        )
    requests = np.flatnonzero(workload.requests.round == number).tolist()
    releases = (
        release_of(workload, index, unit=unit, partition=partition, pricing=pricing)
        for index in requests
    )
    lines = [f"  - {_in_one_line(release)}\n" for release in releases]
    return "requests:\n" + "".join(lines) if lines else "requests: []\n"


def _in_one_line(value: object) -> str:
    """Return plain values in one line of YAML; unlike in JSON, keys may be numbers."""
    match value:
        case Mapping():
            pairs = (f"{key}: {_in_one_line(one)}" for key, one in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_in_one_line, value)) + "]"
        case str():
            return json.dumps(value)
        case _:
            return str(value)
