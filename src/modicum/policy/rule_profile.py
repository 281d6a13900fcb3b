"""One rule in full: its guarantee, its origins, its limits.

And the unlocked fraction of its limits in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from modicum.accounting import Budget, Filter
from modicum.accounting.budgets import budget_text
from modicum.accounting.grid import EPS, FIRST_ORDER, MU2, ORDERS, RHO
from modicum.core.errors import Mark
from modicum.core.rationals import number_spelled, number_text
from modicum.policy.changes.rule_comparison import stage_rules
from modicum.policy.compiler import CompiledPolicy
from modicum.policy.hasse.diagram import RuleOrder
from modicum.policy.model import (
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Level,
    Policy,
    Retired,
)
from modicum.policy.predicates import Constant, predicate_text
from modicum.policy.rule_lookup import Place
from modicum.policy.rules import Rule, RuleSet, Stage
from modicum.policy.user_groups import grouped_through
from modicum.release import Vocabulary


def cells_of(unit: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the dimensions by which the rules of a unit add up separately, if any."""
    return tuple(_cells(unit, vocabulary))


def unlocking_of(unit: str, policy: Policy) -> str:
    """Return how the limits for a unit are unlocked; empty if they are whole at once.

    Args:
        unit: The unit.
        policy: The policy.
    """
    rotation = policy.rotation
    if rotation is None or not grouped_through(unit, policy.vocabulary):
        return ""
    rounds, slack = rotation.schedule.rounds, rotation.schedule.slack
    steps = "1 round" if rounds == 1 else f"{rounds} rounds"
    openers = rotation.opened_by
    by = "" if openers is None else f"; {' or '.join(openers)} may open rounds"
    rest = "nothing" if rotation.retired is Retired.CLOSED else "all that is left"
    return (
        f"in {steps} for which a user group is active, slack {number_spelled(slack)};"
        f" before, nothing, and {rest} once it is retired{by}"
    )


def _cells(unit: str, vocabulary: Vocabulary) -> Iterator[str]:
    population, facts = vocabulary.population, vocabulary.unit_facts.get(unit)
    around = vocabulary.covers.get(unit, frozenset()) | {unit}
    for partition in population.partitions.values():
        fixed = [one for one in partition.immutable if one in around]
        if fixed:
            yield f"{partition.name}, which no {_through(unit, fixed)} changes"
    if facts is not None and facts.period is not None:
        detail = population.time_detail.get(unit)
        near = "" if detail is None else f", {_near(facts.period, detail - 1)}"
        yield f"each {facts.period}{near}"
    grouped = grouped_through(unit, vocabulary)
    if grouped:
        yield f"each user group, which no {_through(unit, grouped)} leaves"


def _near(period: str, more: int) -> str:
    """Return the distinguished periods: the present one and some around it."""
    if not more:
        return f"the current {period} separately from all others"
    return f"the current {period} and {more} before and after it"


def _through(unit: str, fixed: Sequence[str]) -> str:
    """Return the unit for which something is declared; a smaller one inherits it."""
    return unit if unit in fixed else f"{unit}, within one {fixed[0]},"


#: Maximum number of rules listed above and below.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """An origin of a rule, and its position."""

    what: str
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class Neighbors:
    """Rules directly above or below one in the order of predicates and units.

    Attributes:
        count: How many there are in the same context or of the same scope, direct
            or not.
        direct: Ids of some that have no other one in between.
    """

    count: int
    direct: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleProfile:
    """A rule in full.

    Attributes:
        rule: The rule.
        matches_nothing: Whether no mechanism can fall under it.
        promise: Its guarantee, as text.
        origins: Its origins.
        filter_name: The policy's filter.
        own_filter: The filter of the budget; None for a rule about each release alone.
        witness: A rule that denies whatever this one denies, with its budget; None
            if this one is binding.
        cells: The dimensions of its cells; empty if it has one cell.
        unlocking: How its limits are unlocked as user groups take turns; empty if
            they are whole from the start.
        above: Rules about more.
        below: Rules about less.
    """

    rule: Rule
    matches_nothing: bool
    promise: str
    origins: tuple[Origin, ...]
    filter_name: str
    own_filter: Filter | None
    witness: tuple[str, Budget] | None
    cells: tuple[str, ...]
    unlocking: str
    above: Neighbors
    below: Neighbors


def rule_profiles(
    compiled: CompiledPolicy, places: Iterable[Place]
) -> Iterator[RuleProfile]:
    """Yield each rule in full."""
    orders = {
        stage: RuleOrder(stage_rules(compiled, stage), compiled.policy.vocabulary)
        for stage in Stage
    }
    for place in places:
        rules = stage_rules(compiled, place.stage)
        rule, order = rules[place.number], orders[place.stage]
        matches_nothing = place.number in order.nothing
        over_history = place.stage is Stage.HISTORY
        yield RuleProfile(
            rule=rule,
            matches_nothing=matches_nothing,
            promise=_nothing(rule, compiled.policy)
            if matches_nothing
            else _promise(rule, compiled.policy),
            origins=tuple(_origins(rule, compiled.policy)),
            filter_name=compiled.policy.filter_name,
            own_filter=compiled.filter_of(rule.budget) if over_history else None,
            witness=_witness(compiled, place),
            cells=cells_of(rule.unit, compiled.policy.vocabulary),
            unlocking=unlocking_of(rule.unit, compiled.policy) if over_history else "",
            above=_neighbors(rules, place.number, order, up=True),
            below=_neighbors(rules, place.number, order, up=False),
        )


