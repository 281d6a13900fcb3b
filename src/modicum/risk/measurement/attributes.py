"""Which attributes of a policy a private choice is charged for."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code
from modicum.risk.arguments import argument, mistake
from modicum.risk.question import Question


def attributes_read(question: Question, given: Sequence[str] | None) -> list[str]:
    """Return the attributes that a query reads, by the policy's names.

    Args:
        question: The query.
        given: Each as NAME, if its column has that name, or NAME=COLUMN. None if all
            are called as their columns.

    Returns:
        Their names. The column that tells whose a row is need not be among them.

    Raises:
        GivenError: If a column is not there, or one that the query reads is left out:
            its rules would not be charged.
    """
    if given is None:
        return list(question.reads)
    known = {one.lower() for one in question.columns}
    covered: set[str] = set()
    names: list[str] = []
    for one in given:
        name, equals, column = one.partition("=")
        column = (column if equals else name).strip()
        if column.lower() not in known:
            raise mistake(
                f"the data has no column `{column[:60]}`",
                f"name columns of the data as {argument('attributes')}; where the"
                " policy calls one otherwise, write NAME=COLUMN",
                Code.UNKNOWN_ATTRIBUTE,
                near=nearest(column, question.columns),
            )
        covered.add(column.lower())
        names.append(name.strip())
    left = [one for one in question.reads if one.lower() not in covered]
    if left:
        raise mistake(
            f"the query reads `{left[0][:60]}`, which {argument('attributes')} leaves"
            " out",
            "name every column that it reads: what is left out escapes its rules",
            Code.KEYS_CONFLICT,
        )
    return names
