"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from modicum.core.errors import InputError, UsageError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
# Text, and not a path: a path would lose a slash of a URL.
Ledger = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="MODICUM_LEDGER",
        help="The ledger: a file, or a URL such as postgresql://host/database.",
        metavar="FILE|URL",
    ),
]
Policy = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        envvar="MODICUM_POLICY",
        help="The policy file; without it, the ledger's active policy.",
        metavar="FILE",
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        "--actor",
        envvar="MODICUM_ACTOR",
        help="The acting person or program; by default the login name.",
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="The ledger at an earlier point: an entry number, or a time in UTC such"
        " as 2026-05-01 or 2026-05-01T12:00Z.",
        metavar="SEQ|TIME",
    ),
]
ReleaseId = Annotated[str, typer.Argument(help="The release's id.", metavar="ID")]
EveryRule = Annotated[
    bool, typer.Option("--all", help="Also show the rules that allow a denied release.")
]

#: The ledger that commands use when none is named.
DEFAULT_LEDGER = "ledger.db"


def point(as_of: str | None) -> int | str | None:
    """Return the point in the past that `--as-of` names; None for the present."""
    given = as_of is not None and as_of.isascii() and as_of.isdecimal()
    return int(as_of) if as_of is not None and given else as_of


def shown(ledger: str) -> str:
    """Return the display name of a ledger, without passwords."""
    from modicum.storage.factory import name_of

    return name_of(ledger)


_UNITS = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}


def expires_in_seconds(text: str) -> int:
    """Return the lifetime that `--expires-in` sets for a reservation or a token."""
    number, unit = text[:-1], text[-1:]
    if (
        not number.isascii()
        or not number.isdecimal()
        or len(number) > 9
        or unit not in _UNITS
    ):
        raise typer.BadParameter(
            f"`{text}` is not a duration; write 90s, 30m, 24h or 7d",
            param_hint="--expires-in",
        )
    return int(number) * _UNITS[unit]


def was_given(context: typer.Context, parameter: str) -> bool:
    """Return whether an option of the running command was typed, not left out."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def exclusive_option(option: str, other: str) -> typer.BadParameter:
    """Return the mistake of giving an option that another makes meaningless."""
    return typer.BadParameter(
        f"{option} cannot be combined with {other}; remove one of them"
    )


@contextmanager
def from_options() -> Iterator[None]:
    """Turn a mistake in option values into a usage error: exit code 2."""
    try:
        yield
    except InputError as error:
        raise UsageError(*error.problems) from error
