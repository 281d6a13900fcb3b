"""Votes of teachers, each trained on its own part of the data (PATE).

In a release, `sensitivity: {UNIT: {teachers: k}}` says that one change of the unit
touches the training data of at most k teachers, before and after taken together. That
is assumed, and it is all that is: teachers learn from disjoint parts, or k counts every
teacher that an instance reaches. Each of them may vote for another class, or leave or
join the vote, which moves the counts by an L2 norm of at most the root of 2; together
they move by at most k times that. So the loss is at most that of Gaussian noise with
rho = k**2 / sigma**2, under the relation of the unit. The bound is independent of the
data: votes that agree cost less, and how much less is private.

Which teacher learns from an instance must not depend on other instances: a list that is
cut into equal parts shifts for all when one is removed; a hash of the id does not. The
labeled queries are public, or priced elsewhere. One release is one vote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from modicum.accounting.argument_ranges import require_above_zero
from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms.gaussian import gaussian
from modicum.accounting.mechanisms.kind import (
    Kind,
    description,
    noise_size,
    whole_number,
)
from modicum.core.rationals import Number


@lru_cache(maxsize=4096)
def pate_gnmax(*, sigma: Fraction, teachers: int = 1) -> Curve:
    """Return the curve of releasing the class with most votes under Gaussian noise.

    Args:
        sigma: Standard deviation of the noise on each class's count, in votes, > 0.
        teachers: The largest number of teachers whose data change, >= 1.

    Returns:
        For one teacher rho = 1/sigma**2, mu**2 = 2/sigma**2 and alpha/sigma**2 at each
        order, whatever the votes; for k teachers k**2 times that. No pure eps is
        proven.

    Raises:
        InputError: If an argument is not above 0.

    Neighboring relation:
        A change of everything that `teachers` teachers were trained on, and of no other
        teacher. Each vote moves from one class to another: two counts change by 1, by
        the root of 2 in L2.

    Source:
        Papernot et al. 2018, Prop. 8 (arXiv:1802.08908).

    Examples:
        >>> pate_gnmax(sigma=Fraction(40)).at(Fraction(2))
        Fraction(1, 800)
    """
    require_above_zero("sigma", sigma)
    require_above_zero("the number of teachers", teachers)
    return gaussian(rho=(teachers / sigma) ** 2)


def describe_pate_gnmax(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    sigma: Number | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe one noisy vote of teachers.

    Args:
        attributes: Attributes of the data that the teachers were trained on.
        sensitivity: By unit, `teachers(…)`: the largest number of teachers whose
            training data one change of the unit touches; 1 only if teachers are trained
            on disjoint parts.
        sigma: Standard deviation of the noise on each class's count, in votes.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> describe_pate_gnmax(attributes=["age"], sigma=40)["sigma"]
        40
    """
    return description(
        "pate-gnmax", attributes, more, sensitivity=sensitivity, sigma=sigma
    )


KINDS = (
    Kind(
        "pate-gnmax",
        (
            noise_size("sigma", "standard deviation of each count's noise"),
            whole_number("sensitivity", "number of teachers whose data change"),
        ),
        lambda v: pate_gnmax(sigma=v["sigma"], teachers=int(v["sensitivity"])),
        relation="a change of all training data of one teacher",
        norm="teachers",
        measure="rho",
        slips={"teachers": "write  sensitivity: {UNIT: {teachers: …}}"},
        assumes=(
            "`sensitivity` is the number of teachers that learn from what one change"
            " touches: 1 only if they learn from disjoint parts of the data",
        ),
    ),
)
