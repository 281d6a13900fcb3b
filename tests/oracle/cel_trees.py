"""Trees of CEL texts by cel-python's grammar, which Lark reads: slow, and not ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import celpy
from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from modicum.core.errors import Code
from modicum.policy.cel.parser import NotInSubsetError, text_value, whole_value
from modicum.policy.cel.tree import (
    Call,
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
)

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
_NESTING_MAX = 40


class RefusedError(Exception):
    """What modicum refuses: with which code, and where; None if that is free."""

    def __init__(self, code: Code, at: Place | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.at = at


@cache
def _parser() -> Lark:
    grammar = Path(celpy.__file__).with_name("cel.lark").read_text()

    def constant(token: Token) -> Token:  # As cel-python does, but its place is kept.
        is_one = token.value in {"true", "false"}
        return Token.new_borrow_pos("BOOL_LIT", token, token) if is_one else token

    return Lark(
        grammar,
        parser="lalr",
        start="expr",
        g_regex_flags=re.MULTILINE,
        lexer_callbacks={"IDENT": constant},
        propagate_positions=True,
        maybe_placeholders=False,
        priority="invert",
    )


def tree_of(source: str) -> Part:
    """Return the tree of a text.

    Raises:
        RefusedError: If it has none.
    """
    try:
        tree = _parser().parse(source)
    except LarkError as error:
        raise RefusedError(Code.CEL_SYNTAX) from error
    if _levels(tree) > _NESTING_MAX:
        raise RefusedError(Code.CEL_LIMIT)
    return _part(tree)


_Branch = Tree[Token] | Token
_TRANSPARENT = (
    *("expr", "conditionalor", "conditionaland", "relation", "addition"),
    *("multiplication", "unary", "member", "primary"),
)


def _kind(branch: _Branch) -> str:
    return str(branch.data) if isinstance(branch, Tree) else "token"


def _children(branch: _Branch) -> list[_Branch]:
    return list(branch.children) if isinstance(branch, Tree) else []


def _place(branch: _Branch) -> Place:
    place = branch.meta if isinstance(branch, Tree) else branch
    assert place.line is not None
    assert place.column is not None
    return place.line, place.column


def _unwrapped(branch: _Branch) -> _Branch:
    while _kind(branch) in _TRANSPARENT and len(_children(branch)) == 1:
        branch = _children(branch)[0]
    return branch


def _terms(branch: _Branch, kind: str) -> Iterator[_Branch]:
    """Yield the terms of `a || b || c`, which the grammar nests to the left."""
    if _kind(branch) == kind and len(_children(branch)) == 2:
        left, right = _children(branch)
        yield from _terms(_unwrapped(left), kind)
        yield right
    else:
        yield branch


def _below(branch: _Branch) -> list[_Branch]:
    """Return what stands one level deeper."""
    kind, children = _kind(branch), _children(branch)
    if kind in _JUNCTIONS:
        return list(_terms(branch, kind))
    if kind == "relation":
        operator, right = children
        return [_children(operator)[0], right]
    if kind in {"addition", "multiplication", "member_object", "map_lit", "literal"}:
        return []
    if kind in {"dot_ident", "dot_ident_arg", "ident"}:
        return []
    if kind == "unary":
        return children[1:] if _kind(children[0]) == "unary_not" else []
    found = [one for one in children if isinstance(one, Tree)]
    return [
        each
        for one in found
        for each in (_children(one) if _kind(one) == "exprlist" else [one])
    ]


def _levels(branch: _Branch) -> int:
    branch = _unwrapped(branch)
    return max((1 + _levels(one) for one in _below(branch)), default=0)


def _part(branch: _Branch) -> Part:
    branch = _unwrapped(branch)
    kind, children, at = _kind(branch), _children(branch), _place(branch)
    if kind in _JUNCTIONS:
        parts = tuple(map(_part, _below(branch)))
        return Junction(_JUNCTIONS[kind], parts, parts[0].at)
    match kind, children:
        case "unary", [operator, operand] if _kind(operator) == "unary_not":
            return Negation(_part(operand), at)
        case "paren_expr", [inner]:
            return _part(inner)
        case "relation", [operator, right]:
            return _comparison(operator, right)
        case "expr", [_, _, _]:
            condition, yes, no = map(_part, children)
            return Choice(condition, yes, no, condition.at)
        case "literal", [Token() as token]:
            return _literal(token, at)
        case _:
            return _operand(kind, children, at, branch)


def _comparison(operator: _Branch, right: _Branch) -> Part:
    (before,) = _children(operator)
    if _kind(_unwrapped(before)) == "relation":
        raise RefusedError(Code.CEL_SUBSET)
    left = _part(before)
    return Comparison(_RELATIONS[_kind(operator)], left, _part(right), left.at)


def _operand(kind: str, children: list[_Branch], at: Place, branch: _Branch) -> Part:
    match kind, children:
        case "ident", [name]:
            return Name(str(name), at)
        case "list_lit", _:
            return Listing(tuple(map(_part, _below(branch))), at)
        case "member_dot", [owner, Token() as name]:
            return Field(_part(owner), str(name), _place(name), at)
        case "member_index", [owner, key]:
            return Item(_part(owner), _part(key), at)
        case "member_dot_arg", [_, name, *_]:
            called, *arguments = map(_part, _below(branch))
            return Call(called, str(name), tuple(arguments), at)
        case "ident_arg", [name, *_] if str(name).lower() == "not":
            raise RefusedError(Code.CEL_SYNTAX)
        case "ident_arg", [name, *_]:
            return Call(None, str(name), tuple(map(_part, _below(branch))), at)
        case _:
            raise RefusedError(Code.CEL_SUBSET, at)


def _literal(token: Token, at: Place) -> Literal:
    value: str | int | bool | None
    try:
        match token.type:
            case "BOOL_LIT":
                value = token == "true"
            case "INT_LIT":
                value = whole_value(str(token))
            case "STRING_LIT" | "MLSTRING_LIT":
                value = text_value(str(token))
            case _:
                value = None
    except NotInSubsetError as error:
        raise RefusedError(Code.CEL_SUBSET, at) from error
    return Literal(value, at, str(token))
