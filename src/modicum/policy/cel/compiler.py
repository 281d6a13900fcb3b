"""From CEL text to a checked predicate.

`syntax` parses the text; here its tree is checked against the vocabulary and lowered to
`predicates`. Anything outside the subset is refused with its position: an accepted
policy is decided symbolically, never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from modicum.core.document import Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.reader import text
from modicum.policy.cel import tree as cel
from modicum.policy.cel.comparisons import Comparisons, Side
from modicum.policy.cel.diagnostics import (
    entry_suggestion,
    is_fraction,
    membership_test,
    needs_number,
    needs_text,
    path,
)
from modicum.policy.cel.fields import (
    AttributeName,
    Attributes,
    Bound,
    Bounds,
    Operand,
    SizeOf,
    TextField,
    field_suggestion,
)
from modicum.policy.cel.parser import NESTING_MAX, read_cel
from modicum.policy.cel.tree import CelError, Part, Rewrite, outside
from modicum.policy.implication.formulas import all_of, any_of, negation, simplified
from modicum.policy.predicates import (
    All,
    Any,
    Constant,
    Not,
    Predicate,
    ReadsAny,
    TextTest,
)
from modicum.release import Vocabulary
from modicum.release.vocabulary import METADATA

__all__ = ["CHARACTERS_MAX", "NESTING_MAX", "PARTS_MAX", "parse_predicate"]

#: Longer predicates are refused: a reviewer could not read them.
CHARACTERS_MAX = 2000
#: A predicate whose quantifiers unfold to more parts is refused.
PARTS_MAX = 20_000

_TEXT_TESTS = {test.value: test for test in TextTest}
_SCOPES = ("m", "release")
#: Common names of membership tests in other languages.
_ASKS_FOR = frozenset({"has", "exists", "any", "includes", "include"})
_COLLECTIONS = frozenset({"attributes", "contribution_bound"})

#: The values of quantifier variables.
_Variables: TypeAlias = Mapping[str, Operand]


def parse_predicate(node: Node, what: str, vocabulary: Vocabulary) -> Predicate:
    """Return the predicate of a CEL text.

    Args:
        node: The text, at most `CHARACTERS_MAX` characters.
        what: Its name, for messages.
        vocabulary: Labels, label values, attributes and units that it may name.

    Returns:
        The predicate as written; only the expansion of a quantifier is simplified.

    Raises:
        InputError: With file, line and column *inside* the text: bad syntax, an
            unknown field, label value, attribute, unit or mechanism, a type that does
            not fit, something outside the subset, or too much of it.
    """
    source = text(node, what)
    assert isinstance(node, Scalar)
    try:
        return _lowered(source, vocabulary)
    except CelError as error:
        from modicum.policy.cel.diagnostics import problem_of

        raise InputError(problem_of(error, node)) from error


def _lowered(source: str, vocabulary: Vocabulary) -> Predicate:
    if len(source) > CHARACTERS_MAX:
        message = f"the predicate has more than {CHARACTERS_MAX} characters"
        raise CelError(Code.CEL_LIMIT, message)
    try:
        return _Lowering(vocabulary).boolean(read_cel(source), {})
    except CelError as error:
        if error.code is Code.CEL_SUBSET or error.code is Code.CEL_TYPE:
            from modicum.policy.cel.hints import word_with_dashes

            raise word_with_dashes(source, vocabulary) or error from error
        raise


class _Lowering:
    """Lowers the tree of one predicate, and counts its expanded size."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._comparisons = Comparisons(vocabulary)
        self._parts = 0

    # --- boolean parts ---

    def boolean(self, part: Part, variables: _Variables) -> Predicate:
        """Return the predicate that a part means, which must be true or false."""
        self._count(1)
        match part:
            case cel.Literal(value=bool() as value):
                return Constant(value=value)
            case cel.Negation(part=inner):
                return Not(self.boolean(inner, variables))
            case cel.Junction(operator=operator, parts=parts):
                lowered = tuple(self.boolean(one, variables) for one in parts)
                return All(lowered) if operator == "&&" else Any(lowered)
            case cel.Choice(condition=condition, yes=yes, no=no):
                before = self._parts
                condition_value = self.boolean(condition, variables)
                self._count(self._parts - before)  # It is there twice.
                then = All((condition_value, self.boolean(yes, variables)))
                other = All((Not(condition_value), self.boolean(no, variables)))
                return Any((then, other))
            case cel.Comparison():
                return self._comparison(part, variables)
            case cel.Call(owner=None):
                return self._call(part, variables)
            case cel.Call(owner=owner) if owner is not None:
                return self._method(part, owner, variables)
            case _:
                raise self._not_boolean(part, variables)

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > PARTS_MAX:
            raise CelError(
                Code.CEL_LIMIT,
                f"the predicate unfolds to more than {PARTS_MAX} parts",
                notes=(
                    "`exists` and `all` repeat their body for each element,"
                    " and `?:` its condition",
                ),
                help="reduce the nesting",
            )

    def _not_boolean(self, part: Part, variables: _Variables) -> CelError:
        if not (isinstance(part, cel.Literal) or _is_scope(part)):
            self._operand(part, variables)  # A mistake inside is reported first.
        return CelError(
            Code.CEL_TYPE,
            "a predicate must be true or false",
            part.at,
            help='compare with "==" or "in"',
        )

    def _comparison(self, part: cel.Comparison, variables: _Variables) -> Predicate:
        self._refuse_bare_words(part, variables)
        left = self._side(part.left, variables)
        right = self._side(part.right, variables)
        match part.operator:
            case "==":
                return self._comparisons.same(left, right)
            case "!=":
                return negation(self._comparisons.same(left, right))
            case "in":
                if not isinstance(part.right, cel.Listing):  # Else it is counted.
                    self._count(len(right.elements()))
                return self._comparisons.within(left, right)
            case operator:
                return self._comparisons.ordered(operator, left, right)

    def _refuse_bare_words(self, part: cel.Comparison, variables: _Variables) -> None:
        """Refuse an unquoted word, or null, beside a field."""
        for one, other in ((part.left, part.right), (part.right, part.left)):
            if isinstance(other, cel.Call | cel.Item) and is_fraction(one):
                raise needs_number(one)
            if not isinstance(other, cel.Field | cel.Item):
                continue
            if isinstance(one, cel.Literal) and one.written == "null":
                raise self._nothing(part, one, variables)
            if isinstance(one, cel.Name) and not self._is_known(one, variables):
                self._operand(other, variables)  # A mistake there is reported first.
                from modicum.policy.cel.hints import bare_word

                raise bare_word(one, self._vocabulary, variables, compared=True)

    def _is_known(self, name: cel.Name, variables: _Variables) -> bool:
        return name.name in variables or _is_scope(name)

    def _nothing(
        self, part: cel.Comparison, null: cel.Literal, variables: _Variables
    ) -> CelError:
        """Return the error for a comparison with null."""
        other = part.right if null is part.left else part.left
        error = needs_text(null)
        error.help = "remove the comparison: it always has a value"
        intended = self._operand(other, variables)
        if isinstance(intended, TextField) and intended.name in METADATA:
            condition_value = f"has({path(other)})"
            error.rewrite = Rewrite(
                "", condition_value if part.operator == "!=" else f"!{condition_value}"
            )
        return error

    def _side(self, part: Part, variables: _Variables) -> Side:
        return Side(self._operand(part, variables), part)

    # --- calls ---

    def _call(self, part: cel.Call, variables: _Variables) -> Predicate:
        """Lower ``function(…)``."""
        match part.function, part.arguments:
            case "has", [cel.Field() as field]:
                return self._comparisons.has(field)
            case "matches", _:
                raise _pattern(part)
            case _:
                self._refuse_function(part)
                raise self._not_boolean(part, variables)

    @staticmethod
    def _refuse_function(part: cel.Call) -> None:
        from modicum.policy.cel.hints import unknown_function

        error = unknown_function(part.function, part.at)
        if error is not None:
            raise error

    def _method(self, part: cel.Call, owner: Part, variables: _Variables) -> Predicate:
        """Lower ``owner.function(…)``."""
        match part.function, part.arguments:
            case ("exists" | "all") as quantifier, [cel.Name(name=name, at=at), body]:
                if name in _SCOPES or name in variables:
                    message = f"`{name}` already has a meaning"
                    raise CelError(Code.CEL_TYPE, message, at, help="choose another")
                found = [
                    (
                        there,
                        simplified(self.boolean(body, {**variables, name: element})),
                    )
                    for there, element in self._elements(owner, variables)
                ]
                return _every(found) if quantifier == "all" else _some(found)
            case function, [given] if function in _TEXT_TESTS:
                passed = self._side(given, variables).text()
                whole = self._side(owner, variables)
                return self._comparisons.passes(whole, _TEXT_TESTS[function], passed)
            case "matches", _:
                raise _pattern(part)
            case _:
                raise self._no_method(part, owner, variables)

    def _no_method(
        self, part: cel.Call, owner: Part, variables: _Variables
    ) -> CelError:
        """Return the error for a call that is none of the known ones."""
        match part.function, part.arguments:
            case _, [cel.Literal(value=str(word))] if isinstance(owner, cel.Field):
                if part.function in _ASKS_FOR and owner.name in _COLLECTIONS:
                    error = outside(part.at, "test what is read with `in`")
                    return error.mended_by(membership_test(word, owner))
        self._refuse_function(part)
        return self._not_boolean(part, variables)

    def _elements(
        self, owner: Part, variables: _Variables
    ) -> list[tuple[Predicate, Operand]]:
        """Return the elements of a quantifier, each with its condition of presence."""
        match self._operand(owner, variables):
            case tuple() as elements:
                return [(Constant(value=True), element) for element in elements]
            case Attributes():
                return [
                    (ReadsAny(frozenset({name})), AttributeName(name))
                    for name in sorted(self._vocabulary.attributes)
                ]
            case _:
                raise outside(owner.at, "only a list and m.attributes have elements")

    # --- other parts ---

    def _operand(self, part: Part, variables: _Variables) -> Operand:
        match part:
            case cel.Literal(value=value) if not isinstance(value, bool | None):
                return value
            case cel.Literal():
                raise needs_text(part)
            case cel.Listing(items=items):
                self._count(len(items))
                return tuple(self._operand(one, variables) for one in items)
            case cel.Name():
                return self._variable(part, variables)
            case cel.Field():
                return field_suggestion(part, self._vocabulary)
            case cel.Item():
                return self._item(part, variables)
            case cel.Call():
                return self._size(part, variables)
            case _:
                raise outside(part.at, "booleans cannot be compared")

    def _variable(self, part: cel.Name, variables: _Variables) -> Operand:
        if part.name in variables:
            return variables[part.name]
        if _is_scope(part):
            message = "use one of its fields"
            raise CelError(Code.CEL_TYPE, message, part.at)
        from modicum.policy.cel.hints import bare_word

        raise bare_word(part, self._vocabulary, variables, compared=False)

    def _item(self, part: cel.Item, variables: _Variables) -> Operand:
        """Return the meaning of ``m.contribution_bound["user"]``."""
        owner = None if _is_scope(part.owner) else self._operand(part.owner, variables)
        if owner != Bounds():
            error = outside(part.at, "only m.contribution_bound has entries")
            raise error.mended_by(entry_suggestion(part))
        return Bound(self._comparisons.unit(self._side(part.key, variables)))

    def _size(self, part: cel.Call, variables: _Variables) -> Operand:
        """Return the meaning of ``size(x)`` and ``x.size()``."""
        given = [*([part.owner] if part.owner else []), *part.arguments]
        self._refuse_function(part)
        if part.function != "size" or len(given) != 1:
            raise outside(part.at)
        match self._operand(given[0], variables):
            case str() | tuple() as known:
                return len(known)
            case Attributes() | TextField() as field:
                return SizeOf(field)
            case _:
                raise outside(part.at, "only m.attributes and open texts have a size")


def _pattern(part: Part) -> CelError:
    return outside(
        part.at,
        "implication between regular expressions is not decidable fast enough",
        help="compare with texts, or use startsWith, endsWith or contains",
    )


def _is_scope(part: Part) -> bool:
    return isinstance(part, cel.Name) and part.name in _SCOPES


def _some(found: list[tuple[Predicate, Predicate]]) -> Predicate:
    return any_of([all_of(pair) for pair in found])


def _every(found: list[tuple[Predicate, Predicate]]) -> Predicate:
    return all_of([any_of([negation(there), body]) for there, body in found])
