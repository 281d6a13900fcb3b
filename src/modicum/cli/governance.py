"""`modicum release approve` and `reject`, and remarks in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.ledger_signatures import PassphraseFile
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import in_turn, note, print_json, reporting
from modicum.cli.release_files import named_releases, read_release
from modicum.core.document import Entries
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.governance.actions import Governance
    from modicum.api.local.governance.approval_cases import VoteEntry
    from modicum.api.local.governance.approvals import RecordedVote
    from modicum.core.document import Node
    from modicum.ledger.decision.approvals import ApprovalState
    from modicum.storage.proofs.signing_keys import SigningKey


def approval_lines(states: Iterable[ApprovalState]) -> Iterator[str]:
    """Yield the state of each approval, and whether it is given."""
    from modicum.api.local.governance.approval_cases import approval_state_text

    return (
        printable(
            f"{'ok     ' if one.given else 'MISSING'}  {approval_state_text(one)}"
        )
        for one in states
    )


def vote_line(one: VoteEntry, besides: str = "") -> str:
    """Return a recorded vote."""
    verb = "approved" if one.approves else "rejected"
    about = f"{verb} ({besides})" if besides else verb
    roles = " and ".join(one.roles)
    signed = f", signed with {one.key[:12]}" if one.key else ""
    return printable(
        f"entry {one.seq}  {one.at[:10]}  {one.by} {about} as {roles}{signed}:"
        f" {one.reason}"
    )


# --- JSON -----------------------------------------------------------------------


Subject = Annotated[
    str,
    typer.Argument(
        help="The release file, - for standard input; or the id of a requested"
        " release.",
        metavar="FILE|ID",
    ),
]
Reason = Annotated[str, typer.Option("--reason", help="The reason, for the record.")]
Head = Annotated[
    str | None,
    typer.Option(
        "--head",
        help="The hash of the last entry that you reviewed, or its first 12 characters;"
        " exit with code 7 if the ledger has newer entries.",
        metavar="HASH",
    ),
]
Key = Annotated[
    Path | None,
    typer.Option("--key", help="The private key that signs the vote.", metavar="FILE"),
]


def add_to_ledger(app: typer.Typer) -> None:
    """Add the commands about remarks to those about the ledger."""
    app.command("annotate")(annotate)
    app.command("disclose")(disclose)


# --- approvals ------------------------------------------------------------------


def approve(
    subject: Subject,
    reason: Reason,
    head: Head = None,
    key: Key = None,
    passphrase_file: PassphraseFile = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Approve a release that needs approval, as the policy's `roles` allow.

    It is decided again: a release that would be denied now cannot be approved.
    """
    with reporting(as_json=as_json):
        signer = signer_of(key, passphrase_file)
        _vote(
            subject,
            governance_of(ledger, actor),
            lambda office, release: office.approve(
                release, reason=reason, head=head, key=signer
            ),
            as_json=as_json,
        )


def reject(
    subject: Subject,
    reason: Reason,
    key: Key = None,
    passphrase_file: PassphraseFile = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Reject a release, or withdraw an approval; it is blocked until you approve."""
    with reporting(as_json=as_json):
        signer = signer_of(key, passphrase_file)
        _vote(
            subject,
            governance_of(ledger, actor),
            lambda office, release: office.reject(release, reason=reason, key=signer),
            as_json=as_json,
        )


def signer_of(key: Path | None, passphrase_file: Path | None) -> SigningKey | None:
    """Return the key that signs a vote; None for no signature."""
    from modicum.cli.ledger_signatures import open_key

    return None if key is None else open_key(key, passphrase_file)


def _vote(
    subject: str,
    office: Governance,
    verb: Callable[[Governance, Node | str], RecordedVote],
    *,
    as_json: bool,
) -> None:
    from modicum.api.local.views.approvals import receipt_view
    from modicum.api.schema.approval import CastVotes

    named = list(named_releases(subject))
    votes = in_turn(named, lambda one: verb(office, one), _name)
    if as_json:
        print_json(CastVotes(votes=tuple(map(receipt_view, votes))))
        return
    for one in votes:
        print_vote(one)
    pairs = zip(votes, named, strict=True)
    _warn_of_nobody([node for one, node in pairs if one.approves and one.decision])


def _name(subject: Node | str) -> str:
    from modicum.api.local.backfill import id_of

    return subject if isinstance(subject, str) else id_of(subject)


def _warn_of_nobody(named: Iterable[Node | str]) -> None:
    """Warn of releases without a requester: plans with approvals need one."""
    nameless = [
        one
        for one in named
        if isinstance(one, Entries)
        and "requester" not in {key.text for key, _ in one.entries}
    ]
    if nameless:
        does = "it does" if len(nameless) == 1 else f"{len(nameless)} of these do"
        takes = "it" if len(nameless) == 1 else "them"
        note(
            f"note: {does} not name a `requester`, so no plan accepts {takes}; adding"
            " one later requires new approvals"
        )


def print_vote(vote: RecordedVote) -> None:
    """Print a vote, and the approvals still missing."""
    if vote.repeated and vote.seq == vote.corrected_in:
        print(
            printable(f"{vote.topic.called}: already described so (entry {vote.seq})")
        )
        return
    verb = "approved" if vote.approves else "rejected"
    roles = f" as {' and '.join(vote.roles)}" if vote.roles else ""
    already = f" already (entry {vote.seq})" if vote.repeated else ""
    signed = f", signed with {vote.key[:12]}" if vote.key else ""
    text = f"{vote.topic.called} {verb} by {vote.by}{roles}{signed}{already}"
    print(printable(text))
    if vote.corrected_in:
        print(f"  it is charged as now described (entry {vote.corrected_in})")
    for line in approval_lines(vote.approval_states):
        print(f"  {line}")


def governance_of(ledger: str, actor: str | None) -> Governance:
    """Return the governance operations on a ledger."""
    from modicum.cli.ledger_access import open_workspace

    return open_workspace(ledger, actor=actor).governance


# --- remarks --------------------------------------------------------------------


def annotate(
    remark: Annotated[str, typer.Argument(help="The remark.", metavar="TEXT")],
    about: Annotated[
        str,
        typer.Option(
            "--about", help="The id of a release or a disclosure.", metavar="ID"
        ),
    ] = "",
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Add a remark for readers of the ledger. It has no other effect."""
    with reporting(as_json=as_json):
        seq = governance_of(ledger, actor).annotate(remark, about=about)
        if as_json:
            print_json({"entry": seq, "about": about or None})
        else:
            print(f"{shown(ledger)}: remark added (entry {seq})")


def disclose(
    file: Annotated[
        Path,
        typer.Argument(
            help="The disclosure, YAML or JSON; - for standard input.", metavar="FILE"
        ),
    ],
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Record a disclosure outside differential privacy: no rule counts it."""
    with reporting(as_json=as_json):
        body, seq = governance_of(ledger, actor).disclose(read_release(file))
        if as_json:
            print_json(
                {
                    "disclosure": body.id,
                    "entry": seq,
                    "attributes": list(body.attributes),
                }
            )
            return
        print(f"{body.id}: disclosure recorded (entry {seq}); no rule counts it")
