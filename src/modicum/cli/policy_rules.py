"""The rules of a compiled policy, as `policy compile` and `policy prune` show them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.api.schema.shape import plain
from modicum.cli.output import fitting, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.views.compiled_rules import CompiledRule
    from modicum.policy import CompiledPolicy, Rule
    from modicum.policy.hasse.diagram import Hasse
    from modicum.policy.rules import Stage

#: Maximum number of rules that `compile` and `prune` show by default.
RULES_SHOWN = 200
REDUNDANT_SHOWN = 20


def print_counts(compiled: CompiledPolicy) -> None:
    """Print the number of rules: base rules times extensions."""
    from modicum.api.local.views.compiled_rules import by_unit

    policy = compiled.policy
    total = sum(compiled.base_rules.values())
    by_policy = ", ".join(f"{n} {name}" for name, n in compiled.base_rules.items())
    print(f"  base rules {total:>6}   ({by_policy})")
    for extension in policy.extensions:
        names = ", ".join(setting.name for setting in extension.settings)
        print(f"  x {extension.name:<8} {len(extension.settings):>6}   {names}")
    print(f"  = rules    {_counted(compiled.pruned.witness)}")
    units = by_unit(compiled)
    if len(units) > 1:
        listed = ", ".join(f"{sum(n)} {unit}" for unit, n in units.items())
        print(f"  by unit             {listed}")
    print(f"  per release{_counted(compiled.pruned_alone.witness)}")
    print(f"  filter     {policy.filter_name}   digest {policy.digest[:12]}")


def _counted(witness: Sequence[int]) -> str:
    if not witness:
        return f"{0:>6}"
    from modicum.api.local.views.compiled_rules import kept

    binding, redundant = kept(witness)
    return f"{len(witness):>6}   binding {binding}   redundant {redundant}"


# --- compile -------------------------------------------------------------------


def print_rules(compiled: CompiledPolicy, *, shown: int | None) -> None:
    """Print a line for each rule."""
    from modicum.api.local.views.compiled_rules import compiled_rules

    rows: list[tuple[str, ...]] = []
    total = _rules(compiled)
    several = _several_files(compiled)
    for one in islice(compiled_rules(compiled), fitting(total, shown)):
        rule = one.rule
        marks = [mark for mark in rule.marks if mark is not None]
        lines = ",".join(
            f"{mark.file}:{mark.line}" if several else str(mark.line) for mark in marks
        )
        cells = rule.id, rule.unit, _budget(rule), lines, one.status, when_text(rule)
        rows.append(cells)
    _print_table(("RULE", "UNIT", "BUDGET", "LINE", "STATUS", "WHEN"), rows)
    _print_left(total - len(rows))


def when_text(rule: Rule) -> str:
    """Return a rule's predicate, or "nothing" if no attribute could make it true."""
    from modicum.policy.predicates import ReadsAny

    empty = isinstance(rule.predicate, ReadsAny) and not rule.predicate.attributes
    return "nothing" if empty else rule.when


def print_compiled(compiled: CompiledPolicy) -> None:
    """Print a compiled policy as one JSON document, rule by rule."""
    from modicum.api.local.views.compiled_rules import (
        compiled_rule_view,
        compiled_rules,
        compiled_view,
    )

    listed = map(compiled_rule_view, compiled_rules(compiled))
    _print_streamed(plain(compiled_view(compiled)), "list", listed)


def _several_files(compiled: CompiledPolicy) -> bool:
    files = {
        mark.file
        for rules in (compiled.rules, compiled.release_rules)
        for mark in (
            *(base.mark for base in rules.bases),
            *(one.mark for settings in rules.extensions for one in settings),
        )
        if mark is not None
    }
    return len(files) > 1


def _budget(rule: Rule) -> str:
    from modicum.accounting.budgets import budget_text

    return budget_text(rule.budget)


# --- prune ---------------------------------------------------------------------


def print_redundant(compiled: CompiledPolicy, *, shown: int | None) -> None:
    """Print each redundant rule beside the one that implies it."""
    from modicum.api.local.views.compiled_rules import kept

    rows: list[tuple[str, ...]] = []
    every = compiled.pruned, compiled.pruned_alone
    total = sum(kept(pruned.witness)[1] for pruned in every)
    for one, witness in islice(_redundant(compiled), fitting(total, shown)):
        by = "matches nothing" if one.matches_nothing else witness.id
        limit = "" if one.matches_nothing else _budget(witness)
        rule = one.rule
        rows.append((rule.id, _budget(rule), by, limit))
    if not total:
        print("no rule is redundant")
        return
    _print_table(("REDUNDANT RULE", "BUDGET", "WITNESS", "BUDGET"), rows)
    _print_left(total - len(rows))
    print(
        f"{total} redundant, {_rules(compiled) - total} binding. Redundant rules still"
        " appear in reports; whenever one\nwould deny, its witness denies."
    )


