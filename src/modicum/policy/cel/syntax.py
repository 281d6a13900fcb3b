"""From CEL text to a small tree of our own, each part with its place.

cel-python parses; this module takes from its tree what the subset may contain, and
refuses the rest. What the parts mean is for `modicum.policy.cel.lowering` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from modicum.core.errors import Code
from modicum.policy.cel.literals import NotInSubsetError, text_value, whole_value
from modicum.policy.cel.slips import chained, negation_as_function, syntax_error
from modicum.policy.cel.tree import (
    Call,
    CelError,
    Choice,
    Comparison,
    Field,
    Item,
    Junction,
    Listing,
    Literal,
    Name,
    Negation,
    Part,
    Place,
    outside,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    Branch: TypeAlias = "Tree[Token] | Token"

#: Deeper nesting is refused.
NESTING_MAX = 40

_RELATIONS = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_ge": ">=",
    "relation_gt": ">",
    "relation_eq": "==",
    "relation_ne": "!=",
    "relation_in": "in",
}
_JUNCTIONS = {"conditionalor": "||", "conditionaland": "&&"}


def read_cel(source: str) -> Part:
    """Return the tree of a CEL text.

    Args:
        source: The text.

    Raises:
        CelError: If it is not CEL, nests too deeply, or uses something that has no
            meaning in the subset wherever it stands.
    """
    return _Reader(source).part(_tree(source), 0)


def _tree(source: str) -> Tree[Token]:
    # Imported here: the grammar takes a tenth of a second to build.
    from celpy.celparser import CELParseError, CELParser

    try:
        tree: Tree[Token] = CELParser().parse(source)
    except CELParseError as error:
        line, column = getattr(error, "line", None), getattr(error, "column", None)
        if line is None or column is None:
            line, column = (_keywords(source) or [(1, 1)])[-1]
        raise syntax_error(source, (line, column)) from error
    except (ValueError, RecursionError) as error:
        raise syntax_error(source, (1, 1)) from error
    return tree


_WORDS = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|//[^\n]*|(?<![\w.])(true|false|null)\b"""
)


def _keywords(source: str) -> list[Place]:
    """Return the places of constants, which the parser forgets."""
    found: list[Place] = []
    for match in _WORDS.finditer(source):
        if match[1]:
            before = source[: match.start()]
            column = len(before) - (before.rfind("\n") + 1) + 1
            found.append((before.count("\n") + 1, column))
    return found


class _Reader:
    """Walks the parser's tree from left to right."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._keywords: Iterator[Place] = iter(_keywords(source))

    def part(self, branch: Branch, depth: int) -> Part:
        if depth > NESTING_MAX:
            raise CelError(
                Code.CEL_LIMIT, f"the predicate nests deeper than {NESTING_MAX} levels"
            )
        branch = _unwrapped(branch)
        deeper = depth + 1
        match _kind(branch), _children(branch):
            case ("conditionalor" | "conditionaland") as kind, [_, _]:
                parts = tuple(self.part(one, deeper) for one in _terms(branch, kind))
                return Junction(_JUNCTIONS[kind], parts, parts[0].at)
            case "unary", [operator, operand] if _kind(operator) == "unary_not":
                return Negation(self.part(operand, deeper), _place(branch))
            case "paren_expr", [inner]:
                return self.part(inner, deeper)
            case "relation", [operator, right]:
                if _relations_within(operator) == 1:
                    raise chained(self._source)
                left = self.part(_children(operator)[0], deeper)
                relation = _RELATIONS[_kind(operator)]
                return Comparison(relation, left, self.part(right, deeper), left.at)
            case "expr", [condition, yes, no]:
                chosen = self.part(condition, deeper)
                return Choice(
                    chosen, self.part(yes, deeper), self.part(no, deeper), chosen.at
                )
            case _:
                return self._operand(branch, deeper)

    def _operand(self, branch: Branch, depth: int) -> Part:
        at = _place(branch)
        match _kind(branch), _children(branch):
            case "literal", [token]:
                return self._literal(str(token), getattr(token, "type", ""), at)
            case "ident", [name]:
                return Name(str(name), at)
            case "list_lit", items:
                return Listing(self._all(items, depth), at)
            case "member_dot", [owner, name]:
                return Field(self.part(owner, depth), str(name), _place(name), at)
            case "member_index", [owner, key]:
                return Item(self.part(owner, depth), self.part(key, depth), at)
            case "member_dot_arg", [owner, name, *arguments]:
                called = self.part(owner, depth)
                return Call(called, str(name), self._all(arguments, depth), at)
            case "ident_arg", [name, *_] if str(name).lower() == "not":
                raise negation_as_function(self._source)
            case "ident_arg", [name, *arguments]:
                return Call(None, str(name), self._all(arguments, depth), at)
            case _:
                raise outside(at)

    def _all(self, lists: list[Branch], depth: int) -> tuple[Part, ...]:
        return tuple(self.part(one, depth) for each in lists for one in _children(each))

    def _literal(self, token: str, kind: str, at: Place) -> Literal:
        if kind in {"BOOL_LIT", "NULL_LIT"}:
            at = next(self._keywords, at)
            return Literal({"true": True, "false": False}.get(token), at, token)
        try:
            if kind == "INT_LIT":
                return Literal(whole_value(token), at, token)
            if kind in {"STRING_LIT", "MLSTRING_LIT"}:
                return Literal(text_value(token), at, token)
        except NotInSubsetError as error:
            raise outside(at, str(error), help=error.help) from error
        return Literal(None, at, token)


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


def _unwrapped(branch: Branch) -> Branch:
    """Descend through grammar levels that have one child and mean nothing."""
    while _kind(branch) in _TRANSPARENT and len(_children(branch)) == 1:
        branch = _children(branch)[0]
    return branch


def _terms(branch: Branch, kind: str) -> list[Branch]:
    """Return the terms of ``a || b || c``, which the grammar nests to the left."""
    terms: list[Branch] = []
    while _kind(branch) == kind and len(_children(branch)) == 2:
        left, right = _children(branch)
        terms.append(right)
        branch = _unwrapped(left)
    return [branch, *reversed(terms)]


def _relations_within(operator: Branch) -> int:
    """Return how many relations stand on the left of one, at most 2."""
    count = 0
    left = _unwrapped(_children(operator)[0])
    while _kind(left) == "relation" and count < 2:
        count += 1
        left = _unwrapped(_children(_children(left)[0])[0])
    return count


def _kind(branch: Branch) -> str:
    return str(getattr(branch, "data", "token"))


def _children(branch: Branch) -> list[Branch]:
    return list(getattr(branch, "children", []))


def _place(branch: Branch) -> Place:
    """Return where a branch begins, as far as the parser knows."""
    place = getattr(branch, "meta", branch)
    line, column = getattr(place, "line", None), getattr(place, "column", None)
    return (int(line), int(column)) if line and column else (1, 1)
