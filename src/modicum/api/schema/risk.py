"""Inputs of risk analyses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from modicum.api.schema.shape import Input, conflict
from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.fields import Fields
from modicum.core.rationals import number_text
from modicum.core.reader import fail, line, name, number

#: Maximum length of a query or a condition, in characters.
QUERY_MAX: Final = 1 << 16
#: Maximum number of candidates and groups.
CANDIDATES_MAX: Final = 1000
GROUPS_MAX: Final = 50

Mechanism: TypeAlias = Literal["laplace", "gaussian"]
Indicator: TypeAlias = Literal["published", "exact"]
Calibration: TypeAlias = Literal["exact", "published"]
Statistic: TypeAlias = Literal["max", "p99", "median"]
#: The methods of choice that read nothing that costs budget.
Unpaid: TypeAlias = Literal["data-independent", "as-published"]


def column(node: Node, what: str) -> str:
    """Return the name of a column."""
    given = line(node, what)
    if not given:
        raise fail(Code.BAD_NAME, f"{what} is empty", node)
    return given


def _decimal(node: Node, what: str) -> str:
    return number_text(number(node, what))


def _bounds(node: Node, what: str) -> dict[str, tuple[str, str]]:
    if isinstance(node, Entries):
        pairs = Fields(node, what).rest()
        return {line(key, "a column"): _ends(value) for key, value in pairs}
    return {"": _ends(node)}


def _ends(node: Node) -> tuple[str, str]:
    if not isinstance(node, Items) or len(node.items) != 2:
        raise fail(
            Code.WRONG_TYPE,
            "`bounds` are a least and a greatest value, or these by column",
            node,
            help="write  [0, 120]  or  {age: [0, 120]}",
        )
    low, high = node.items
    return _decimal(low, "the least value"), _decimal(high, "the greatest value")


_ENDS: Final = {
    "type": "array",
    "items": {"type": "number"},
    "minItems": 2,
    "maxItems": 2,
}
if TYPE_CHECKING:
    Decimal: TypeAlias = str
    Bounds: TypeAlias = Mapping[str, tuple[str, str]]
else:  # They are numbers where they are sent, and texts with all digits here.
    Decimal = Annotated[
        Any,
        Meta(
            extra={"read": _decimal},
            extra_json_schema={"type": "number", "exclusiveMinimum": 0},
        ),
    ]
    Bounds = Annotated[
        Any,
        Meta(
            extra={"read": _bounds},
            extra_json_schema={
                "oneOf": [_ENDS, {"type": "object", "additionalProperties": _ENDS}]
            },
        ),
    ]
Query = Annotated[str, Meta(min_length=1, max_length=QUERY_MAX)]
Count = Annotated[int, Meta(ge=1, le=2**53)]


#: What to do about a key without a meaning.
_REMEDY: Final = "add its subject, or leave it out"


class AnalysisRequest(
    Input,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=False,
    repr_omit_defaults=True,
):
    """A request for a risk analysis of a table, as in `modicum risk rdr`.

    Attributes:
        query: SQL: one SELECT with aggregates.
        unit: The column that identifies a person; each row is a person if omitted.
        mechanism: `laplace` or `gaussian`.
        epsilons: The candidates; the published ones if omitted.
        delta: For Gaussian noise.
        sensitivity: The maximum change of the answer by one person in any table.
        bounds: The least and the greatest value, of all columns or by column.
        rows_max: The maximum number of counted rows per person.
        dimensions: The number of numbers in the answer.
        indicator: `published` or `exact`.
        calibration: For Gaussian noise: `exact` or `published`.
        groups: Groups of people to compare, as conditions on rows.
        statistic: The statistic compared: `max`, `p99` or `median`.
        tau: The least indicator is to be so large a part of the greatest.
        max_variance: The variance of the indicators is to be so small.
        choice: How an epsilon is chosen that meets these.
    """

    query: Query
    unit: Annotated[str, Meta(min_length=1, extra={"read": column})] | UnsetType = UNSET
    mechanism: Mechanism = "laplace"
    epsilons: (
        Annotated[
            tuple[Decimal, ...],
            Meta(max_length=CANDIDATES_MAX, extra_json_schema={"minItems": 1}),
        ]
        | UnsetType
    ) = UNSET
    delta: Decimal | UnsetType = UNSET
    sensitivity: Decimal | UnsetType = UNSET
    bounds: Bounds = field(default_factory=dict)
    rows_max: Count | UnsetType = UNSET
    dimensions: Count | UnsetType = UNSET
    indicator: Indicator = "published"
    calibration: Calibration | UnsetType = UNSET
    groups: Annotated[tuple[Query, ...], Meta(max_length=GROUPS_MAX)] = ()
    statistic: Statistic | UnsetType = UNSET
    tau: Decimal | UnsetType = UNSET
    max_variance: Decimal | UnsetType = UNSET
    choice: Unpaid | UnsetType = UNSET

    @property
    def chooses(self) -> bool:
        """Whether an epsilon is to be chosen."""
        return bool(self.tau or self.max_variance)


class AnalysisInput(
    AnalysisRequest, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A data set, a query over its tables, and its public properties.

    Attributes:
        dataset: The data set.
    """

    dataset: Annotated[str, Meta(min_length=1, max_length=128, extra={"read": name})]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.choice and not self.chooses:
            raise conflict(
                "`choice` has no effect without `tau` or `max_variance`", _REMEDY
            )
        if self.statistic and not self.groups:
            raise conflict("`statistic` has no effect without `groups`", _REMEDY)
        for key in ("delta", "calibration"):
            if getattr(self, key) and self.mechanism != "gaussian":
                raise conflict(f"`{key}` has no effect for Laplace noise", _REMEDY)
        distinct = {*self.groups}
        if self.groups and not 2 <= len(distinct) == len(self.groups):
            raise InputError(
                Problem(
                    Code.DUPLICATE_NAME if len(self.groups) > 1 else Code.MISSING_KEY,
                    "`groups` are two or more, each once",
                    help="write conditions on rows, such as  [age < 18, age >= 18]",
                )
            )