def print_redundant_document(compiled: CompiledPolicy) -> None:
    """Print the redundant rules as one JSON document."""
    from modicum.api.local.views.compiled_rules import counts_view

    listed = (_redundant_to_dict(one, witness) for one, witness in _redundant(compiled))
    _print_streamed(plain(counts_view(compiled)), "list", listed)


def _redundant_to_dict(one: CompiledRule, witness: Rule) -> dict[str, object]:
    rule = one.rule
    return {
        "rule": rule.id,
        "stage": rule.stage.value,
        "unit": rule.unit,
        "budget": _budget(rule),
        "witness": witness.id,
        "witness_unit": witness.unit,
        "witness_budget": _budget(witness),
        "matches_nothing": one.matches_nothing,
    }


def _redundant(compiled: CompiledPolicy) -> Iterator[tuple[CompiledRule, Rule]]:
    from modicum.api.local.views.compiled_rules import compiled_rules

    for one in compiled_rules(compiled):
        if one.witness >= 0:
            yield one, one.rules[one.witness]


def _rules(compiled: CompiledPolicy) -> int:
    return len(compiled.rules) + len(compiled.release_rules)


# --- how it is printed ---------------------------------------------------------


def _print_left(left: int) -> None:
    if left > 0:
        print(f"… {left} more (--all)")


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns. Plain lines: there may be hundreds of thousands."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _print_streamed(
    head: Mapping[str, object], key: str, listed: Iterable[object]
) -> None:
    """Print one JSON document whose last entry is a list, an item on each line."""
    print("{")
    for name, value in head.items():
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        print(f"  {json.dumps(name)}: {indent(text, '  ').lstrip()},")
    print(f"  {json.dumps(key)}: [", end="")
    separator = "\n"
    for item in listed:
        text = json.dumps(plain(item), ensure_ascii=False, allow_nan=False)
        sys.stdout.write(f"{separator}    {text}")
        separator = ",\n"
    print("]\n}" if separator == "\n" else "\n  ]\n}")


def register(app: typer.Typer) -> None:
    """Add the command to those about policies."""
    app.command("graph")(graph)


def graph(
    file: Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")],
    as_dot: Annotated[
        bool, typer.Option("--dot", help="Write DOT, for Graphviz.")
    ] = False,
    as_svg: Annotated[
        bool, typer.Option("--svg", help="Write SVG, the default.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The output file.", metavar="FILE"),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            help="Only rules up to two steps above or below: an id, or a scope for"
            " all its contexts.",
            metavar="RULE",
        ),
    ] = None,
    binding: Annotated[
        bool, typer.Option("--binding", help="Leave out redundant rules.")
    ] = False,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context", help="Only rules with this setting.", metavar="SETTING"
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="Only rules for this unit.", metavar="UNIT"),
    ] = None,
    per_release: Annotated[
        bool, typer.Option("--per-release", help="The rules of `per_release`.")
    ] = False,
) -> None:
    """Draw the implications between rules, as a Hasse diagram."""
    from modicum.ops.files.documents import load_policy
    from modicum.policy.hasse.node_selection import centers, chosen_rules
    from modicum.policy.rules import Stage

    if as_dot and as_svg:
        raise typer.BadParameter("give --dot or --svg, not both")
    with reporting(as_json=False):
        compiled = load_policy(file)
        stage = Stage.RELEASE if per_release else Stage.HISTORY
        centered: list[int] = []
        if rule is not None:
            stage, centered = centers(compiled, rule, context or ())
        numbers = chosen_rules(
            compiled,
            stage=stage,
            settings=context or (),
            unit=unit,
            binding=binding,
        )
        diagram = _diagram(compiled, stage, numbers, centered)
        _write(diagram, output, as_dot=as_dot)


def _diagram(
    compiled: CompiledPolicy, stage: Stage, numbers: list[int], centered: list[int]
) -> Hasse:
    from modicum.policy.hasse.diagram import hasse, neighborhood, refuse_crowded
    from modicum.policy.hasse.node_selection import related

    if centered:
        numbers = related(compiled, centered, numbers, stage=stage)
        diagram = neighborhood(hasse(compiled, numbers, stage=stage), centered)
    else:
        diagram = hasse(compiled, numbers, stage=stage)
    refuse_crowded(diagram)
    return diagram


def _write(diagram: Hasse, output: Path | None, *, as_dot: bool) -> None:
    from modicum.core.errors import Code, InputError, Problem
    from modicum.policy.hasse.diagram import summary
    from modicum.policy.hasse.export import to_dot
    from modicum.reports.charts.hasse import hasse_chart

    text = to_dot(diagram) if as_dot else f"{hasse_chart(diagram).svg}\n"
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "it cannot be written").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot write {output}: {reason}")
        raise InputError(problem) from error
    print(f"{printable(str(output))}: {summary(diagram)}")
