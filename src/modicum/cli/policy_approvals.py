"""`modicum policy propose`, `approve`, `reject` and `activate`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit, exit_for
from modicum.cli.governance import (
    Head,
    Key,
    Reason,
    approval_lines,
    governance_of,
    print_vote,
    signer_of,
    vote_line,
)
from modicum.cli.ledger_signatures import PassphraseFile
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger, shown
from modicum.cli.output import print_json, reporting
from modicum.core.errors import ModicumError, printable

if TYPE_CHECKING:
    from modicum.api.local.governance.activation import Activation, ActivationPreview
    from modicum.ledger.state.pending import Proposal
    from modicum.policy import CompiledPolicy

PolicyFile = Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")]

Subject = Annotated[
    str,
    typer.Argument(
        help="The policy file; or the digest of a proposed policy, or its first"
        " 12 characters.",
        metavar="FILE|DIGEST",
    ),
]

_DIGEST = re.compile(r"[0-9a-fA-F]{12,64}", re.ASCII)
#: Why a vote before the last activation does not count.
_EARLIER = "under an earlier policy"


def add_approvals_to(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("approve")(approve)
    app.command("reject")(reject)
    app.command("approvals")(approvals)


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
    """Approve the next policy, if the active one requires approval.

    Prints the rules that past releases exceed, and other conflicts. You approve the
    text of the policy; the person who activates it chooses which conflicts to accept.
    """
    from modicum.api.local.views.approvals import conflicts_view, receipt_view
    from modicum.api.local.views.ledger import problems_view
    from modicum.api.schema.approval import CastVotes

    with reporting(as_json=as_json):
        vote = governance_of(ledger, actor).approve_policy(
            _named(subject),
            reason=reason,
            head=head,
            key=signer_of(key, passphrase_file),
        )
        preview = vote.preview
        assert preview is not None
        if as_json:
            print_json(
                CastVotes(
                    votes=(receipt_view(vote),),
                    conflicts=conflicts_view(preview),
                    problems=problems_view(preview.problems),
                )
            )
            return
        print_vote(vote)
        for line in conflict_lines(preview):
            print(printable(line))


def reject(
    subject: Subject,
    reason: Reason,
    key: Key = None,
    passphrase_file: PassphraseFile = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Reject the next policy."""
    from modicum.api.local.views.approvals import receipt_view
    from modicum.api.schema.approval import CastVotes

    with reporting(as_json=as_json):
        vote = governance_of(ledger, actor).reject_policy(
            _named(subject), reason=reason, key=signer_of(key, passphrase_file)
        )
        if as_json:
            print_json(CastVotes(votes=(receipt_view(vote),)))
        else:
            print_vote(vote)


