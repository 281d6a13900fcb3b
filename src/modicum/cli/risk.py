"""`modicum risk`: what an epsilon means for the people in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.exits import Exit
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import note, print_decision, print_json, reporting
from modicum.cli.risk_options import (
    Allowance,
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
    Unit,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from modicum.risk.choice import Choice as ChoiceFound
    from modicum.risk.given import Number
    from modicum.shell.risks import Risk

app = typer.Typer(
    help="See what an epsilon means for the people in a table, and choose one. For the"
    " controller of the data only: all but a `dp` choice is computed from rows without"
    " noise.",
    no_args_is_help=True,
)


@app.command()
def rdr(
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
    from modicum.cli.risk_text import print_risk, risk_to_dict
    from modicum.shell.risks.charging import uncharged

    with reporting(as_json=as_json):
        found = _risk(
            data, query, unit, mechanism, epsilons, delta, sensitivity, bounds,
            rows_max, dimensions, indicator, calibration, engine, groups,
            quiet=as_json,
        )  # fmt: skip
        chosen = None
        if tau is not None or max_variance is not None:
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
    choice: Choice = "data-independent",
    allowance: Allowance = None,
    eps_select: EpsSelect = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release", help="Private selection: charge it in the ledger as this."
        ),
    ] = None,
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
    from modicum.cli.risk_text import choice_to_dict, print_choice
    from modicum.shell.risks.charging import NoDraws

    with reporting(as_json=as_json):
        facts = (
            data, query, unit, mechanism, epsilons, delta, sensitivity, bounds,
            rows_max, dimensions, "published", calibration, engine,
        )  # fmt: skip
        wanted: Any = {
            "choice": choice,
            "allowance": allowance,
            "eps_select": eps_select,
        }
        # All that can be refused is refused before a row is read, or anything spent.
        found = _unseen(*facts).choose(tau, **wanted, draws=NoDraws())
        if found.charge is not None and found.charge.selection is not None:
            found = _charged(
                lambda: _risk(*facts, None, quiet=as_json).choose(tau, **wanted),
                found.charge.selection.eps,
                release, charge, unit, attributes, ledger, actor,
                as_json=as_json,
            )  # fmt: skip
        if as_json:
            print_json(choice_to_dict(found))
        else:
            print_choice(found)


@app.command("compare-groups")
def compare_groups(
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
    from modicum.cli.risk_text import groups_to_dict, print_groups

    with reporting(as_json=as_json):
        if len(set(groups)) < 2:
            raise typer.BadParameter("name two groups or more", param_hint="--groups")
        found = _risk(
            data, query, unit, mechanism, epsilons, delta, sensitivity, bounds,
            rows_max, dimensions, indicator, calibration, engine, groups,
            quiet=as_json,
        )  # fmt: skip
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
    groups: Sequence[str] | None,
    *,
    quiet: bool,
) -> Risk:
    from modicum.cli.progress import counted
    from modicum.shell.risks import rdr as measured

    known = _known(
        unit, mechanism, epsilons, delta, sensitivity, bounds, rows_max, dimensions,
        form, calibration, engine,
    )  # fmt: skip
    with counted("people", quiet=quiet) as progress:
        return measured(
            _tables(data),
            query,
            groups=tuple(groups or ()),
            progress=progress,
            **known,
        )


def _known(
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
    """Return what is said of a query, by the names of Python's arguments."""
    from modicum.shell.risks import PUBLISHED

    return {
        "unit": unit,
        "mechanism": _one_of(mechanism, ("laplace", "gaussian"), "--mechanism"),
        "epsilons": PUBLISHED if epsilons is None else _epsilons(epsilons),
        "delta": delta,
        "sensitivity": sensitivity,
        "bounds": _bounds(bounds or ()),
        "rows_max": rows_max,
        "dimensions": dimensions,
        "form": _one_of(form, ("published", "exact"), "--indicator"),
        "calibration": _one_of(calibration, ("exact", "published"), "--calibration"),
        "engine": engine,
    }


def _unseen(data: Sequence[str], query: str, *facts: Any) -> Risk:
    """Return the risk as if there were no rows."""
    from modicum.shell.risks import unseen_risk

    return unseen_risk(_tables(data), query, **_known(*facts))


def _charged(
    chosen: Callable[[], ChoiceFound],
    eps: Fraction,
    release: str | None,
    charge: str | None,
    unit: str | None,
    attributes: str | None,
    ledger: str,
    actor: str | None,
    *,
    as_json: bool,
) -> ChoiceFound:
    """Return what is chosen under a reservation; leave if that is denied."""
    from modicum.cli.opening import open_workspace
    from modicum.shell.risks.charging import (
        charged,
        must_be_of_persons,
        selection_release,
    )

    if release is None or charge is None or attributes is None:
        raise typer.BadParameter(
            "a private choice is charged: name the release that it is, and whom it is"
            " charged to: --release ID --charge UNIT --attributes NAME,NAME",
            param_hint="--choice",
        )
    workspace = open_workspace(ledger, actor=actor)
    must_be_of_persons(workspace.policy().policy.vocabulary, charge, unit)
    draft = selection_release(
        release, unit=charge, attributes=attributes.split(","), eps=eps
    )
    decision, found = charged(
        workspace,
        draft,
        chosen,
        begun=lambda: note(f"{release}: started; its loss is spent"),
    )
    if found is None:
        print_decision(decision, as_json=as_json)
        raise typer.Exit(Exit.DENIED)
    return found


def _tables(given: Sequence[str]) -> dict[str, object] | str:
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


def _epsilons(text: str) -> Sequence[Number]:
    from modicum.shell.risks import grid

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


def _bounds(
    given: Sequence[str],
) -> dict[str, tuple[Number, Number]] | tuple[Number, Number] | None:
    found: dict[str, tuple[Number, Number]] = {}
    for one in given:
        column, _, ends = one.rpartition("=")
        low, colon, high = ends.partition(":")
        if not (low and colon and high):
            raise typer.BadParameter(
                f"write LOW:HIGH or COLUMN=LOW:HIGH, not `{one}`",
                param_hint="--bounds",
            )
        found[column] = (low, high)
    return found or None


def _one_of(value: str, known: tuple[str, ...], option: str) -> Any:
    if value not in known:
        raise typer.BadParameter(
            f"it is {' or '.join(known)}, not `{value}`", param_hint=option
        )
    return value
