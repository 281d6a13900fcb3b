"""Requests as releases: what an analyst would hand in for each."""

from __future__ import annotations

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
        partition: The partitioning attribute whose elements are the ring, a range
            from 0; if empty, the release says nothing of its part of the data.
        pricing: How a cost is computed that is declared.

    Returns:
        A release of one mechanism, which reads the attributes `a0`, `a1` and so on of
        its labels. The context of S1 is the label `ml`. The month of S3 is not said:
        it has no place in a calendar.
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
