"""`modicum risk`: what an epsilon means for the people in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.given import not_beside
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.cli.risk_given import facts, one_of, refuse_unheard, tables
from modicum.cli.risk_options import (
    Allowance,
    AsRelease,
    Attributes,
    BoundsOption,
    Calibration,
    Charge,
    Choice,
    Data,
    Delta,
    Dimensions,
    Engine,
    Epsilons,
    EpsSelect,
    Form,
    Groups,
    MaxVariance,
    Mechanism,
    People,
    Query,
    Report,
    RowsMax,
    Sensitivity,
    Statistic,
    Tau,
    TellingChoice,
    Unit,
)
from modicum.cli.risk_split import split
from modicum.cli.risk_words import in_options

if TYPE_CHECKING:
    from modicum.risk.measurement import Risk

#: What may be told to others.
_TOLD = ("data-independent", "private-selection")
STATISTICS = ("max", "p99", "median")

app = typer.Typer(
    help="See what an epsilon means for the people in a table, and choose one. For the"
    " controller of the data only: all but a `dp` choice is computed from rows without"
    " noise.",
    no_args_is_help=True,
)
app.command()(split)


@app.command()
def rdr(
    context: typer.Context,
    data: Data,
    query: Query,
    unit: Unit = None,
    mechanism: Mechanism = "laplace",
    epsilons: Epsilons = None,
    delta: Delta = None,
    sensitivity: Sensitivity = None,
    bounds: BoundsOption = None,
    rows_max: RowsMax = None,
    dimensions: Dimensions = None,
    indicator: Form = "published",
    calibration: Calibration = "exact",
    engine: Engine = "duckdb",
    groups: Groups = None,
    tau: Tau = None,
    max_variance: MaxVariance = None,
    choice: Choice = "data-independent",
    statistic: Statistic = "p99",
    allowance: Allowance = None,
    people: People = None,
    eps_select: EpsSelect = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Show for each epsilon how exposed the people of a table are, and how accurate.

    With a preference (`--tau`, `--max-variance`), also the epsilon that meets it.
    """
    with reporting(as_json=as_json), in_options():
        from modicum.cli.risk_text import print_risk
        from modicum.risk.measurement.charge import uncharged
        from modicum.risk.measurement.choices import METHODS
        from modicum.risk.measurement.documents import risk_to_dict

        chooses = tau is not None or max_variance is not None
        refuse_unheard(context, mechanism, chooses=chooses)
        one_of(choice, METHODS, "--choice")
        one_of(statistic, STATISTICS, "--statistic")
        known = facts(
            unit, mechanism, epsilons, delta, sensitivity, bounds, rows_max,
            dimensions, indicator, calibration, engine,
        )  # fmt: skip
        found = _risk(data, query, known, groups, quiet=as_json)
        chosen = None
        if chooses:
            chosen = found.choose(
                tau,
                choice=choice,  # type: ignore[arg-type]
                max_variance=max_variance,
                between=tuple(groups or ()) if choice == "as-published" else (),
                statistic=statistic,  # type: ignore[arg-type]
                allowance=allowance,
                people=people,
                eps_select=eps_select,
            )
            chosen = uncharged(chosen)
        if report is not None:
            found.save(report, chosen, tau=tau)
        if as_json:
            print_json(risk_to_dict(found, chosen))
        else:
            print_risk(found, chosen)


