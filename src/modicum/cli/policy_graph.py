"""`modicum policy graph`: the order of the rules, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.output import reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.policy import CompiledPolicy
    from modicum.policy.hasse.diagram import Hasse
    from modicum.policy.rules import Stage


def register(app: typer.Typer) -> None:
    """Add the command to those about policies."""
    app.command("graph")(graph)


def graph(
    file: Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")],
    as_dot: Annotated[
        bool, typer.Option("--dot", help="Write DOT, for Graphviz.")
    ] = False,
    as_svg: Annotated[
        bool, typer.Option("--svg", help="Write SVG; so it is without --dot.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write it.", metavar="FILE"),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            help="Only what is two steps above or below it: an id, or a scope, which"
            " means all its contexts.",
            metavar="RULE",
        ),
    ] = None,
    constraining: Annotated[
        bool, typer.Option("--constraining", help="Leave out implied rules.")
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
        bool, typer.Option("--per-release", help="The rules about each release alone.")
    ] = False,
) -> None:
    """Draw which rules count all that others count, as a Hasse diagram."""
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
            constraining=constraining,
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
    from modicum.policy.hasse.export import to_dot, to_svg

    text = to_dot(diagram) if as_dot else to_svg(diagram)
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
