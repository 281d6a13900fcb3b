"""Rules about nothing: no mechanism can fall under them, so they never deny.

A category without members has such rules; so has a policy whose predicate contradicts
a setting of an extension.
"""

from __future__ import annotations

from modicum.policy.predicates import Predicate, ReadsAny
from modicum.policy.pruning.logic import Logic
from modicum.policy.rules import RuleSet


class VacuousRules:
    """Decides which rules are vacuous.

    Args:
        rules: The rules.
        logic: Decides satisfiability.
    """

    def __init__(self, rules: RuleSet, logic: Logic) -> None:
        self._bases = [base.predicate for base in rules.bases]
        self._contexts = [context.predicates for context in rules.contexts]
        self._logic = logic
        self._impossible = [not logic.satisfiable(parts) for parts in self._contexts]
        self._reading = [
            any(logic.looks(part).attributes for part in parts)
            for parts in self._contexts
        ]
        self._known: dict[int, bool] = {}

    def __contains__(self, number: int) -> bool:
        """Return whether the rule with this number is about nothing; proven if so."""
        found = self._known.get(number)
        if found is None:
            base, context = divmod(number, len(self._contexts))
            found = self._is_empty(self._bases[base], context)
            self._known[number] = found
        return found

    def _is_empty(self, predicate: Predicate, context: int) -> bool:
        if self._impossible[context]:
            return True
        if isinstance(predicate, ReadsAny) and not self._reading[context]:
            return not predicate.attributes  # Nothing else of the context is read.
        return not self._logic.satisfiable((predicate, *self._contexts[context]))
