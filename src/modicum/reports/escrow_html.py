"""The escrow in a statement, as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.reports import limitations
from modicum.reports.approval_cases import CaseVote
from modicum.reports.escrow_timeline import (
    ContractRecord,
    DatasetRecord,
    DisclosureRecord,
    EscrowTimeline,
    RunRecord,
)
from modicum.reports.markup import Child, Markup, element, table
from modicum.reports.text import NOTHING, SHOWN, few, left_out, minute, newest, when


def not_private(escrow: EscrowTimeline) -> Iterator[Markup]:
    """Yield a warning for the top of a page, if there was an uncharged disclosure.

    Args:
        escrow: The escrow.
    """
    out = [one for one in escrow.raw if one.disclosures]
    if not out:
        return
    what = "1 contract" if len(out) == 1 else f"{len(out)} contracts"
    yield element(
        "div",
        element(
            "p", f"Scores on exact answers were disclosed under {what}.", class_="over"
        ),
        element("p", limitations.NOT_PRIVATE),
        element("p", element("a", "Bits by person", href="#bits")),
        class_="box",
        role="note",
    )


def in_bits(escrow: EscrowTimeline) -> Iterator[Markup]:
    """Yield the bits disclosed to each person, by data set and contract."""
    yield element("h3", "Outside differential privacy, in bits", id="bits")
    if not escrow.raw and not escrow.bits:
        yield element("p", "No score on exact answers was disclosed, and none may be.")
        return
    yield element("p", limitations.NOT_PRIVATE)
    yield table(
        "Bits that each person received about each data set, by scores on exact"
        " answers",
        ("Person", "Data set", "Bits received", "Pending", "Allowed", "By contracts"),
        [
            (
                one.person,
                one.data,
                element("span", f"{one.disclosed} bits", class_="over"),
                f"{one.may_follow} bits",
                f"{one.allowed} bits",
                few(one.contracts),
            )
            for one in escrow.bits[:SHOWN]
        ],
    )
    yield from left_out(len(escrow.bits))
    yield table(
        "Every disclosed score on exact answers, newest first",
        ("Contract", "Analyst", "Data sets", "At most", "Disclosed", "Let go"),
        [
            (
                one.contract.id,
                one.contract.analyst,
                ", ".join(one.contract.data_sets),
                element("span", f"{one.bits} bits", class_="over"),
                when(one.disclosed) if one.disclosed else NOTHING,
                few([_out(out) for out in one.disclosures]),
            )
            for one in newest(escrow.raw)
        ],
    )
    yield from left_out(len(escrow.raw))


def _out(out: DisclosureRecord) -> str:
    return f"to {out.to}, {when(out.entry)}"


#: So much of a digest is shown; the JSON form has all of it.
_DIGEST_SHOWN = 12


def escrowed(escrow: EscrowTimeline) -> Iterator[Markup]:
    """Yield the data sets of an escrow, their owners, and their flows."""
    if not escrow.data:
        yield element("p", "This ledger has no data in escrow.")
        return
    flows = list(escrow.flows.values())
    yield element("p", limitations.CONTRACTS)
    yield from in_bits(escrow)
    yield from _runs_without_end(escrow)
    yield from _data(list(escrow.data.values()))
    yield from _disclosures(flows)
    yield from _contracts(flows)
    yield from _runs(flows)
    yield from _vote_table(flows)
    yield from _keys(list(escrow.data.values()))


def _runs_without_end(escrow: EscrowTimeline) -> Iterator[Markup]:
    found = escrow.runs_without_end
    if not found:
        return
    yield table(
        "Unfinished runs: still running, or their machine stopped",
        ("Contract", "Flow", "Run", "Began", "By"),
        [
            (
                flow.contract.id,
                flow.contract.flow,
                element("span", f"run {run.number}, unfinished", class_="near"),
                when(run.started),
                run.started.actor,
            )
            for flow, run in newest(found)
        ],
    )
    yield from left_out(len(found))


# --- data sets ---------------------------------------------------------------


def _data(data: Sequence[DatasetRecord]) -> Iterator[Markup]:
    yield table(
        "Every data set, newest first",
        ("Data set", "Owners", "Must agree", "Open contracts", "Bits", "Versions"),
        [
            (
                one.id,
                few(list(one.ownership.owners)),
                f"{one.ownership.quorum} of {len(one.ownership.owners)}",
                f"{one.contracts_max} for one analyst",
                f"{one.bits_max} for one person",
                few(_versions(one)),
            )
            for one in newest(data)
        ],
    )
    yield from left_out(len(data))


def _versions(data: DatasetRecord) -> list[str]:
    return [
        f"{one.number} ({one.media}) by {one.registered.actor}, {when(one.registered)}"
        + (
            f", shredded by {one.shredded.actor}, {when(one.shredded)}: {one.reason}"
            if one.shredded
            else ""
        )
        for one in data.versions
    ]


# --- flows -------------------------------------------------------------------


def _disclosures(flows: Sequence[ContractRecord]) -> Iterator[Markup]:
    out = [(flow, one) for flow in flows for one in flow.disclosures]
    out.sort(key=lambda pair: pair[1].entry.seq)
    if not out:
        yield element("p", "Nothing was disclosed.")
        return
    yield table(
        "Every disclosure, newest first",
        ("Contract", "What", "To", "When", "By", "Agreed"),
        [
            (
                flow.contract.id,
                _what(flow),
                one.to,
                when(one.entry),
                one.entry.actor,
                few(one.agreed),
            )
            for flow, one in newest(out)
        ],
    )
    yield from left_out(len(out))


def _what(flow: ContractRecord) -> Child:
    if not flow.bits:
        return flow.contract.flow
    text = f"{flow.contract.flow}, {flow.bits} bits outside differential privacy"
    return element("span", text, class_="over")


def _contracts(flows: Sequence[ContractRecord]) -> Iterator[Markup]:
    yield table(
        "Every contract, newest first",
        ("Contract", "Flow", "Requested by", "For", "Data", "Why", "State", "Digest"),
        [_contract_cells(one) for one in newest(flows)],
    )
    yield from left_out(len(flows))


def _contract_cells(flow: ContractRecord) -> Sequence[Child]:
    one = flow.contract
    to = f", to {few(one.recipients)}" if one.recipients else ""
    data = [f"{of.id} {of.number}" for of in one.data.values()]
    return (
        one.id,
        one.flow,
        f"{flow.proposed.actor}, {when(flow.proposed)}",
        f"{one.analyst}{to}",
        few(sorted(set(data))),
        flow.reason or NOTHING,
        _state(flow),
        element("code", one.digest[:_DIGEST_SHOWN]),
    )


def _state(flow: ContractRecord) -> str:
    match flow.state:
        case "waiting":
            return f"waiting: {flow.consents.lacking}"
        case "ended":
            return f"ended {minute(flow.contract.expires_at)}"
        case "withdrawn" if flow.withdrawn:
            by = flow.withdrawn
            return f"withdrawn by {by.actor}, {when(by)}"
        case state:
            return state


def _runs(flows: Sequence[ContractRecord]) -> Iterator[Markup]:
    runs = [(flow, run) for flow in flows for run in flow.runs]
    runs.sort(key=lambda pair: pair[1].started.seq)
    if not runs:
        yield element("p", "There are no runs.")
        return
    yield table(
        "Every run, newest first",
        ("Contract", "Run", "Began", "By", "Agreed", "Outcome", "Results"),
        [_run_cells(flow, run) for flow, run in newest(runs)],
    )
    yield from left_out(len(runs))


def _run_cells(flow: ContractRecord, run: RunRecord) -> Sequence[Child]:
    results = [
        f"{name} {sealed[:_DIGEST_SHOWN]}" for name, sealed in run.results.items()
    ]
    ended = f", {when(run.ended)}" if run.ended else ""
    return (
        flow.contract.id,
        f"{flow.contract.flow}, run {run.number}",
        when(run.started),
        run.started.actor,
        few(run.agreed),
        f"{run.how}{ended}",
        few(results),
    )


# --- votes of owners ---------------------------------------------------------


def _vote_table(flows: Sequence[ContractRecord]) -> Iterator[Markup]:
    votes = [(flow, vote) for flow in flows for vote in flow.votes]
    votes.sort(key=lambda pair: pair[1].entry.seq)
    if not votes:
        yield element("p", "No owner voted on a contract.")
        return
    yield table(
        "Every vote of an owner, newest first",
        ("Contract", "Owner", "Says", "When", "Reason", "Signature"),
        [
            (
                flow.contract.id,
                vote.entry.actor,
                "agrees" if vote.body.approves else "refuses",
                when(vote.entry),
                vote.body.reason or NOTHING,
                _signature(vote),
            )
            for flow, vote in newest(votes)
        ],
    )
    yield from left_out(len(votes))


def _signature(vote: CaseVote) -> str:
    uncounted = "" if vote.countable else "; it does not count"
    if not vote.body.key:
        return f"not signed{uncounted}"
    whose = "their own key" if vote.key_named else "a key that no data set lists"
    return f"signed by {vote.body.key[:_DIGEST_SHOWN]}, {whose}{uncounted}"


def _keys(data: Sequence[DatasetRecord]) -> Iterator[Markup]:
    """Yield the keys of owners, in full: a short form could be met on purpose."""
    keys = [
        (owner, one.id, key)
        for one in data
        for owner, known in one.ownership.owners.items()
        for key in known
    ]
    if not keys:
        return
    yield table(
        "Every key of an owner, to compare with the keys that people give you",
        ("Owner", "Data set", "Key"),
        [(owner, of, element("code", key)) for owner, of, key in keys[:SHOWN]],
    )
    yield from left_out(len(keys))
