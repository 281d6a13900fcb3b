"""Reading how user groups take turns."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX, Unlocking
from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Problem
from modicum.core.reader import Fields, Problems, choice, count, fail, number
from modicum.policy.declarations.roles import Roles, read_role_names
from modicum.policy.model import BasePolicy, Retired, RotationRule
from modicum.policy.user_groups import grouped_through
from modicum.release import Vocabulary


def read_rotation(node: Node | None, roles: Roles) -> RotationRule | None:
    """Return the rotation of user groups; None if there is none.

    Args:
        node: The `rotation` block; None if there is none.
        roles: The people with each role; None if the policy does not declare roles.

    Raises:
        InputError: With every mistake found.
    """
    if node is None:
        return None
    found = Problems()
    fields = Fields(node, "`rotation`")
    rounds, slack, retired, openers = 1, Fraction(0), Retired.CLOSED, None
    with found.guard():
        active = fields.take(
            "active",
            help="give the number of rounds that a group is active:  active: 12",
        )
        rounds = count(active, "`active`", at_least=1, at_most=ROUNDS_MAX)
    given = fields.take_optional("slack")
    with found.guard():
        slack = Fraction(0) if given is None else _slack(given)
    rest = fields.take_optional("retired")
    with found.guard():
        retired = Retired.CLOSED if rest is None else _retired(rest)
    named = fields.take_optional("opened_by")
    with found.guard():
        openers = None if named is None else _openers(named, roles)
    with found.guard():
        fields.finish()
    found.raise_any()
    return RotationRule(Unlocking(rounds, slack), retired, openers, node.mark)


def _slack(node: Node) -> Fraction:
    value = number(node, "`slack`")
    if not 0 <= value <= 1:
        raise fail(Code.OUT_OF_RANGE, "`slack` must be a number from 0 to 1", node)
    return value


def _retired(node: Node) -> Retired:
    values = [one.value for one in Retired]
    return Retired(choice(node, "word of `retired`", values, Code.UNKNOWN_CHOICE))


def _openers(node: Node, roles: Roles) -> tuple[str, ...]:
    none = (
        "`opened_by` needs at least one role; without the key, anybody may open rounds"
    )
    return read_role_names(node, "`opened_by`", roles, none)


def refuse_turns_of_nobody(
    rotation: RotationRule | None,
    policies: Iterable[BasePolicy],
    vocabulary: Vocabulary,
) -> None:
    """Refuse a rotation that applies to no rule.

    Args:
        rotation: The rotation of user groups; None if there is none.
        policies: The base policies over history.
        vocabulary: The vocabulary of the policy, its population among it.

    Raises:
        InputError: If no unit stays in user groups, or no rule is about one that does.
    """
    if rotation is None:
        return
    grouped = vocabulary.population.grouped
    if not grouped:
        raise _of_nobody(
            rotation,
            "`rotation` needs user groups, and no unit has a fixed one",
            "add  population: {groups: {immutable: [UNIT]}}  , or leave `rotation` out",
        )
    if not any(grouped_through(one.unit, vocabulary) for one in policies):
        names = " or ".join(f"`{unit}`" for unit in sorted(grouped))
        raise _of_nobody(
            rotation,
            "`rotation` applies to no rule: none of `policies` is for a unit"
            " with fixed user groups",
            f"add one for {names}, or leave `rotation` out",
        )


def _of_nobody(rotation: RotationRule, message: str, remedy: str) -> InputError:
    return InputError(Problem(Code.KEYS_CONFLICT, message, rotation.mark, help=remedy))
