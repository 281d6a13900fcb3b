"""Requests in columns, and the workload that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from modicum.core.errors import check
from modicum.workloads.random_draws import Booleans, Integers
from modicum.workloads.request_types import EVERYBODY, RequestType

#: Number of elements of the partitioning attribute, on a ring.
DOMAIN = 204_800
#: The sampling rates of the original, equally likely.
SAMPLING = (Fraction(1, 4), EVERYBODY)
#: Number of active rounds of a user group.
WINDOW = 12
#: Number of planned rounds.
ROUNDS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The properties of requests that rules may use besides their part of the data.

    Attributes:
        black_box: Whether only a model that answers queries is published.
        month: The month whose rows are read.
        starts: The start of each request's attributes in `attributes`, and the end.
        attributes: Numbers of the attributes that are read, rising in each request.
    """

    black_box: Booleans
    month: Integers
    starts: Integers
    attributes: Integers

    def __post_init__(self) -> None:
        check(
            len(self.starts) == len(self.black_box) + 1
            and self.starts[0] == 0
            and self.starts[-1] == len(self.attributes)
            and bool((np.diff(self.starts) >= 0).all()),
            "workloads: attributes are consecutive",
        )
        _freeze(self)

    def __len__(self) -> int:
        return len(self.black_box)

    def attributes_of(self, index: int) -> tuple[int, ...]:
        """Return the numbers of the attributes that a request reads.

        Args:
            index: Which request.
        """
        begin, end = self.starts[index], self.starts[index + 1]
        return tuple(self.attributes[begin:end].tolist())

    def chosen(self, index: Integers) -> Labels:
        """Return the labels of some requests.

        Args:
            index: Which ones, in the order wanted.
        """
        counts = np.diff(self.starts)[index]
        starts = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        read = self.attributes[np.repeat(self.starts[index], counts) + within]
        return Labels(self.black_box[index], self.month[index], starts, read)


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests in columns; all arrays have one entry for each and are read-only.

    Attributes:
        types: The types that occur.
        id: Unique numbers of the requests; the order of arrival.
        round: When a request arrives, and is planned.
        type: Which one of `types` it is.
        first: The first element of the ring that it reads.
        width: How many elements it reads, on over the end of the ring to its start.
        utility: Its utility.
        labels: The properties that rules use, in scenarios with rules.
    """

    types: tuple[RequestType, ...]
    id: Integers
    round: Integers
    type: Integers
    first: Integers
    width: Integers
    utility: Integers
    labels: Labels | None = None

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, name)) for name in COLUMNS}
        lengths |= {len(self.labels)} if self.labels is not None else set()
        check(len(lengths) == 1, "workloads: columns are equally long")
        _freeze(self)

    def __len__(self) -> int:
        return len(self.id)

    def chosen(self, index: Integers) -> Requests:
        """Return some requests.

        Args:
            index: Which ones, in the order wanted.
        """
        labels = None if self.labels is None else self.labels.chosen(index)
        columns = {name: getattr(self, name)[index] for name in COLUMNS}
        return Requests(self.types, **columns, labels=labels)

    def of_round(self, number: int) -> Requests:
        """Return the requests that arrive in a round, in their order."""
        return self.chosen(np.flatnonzero(self.round == number))

    def of_type(self, index: int) -> RequestType:
        """Return the type of a request.

        Args:
            index: Which request.
        """
        return self.types[int(self.type[index])]


#: The columns that every workload has, in the order of files.
COLUMNS = ("id", "round", "type", "first", "width", "utility")


@dataclass(frozen=True, slots=True, eq=False)
class Ingredients:
    """The parameters of a workload.

    Attributes:
        seed: The seed of all random choices, at least 0.
        repetition: Which one of several workloads of this seed, at least 0.
        rounds: How many rounds have requests.
        objective: The definition of utility: ``utility``, that of the paper, or
            ``requests``, 1 for each.
        sampling: The sampling rates, equally likely.
        domain: How many elements the ring has.
    """

    seed: int = 0
    repetition: int = 0
    rounds: int = ROUNDS
    objective: str = "utility"
    sampling: tuple[Fraction, ...] = SAMPLING
    domain: int = DOMAIN


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Workload(Ingredients):
    """Requests of some rounds, and their parameters.

    Attributes:
        name: The mix of mechanisms and the labels: ``w1`` to ``w4``, ``s1`` to ``s3``.
        window: For how many rounds a user group is active.
        requests: The requests.
    """

    name: str
    window: int
    requests: Requests

    @property
    def first_round(self) -> int:
        """The first round with requests: the one in which `window` groups are active.

        Rounds count from 0, and in each of them a group joins.
        """
        return self.window - 1

    @property
    def round_numbers(self) -> range:
        """The rounds that have requests."""
        return range(self.first_round, self.first_round + self.rounds)

    @property
    def types(self) -> tuple[RequestType, ...]:
        """The types of the requests."""
        return self.requests.types


def _freeze(columns: Labels | Requests) -> None:
    for one in fields(columns):
        value = getattr(columns, one.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
