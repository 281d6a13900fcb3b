"""What the commands about the escrow print for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modicum.cli.output import print_table, seconds
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.escrow.approvals import SaidToContract, SaidToData
    from modicum.api.local.escrow.disclosure import LetGo
    from modicum.api.local.escrow.review import Looked
    from modicum.ledger.state.consent import Consent, Consents
    from modicum.ledger.state.datasets import DataSet
    from modicum.ledger.state.flow import Flow


def asked_lines(looked: Looked) -> Iterator[str]:
    """Yield what is said of a contract that is asked for just now.

    Args:
        looked: The contract.
    """
    flow = looked.flow
    yield f"{heading(flow)}, until {seconds(flow.contract.expires_at)}"
    yield from consent_lines(looked.consents)
    if looked.waits:
        yield f"next:  its owners look at it:  modicum escrow show {flow.contract.id}"


def heading(flow: Flow) -> str:
    """Return which contract it is, and who asks for it.

    Args:
        flow: The contract.
    """
    one = flow.contract
    for_whom = "" if one.analyst == flow.by else f" for {one.analyst}"
    return (
        f"contract `{one.id}` ({one.flow}) is asked for by {flow.by}{for_whom} since"
        f" {flow.at[:10]} (entry {flow.seq})"
    )


def consent_lines(consents: Consents) -> Iterator[str]:
    """Yield where the owners of each data set stand.

    Args:
        consents: Where they stand.
    """
    for one in consents.by_data:
        yield consent_line(one)
    if consents.people > 1:
        agreed_all = {who for one in consents.by_data for who in one.agreed}
        mark = "ok     " if len(agreed_all) >= consents.people else "MISSING"
        yield f"  {mark}  {consents.people} people in all"


def consent_line(one: Consent) -> str:
    """Return where the owners of one data set stand.

    Args:
        one: Where they stand.
    """
    mark = "MISSING" if one.missing or one.refused else "ok     "
    agreed = ", ".join(one.agreed) or "nobody yet"
    line = f"  {mark}  {one.quorum} of the owners of `{one.data}`: {agreed}"
    if one.refused:
        line += f"; refused by {', '.join(one.refused)}"
    elif one.missing:
        left = ", ".join(one.left) or "nobody who is left"
        line += f"; missing {one.missing} of {left}"
    return line


def said_to_data_lines(said: SaidToData) -> Iterator[str]:
    """Yield what an owner said just now to a version of their data.

    Args:
        said: What they said.
    """
    called = f"version {said.version.number} of `{said.version.id}`"
    yield _said(called, said)
    yield consent_line(said.consent)


def _said(called: str, said: SaidToContract | SaidToData) -> str:
    verb = "approved" if said.approves else "rejected"
    already = f" already (entry {said.seq})" if said.repeated else ""
    signed = f", signed with {said.key[:12]}" if said.key else ""
    return f"{called} {verb} by {said.by}{signed}{already}"


def said_lines(said: SaidToContract) -> Iterator[str]:
    """Yield what an owner said just now.

    Args:
        said: What they said.
    """
    one = said.flow.contract
    yield _said(f"contract `{one.id}`", said)
    yield from consent_lines(said.consents)
    if said.consents.given:
        verb = "run" if said.flow.computes else "receive"
        yield f"next:  modicum escrow {verb} {one.id}"


def print_contracts(found: tuple[Looked, ...]) -> None:
    """Print contracts as a table.

    Args:
        found: The contracts.
    """
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
    """Yield what is registered of a data set.

    Args:
        name: What it is called.
        one: The data set.
    """
    from modicum.ledger.log.contracts import Version

    owners = one.ownership.owners
    listed = ", ".join(f"{who} (signed)" if key else who for who, key in owners.items())
    yield (
        f"data set `{name}`: {one.ownership.quorum} of {listed} must agree; one person"
        f" may be told {one.bits_max} bits, and have {one.contracts_max} open contracts"
    )
    for number, version in one.versions.items():
        state = "" if version.agreed else ", waits for its owners"
        state = ", shredded" if version.shredded else state
        yield f"  version {number}: {version.media}, entry {version.seq}{state}"
        if not (version.agreed or version.shredded):
            content = version.content(Version(name, number))
            yield (
                f"    agree to exactly this:  modicum escrow approve {name}"
                f" --version {number} --content {content} --reason …"
            )


def print_let_go(found: LetGo) -> None:
    """Print what went out.

    Args:
        found: What went out.
    """
    for release, answers in (found.answers or {}).items():
        print(printable(f"{release}:"))
        _print_answers(answers)
    if found.answers is not None:
        return
    told = "there is no score" if found.score is None else f"score {found.score}"
    if found.bin is not None:
        told = f"score from {found.bin['low']} to {found.bin['high']}"
    private = "" if found.private else "  (NOT differentially private)"
    print(printable(f"{found.contract}: {told}{private}"))


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
