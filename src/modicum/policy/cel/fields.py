"""The meaning of the parts of a predicate that are not boolean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from modicum.core.errors import Code
from modicum.core.reader import nearest
from modicum.policy.cel.tree import (
    CelError,
    Field,
    Name,
    Place,
    Rewrite,
    outside,
)
from modicum.policy.predicates import Scope
from modicum.release import Vocabulary
from modicum.release.vocabulary import METADATA, RESERVED

#: Fields of `m` besides labels.
MECHANISM_FIELDS = ("attributes", "contribution_bound", "mechanism", "name")
#: Fields of `release` besides labels.
RELEASE_FIELDS = ("id", *METADATA)
_WITHHELD = {
    "cost": "a rule that depends on the cost would make losses incomparable",
    "unit": "every rule has its unit in the key `unit`",
}


class LabelField(Struct, frozen=True):
    """``m.ml``: a closed label."""

    scope: Scope
    name: str


class TextField(Struct, frozen=True):
    """``release.purpose``: an open text."""

    scope: Scope
    name: str


class KindField(Struct, frozen=True):
    """``m.mechanism``: the kind of mechanism."""


class Attributes(Struct, frozen=True):
    """``m.attributes``: the attributes that are read."""


class Bounds(Struct, frozen=True):
    """``m.contribution_bound``: the bounds by unit."""


class Bound(Struct, frozen=True):
    """``m.contribution_bound["user"]``: the bound of one unit."""

    unit: str


class AttributeName(Struct, frozen=True):
    """One attribute during a quantifier over ``m.attributes``."""

    name: str


class SizeOf(Struct, frozen=True):
    """``size(m.attributes)``, or the length of an open text."""

    of: Attributes | TextField


Operand: TypeAlias = (
    str
    | int
    | LabelField
    | TextField
    | KindField
    | Attributes
    | Bounds
    | Bound
    | AttributeName
    | SizeOf
    | tuple["Operand", ...]
)


def field_suggestion(field: Field, vocabulary: Vocabulary) -> Operand:
    """Return the meaning of ``m.x`` or ``release.x``.

    Args:
        field: The field; its owner is checked too.
        vocabulary: The labels that there are.

    Raises:
        CelError: If there is no such field, or predicates may not see it.
    """
    owner = field.owner
    if isinstance(owner, Field):
        field_suggestion(owner, vocabulary)  # `m.cost.rho` is refused for `m.cost`.
        raise _field_of_field(field, owner, vocabulary)
    if not isinstance(owner, Name):
        raise outside(owner.at)
    known = {
        "m": (Scope.MECHANISM, MECHANISM_FIELDS),
        "release": (Scope.RELEASE, RELEASE_FIELDS),
    }
    if owner.name not in known:
        raise unknown(Code.CEL_TYPE, "variable", owner.name, known, owner.at)
    scope, fields = known[owner.name]
    if field.name in _WITHHELD:
        raise CelError(
            Code.CEL_TYPE,
            f"predicates have no access to `{owner.name}.{field.name}`",
            field.name_at,
            notes=(_WITHHELD[field.name],),
        )
    available = (*fields, *vocabulary.labels)
    if field.name not in available:
        raise _unknown_field(field, owner.name, available)
    return _available(scope, field.name, vocabulary)


def _field_of_field(field: Field, owner: Field, vocabulary: Vocabulary) -> CelError:
    """Return the error for ``m.attributes.length`` and the like."""
    error = outside(field.at, f"`{owner.name}` has no fields")
    if not isinstance(owner.owner, Name):
        return error
    path = f"{owner.owner.name}.{owner.name}"
    if owner.name == "contribution_bound" and field.name in vocabulary.units:
        error.rewrite = Rewrite(f".{field.name}", f'["{field.name}"]')
    elif field.name in {"length", "size", "count", "len"}:
        error.rewrite = Rewrite(f"{path}.{field.name}", f"size({path})")
    return error


def _unknown_field(field: Field, owner: str, available: tuple[str, ...]) -> CelError:
    error = unknown(
        Code.CEL_TYPE, f"field of `{owner}`", field.name, available, field.name_at
    )
    if not error.label and len(field.name) >= 4:
        parts = [one for one in sorted(set(available)) if field.name in one]
        error.label = f'did you mean "{parts[0]}"?' if len(parts) == 1 else ""
    elsewhere = {"m": RELEASE_FIELDS, "release": MECHANISM_FIELDS}[owner]
    if not error.label and field.name in elsewhere:
        other = "release" if owner == "m" else "m"
        error.rewrite = Rewrite(f"{owner}.{field.name}", f"{other}.{field.name}")
    elif not error.label and field.name not in RESERVED:
        error.help = (
            "if it is a label, declare it under `labels`, as in  labels:"
            f" {{{field.name[:60]}: {{values: [none, some], default: some}}}} ;"
            f" {error.help}"
        )
    return error


def _available(scope: Scope, name: str, vocabulary: Vocabulary) -> Operand:
    if name in vocabulary.labels:
        return LabelField(scope, name)
    match scope, name:
        case Scope.MECHANISM, "attributes":
            return Attributes()
        case Scope.MECHANISM, "contribution_bound":
            return Bounds()
        case Scope.MECHANISM, "mechanism":
            return KindField()
        case _:
            return TextField(scope, name)


def unknown(
    code: Code, what: str, word: str, known: Iterable[str], at: Place
) -> CelError:
    """Return the error for an unknown word."""
    options = sorted(set(known))
    return CelError(
        code,
        f'unknown {what} "{word[:60]}" in the predicate',
        at,
        label=nearest(word, options),
        help="known: " + (", ".join(options[:20]) or "none"),
    )