def _witness(compiled: CompiledPolicy, place: Place) -> tuple[str, Budget] | None:
    over_history = place.stage is Stage.HISTORY
    pruned = compiled.pruned if over_history else compiled.pruned_alone
    witness = int(pruned.witness[place.number])
    if witness < 0:
        return None
    rules = stage_rules(compiled, place.stage)
    return rules.rule_id(witness), rules[witness].budget


def _neighbors(rules: RuleSet, number: int, order: RuleOrder, *, up: bool) -> Neighbors:
    """Return the rules above or below one, among those that share a part with it.

    Vacuous rules are left out: they would be below all others.

    The order is a product: one step up changes the scope or the context, not both.
    """
    if number in order.nothing:
        return Neighbors(0, ())
    base, context = divmod(number, len(rules.contexts))
    first = base * len(rules.contexts)
    same_scope = range(first, first + len(rules.contexts))
    same_context = range(context, len(rules), len(rules.contexts))

    def below(lower: int, upper: int) -> bool:
        return order.is_below(lower, upper) and not order.is_below(upper, lower)

    def beyond(one: int, other: int) -> bool:
        return below(one, other) if up else below(other, one)

    found = [
        other
        for other in sorted({*same_scope, *same_context} - {number})
        if other not in order.nothing and beyond(number, other)
    ]
    direct: list[str] = []
    for one in found:
        if not any(beyond(between, one) for between in found if between != one):
            direct.append(rules.rule_id(one))
            if len(direct) == NAMED:
                break
    return Neighbors(len(found), tuple(direct))


def _nothing(rule: Rule, policy: Policy) -> str:
    """Return why a rule about nothing is so."""
    base, name = base_policy_of(rule, policy)
    if isinstance(base, CategoryPolicy):
        category, level = _category(name)
        if not _members(policy, category, level):
            levels = " or ".join(one.value for one in level.includes())
            return f"nothing: no attribute belongs to `{category}` as {levels}"
    return "nothing: no mechanism can match it"


def _promise(rule: Rule, policy: Policy) -> str:
    about = _about(rule, policy)
    context = [predicate_text(s) for s in rule.settings if s != Constant(value=True)]
    where = f", with {' and '.join(context)}" if context else ""
    limit = f"{budget_text(rule.budget)} for each {rule.unit}"
    if rule.stage is Stage.RELEASE:
        base, _ = base_policy_of(rule, policy)
        days = None if base is None else base.requester_days
        window = f", and in all of one identity within {days} days," if days else ","
        return f"{about}{where}, in each release alone{window} stays within {limit}"
    return (
        f"{about}{where}, in all releases together, stays within {limit};"
        " other releases are treated as fixed"
    )


def _about(rule: Rule, policy: Policy) -> str:
    base, name = base_policy_of(rule, policy)
    match base:
        case AttributePolicy():
            return f"all that reads `{name}`"
        case CategoryPolicy():
            category, level = _category(name)
            return f"all that reads {' or '.join(_members(policy, category, level))}"
        case _:
            everything = rule.predicate == Constant(value=True)
            return (
                "everything"
                if everything
                else f"all with {predicate_text(rule.predicate)}"
            )


def base_policy_of(rule: Rule, policy: Policy) -> tuple[BasePolicy | None, str]:
    """Return the base policy of a rule, and the rest of the rule's scope."""
    stage = policy.base_policies if rule.stage is Stage.HISTORY else policy.per_release
    name, _, rest = rule.scope.partition(":")
    return next((one for one in stage if one.name == name), None), rest


def _category(name: str) -> tuple[str, Level]:
    category, _, level = name.rpartition("/")
    return category, Level(level)


def _members(policy: Policy, category: str, level: Level) -> list[str]:
    return [
        attribute.name
        for attribute in policy.attributes.values()
        if attribute.level(category) in level.includes()
    ]


def _origins(rule: Rule, policy: Policy) -> Iterator[Origin]:
    base, name = base_policy_of(rule, policy)
    if base is not None:
        yield Origin(f"policy `{base.name}`", base.mark)
    match base:
        case AttributePolicy():
            attribute = policy.attributes[name]
            yield Origin(f"attribute `{name}`, risk {attribute.risk}", attribute.mark)
            if name in base.override:
                yield Origin(f"its budget overrides that of {attribute.risk}", None)
        case CategoryPolicy():
            category, level = _category(name)
            risk = policy.categories[category]
            yield Origin(f"category `{category}`, risk {risk}", base.budget_mark)
            level_map = base.levels[level]
            yield Origin(f"level {level.value}", level_map.mark)
        case CustomPolicy() | None:
            pass
        case _:
            assert_never(base)
    extensions = policy.extensions if rule.context else ()
    for extension, setting, mark in zip(
        extensions, rule.context, rule.marks[1:], strict=True
    ):
        yield Origin(f"setting `{setting}` of `{extension.name}`", mark)


def budget_place(rule: Rule, policy: Policy) -> Mark | None:
    """Return the position of a rule's budget, as precisely as known."""
    base, _ = base_policy_of(rule, policy)
    if isinstance(base, AttributePolicy | CategoryPolicy):
        return base.budget_mark
    return rule.marks[0]


def coordinate_text(index: int) -> str:
    """Return the summed quantity of a filter's coordinate, as text.

    Examples:
        >>> coordinate_text(RHO)
        'rho, of zero-concentrated differential privacy'
    """
    fixed = {
        EPS: "pure eps",
        RHO: "rho, of zero-concentrated differential privacy",
        MU2: "mu squared, of Gaussian differential privacy",
    }
    if index in fixed:
        return fixed[index]
    order = number_text(ORDERS[index - FIRST_ORDER])
    return f"the Renyi divergence of order {order}"
