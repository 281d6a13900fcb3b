"""`modicum policy approve`, `reject` and `approvals`: who agrees to the next policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.governance import Head, Key, Reason, office_of, print_said, signer_of
from modicum.cli.hearings import hearing_lines, spoken_line
from modicum.cli.ledger_signatures import PassphraseFile
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.governance.activation import Weighed
    from modicum.policy import CompiledPolicy

PolicyFile = Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")]

Subject = Annotated[
    str,
    typer.Argument(
        help="The policy file; or, if it is proposed, its digest or the first 12"
        " characters of it.",
        metavar="FILE|DIGEST",
    ),
]

_DIGEST = re.compile(r"[0-9a-fA-F]{12,64}", re.ASCII)
#: Why a word does not count that was said before the active policy came.
_EARLIER = "under an earlier policy"


def add_to(app: typer.Typer) -> None:
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
    """Agree that a policy takes the place of the active one, if that asks people.

    Prints the rules that releases already made exceed, and what else is in the way of
    the policy. You agree to the policy's text;
    who activates it chooses which of these conflicts to accept.
    """
    from modicum.api.local.views.approvals import conflicts_view, receipt_view
    from modicum.api.local.views.problems import problems_view

    with reporting(as_json=as_json):
        said = office_of(ledger, actor).approve_policy(
            _named(subject),
            reason=reason,
            head=head,
            key=signer_of(key, passphrase_file),
        )
        weighed = said.weighed
        assert weighed is not None
        if as_json:
            print_json(
                {
                    "said": [receipt_view(said)],
                    "conflicts": conflicts_view(weighed),
                    "problems": problems_view(weighed.problems),
                }
            )
            return
        print_said(said)
        for line in conflict_lines(weighed):
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
    """Refuse that a policy takes the place of the active one."""
    from modicum.api.local.views.approvals import receipt_view

    with reporting(as_json=as_json):
        said = office_of(ledger, actor).reject_policy(
            _named(subject), reason=reason, key=signer_of(key, passphrase_file)
        )
        if as_json:
            print_json({"said": [receipt_view(said)]})
        else:
            print_said(said)


def approvals(
    file: PolicyFile, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show who agreed to a policy and who is missing. Exits 5 if somebody is.

    What was said before the active policy came was about another change.
    """
    from modicum.api.local.governance.governance import missing_approvals
    from modicum.api.local.views.approvals import approvals_view, vote_view

    with reporting(as_json=as_json):
        office, successor = office_of(ledger, None), load(file)
        heard = office.policy_hearings(successor)
        spoken = office.spoken(successor.policy.digest)
        counting = frozenset(office.counting_words(successor))
        if as_json:
            said = [vote_view(one, current=one in counting) for one in spoken]
            approvals = approvals_view(heard)
            print_json({"approvals": approvals, "exact": True, "spoken": said})
        else:
            for line in hearing_lines(heard) if heard else ["no approval is needed"]:
                print(line)
            for one in spoken:
                print(spoken_line(one, "" if one in counting else _EARLIER))
        if missing_approvals(heard):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def load(file: Path) -> CompiledPolicy:
    """Return the policy of a file."""
    from modicum.ops.files.documents import load_policy

    return load_policy(file)


def _named(subject: str) -> CompiledPolicy | str:
    """Return the policy of a file, or the digest of one that is proposed."""
    is_digest = _DIGEST.fullmatch(subject) and not Path(subject).exists()
    return subject if is_digest else load(Path(subject))


# --- what history exceeds --------------------------------------------------------


def conflict_lines(weighed: Weighed) -> Iterator[str]:
    """Yield the rules that history exceeds; of those that are to be accepted, more.

    Before them, what else is in the way; after them, which attributes are gone.
    """
    from modicum.ledger.state.past_vocabulary import ATTRIBUTE

    for problem in weighed.problems:
        yield f"  CONFLICT  {problem.message}"
    for conflict in weighed.conflicts:
        problem = conflict.problem
        state = _state(weighed, conflict.rule.id)
        yield f"  {state}  {problem.message}"
        if state == "CONFLICT":
            yield f"            {problem.label}"
    for name in weighed.accepted:
        if name.startswith(ATTRIBUTE):
            yield f"  accepted  {name} is gone"


def _state(weighed: Weighed, rule: str) -> str:
    if rule in weighed.accepted:
        return "accepted"
    return "CONFLICT" if rule in weighed.made else "as before"
