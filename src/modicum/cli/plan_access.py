"""`modicum plan export-access`: a decision as rules that a data layer enforces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.ledger_access import open_view
from modicum.cli.ledger_signatures import file_named
from modicum.cli.options import DEFAULT_LEDGER, Ledger, exclusive_option, was_given
from modicum.cli.output import note, print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.access.grants import Access

#: The forms that access is written in.
FORMS = ("json", "sql", "postgresql")


Plan = Annotated[
    str | None,
    typer.Argument(help="The id of a plan that was committed.", metavar="PLAN-ID"),
]
PlanNamed = Annotated[
    str | None,
    typer.Option("--plan", help="The same as PLAN-ID.", metavar="ID"),
]
Releases = Annotated[
    list[str] | None,
    typer.Option(
        "--release", help="A release, in place of a plan; repeatable.", metavar="ID"
    ),
]
Round = Annotated[
    str | None,
    typer.Option("--round", help="All plans of a round.", metavar="ID"),
]
Form = Annotated[
    str,
    typer.Option(
        "--format",
        help="json; sql, a predicate for each grant; or postgresql, a role and"
        " row-level security for each.",
        metavar="FORMAT",
    ),
]
GroupColumn = Annotated[
    str,
    typer.Option(
        "--group-column",
        help="The column with the number of a row's user group.",
        metavar="COLUMN",
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="A column whose name differs from the policy; repeatable.",
        metavar="NAME=COLUMN",
    ),
]
Table = Annotated[
    str | None,
    typer.Option(
        "--table",
        help="The table, or SCHEMA.TABLE, for postgresql.",
        metavar="TABLE",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The output file.",
        metavar="FILE",
        callback=file_named,
    ),
]


def export_access(
    context: typer.Context,
    plan: Plan = None,
    plan_named: PlanNamed = None,
    release: Releases = None,
    round_: Round = None,
    form: Form = "json",
    group_column: GroupColumn = "user_group",
    column: Column = None,
    table: Table = None,
    output: Output = None,
    ledger: Ledger = DEFAULT_LEDGER,
) -> None:
    """Write who may read which rows and columns, how, and at what cost.

    Only reserved or started releases grant access. For a plan or a round, other
    releases are left out, and listed; a release given by its id must grant access. With
    `--format json`, errors are JSON, too.
    """
    from modicum.api.local.access.releases import Wanted, exported_access
    from modicum.api.local.access.row_filters import Columns

    _check_one(plan, plan_named, release, round_)
    wanted = Wanted(tuple(release or ()), plan or plan_named or "", round_ or "")
    _check_form(form, table)
    columns = Columns(group_column, _named(column or ()))
    with reporting(as_json=form == "json" and was_given(context, "form")):
        access = exported_access(open_view(ledger), wanted, columns)
        for one in access.left_out:
            note(printable(f"left out: {one.id} is {one.status.value}"))
        if output is not None:
            _write(output, access, form, table)
        elif form == "json":
            from modicum.api.local.access.grants import access_to_plain

            print_json(access_to_plain(access))
        else:
            for line in _lines(access, form, table):
                print(line)


def _check_one(
    plan: str | None,
    plan_named: str | None,
    releases: Sequence[str] | None,
    round_: str | None,
) -> None:
    """Refuse an ambiguous selection: exactly one option must be given."""
    given = {
        "PLAN-ID": plan,
        "--plan": plan_named,
        "--release": releases,
        "--round": round_,
    }
    named = [name for name, value in given.items() if value]
    if not named:
        raise typer.BadParameter(
            "choose what to export: a PLAN-ID, --release ID or --round ID",
            param_hint="PLAN-ID",
        )
    if len(named) > 1:
        raise exclusive_option(named[1], named[0])


def _check_form(form: str, table: str | None) -> None:
    if form not in FORMS:
        raise typer.BadParameter(
            f"`{form}` is not one of {', '.join(FORMS)}", param_hint="--format"
        )
    if form == "postgresql" and not table:
        raise typer.BadParameter(
            "--format postgresql needs --table", param_hint="--table"
        )
    if form != "postgresql" and table is not None:
        raise typer.BadParameter(
            "only --format postgresql takes --table", param_hint="--table"
        )


def _named(given: Iterable[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for one in given:
        name, equals, column = one.partition("=")
        if not (name and equals and column):
            raise typer.BadParameter(
                f"write NAME=COLUMN, not `{one}`", param_hint="--column"
            )
        if name in named:
            raise typer.BadParameter(f"`{name}` has two columns", param_hint="--column")
        named[name] = column
    return named


def _lines(access: Access, form: str, table: str | None) -> list[str]:
    from modicum.api.local.access.sql import postgresql_policies, sql_filters

    if form == "sql":
        return list(sql_filters(access))
    return list(postgresql_policies(access, table or ""))


def _write(output: Path, access: Access, form: str, table: str | None) -> None:
    """Write a file as a whole; the document in its canonical bytes."""
    from modicum.api.local.access.grants import access_to_plain
    from modicum.core.canonical import encode
    from modicum.system.files import write_whole

    if form == "json":
        written = encode(access_to_plain(access)) + b"\n"
    else:
        written = "".join(f"{one}\n" for one in _lines(access, form, table)).encode()
    write_whole(output, [written])
    many = len(access.grants)
    print(printable(f"{output}: {many} grant{'s' * (many != 1)}"))
