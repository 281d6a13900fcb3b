"""Reading base policies: one rule each, or one for each attribute or category."""

from __future__ import annotations

from modicum.accounting import Budget
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.reader import Fields, Problems, choice, fail, name, optional_items
from modicum.policy.budget_maps import BudgetMap, Same, parse_map
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.declarations.budgets import Budgets
from modicum.policy.declarations.schema import read_level
from modicum.policy.model import (
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Level,
)
from modicum.release import Vocabulary


def read_base_policies(
    node: Node | None, what: str, vocabulary: Vocabulary, budgets: Budgets
) -> tuple[BasePolicy, ...]:
    """Return the base policies of a list, in order.

    Args:
        node: The list; None if there is none.
        what: The key that it stands under, for messages.
        vocabulary: The names that they may refer to.
        budgets: Reads their budgets.

    Raises:
        InputError: With every mistake found.
    """
    reader = _Reader(vocabulary, budgets)
    found = Problems()
    policies: list[BasePolicy] = []
    for item in optional_items(node, what):
        with found.guard():
            policies.append(reader.policy(item))
    found.raise_any()
    return tuple(policies)


class _Reader:
    def __init__(self, vocabulary: Vocabulary, budgets: Budgets) -> None:
        self._vocabulary = vocabulary
        self._budgets = budgets

    def policy(self, node: Node) -> BasePolicy:
        fields = Fields(node, "a base policy")
        own_name = name(fields.take("name"), "the policy's name")
        each = fields.take_optional("for_each")
        when = _when(fields, each)
        unit = self._unit(fields)
        policy: BasePolicy
        if when is not None:
            policy = self._custom(fields, own_name, unit, when)
        else:
            assert each is not None
            kinds = ("attribute", "category")
            kind = choice(each, "`for_each`", kinds, Code.UNKNOWN_CHOICE)
            reader = self._attributes if kind == "attribute" else self._categories
            policy = reader(fields, own_name, unit)
        fields.finish()
        return policy

    def _unit(self, fields: Fields) -> str:
        units = self._vocabulary.units
        node = fields.take("unit", help=f"add  unit: {units[0]}")
        return choice(node, "privacy unit", units, Code.UNKNOWN_UNIT)

    def _custom(
        self, fields: Fields, own_name: str, unit: str, when: Node
    ) -> CustomPolicy:
        found = Problems()
        with found.guard():
            predicate = parse_predicate(when, "`when`", self._vocabulary)
        with found.guard():
            budget_node = fields.take("budget")
            self._budgets.refuse_by_risk(budget_node)
            budget = self._budgets.read(budget_node)
        found.raise_any()
        return CustomPolicy(own_name, unit, predicate, budget, fields.node.mark)

    def _attributes(self, fields: Fields, own_name: str, unit: str) -> AttributePolicy:
        found = Problems()
        budget_node = fields.take("budget")
        budgets: dict[str, Budget] = {}
        with found.guard():
            budgets = self._budgets.read_by_risk(budget_node)
        override: dict[str, Budget] = {}
        override_node = fields.take_optional("override")
        if override_node is not None:
            with found.guard():
                override = self._override(override_node)
        found.raise_any()
        return AttributePolicy(
            name=own_name,
            unit=unit,
            budgets=budgets,
            override=override,
            mark=fields.node.mark,
            budget_mark=budget_node.mark,
        )

    def _override(self, node: Node) -> dict[str, Budget]:
        found = Problems()
        override: dict[str, Budget] = {}
        known = sorted(self._vocabulary.attributes)
        for key, value in Fields(node, "`override`").rest():
            with found.guard():
                attribute = choice(key, "attribute", known, Code.UNKNOWN_ATTRIBUTE)
                override[attribute] = self._budgets.read(value)
        found.raise_any()
        return override

    def _categories(self, fields: Fields, own_name: str, unit: str) -> CategoryPolicy:
        found = Problems()
        budget_node = fields.take("budget")
        budgets: dict[str, Budget] = {}
        with found.guard():
            budgets = self._budgets.read_by_risk(budget_node)
        levels = {Level.MEMBER: BudgetMap(Same(), fields.node.mark)}
        levels_node = fields.take_optional("levels")
        if levels_node is not None:
            with found.guard():
                levels = self._levels(levels_node)
        found.raise_any()
        return CategoryPolicy(
            name=own_name,
            unit=unit,
            budgets=budgets,
            levels=levels,
            mark=fields.node.mark,
            budget_mark=budget_node.mark,
        )

    def _levels(self, node: Node) -> dict[Level, BudgetMap]:
        found = Problems()
        levels: dict[Level, BudgetMap] = {}
        listed = Fields(node, "`levels`").rest()
        for key, value in listed:
            with found.guard():
                levels[read_level(key)] = parse_map(value, self._budgets.read)
        found.raise_any()
        if not listed:
            raise fail(
                Code.MISSING_KEY,
                "`levels` is empty: the policy would have no rule",
                node,
                help="leave it out for {member: same}",
            )
        return levels


def _when(fields: Fields, each: Node | None) -> Node | None:
    """Take the key `when`, which a policy has exactly if it has no `for_each`.

    Raises:
        InputError: If it has both, or neither.
    """
    if each is None:
        return fields.take(
            "when",
            needed=f"{fields.what} needs the key `when` or `for_each`",
            help='add  when: "true"  for a rule on everything, or  for_each: attribute',
        )
    if "when" in fields:
        raise fail(
            Code.KEYS_CONFLICT,
            "a base policy has either `when` or `for_each`",
            fields.key_node("when"),
            notes=("`for_each` makes one rule for each attribute or category",),
            help="leave `when` out, or write a policy of its own for it",
        )
    return None
