"""Reading base policies: one rule each, or one for each attribute or category."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from modicum.accounting import Budget, Unlimited
from modicum.accounting.budget_format import limit_delta, read_measured
from modicum.core.document import Entries, Kind, Node, Scalar, flow_text
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import parse_number
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    has_decimal_comma,
    name,
    nearest,
    number,
    optional_items,
    positive,
)
from modicum.policy.budget_maps import BudgetMap, Same, parse_map
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.declarations.header import Declarations, read_level
from modicum.policy.model import (
    REQUESTER_DAYS_MAX,
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Level,
)
from modicum.release import Vocabulary

#: Risk levels that a budget may name though nothing has them.
USUAL_RISK_LEVELS = ("low", "medium", "high")
#: The section of rules on each release alone, as in messages.
PER_RELEASE = "`per_release`"

_INFINITE = frozenset({".inf", "+.inf"})


class Budgets:
    """Reads budgets under the declarations of a policy."""

    def __init__(self, declared: Declarations) -> None:
        self._bare = declared.header.bare
        used = [attribute.risk for attribute in declared.attributes.values()]
        self._used = tuple(dict.fromkeys((*used, *declared.categories.values())))
        self.risk_levels = tuple(dict.fromkeys((*USUAL_RISK_LEVELS, *self._used)))

    def read(self, node: Node) -> Budget:
        """Return a budget; the key names the measure, nothing is guessed.

        Raises:
            InputError: If it is none.
        """
        try:
            return self._read(node)
        except InputError as error:
            problems = (_with_remedy(problem, node) for problem in error.problems)
            raise InputError(*problems) from error

    def _read(self, node: Node) -> Budget:
        if not isinstance(node, Scalar):
            return read_measured(node, "a budget", limit_delta)
        if node.kind is Kind.NUMBER:
            return self._read_bare(node)
        if node.kind is Kind.TEXT and node.text == "unlimited":
            return Unlimited()
        plain = node.kind is Kind.TEXT and not node.quoted
        if plain and not has_decimal_comma(node.text):
            raise fail(
                Code.NO_MEASURE,
                f'"{node.text[:40]}" is not a budget',
                node,
                label=nearest(node.text, ["unlimited"]),
                help="write a number, {eps: …} and the like, or unlimited",
            )
        number(node, "a budget")
        return read_measured(node, "a budget", limit_delta)

    def _read_bare(self, node: Scalar) -> Budget:
        value = positive(node, "a budget")
        if self._bare is None:
            raise fail(
                Code.NO_MEASURE,
                f'"{node.text}" has no measure',
                node,
                notes=("it could be pure eps, eps at a delta, rho or mu",),
                help=f"write {{eps: {node.text}, delta: 1e-7}}, or declare"
                " dp.bare_budget once",
            )
        return self._bare(value)

    def read_by_risk(self, node: Node) -> dict[str, Budget]:
        """Return a budget for each given risk level.

        Raises:
            InputError: With every mistake found.
        """
        self._refuse_single(node)
        found = Problems()
        budgets: dict[str, Budget] = {}
        for key, value in Fields(node, "`budget`").rest():
            with found.guard():
                level = choice(
                    key, "risk level", self.risk_levels, Code.UNKNOWN_RISK_LEVEL
                )
                budgets[level] = self.read(value)
        found.raise_any()
        return budgets

    def _refuse_single(self, node: Node) -> None:
        """Refuse one budget where one for each risk level is needed."""
        measured = isinstance(node, Entries) and not self._is_by_risk(node)
        if not measured and not isinstance(node, Scalar):
            return
        if measured and not is_measured(node):
            return
        written = flow_text(node)
        levels = self._used or USUAL_RISK_LEVELS
        pairs = ", ".join(f"{level}: {written}" for level in levels)
        raise fail(
            Code.WRONG_TYPE,
            "`budget` of a policy with `for_each` must be a mapping by risk level,"
            f" got {written}",
            node,
            help=f"write  {{{pairs}}}  instead of  {written}",
        )

    def _is_by_risk(self, node: Entries) -> bool:
        return any(key.text in self.risk_levels for key, _ in node.entries)

    def refuse_by_risk(self, node: Node) -> None:
        """Refuse budgets by risk level where one budget is needed.

        Raises:
            InputError: If `node` is a mapping by risk level.
        """
        if isinstance(node, Entries) and self._is_by_risk(node):
            raise fail(
                Code.UNKNOWN_KEY,
                "a budget for each risk level needs `for_each`",
                node,
                notes=("a policy with `when` makes one rule, with one budget",),
                help="write  for_each: attribute  or  for_each: category  instead of"
                " when",
            )


def is_measured(node: Node) -> bool:
    """Return whether a node is a mapping like ``{eps: 1}``."""
    measures = {"eps", "rho", "mu", "rdp", "delta"}
    return isinstance(node, Entries) and any(
        k.text in measures for k, _ in node.entries
    )


def _with_remedy(problem: Problem, node: Node) -> Problem:
    """Add the remedy for a zero or unlimited budget."""
    if problem.help or problem.code is not Code.OUT_OF_RANGE:
        return problem
    for value in _scalars(node):
        if value.mark != problem.mark or value.kind is not Kind.NUMBER:
            continue
        if value.text.lower() in _INFINITE:
            remedy = f"write  unlimited  instead of  {flow_text(node)}"
            return replace(problem, help=remedy)
        if parse_number(value.text) == 0:
            return replace(problem, help="to forbid something, write a guard")
    return problem


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Entries):
        for key, value in node.entries:
            if isinstance(value, Scalar) and key.text != "delta":
                yield value


def read_base_policies(
    node: Node | None, what: str, vocabulary: Vocabulary, budgets: Budgets
) -> tuple[BasePolicy, ...]:
    """Return the base policies of a list, in order.

    Args:
        node: The list; None if there is none.
        what: Its key, for messages.
        vocabulary: The names that they may refer to.
        budgets: Reads their budgets.

    Raises:
        InputError: With every mistake found.
    """
    reader = _Reader(what, vocabulary, budgets)
    found = Problems()
    policies: list[BasePolicy] = []
    for item in optional_items(node, what):
        with found.guard():
            policies.append(reader.policy(item))
    found.raise_any()
    return tuple(policies)


class _Reader:
    def __init__(self, what: str, vocabulary: Vocabulary, budgets: Budgets) -> None:
        self._what = what
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
        days = self._requester_days(fields)
        fields.finish()
        return replace(policy, requester_days=days)

    def _requester_days(self, fields: Fields) -> int | None:
        if self._what != PER_RELEASE:
            if "requester_days" not in fields:
                return None
            raise fail(
                Code.KEYS_CONFLICT,
                f"`requester_days` is for {PER_RELEASE}, not for {self._what}",
                fields.key_node("requester_days"),
                notes=("a rule over history limits all identities together",),
                help=f"leave it out, or move the policy to {PER_RELEASE}",
            )
        node = fields.take_optional("requester_days")
        if node is None:
            return None
        return count(node, "`requester_days`", at_least=1, at_most=REQUESTER_DAYS_MAX)

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
        return CustomPolicy(
            name=own_name,
            unit=unit,
            predicate=predicate,
            budget=budget,
            mark=fields.node.mark,
        )

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
    """Take the key `when`, which a policy has exactly if it has no `for_each`."""
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
            help="leave `when` out, or write a separate policy for it",
        )
    return None
