"""Rules: what a policy compiles to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from modicum.accounting import Budget
from modicum.core.errors import Mark
from modicum.policy.predicates import Predicate


class Stage(Enum):
    """What a rule is held against."""

    HISTORY = "history"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Rule:
    """All matching mechanisms together stay within the budget, per unit.

    Attributes:
        id: Unique in the policy: scope and settings, `attr:age @standard`.
        stage: Whether it sums over history or looks at one release alone.
        scope: What it is about, without its context: `attr:age`.
        context: Its settings, one for each extension, in file order.
        unit: The privacy unit its loss is measured for.
        predicate: Which mechanisms it is about.
        settings: Predicates of its settings, one for each extension.
        when: The predicate in words of CEL, for people.
        budget: The limit.
        marks: Where it comes from: the base policy, then the settings.
    """

    id: str
    stage: Stage
    scope: str
    context: tuple[str, ...]
    unit: str
    predicate: Predicate
    settings: tuple[Predicate, ...]
    when: str
    budget: Budget
    marks: tuple[Mark | None, ...]
