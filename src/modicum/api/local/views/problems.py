"""Mistakes, as answers show them."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.api.schema import problem as schema
from modicum.core.errors import Problem


def problems_view(problems: Iterable[Problem]) -> tuple[schema.Problem, ...]:
    """Return mistakes, each with its place."""
    return tuple(
        schema.Problem(
            code=one.code.value,
            message=one.message,
            file=one.mark.file if one.mark else None,
            line=one.mark.line if one.mark else None,
            column=one.mark.column if one.mark else None,
            length=one.mark.length if one.mark else None,
            label=one.label,
            notes=tuple(one.notes),
            help=one.help,
        )
        for one in problems
    )
