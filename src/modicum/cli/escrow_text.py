"""Printed output of escrow commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.escrow_options import Contract, Vault, VaultKeys, open_escrow
from modicum.cli.options import DEFAULT_LEDGER, Json, Ledger
from modicum.cli.output import print_json, print_table, reporting, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.escrow.approvals import (
        RecordedContractVote,
        RecordedVersionVote,
    )
    from modicum.api.local.escrow.disclosure import DisclosedResult
    from modicum.api.local.escrow.review import (
        ContractRecord,
        ContractReview,
        QueryPrice,
    )
    from modicum.escrow.inspection import Inspection
    from modicum.escrow.programs import Program
    from modicum.ledger.log.contracts import TaskTerms
    from modicum.ledger.state.consent import Consent, Consents
    from modicum.ledger.state.datasets import DataSet
    from modicum.ledger.state.flow import Flow


def terms_lines(review: ContractReview) -> Iterator[str]:
    """Yield the description of a new contract."""
    flow = review.flow
    yield f"{heading(flow)}, until {seconds(flow.contract.expires_at)}"
    yield from consent_lines(review.consents)
    if review.waits:
        yield f"next: its owners review it:  modicum escrow show {flow.contract.id}"


def heading(flow: Flow) -> str:
    """Return the contract and its requester."""
    one = flow.contract
    for_whom = "" if one.analyst == flow.by else f" for {one.analyst}"
    return (
        f"contract `{one.id}` ({one.flow}) is requested by {flow.by}{for_whom} since"
        f" {flow.at[:10]} (entry {flow.seq})"
    )


def consent_lines(consents: Consents) -> Iterator[str]:
    """Yield the consents of the owners of each data set."""
    for one in consents.by_data:
        yield consent_line(one)
    if consents.people > 1:
        agreed_all = {who for one in consents.by_data for who in one.agreed}
        mark = "ok     " if len(agreed_all) >= consents.people else "MISSING"
        yield f"  {mark}  {consents.people} people in total"


def consent_line(one: Consent) -> str:
    """Return the consent of the owners of one data set."""
    mark = "MISSING" if one.missing or one.refused else "ok     "
    agreed = ", ".join(one.agreed) or "nobody yet"
    line = f"  {mark}  {one.quorum} of the owners of `{one.data}`: {agreed}"
    if one.refused:
        line += f"; rejected by {', '.join(one.refused)}"
    elif one.missing:
        left = ", ".join(one.left) or "no owner left"
        line += f"; missing {one.missing} of {left}"
    return line


def version_vote_lines(vote: RecordedVersionVote) -> Iterator[str]:
    """Yield the new vote of an owner on a version."""
    called = f"version {vote.version.number} of `{vote.version.id}`"
    yield _vote_text(called, vote)
    yield consent_line(vote.consent)


def _vote_text(called: str, vote: RecordedContractVote | RecordedVersionVote) -> str:
    verb = "approved" if vote.approves else "rejected"
    already = f" already (entry {vote.seq})" if vote.repeated else ""
    signed = f", signed with {vote.key[:12]}" if vote.key else ""
    return f"{called} {verb} by {vote.by}{signed}{already}"


def vote_lines(vote: RecordedContractVote) -> Iterator[str]:
    """Yield the new vote of an owner."""
    one = vote.flow.contract
    yield _vote_text(f"contract `{one.id}`", vote)
    yield from consent_lines(vote.consents)
    if vote.consents.given:
        verb = "run" if vote.flow.computes else "receive"
        yield f"next:  modicum escrow {verb} {one.id}"


def print_contracts(found: tuple[ContractReview, ...]) -> None:
    """Print contracts as a table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for header in ("CONTRACT", "FLOW", "ANALYST", "DATA", "ENDS"):
        table.add_column(header, no_wrap=True)
    table.add_column("STANDS")
    for one in found:
        contract = one.flow.contract
        table.add_row(
            printable(contract.id),
            contract.flow,
            printable(contract.analyst),
            printable(", ".join(contract.data_sets)),
            contract.expires_at[:10],
            printable(one.stage),
        )
    print_table(table, spare=("ENDS", "DATA"))


