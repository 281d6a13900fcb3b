"""`modicum token`: create, list and revoke API tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.ledger_access import open_log
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger, expires_in_seconds
from modicum.cli.output import note, print_json, print_table, reporting, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.permissions.identity import Grants
    from modicum.api.permissions.tokens import Token
    from modicum.server.auth.registry import Registry

app = typer.Typer(help="Create, list and revoke API tokens.", no_args_is_help=True)


@app.command()
def create(
    actor: Annotated[
        str,
        typer.Option("--actor", help="The actor of everything it does."),
    ],
    role: Annotated[
        list[str],
        typer.Option(
            "--role",
            help="A role, for all data sets or for the named ones, as in"
            " analyst=hr,bank; repeatable.",
            metavar="ROLE[=DATA SET,...]",
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="Its purpose.")] = "",
    expires_in: Annotated[
        str,
        typer.Option(
            "--expires-in",
            help="Its lifetime: 12h or 90d, at most 366d.",
            metavar="TIME",
        ),
    ] = "90d",
    service: Annotated[
        bool,
        typer.Option(
            "--service",
            help="The token is for a program: service:NAME.",
        ),
    ] = False,
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Create a token and print it. It is shown only once; keep it like a password."""
    from msgspec.structs import asdict

    from modicum.api.permissions.tokens import TokenTerms
    from modicum.api.schema.account import IssuedToken
    from modicum.ops.wiring import current_actor
    from modicum.server.auth.names import owner_name, program_actor

    with reporting(as_json=as_json):
        terms = TokenTerms(
            actor=program_actor(actor) if service else owner_name(actor),
            grants=_grants(role),
            is_service=service,
            name=name,
            seconds=expires_in_seconds(expires_in),
        )
        issued = _registry(ledger).add_token(terms, created_by=current_actor())
        token = issued.token
        if as_json:
            shown = asdict(token.view(token.created_at))
            print_json(IssuedToken(**shown, token=issued.text))
            return
        note(
            f"token {token.id} acts as {printable(token.actor)} until"
            f" {seconds(token.expires_at)}; it is shown only once:"
        )
        print(issued.text)


@app.command("list")
def list_tokens(ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False) -> None:
    """List all tokens, also expired ones, with their roles and creators."""
    from modicum.system.clock import SystemClock

    with reporting(as_json=as_json):
        tokens, now = _registry(ledger).tokens(), SystemClock().now()
        if as_json:
            print_json({"tokens": [one.view(now) for one in tokens]})
        elif tokens:
            _print_tokens(tokens, now)
        else:
            note("there are no tokens")


@app.command()
def revoke(
    identifier: Annotated[
        str, typer.Argument(help="The id of the token, or the token.", metavar="ID")
    ],
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Revoke a token. A running server applies it within seconds."""
    from modicum.ops.wiring import current_actor
    from modicum.system.clock import SystemClock

    with reporting(as_json=as_json):
        registry = _registry(ledger)
        token = registry.revoke_token(identifier, revoked_by=current_actor())
        if as_json:
            print_json(token.view(SystemClock().now()))
            return
        print(f"token {token.id} is revoked since {seconds(token.revoked_at)}")


def _registry(ledger: str) -> Registry:
    from modicum.server.auth.registry import open_registry

    return open_registry(open_log(ledger))


def _grants(given: Iterable[str]) -> Grants:
    """Return the grants that `--role` names."""
    from modicum.api.permissions.actions import Role
    from modicum.api.permissions.identity import ALL

    grants: dict[Role, frozenset[str]] = {}
    for text in given:
        word, equals, names = text.partition("=")
        if word not in {one.value for one in Role}:
            roles = ", ".join(one.value for one in Role)
            raise typer.BadParameter(
                f"`{word}` is not a role; the roles are {roles}", param_hint="--role"
            )
        named = (one.strip() for one in names.split(","))
        sets = frozenset(named) if equals else frozenset({ALL})
        if "" in sets:
            raise typer.BadParameter(
                f"`{text}` has no data set after `=`", param_hint="--role"
            )
        grants[Role(word)] = grants.get(Role(word), frozenset()) | sets
    return grants


def _print_tokens(tokens: Iterable[Token], now: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    from modicum.server.auth.names import PROGRAM_PREFIX

    table = Table(box=None, pad_edge=False)
    for header in ("ID", "STATUS", "ACTOR", "MAY", "EXPIRES", "CREATED BY", "FOR"):
        table.add_column(header, overflow="fold")
    for one in tokens:
        is_told = not one.is_service or one.actor.startswith(PROGRAM_PREFIX)
        row = (
            one.id,
            one.status(now).value,
            one.actor if is_told else f"{one.actor} (service)",
            _grants_text(one.grants),
            seconds(one.expires_at),
            one.created_by,
            one.name,
        )
        table.add_row(*(escape(printable(cell)) for cell in row))
    print_table(table, spare=["FOR", "CREATED BY"])


def _grants_text(grants: Grants) -> str:
    """Return grants in the format of `--role`."""
    from modicum.api.permissions.identity import ALL

    return " ".join(
        role.value if ALL in sets else f"{role.value}={','.join(sorted(sets))}"
        for role, sets in grants.items()
    )
