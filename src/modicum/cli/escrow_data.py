"""`modicum escrow init`, `register` and `shred`: the vault, and the data in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.escrow_options import Vault, VaultKeys, open_escrow
from modicum.cli.governance import Reason
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.escrow.datasets import Ownership

DataSet = Annotated[
    str,
    typer.Argument(help="The data set; it has the name of its table.", metavar="NAME"),
]
Bits = Annotated[
    int | None,
    typer.Option(
        "--bits",
        min=0,
        help="The number of bits that one person may receive outside"
        " differential privacy; by default 0.",
    ),
]
Contracts = Annotated[
    int | None,
    typer.Option(
        "--contracts",
        min=1,
        help="The number of open contracts per analyst; by default 20.",
    ),
]
_KEY = re.compile(r"[0-9a-fA-F]{64}")


def add_to(app: typer.Typer) -> None:
    """Add the commands to those about the escrow."""
    app.command("init")(init)
    app.command("register")(register)
    app.command("shred")(shred)


def init(
    vault: Annotated[
        Path,
        typer.Option(
            "--vault",
            envvar="MODICUM_VAULT",
            help="The folder to create, on a local disk.",
            metavar="DIR",
        ),
    ],
    vault_keys: Annotated[
        Path,
        typer.Option(
            "--vault-keys",
            envvar="MODICUM_VAULT_KEYS",
            help="The key file to create; keep it off the disk of the vault.",
            metavar="FILE",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Create a vault and its key file. Existing files are never overwritten.

    Anyone who can read both can read everything. For separation, use a key service.
    """
    from modicum.ops.escrow.factory import create_vault

    with reporting(as_json=as_json):
        key = create_vault(vault, vault_keys)
        if as_json:
            print_json({"vault": str(vault), "keys": str(vault_keys), "key": key})
            return
        print(printable(f"{vault}: vault, empty"))
        print(printable(f"{vault_keys}: its key {key}, readable only by you"))


def register(
    name: DataSet,
    file: Annotated[
        Path, typer.Argument(help="Its rows: .csv or .parquet.", metavar="FILE")
    ],
    table: Annotated[
        Path,
        typer.Option(
            "--table", help="The tables file that declares it.", metavar="TABLES"
        ),
    ],
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            help="An owner; repeatable. With a public key, or its file, only votes"
            " signed with it count.",
            metavar="WHO[=KEY]",
        ),
    ] = None,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum",
            min=1,
            help="The number of owners that must approve each flow; by default all.",
        ),
    ] = None,
    bits: Bits = None,
    contracts: Contracts = None,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Put a version of a data set into the vault, as an owner of it.

    Owners and limits are fixed at registration of the first version: give them then.
    Leave these options out for later versions. A version can be used once the required
    number of owners has approved it; registering it is an approval, unless that needs a
    signature.
    """
    from modicum.api.local.escrow.datasets import Declared
    from modicum.ops.escrow.inputs import read_rows, read_text

    with reporting(as_json=as_json):
        owned = _owned(owner or (), quorum, contracts, bits)
        if table.suffix.lower() in (".csv", ".parquet"):  # Its rows are never quoted.
            raise typer.BadParameter(
                f"{table} has rows; name the file that declares them",
                param_hint="--table",
            )
        office = open_escrow(ledger, actor, vault, vault_keys).escrow
        content, media = read_rows(file)
        declared = Declared(read_text(table), media)
        version = office.register(name, content, declared, owned)
        agreed = office.data()[name].versions[version.number].agreed
        if as_json:
            number = version.number
            found = {"data": name, "version": number, "media": media, "agreed": agreed}
            print_json(found)
            return
        print(printable(f"version {version.number} of `{version.id}` is in the vault"))
        if not agreed:
            print(
                "it can be used once its owners approve it:  modicum escrow list --data"
            )
        print(printable(f"{file} is unchanged: keep it where only owners can read it"))


def shred(
    name: DataSet,
    version: Annotated[
        int, typer.Argument(help="The number of the version.", min=1, metavar="VERSION")
    ],
    reason: Reason,
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm permanent deletion.")
    ] = False,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Permanently destroy a version of a data set, and all withheld results from it.

    It cannot be restored, and its contracts cannot be used again. If this fails, run it
    again: the ledger has already recorded it.
    """
    from modicum.ledger.log.contracts import Version

    with reporting(as_json=as_json):
        if not yes:
            raise typer.BadParameter(
                f"version {version} of {name}, and all withheld results from it,"
                " would be deleted permanently; confirm with --yes",
                param_hint="--yes",
            )
        office = open_escrow(ledger, actor, vault, vault_keys).escrow
        office.shred(Version(name, version), reason=reason)
        if as_json:
            print_json({"data": name, "version": version, "shredded": True})
        else:
            print(printable(f"version {version} of `{name}` is permanently deleted"))


