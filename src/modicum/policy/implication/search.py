"""Exact decision of implication between predicates, with a counterexample.

The question is whether "narrow and not wide" can hold for any mechanism. The search
splits on one variable at a time; after every split, certain parts are simplified away.
No normal form is built that could be larger than the question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

from modicum.policy.implication.formulas import (
    FALSE,
    TRUE,
    Both,
    Domains,
    Either,
    Formula,
    Literal,
    both_of,
    either_of,
    simplified,
    substituted,
)
from modicum.policy.implication.worlds import Worlds
from modicum.policy.predicates import (
    Atom,
    BoundAtMost,
    Constant,
    Facts,
    LabelIn,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    TextIn,
    TextPasses,
    atoms,
    quoted,
)
from modicum.release import Vocabulary

__all__ = [
    "STEPS_MAX",
    "UndecidedError",
    "counterexample",
    "implies",
    "satisfiable",
    "simplified",
    "substituted",
    "witness",
]

#: A question that takes more steps (parts of formulas visited) stays undecided.
STEPS_MAX = 50_000


class UndecidedError(ValueError):
    """The search took too many steps; nothing is known."""


def implies(narrow: Predicate, wide: Predicate, vocabulary: Vocabulary) -> bool:
    """Return whether `wide` holds for every mechanism for which `narrow` does.

    Returns:
        True only if it is proven; False also where the search took too long.
    """
    try:
        return witness(narrow, wide, vocabulary) is None
    except UndecidedError:
        return False


def satisfiable(predicate: Predicate, vocabulary: Vocabulary) -> bool:
    """Return whether a predicate holds for any mechanism.

    Returns:
        False only if it is proven; True also where the search took too long.
    """
    return not implies(predicate, Constant(value=False), vocabulary)


def counterexample(
    narrow: Predicate, wide: Predicate, vocabulary: Vocabulary
) -> Mapping[str, str] | None:
    """Return a mechanism for which `narrow` holds and `wide` does not.

    Returns:
        By CEL path, the values of all that either predicate uses; None if the claim is
        true.

    Raises:
        UndecidedError: If the search takes more than `STEPS_MAX` steps.
    """
    facts = witness(narrow, wide, vocabulary)
    if facts is None:
        return None
    considered = [atom for one in (narrow, wide) for atom in atoms(one)]
    return dict(sorted(_in_words(considered, facts)))


def witness(narrow: Predicate, wide: Predicate, vocabulary: Vocabulary) -> Facts | None:
    """Return facts for which `narrow` holds and `wide` does not, or None.

    Raises:
        UndecidedError: If the search takes more than `STEPS_MAX` steps.
    """
    worlds = Worlds((narrow, wide), vocabulary)
    claim_broken = both_of(
        [worlds.formula(narrow), worlds.formula(wide, positive=False)]
    )
    domains = _Search(worlds).solve(claim_broken)
    return None if domains is None else worlds.facts(domains)


class _Search:
    """Looks for values that make a formula true, and counts its steps."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._left = dict(worlds.full)
        self._undo: list[tuple[Hashable, int]] = []
        self._steps = 0

    def solve(self, formula: Formula) -> Domains | None:
        """Return the remaining values of every variable, or None if there are none."""
        rest = self._propagated(formula)
        if rest == FALSE:
            return None
        # The results of parts cannot conflict: they share nothing.
        parts = _independent(rest, self._worlds.tied())
        return self._left if all(self._split(part) for part in parts) else None

    def _split(self, formula: Formula) -> bool:
        """Narrow the variables so that the formula is true; return if that works."""
        waiting: list[tuple[int, Literal | None, Formula]]
        waiting = [(len(self._undo), None, formula)]
        while waiting:
            known, choice, rest = waiting.pop()
            self._forget(known)
            if choice is not None:
                self._narrow(choice.variable, choice.mask)
            rest = self._propagated(rest)
            if rest == TRUE:
                return True
            if rest != FALSE:
                literal = _next(rest)
                for mask in (~literal.mask, literal.mask):
                    choice = Literal(literal.variable, mask)
                    waiting.append((len(self._undo), choice, rest))
        return False

    def _narrow(self, variable: Hashable, mask: int) -> None:
        self._undo.append((variable, self._left[variable]))
        self._left[variable] &= mask

    def _forget(self, known: int) -> None:
        """Undo narrowings down to a number of known ones."""
        while len(self._undo) > known:
            variable, mask = self._undo.pop()
            self._left[variable] = mask

    def _propagated(self, formula: Formula) -> Formula:
        """Return the remaining formula once all consequences are narrowed.

        False is returned also where the values left are impossible together.
        """
        while True:
            formula = self._reduced(formula)
            certain = [one for one in _conjuncts(formula) if isinstance(one, Literal)]
            for literal in certain:
                self._narrow(literal.variable, literal.mask)
                if not self._left[literal.variable]:
                    return FALSE
            if not certain:
                break
        return formula if self._worlds.possible(self._left) else FALSE

    def _reduced(self, formula: Formula) -> Formula:
        """Return the formula without its decided parts."""
        self._steps += 1
        if self._steps > STEPS_MAX:
            message = f"not decided in {STEPS_MAX} steps"
            raise UndecidedError(message)
        match formula:
            case Literal(variable=variable, mask=mask):
                left = self._left[variable]
                if not left & mask:
                    return FALSE
                return formula if left & ~mask else TRUE
            case Both(parts=parts):
                return both_of(self._until(FALSE, parts))
            case Either(parts=parts):
                return either_of(self._until(TRUE, parts))

    def _until(self, decisive: Formula, parts: Iterable[Formula]) -> Iterator[Formula]:
        """Yield the reduced parts up to one that decides the whole."""
        for part in parts:
            reduced = self._reduced(part)
            yield reduced
            if reduced == decisive:
                return


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, Both) else (formula,)


