"""The user groups of a policy test: how long they have been active, or that they were.

A test speaks of groups where the policy has a `rotation`; a group that it does not
name was never active, and has nothing unlocked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX
from modicum.core.document import Node
from modicum.core.errors import Code, Mark
from modicum.core.reader import Fields, Problems, count, fail, items
from modicum.ledger.log.events import GroupActivated, GroupRetired, RoundOpened
from modicum.ledger.state.rounds import Planning
from modicum.release.part_parser import GROUP_MAX


@dataclass(frozen=True, slots=True)
class UserGroups:
    """The user groups that a test tells of.

    Attributes:
        ages: For how many rounds each active group has been so, this one included.
        retired: The groups that were active and are no more.
        mark: Where they stand; None if the test tells of none.
    """

    ages: Mapping[int, int]
    retired: tuple[int, ...]
    mark: Mark | None


NO_GROUPS = UserGroups({}, (), None)


def take_groups(fields: Fields) -> UserGroups:
    """Return the user groups of a test; its keys `groups` and `retired` are taken.

    Raises:
        InputError: With every mistake found.
    """
    active, retired = fields.take_optional("groups"), fields.take_optional("retired")
    found = Problems()
    ages: dict[int, int] = {}
    if active is not None:
        with found.guard():
            ages = _ages(active)
    gone: dict[int, None] = {}
    if retired is not None:
        with found.guard():
            for item in items(retired, "`retired`"):
                with found.guard():
                    group = _group(item)
                    _refuse_both(group, ages, gone, item)
                    gone[group] = None
    found.raise_any()
    first = active if active is not None else retired
    return UserGroups(ages, tuple(gone), first.mark if first is not None else None)


def _ages(node: Node) -> dict[int, int]:
    found = Problems()
    ages: dict[int, int] = {}
    for key, value in Fields(node, "`groups`").rest():
        with found.guard():
            group = _group(key)
            if group in ages:
                raise fail(Code.DUPLICATE_NAME, f"group {group} stands twice", key)
            what = f"the age of group {group}"
            ages[group] = count(value, what, at_least=1, at_most=ROUNDS_MAX)
    found.raise_any()
    return ages


def _group(node: Node) -> int:
    return count(node, "the number of a user group", at_least=0, at_most=GROUP_MAX)


def _refuse_both(
    group: int, ages: Mapping[int, int], gone: Mapping[int, None], node: Node
) -> None:
    if group in ages:
        raise fail(
            Code.KEYS_CONFLICT,
            f"group {group} is active, by `groups`, and cannot be retired",
            node,
            help="name it in one of them",
        )
    if group in gone:
        raise fail(Code.DUPLICATE_NAME, f"group {group} stands twice", node)


def planning_of(groups: UserGroups) -> Planning:
    """Return rounds in which the groups came to be what a test says.

    Args:
        groups: The groups.
    """
    planning = Planning()
    rounds = max((*groups.ages.values(), int(bool(groups.retired))), default=0)
    for number in range(1, rounds + 1):
        planning.open_round(RoundOpened(str(number), {}))
        age = rounds - number + 1
        begin = [group for group, own in groups.ages.items() if own == age]
        if number == 1:
            begin += groups.retired
        for group in begin:
            planning.activate(GroupActivated(group, str(number)))
    for group in groups.retired:
        planning.retire(GroupRetired(group, str(rounds)))
    return planning