def data_lines(name: str, one: DataSet) -> Iterator[str]:
    """Yield the registered properties of a data set."""
    from modicum.ledger.log.contracts import Version

    owners = one.ownership.owners
    listed = ", ".join(f"{who} (signed)" if key else who for who, key in owners.items())
    yield (
        f"data set `{name}`: {one.ownership.quorum} of {listed} must approve; one"
        f" person may receive {one.bits_max} bits, and have {one.contracts_max} open"
        " contracts"
    )
    for number, version in one.versions.items():
        state = "" if version.agreed else ", waiting for its owners"
        state = ", shredded" if version.shredded else state
        yield f"  version {number}: {version.media}, entry {version.seq}{state}"
        if not (version.agreed or version.shredded):
            content = version.content(Version(name, number))
            yield (
                f"    approve exactly this:  modicum escrow approve {name}"
                f" --version {number} --content {content} --reason …"
            )


def print_disclosed(found: DisclosedResult) -> None:
    """Print a disclosure."""
    for release, answers in (found.answers or {}).items():
        print(printable(f"{release}:"))
        _print_answers(answers)
    if found.answers is not None:
        return
    text = "there is no score" if found.score is None else f"score {found.score}"
    if found.bin is not None:
        text = f"score from {found.bin['low']} to {found.bin['high']}"
    private = "" if found.private else "  (NOT differentially private)"
    print(printable(f"{found.contract}: {text}{private}"))


def _print_answers(answers: Mapping[str, Any]) -> None:
    from fractions import Fraction

    from rich.table import Table

    from modicum.query.results import interval_of

    table = Table(box=None, pad_edge=False)
    interval = interval_of(Fraction(answers["confidence"]))
    for key in answers["keys"]:
        table.add_column(printable(key.upper()), no_wrap=True)
    for name in answers["aggregates"]:
        table.add_column(printable(name.upper()), no_wrap=True, justify="right")
        table.add_column(interval, no_wrap=True)
    for row in answers["rows"]:
        cells = [printable(str(key)) for key in row["keys"]]
        for one in row["answers"]:
            value, low, high = (_short(one[end]) for end in ("value", "low", "high"))
            cells += [value, f"{low} … {high}"]
        table.add_row(*cells)
    print_table(table)
    for words in answers["notes"]:
        print(printable(f"note: {words}"))


def _short(number: str | None) -> str:
    from fractions import Fraction

    from modicum.core.rationals import brief

    return "-" if number is None else brief(Fraction(number))


def program_lines(
    terms: TaskTerms,
    program: Program | None,
    inspection: Inspection | None,
    *,
    code: bool,
) -> Iterator[str]:
    """Yield the terms of a program, and the remarks on it.

    Args:
        terms: The terms of the contract.
        program: The program; None without a vault.
        inspection: The remarks on it; None without a vault.
        code: Whether a text of the catalogue is shown, too.
    """
    runs_on = f"{' and '.join(terms.results)} answers"
    limits = f"{terms.seconds} s, {terms.memory_mib} MiB"
    if terms.blocks:
        runs_on = f"exact answers about each of {terms.blocks} blocks"
        limits = f"{terms.blocks} runs of {limits}"
    yield f"program, on {runs_on}, in {terms.tier} ({limits}):"
    yield from _agreed_lines(json.loads(terms.program))
    if program is None or inspection is None:
        yield "its code is in the vault: read it with  --vault DIR --vault-keys FILE"
        return
    yield from str(inspection).splitlines()
    if inspection.vetted and not code:
        yield "  its text is the same for all such tasks: read it with  --code"
    elif program.language == "python":
        text = program.code.decode("utf-8", "replace")
        # Other ends of lines than this one stay in the line, where they are escaped.
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            yield f"{number:5} | {line}"


def _agreed_lines(plain: dict[str, Any]) -> Iterator[str]:
    low, high = plain["range"]
    yield f"  code        {plain['code']} ({plain['language']})"
    yield f"  scores      from {low} to {high}"
    if plain["compares"]:
        yield "  compares    exact answers with private ones: it has no private score"
    for place, (name, value) in enumerate(sorted(plain["arguments"].items())):
        label = "arguments" if place == 0 else ""
        yield f"  {label:<12}{name}: {json.dumps(value, ensure_ascii=False)}"


