"""`modicum policy`: operations on policy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import policy_approvals, policy_changes, policy_rules, policy_test
from modicum.cli.exit_codes import Exit
from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, point
from modicum.cli.output import note, print_json, reporting
from modicum.cli.policy_rules import (
    REDUNDANT_SHOWN,
    RULES_SHOWN,
    print_compiled,
    print_counts,
    print_redundant,
    print_redundant_document,
    print_rules,
)
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.ledger.state.state import ActivePolicy
    from modicum.policy import CompiledPolicy


def register_format(app: typer.Typer) -> None:
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
        typer.Option(
            "--check", help="Write nothing; exit with code 4 if it would change."
        ),
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
        done = "formatted" if changed else "already formatted"
        print(f"{printable(str(file))}: {done}")
    else:
        remedy = f"not formatted; fix it with  modicum policy fmt --write {file}"
        print(f"{printable(str(file))}: {remedy if changed else 'ok'}")
    if changed and not write:
        raise typer.Exit(Exit.INVALID)


def schema(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="With --release: a policy, whose names are then offered.",
            metavar="[POLICY]",
        ),
    ] = None,
    release: Annotated[
        bool, typer.Option("--release", help="The schema of release files.")
    ] = False,
    part: Annotated[
        bool, typer.Option("--part", help="The schema of included files.")
    ] = False,
) -> None:
    """Print the JSON Schema of policy files, for completion in editors."""
    from modicum.policy.json_schema.policy import policy_schema
    from modicum.policy.json_schema.release import release_schema

    if file is not None and not release:
        raise typer.BadParameter("a policy is allowed with --release only")
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


def register_show(app: typer.Typer) -> None:
    """Add the command to those about policies."""
    app.command("show")(show)


def show(
    ledger: Ledger = DEFAULT_LEDGER,
    numbers: Annotated[
        bool,
        typer.Option("--numbers", help="Number the lines, as in denials."),
    ] = False,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print the text of the ledger's active policy, as it was activated.

    In a denial, `(active):47:5` is its line 47.
    """
    from modicum.api.local.governance.approval_cases import active_policy
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        book, _, _ = open_view(ledger, as_of=point(as_of)).current()
        active_policy(book)  # Refuses a ledger without one, or one that is damaged.
        policy = book.state.policy
        assert policy is not None
        if as_json:
            print_json(_to_dict(policy))
            return
        for number, line in enumerate(policy.text.splitlines(), 1):
            shown = printable(line)
            print(f"{number:>5}  {shown}".rstrip() if numbers else shown)


def _to_dict(policy: ActivePolicy) -> dict[str, object]:
    return {
        "name": policy.name,
        "digest": policy.digest,
        "entry": policy.seq,
        "reason": policy.reason or None,
        "accepted": list(policy.accepted),
        "text": policy.text,
    }


__all__ = ["app", "print_counts"]

app = typer.Typer(
    help="Check, show, draw, explain, compare, test and activate policies.",
    no_args_is_help=True,
)

File = Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")]


@app.command()
def lint(
    files: Annotated[
        list[Path], typer.Argument(help="The policy files.", metavar="FILE...")
    ],
    as_json: Json = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 4 if there are warnings.")
    ] = False,
) -> None:
    """Check policy files; report every error with its position."""
    from modicum.core.reader import Problems

    with reporting(as_json=as_json):
        found = Problems()
        checked: list[tuple[Path, CompiledPolicy]] = []
        for file in files:
            with found.guard():
                checked.append((file, _load(file)))
        if as_json:
            found.raise_any()
            print_json(_checked(checked, strict=strict))
        else:
            for file, compiled in checked:
                _print_checked(file, compiled)
            found.raise_any()
        if strict and any(compiled.warnings for _, compiled in checked):
            raise typer.Exit(Exit.INVALID)


def _print_checked(file: Path, compiled: CompiledPolicy) -> None:
    for problem in compiled.warnings:
        note(problem.render().replace("error[", "warning[", 1))
    rules, single = len(compiled.rules), len(compiled.release_rules)
    text = f"{rules} rule{'' if rules == 1 else 's'}, {single} per release"
    warned = len(compiled.warnings)
    more = f", {warned} warning{'' if warned == 1 else 's'}" if warned else ""
    print(f"{printable(str(file))}: ok ({text}{more})")


def _checked(
    checked: list[tuple[Path, CompiledPolicy]], *, strict: bool
) -> dict[str, object]:
    """Return the check of one file, or a list for several."""
    from modicum.api.local.views.ledger import problems_view

    each = [
        {
            "ok": not (strict and compiled.warnings),
            "rules": len(compiled.rules),
            "release_rules": len(compiled.release_rules),
            "digest": compiled.policy.digest,
            "warnings": problems_view(compiled.warnings),
        }
        for _, compiled in checked
    ]
    if len(each) == 1:
        return each[0]
    files = [
        {"file": str(file), **one} for (file, _), one in zip(checked, each, strict=True)
    ]
    return {"ok": all(one["ok"] for one in each), "files": files}


@app.command("compile")
def compile_file(
    file: File,
    as_json: Json = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Show only the counts, not the rules.")
    ] = False,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all", help=f"Show every rule, not only the first {RULES_SHOWN}."
        ),
    ] = False,
) -> None:
    """Show the rules that a policy file compiles to."""
    with reporting(as_json=as_json):
        compiled = _load(file)
        if as_json:
            print_compiled(compiled)
            return
        print_counts(compiled)
        if not brief:
            print_rules(compiled, shown=None if show_all else RULES_SHOWN)


@app.command()
def prune(
    file: File,
    as_json: Json = False,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all", help=f"Show every rule, not only the first {REDUNDANT_SHOWN}."
        ),
    ] = False,
) -> None:
    """Show the rules that other rules imply, each with such a rule."""
    with reporting(as_json=as_json):
        compiled = _load(file)
        if as_json:
            print_redundant_document(compiled)
        else:
            print_redundant(compiled, shown=None if show_all else REDUNDANT_SHOWN)


def _load(file: Path) -> CompiledPolicy:
    from modicum.ops.files.documents import load_policy

    return load_policy(file)


register_format(app)
register_show(app)
policy_rules.register(app)
policy_test.register(app)
policy_changes.register(app)
policy_approvals.register(app)
policy_approvals.add_proposals_to(app)
