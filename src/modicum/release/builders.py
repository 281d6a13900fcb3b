"""Describing a release from Python, in the vocabulary of a file.

Nothing is checked here; a draft is read under a policy's vocabulary exactly like a
file, with the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from modicum.core.document import DEPTH_MAX, Node, from_python
from modicum.core.rationals import Number


@dataclass(frozen=True, init=False)
class ReleaseDraft:
    """A release before it is checked.

    Args:
        release: The release id.
        mechanisms: Mechanisms, from `mo.gaussian`, `mo.laplace`, and others.
        where: The population that the mechanisms read: a box, values by partitioning
            attribute, or a list of boxes. A mechanism may override it.
        periods: When these rows happened: a period such as `2026-11`, a `date`,
            `between(…)`, or a list of them.
        groups: Which user groups they belong to.
        fields: Labels and metadata, by their names in the policy.

    Examples:
        >>> import modicum as mo
        >>> ages = mo.gaussian(attributes=["age"], sensitivity={"user": l2(1)}, sigma=6)
        >>> draft = ReleaseDraft("r-1", audience="public", mechanisms=[ages])
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
        """Return the draft as in a file."""
        return {
            "release": self.release,
            **self.fields,
            "mechanisms": self.mechanisms,
        }

    def to_node(self) -> Node:
        """Return the draft as a tree without places."""
        return from_python(self.to_dict())


def _copied(value: object, depth: int = 0) -> object:
    """Return copies of containers, so that a draft does not change with its source."""
    if depth > DEPTH_MAX + 1:
        return value  # Too deep to be read; the reader reports that.
    if isinstance(value, Mapping):
        return {key: _copied(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_copied(item, depth + 1) for item in value)
    if type(value) is date:  # A moment is more than a day, and no period.
        return value.isoformat()
    return value


def between(first: object = None, last: object = None) -> dict[str, object]:
    """Return the range from one value to another, both included.

    Args:
        first: A number, or a period such as `2026-11`; an open end if omitted.
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


def l2(
    sensitivity: Number,
    *,
    participations: int | None = None,
    separation: int | None = None,
) -> dict[str, object]:
    """State a sensitivity in the L2 norm, in units of the answer.

    Args:
        sensitivity: The largest change; in a stream, of one step.
        participations: In how many steps of a stream one change may take part.
        separation: How far apart these steps are at least.
    """
    pattern = {"participations": participations, "separation": separation}
    given = {key: value for key, value in pattern.items() if value is not None}
    return {"l2": sensitivity, **given}


def linf(sensitivity: Number) -> dict[str, object]:
    """State the largest change of any score or query of a selection."""
    return {"linf": sensitivity}


def teachers(number: int) -> dict[str, object]:
    """State how many teachers learn from the data that change."""
    return {"teachers": number}


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
