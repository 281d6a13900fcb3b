"""The order of the rules, as a Hasse diagram: which rule counts all that another does.

A rule is below another one if the other is charged for whatever it is charged for. The
diagram keeps only the edges that do not follow from others; rules that are below each
other share a node.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from modicum.accounting.budgets import budget_text
from modicum.core.diagnostics import shortened
from modicum.core.errors import Code
from modicum.core.reader import fail
from modicum.policy.compiler import CompiledPolicy
from modicum.policy.predicates import Predicate
from modicum.policy.pruning.logic import Logic
from modicum.policy.pruning.result import Pruned
from modicum.policy.rules import RuleSet, Stage
from modicum.policy.vacuous_rules import VacuousRules
from modicum.release import Vocabulary


class RuleOrder:
    """Decides whether one rule is below another.

    A rule is below another one if the other matches every mechanism that it matches,
    and its unit is the other's or is covered by it.

    Args:
        rules: The rules, all of one stage.
        vocabulary: The vocabulary of their predicates, and the units.
    """

    def __init__(self, rules: RuleSet, vocabulary: Vocabulary) -> None:
        self._rules = rules
        self._vocabulary = vocabulary
        self._logic = Logic(vocabulary)
        #: The rules that no mechanism can fall under.
        self.nothing = VacuousRules(rules, self._logic)
        self._redundant: dict[tuple[int, Predicate], bool] = {}

    def above(self, numbers: Sequence[int]) -> list[int]:
        """Return for each rule those above it and itself, by place, as bits."""
        return [
            sum(
                1 << place
                for place, upper in enumerate(numbers)
                if lower == upper or self.is_below(lower, upper)
            )
            for lower in numbers
        ]

    def is_below(self, lower: int, upper: int) -> bool:
        """Return whether a rule is below another; True only if it is proven."""
        covers = self._vocabulary.covers
        own, other = self._unit(lower), self._unit(upper)
        if own != other and other not in covers.get(own, frozenset()):
            return False
        return lower in self.nothing or all(
            self._implies(lower, wide) for wide in self._parts(upper)
        )

    def _unit(self, number: int) -> str:
        return self._rules.bases[number // len(self._rules.contexts)].unit

    def _parts(self, number: int) -> tuple[Predicate, ...]:
        base, context = divmod(number, len(self._rules.contexts))
        predicate = self._rules.bases[base].predicate
        return (predicate, *self._rules.contexts[context].predicates)

    def _implies(self, number: int, wide: Predicate) -> bool:
        found = self._redundant.get((number, wide))
        if found is None:
            found = self._logic.implies(self._parts(number), wide)
            self._redundant[number, wide] = found
        return found


#: Maximum number of drawn nodes: more are unreadable.
NODES_MAX = 200
#: More rules are not compared with each other.
COMPARED_MAX = 2000
#: The size of a rule's neighborhood in steps up and down.
STEPS = 2


@dataclass(frozen=True, slots=True)
class HasseRule:
    """The displayed part of a rule.

    Attributes:
        number: Its number among the rules of its stage.
        scope: Its scope, without its context.
        context: Its settings.
        budget: Its limit, as a policy writes it.
        witness: The id of the rule that makes it superfluous; empty if it constrains.
    """

    number: int
    scope: str
    context: tuple[str, ...]
    budget: str
    witness: str

    @property
    def id(self) -> str:
        """The rule's id."""
        return self.scope + "".join(f" @{setting}" for setting in self.context)


@dataclass(frozen=True, slots=True)
class HasseNode:
    """Rules about the same mechanisms and unit; usually one.

    Attributes:
        rules: The rules, in the order of the file; at least one.
        unit: Their privacy unit.
    """

    rules: tuple[HasseRule, ...]
    unit: str

    @property
    def redundant(self) -> bool:
        """Whether all of its rules are redundant by others."""
        return all(rule.witness for rule in self.rules)


#: The number of a node, and of one right above it.
Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hasse:
    """A Hasse diagram.

    Attributes:
        title: Its title.
        nodes: The nodes, in the order of the file.
        edges: Each step from a node to one right above it, sorted.
        ways: The edges on the path from a redundant rule to its witness.
    """

    title: str
    nodes: tuple[HasseNode, ...]
    edges: tuple[Edge, ...]
    ways: frozenset[Edge]

    def upper(self) -> Mapping[int, Sequence[int]]:
        """Return for each node those right above it; nothing for a top."""
        return _grouped(self.edges)

    def lower(self) -> Mapping[int, Sequence[int]]:
        """Return for each node those right below it; nothing for a bottom."""
        return _grouped((upper, lower) for lower, upper in self.edges)


