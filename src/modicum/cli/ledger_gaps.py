"""`modicum ledger resume`, `bring-back` and `accept-loss`: after a loss of entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.governance import Reason
from modicum.cli.ledger_access import open_workspace, refuse_no_ledger
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.governance.gaps import BroughtBack

Agree = Annotated[
    bool, typer.Option("--agree", help="Agree to what another person asked for.")
]
GapHash = Annotated[
    str | None,
    typer.Option(
        "--gap",
        help="The hash of the last lost entry, or its first digits, if several gaps"
        " are open.",
        metavar="HASH",
    ),
]


def resume(
    after_loss: Annotated[
        bool,
        typer.Option("--after-loss", help="Confirm that entries are lost. Required."),
    ],
    reason: Reason,
    agree: Agree = False,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Go on with a ledger that lacks entries its witness has; needs two people.

    One asks, and another runs it with --agree. Then nothing may be spent until the
    lost entries are brought back, or two people accept the loss.
    """
    from modicum.ops.backup.resume import resume_after_loss
    from modicum.ops.wiring import current_actor, opened_store

    with reporting(as_json=as_json):
        if not after_loss:
            raise typer.BadParameter(
                "it is for ledgers that lost entries", param_hint="--after-loss"
            )
        refuse_no_ledger(ledger)
        done = resume_after_loss(
            opened_store(ledger),
            actor or current_actor(),
            reason,
            agree=agree,
        )
        lost = done.lost
        if as_json:
            print_json(
                {
                    "outcome": done.outcome,
                    "lost": {"seq": lost.seq, "head": lost.head},
                    "entry": done.seq,
                    "witness_follows": done.is_followed,
                }
            )
            return
        what = f"entries up to {lost.seq} ({lost.head[:12]}) are lost"
        if done.outcome == "asked":
            print(
                f"{shown(ledger)}: {what}; you asked to go on (entry {done.seq})\n"
                "  another person agrees with  modicum ledger resume --after-loss"
                " --agree --reason …"
            )
            return
        print(f"{shown(ledger)}: {what}; the ledger goes on (entry {done.seq})")
        if not done.is_followed:
            print(
                "  the witness keeps lines of the lost entries: name another object"
                " as the witness before you start a server"
            )
        print(
            "  every limit counts as full until the gap is closed:"
            "  modicum ledger bring-back FILE"
        )


def bring_back(
    file: Annotated[
        str,
        typer.Argument(
            help="What has the lost entries: a backup or another ledger, an audit"
            " bundle, or a file with one entry a line.",
            metavar="FILE|URL",
        ),
    ],
    gap: GapHash = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Record every loss of lost entries, and close the gap.

    The entries must lead from one that the ledger has to the one that the witness
    knew. May be repeated: what is there is skipped, and what was found is not read
    again.
    """
    from modicum.api.local.governance.gaps import bring_back as bring
    from modicum.ops.backup.resume import exported_records

    with reporting(as_json=as_json):
        done = open_workspace(ledger, actor=actor).turn(
            lambda entry: bring(entry, exported_records(file), gap), deciding=True
        )
        if as_json:
            print_json(
                {
                    "gap": done.gap.head,
                    "recorded": list(done.recorded),
                    "moved": list(done.moved),
                    "policies": list(done.policies),
                    "missing": list(done.missing),
                    "uncounted": list(done.uncounted),
                    "closed": done.closed,
                }
            )
            return
        for line in _lines(done):
            print(printable(line))


def _lines(done: BroughtBack) -> Iterator[str]:
    yield (
        f"entries {done.gap.begins} to {done.gap.seq} were found; releases recorded:"
        f" {len(done.recorded)}, reservations started or canceled: {len(done.moved)}"
    )
    for policy in done.policies:
        yield (
            f"  some are of the policy {policy[:12]}: activate it, and bring them back"
            " again"
        )
    for name in done.missing:
        yield (
            f"  `{name}` cannot be recorded as it was: record it under another id, with"
            "  release backfill"
        )
    for what in done.uncounted:
        yield f"  people must judge: {what}"
    if done.closed:
        yield "  the gap is closed: limits are as they were"
    else:
        yield (
            "  the gap is open, and nothing may be spent; two people may accept the"
            " rest:  modicum ledger accept-loss"
        )


def accept_loss(
    reason: Reason,
    agree: Agree = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            help="With --agree: a lost policy, by 12 digits of its hash, whose found"
            " releases need not be recorded first. May be repeated.",
            metavar="HASH",
        ),
    ] = None,
    gap: GapHash = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Spend again although losses may be missing; needs two people.

    One asks, and another runs it with --agree. First record with `release backfill`
    what is known of the lost entries. A reservation that they may have started counts
    as started.
    """
    from modicum.api.local.governance.gaps import accept, ask_to_accept

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, actor=actor)
        found = workspace.turn(
            lambda entry: (
                accept(entry, reason, gap, without or ())
                if agree
                else ask_to_accept(entry, reason, gap)
            ),
            deciding=agree,
        )
        state = workspace.state()
        seq, gaps = state.seq, state.planning.gaps
        known = agree and gaps.closed.get(found.head) == 0
        if as_json:
            outcome = "closed" if known else "accepted" if agree else "asked"
            print_json({"outcome": outcome, "gap": found.head, "entry": seq})
            return
        if known:
            print(f"{shown(ledger)}: all was found, so the gap is closed")
            return
        if agree:
            print(
                f"{shown(ledger)}: {found.text()}, and that is accepted (entry {seq})"
            )
            return
        print(
            f"{shown(ledger)}: {found.text()}; you asked to accept that (entry {seq})\n"
            "  another person agrees with  modicum ledger accept-loss --agree"
            " --reason …"
        )


def add_to(app: typer.Typer) -> None:
    """Add the commands to those about the ledger."""
    app.command("resume")(resume)
    app.command("bring-back")(bring_back)
    app.command("accept-loss")(accept_loss)
