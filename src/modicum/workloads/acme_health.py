"""The past of the example organization: forty releases, the same on every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

#: Number of releases of Acme Health before it had a policy.
RELEASES = 40
#: Which of them spent more on one attribute than the policy will allow.
OVERSPENDING = 7

_UNIT = "patient"
_FIRST_YEAR = 2022


@dataclass(frozen=True, slots=True)
class _Series:
    """A kind of release that was repeated.

    Attributes:
        name: Its name, without the year.
        purpose: Why it was made.
        audience: The audience.
        attributes: The possible attributes; each release reads one or two of them.
        sigmas: Standard deviations of its Gaussian noise; the answer is a count.
    """

    name: str
    purpose: str
    audience: str
    attributes: tuple[str, ...]
    sigmas: tuple[int, ...]


_SERIES = (
    _Series("annual-report", "transparency", "public", ("country", "clinic"), (40, 50)),
    _Series(
        "regional-atlas", "public-health", "public", ("postcode", "country"), (45,)
    ),
    _Series("cohort-table", "research", "public", ("diagnosis",), (15, 16)),
    _Series(
        "drug-watch", "safety", "internal", ("prescription", "lab_result"), (40, 48)
    ),
    _Series("activity-study", "research", "internal", ("daily_steps",), (30, 36)),
    _Series(
        "clinic-load", "care-planning", "internal", ("clinic", "birth_year"), (32,)
    ),
    _Series("workforce", "workforce-planning", "internal", ("employer",), (40, 60)),
)


def past_releases() -> list[dict[str, object]]:
    """Return the organization's past releases, oldest first, as in a file.

    The same list on every call: `RELEASES` releases with ids `r-0001` and on. The one
    numbered `OVERSPENDING` exceeds the limit of the attribute `salary`.
    """
    return [_release(number) for number in range(1, RELEASES + 1)]


def _release(number: int) -> dict[str, object]:
    rng = random.Random(f"acme-health/{number}")
    year = _FIRST_YEAR + (number - 1) // 10
    month = 1 + (number - 1) % 10
    mechanisms: list[dict[str, object]]
    if number == OVERSPENDING:
        series = _Series("salary-study", "research", "internal", ("salary",), (4,))
        mechanisms = [_count("salaries", ["salary"], 4)]
    elif number % 10 == 0:
        series = _Series("risk-score", "care-planning", "internal", (), ())
        mechanisms = [_model(rng)]
    else:
        series = _SERIES[number % len(_SERIES)]
        mechanisms = list(_counts(series, rng))
    return {
        "release": f"r-{number:04d}",
        "released_on": f"{year}-{month:02d}-{rng.randint(1, 28):02d}",
        "purpose": series.purpose,
        "audience": series.audience,
        **({"ml": "black-box"} if series.name == "risk-score" else {}),
        "requester": f"{series.name}-team",
        "evidence": f"{series.name}-{year}-{month:02d}.pdf",
        "mechanisms": mechanisms,
    }


def _counts(series: _Series, rng: random.Random) -> Iterator[dict[str, object]]:
    read = list(series.attributes)
    rng.shuffle(read)
    sigma = rng.choice(series.sigmas)
    yield _count(series.name, read[: rng.randint(1, len(read))], sigma)
    if rng.random() < 0.3:
        yield _count(f"{series.name}-by-{read[-1]}", [read[-1]], sigma + 20)


def _count(name: str, attributes: list[str], sigma: int) -> dict[str, object]:
    return {
        "name": name,
        "mechanism": "gaussian",
        "attributes": attributes,
        "sensitivity": {_UNIT: {"l2": 1}},
        "sigma": sigma,
    }


def _model(rng: random.Random) -> dict[str, object]:
    return {
        "name": "training",
        "mechanism": "declared",
        "attributes": ["lab_result", "birth_year", "clinic"],
        "cost": {_UNIT: {"rho": rng.choice((0.004, 0.005, 0.006))}},
    }
