"""The kinds of mechanisms that a release can name, and what each is described by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from msgspec import Struct, field

from modicum.core.document import Node
from modicum.core.reader import count, positive, probability

#: More values of a randomized response are refused.
VALUES_MAX = 10**6


class KindFormat(Struct, frozen=True):
    """What a kind of mechanism is described by.

    Attributes:
        norm: The norm of its sensitivity, or None if it has no sensitivity.
        parameters: Its parameters, each with the reader of its value.
        measure: The measure in which a cost may be declared beside parameters.
        slips: What people write instead of its parameters, each with the remedy.
    """

    norm: str | None
    parameters: Mapping[str, Callable[[Node, str], Fraction]]
    measure: str | None
    slips: Mapping[str, str] = field(default_factory=dict)


def _values(node: Node, what: str) -> Fraction:
    return Fraction(count(node, what, at_least=2, at_most=VALUES_MAX))


_SCALE = "its noise is `scale`: the l1 sensitivity divided by epsilon"
_SIGMA = "its noise is `sigma`; or write `eps` and `delta`, and `sigma` follows"
_LAPLACE = dict.fromkeys(("eps", "epsilon", "sigma", "b"), _SCALE)
_GAUSSIAN = dict.fromkeys(("epsilon", "scale", "std", "stddev"), _SIGMA)

KINDS = MappingProxyType(
    {
        "laplace": KindFormat("l1", {"scale": positive}, "eps", _LAPLACE),
        "discrete-laplace": KindFormat("l1", {"scale": positive}, "eps", _LAPLACE),
        "gaussian": KindFormat("l2", {"sigma": positive}, "rho", _GAUSSIAN),
        "discrete-gaussian": KindFormat("l2", {"sigma": positive}, "rho", _GAUSSIAN),
        "randomized-response": KindFormat(
            None, {"truth": probability, "values": _values}, "eps"
        ),
        "declared": KindFormat(None, {}, None),
    }
)

#: Kinds that the format knows and this version does not price.
PLANNED_KINDS = frozenset(
    {
        "exponential",
        "report-noisy-max",
        "sparse-vector",
        "dp-sgd",
        "pate-gnmax",
    }
)
