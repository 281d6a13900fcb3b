"""`modicum risk`: the meaning of an epsilon for the people in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from modicum.cli.exit_codes import Exit
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, exclusive_option
from modicum.cli.output import note, print_decision, print_json, reporting
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
    facts,
    in_options,
    one_of,
    refuse_unused,
    tables,
)
from modicum.cli.risk_split import split
from modicum.core.errors import Code, InputError

if TYPE_CHECKING:
    from modicum.risk.choice import Choice as RiskChoice
    from modicum.risk.measurement import Risk
    from modicum.risk.question import Question

#: What may be shown to others.
_TOLD = ("data-independent", "private-selection")
STATISTICS = ("max", "p99", "median")

app = typer.Typer(
    help="Assess the disclosure risk of an epsilon for the people in a table, and"
    " choose one. For the"
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
    """Show for each epsilon the exposure of people in a table, and the accuracy.

    With a target (`--tau`, `--max-variance`), also show the epsilon that meets it.
    """
    with reporting(as_json=as_json), in_options():
        from modicum.cli.risk_text import print_risk
        from modicum.risk.measurement.charge import uncharged
        from modicum.risk.measurement.choices import METHODS
        from modicum.risk.measurement.documents import risk_to_dict

        chooses = tau is not None or max_variance is not None
        refuse_unused(context, mechanism, chooses=chooses)
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
            help="The required ratio of the smallest indicator to the largest.",
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
    """Choose an epsilon that may be disclosed, and used for a release.

    A private selection reads rows: with `--release`, its loss is reserved first, and
    spent whatever its result. Exits 0, or 3 if it is denied.
    """
    with reporting(as_json=as_json), in_options():
        from modicum.cli.risk_release import RiskQuery
        from modicum.cli.risk_text import print_choice
        from modicum.risk.measurement import unseen_risk
        from modicum.risk.measurement.charge import NoDraws
        from modicum.risk.measurement.documents import choice_to_dict

        refuse_unused(context, mechanism)
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
            raise exclusive_option("--release", "data-independent, which costs nothing")
        if as_json:
            print_json(choice_to_dict(found))
        else:
            print_choice(found, RiskQuery(unseen.question, charge, attributes))


@app.command("compare-groups")
def compare_groups(
    context: typer.Context,
    data: Data,
    query: Query,
    groups: Annotated[
        list[str],
        typer.Option(
            "--groups",
            help="A group of people, as a condition on rows; at least two.",
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
    """Compare the exposure of groups of people, for each epsilon."""
    with reporting(as_json=as_json), in_options():
        from modicum.cli.risk_text import print_groups
        from modicum.risk.measurement.documents import groups_to_dict

        if len(set(groups)) < 2:
            raise typer.BadParameter("give at least two groups", param_hint="--groups")
        refuse_unused(context, mechanism)
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


#: The mistake of a release without a loss for some unit.
_OF_UNITS = frozenset({Code.COST_MISSING, Code.COST_NOT_DERIVABLE})


@dataclass(frozen=True, slots=True)
class Charging:
    """The terms of a private choice's release.

    Attributes:
        release: Its id.
        charge: The unit that a person is, and the losses of other units.
        attributes: The attributes that the query reads.
        ledger: The ledger that is charged.
        actor: The actor.
        as_json: Whether JSON is printed.
    """

    release: str | None
    charge: Sequence[str] | None
    attributes: str | None
    ledger: str
    actor: str | None
    as_json: bool

    def run(
        self, choose: Callable[[], RiskChoice], question: Question, eps: Fraction
    ) -> RiskChoice:
        """Return the choice made under a reservation; exit if that is denied."""
        from modicum.cli.ledger_access import open_workspace
        from modicum.risk.measurement.charge import (
            charged,
            must_be_of_persons,
            selection_release,
        )
        from modicum.risk.measurement.facts import attributes_read

        if self.release is None or self.charge is None:
            raise typer.BadParameter(
                "a private choice is charged: give its release id, and the unit to"
                " charge: --release ID --charge UNIT",
                param_hint="--choice",
            )
        release = self.release
        unit, others = _units(self.charge)
        named = None if self.attributes is None else self.attributes.split(",")
        attributes = attributes_read(question, named)
        workspace = open_workspace(self.ledger, actor=self.actor)
        must_be_of_persons(workspace.policy().policy.vocabulary, unit, question.unit)
        draft = selection_release(
            release, unit=unit, attributes=attributes, eps=eps, others=others
        )
        with _naming_units():
            decision, found = charged(
                workspace,
                draft,
                choose,
                on_start=lambda: note(f"{release}: started; its loss is spent"),
            )
        if found is None:
            print_decision(decision, as_json=self.as_json)
            raise typer.Exit(Exit.DENIED)
        return found


def _units(given: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the unit that a person is, and the losses of others."""
    persons = [one for one in given if "=" not in one]
    if len(persons) != 1:
        raise typer.BadParameter(
            "give the unit of a person, and other units with a loss that you have"
            " proven: --charge patient --charge doctor=2",
            param_hint="--charge",
        )
    others: dict[str, str] = {}
    for one in given:
        unit, equals, eps = one.partition("=")
        if equals and (unit in others or unit == persons[0] or not (unit and eps)):
            raise typer.BadParameter(
                f"write UNIT=EPS once for each other unit, not `{one}`",
                param_hint="--charge",
            )
        if equals:
            others[unit] = eps
    return persons[0], others


@contextmanager
def _naming_units() -> Iterator[None]:
    """Add how other units are charged, where one has no loss."""
    try:
        yield
    except InputError as error:
        if error.code not in _OF_UNITS:
            raise
        why = "the loss of a choice is proven for persons only"
        remedy = (
            "give a loss that you have proven for all rows of one instance: `--charge"
            " UNIT=EPS`; or use data-independent, which costs nothing"
        )
        raise InputError(
            *(
                replace(one, notes=(*one.notes, why), help=remedy)
                for one in error.problems
            )
        ) from error