def approvals(
    file: PolicyFile, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show the approvals of a policy. Exits 5 if some are missing.

    Earlier votes, from before the active policy, were on another change.
    """
    from modicum.api.local.governance.approval_cases import missing_approvals
    from modicum.api.local.views.approvals import approvals_view, vote_view
    from modicum.api.schema.approval import KnownApprovals

    with reporting(as_json=as_json):
        office, successor = governance_of(ledger, None), load(file)
        states = office.policy_approval_states(successor)
        votes = office.votes(successor.policy.digest)
        counting = frozenset(office.counting_votes(successor))
        if as_json:
            vote = tuple(vote_view(one, current=one in counting) for one in votes)
            approvals = approvals_view(states)
            print_json(KnownApprovals(approvals=approvals, exact=True, votes=vote))
        else:
            for line in approval_lines(states) if states else ["no approval is needed"]:
                print(line)
            for one in votes:
                print(vote_line(one, "" if one in counting else _EARLIER))
        if missing_approvals(states):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def load(file: Path) -> CompiledPolicy:
    """Return the policy of a file."""
    from modicum.ops.files.documents import load_policy

    return load_policy(file)


def _named(subject: str) -> CompiledPolicy | str:
    """Return the policy of a file, or the digest of one that is proposed."""
    is_digest = _DIGEST.fullmatch(subject) and not Path(subject).exists()
    return subject if is_digest else load(Path(subject))


# --- conflicts with history ------------------------------------------------------


def conflict_lines(preview: ActivationPreview) -> Iterator[str]:
    """Yield the exceeded rules; with more detail for those to be accepted.

    Before them, other obstacles; after them, removed attributes and redefined units.
    """
    from modicum.ledger.decision.departures import DEPARTED
    from modicum.ledger.state.past_filters import FILTER
    from modicum.ledger.state.past_vocabulary import ATTRIBUTE, UNIT

    for problem in preview.problems:
        yield f"  CONFLICT  {problem.message}"
    for conflict in preview.conflicts:
        problem = conflict.problem
        state = _state(preview, conflict.rule.id)
        yield f"  {state}  {problem.message}"
        if state == "CONFLICT":
            yield f"            {problem.label}"
    for name in preview.accepted:
        if name.startswith(ATTRIBUTE):
            yield f"  accepted  {name} is removed"
        elif name.startswith(UNIT):
            yield f"  accepted  {name} is redefined"
        elif name.startswith(DEPARTED):
            yield f"  accepted  {name} is left by past releases"
        elif name.startswith(FILTER):
            yield f"  accepted  {name} is a further filter"


def _state(preview: ActivationPreview, rule: str) -> str:
    if rule in preview.accepted:
        return "accepted"
    return "CONFLICT" if rule in preview.made else "as before"


def register(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("activate")(activate)
    add_approvals_to(app)


def activate(
    file: PolicyFile,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    accept_conflict: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-conflict",
            help="The id of a rule, or its scope, that is over its limit and may stay"
            " so: it denies matching releases, in the cells over the limit. Or"
            " `attribute:NAME`: the attribute is removed, and is none of the new ones."
            " Or `unit:NAME`: the unit is redefined, and charged as shown. Or"
            " `departed:SCOPE`: past releases leave the rules of that scope. Or"
            " `filter:NAME`: limits hold with the deltas of all filters together.",
            metavar="NAME",
        ),
    ] = None,
    replaces: Annotated[
        str | None,
        typer.Option(
            "--replaces",
            help="The digest of the policy that this one was reviewed against; exit"
            " with code 7 if another one is active.",
            metavar="DIGEST",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the effect; write nothing.")
    ] = False,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Activate a policy, in place of the active one.

    Exits with code 4 if past releases exceed a rule that is new or tighter, or one that
    they did not exceed before; if a privacy unit with recorded losses is redefined; if
    an attribute that past releases read is removed where others are new; if past
    releases leave a rule because labels or settings change; and if the filter changes
    after releases; unless each is accepted.
    Exits with code 5 if approval is needed.
    """
    from modicum.api.local.governance.activation import refuse_unready

    with reporting(as_json=as_json):
        office, successor = governance_of(ledger, actor), load(file)
        accept = accept_conflict or []
        if dry_run:
            preview = office.preview_activation(
                successor, accept=accept, replaces=replaces
            )
            _print(preview, None, ledger, as_json=as_json)
            try:
                refuse_unready(preview)
            except ModicumError as error:
                if not as_json:  # One document says it all.
                    raise
                raise typer.Exit(exit_for(error)) from error
            return
        done = office.activate(
            successor, reason=reason, accept=accept, replaces=replaces
        )
        _print(done.preview, done, ledger, as_json=as_json)


def _print(
    preview: ActivationPreview, done: Activation | None, ledger: str, *, as_json: bool
) -> None:
    from modicum.api.local.views.approvals import activation_view

    if as_json:
        print_json(activation_view(preview, done))
    else:
        for line in _lines(preview, done, ledger):
            print(printable(line))


def _lines(
    preview: ActivationPreview, done: Activation | None, ledger: str
) -> Iterator[str]:
    new, old = preview.successor, preview.replaced.policy
    called = f"policy `{new.policy.name}` ({new.policy.digest[:12]})"
    if preview.holds_already:
        yield f"{shown(ledger)}: {called} is already active"
        return
    verb = "is active" if done else "would be active"
    replaced = f"`{old.name}` ({old.digest[:12]})"
    yield f"{shown(ledger)}: {called} {verb}, in place of {replaced}"
    rules = len(new.rules)
    entry = f", entry {done.seq}" if done else ""
    yield f"  {rules} rule{'' if rules == 1 else 's'}{entry}"
    yield from conflict_lines(preview)
    for line in approval_lines(preview.approval_states):
        yield f"  {line}"


Text = Annotated[
    bool, typer.Option("--text", help="Also print the texts of the policies.")
]


def add_proposals_to(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("propose")(propose)
    app.command("proposals")(proposals)


def propose(
    file: PolicyFile,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Request approval of a policy; its text is stored in the ledger. Exits 0 or 5."""
    from modicum.api.local.governance.approval_cases import missing_approvals
    from modicum.api.local.views.approvals import proposal_view

    with reporting(as_json=as_json):
        office = governance_of(ledger, actor)
        found = office.propose_policy(load(file), reason=reason)
        if as_json:
            print_json(proposal_view(found))
        else:
            print(_line(found.proposal))
            for line in approval_lines(found.approval_states):
                print(f"  {line}")
        if missing_approvals(found.approval_states):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def proposals(
    ledger: Ledger = DEFAULT_LEDGER, text: Text = False, as_json: Json = False
) -> None:
    """List the proposed policies, and the missing approvals."""
    from modicum.api.local.views.approvals import pending_policy_view

    with reporting(as_json=as_json):
        found = governance_of(ledger, None).proposals()
        if as_json:
            print_json({"proposals": tuple(map(pending_policy_view, found))})
            return
        if not found:
            print("no policy is proposed")
        for one in found:
            print(printable(f"{_line(one.proposal)}: {one.reason}"))
            for line in approval_lines(one.approval_states):
                print(f"  {line}")
            for line in one.text.splitlines() if text else ():
                print(printable(f"    {line}"))


def _line(one: Proposal) -> str:
    return printable(
        f"policy `{one.name}` ({one.digest[:12]}) is proposed by {one.by} since"
        f" {one.at[:10]} (entry {one.seq})"
    )
