"""`modicum policy fmt` and `modicum policy schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.options import Json
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable


def register(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("fmt")(fmt)
    app.command("schema")(schema)


def fmt(
    file: Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")],
    as_json: Json = False,
    write: Annotated[
        bool, typer.Option("--write", help="Rewrite FILE; its comments are kept.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; leave with 4 if it would change."),
    ] = False,
) -> None:
    """Print the canonical text of a policy; its SHA-256 is the policy's digest."""
    if write and check:
        raise typer.BadParameter("give --write or --check, not both")
    with reporting(as_json=as_json):
        if write or check:
            _lay_out(file, as_json=as_json, write=write)
        else:
            _print_text(file, as_json=as_json)


def _print_text(file: Path, *, as_json: bool) -> None:
    from modicum.ops.files.documents import canonical_policy

    compiled, text = canonical_policy(file)
    if as_json:
        print_json({"digest": compiled.policy.digest, "text": text})
    else:
        print(text, end="")


def _lay_out(file: Path, *, as_json: bool, write: bool) -> None:
    from modicum.ops.files.documents import lay_out_policy

    changed = lay_out_policy(file, write=write)
    if as_json:
        print_json({"changed": changed})
    elif write:
        done = "formatted" if changed else "was formatted already"
        print(f"{printable(str(file))}: {done}")
    else:
        remedy = f"not formatted; mend it with  modicum policy fmt --write {file}"
        print(f"{printable(str(file))}: {remedy if changed else 'ok'}")
    if changed and not write:
        raise typer.Exit(Exit.INVALID)


def schema(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="With --release: a policy, whose words are then offered.",
            metavar="[POLICY]",
        ),
    ] = None,
    release: Annotated[
        bool, typer.Option("--release", help="The schema of release files.")
    ] = False,
    part: Annotated[
        bool, typer.Option("--part", help="The schema of files that are included.")
    ] = False,
) -> None:
    """Print the JSON Schema of policy files, for completion in editors."""
    from modicum.policy.json_schema.policy import policy_schema
    from modicum.policy.json_schema.release import release_schema

    if file is not None and not release:
        raise typer.BadParameter("a policy is given with --release only")
    if release and part:
        raise typer.BadParameter("give --release or --part, not both")
    with reporting(as_json=False):
        if not release:
            print_json(policy_schema(part=part))
        elif file is None:
            print_json(release_schema())
        else:
            from modicum.ops.files.documents import load_policy

            print_json(release_schema(load_policy(file).policy.vocabulary))
