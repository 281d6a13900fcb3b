"""`modicum policy`: check and compile policy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import Json
from modicum.cli.output import console, note, print_json, reporting

if TYPE_CHECKING:
    from modicum.policy import CompiledPolicy, Rule

app = typer.Typer(help="Check and compile policy files.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")]


@app.command()
def lint(file: File, as_json: Json = False) -> None:
    """Check a policy file; report every mistake with its place."""
    with reporting(as_json=as_json):
        compiled = _load(file)
        if as_json:
            print_json(
                {
                    "ok": True,
                    "rules": len(compiled.rules),
                    "release_rules": len(compiled.release_rules),
                    "digest": compiled.policy.digest,
                    "warnings": [problem.to_dict() for problem in compiled.warnings],
                }
            )
            return
        for problem in compiled.warnings:
            note(problem.render().replace("error[", "warning[", 1))
        print(f"{file}: ok ({_counts(compiled)})")


@app.command("compile")
def compile_file(
    file: File,
    as_json: Json = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Only the counts, not the rules.")
    ] = False,
) -> None:
    """Show the rules that a policy file compiles to."""
    with reporting(as_json=as_json):
        compiled = _load(file)
        if as_json:
            print_json(_to_dict(compiled))
            return
        print_counts(compiled)
        if not brief:
            _print_rules(compiled)


def print_counts(compiled: CompiledPolicy) -> None:
    """Print how the rules come about: base rules times extensions."""
    policy = compiled.policy
    total = sum(compiled.base_rules.values())
    by_policy = ", ".join(f"{n} {name}" for name, n in compiled.base_rules.items())
    print(f"  base rules {total:>6}   ({by_policy})")
    for extension in policy.extensions:
        names = ", ".join(setting.name for setting in extension.settings)
        print(f"  x {extension.name:<8} {len(extension.settings):>6}   {names}")
    print(f"  = rules    {len(compiled.rules):>6}")
    print(f"  per release{len(compiled.release_rules):>6}")
    print(f"  filter     {policy.filter_name}   digest {policy.digest[:12]}")


def _load(file: Path) -> CompiledPolicy:
    from modicum.shell.files import load_policy

    return load_policy(file)


def _counts(compiled: CompiledPolicy) -> str:
    rules, single = len(compiled.rules), len(compiled.release_rules)
    return f"{rules} rule{'' if rules == 1 else 's'}, {single} per release"


def _to_dict(compiled: CompiledPolicy) -> dict[str, object]:
    policy = compiled.policy
    return {
        "name": policy.name,
        "digest": policy.digest,
        "filter": policy.filter_name,
        "base_rules": sum(compiled.base_rules.values()),
        "extensions": {
            extension.name: [setting.name for setting in extension.settings]
            for extension in policy.extensions
        },
        "rules": len(compiled.rules),
        "release_rules": len(compiled.release_rules),
        "list": [
            _rule_to_dict(rule) for rule in (*compiled.rules, *compiled.release_rules)
        ],
        "warnings": [problem.to_dict() for problem in compiled.warnings],
    }


def _rule_to_dict(rule: Rule) -> dict[str, object]:
    from modicum.accounting.budgets import budget_text

    return {
        "id": rule.id,
        "stage": rule.stage.value,
        "scope": rule.scope,
        "context": list(rule.context),
        "predicate": rule.when,
        "unit": rule.unit,
        "budget": budget_text(rule.budget),
        "source": [str(mark) for mark in rule.marks if mark is not None],
    }


def _print_rules(compiled: CompiledPolicy) -> None:
    from rich.markup import escape
    from rich.table import Table

    from modicum.accounting.budgets import budget_text

    table = Table(box=None, pad_edge=False)
    for title in ("RULE", "UNIT", "BUDGET", "LINE", "WHEN"):
        table.add_column(title, overflow="fold")
    for rule in (*compiled.rules, *compiled.release_rules):
        lines = ",".join(str(mark.line) for mark in rule.marks if mark is not None)
        cells = (rule.id, rule.unit, budget_text(rule.budget), lines, rule.when)
        table.add_row(*(escape(cell) for cell in cells))
    console().print(table)
