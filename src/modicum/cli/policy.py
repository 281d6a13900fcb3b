"""`modicum policy`: what is done with policy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import (
    policy_activate,
    policy_changes,
    policy_graph,
    policy_proposals,
    policy_show,
    policy_test,
)
from modicum.cli.exit_codes import Exit
from modicum.cli.options import Json
from modicum.cli.output import note, print_json, reporting
from modicum.cli.policy_format import register
from modicum.cli.policy_rules import (
    IMPLIED_SHOWN,
    RULES_SHOWN,
    print_compiled,
    print_counts,
    print_implied,
    print_implied_document,
    print_rules,
)
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.policy import CompiledPolicy

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
        bool, typer.Option("--strict", help="Leave with 4 if there are warnings.")
    ] = False,
) -> None:
    """Check policy files; report every mistake with its place."""
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
    told = f"{rules} rule{'' if rules == 1 else 's'}, {single} per release"
    warned = len(compiled.warnings)
    more = f", {warned} warning{'' if warned == 1 else 's'}" if warned else ""
    print(f"{printable(str(file))}: ok ({told}{more})")


def _checked(
    checked: list[tuple[Path, CompiledPolicy]], *, strict: bool
) -> dict[str, object]:
    """Return what one file is checked to be, or, for several, each of them."""
    from modicum.api.local.views.problems import problems_view

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
        bool, typer.Option("--brief", help="Only the counts, not the rules.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"Every rule, not the first {RULES_SHOWN}.")
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
        bool, typer.Option("--all", help=f"Every one, not the first {IMPLIED_SHOWN}.")
    ] = False,
) -> None:
    """Show the rules that other rules imply, each with one that does."""
    with reporting(as_json=as_json):
        compiled = _load(file)
        if as_json:
            print_implied_document(compiled)
        else:
            print_implied(compiled, shown=None if show_all else IMPLIED_SHOWN)


def _load(file: Path) -> CompiledPolicy:
    from modicum.ops.files.documents import load_policy

    return load_policy(file)


register(app)
policy_show.register(app)
policy_graph.register(app)
policy_test.register(app)
policy_changes.register(app)
policy_activate.register(app)
policy_proposals.add_to(app)
