"""Semantics of comparisons of fields and constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct

from modicum.core.errors import Code
from modicum.policy.cel.diagnostics import (
    membership_test,
    needs_number,
    needs_text,
    not_a_list,
    path,
)
from modicum.policy.cel.fields import (
    AttributeName,
    Attributes,
    Bound,
    Bounds,
    KindField,
    LabelField,
    Operand,
    SizeOf,
    TextField,
    field_suggestion,
    unknown,
)
from modicum.policy.cel.tree import (
    CelError,
    Field,
    Listing,
    Part,
    Rewrite,
    outside,
)
from modicum.policy.implication.formulas import all_of, any_of, negation
from modicum.policy.predicates import (
    BoundAtMost,
    Constant,
    LabelIn,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    Scope,
    TextIn,
    TextPasses,
    TextTest,
)
from modicum.release import Vocabulary

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Side(Struct, frozen=True):
    """One side of a comparison: its meaning and its position."""

    value: Operand
    part: Part

    def text(self) -> str:
        """Return the constant text that this side must be.

        Raises:
            CelError: If it is something else.
        """
        if isinstance(self.value, str):
            return self.value
        raise needs_text(self.part)

    def elements(self) -> list[Side]:
        """Return the elements of a list, each with its place, if it has its own."""
        values = self.value if isinstance(self.value, tuple) else ()
        written = self.part.items if isinstance(self.part, Listing) else ()
        parts = written or (self.part,) * len(values)
        return [Side(*pair) for pair in zip(values, parts, strict=True)]


class Comparisons:
    """Lowers comparisons, and checks every word in them against a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    # --- equality and membership ---

    def same(self, left: Side, right: Side) -> Predicate:
        """Return the meaning of ``left == right``.

        Raises:
            CelError: If they cannot be compared, or a word is unknown.
        """
        if isinstance(left.value, str | int | AttributeName) and not isinstance(
            right.value, str
        ):
            left, right = right, left  # The constant is on the right.
        match left.value, right.value:
            case (str(), str()) | (int(), int()) | (AttributeName(), AttributeName()):
                return Constant(value=left.value == right.value)
            case (SizeOf() | Bound()) as field, int(number):
                return self._number("==", field, number, left.part)
            case ((SizeOf() | Bound() | int()), _):
                raise needs_number(right.part)
            case _, str(value):
                return self._equals_text(left, value, right.part)
            case (
                (LabelField() | TextField() | KindField()),
                (LabelField() | TextField() | KindField() | AttributeName()),
            ):
                raise outside(
                    right.part.at,
                    "a field can be compared with texts, not with a field",
                    help="compare each of them with the same text",
                )
            case _:
                raise needs_text(right.part)

    def _equals_text(self, side: Side, value: str, part: Part) -> Predicate:
        match side.value:
            case LabelField(scope=scope, name=name):
                known = self._vocabulary.labels[name].values
                what = f"value of label `{name}`"
                _check_known(Code.UNKNOWN_LABEL_VALUE, what, value, known, part)
                return LabelIn(scope, name, frozenset({value}))
            case TextField(scope=scope, name=name):
                return TextIn(scope, name, frozenset({value}))
            case KindField():
                from modicum.accounting.mechanisms import MECHANISM_KINDS

                _check_known(
                    Code.UNKNOWN_MECHANISM, "mechanism", value, MECHANISM_KINDS, part
                )
                return _kind_in([value])
            case AttributeName(name=name):
                return Constant(value=name == self._attribute(value, part))
            case Attributes() | Bounds():
                message = "a list cannot be compared with a text"
                error = CelError(Code.CEL_TYPE, message, side.part.at)
                raise error.mended_by(membership_test(value, side.part))
            case _:
                raise needs_text(side.part)

    def within(self, left: Side, right: Side) -> Predicate:
        """Return the meaning of ``left in right``.

        Raises:
            CelError: If the right side is no collection, or a word is unknown.
        """
        match right.value:
            case tuple():
                return any_of([self.same(left, one) for one in right.elements()])
            case Attributes() if isinstance(left.value, AttributeName):
                return ReadsAny(frozenset({left.value.name}))
            case Attributes():
                return ReadsAny(frozenset({self._attribute(left.text(), left.part)}))
            case Bounds():
                return BoundAtMost(self.unit(left), None)
            case _:
                raise not_a_list(left.value, right.part)

    # --- numbers ---

    def ordered(self, operator: str, left: Side, right: Side) -> Predicate:
        """Return the meaning of ``left <= right`` and the like.

        Raises:
            CelError: If the sides are no numbers.
        """
        match left.value, right.value:
            case int(one), int(other):
                found = {
                    "<": one < other,
                    "<=": one <= other,
                    ">": one > other,
                    ">=": one >= other,
                }
                return Constant(value=found[operator])
            case (SizeOf() | Bound()) as field, int(number):
                return self._number(operator, field, number, left.part)
            case int(number), (SizeOf() | Bound()) as field:
                return self._number(_MIRRORED[operator], field, number, right.part)
            case ((SizeOf() | Bound() | int()), _):
                raise needs_number(right.part)
            case _:
                raise outside(
                    left.part.at,
                    "only a size or a contribution bound can be compared with < and >",
                    help="compare texts and labels with ==, != and in",
                )

    def _number(
        self, operator: str, field: SizeOf | Bound, number: int, part: Part
    ) -> Predicate:
        def at_least(least: int) -> Predicate:
            return self._at_least(field, least, part)

        match operator:
            case ">=":
                return at_least(number)
            case ">":
                return at_least(number + 1)
            case "<":
                return negation(at_least(number))
            case "<=":
                return negation(at_least(number + 1))
            case _:
                return all_of([at_least(number), negation(at_least(number + 1))])

    def _at_least(self, field: SizeOf | Bound, least: int, part: Part) -> Predicate:
        if isinstance(field, Bound):
            # No bound is more than every number.
            below = any_of([BoundAtMost(field.unit, least - 1)])
            return negation(below)
        match field.of:
            case Attributes():
                if least > len(self._vocabulary.attributes):
                    return Constant(value=False)
                return any_of([ReadsAtLeast(least)])
            case TextField(scope=scope, name=name):
                if least > 1:
                    raise outside(
                        part.at,
                        "the size of a text can be compared with 0 only",
                        help="test whether it is 0, or greater than 0",
                    )
                empty = TextIn(scope, name, frozenset({""}))
                return negation(empty) if least == 1 else Constant(value=True)
            case _:
                assert_never(field.of)

    # --- texts ---

    def passes(self, whole: Side, test: TextTest, part: str) -> Predicate:
        """Return the meaning of ``whole.startsWith(part)`` and the like.

        Raises:
            CelError: If `whole` is not an open text.
        """
        match whole.value:
            case str(known) | AttributeName(name=known):
                return Constant(value=test.passes(known, part))
            case KindField():
                from modicum.accounting.mechanisms import MECHANISM_KINDS

                return _kind_in(
                    kind for kind in MECHANISM_KINDS if test.passes(kind, part)
                )
            case TextField(scope=scope, name=name):
                return any_of([TextPasses(scope, name, test, part)])
            case LabelField(name=name):
                raise self._label_tested(whole, name, test, part)
            case Attributes() | Bounds():
                error = needs_text(whole.part)
                error.help = "use exists or all"
                if test is TextTest.CONTAINS:
                    error.mended_by(membership_test(part, whole.part))
                raise error
            case _:
                raise needs_text(whole.part)

    def _label_tested(
        self, whole: Side, name: str, test: TextTest, part: str
    ) -> CelError:
        """Return the error for a question about a part of a label's value."""
        values = self._vocabulary.labels[name].values
        choices = ", ".join(f'"{one}"' for one in values if test.passes(one, part))
        reason = "the values of a label are known: list them"
        error = outside(whole.part.at, reason)
        return error.mended_by(Rewrite("", f"{path(whole.part)} in [{choices}]"))

    def has(self, field: Field) -> Predicate:
        """Return the meaning of ``has(release.purpose)``.

        Raises:
            CelError: If the field cannot be absent.
        """
        match field_suggestion(field, self._vocabulary):
            case TextField(scope=Scope.RELEASE as scope, name=name) if name != "id":
                return negation(TextIn(scope, name, frozenset({""})))
            case LabelField():
                reason = "a label always has a value, or its default"
            case Bounds() | Attributes():
                reason = "use `in`, or the size"
            case _:
                reason = "it is always present"
        raise CelError(
            Code.CEL_TYPE,
            f"`has` does not fit `{field.name}`",
            field.at,
            notes=(reason,),
        )

    # --- known words ---

    def unit(self, side: Side) -> str:
        """Return the unit that this side must name.

        Raises:
            CelError: If there is no such unit.
        """
        name = side.text()
        _check_known(Code.UNKNOWN_UNIT, "unit", name, self._vocabulary.units, side.part)
        return name

    def _attribute(self, name: str, part: Part) -> str:
        known = self._vocabulary.attributes
        _check_known(Code.UNKNOWN_ATTRIBUTE, "attribute", name, known, part)
        return name


def _check_known(
    code: Code, what: str, word: str, known: Iterable[str], part: Part
) -> None:
    if word not in known:
        raise unknown(code, what, word, known, part.at)


def _kind_in(kinds: Iterable[str]) -> Predicate:
    """Return that the mechanism is of one of the kinds, or a constant."""
    return any_of([TextIn(Scope.MECHANISM, "mechanism", frozenset(kinds))])
