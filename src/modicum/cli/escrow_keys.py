"""`modicum escrow keys`: the keys that wrap those of a vault."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modicum.cli.options import Json
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

app = typer.Typer(
    help="Look at the keys that wrap those of a vault, change them, destroy old ones.",
    no_args_is_help=True,
)

Vault = Annotated[
    Path,
    typer.Option(
        "--vault",
        envvar="MODICUM_VAULT",
        help="The folder of the vault, where data and results lie encrypted.",
        metavar="DIR",
    ),
]
Keys = Annotated[
    Path,
    typer.Option(
        "--vault-keys",
        envvar="MODICUM_VAULT_KEYS",
        help="The file with the keys of the vault, or that names the service that has"
        " them.",
        metavar="FILE",
    ),
]


@app.command()
def show(vault: Vault, vault_keys: Keys, as_json: Json = False) -> None:
    """Show which key wraps what is new, and how many things each key wraps."""
    from modicum.ops.escrow.vault_keys import keys_in_use

    with reporting(as_json=as_json):
        found = keys_in_use(vault, vault_keys)
        if as_json:
            print_json({"current": found.current, "wraps": dict(found.wraps)})
            return
        for key, many in found.wraps.items():
            mark = "  (current)" if key == found.current else ""
            print(printable(f"{key}: wraps the keys of {many:,} things{mark}"))


@app.command()
def rotate(vault: Vault, vault_keys: Keys, as_json: Json = False) -> None:
    """Wrap the key of everything under a new key; what they encrypt stays as it is.

    A new key is added to a file with keys. A service makes its own: let it, first. The
    old key stays until it is retired. If this fails, do it again.
    """
    from modicum.ops.escrow.vault_keys import rotate_keys

    with reporting(as_json=as_json):
        done = rotate_keys(vault, vault_keys)
        if as_json:
            told = {"current": done.current, "moved": done.moved, "kept": done.kept}
            print_json(told)
            return
        print(printable(f"{done.current} wraps the keys of {done.moved:,} things now"))
        if done.kept:
            print(f"it had wrapped those of {done.kept:,} others before")


@app.command()
def retire(
    key: Annotated[
        str, typer.Argument(help="The key, as `show` names it.", metavar="KEY")
    ],
    vault: Vault,
    vault_keys: Keys,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--other-vault",
            help="A further vault whose keys the file wraps; repeatable.",
            metavar="DIR",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Destroy an old key of the file, under which nothing is wrapped any more.

    Name every vault that uses the file: what is wrapped in others is lost. Copies of
    the file that are kept elsewhere still hold the key.
    """
    from modicum.ops.escrow.vault_keys import retire_old_key

    with reporting(as_json=as_json):
        retire_old_key(key, vault_keys, [vault, *(others or ())])
        if as_json:
            print_json({"retired": key})
        else:
            print(printable(f"{key} is gone from {vault_keys}"))
