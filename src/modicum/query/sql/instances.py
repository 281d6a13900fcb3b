"""Instances of units in SQL: identity, period, and sample."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from sqlglot import exp

from modicum.core.errors import Code
from modicum.query.model import ColumnRef
from modicum.query.problems import refused
from modicum.query.sql import expressions as sql
from modicum.query.sql.names import Names
from modicum.release.parts import LAST_DAY, Span


def clocks(names: Names) -> list[ColumnRef]:
    """Return the time columns of the units' periods, without duplicates."""
    found = [
        names.find(unit.column)
        for unit in names.plan.units.values()
        if unit.column is not None
    ]
    return [one for one in dict.fromkeys(found) if one is not None]


def known(names: Names) -> Iterator[exp.Expression]:
    """Yield that every unit identified by the tables has its key in a row."""
    ids = dict.fromkeys(names.find(unit.id) for unit in names.plan.units.values())
    for reference in ids:
        if reference is not None:
            yield sql.is_known(names.identity(reference))
    if names.plan.part.periods is None:
        for clock in clocks(names):
            yield on_days(clock, (date.min.toordinal(), LAST_DAY), names)


def on_days(clock: ColumnRef, days: Span, names: Names) -> exp.Expression:
    """Return whether a time lies on some days, in a form that can use an index."""
    first, last = (date.fromordinal(one) for one in days)
    return sql.on_days(names.column(clock), names.declared(clock).type, first, last)


def unit_columns(
    unit_name: str, names: Names
) -> tuple[exp.Expression, exp.Expression | None]:
    """Return the id of a unit's instances, and the time of a row if it has periods.

    Raises:
        InputError: If no table has its columns.
    """
    unit = names.plan.units[unit_name]
    found = []
    for name in (unit.id, unit.column):
        if name is None:
            continue
        reference = names.find(name)
        if reference is None:
            raise refused(
                Code.DOES_NOT_FIT,
                f"no table of the query has the column `{name}` of `{unit_name}`",
                None,
                help=f"name its column `{name}`, in the data and in the tables file",
            )
        found.append(reference)
    time = None if unit.period is None else names.column(found[1])
    return names.identity(found[0]), time


def unit_texts(unit_name: str, names: Names) -> list[exp.Expression]:
    """Return the key of a unit's instances as texts, for a hash.

    Raises:
        InputError: If no table has its columns.
    """
    found, time = unit_columns(unit_name, names)
    unit = names.plan.units[unit_name]
    reference = names.find(unit.id)
    assert reference is not None  # It was found just now.
    texts = [names.identity_text(reference, found)]
    if time is not None and unit.period is not None:
        texts.append(exp.cast(sql.first_day(time, unit.period), "text"))
    return texts


def in_sample(names: Names, seed: str) -> exp.Expression:
    """Return whether a row's instance is in the sample.

    Args:
        names: The columns; the plan has a sample.
        seed: The seed of the sample, in hex.
    """
    sample = names.plan.sample
    assert sample is not None  # The caller looked.
    texts = unit_texts(sample.unit, names)
    digits = sql.hashed(seed, texts, sql.SAMPLE_DIGITS)
    # Of equally many digits, texts are ordered as numbers are.
    threshold = sql.text(f"{sample.threshold:0{sql.SAMPLE_DIGITS}x}")
    return exp.LT(this=digits, expression=threshold)


def in_block(names: Names, key: str) -> list[exp.Expression]:
    """Return the condition that a row's instance is in the block.

    Args:
        names: The columns; the plan has a block.
        key: The key of the hash, in hex.
    """
    block = names.plan.block
    assert block is not None  # The caller looked.
    texts = unit_texts(block.unit, names)
    digits = sql.hashed(key, texts, sql.SAMPLE_DIGITS)
    found: list[exp.Expression] = []
    # Each stretch ends where the next one begins: no hash is in two, or in none.
    if block.number > 0:
        begin = sql.text(_stretch(block.number, block.of))
        found.append(exp.GTE(this=digits, expression=begin))
    if block.number < block.of - 1:
        end = sql.text(_stretch(block.number + 1, block.of))
        found.append(exp.LT(this=digits.copy(), expression=end))
    return found


def _stretch(number: int, of: int) -> str:
    """Return where a stretch of all hashes begins, as digits of a hash."""
    first = number * 16**sql.SAMPLE_DIGITS // of
    return f"{first:0{sql.SAMPLE_DIGITS}x}"
