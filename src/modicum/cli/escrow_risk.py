"""`modicum escrow risk`: for which epsilon owners may agree to a query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.escrow_options import Vault, VaultKeys, open_escrow
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.cli.risk_given import epsilons_given
from modicum.cli.risk_options import Delta, Epsilons
from modicum.cli.risk_words import in_options
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.ops.escrow.epsilon_choice import QueryRisk
    from modicum.risk.choice import Choice
    from modicum.risk.measurement import Risk


def add_to(app: typer.Typer) -> None:
    """Add the command to those about the escrow."""
    app.command("risk")(risk)


def risk(
    tau: Annotated[
        str,
        typer.Option(
            "--tau",
            help="The least indicator is to be so large a part of the greatest.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(help="What the contract is called.", metavar="NAME"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help="A query file instead, over the newest data.",
            metavar="QUERY",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            help="Which of the contract's queries, by the id of its release.",
            metavar="RELEASE",
        ),
    ] = None,
    delta: Delta = None,
    epsilons: Epsilons = None,
    own_rows: Annotated[
        bool,
        typer.Option(
            "--own-rows",
            help="Look at the rows, too, as an owner of the data: for your eyes only.",
        ),
    ] = False,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Choose by risk the epsilon that you agree to for a query. Writes nothing.

    The choice follows from the contract alone: analysts may know it. What --own-rows
    adds is computed from rows without noise: never tell them.
    """
    with reporting(as_json=as_json), in_options():
        if (name is None) == (file is None):
            raise typer.BadParameter("name a contract, or a query file by --file")
        if file is not None and query is not None:
            raise typer.BadParameter("a query file has one query", param_hint="--query")
        workspace = open_escrow(ledger, actor, vault, vault_keys)
        facts: dict[str, Any] = {"delta": delta}
        if epsilons is not None:
            facts["epsilons"] = epsilons_given(epsilons)
        asked = _asked(workspace, name, file, query, facts)
        choice = asked.choose(tau)
        found = _own(workspace, asked) if own_rows else None
        if as_json:
            print_json(_to_dict(asked, choice, found, tau))
            return
        for line in _lines(asked, choice):
            print(printable(line))
        if found is not None:
            _print_own(found, tau)


def _asked(
    workspace: Workspace,
    name: str | None,
    file: Path | None,
    query: str | None,
    facts: dict[str, Any],
) -> QueryRisk:
    from modicum.ops.escrow.epsilon_choice import contract_risk, query_risk
    from modicum.ops.escrow.inputs import read_text

    if name is not None:
        return contract_risk(workspace, name, query=query, **facts)
    assert file is not None  # One of both is given.
    return query_risk(workspace, read_text(file), **facts)


def _own(workspace: Workspace, asked: QueryRisk) -> Risk:
    from modicum.ops.escrow.own_risk import own_risk

    return own_risk(workspace, asked)


def _to_dict(
    asked: QueryRisk, choice: Choice, found: Risk | None, tau: str
) -> dict[str, Any]:
    told = asked.to_dict(choice)
    if found is None:
        return told
    from modicum.ops.escrow.own_risk import OWNERS_ONLY
    from modicum.risk.measurement.documents import risk_to_dict

    advice = risk_to_dict(found, found.choose(tau, choice="as-published"))
    return {**told, "owners_only": {"warning": OWNERS_ONLY, **advice}}


def _lines(asked: QueryRisk, choice: Choice) -> Iterator[str]:
    from modicum.core.rationals import brief, number_spelled
    from modicum.ops.escrow.epsilon_choice import DISCRETE

    query, measure, unit = asked.asked.query, asked.asked.measure, asked.asked.unit.name
    of = f" of the contract `{asked.contract}`" if asked.contract else ""
    yield f"query `{query.heading.id}`{of}, on version {asked.data.number} of the data"
    yield f"asks for   {unit}: {{{measure}: {number_spelled(query.asked.loss)}}}"
    told = "none" if choice.epsilon is None else brief(choice.epsilon)
    yield f"epsilon    {told}"
    yield f"claim      {choice.claim.value}: no row was read; analysts may know it"
    yield f"  {choice.why}"
    for one in (*choice.caveats, DISCRETE):
        yield f"note: {one}"
    loss = asked.loss_at(choice)
    if loss is None:
        yield "no loss fits: reject it, or prefer less"
        return
    line = f"loss: {{{unit}: {{{measure}: {number_spelled(loss)}}}}}"
    if asked.fits(choice):
        yield f"it fits: what it asks for is no more than  {line}"
        return
    yield "it does not fit: reject it, and let it be asked again with"
    yield f"  {line}"


def _print_own(found: Risk, tau: str) -> None:
    from modicum.cli.risk_text import print_risk
    from modicum.ops.escrow.own_risk import OWNERS_ONLY

    print(f"\nFOR YOUR EYES ONLY. {OWNERS_ONLY}")
    print_risk(found, found.choose(tau, choice="as-published"))
