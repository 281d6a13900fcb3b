"""Rules: the compiled policy, as a table that builds each rule on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias, overload

from msgspec import Struct

from modicum.accounting import Budget
from modicum.core.errors import Mark
from modicum.policy.model import Setting
from modicum.policy.predicates import Facts, Predicate, predicate_text
from modicum.policy.rule_index import RuleIndex

#: Positions of mechanisms in a release, from 0.
Places: TypeAlias = tuple[int, ...]


class Stage(Enum):
    """The stage of a rule."""

    HISTORY = "history"
    RELEASE = "release"


class RuleScope(Struct, frozen=True):
    """The scope of a rule.

    Attributes:
        stage: Whether it sums over history or looks at one release alone.
        scope: Its scope, without its context: `attr:age`.
        unit: The privacy unit its loss is measured for.
    """

    stage: Stage
    scope: str
    unit: str


class _Limit(RuleScope, frozen=True):
    """A rule: all matching mechanisms together stay within the budget, per unit.

    Attributes:
        predicate: Which mechanisms it is about.
        budget: The limit.
    """

    predicate: Predicate
    budget: Budget


class Rule(_Limit, frozen=True):
    """All matching mechanisms together stay within the budget, per unit.

    Attributes:
        id: Unique in the policy: scope and settings, `attr:age @standard`.
        context: Its settings, one for each extension, in file order.
        settings: Predicates of its settings, one for each extension.
        when: The predicate in CEL syntax, for display.
        marks: Its origins: the base policy, then the settings.
    """

    id: str
    context: tuple[str, ...]
    settings: tuple[Predicate, ...]
    when: str
    marks: tuple[Mark | None, ...]


class BaseRule(_Limit, frozen=True):
    """A rule before the extensions, which change its budget.

    Attributes:
        mark: The position of its base policy.
    """

    mark: Mark | None


class Context(Struct, frozen=True, dict=True):
    """One setting of each extension, in file order; none if there are none."""

    settings: tuple[Setting, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the settings."""
        return tuple(setting.name for setting in self.settings)

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """The predicates of the settings; all must hold."""
        return tuple(setting.predicate for setting in self.settings)

    @cached_property
    def suffix(self) -> str:
        """Return the context's suffix of a rule id."""
        return "".join(f" @{name}" for name in self.names)


