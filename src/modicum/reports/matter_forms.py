"""What people were asked about, and what they said, as plain JSON."""

from __future__ import annotations

from modicum.api.local.views.approvals import approvals_view
from modicum.api.schema.shape import plain
from modicum.reports.matter import Matter, Word


def word_to_dict(word: Word) -> dict[str, object]:
    """Return what somebody said once.

    Args:
        word: What they said.
    """
    body = word.body
    return {
        **word.told.to_dict(),
        "subject": body.subject,
        "id": body.id,
        "content": body.content,
        "approves": body.approves,
        "roles": list(body.roles),
        "reason": body.reason,
        "key": body.key or None,
        "key_named": word.key_named,
        "heard": word.heard,
    }


def matter_to_dict(matter: Matter) -> dict[str, object]:
    """Return something that people are asked about. Their words are told by entry.

    Args:
        matter: What they are asked about.
    """
    return {
        "subject": matter.subject,
        "id": matter.id,
        "content": matter.content,
        "name": matter.name or None,
        "state": matter.state,
        "steps": [
            {**one.told.to_dict(), "what": one.what, "reason": one.reason}
            for one in matter.steps
        ],
        "said": [one.told.seq for one in matter.words],
        "counted": [
            {
                "by": one.by,
                "entry": one.seq,
                "key": one.key or None,
                "key_named": one.key_named,
            }
            for one in matter.counted
        ],
        "needs": [plain(one) for one in approvals_view(matter.hearings)],
    }