def _owned(
    given: Iterable[str], quorum: int | None, contracts: int | None, bits: int | None
) -> Ownership | None:
    from modicum.api.local.escrow.datasets import Ownership as Owned

    owners: dict[str, tuple[str, ...]] = {}
    for one in given:
        who, equals, key = one.partition("=")
        if not who.strip() or (equals and not key):
            raise _not_owner(f"write WHO or WHO=KEY, not `{one}`")
        if who in owners and not (key and owners[who]):
            raise _not_owner(f"`{who}` is named twice, or once without a key")
        owners[who] = (*owners.get(who, ()), *([_public(key)] if key else ()))
    if not owners:
        if (quorum, contracts, bits) != (None, None, None):
            raise _not_owner(
                "--quorum, --bits and --contracts are fixed at registration, with the"
                " owners"
            )
        return None
    need = len(owners) if quorum is None else quorum
    if need > len(owners):
        raise _not_owner(f"{need} of {len(owners)} owners cannot approve")
    limits = 20 if contracts is None else contracts, bits or 0
    return Owned(owners, need, *limits)


def _public(key: str) -> str:
    """Return a public key in hexadecimal: as given, or from its file."""
    if _KEY.fullmatch(key) and not Path(key).exists():
        return key.lower()
    from modicum.storage.proofs.signing_keys import load_public_key

    return load_public_key(key).hex()


def _not_owner(why: str) -> typer.BadParameter:
    return typer.BadParameter(why, param_hint="--owner")


app = typer.Typer(
    help="List, rotate and destroy the keys that wrap the keys of a vault.",
    no_args_is_help=True,
)

RequiredVault = Annotated[
    Path,
    typer.Option(
        "--vault",
        envvar="MODICUM_VAULT",
        help="The folder of the vault, with encrypted data and results.",
        metavar="DIR",
    ),
]
Keys = Annotated[
    Path,
    typer.Option(
        "--vault-keys",
        envvar="MODICUM_VAULT_KEYS",
        help="The key file of the vault, or the file that names its key service.",
        metavar="FILE",
    ),
]


@app.command()
def show(vault: RequiredVault, vault_keys: Keys, as_json: Json = False) -> None:
    """Show the current key, and the number of data keys that each key wraps."""
    from modicum.ops.escrow.vault_keys import keys_in_use

    with reporting(as_json=as_json):
        found = keys_in_use(vault, vault_keys)
        if as_json:
            print_json({"current": found.current, "wraps": dict(found.wraps)})
            return
        for key, many in found.wraps.items():
            mark = "  (current)" if key == found.current else ""
            print(printable(f"{key}: wraps {many:,} data keys{mark}"))


@app.command()
def rotate(vault: RequiredVault, vault_keys: Keys, as_json: Json = False) -> None:
    """Wrap all data keys under a new key; the encrypted data does not change.

    A key file gets a new key. With a key service, rotate its key first. The old key
    stays until it is retired. If this fails, run it again.
    """
    from modicum.ops.escrow.vault_keys import rotate_keys

    with reporting(as_json=as_json):
        done = rotate_keys(vault, vault_keys)
        if as_json:
            document = {"current": done.current, "moved": done.moved, "kept": done.kept}
            print_json(document)
            return
        print(printable(f"{done.current} now wraps {done.moved:,} more data keys"))
        if done.kept:
            print(f"it already wrapped {done.kept:,} others")


@app.command()
def retire(
    key: Annotated[
        str, typer.Argument(help="The key, as printed by `show`.", metavar="KEY")
    ],
    vault: RequiredVault,
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
    """Destroy an old key of the file that no longer wraps any data key.

    Give every vault that uses the file: data of others is lost. Copies of the file
    still contain the key.
    """
    from modicum.ops.escrow.vault_keys import retire_old_key

    with reporting(as_json=as_json):
        retire_old_key(key, vault_keys, [vault, *(others or ())])
        if as_json:
            print_json({"retired": key})
        else:
            print(printable(f"{key} is removed from {vault_keys}"))
