"""From CEL text to a checked predicate.

cel-python parses; the tree is then checked against the vocabulary and lowered to
`predicates`. What is outside the subset is refused with its place: a policy that
this module accepts is decided by enumeration, never by running foreign code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from modicum.core.document import Node, Scalar
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.reading import nearest, text
from modicum.policy.predicates import (
    All,
    Any,
    Constant,
    LabelIn,
    Not,
    Predicate,
    ReadsAny,
    Scope,
    TextIn,
)
from modicum.release import Vocabulary
from modicum.release.vocabulary import METADATA

if TYPE_CHECKING:
    from lark import Token, Tree

    Part: TypeAlias = "Tree[Token] | Token"

#: Longer predicates are refused: a reviewer could not read them.
CHARACTERS_MAX = 2000
#: Deeper nesting is refused.
NESTING_MAX = 40

_MECHANISM_TEXTS = ("name", "mechanism")
_RELEASE_TEXTS = ("id", *METADATA)
_WITHHELD = {
    "cost": "a rule that depends on the cost would make losses incomparable",
    "unit": "every rule names its unit with the key `unit`",
    "contribution_bound": "guards, which would use it, come later",
}


def parse_predicate(node: Node, what: str, vocabulary: Vocabulary) -> Predicate:
    """Return the predicate that a CEL text means.

    Args:
        node: The text, at most `CHARACTERS_MAX` characters.
        what: What it is, for messages.
        vocabulary: Labels, label values and attributes that it may name.

    Raises:
        InputError: With file, line and column *inside* the text: bad syntax, an
            unknown field, label value or attribute, a type that does not fit, or
            something outside the subset.
    """
    source = text(node, what)
    assert isinstance(node, Scalar)
    return _Lowering(node, source, vocabulary).lower()


def _parser_tree(source: str) -> Tree[Token]:
    # Imported here: the grammar takes a tenth of a second to build.
    from celpy.celparser import CELParser

    tree: Tree[Token] = CELParser().parse(source)
    return tree


class _Lowering:
    """Lowers one CEL text; keeps what is needed to say where it is wrong."""

    def __init__(self, node: Scalar, source: str, vocabulary: Vocabulary) -> None:
        self._node = node
        self._source = source
        self._vocabulary = vocabulary

    def lower(self) -> Predicate:
        if len(self._source) > CHARACTERS_MAX:
            raise self._wrong(
                Code.CEL_LIMIT,
                f"the predicate has more than {CHARACTERS_MAX} characters",
            )
        return self._boolean(self._tree(), 0)

    def _tree(self) -> Tree[Token]:
        from celpy.celparser import CELParseError

        try:
            return _parser_tree(self._source)
        except CELParseError as error:
            line, column = getattr(error, "line", None), getattr(error, "column", None)
            if line is None or column is None:
                line, column = self._keyword(-1)
            raise self._syntax(line, column) from error
        except (ValueError, RecursionError) as error:
            raise self._syntax(1, 1) from error

    def _keyword(self, which: int) -> tuple[int, int]:
        """Return the place of a keyword; the parser forgets where they stand."""
        found = list(re.finditer(r"\b(true|false|null)\b", self._source))
        before = self._source[: found[which].start()] if found else ""
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def _at(self, part: Part) -> tuple[int, int]:
        """Return line and column of a part."""
        return _position(part) or self._keyword(0)

    def _syntax(self, line: int, column: int) -> InputError:
        lines = self._source.splitlines() or [""]
        rest = lines[min(line, len(lines)) - 1][column - 1 :]
        if rest.startswith("=") and not rest.startswith("=="):
            return self._wrong(
                Code.CEL_SYNTAX,
                "CEL syntax error",
                at=(line, column),
                label='expected an operator; "=" is not CEL',
                help='compare with "=="',
            )
        return self._wrong(Code.CEL_SYNTAX, "CEL syntax error", at=(line, column))

    # --- boolean expressions ---

    def _boolean(self, part: Part, depth: int) -> Predicate:
        if depth > NESTING_MAX:
            raise self._wrong(
                Code.CEL_LIMIT, f"the predicate nests deeper than {NESTING_MAX} levels"
            )
        part = _unwrapped(part)
        deeper = depth + 1
        match _kind(part), _children(part):
            case "conditionalor" as kind, [_, _]:
                terms = _terms(part, kind)
                return Any(tuple(self._boolean(term, deeper) for term in terms))
            case "conditionaland" as kind, [_, _]:
                terms = _terms(part, kind)
                return All(tuple(self._boolean(term, deeper) for term in terms))
            case "unary", [operator, operand] if _kind(operator) == "unary_not":
                return Not(self._boolean(operand, deeper))
            case "paren_expr", [inner]:
                return self._boolean(inner, deeper)
            case "relation", [operator, right]:
                return self._relation(_kind(operator), _children(operator)[0], right)
            case "literal", [token] if str(token) in {"true", "false"}:
                return Constant(str(token) == "true")
            case _:
                raise self._not_boolean(part)

    def _not_boolean(self, part: Part) -> InputError:
        if _kind(part) in {"literal", "member_dot", "ident", "list_lit"}:
            return self._wrong(
                Code.CEL_TYPE,
                "a predicate must be true or false",
                at=self._at(part),
                help='compare with "==" or "in"',
            )
        return self._outside(part)

    def _relation(self, operator: str, left: Part, right: Part) -> Predicate:
        left, right = _unwrapped(left), _unwrapped(right)
        match operator:
            case "relation_eq" | "relation_ne":
                if _kind(left) == "literal" and _kind(right) != "literal":
                    left, right = right, left
                same = self._one_of(left, [right])
                return same if operator == "relation_eq" else Not(same)
            case "relation_in" if _kind(left) == "literal":
                return self._reads(left, right)
            case "relation_in" if _kind(right) == "list_lit":
                return self._one_of(left, _list_items(right))
            case "relation_in":
                raise self._outside(right)
            case _:
                for side in (left, right):
                    if _kind(side) == "member_dot":
                        self._path(side)  # What may not be seen is said first.
                raise self._outside(left)

    def _reads(self, left: Part, right: Part) -> Predicate:
        """Lower ``"age" in m.attributes``."""
        if self._path(right) != (Scope.MECHANISM, "attributes"):
            raise self._outside(right)
        attribute = self._string(left)
        if attribute not in self._vocabulary.attributes:
            raise self._unknown(
                Code.UNKNOWN_ATTRIBUTE,
                "attribute",
                attribute,
                self._vocabulary.attributes,
                left,
            )
        return ReadsAny(frozenset({attribute}))

    def _one_of(self, left: Part, options: Iterable[Part]) -> Predicate:
        """Lower ``m.ml == "none"`` and ``m.ml in ["none", "black-box"]``."""
        scope, field = self._path(left)
        label = self._vocabulary.labels.get(field)
        values: set[str] = set()
        for option in options:
            value = self._string(option)
            if label is not None and value not in label.values:
                raise self._unknown(
                    Code.UNKNOWN_LABEL_VALUE,
                    f"value of label `{field}`",
                    value,
                    label.values,
                    option,
                )
            values.add(value)
        if label is not None:
            return LabelIn(scope, field, frozenset(values))
        if field == "attributes":
            raise self._wrong(
                Code.CEL_TYPE,
                "`m.attributes` is a list",
                at=self._at(left),
                help='write  "age" in m.attributes',
            )
        return TextIn(scope, field, frozenset(values))

    def _path(self, part: Part) -> tuple[Scope, str]:
        """Return the scope and field of ``m.x`` or ``release.x``."""
        if _kind(part) != "member_dot":
            raise self._outside(part)
        owner, field_token = _children(part)
        owner = _unwrapped(owner)
        if _kind(owner) == "member_dot":
            self._path(owner)  # `m.cost.rho` is refused for `m.cost`.
            raise self._outside(part)
        owner_name = str(_children(owner)[0]) if _kind(owner) == "ident" else ""
        field = str(field_token)
        known: dict[str, tuple[Scope, tuple[str, ...]]] = {
            "m": (Scope.MECHANISM, ("attributes", *_MECHANISM_TEXTS)),
            "release": (Scope.RELEASE, _RELEASE_TEXTS),
        }
        if owner_name not in known:
            raise self._unknown(Code.CEL_TYPE, "variable", owner_name, known, owner)
        scope, fields = known[owner_name]
        if field in _WITHHELD:
            raise self._wrong(
                Code.CEL_TYPE,
                f"predicates do not see `{owner_name}.{field}`",
                at=self._at(field_token),
                notes=(_WITHHELD[field],),
            )
        available = (*fields, *self._vocabulary.labels)
        if field not in available:
            raise self._unknown(
                Code.CEL_TYPE, f"field of `{owner_name}`", field, available, field_token
            )
        return scope, field

    def _string(self, part: Part) -> str:
        part = _unwrapped(part)
        token = str(_children(part)[0]) if _kind(part) == "literal" else ""
        if len(token) < 2 or token[0] not in "\"'" or token[-1] != token[0]:
            raise self._wrong(
                Code.CEL_TYPE,
                "only a text can stand here",
                at=self._at(part),
                help='write it in quotes: "…"',
            )
        if "\\" in token or token.startswith(('"""', "'''")):
            raise self._outside(part)
        return token[1:-1]

    # --- errors ---

    def _outside(self, part: Part) -> InputError:
        return self._wrong(
            Code.CEL_SUBSET,
            "this is outside the CEL subset of this version",
            at=self._at(part),
            help='use ==, !=, in, &&, ||, !, true, false, and "x" in m.attributes',
        )

    def _unknown(
        self, code: Code, what: str, word: str, known: Iterable[str], part: Part
    ) -> InputError:
        options = list(known)
        return self._wrong(
            code,
            f'unknown {what} "{word[:60]}" in the predicate',
            at=self._at(part),
            label=nearest(word, options),
            help="known: " + ", ".join(sorted(options)[:20]),
        )

    def _wrong(
        self,
        code: Code,
        message: str,
        *,
        at: tuple[int, int] = (1, 1),
        label: str = "",
        notes: tuple[str, ...] = (),
        help: str = "",  # noqa: A002 - the word users see
    ) -> InputError:
        return InputError(Problem(code, message, self._mark(at), label, notes, help))

    def _mark(self, at: tuple[int, int]) -> Mark | None:
        """Return the place in the file of a place in the predicate."""
        mark = self._node.mark
        if mark is None:
            return None
        line, column = at
        inside = mark.source[mark.column - 1 :].find(self._source)
        if line != 1 or inside < 0:
            return mark  # A block or escaped text: point at its beginning.
        return replace(mark, column=mark.column + inside + column - 1, length=1)


