"""Files of policy tests: the expected decisions of a policy.

A test speaks of groups where the policy has a `rotation`; a group that it does not
name was never active, and has nothing unlocked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX
from modicum.core.document import Entries, Items, Node
from modicum.core.errors import Code, Mark, Problem
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    items,
    line,
    placed,
    take_format,
)
from modicum.ledger.log.events import GroupActivated, GroupRetired, RoundOpened
from modicum.ledger.state.rounds import Planning
from modicum.release.part_parser import GROUP_MAX


@dataclass(frozen=True, slots=True)
class UserGroups:
    """The user groups of a test.

    Attributes:
        ages: For how many rounds each active group has been so, this one included.
        retired: The groups that were active and are no more.
        mark: Their position; None if the test has none.
    """

    ages: Mapping[int, int]
    retired: tuple[int, ...]
    mark: Mark | None


NO_GROUPS = UserGroups({}, (), None)


def take_groups(fields: Fields) -> UserGroups:
    """Return the user groups of a test; consumes its keys `groups` and `retired`."""
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
                raise fail(Code.DUPLICATE_NAME, f"group {group} is given twice", key)
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
            help="list it in one of them",
        )
    if group in gone:
        raise fail(Code.DUPLICATE_NAME, f"group {group} is given twice", node)


def planning_of(groups: UserGroups) -> Planning:
    """Return rounds that lead to the groups of a test."""
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


#: The format name of a file of policy tests.
FORMAT = "policy-test/v1"
#: More tests in one file are refused.
TESTS_MAX = 1000

#: Returns the releases of a file that is named relative to the file of tests.
ReadReleases: TypeAlias = Callable[[str], Sequence[Node]]


class Outcome(Enum):
    """The outcome of a release."""

    ALLOW = "allow"
    DENY = "deny"
    NEEDS_APPROVAL = "needs-approval"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Expected:
    """The expectation of a test.

    Attributes:
        outcome: The expected outcome.
        blocking: Exactly the rules that deny, each with where it is named; None if
            any will do.
        code: The code of a mistake in the release; None if any will do.
    """

    outcome: Outcome
    blocking: tuple[tuple[str, Node], ...] | None = None
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A policy test.

    Attributes:
        name: Its name.
        history: The past releases, oldest first.
        release: The submitted release.
        expected: The expected decision.
        mark: Its position.
        groups: The user groups that are active by then, and those that were.
    """

    name: str
    history: tuple[Node, ...]
    release: Node
    expected: Expected
    mark: Mark | None
    groups: UserGroups = NO_GROUPS


@dataclass(frozen=True, slots=True)
class PolicyTests:
    """A file of tests.

    Attributes:
        policy: The policy's file, relative to this one.
        policy_node: The position of the policy.
        tests: The tests, in the order of the file.
    """

    policy: str
    policy_node: Node
    tests: tuple[PolicyTest, ...]


def read_tests(node: Node, read: ReadReleases) -> PolicyTests:
    """Return the tests of a file."""
    found = Problems()
    fields = Fields(node, "the file of policy tests")
    take_format(fields, FORMAT)
    tests: list[PolicyTest] = []
    policy_node = node
    policy = ""
    with found.guard():
        policy_node = fields.take("policy")
        policy = line(policy_node, "`policy`")
    with found.guard():
        described = items(fields.take("tests"), "`tests`")
        if not 1 <= len(described) <= TESTS_MAX:
            raise fail(
                Code.OUT_OF_RANGE,
                f"a file has 1 to {TESTS_MAX} tests, not {len(described)}",
                node,
            )
        for item in described:
            with found.guard():
                tests.append(_read_test(item, read))
    with found.guard():
        fields.finish()
    _note_duplicates(tests, found)
    found.raise_any()
    return PolicyTests(policy, policy_node, tuple(tests))


def _read_test(node: Node, read: ReadReleases) -> PolicyTest:
    fields = Fields(node, "the test")
    found = Problems()
    name, release, expected = "?", node, Expected(Outcome.ALLOW)
    history: tuple[Node, ...] = ()
    groups = NO_GROUPS
    with found.guard():
        name = line(fields.take("name"), "`name`")
    with found.guard():
        history = _history(fields.take_optional("history"), read)
    with found.guard():
        groups = take_groups(fields)
    with found.guard():
        release = _release(fields.take("release"), read)
    with found.guard():
        expected = _expected(fields)
    with found.guard():
        fields.finish()
    found.raise_any()
    return PolicyTest(name, history, release, expected, node.mark, groups)


def _history(node: Node | None, read: ReadReleases) -> tuple[Node, ...]:
    """Return the releases of a list, each written there or in a file, or of a file."""
    if node is None:
        return ()
    releases: list[Node] = []
    for item in node.items if isinstance(node, Items) else (node,):
        releases += [item] if isinstance(item, Entries) else _from_file(item, read)
    return tuple(releases)


def _release(node: Node, read: ReadReleases) -> Node:
    if isinstance(node, Entries):
        return node
    releases = _from_file(node, read)
    if len(releases) != 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"a test has one release, and the file has {len(releases)}",
            node,
        )
    return releases[0]


def _from_file(node: Node, read: ReadReleases) -> list[Node]:
    path = line(node, "a release, unless it is a mapping,")
    with placed(node):
        return list(read(path))


def _expected(fields: Fields) -> Expected:
    node = fields.take("expect")
    decision_name = choice(
        node, "expectation", [one.value for one in Outcome], Code.UNKNOWN_CHOICE
    )
    outcome = Outcome(decision_name)
    blocking, code = fields.take_optional("blocking"), fields.take_optional("code")
    for key, value, needed in (
        ("blocking", blocking, Outcome.DENY),
        ("code", code, Outcome.INVALID),
    ):
        if value is not None and outcome is not needed:
            raise fail(
                Code.KEYS_CONFLICT,
                f"`{key}` is for  expect: {needed.value}, not with {decision_name}",
                value,
            )
    return Expected(
        outcome,
        None if blocking is None else _blocking(blocking),
        None if code is None else _code(code),
    )


def _blocking(node: Node) -> tuple[tuple[str, Node], ...]:
    each = items(node, "`blocking`")
    return tuple((line(item, "the id of a rule"), item) for item in each)


def _code(node: Node) -> Code:
    return Code(choice(node, "code", [one.value for one in Code], Code.UNKNOWN_CHOICE))


def _note_duplicates(tests: Iterable[PolicyTest], found: Problems) -> None:
    seen: set[str] = set()
    for test in tests:
        if test.name in seen:
            found.add(
                Problem(
                    Code.DUPLICATE_NAME,
                    f"two tests are named `{test.name}`",
                    test.mark,
                )
            )
        seen.add(test.name)