class RuleSet(Sequence[Rule]):
    """The rules of one stage: every base rule in every context.

    Rule number `i` is base rule `i // len(contexts)` in context
    `i % len(contexts)`. A policy of 200,000 rules has some thousands of base rules
    and some dozens of contexts; only these are kept.

    Args:
        bases: The base rules, in file order.
        extensions: For each extension its settings, in file order.
        budgets: For each budget of a base rule, the budget in every context.
    """

    def __init__(
        self,
        bases: Sequence[BaseRule],
        extensions: Sequence[Sequence[Setting]],
        budgets: Mapping[Budget, tuple[Budget, ...]],
    ) -> None:
        self.bases = tuple(bases)
        self.extensions = tuple(tuple(settings) for settings in extensions)
        self.contexts = tuple(map(Context, product(*self.extensions)))
        # Budgets are slow to look up, and every decision needs those of its rules.
        self._rows = tuple(budgets[base.budget] for base in self.bases)

    def __len__(self) -> int:
        return len(self.bases) * len(self.contexts)

    @overload
    def __getitem__(self, number: int) -> Rule: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Rule, ...]: ...

    def __getitem__(self, number: int | slice) -> Rule | tuple[Rule, ...]:
        if isinstance(number, slice):
            return tuple(self[one] for one in range(*number.indices(len(self))))
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(number)
        return self._rule(*divmod(place, len(self.contexts)))

    def __iter__(self) -> Iterator[Rule]:
        return (self[number] for number in range(len(self)))

    def row(self, base: int) -> tuple[Budget, ...]:
        """Return the limits of a base rule in all contexts, without making rules."""
        return self._rows[base]

    def budget(self, base: int, context: int) -> Budget:
        """Return the limit of a base rule in a context, without making the rule."""
        return self.row(base)[context]

    def budgets(self) -> Iterator[tuple[Budget, str, Mark | None]]:
        """Yield each distinct limit, with the id and place of the first rule."""
        extended: set[Budget] = set()
        seen: set[Budget] = set()
        for base_place, base in enumerate(self.bases):
            if base.budget in extended:
                continue
            extended.add(base.budget)
            for context_place, context in enumerate(self.contexts):
                budget = self.budget(base_place, context_place)
                if budget not in seen:
                    seen.add(budget)
                    yield budget, base.scope + context.suffix, base.mark

    def lines(self, extension: int) -> Iterator[range]:
        """Yield contexts that differ only in the setting of one extension.

        Args:
            extension: The number of the extension, from 0.

        Yields:
            The contexts, one for each of its settings, in file order.
        """
        step = prod(map(len, self.extensions[extension + 1 :]))
        span = step * len(self.extensions[extension])
        for first in range(0, len(self.contexts), span):
            for start in range(first, first + step):
                yield range(start, start + span, step)

    def rule_id(self, number: int) -> str:
        """Return the id of a rule, without making the rule."""
        base, context = divmod(number, len(self.contexts))
        return self.bases[base].scope + self.contexts[context].suffix

    def number(self, rule_id: str) -> int | None:
        """Return the number of the rule with an id, or None."""
        scope, at, suffix = rule_id.partition(" @")
        base = self._scopes.get(scope)
        context = self._suffixes.get(at + suffix)
        if base is None or context is None:
            return None
        return base * len(self.contexts) + context

    def limit(self, rule_id: str) -> Budget | None:
        """Return the limit of the rule with an id, or None."""
        number = self.number(rule_id)
        if number is None:
            return None
        return self.budget(*divmod(number, len(self.contexts)))

    def matching(self, facts: Sequence[Facts]) -> Iterator[tuple[Rule, Places]]:
        """Yield each rule that any mechanism matches, and which ones.

        Args:
            facts: The facts about each mechanism of a release, in order.

        Yields:
            The rule, in the order of the file, and the positions, from 0, of the
            mechanisms it is about.
        """
        for number, about in self.finder.matching(facts).items():
            yield self[number], about

    @cached_property
    def finder(self) -> RuleIndex:
        """Return the index of the rules by mechanism."""
        return RuleIndex(
            [base.predicate for base in self.bases],
            [[one.predicate for one in settings] for settings in self.extensions],
        )

    @cached_property
    def _scopes(self) -> dict[str, int]:
        return {base.scope: place for place, base in enumerate(self.bases)}

    @cached_property
    def _suffixes(self) -> dict[str, int]:
        return {context.suffix: place for place, context in enumerate(self.contexts)}

    @cached_property
    def _texts(self) -> dict[Predicate, str]:
        """The texts of predicates, cached: most rules share theirs with others."""
        return {}

    def _when(self, predicate: Predicate) -> str:
        found = self._texts.get(predicate)
        if found is None:
            found = self._texts[predicate] = predicate_text(predicate)
        return found

    def _rule(self, base_place: int, context_place: int) -> Rule:
        base, context = self.bases[base_place], self.contexts[context_place]
        return Rule(
            id=base.scope + context.suffix,
            stage=base.stage,
            scope=base.scope,
            context=context.names,
            unit=base.unit,
            predicate=base.predicate,
            settings=context.predicates,
            when=_conjunction(map(self._when, (base.predicate, *context.predicates))),
            budget=self.budget(base_place, context_place),
            marks=(base.mark, *(setting.mark for setting in context.settings)),
        )


def _conjunction(parts: Iterator[str]) -> str:
    joined = "true"
    for part in parts:
        if joined == "true":
            joined = part
        elif part != "true":
            joined = f"({joined}) && ({part})"
    return joined
