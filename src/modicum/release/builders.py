"""Describing a release from Python: the same words as in a file.

Nothing is checked here; a draft is read under a policy's vocabulary exactly like a
file, with the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from modicum.core.document import DEPTH_MAX, Node, from_python

Number: TypeAlias = "int | float | Decimal | Fraction"


@dataclass(frozen=True, init=False)
class ReleaseDraft:
    """A release before it is checked.

    Args:
        release: The release id.
        mechanisms: Mechanisms, from `gaussian`, `laplace`, `randomized_response` or
            `declared`.
        where: Whose rows the mechanisms read: a box, values by partitioning
            attribute, or a list of boxes. A mechanism may say so itself.
        periods: When these rows happened: a period such as `2026-11`, a `date`,
            `between(…)`, or a list of them.
        groups: Which user groups they belong to.
        fields: Labels and metadata, by their names in the policy.

    Examples:
        >>> draft = ReleaseDraft("r-1", audience="public", mechanisms=[
        ...     gaussian(attributes=["age"], sensitivity={"user": l2(1)}, sigma=6.5)])
        >>> draft.to_dict()["audience"]
        'public'
    """

    release: str
    mechanisms: Sequence[Mapping[str, object]]
    fields: Mapping[str, object] = field(default_factory=dict)

    def __init__(
        self,
        release: str,
        *,
        mechanisms: Sequence[Mapping[str, object]],
        where: object = None,
        periods: object = None,
        groups: object = None,
        **fields: object,
    ) -> None:
        part = {"where": where, "periods": periods, "groups": groups}
        fields |= {key: value for key, value in part.items() if value is not None}
        object.__setattr__(self, "release", release)
        object.__setattr__(self, "mechanisms", _copied(mechanisms))
        object.__setattr__(self, "fields", _copied(fields))

    def to_dict(self) -> dict[str, object]:
        """Return the draft as it would stand in a file."""
        return {
            "release": self.release,
            **self.fields,
            "mechanisms": self.mechanisms,
        }

    def to_node(self) -> Node:
        """Return the draft as a tree without places."""
        return from_python(self.to_dict())


def gaussian(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    sigma: Number | None = None,
    discrete: bool = False,
    **more: object,
) -> dict[str, object]:
    """Describe Gaussian noise.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `l2(…)`: the largest L2 change of the answer between
            neighbors, in units of the answer.
        sigma: Standard deviation of the noise, in units of the answer.
        discrete: Whether the noise is on whole numbers.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.
    """
    kind = "discrete-gaussian" if discrete else "gaussian"
    return _mechanism(kind, attributes, more, sensitivity=sensitivity, sigma=sigma)


def laplace(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    scale: Number | None = None,
    discrete: bool = False,
    **more: object,
) -> dict[str, object]:
    """Describe Laplace noise.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `l1(…)`: the largest L1 change of the answer between
            neighbors, in units of the answer.
        scale: Scale b of the noise, in units of the answer.
        discrete: Whether the noise is on whole numbers (two-sided geometric).
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.
    """
    kind = "discrete-laplace" if discrete else "laplace"
    return _mechanism(kind, attributes, more, sensitivity=sensitivity, scale=scale)


def randomized_response(
    *,
    attributes: Sequence[str],
    truth: Number | None = None,
    values: int | None = None,
    contribution_bound: Mapping[str, int] | None = None,
    public_frame: bool | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe k-ary randomized response.

    Args:
        attributes: Attributes of the data it reads.
        truth: Probability of answering truthfully, at least 1/values, below 1.
        values: Number of possible values, 2 if left out.
        contribution_bound: By unit, how many answers one instance gives at most.
        public_frame: Whether everybody on a public list answers.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.
    """
    return _mechanism(
        "randomized-response",
        attributes,
        more,
        truth=truth,
        values=values,
        contribution_bound=contribution_bound,
        public_frame=public_frame,
    )


def declared(
    *, attributes: Sequence[str], cost: Mapping[str, object], **more: object
) -> dict[str, object]:
    """Describe any mechanism by the guarantee it is known to have.

    Args:
        attributes: Attributes of the data it reads.
        cost: By unit, `pure_dp(…)`, `approx_dp(…)`, `zcdp(…)` or `gdp(…)`.
        more: `name`, `where`, `periods`, `groups`, labels and the other keys of the
            release format.
    """
    return _mechanism("declared", attributes, more, cost=cost)


def _mechanism(
    kind: str,
    attributes: Sequence[str],
    more: Mapping[str, object],
    **given: object,
) -> dict[str, object]:
    present = {key: value for key, value in given.items() if value is not None}
    return {"mechanism": kind, "attributes": _copied(attributes), **present, **more}


def _copied(value: object, depth: int = 0) -> object:
    """Return containers anew, so that a draft does not change with what made it."""
    if depth > DEPTH_MAX + 1:
        return value  # Too deep to be read; that is said when it is.
    if isinstance(value, Mapping):
        return {key: _copied(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_copied(item, depth + 1) for item in value)
    if type(value) is date:  # A moment is more than a day, and no period.
        return value.isoformat()
    return value


def between(first: object = None, last: object = None) -> dict[str, object]:
    """Name what lies from one value to another, both included.

    Args:
        first: A number, or a period such as `2026-11`; an open end if left out.
        last: The same.

    Examples:
        >>> between(18, 64), between(date(2026, 11, 1))
        ({'from': 18, 'to': 64}, {'from': datetime.date(2026, 11, 1)})
    """
    ends = {"from": first, "to": last}
    return {key: end for key, end in ends.items() if end is not None}


def l1(sensitivity: Number) -> dict[str, object]:
    """State a sensitivity in the L1 norm, in units of the answer."""
    return {"l1": sensitivity}


def l2(sensitivity: Number) -> dict[str, object]:
    """State a sensitivity in the L2 norm, in units of the answer."""
    return {"l2": sensitivity}


def pure_dp(eps: Number) -> dict[str, object]:
    """State a pure eps-DP guarantee."""
    return {"eps": eps}


def approx_dp(eps: Number, delta: Number) -> dict[str, object]:
    """State an (eps, delta)-DP guarantee; delta strictly between 0 and 1."""
    return {"eps": eps, "delta": delta}


def zcdp(rho: Number) -> dict[str, object]:
    """State a rho-zCDP guarantee."""
    return {"rho": rho}


def gdp(mu: Number) -> dict[str, object]:
    """State a mu-GDP guarantee."""
    return {"mu": mu}