@app.command()
def choose(
    context: typer.Context,
    data: Data,
    query: Query,
    tau: Annotated[
        str,
        typer.Option(
            "--tau",
            help="The least indicator is to be so large a part of the greatest.",
        ),
    ],
    unit: Unit = None,
    mechanism: Mechanism = "laplace",
    epsilons: Epsilons = None,
    delta: Delta = None,
    sensitivity: Sensitivity = None,
    bounds: BoundsOption = None,
    rows_max: RowsMax = None,
    dimensions: Dimensions = None,
    calibration: Calibration = "exact",
    engine: Engine = "duckdb",
    choice: TellingChoice = "data-independent",
    allowance: Allowance = None,
    eps_select: EpsSelect = None,
    release: AsRelease = None,
    charge: Charge = None,
    attributes: Attributes = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Choose an epsilon that may be told, and used for a release.

    A private selection reads rows: with `--release`, its loss is reserved before, and
    spent whatever it finds. Exits 0, or 3 if it is denied.
    """
    with reporting(as_json=as_json), in_options():
        from modicum.cli.risk_charging import Charging
        from modicum.cli.risk_release import Asked
        from modicum.cli.risk_text import print_choice
        from modicum.risk.measurement import unseen_risk
        from modicum.risk.measurement.charge import NoDraws
        from modicum.risk.measurement.documents import choice_to_dict

        refuse_unheard(context, mechanism)
        one_of(choice, _TOLD, "--choice")
        known = facts(
            unit, mechanism, epsilons, delta, sensitivity, bounds, rows_max,
            dimensions, "published", calibration, engine,
        )  # fmt: skip
        wanted: Any = {"choice": choice, "eps_select": eps_select}
        wanted["allowance"] = allowance
        # All that can be refused is refused before a row is read, or anything spent.
        unseen = unseen_risk(tables(data), query, **known)
        found = unseen.choose(tau, **wanted, draws=NoDraws())
        if found.charge is not None and found.charge.selection is not None:
            charging = Charging(release, charge, attributes, ledger, actor, as_json)
            found = charging.run(
                lambda: _risk(data, query, known, quiet=as_json).choose(tau, **wanted),
                unseen.question,
                found.charge.selection.eps,
            )
        elif release is not None and choice == "data-independent":
            raise not_beside("--release", "data-independent, which costs nothing")
        if as_json:
            print_json(choice_to_dict(found))
        else:
            print_choice(found, Asked(unseen.question, charge, attributes))


@app.command("compare-groups")
def compare_groups(
    context: typer.Context,
    data: Data,
    query: Query,
    groups: Annotated[
        list[str],
        typer.Option(
            "--groups",
            help="A group of people, as a condition on rows; two or more.",
            metavar="CONDITION",
        ),
    ],
    unit: Unit = None,
    mechanism: Mechanism = "laplace",
    epsilons: Epsilons = None,
    delta: Delta = None,
    sensitivity: Sensitivity = None,
    bounds: BoundsOption = None,
    rows_max: RowsMax = None,
    dimensions: Dimensions = None,
    indicator: Form = "published",
    calibration: Calibration = "exact",
    engine: Engine = "duckdb",
    statistic: Statistic = "p99",
    tau: Tau = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Compare how exposed groups of people are, for each epsilon."""
    with reporting(as_json=as_json), in_options():
        from modicum.cli.risk_text import print_groups
        from modicum.risk.measurement.documents import groups_to_dict

        if len(set(groups)) < 2:
            raise typer.BadParameter("name two groups or more", param_hint="--groups")
        refuse_unheard(context, mechanism)
        one_of(statistic, STATISTICS, "--statistic")
        known = facts(
            unit, mechanism, epsilons, delta, sensitivity, bounds, rows_max,
            dimensions, indicator, calibration, engine,
        )  # fmt: skip
        found = _risk(data, query, known, groups, quiet=as_json)
        chosen = None
        if tau is not None:
            chosen = found.choose(
                tau,
                choice="as-published",
                between=tuple(groups),
                statistic=statistic,  # type: ignore[arg-type]
            )
        if report is not None:
            found.save(report, chosen, tau=tau, statistic=statistic)  # type: ignore[arg-type]
        if as_json:
            print_json(groups_to_dict(found, statistic, chosen))
        else:
            print_groups(found, statistic, chosen)


# --- inside ---------------------------------------------------------------------------


def _risk(
    data: Sequence[str],
    query: str,
    known: Mapping[str, Any],
    groups: Sequence[str] | None = None,
    *,
    quiet: bool,
) -> Risk:
    from modicum.cli.progress import counted
    from modicum.risk.measurement import rdr as measured

    with counted("people", quiet=quiet) as progress:
        return measured(
            tables(data),
            query,
            groups=tuple(groups or ()),
            progress=progress,
            **known,
        )
