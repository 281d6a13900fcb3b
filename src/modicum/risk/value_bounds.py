"""Whose bounds are whose: a name means what it means in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code
from modicum.core.rationals import brief
from modicum.query.parser.lexer import quiet
from modicum.risk.arguments import argument, mistake
from modicum.risk.outputs import Measure
from modicum.risk.question import Question
from modicum.risk.sensitivity import Bounds, plain_texts


def bounds_by_value(
    given: Mapping[str, Bounds], question: Question
) -> dict[str, Bounds]:
    """Return bounds by the values of a query that they are bounds of.

    Args:
        given: Bounds by what an aggregate is computed of, as SQL; capitals, quotes and
            the names of tables do not tell values apart. The name `""` is that of any
            other.
        question: The query.

    Returns:
        The same, by texts that `PublicBounds` knows.

    Raises:
        GivenError: If the query aggregates no such value, or one has bounds twice.

    Neighboring relation:
        None: nothing is read from a table.

    Source:
        The house's rule for names.

    Examples:
        >>> from modicum.risk.question import read_question
        >>> from modicum.risk.sensitivity import read_bounds
        >>> sums = read_question("SELECT SUM(cost) FROM t", {"t": ("cost",)})
        >>> list(bounds_by_value({"T.COST": read_bounds(0, 5)}, sums))
        ['cost']
    """
    known = _aggregated(question.measures)
    found: dict[str, Bounds] = {}
    for name, each in given.items():
        text = name and _plain(name)
        if (text or question.obstacle) and text not in known:
            raise _unknown(name, known, question.obstacle)
        if found.setdefault(text, each) != each:
            raise mistake(
                f"`{name[:60]}` has the bounds {_told(found[text])} and {_told(each)}",
                f"give {argument('bounds')} once for each value",
                Code.DUPLICATE_NAME,
            )
    return found


def _aggregated(measures: Sequence[Measure]) -> list[str]:
    values = (one.value for one in measures if one.value is not None)
    return list(dict.fromkeys(text for one in values for text in plain_texts(one)))


def _plain(name: str) -> str:
    try:
        with quiet():
            return plain_texts(parse_one(name, read="duckdb"))[0]
    except (SqlglotError, RecursionError):
        return name


def _unknown(name: str, known: Sequence[str], obstacle: str) -> Exception:
    if obstacle:
        return mistake(
            f"no value of the query can be kept within bounds: {obstacle}",
            f"leave {argument('bounds')} out, and give {argument('sensitivity')}",
            Code.KEYS_CONFLICT,
        )
    values = ", ".join(f"`{one[:60]}`" for one in known[:20])
    return mistake(
        f"the query aggregates no `{name[:60]}`",
        f"give {argument('bounds')} of {values}"
        if values
        else f"leave {argument('bounds')} out: it counts rows",
        Code.UNKNOWN_NAME,
        near=nearest(name.lower(), known),
    )


def _told(bounds: Bounds) -> str:
    return " to ".join(map(brief, bounds))
