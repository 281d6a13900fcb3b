"""Reading what is asked of an analysis of risk: exactly, and nothing unheard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, InputError
from modicum.core.fields import Fields
from modicum.core.rationals import number_text
from modicum.core.reader import choice, count, fail, items, line, name, number, text
from modicum.risk.worker.messages import (
    CALIBRATIONS,
    INDICATORS,
    MECHANISMS,
    STATISTICS,
    UNPAID,
    AnalysisRequest,
)
from modicum.server.settings.tables import column_of

#: A query, or a condition, has so many characters at most.
QUERY_MAX: Final = 1 << 16
#: So many candidates, groups and bounds are taken.
CANDIDATES_MAX: Final = 1000
GROUPS_MAX: Final = 50
_COUNT_MAX: Final = 2**53

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "mechanism": MECHANISMS,
    "indicator": INDICATORS,
    "calibration": CALIBRATIONS,
    "statistic": STATISTICS,
    "choice": UNPAID,
}
_NUMBERS: Final = ("delta", "sensitivity", "tau", "max_variance")
_COUNTS: Final = ("rows_max", "dimensions")

_AMOUNT: Final = {"type": "number", "exclusiveMinimum": 0}
_ENDS: Final = {
    "type": "array",
    "items": {"type": "number"},
    "minItems": 2,
    "maxItems": 2,
}
#: The JSON Schema of what is asked.
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "dataset": {"type": "string", "minLength": 1, "maxLength": 128},
        "query": {"type": "string", "minLength": 1, "maxLength": QUERY_MAX},
        "unit": {"type": "string", "minLength": 1},
        "epsilons": {
            "type": "array",
            "items": _AMOUNT,
            "minItems": 1,
            "maxItems": CANDIDATES_MAX,
        },
        "bounds": {
            "oneOf": [_ENDS, {"type": "object", "additionalProperties": _ENDS}],
        },
        "groups": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": GROUPS_MAX,
        },
        **{key: dict(_AMOUNT) for key in _NUMBERS},
        **{key: {"type": "integer", "minimum": 1} for key in _COUNTS},
        **{key: {"enum": list(words)} for key, words in _WORDS.items()},
    },
    "required": ["dataset", "query"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class AnalysisInput:
    """An analysis that was asked for.

    Attributes:
        data_set: The data set whose tables are meant.
        asked: What is asked of them.
    """

    data_set: str
    asked: AnalysisRequest = field(repr=False)


def read_analysis(node: Node) -> AnalysisInput:
    """Return the analysis that a form asks for."""
    fields = Fields(node, "the request")
    data_set = name(fields.take("dataset"), "`dataset`")
    query = text(fields.take("query"), "`query`", characters_max=QUERY_MAX)
    _refuse_unheard(fields)
    plain = _plain(fields)
    _refuse_of_gaussian(fields, plain)
    readers: dict[str, Callable[[Node], object]] = {
        "unit": lambda given: column_of(given, "`unit`"),
        "epsilons": _epsilons,
        "groups": _groups,
        "bounds": _bounds,
    }
    got: dict[str, Any] = {
        key: read(given)
        for key, read in readers.items()
        if (given := fields.take_optional(key)) is not None
    }
    fields.finish()
    return AnalysisInput(data_set, AnalysisRequest(query=query, **plain, **got))


def _plain(fields: Fields) -> dict[str, Any]:
    """Take what is one word or one number."""
    got: dict[str, Any] = {}
    for key, words in _WORDS.items():
        if (given := fields.take_optional(key)) is not None:
            got[key] = choice(given, f"`{key}`", words, Code.UNKNOWN_CHOICE)
    for key in _NUMBERS:
        if (given := fields.take_optional(key)) is not None:
            got[key] = _number(given, f"`{key}`")
    for key in _COUNTS:
        if (given := fields.take_optional(key)) is not None:
            got[key] = count(given, f"`{key}`", at_least=1, at_most=_COUNT_MAX)
    return got


#: What is said for nothing where none of other keys is there.
_HEARD_BESIDE: Final = (
    ("choice", ("tau", "max_variance")),
    ("statistic", ("groups",)),
)


def _refuse_unheard(fields: Fields) -> None:
    """Refuse what says something that nothing would listen to."""
    for key, others in _HEARD_BESIDE:
        if key in fields and not any(one in fields for one in others):
            named = " or ".join(f"`{one}`" for one in others)
            raise fail(
                Code.KEYS_CONFLICT,
                f"`{key}` means nothing without {named}",
                fields.key_node(key),
                help="give it, or leave this out",
            )


def _refuse_of_gaussian(fields: Fields, plain: Mapping[str, object]) -> None:
    if plain.get("mechanism") == "gaussian":
        return
    for key in ("delta", "calibration"):
        if key in plain:
            raise fail(
                Code.KEYS_CONFLICT,
                f"`{key}` means nothing for Laplace noise",
                fields.node,
                help="add  mechanism: gaussian , or leave it out",
            )


def _number(node: Node, what: str) -> str:
    return number_text(number(node, what))


def _epsilons(node: Node) -> tuple[str, ...]:
    listed = _some(node, "`epsilons`", CANDIDATES_MAX)
    return tuple(_number(one, "an epsilon") for one in listed)


def _groups(node: Node) -> tuple[str, ...]:
    listed = _some(node, "`groups`", GROUPS_MAX)
    groups = tuple(text(one, "a group", characters_max=QUERY_MAX) for one in listed)
    if len(set(groups)) < 2 or len(set(groups)) < len(groups):
        raise fail(
            Code.DUPLICATE_NAME if len(groups) > 1 else Code.MISSING_KEY,
            "`groups` are two or more, each once",
            node,
            help="write conditions on rows, such as  [age < 18, age >= 18]",
        )
    return groups


def _bounds(node: Node) -> dict[str, tuple[str, str]]:
    if isinstance(node, Items):
        return {"": _ends(node)}
    if not isinstance(node, Entries):
        raise _no_ends(node)
    pairs = Fields(node, "`bounds`").rest()
    return {line(key, "a column"): _ends(value) for key, value in pairs}


def _ends(node: Node) -> tuple[str, str]:
    if not isinstance(node, Items) or len(node.items) != 2:
        raise _no_ends(node)
    low, high = node.items
    return _number(low, "the least value"), _number(high, "the greatest value")


def _no_ends(node: Node) -> InputError:
    return fail(
        Code.WRONG_TYPE,
        "`bounds` are a least and a greatest value, or these by column",
        node,
        help="write  [0, 120]  or  {age: [0, 120]}",
    )


def _some(node: Node, what: str, most: int) -> tuple[Node, ...]:
    listed = items(node, what)
    if len(listed) > most:
        message = f"{what} has {len(listed)} items, at most {most}"
        raise fail(Code.TOO_LARGE, message, node)
    return listed