def _next(formula: Formula) -> Literal:
    """Return the literal to split on: in the part with the fewest options."""
    while not isinstance(formula, Literal):
        if isinstance(formula, Both):
            formula = min(formula.parts, key=_ways_out)
        else:
            formula = formula.parts[0]
    return formula


def _ways_out(formula: Formula) -> int:
    return len(formula.parts) if isinstance(formula, Either) else 1


def _independent(formula: Formula, tied: list[list[Hashable]]) -> list[Formula]:
    """Return parts, all of which must be true, that have no variable in common."""
    parts = _conjuncts(formula)
    same: dict[Hashable, Hashable] = {}
    for variables in (*tied, *map(_variables, parts)):
        first, *others = [_root(same, one) for one in variables]
        same.update({other: first for other in others if other != first})
    by_root: dict[Hashable, list[Formula]] = defaultdict(list)
    for part in parts:
        by_root[_root(same, next(_variables(part)))].append(part)
    return [both_of(group) for group in by_root.values()]


def _root(same: dict[Hashable, Hashable], variable: Hashable) -> Hashable:
    """Return the representative of equal variables, with path compression."""
    while variable in same:
        above = same[variable]
        same[variable] = same.get(above, above)
        variable = same[variable]
    return variable


def _variables(formula: Formula) -> Iterator[Hashable]:
    if isinstance(formula, Literal):
        yield formula.variable
    else:
        for part in formula.parts:
            yield from _variables(part)


def _in_words(considered: Iterable[Atom], facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield path and value of the atoms' subjects, as texts."""
    for atom in considered:
        match atom:
            case LabelIn(scope=scope, label=name):
                yield f"{scope.value}.{name}", facts.labels[scope, name]
            case TextIn(scope=scope, field=name) | TextPasses(scope=scope, field=name):
                yield f"{scope.value}.{name}", facts.texts.get((scope, name), "")
            case ReadsAny() | ReadsAtLeast():
                yield "m.attributes", ", ".join(sorted(facts.attributes)) or "none"
            case BoundAtMost(unit=unit):
                bound = facts.bounds.get(unit)
                path = f"m.contribution_bound[{quoted(unit)}]"
                yield path, "absent" if bound is None else str(bound)
            case Constant():
                pass
