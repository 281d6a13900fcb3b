"""Options of `modicum risk`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import replace

from modicum.cli.options import exclusive_option, was_given
from modicum.core.diagnostics import nearest
from modicum.core.errors import ModicumError, Problem, UsageError
from modicum.engines.factory import ENGINE_NAMES, ENGINES

if TYPE_CHECKING:
    from modicum.risk.arguments import Number

Data = Annotated[
    list[str],
    typer.Argument(
        help="The data of the query's table: Parquet, .csv, or FILE.duckdb::TABLE. Of"
        " several tables, TABLE=PLACE each.",
        metavar="DATA...",
        show_default=False,
    ),
]
Query = Annotated[
    str,
    typer.Option("--query", "-q", help="One SELECT with aggregates.", metavar="SQL"),
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="The column that identifies a person; by default, each row is a person.",
        metavar="COLUMN",
    ),
]
Mechanism = Annotated[
    str, typer.Option("--mechanism", help="The noise: laplace or gaussian.")
]
Epsilons = Annotated[
    str | None,
    typer.Option(
        "--epsilons",
        help="Candidates: 0.1,0.5,1 or LOW:HIGH:N; by default the 37 values of the"
        " papers.",
    ),
]
Delta = Annotated[
    str | None, typer.Option("--delta", help="For Gaussian noise, such as 1e-6.")
]
Sensitivity = Annotated[
    str | None,
    typer.Option(
        "--sensitivity",
        help="How far one person can move the answer in any table, in the norm of the"
        " noise.",
    ),
]
BoundsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        help="The smallest and the largest aggregated value, from public"
        " knowledge; values outside are clamped. Repeatable by column.",
        metavar="[COLUMN=]LOW:HIGH",
    ),
]
RowsMax = Annotated[
    int | None,
    typer.Option("--rows-max", help="The maximum number of rows per person.", min=1),
]
Dimensions = Annotated[
    int | None,
    typer.Option(
        "--dimensions", help="The number of values in the answer, if public.", min=1
    ),
]
Form = Annotated[
    str,
    typer.Option("--indicator", help="published (the papers' bound) or exact."),
]
Calibration = Annotated[
    str,
    typer.Option("--calibration", help="Of Gaussian noise: exact or published."),
]
Engine = Annotated[str, typer.Option("--engine", help=f"{ENGINE_NAMES}.")]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--groups",
        help="A group of people to compare, as a condition on rows; repeatable.",
        metavar="CONDITION",
    ),
]
Choice = Annotated[
    str,
    typer.Option(
        "--choice",
        help="data-independent (may be released), as-published (for the data"
        " controller only), private-selection, find-and-release, or"
        " find-and-release-as-published (for study).",
    ),
]
TellingChoice = Annotated[
    str,
    typer.Option(
        "--choice",
        help="data-independent, or private-selection, which spends budget itself. For"
        " the data controller only: `modicum risk rdr`.",
    ),
]
Tau = Annotated[
    str | None,
    typer.Option(
        "--tau", help="The required ratio of the smallest indicator to the largest."
    ),
]
MaxVariance = Annotated[
    str | None,
    typer.Option(
        "--max-variance",
        help="For as-published and find-and-release: the largest variance of the"
        " indicators.",
    ),
]
Statistic = Annotated[
    str,
    typer.Option(
        "--statistic",
        help="The statistic that is compared between groups: max, p99 or median.",
    ),
]
Allowance = Annotated[
    int | None,
    typer.Option(
        "--allowance",
        help="Private selection: how many people may exceed the threshold.",
        min=0,
    ),
]
People = Annotated[
    int | None,
    typer.Option(
        "--people", help="Find-and-release: the public number of people.", min=1
    ),
]
EpsSelect = Annotated[
    str | None,
    typer.Option("--eps-select", help="The loss of a private choice itself."),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", help="Write an HTML report to this file."),
]
AsRelease = Annotated[
    str | None,
    typer.Option(
        "--release", help="Private selection: the release id under which it is charged."
    ),
]
Charge = Annotated[
    list[str] | None,
    typer.Option(
        "--charge",
        help="The unit of a person; other units with a loss that you have proven, as"
        " UNIT=EPS. Repeatable.",
        metavar="UNIT[=EPS]",
    ),
]
Attributes = Annotated[
    str | None,
    typer.Option(
        "--attributes",
        help="The attributes that the query reads, by their names in the policy; by"
        " default its columns.",
        metavar="NAME[=COLUMN],…",
    ),
]


#: The argument names of options that only a choice uses.
_OF_A_CHOICE = {
    "choice": "--choice",
    "allowance": "--allowance",
    "people": "--people",
    "eps_select": "--eps-select",
}
_OF_GAUSSIAN = {"delta": "--delta", "calibration": "--calibration"}


def facts(
    unit: str | None,
    mechanism: str,
    epsilons: str | None,
    delta: str | None,
    sensitivity: str | None,
    bounds: Sequence[str] | None,
    rows_max: int | None,
    dimensions: int | None,
    form: str,
    calibration: str,
    engine: str,
) -> dict[str, Any]:
    """Return the facts about a query, by argument name."""
    from modicum.risk.candidates import PUBLISHED

    return {
        "unit": unit,
        "mechanism": one_of(mechanism, ("laplace", "gaussian"), "--mechanism"),
        "epsilons": PUBLISHED if epsilons is None else epsilons_given(epsilons),
        "delta": delta,
        "sensitivity": sensitivity,
        "bounds": _bounds(bounds or ()),
        "rows_max": rows_max,
        "dimensions": dimensions,
        "form": one_of(form, ("published", "exact"), "--indicator"),
        "calibration": one_of(calibration, ("exact", "published"), "--calibration"),
        "engine": one_of(engine, tuple(ENGINES), "--engine"),
    }


def tables(given: Sequence[str]) -> dict[str, object] | str:
    """Return where the tables are: one without a name, or each by its name."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    found: dict[str, object] = {}
    for one in given:
        table, equals, place = one.partition("=")
        if not (table and equals and place):
            raise typer.BadParameter(
                f"of several tables, write TABLE=PLACE each, not `{one}`",
                param_hint="DATA",
            )
        if table in found:
            raise typer.BadParameter(f"`{table}` is given twice", param_hint="DATA")
        found[table] = place
    return found


