"""`modicum policy approve`, `reject` and `approvals`: who agrees to the next policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.exits import Exit
from modicum.cli.governance import (
    Reason,
    hearing_lines,
    office_of,
    print_said,
    said_to_dict,
)
from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.ledger.deciding.approvals import Hearing
    from modicum.policy import CompiledPolicy
    from modicum.workspace.governing.activation import Weighed
    from modicum.workspace.governing.topics import Spoken

PolicyFile = Annotated[Path, typer.Argument(help="The policy file.", metavar="FILE")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to those about policies."""
    app.command("approve")(approve)
    app.command("reject")(reject)
    app.command("approvals")(approvals)


def approve(
    file: PolicyFile,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Agree that a policy takes the place of the active one, if that asks people.

    Prints the rules that releases already made exceed. You agree to the policy's text;
    who activates it chooses which of these conflicts to accept.
    """
    with reporting(as_json=as_json):
        office, successor = office_of(ledger, actor), load(file)
        weighed = office.weigh(successor)
        said = office.approve_policy(successor, reason=reason)
        if as_json:
            print_json(
                {"said": [said_to_dict(said)], "conflicts": conflicts_to_list(weighed)}
            )
            return
        print_said(said)
        for line in conflict_lines(weighed):
            print(printable(line))


def reject(
    file: PolicyFile,
    reason: Reason,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Refuse that a policy takes the place of the active one."""
    with reporting(as_json=as_json):
        said = office_of(ledger, actor).reject_policy(load(file), reason=reason)
        if as_json:
            print_json({"said": [said_to_dict(said)]})
        else:
            print_said(said)


def approvals(
    file: PolicyFile, ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False
) -> None:
    """Show who agreed to a policy and who is missing. Exits 5 if somebody is."""
    from modicum.workspace.governing.governance import missing_approvals

    with reporting(as_json=as_json):
        office, successor = office_of(ledger, None), load(file)
        heard = office.policy_hearings(successor)
        spoken = office.spoken(successor.policy.digest)
        if as_json:
            print_json(_approvals_to_dict(heard, spoken))
        else:
            for line in _approval_lines(heard, spoken):
                print(printable(line))
        if missing_approvals(heard):
            raise typer.Exit(Exit.NEEDS_APPROVAL)


def _approval_lines(
    heard: Sequence[Hearing], spoken: Iterable[Spoken]
) -> Iterator[str]:
    yield from hearing_lines(heard) if heard else ["no approval is needed"]
    for one in spoken:
        said = (
            f"{'approved' if one.approves else 'rejected'} as {' and '.join(one.roles)}"
        )
        yield f"entry {one.seq}  {one.at[:10]}  {one.by} {said}: {one.reason}"


def _approvals_to_dict(
    heard: Iterable[Hearing], spoken: Iterable[Spoken]
) -> dict[str, object]:
    from modicum.workspace.governing.governance import hearing_to_dict

    return {
        "approvals": [hearing_to_dict(one) for one in heard],
        "exact": True,
        "spoken": [
            {
                "entry": one.seq,
                "at": one.at,
                "by": one.by,
                "approves": one.approves,
                "roles": list(one.roles),
                "reason": one.reason,
                "content": one.content,
                "current": True,
            }
            for one in spoken
        ],
    }


def load(file: Path) -> CompiledPolicy:
    """Return the policy of a file."""
    from modicum.shell.files import load_policy

    return load_policy(file)


# --- what history exceeds --------------------------------------------------------


def conflict_lines(weighed: Weighed) -> Iterator[str]:
    """Yield the rules that history exceeds; of those that are to be accepted, more."""
    for conflict in weighed.conflicts:
        problem = conflict.problem
        state = _state(weighed, conflict.rule.id)
        yield f"  {state}  {problem.message}"
        if state == "CONFLICT":
            yield f"            {problem.label}"


def _state(weighed: Weighed, rule: str) -> str:
    if rule in weighed.accepted:
        return "accepted"
    return "CONFLICT" if rule in weighed.made else "as before"


def conflicts_to_list(weighed: Weighed) -> list[dict[str, object]]:
    """Return the rules that history exceeds, as plain JSON (docs/reference/json.md)."""
    from modicum.cli.policy_simulation import conflict_to_dict

    return [
        {
            **conflict_to_dict(one),
            "made": one.rule.id in weighed.made,
            "accepted": one.rule.id in weighed.accepted,
        }
        for one in weighed.conflicts
    ]
