"""People whose names are told apart by capitals only."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.core.errors import Code, Problem
from modicum.policy.declarations.roles import meant_by
from modicum.policy.model import Policy


def written_twice(policy: Policy) -> Iterator[Problem]:
    """Yield a mistake for each person whom the roles name in two ways.

    One person would agree twice. A log may hold such a policy, of an earlier version;
    this is asked of policies that are to be activated, not of those.

    Args:
        policy: The policy.
    """
    first: dict[str, tuple[str, str]] = {}
    for role, people in (policy.roles or {}).items():
        for person in people:
            known, known_role = first.setdefault(meant_by(person), (person, role))
            if known != person:
                yield Problem(
                    Code.DUPLICATE_NAME,
                    f"`{known}` and `{person}` are one person",
                    policy.roles_mark,
                    notes=(
                        f"`{known}` is in role `{known_role}`, `{person}` in `{role}`;"
                        " capitals do not tell people apart",
                    ),
                    help="write the name in one way",
                )