def hasse(
    compiled: CompiledPolicy, numbers: Iterable[int], *, stage: Stage = Stage.HISTORY
) -> Hasse:
    """Return the Hasse diagram of some rules.

    Args:
        compiled: The policy.
        numbers: The numbers of the rules among those of the stage.
        stage: Whether they are the rules over history or on each release alone.

    Raises:
        InputError: If they are more than `COMPARED_MAX`.
    """
    chosen = sorted(set(numbers))
    if len(chosen) > COMPARED_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"{len(chosen)} rules are too many to compare: at most {COMPARED_MAX}",
            help=_FEWER,
        )
    rules, pruned = rules_of(compiled, stage)
    above = _closed(RuleOrder(rules, compiled.policy.vocabulary).above(chosen))
    groups: dict[int, list[int]] = defaultdict(list)
    for place, mask in enumerate(above):
        groups[mask].append(place)  # Equal to each other exactly if below the same.
    nodes = tuple(
        HasseNode(
            rules=tuple(_drawn(rules, pruned, chosen[place]) for place in places),
            unit=rules.bases[chosen[places[0]] // len(rules.contexts)].unit,
        )
        for places in groups.values()
    )
    edges = _reduced(above, [places[0] for places in groups.values()])
    diagram = Hasse(_title(compiled, stage), nodes, edges, frozenset())
    return replace(diagram, ways=frozenset(_ways(diagram, pruned)))


def rules_of(compiled: CompiledPolicy, stage: Stage) -> tuple[RuleSet, Pruned]:
    """Return the rules of a stage, and which of them are superfluous."""
    if stage is Stage.HISTORY:
        return compiled.rules, compiled.pruned
    return compiled.release_rules, compiled.pruned_alone


def neighborhood(
    diagram: Hasse, numbers: Collection[int], *, steps: int = STEPS
) -> Hasse:
    """Return the rules within a number of steps above or below some rules.

    Args:
        diagram: A diagram in which the rules are.
        numbers: The numbers of the rules, at least one; several are of one scope.
        steps: How many steps.
    """
    found = [
        (place, rule)
        for place, node in enumerate(diagram.nodes)
        for rule in node.rules
        if rule.number in numbers
    ]
    centers = {place for place, _ in found}
    name = found[0][1].id if len(found) == 1 else found[0][1].scope
    kept = set(centers)
    for onward in (diagram.upper(), diagram.lower()):
        reached = centers
        for _ in range(steps):
            reached = {one for place in reached for one in onward.get(place, ())}
            kept |= reached
    places = {old: new for new, old in enumerate(sorted(kept))}
    renamed = {
        (lower, upper): (places[lower], places[upper])
        for lower, upper in diagram.edges
        if lower in places and upper in places
    }
    return Hasse(
        title=f"{diagram.title} around {name}",
        nodes=tuple(diagram.nodes[old] for old in sorted(kept)),
        edges=tuple(sorted(renamed.values())),
        ways=frozenset(renamed[edge] for edge in diagram.ways if edge in renamed),
    )


def refuse_crowded(diagram: Hasse) -> None:
    """Refuse an unreadable diagram.

    Raises:
        InputError: If it has more than `NODES_MAX` nodes.
    """
    if len(diagram.nodes) > NODES_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"the diagram would have {len(diagram.nodes)} nodes, more than {NODES_MAX}",
            help=_FEWER,
        )


_FEWER = "select a rule (--rule), or fewer rules (--context, --unit or --binding)"


def summary(diagram: Hasse) -> str:
    """Return a one-sentence summary of a diagram."""
    rules = [rule for node in diagram.nodes for rule in node.rules]
    redundant = sum(1 for rule in rules if rule.witness)
    covered = {lower for lower, _ in diagram.edges}
    tops = [
        node.rules[0].id
        for place, node in enumerate(diagram.nodes)
        if place not in covered
    ]
    return (
        f"{_count(len(rules), 'rule')}: {len(rules) - redundant} binding,"
        f" {redundant} redundant; at the top {shortened(tops, 3)}."
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _closed(above: list[int]) -> list[int]:
    """Return the transitive closure: a consequence of two proofs is proven."""
    closed = list(above)
    for middle in range(len(closed)):
        for lower, mask in enumerate(closed):
            if mask >> middle & 1:
                closed[lower] = mask | closed[middle]
    return closed


def _reduced(above: Sequence[int], places: Sequence[int]) -> tuple[Edge, ...]:
    """Return the steps between nodes that do not follow from others."""
    only = sum(1 << place for place in places)
    node = {place: number for number, place in enumerate(places)}
    strictly = {place: above[place] & only & ~(1 << place) for place in places}
    edges: list[Edge] = []
    for place in places:
        direct = strictly[place]
        for higher in _bits(strictly[place]):
            direct &= ~strictly[higher]
        edges += [(node[place], node[upper]) for upper in _bits(direct)]
    return tuple(sorted(edges))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _ways(diagram: Hasse, pruned: Pruned) -> Iterator[Edge]:
    """Yield the edges of a shortest path from each redundant rule to its witness."""
    upper = diagram.upper()
    at = {
        rule.number: place
        for place, node in enumerate(diagram.nodes)
        for rule in node.rules
    }
    for number, place in at.items():
        goal = at.get(pruned.witness[number])
        if goal is None:
            continue  # It constrains, or its witness is not in the diagram.
        came: dict[int, int] = {place: place}
        waiting = deque([place])
        while waiting and goal not in came:
            here = waiting.popleft()
            for onward in upper.get(here, ()):
                if onward not in came:
                    came[onward] = here
                    waiting.append(onward)
        here = goal if goal in came else place
        while here != place:
            yield came[here], here
            here = came[here]


def _drawn(rules: RuleSet, pruned: Pruned, number: int) -> HasseRule:
    base, context = divmod(number, len(rules.contexts))
    witness = pruned.witness[number]
    return HasseRule(
        number=number,
        scope=rules.bases[base].scope,
        context=rules.contexts[context].names,
        budget=budget_text(rules.budget(base, context)),
        witness=rules.rule_id(witness) if witness >= 0 else "",
    )


def _title(compiled: CompiledPolicy, stage: Stage) -> str:
    alone = " about each release alone" if stage is Stage.RELEASE else ""
    return f"Rules of {compiled.policy.name}{alone}"


def _grouped(pairs: Iterable[Edge]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for first, second in pairs:
        found[first].append(second)
    return {first: sorted(found[first]) for first in sorted(found)}
