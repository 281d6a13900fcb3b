"""`modicum ledger key`, `checkpoint`, `receipt`: signed claims to store elsewhere."""

from __future__ import annotations

import warnings
from getpass import GetPassWarning
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.ledger_access import current_log
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import print_json, reporting

if TYPE_CHECKING:
    from modicum.ledger.proof.claims import Signed
    from modicum.storage.proofs.signing_keys import SigningKey

keys = typer.Typer(
    help="Keys that sign checkpoints and approvals.", no_args_is_help=True
)

Key = Annotated[
    Path, typer.Option("--key", help="The private key that signs.", metavar="FILE")
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        help="The first line of this file is the key's passphrase.",
        metavar="FILE",
    ),
]


def file_named(output: Path | None) -> Path | None:
    """Return the name of an output file; `-`, often meant as a pipe, is refused.

    Args:
        output: The argument; None if omitted.
    """
    if output is not None and str(output) == "-":
        raise typer.BadParameter("- is not a file; name one")
    return output


Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="The output file; by default, it is printed.",
        metavar="FILE",
        callback=file_named,
    ),
]


def add_to(ledger: typer.Typer) -> None:
    """Add the commands of this module to those about the ledger."""
    ledger.add_typer(keys, name="key")
    ledger.command("checkpoint")(checkpoint)
    ledger.command("receipt")(receipt)


@keys.command("show")
def show_key(
    path: Annotated[Path, typer.Argument(help="A public key, `.pub`.")],
    as_json: Json = False,
) -> None:
    """Show a public key as in `keys` of a policy."""
    from modicum.ledger.proof.claims import key_id
    from modicum.storage.proofs.signing_keys import load_public_key

    with reporting(as_json=as_json):
        raw = load_public_key(path)
        if as_json:
            print_json({"key": key_id(raw), "public_key": raw.hex()})
            return
        print(raw.hex())


@keys.command("new")
def new_key(
    path: Annotated[Path, typer.Argument(help="The file of the private key.")],
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="Ask for a passphrase to encrypt it.")
    ] = False,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Create an Ed25519 key, and its public key next to it, with `.pub`."""
    from modicum.storage.proofs.signing_keys import make_key

    with reporting(as_json=as_json):
        phrase = read_passphrase(passphrase_file)
        if phrase is None and encrypt:
            phrase = _asked_passphrase(path, confirm=True)
        made = make_key(path, phrase)
        if as_json:
            print_json({"key": made.id, "private": str(path), "public": f"{path}.pub"})
            return
        print(f"{path}: private key {made.id[:12]}, readable only by you")
        print(f"{path}.pub: public key, for verifiers")


def checkpoint(
    key: Key,
    ledger: Ledger = DEFAULT_LEDGER,
    output: Output = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Verify the ledger and sign its last entry; keep the file on another host."""
    from modicum.ledger.proof.claims import signed_bytes
    from modicum.storage.proofs.ledger_log import sign_checkpoint
    from modicum.storage.proofs.signing_keys import Signing
    from modicum.system.clock import SystemClock

    with reporting(as_json=as_json):
        signing = Signing(open_key(key, passphrase_file), SystemClock().now())
        store = current_log(ledger)
        signed = sign_checkpoint(store, signing)
        store.add_checkpoint(signed_bytes(signed))
        _hand_over(signed, output, as_json=as_json)


def receipt(
    release: Annotated[str, typer.Argument(help="The id of the release.")],
    key: Key,
    ledger: Ledger = DEFAULT_LEDGER,
    output: Output = None,
    passphrase_file: PassphraseFile = None,
    as_json: Json = False,
) -> None:
    """Verify the ledger and sign its latest decision on a release."""
    from modicum.storage.proofs.receipts import sign_receipt
    from modicum.storage.proofs.signing_keys import Signing
    from modicum.system.clock import SystemClock

    with reporting(as_json=as_json):
        signing = Signing(open_key(key, passphrase_file), SystemClock().now())
        signed = sign_receipt(current_log(ledger), release, signing)
        _hand_over(signed, output, as_json=as_json)


def _hand_over(signed: Signed, output: Path | None, *, as_json: bool) -> None:
    """Print a signed claim, or write it to a file and report that."""
    from modicum.ledger.proof.claims import signed_bytes
    from modicum.system.files import write_whole

    claim, line = signed.claim, signed_bytes(signed)
    if output is None:
        print(line.decode("utf-8"), end="")
        return
    write_whole(output, [line])
    if as_json:
        print_json({"file": str(output), "seq": claim.seq, "head": claim.head})
        return
    print(f"{output}: entry {claim.seq}, head {claim.head}, key {claim.key[:12]}")


# --- used by other commands --------------------------------------------------


def open_key(path: Path, passphrase_file: Path | None) -> SigningKey:
    """Return a private key; prompt for its passphrase if no file has it."""
    from modicum.storage.proofs.signing_keys import load_key, needs_passphrase

    phrase = read_passphrase(passphrase_file)
    if phrase is None and needs_passphrase(path):
        phrase = _asked_passphrase(path, confirm=False)
    return load_key(path, phrase)


def _asked_passphrase(path: Path, *, confirm: bool) -> bytes:
    """Return a passphrase typed at a terminal."""
    from modicum.core.errors import Code, Problem, UsageError

    with warnings.catch_warnings():
        warnings.simplefilter("error", GetPassWarning)
        try:
            typed: str = typer.prompt(
                f"passphrase of {path}",
                hide_input=True,
                confirmation_prompt=confirm,
                err=True,
            )
        except GetPassWarning as warning:
            typer.echo(err=True)  # The prompt is still on the line.
            problem = (
                f"{path} needs a passphrase, and there is no terminal to ask for it"
            )
            remedy = "put it in the first line of a file, and name that with"
            raise UsageError(
                Problem(
                    Code.FILE_UNREADABLE,
                    problem,
                    help=f"{remedy}  --passphrase-file FILE",
                )
            ) from warning
    return typed.encode()


def read_passphrase(path: Path | None) -> bytes | None:
    """Return the first line of a file, None without a file."""
    if path is None:
        return None
    from modicum.core.errors import Code, InputError, Problem
    from modicum.ops.files.documents import read_bytes

    lines = read_bytes(path).splitlines()
    if not lines or not lines[0]:
        raise InputError(
            Problem(Code.EMPTY_DOCUMENT, f"{path} has no passphrase in its first line")
        )
    return lines[0]
