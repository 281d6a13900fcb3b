"""Reading a batch: mechanisms whose parameters are all fixed before the first output.

More is known about a batch than about an adaptive history: for a batch every complete
guarantee counts, and the best of them (see
`modicum.accounting.conversions.epsilon_delta`); for a history a filter decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.curves import Curve, composed
from modicum.accounting.losses import Total, total_of_counted
from modicum.accounting.mechanisms import ACCOUNT_KINDS
from modicum.accounting.named_mechanisms import complete_values, curve_of_kind
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    items,
    number,
    placed,
    probability,
    take_format,
)

FORMAT = "batch/v1"

#: Maximum number of mechanisms in a batch.
RUNS_MAX = 10**9


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism of a batch.

    Attributes:
        kind: The name of its kind, a key of `ACCOUNT_KINDS`.
        values: All its parameters, in the order of the kind.
        times: The number of runs, >= 1.
    """

    kind: str
    values: tuple[tuple[str, Fraction], ...]
    times: int = 1

    @property
    def curve(self) -> Curve:
        """Return the cost of one run."""
        return _curve(self.kind, self.values)


@lru_cache(maxsize=8192)
def _curve(kind: str, values: tuple[tuple[str, Fraction], ...]) -> Curve:
    return curve_of_kind(ACCOUNT_KINDS[kind], dict(values))


@dataclass(frozen=True, slots=True)
class Batch:
    """Mechanisms that were all fixed before the first output.

    Attributes:
        parts: The mechanisms; no two of the same kind and parameters.
        delta: The delta to convert to, if one is given.
    """

    parts: tuple[Part, ...]
    delta: Fraction | None = None

    @property
    def runs(self) -> int:
        """The total number of runs."""
        return sum(part.times for part in self.parts)

    def curve(self) -> Curve:
        """Return everything that composition proves of the whole batch."""
        return composed((part.curve, part.times) for part in self.parts)

    def total(self) -> Total:
        """Return the ledger's total after the batch, charged run by run."""
        return total_of_parts(self.parts)


def total_of_parts(parts: Iterable[Part]) -> Total:
    """Return the exact sum of the losses of some mechanisms, charged run by run.

    Examples:
        >>> ten = Part("gaussian", (("sigma", Fraction(10)),), times=10)
        >>> total_of_parts([ten]).units(1)
        50000000000
    """
    kept = list(parts)
    runs = Counter(map(id, kept))  # A repeated mechanism is priced once.
    distinct = {id(part): part for part in kept}
    return total_of_counted(
        (part.curve.loss(), part.times * runs[key]) for key, part in distinct.items()
    )


def merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the same mechanisms, those of equal parameters together.

    Examples:
        >>> one = Part("pure", (("eps", Fraction(1)),))
        >>> [part.times for part in merged([one, one])]
        [2]
    """
    times: dict[tuple[str, tuple[tuple[str, Fraction], ...]], int] = {}
    for part in parts:
        key = part.kind, part.values
        times[key] = times.get(key, 0) + part.times
    return tuple(Part(kind, values, n) for (kind, values), n in times.items())


def read_batch(node: Node) -> Batch:
    """Return the batch that a document describes.

    Returns:
        The batch; equal mechanisms are put together.

    Raises:
        InputError: With every mistake, each with its place.

    Examples:
        >>> from modicum.core.document import from_python
        >>> ten = {"kind": "gaussian", "sigma": 10, "times": 10}
        >>> document = {"format": FORMAT, "mechanisms": [ten, ten]}
        >>> batch = read_batch(from_python(document))
        >>> batch.runs, len(batch.parts)
        (20, 1)
    """
    fields = Fields(node, "the document")
    take_format(fields, FORMAT)
    found = Problems()
    mechanisms_node = fields.take("mechanisms")
    mechanism_nodes = items(mechanisms_node, "`mechanisms`")
    delta_node = fields.take_optional("delta")
    parts: list[Part] = []
    for mechanism in mechanism_nodes:
        with found.guard():
            parts.append(_part(mechanism))
    delta = None
    with found.guard():
        fields.finish()
    if delta_node is not None:
        with found.guard():
            delta = probability(delta_node, "`delta`")
    found.raise_any()
    batch = Batch(merged(parts), delta)
    if not parts:
        raise fail(Code.MISSING_KEY, "`mechanisms` is empty", mechanisms_node)
    if batch.runs > RUNS_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"{batch.runs} runs; at most {RUNS_MAX} are accounted for",
            mechanisms_node,
        )
    return batch


def _part(node: Node) -> Part:
    fields = Fields(node, "a mechanism")
    kind_node = fields.take("kind")
    times_node = fields.take_optional("times")
    kind = ACCOUNT_KINDS[
        choice(kind_node, "kind of mechanism", ACCOUNT_KINDS, Code.UNKNOWN_MECHANISM)
    ]
    times = 1
    if times_node is not None:
        times = count(times_node, "`times`", at_least=1, at_most=RUNS_MAX)
    values: dict[str, Fraction] = {}
    for key, value in fields.rest():
        with placed(key):
            complete_values(kind, {key.text: number(value, f"`{key.text}`")})
        values[key.text] = number(value, f"`{key.text}`")
    with placed(node):
        curve_of_kind(kind, values)
    return Part(kind.name, tuple(complete_values(kind, values).items()), times)
