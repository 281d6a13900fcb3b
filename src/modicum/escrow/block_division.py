"""Whether queries can be divided by people: each row into the block of its id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.escrow.blocks import ByBlocks
from modicum.query.query_file import QueryFile
from modicum.query.statistics import Block
from modicum.query.tables import Table
from modicum.release.vocabulary import Vocabulary

#: Equal ids of these types are equal texts, which are hashed.
_TYPES: Final = frozenset({"text", "integer"})


def divided_by(blocks: ByBlocks, vocabulary: Vocabulary) -> ByBlocks:
    """Return blocks with the unit that they divide.

    Raises:
        InputError: If the unit does not exist, has a period, or is ambiguous.
    """
    whole = [
        name for name, unit in vocabulary.unit_facts.items() if unit.period is None
    ]
    unit = blocks.unit or (whole[0] if len(whole) == 1 else "")
    if unit in whole:
        return replace(blocks, unit=unit)
    listed = ", ".join(f"`{one}`" for one in whole) or "none"
    raise InputError(
        Problem(
            Code.UNKNOWN_UNIT,
            f"people cannot be split into blocks by `{unit[:60]}`"
            if unit
            else "blocks have no privacy unit",
            label=nearest(unit, whole),
            help=f"use one with an id and without a period: {listed}",
        )
    )


def must_divide(
    queries: Sequence[QueryFile], unit: str, vocabulary: Vocabulary
) -> None:
    """Refuse queries whose rows cannot all be divided by one id.

    Args:
        queries: The queries; at least one.
        unit: The unit that is divided.
        vocabulary: The units of the policy.

    Raises:
        InputError: If a table lacks the id, has it with another type than others, or is
            joined on another one; or if a query draws a sample.
    """
    column = vocabulary.unit_facts[unit].id
    types: dict[str, str] = {}
    for query in queries:
        spec, name = query.request, query.heading.id
        if spec.sampling is not None or query.heading.sampling is not None:
            raise _refused(name, "it reads a secret sample, not all rows of a block")
        if spec.query.joined_on not in {None, column}:
            raise _refused(
                name,
                f"its tables are joined on `{spec.query.joined_on}`, so that a row may"
                f" be joined to several of `{column}`",
            )
        for table in _tables(query):
            if column not in table.columns:
                raise _refused(name, f"`{table.name}` has no column `{column}`")
            types[table.name] = table.columns[column].type
    found = set(types.values())
    if len(found) > 1 or not found <= _TYPES:
        text = ", ".join(f"`{one}` of `{table}`" for table, one in types.items())
        raise _refused(
            queries[0].heading.id,
            f"`{column}` must be text in all tables, or integer in all tables, so"
            f" that each id is in one block; it is {text}",
        )


def block_of(query: QueryFile, block: Block) -> QueryFile:
    """Return a query that reads the rows of one block, and is else the same."""
    plan = structs.replace(query.compiled.plan, block=block)
    return replace(query, compiled=structs.replace(query.compiled, plan=plan))


def _tables(query: QueryFile) -> Iterable[Table]:
    spec = query.request
    return (spec.tables.by_name[name] for name in spec.query.tables)


def _refused(query: str, why: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_BOUNDED,
            f"the query `{query}` cannot be split into blocks: {why}",
            notes=(
                "each person must be in one block: otherwise the noise is too small",
            ),
            help="request the score on private answers, or for another query",
        )
    )
