"""What a query must have, so that it can be priced and answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.query.aggregates import column_of
from modicum.query.contribution_bounds import UNBOUNDED, Moves
from modicum.query.groups import GROUPS_MAX, grain_of, values_of
from modicum.query.model import ColumnRef, Key
from modicum.query.problems import refused
from modicum.query.request import Asked
from modicum.query.statistics import Cap, Statistic
from modicum.release.vocabulary import Vocabulary

#: So many numbers get noise in one statistic, at most.
NUMBERS_MAX: Final = 10_000_000
#: Some day: what naming periods would do is seen by naming it.
_SOME_DAY: Final = date(2026, 1, 1).toordinal()


def must_be_bounded(
    asked: Asked,
    found: Mapping[str, Moves],
    moved: Callable[[Asked], Mapping[str, Moves]],
    vocabulary: Vocabulary,
) -> None:
    """Refuse a query whose loss is given for a unit that nothing bounds.

    Args:
        asked: The query.
        found: By unit, how many rows move.
        moved: Tells the same of a query that asks for more; it may refuse to.
        vocabulary: The units of the policy.

    Raises:
        InputError: If it is so; only what would bound it is advised.
    """
    if found[asked.unit].bounded:
        return

    def helps(one: Asked) -> bool:
        try:
            return moved(one)[asked.unit].bounded
        except InputError:
            return False

    capped = [
        f"`{unit}: …`"
        for unit in vocabulary.units
        if helps(replace(asked, caps=(*asked.caps, Cap(unit, 1))))
    ]
    dated = bool(vocabulary.clocks) and helps(_on_one_day(asked))
    add = "add" if len(capped) == 1 else "add one of"
    advice = (
        f"{add} {', '.join(capped)} to `bounds`" if capped else "",
        "name the `periods` that are read, with both ends" if dated else "",
    )
    raise refused(
        Code.NOT_BOUNDED,
        f"nothing bounds how many rows one `{asked.unit}` has in this query,"
        " so no noise is enough",
        asked.mark,
        help=", or ".join(filter(None, advice))
        or f"give the loss for another unit than `{asked.unit}`, or read one table",
    )


def must_have_bounds(asked: Asked) -> None:
    """Refuse functions of numbers of columns without bounds.

    Args:
        asked: The query.

    Raises:
        InputError: If there are any, naming each such column once.
    """
    found: dict[ColumnRef, Problem] = {}
    for one in asked.query.aggregates:
        if one.column is None or one.function in ("count", "count-distinct"):
            continue
        column = column_of(one.column, asked.tables)
        if column.low is None or column.high is None:
            problem = Problem(
                Code.DOES_NOT_FIT,
                f"`{column.name}` of `{one.column.table}` has no bounds",
                one.mark or asked.mark,
                notes=("one row could change the answer by any amount",),
                help="declare for the column  bounds: [LOW, HIGH]  from what is known"
                " without the data",
            )
            found.setdefault(one.column, problem)
    if found:
        raise InputError(*found.values())


def must_have_keys(asked: Asked, groups: int) -> None:
    """Refuse groups that nobody may tell, and too many of them.

    Args:
        asked: The query.
        groups: How many groups there are; `UNBOUNDED` if keys are not public.

    Raises:
        InputError: If it is so.
    """
    if groups == UNBOUNDED and asked.discovery is None:
        keys = asked.query.keys
        unknown = [
            key for key in keys if values_of(key, asked.tables, asked.part) is None
        ]
        hidden = ", ".join(f"`{key.name}`" for key in unknown or keys)
        raise refused(
            Code.DOES_NOT_FIT,
            f"not all values of the keys are public: {hidden}",
            (unknown or keys)[0].mark or asked.mark,
            notes=("which values the data has is a fact about people",),
            help=_to_know(unknown, asked),
        )
    if groups == UNBOUNDED and asked.sampling is not None:
        raise refused(
            Code.DOES_NOT_FIT,
            "keys are not told by noise on a sample: no loss is proven for it",
            asked.sampling.mark or asked.mark,
            help="list `values` of the column in the tables file, or read all rows",
        )
    if GROUPS_MAX < groups < UNBOUNDED:
        raise refused(
            Code.DOES_NOT_FIT,
            f"the answer has {groups} groups; at most {GROUPS_MAX} are told",
            asked.mark,
            help="use longer periods or fewer values",
        )


def _on_one_day(asked: Asked) -> Asked:
    part = replace(asked.part, periods=((_SOME_DAY, _SOME_DAY),))
    return replace(asked, part=part)


def _to_know(keys: Sequence[Key], asked: Asked) -> str:
    """Return what would make keys public, or tell them by noise."""
    listed = [key.column.column for key in keys if grain_of(key, asked.tables) is None]
    dated = [
        key for key in keys if values_of(key, asked.tables, _on_one_day(asked).part)
    ]
    columns = " and of ".join(f"`{one}`" for one in dict.fromkeys(listed))
    advice = (
        f"list `values` of {columns} in the tables file" if listed else "",
        "name the `periods` that are read, with both ends" if dated else "",
    )
    all_known = len(listed) + len(dated) == len(keys)
    public = " and ".join(filter(None, advice)) if all_known else ""
    if asked.sampling is not None:
        return public or "group by something else"
    by_noise = "let keys be told by noise: `discover: {delta: 1e-8}`"
    return f"{public}, or {by_noise}" if public else by_noise


def must_be_few(
    asked: Asked, needed: Mapping[Statistic, Sequence[str]], groups: int
) -> None:
    """Refuse what would draw noise for too many numbers, in trees above all.

    Args:
        asked: The query.
        needed: The statistics, and the aggregates that need each.
        groups: How many groups there are; `UNBOUNDED` if keys are discovered.

    Raises:
        InputError: If there are too many.
    """
    for statistic, serves in needed.items():
        numbers = statistic.numbers * (1 if groups == UNBOUNDED else groups)
        if numbers > NUMBERS_MAX:
            raise refused(
                Code.DOES_NOT_FIT,
                f"`{serves[0]}` takes {numbers} numbers with noise; at most"
                f" {NUMBERS_MAX} are told",
                asked.mark,
                help="use fewer `bins`, longer periods or fewer values",
            )