_TRANSPARENT = frozenset(
    {
        "expr",
        "conditionalor",
        "conditionaland",
        "relation",
        "addition",
        "multiplication",
        "unary",
        "member",
        "primary",
    }
)


def _unwrapped(part: Part) -> Part:
    """Descend through grammar levels that have one child and mean nothing."""
    while _kind(part) in _TRANSPARENT and len(_children(part)) == 1:
        part = _children(part)[0]
    return part


def _terms(part: Part, kind: str) -> list[Part]:
    """Return the terms of ``a || b || c``, which the grammar nests to the left."""
    terms: list[Part] = []
    while _kind(part) == kind and len(_children(part)) == 2:
        left, right = _children(part)
        terms.append(right)
        part = _unwrapped(left)
    return [part, *reversed(terms)]


def _kind(part: Part) -> str:
    return str(getattr(part, "data", "token"))


def _children(part: Part) -> list[Part]:
    return list(getattr(part, "children", []))


def _list_items(part: Part) -> list[Part]:
    return [item for child in _children(part) for item in _children(child)]


def _position(part: Part) -> tuple[int, int] | None:
    """Return line and column where a part begins, if the parser knows them."""
    place = getattr(part, "meta", part)
    line, column = getattr(place, "line", None), getattr(place, "column", None)
    if line is None or column is None:
        return None
    return int(line), int(column)