def refuse_unused(
    context: typer.Context, mechanism: str, *, chooses: bool = True
) -> None:
    """Refuse options that nothing would hear."""
    for name, option in _OF_GAUSSIAN.items():
        if mechanism == "laplace" and was_given(context, name):
            raise exclusive_option(option, "Laplace noise (--mechanism laplace)")
    for name, option in _OF_A_CHOICE.items():
        if not chooses and was_given(context, name):
            raise typer.BadParameter(
                "--tau or --max-variance is required; give one of them, or leave"
                f" {option} out",
                param_hint=option,
            )


def one_of(value: str, known: Sequence[str], option: str) -> Any:
    """Return a word of a closed list."""
    if value in known:
        return value
    near = nearest(value, known)
    raise typer.BadParameter(
        f"it is {' or '.join(known)}, not `{value}`" + (f"; {near}" if near else ""),
        param_hint=option,
    )


def epsilons_given(text: str) -> Sequence[Number]:
    """Return candidates as they were typed: a list, or LOW:HIGH:N."""
    from modicum.risk.candidates import grid

    if ":" not in text:
        return text.split(",")
    low, _, rest = text.partition(":")
    high, _, n = rest.partition(":")
    if not n.isdecimal():
        raise typer.BadParameter(
            f"write LOW:HIGH:N, such as 0.01:10:20, not `{text}`",
            param_hint="--epsilons",
        )
    return grid(low, high, int(n))


def _bounds(given: Sequence[str]) -> dict[str, tuple[Number, Number]] | None:
    found: dict[str, tuple[Number, Number]] = {}
    for one in given:
        value, _, ends = one.rpartition("=")
        low, colon, high = ends.partition(":")
        if not (low and colon and high):
            raise typer.BadParameter(
                f"write LOW:HIGH or COLUMN=LOW:HIGH, not `{one}`",
                param_hint="--bounds",
            )
        if value in found:
            raise typer.BadParameter(
                f"`{value}` has bounds twice" if value else "there are two for all",
                param_hint="--bounds",
            )
        found[value] = (low, high)
    return found or None


#: Arguments whose options are called otherwise.
_OTHERWISE: Final = {"form": "--indicator", "between": "--groups"}
_ARGUMENT: Final = re.compile(r"`([a-z_]+)=`")


@contextmanager
def in_options() -> Iterator[None]:
    """Refer to options in inner errors; an invalid option value is a usage error."""
    from modicum.risk.arguments import ArgumentError

    try:
        yield
    except ModicumError as error:
        kind = UsageError if isinstance(error, ArgumentError) else type(error)
        raise kind(*map(_problem_with_options, error.problems)) from error


def _problem_with_options(problem: Problem) -> Problem:
    return replace(
        problem,
        message=_with_options(problem.message),
        notes=tuple(map(_with_options, problem.notes)),
        help=_with_options(problem.help),
    )


def _with_options(text: str) -> str:
    return _ARGUMENT.sub(lambda found: f"`{_option(found[1])}`", text)


def _option(argument: str) -> str:
    return _OTHERWISE.get(argument) or f"--{argument.replace('_', '-')}"
