"""Selection of keys that are not public: those with rows of enough different ids.

Each key's number of ids gets discrete Laplace noise, and the key is released if the
result reaches a threshold. Keys without rows are never considered. So a key that only
the rows of one change have could reveal these: it has one id, and the threshold is so
high that this is released with probability δ at most. Everything else is as for counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from modicum.accounting.decimals import GUARD, precise, significant, to_decimal
from modicum.core.errors import Code
from modicum.core.rationals import number_text
from modicum.query.contribution_bounds import Moves
from modicum.query.intervals import laplace_scale
from modicum.query.model import ColumnRef
from modicum.query.problems import refused
from modicum.query.request import QueryRequest
from modicum.query.sensitivity import Shape, of_ids
from modicum.query.statistics import Statistic
from modicum.release.units import Unit

#: The name of the mechanism in a release, unless an aggregate has it.
NAME = "keys"
#: Number of digits of losses, rounded up.
_DIGITS: Final = 12
#: Smaller probabilities are indistinguishable from errors of the computation.
_DELTA_MIN: Final = Fraction(1, 10**24)


class Selection(Struct, frozen=True):
    """The mechanism that selects keys.

    Attributes:
        statistic: The number of ids of each key.
        scale: Of its noise.
        threshold: The threshold: a key is released whose noisy number is at least this.
        eps: By unit that is bounded, its ε.
        delta: By unit that is bounded, its δ.
        l1: By unit that is bounded, how many numbers of ids move, each by one.
    """

    statistic: Statistic
    scale: Fraction
    threshold: int
    eps: Mapping[str, Fraction]
    delta: Mapping[str, Fraction]
    l1: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return its name in a release."""
        return self.statistic.name

    def called(self, name: str) -> Selection:
        """Return it under another name."""
        return replace(self, statistic=replace(self.statistic, name=name))

    def described(
        self, attributes: Sequence[str], bounds: Mapping[str, int]
    ) -> dict[str, object]:
        """Return the mechanism as in the description of a release.

        Args:
            attributes: The attributes that are read.
            bounds: By unit, how many rows of one instance are used.
        """
        return {
            "name": self.name,
            "mechanism": "declared",
            "attributes": list(attributes),
            "contribution_bound": dict(bounds),
            "cost": {
                unit: {"eps": eps, "delta": self.delta[unit]}
                for unit, eps in self.eps.items()
            },
        }


def selection_of(
    request: QueryRequest,
    found: Mapping[str, Moves],
    shapes: Mapping[str, Shape],
    units: Mapping[str, Unit],
) -> Selection:
    """Return the mechanism that selects the keys of a query.

    Args:
        request: The query; its keys are to be discovered.
        found: By unit, the number of rows that move.
        shapes: By unit that is bounded, the groups.
        units: The units by name.

    Raises:
        InputError: If ids of more than one unit move, or none can be counted.
    """
    discovery = request.discovery
    assert discovery is not None  # Otherwise there is nothing to select keys by.
    column = _id_column(request, units[request.unit])
    norms = {
        unit: of_ids(found[unit], shape, 1)
        for unit, shape in shapes.items()
        if units[unit].id == column.column and found[unit].ids.get(column.column) == 1
    }
    if request.unit not in norms:
        raise refused(
            Code.NOT_BOUNDED,
            f"a change of one `{request.unit}` changes rows of other ids, which"
            " a threshold on the number of ids does not hide",
            request.mark,
            help="list the values of the keys, or bound units of one id only",
        )
    eps = request.loss * discovery.share
    if request.noise == "gaussian":
        eps = _eps_of(eps)
    scale = laplace_scale(norms[request.unit].l1, eps)
    moved = found[request.unit]
    rows = max(moved.coming, moved.going)
    if discovery.delta / rows < _DELTA_MIN:
        raise refused(
            Code.OUT_OF_RANGE,
            f"the delta of discovery is too small for {rows} rows of one"
            f" `{request.unit}`",
            request.mark,
            help=f"give at least {number_text(_DELTA_MIN)} for each of them",
        )
    threshold = _threshold(scale, rows, discovery.delta)
    probability = tail(scale, threshold - 1)
    return Selection(
        Statistic(NAME, "distinct", column),
        scale,
        threshold,
        {unit: _written(one.l1 / scale) for unit, one in norms.items()},
        {
            unit: _written(probability * max(found[unit].coming, found[unit].going))
            for unit in norms
        },
        {unit: one.l1 for unit, one in norms.items()},
    )


@precise
def tail(scale: Fraction, least: int) -> Fraction:
    """Return the probability, rounded up, that discrete Laplace noise is so large.

    Args:
        scale: Of the noise.
        least: The least value that counts, above 0.
    """
    step = (-1 / to_decimal(scale)).exp()
    return Fraction(step**least / (1 + step) + GUARD)


@precise
def _threshold(scale: Fraction, rows: int, delta: Fraction) -> int:
    """Return the least threshold that a changed row passes with probability δ at most.

    The probability must also be below 1 - exp(-1 / scale): then not releasing such keys
    costs no more than their noise.
    """
    step = (-1 / to_decimal(scale)).exp()
    most = min(to_decimal(delta) / rows, 1 - step) - 2 * GUARD
    reached = (most * (1 + step)).ln() * -to_decimal(scale)
    threshold = max(2, int(reached))
    while step ** (threshold - 1) > most * (1 + step):
        threshold += 1
    return threshold


@precise
def _eps_of(rho: Fraction) -> Fraction:
    """Return an ε of which the zCDP loss is at most ρ: half its square."""
    return Fraction((2 * to_decimal(rho)).sqrt() - GUARD)


def _written(value: Fraction) -> Fraction:
    """Return a number, rounded up to a few digits."""
    return significant(value, _DIGITS, up=True)


def _id_column(request: QueryRequest, unit: Unit) -> ColumnRef:
    for name in request.query.tables:
        if unit.id in request.tables.by_name[name].columns:
            return ColumnRef(name, unit.id)
    raise refused(
        Code.NOT_BOUNDED,
        f"no table of the query has the column `{unit.id}` of `{request.unit}`",
        request.mark,
        help="discovery of keys counts their ids",
    )