def add_to(app: typer.Typer) -> None:
    """Add the command to those about the escrow."""
    app.command("show")(show)


def show(
    name: Contract,
    vault: Vault = None,
    vault_keys: VaultKeys = None,
    code: Annotated[
        bool,
        typer.Option(
            "--code",
            help="Also print the text of a catalogue program. Custom code is always"
            " printed.",
        ),
    ] = False,
    ledger: Ledger = DEFAULT_LEDGER,
    as_json: Json = False,
) -> None:
    """Show everything that an owner should review before approving a contract.

    Its queries with their losses; its program, from the vault, with remarks; the votes;
    and the command to approve exactly this. Writes nothing.
    """
    from modicum.api.local.escrow.review import examined
    from modicum.api.local.views.contracts import details_view
    from modicum.escrow.inspection import inspected

    with reporting(as_json=as_json):
        workspace = open_escrow(ledger, None, vault, vault_keys)
        # Read first, so that its head never hides later entries.
        found = examined(workspace, name)
        shown = workspace.escrow.show(name)
        inspection = None if shown.program is None else inspected(shown.program)
        if as_json:
            print_json(details_view(found, shown.program, inspection))
        else:
            _print(found, shown.program, inspection, code=code)


def _print(
    found: ContractRecord,
    program: Program | None,
    inspection: Inspection | None,
    *,
    code: bool,
) -> None:
    from modicum.ledger.log.contracts import TaskTerms

    for line in _head_lines(found):
        print(printable(line))
    terms = found.review.flow.contract.terms
    for one in found.queries:
        _print_charge("score" if isinstance(terms, TaskTerms) else "query", one)
    if isinstance(terms, TaskTerms):
        print()
        for line in program_lines(terms, program, inspection, code=code):
            print(printable(line))
    print("\nowners:")
    for line in consent_lines(found.review.consents):
        print(printable(line))
    for vote in found.votes:
        verb = "approved" if vote.approves else "rejected"
        print(printable(f"  {vote.by} {verb} on {vote.at[:10]}: {vote.reason}"))
    if not found.review.waits:
        return
    contract = found.review.flow.contract
    print(
        printable(
            f"approve exactly this:  modicum escrow approve {contract.id}"
            f" --content {contract.digest} --head {found.head} --reason …"
        )
    )


def _head_lines(found: ContractRecord) -> Iterator[str]:
    from modicum.ledger.log.contracts import QueryTerms, RawSignalTerms

    flow = found.review.flow
    one, terms = flow.contract, flow.contract.terms
    yield f"{heading(flow)}: {found.reason}"
    yield f"  digest      {one.digest}"
    yield f"  analyst     {one.analyst}"
    if not flow.computes:
        yield f"  recipients  {', '.join(one.recipients)}"
    for table, version in one.data.items():
        gone = ", which was shredded" if table in found.shredded else ""
        yield f"  data        {table}: version {version.number}{gone}"
    for above in found.above:
        other = above.flow.contract
        yield f"  follows     {other.id} ({other.flow}, {other.digest[:12]})"
    yield f"  ends        {seconds(one.expires_at)}"
    yield f"  uses        {one.uses}, {flow.uses_left} left"
    yield f"  status      {found.review.stage}"
    if isinstance(terms, QueryTerms) and "exact" in terms.results:
        yield "  computes    also exact answers, for scores; they are never disclosed"
    if isinstance(terms, RawSignalTerms):
        form = f"one of {terms.bins} bins" if terms.bins else "the score itself"
        yield f"  discloses   {form}, of EXACT answers: at most {terms.bits} bits"
        yield "  WARNING     this is NOT differentially private"


def _print_charge(what: str, one: QueryPrice) -> None:
    print()
    print(printable(f"{what} {one.charge.release}:"))
    for line in one.charge.text.rstrip("\n").split("\n"):  # And at nothing else.
        print(printable(f"  | {line}"))
    if one.score is not None and one.decision is not None:
        for line in (*one.decision.explain().split("\n"), "", *one.score.explain()):
            print(printable(line))
        return
    if one.query is None or one.decision is None:
        print(printable(f"its loss is unknown: {one.problem}"))
        return
    from modicum.cli.query_text import print_plan

    print_plan(one.query, one.decision, whole=True)
