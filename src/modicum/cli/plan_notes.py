"""What `modicum plan run` remarks on the requests that it was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modicum.cli.output import note
from modicum.cli.plan_wishes import words_of
from modicum.core.errors import printable
from modicum.core.text import shortened

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.plans.plan import Plan
    from modicum.api.local.plans.requests import Request

#: So many files that were not read are named.
_NAMED_MAX = 5


def note_unread(sources: Sequence[Path]) -> None:
    """Say which files of folders were not read.

    Args:
        sources: The files and folders that were given.
    """
    from modicum.ops.files.requests import unread

    for source in sources:
        names = unread(source)
        if names:
            listed = shortened(names, _NAMED_MAX)
            note(printable(f"note: not read in {source}: {listed}"))


def note_unnamed_groups(
    workspace: Workspace, requests: Sequence[Request], plan: Plan
) -> None:
    """Warn of requests that name no groups, where these take turns.

    Args:
        workspace: The ledger.
        requests: The requests.
        plan: What was made of them; what it accepts does no harm.
    """
    if workspace.policy().policy.rotation is None:
        return
    accepted = frozenset(plan.accepted)
    unnamed = [
        one
        for one in requests
        if not one.names_groups and one.release.id not in accepted
    ]
    if unnamed:
        note(
            f"warning: {words_of(len(unnamed), 'request')} of {len(requests)}"
            f" {'names' if len(unnamed) == 1 else 'name'} no `groups`, and so"
            f" {'reads' if len(unnamed) == 1 else 'read'} those, too, that have not"
            f" begun{_named(workspace)}"
        )


def _named(workspace: Workspace) -> str:
    """Return how to name the groups that are active."""
    from modicum.api.local.explanation.locked_words import written_groups
    from modicum.release.parts import merged

    present = workspace.rounds.present()
    active = (
        merged([(one.group, one.group) for one in present.active]) if present else ()
    )
    return f"; name those that are active:  {written_groups(active)}" if active else ""
