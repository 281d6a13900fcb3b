"""All possible facts about a mechanism that some predicates can distinguish.

A world gives each *variable* one of finitely many values: a label one of its closed
values, an open text one that is mentioned or "another one", a bound one of the
intervals between the numbers it is compared with. A predicate becomes a *formula* whose
literals restrict a variable to some values, given as bits of a mask.

Two things relate variables, and `Worlds.possible` knows both: the total number of
attributes read, and which prefixes, suffixes and substrings another text can have at
once. So a formula that holds for a possible choice of values holds for some mechanism,
and the other way round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import assert_never

from msgspec import Struct

from modicum.accounting.mechanisms import MECHANISM_KINDS
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
    lowest,
)
from modicum.policy.predicates import (
    All,
    Any,
    Atom,
    BoundAtMost,
    Constant,
    Facts,
    LabelIn,
    Not,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    Scope,
    TextIn,
    TextPasses,
    TextTest,
    atoms,
)
from modicum.release import Vocabulary

#: The placeholder for another text without conditions.
_READABLE = "something-else"


def another_text(
    mentioned: Collection[str],
    must: Collection[TextPasses],
    may_not: Collection[TextPasses],
) -> str | None:
    """Return an unmentioned text that passes some tests, and fails others.

    If there is one, the minimal text is one: it has just the required parts, separated
    by an unused letter. Every text that passes those tests has these parts, so it
    passes whatever the minimal one passes.

    Args:
        mentioned: Texts that it may not be.
        must: Tests that it must pass.
        may_not: Tests that it may not pass.

    Returns:
        Such a text, or None if there is none.
    """
    parts = {test: [one.part for one in must if one.test is test] for test in TextTest}
    start = max(parts[TextTest.STARTS_WITH], key=len, default="")
    end = max(parts[TextTest.ENDS_WITH], key=len, default="")
    unmodeled = _strange([*mentioned, *(one.part for one in (*must, *may_not))])
    barest = unmodeled.join([start, *parts[TextTest.CONTAINS], end])
    for text in (_READABLE, barest):
        fits = all(one.test.passes(text, one.part) for one in must)
        if (
            fits
            and text not in mentioned
            and not any(one.test.passes(text, one.part) for one in may_not)
        ):
            return text
    return None


def _strange(texts: Iterable[str]) -> str:
    """Return a letter that occurs in no text."""
    used = set("".join(texts))
    letters = (chr(code) for code in range(ord("a"), 0x10000))
    return next(one for one in letters if one.isalpha() and one not in used)


_NO, _YES = 0b01, 0b10


class _Label(Struct, frozen=True):
    scope: Scope
    name: str


class _Text(Struct, frozen=True):
    """An open text; the value None is any text that no predicate mentions."""

    scope: Scope
    name: str


class _Bound(Struct, frozen=True):
    """A bound; a number stands for all from the one before, None for no bound."""

    unit: str


class _Group(Struct, frozen=True):
    """Attributes that no predicate distinguishes; the variable: whether one is read."""

    attributes: tuple[str, ...]


class _Size(Struct, frozen=True):
    """The number of attributes read; a value begins at each number compared with."""


class Worlds:
    """The variables that some predicates look at, and their values.

    Attributes:
        full: By variable, all its values.
    """

    def __init__(self, predicates: Iterable[Predicate], vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        considered = list(
            dict.fromkeys(atom for one in predicates for atom in atoms(one))
        )
        self._values: dict[Hashable, tuple[object, ...]] = {}
        self._passing: dict[_Text, list[TextPasses]] = defaultdict(list)
        self._groups: dict[frozenset[str], list[_Group]] = {}
        self._rest: tuple[str, ...] = ()
        self._label_values(considered)
        self._text_values(considered)
        self._bound_values(considered)
        self._attribute_values(considered)
        self.full: Domains = {
            variable: (1 << len(values)) - 1
            for variable, values in self._values.items()
        }

    # --- variables and their values ---

    def _label_values(self, considered: list[Atom]) -> None:
        for atom in considered:
            if isinstance(atom, LabelIn):
                key = _Label(atom.scope, atom.label)
                self._values[key] = self._vocabulary.labels[atom.label].values

    def _text_values(self, considered: list[Atom]) -> None:
        mentioned: dict[_Text, set[str]] = defaultdict(set)
        for atom in considered:
            if isinstance(atom, TextIn):
                mentioned[_Text(atom.scope, atom.field)] |= atom.values
            elif isinstance(atom, TextPasses):
                key = _Text(atom.scope, atom.field)
                mentioned[key] |= set()
                self._passing[key].append(atom)
                self._values[atom] = (False, True)
        for key, texts in mentioned.items():
            closed = key == _Text(Scope.MECHANISM, "mechanism")
            self._values[key] = MECHANISM_KINDS if closed else (*sorted(texts), None)

    def _bound_values(self, considered: list[Atom]) -> None:
        limits: dict[str, set[int]] = defaultdict(set)
        for atom in considered:
            if isinstance(atom, BoundAtMost):
                limits[atom.unit] |= {max(atom.limit or 0, 0)}
        for unit, numbers in limits.items():
            ends = sorted({*numbers, max(numbers) + 1} - {0})
            self._values[_Bound(unit)] = (*ends, None)

    def _attribute_values(self, considered: list[Atom]) -> None:
        sets = [atom.attributes for atom in considered if isinstance(atom, ReadsAny)]
        signatures: dict[str, list[int]] = defaultdict(list)
        for number, attributes in enumerate(sets):
            for attribute in attributes:
                signatures[attribute].append(number)
        alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for attribute, signature in sorted(signatures.items()):
            alike[tuple(signature)].append(attribute)
        self._groups = {attributes: [] for attributes in sets}
        for signed, members in alike.items():
            group = _Group(tuple(members))
            self._values[group] = (False, True)
            for number in signed:
                self._groups[sets[number]].append(group)
        self._rest = tuple(sorted(self._vocabulary.attributes - signatures.keys()))
        counts = {atom.count for atom in considered if isinstance(atom, ReadsAtLeast)}
        if counts:
            begins = sorted({0, *(count for count in counts if count > 0)})
            self._values[_Size()] = tuple(begins)

    # --- formulas ---

    def formula(self, predicate: Predicate, *, positive: bool = True) -> Formula:
        """Return the formula of a predicate, or of its negation.

        Args:
            predicate: One whose atoms were given to the constructor.
            positive: Whether the formula agrees with the predicate.
        """
        match predicate:
            case Not(part=part):
                return self.formula(part, positive=not positive)
            case All(parts=parts) | Any(parts=parts):
                inner = [self.formula(part, positive=positive) for part in parts]
                both = isinstance(predicate, All) == positive
                return both_of(inner) if both else either_of(inner)
            case atom:
                atom_value = self._atom(atom)
                return atom_value if positive else self._denied(atom_value)

    def _atom(self, atom: Atom) -> Formula:
        match atom:
            case Constant(value=value):
                return TRUE if value else FALSE
            case LabelIn(scope=scope, label=name, values=values):
                return self._literal(_Label(scope, name), values.__contains__)
            case TextIn(scope=scope, field=name, values=values):
                return self._literal(_Text(scope, name), values.__contains__)
            case TextPasses():
                return self._passes(atom)
            case ReadsAny(attributes=attributes):
                groups = self._groups[attributes]
                return either_of(Literal(group, _YES) for group in groups)
            case ReadsAtLeast(count=count):
                return self._literal(
                    _Size(), lambda begin: isinstance(begin, int) and begin >= count
                )
            case BoundAtMost(unit=unit, limit=limit):
                return self._literal(
                    _Bound(unit),
                    lambda end: (
                        isinstance(end, int) and (limit is None or end <= limit)
                    ),
                )
            case _:
                assert_never(atom)

    def _passes(self, atom: TextPasses) -> Formula:
        key = _Text(atom.scope, atom.field)
        mentioned = self._literal(
            key,
            lambda text: isinstance(text, str) and atom.test.passes(text, atom.part),
        )
        another = self._literal(key, lambda text: text is None)
        return either_of([mentioned, both_of([another, Literal(atom, _YES)])])

    def _literal(self, variable: Hashable, fits: Callable[[object], bool]) -> Literal:
        values = self._values[variable]
        return Literal(
            variable, sum(1 << bit for bit, value in enumerate(values) if fits(value))
        )

    def _denied(self, formula: Formula) -> Formula:
        match formula:
            case Literal(variable=variable, mask=mask):
                return Literal(variable, self.full[variable] & ~mask)
            case Both(parts=parts):
                return either_of(map(self._denied, parts))
            case Either(parts=parts):
                return both_of(map(self._denied, parts))

    # --- joint possibility ---

    def tied(self) -> list[list[Hashable]]:
        """Return lists of variables that limit each other beyond any formula."""
        found: list[list[Hashable]] = [
            [key, *passing] for key, passing in self._passing.items()
        ]
        if _Size() in self._values:
            groups = [one for one in self._values if isinstance(one, _Group)]
            found.append([_Size(), *groups])
        return found

    def possible(self, domains: Domains) -> bool:
        """Return whether the values that are left can be those of one mechanism.

        Args:
            domains: For every variable the values that are left; at least one.

        Returns:
            False only if no choice among them is possible. True means that some
            choice is, for each variable's values that a formula distinguishes.
        """
        return self._size(domains) is not None and all(
            self._another_text(key, domains) is not None for key in self._passing
        )

    def _size(self, domains: Domains) -> int | None:
        """Return the least possible number of attributes; None if there is none."""
        fewest, most = self._reads_possible(domains)
        if _Size() not in domains:
            return fewest
        begins = [begin for begin in self._values[_Size()] if isinstance(begin, int)]
        ends = [*(begin - 1 for begin in begins[1:]), most]
        # The remaining numbers need not be contiguous: "none, or more than two".
        for bit, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            size = max(begin, fewest)
            if domains[_Size()] >> bit & 1 and size <= min(end, most):
                return size
        return None

    def _reads_possible(self, domains: Domains) -> tuple[int, int]:
        """Return the smallest and largest number of attributes that can be read."""
        fewest, most = 0, len(self._rest)
        for variable, mask in domains.items():
            if isinstance(variable, _Group):
                fewest += mask == _YES
                most += len(variable.attributes) if mask & _YES else 0
        return fewest, most

    def _another_text(self, key: _Text, domains: Domains) -> str | None:
        """Return a text for "another one", or None if the conditions exclude it."""
        texts = [text for text in self._values[key] if isinstance(text, str)]
        if domains[key] != 1 << len(texts):
            return ""  # A text that is mentioned will do, or the kind is closed.
        must = [one for one in self._passing[key] if domains[one] == _YES]
        may_not = [one for one in self._passing[key] if domains[one] == _NO]
        return another_text(texts, must, may_not)

    # --- back to facts ---

    def facts(self, domains: Domains) -> Facts:
        """Return one mechanism among those that are left.

        Args:
            domains: Values that are possible together.
        """
        labels = {
            (scope, name): label.default
            for scope in Scope
            for name, label in self._vocabulary.labels.items()
        }
        texts: dict[tuple[Scope, str], str] = {}
        bounds: dict[str, int] = {}
        for variable, mask in domains.items():
            value = self._values[variable][lowest(mask)]
            match variable:
                case _Label(scope=scope, name=name):
                    labels[scope, name] = str(value)
                case _Text(scope=scope, name=name):
                    another = self._another_text(variable, domains) or ""
                    texts[scope, name] = value if isinstance(value, str) else another
                case _Bound(unit=unit) if isinstance(value, int):
                    bounds[unit] = value
        return Facts(self._attributes(domains), labels, texts, bounds)

    def _attributes(self, domains: Domains) -> frozenset[str]:
        read: list[str] = []
        more: list[str] = list(self._rest)
        for variable, mask in domains.items():
            if isinstance(variable, _Group):
                first, *others = variable.attributes
                read.extend([first] if mask == _YES else [])
                more.extend(others if mask == _YES else ())
                more.extend(variable.attributes if mask == _NO | _YES else ())
        size = self._size(domains) or 0
        return frozenset(read + more[: size - len(read)])
