"""What a query needs: bounds of rows and values, and keys that may be released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import prod
from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.query.attributes import columns_in
from modicum.query.contribution_bounds import UNBOUNDED, Moves
from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import Facts
from modicum.query.groups import GROUPS_MAX, grain_of, number_of_values, values_of
from modicum.query.model import Expression, Key
from modicum.query.problems import refused
from modicum.query.request import QueryRequest
from modicum.query.statistics import Cap
from modicum.release.vocabulary import Vocabulary

#: Maximum number of keys of several sets: components grow exponentially with it.
SET_KEYS_MAX: Final = 8
#: The largest number in a sum, in steps.
BOUNDS_MAX: Final = 2**31 - 1
#: Some day: the effect of naming periods is found by naming one.
_SOME_DAY: Final = date(2026, 1, 1).toordinal()


def must_be_bounded(
    request: QueryRequest,
    found: Mapping[str, Moves],
    moved: Callable[[QueryRequest], Mapping[str, Moves]],
    vocabulary: Vocabulary,
) -> None:
    """Refuse a query whose loss is given for a unit that nothing bounds.

    Args:
        request: The query.
        found: By unit, the number of rows that move.
        moved: Returns the same for a query with more bounds; it may refuse.
        vocabulary: The units of the policy.

    Raises:
        InputError: If so; only effective bounds are suggested.
    """
    if found[request.unit].bounded:
        return

    def helps(one: QueryRequest) -> bool:
        try:
            return moved(one)[request.unit].bounded
        except InputError:
            return False

    capped = [
        f"`{unit}: …`"
        for unit in vocabulary.units
        if helps(replace(request, caps=(*request.caps, Cap(unit, 1))))
    ]
    dated = bool(vocabulary.clocks) and helps(_on_one_day(request))
    add = "add" if len(capped) == 1 else "add one of"
    advice = (
        f"{add} {', '.join(capped)} to `bounds`" if capped else "",
        "give the `periods` of the query, with both ends" if dated else "",
    )
    raise refused(
        Code.NOT_BOUNDED,
        f"the number of rows of one `{request.unit}` in this query has no"
        " bound, so no noise is enough",
        request.mark,
        help=", or ".join(filter(None, advice))
        or f"give the loss for another unit than `{request.unit}`, or read one table",
    )


def must_have_bounds(request: QueryRequest) -> None:
    """Refuse numeric aggregates of numbers without bounds, or with too many steps.

    Raises:
        InputError: If there are any, with each column or expression once.
    """
    found: dict[Expression, Problem] = {}
    for one in request.query.aggregates:
        if one.value is None or one.function in ("count", "count-distinct"):
            continue
        facts = facts_of(one.value, request.tables)
        if facts.farthest <= BOUNDS_MAX:
            continue
        mark = one.mark or request.mark
        if facts.endless:
            problem = Problem(
                Code.DOES_NOT_FIT,
                f"{_endless(one.value, facts)} has no bounds",
                mark,
                notes=("one row has unbounded influence",),
                help="declare for the column  bounds: [LOW, HIGH]  from public"
                " knowledge, not from the data",
            )
        else:
            step = number_text(facts.step)
            of = _derived_column(one.value, request)
            problem = Problem(
                Code.DOES_NOT_FIT,
                f"the numbers of `{one.name}` have more than 2^31 steps of {step}",
                mark,
                notes=(f"`{of}` is computed, and has no bound",) if of else (),
                help=f"limit them: LEAST(GREATEST({of}, 0), 1000)"
                if of
                else "round them, such as ROUND(…, 2), or limit them by LEAST and"
                " GREATEST",
            )
        found.setdefault(one.value, problem)
    if found:
        raise InputError(*found.values())


def _derived_column(value: Expression, request: QueryRequest) -> str:
    """Return a column of a table that is computed, if an expression has one."""
    computed = {table.name for table, _ in request.query.inner}
    found = (one.column for one in columns_in(value) if one.table in computed)
    return next(found, "")


def _endless(value: Expression, facts: Facts) -> str:
    """Return the column without bounds, with its table."""
    table = next(one.table for one in columns_in(value) if one.column == facts.endless)
    return f"`{facts.endless}` of `{table}`"


def must_have_keys(request: QueryRequest, groups: int) -> None:
    """Refuse groups by keys that may not be released, and too many groups.

    Args:
        request: The query.
        groups: The number of groups; `UNBOUNDED` if keys are not public.

    Raises:
        InputError: If it is so.
    """
    for key in request.query.keys:
        if number_of_values(key, request.tables, request.part) == 0:
            raise refused(
                Code.DOES_NOT_FIT,
                f"key `{key.name}` is NULL in every row",
                key.mark or request.mark,
                help="give it other values, or leave it out",
            )
    one_set, keys = not request.query.sets, request.query.keys
    if groups == UNBOUNDED and (request.discovery is None or not one_set):
        unknown = [
            key for key in keys if values_of(key, request.tables, request.part) is None
        ]
        hidden = ", ".join(f"`{key.name}`" for key in unknown or keys)
        raise refused(
            Code.DOES_NOT_FIT,
            f"not all values of the keys are public: {hidden}",
            (unknown or keys)[0].mark or request.mark,
            notes=("the values in the data reveal facts about people",),
            help=_to_know(unknown, request),
        )
    if groups == UNBOUNDED and request.sampling is not None:
        raise refused(
            Code.DOES_NOT_FIT,
            "discovery of keys on a sample has no proven loss",
            request.sampling.mark or request.mark,
            help="list `values` of the column in the tables file, or read all rows",
        )
    if GROUPS_MAX < groups < UNBOUNDED:
        raise refused(
            Code.DOES_NOT_FIT,
            f"the answer has {groups} groups; at most {GROUPS_MAX} are allowed"
            if one_set
            else f"the keys have {groups} combinations of values; at most"
            f" {GROUPS_MAX} are allowed",
            request.mark,
            help="use longer periods or fewer values"
            + ("" if one_set else ", or ask for fewer keys in one query"),
        )
    if request.query.sets:
        _must_have_sets(request, groups)


def _must_have_sets(request: QueryRequest, groups: int) -> None:
    """Refuse several sets of too many keys or groups, and samples of them."""
    keys = request.query.keys
    answered = sum(
        prod(
            number_of_values(keys[place], request.tables, request.part)
            for place in places
        )
        for places in request.query.sets
    )
    if answered > GROUPS_MAX and groups <= GROUPS_MAX:
        raise refused(
            Code.DOES_NOT_FIT,
            f"the answer has {answered} groups; at most {GROUPS_MAX} are allowed",
            request.mark,
            help="use fewer sets of keys, longer periods or fewer values",
        )
    if len(keys) > SET_KEYS_MAX:
        raise refused(
            Code.DOES_NOT_FIT,
            f"several sets of {len(keys)} keys; at most {SET_KEYS_MAX} are allowed",
            request.mark,
            help="use fewer keys in one query",
        )
    if request.sampling is not None:
        raise refused(
            Code.DOES_NOT_FIT,
            "several sets of keys cannot be read of a sample",
            request.sampling.mark or request.mark,
            notes=(
                "each mechanism draws its own sample, so parts and totals would differ",
            ),
            help="leave `sampling` out, or group by one set of keys",
        )


def _on_one_day(request: QueryRequest) -> QueryRequest:
    part = replace(request.part, periods=((_SOME_DAY, _SOME_DAY),))
    return replace(request, part=part)


def _to_know(keys: Sequence[Key], request: QueryRequest) -> str:
    """Return how to make keys public, or select them with noise."""
    listed = [
        column.column
        for key in keys
        if grain_of(key, request.tables) is None
        for column in columns_in(key.value)
    ]
    dated = [
        key for key in keys if values_of(key, request.tables, _on_one_day(request).part)
    ]
    columns = " and of ".join(f"`{one}`" for one in dict.fromkeys(listed))
    advice = (
        f"list `values` of {columns} in the tables file" if listed else "",
        "give the `periods` of the query, with both ends" if dated else "",
    )
    all_known = len(listed) + len(dated) == len(keys)
    public = " and ".join(filter(None, advice)) if all_known else ""
    if request.sampling is not None:
        return public or "group by something else"
    if request.query.sets:
        return public or "group by one set of keys, and discover them"
    by_noise = "use noisy discovery of keys: `discover: {delta: 1e-8}`"
    return f"{public}, or {by_noise}" if public else by_noise
