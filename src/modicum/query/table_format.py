"""Reading declarations of tables: the file `tables/v1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import (
    Fields,
    Problems,
    boolean,
    fail,
    items,
    name,
    nearest,
    placed,
    text,
)
from modicum.query.column_format import Roles, read_column
from modicum.query.tables import Column, Table, Tables
from modicum.release.units import clocks_of
from modicum.release.vocabulary import Vocabulary

#: The version of the format that this module reads.
FORMAT: Final = "tables/v1"


def read_tables(node: Node, vocabulary: Vocabulary) -> Tables:
    """Return the declarations in a tables file.

    Args:
        node: The tree of the file.
        vocabulary: The declarations of the policy: attributes, units, partitions.

    Raises:
        InputError: With every mistake found, each with its position.
    """
    fields = Fields(node, "the tables file")
    version = fields.take("modicum", help=f"start with  modicum: {FORMAT}")
    given = text(version, "`modicum`")
    if given != FORMAT:
        raise fail(
            Code.UNKNOWN_VERSION,
            f'unknown format "{given[:40]}"',
            version,
            help=f"this version reads {FORMAT}",
        )
    found = Problems()
    listed = fields.take("tables", help="write tables: {TABLE: {columns: …}}")
    with found.guard():
        fields.finish()
    by_name: dict[str, Table] = {}
    with found.guard():
        for key, value in _named(listed, "`tables`"):
            with found.guard():
                table_name = name(key, "a table")
                _refuse_same(table_name, by_name, key, "tables")
                by_name[table_name] = _table(table_name, key, value, vocabulary)
    found.raise_any()
    return tables_with(by_name, vocabulary)


def tables_with(by_name: Mapping[str, Table], vocabulary: Vocabulary) -> Tables:
    """Return tables under a policy."""
    ids = frozenset(unit.id for unit in vocabulary.unit_facts.values())
    return Tables(by_name, ids, clocks_of(vocabulary.unit_facts))


def _named(node: Node, what: str) -> list[tuple[Scalar, Node]]:
    pairs = Fields(node, what).rest()
    if not pairs:
        raise fail(Code.OUT_OF_RANGE, f"{what} is empty", node)
    return pairs


def _refuse_same(new: str, known: Iterable[str], node: Scalar, what: str) -> None:
    """Refuse a name that differs from another one in capitals only."""
    for old in known:
        if old.lower() == new.lower():
            raise fail(
                Code.DUPLICATE_NAME,
                f"two {what} are named `{new}`, except for case",
                node,
                notes=("engines ignore case",),
            )


def _table(own_name: str, key: Scalar, node: Node, vocabulary: Vocabulary) -> Table:
    what = f"table `{own_name}`"
    fields = Fields(node, what)
    if _is_public(fields, what):
        return _public_table(own_name, key, fields, vocabulary)
    found = Problems()
    row_id: tuple[tuple[str, Node], ...] | None = None
    group: tuple[tuple[str, Node], ...] = ()
    one_per: tuple[tuple[str, Node], ...] = ()
    with found.guard():
        given = fields.take_optional("row_id")
        row_id = () if given is None else _columns_named(given, f"`row_id` of {what}")
    with found.guard():
        group = _optional_column(fields, "group", what)
    with found.guard():
        one_per = _optional_column(fields, "one_per", what)
    columns: dict[str, Column] = {}
    listed: Node | None = None
    is_spelled = False
    with found.guard():
        listed = fields.take("columns", help="write columns: {COLUMN: {type: …}}")
    with found.guard():
        fields.finish()
        is_spelled = row_id is not None
    if listed is not None:
        named = (*(row_id or ()), *group, *one_per)
        roles = _roles([one for one, _ in named], vocabulary)
        if not is_spelled or not _listed(named, listed):
            # Which columns only identify is unknown: none needs an attribute.
            roles = roles._replace(others=frozenset(_names(listed)))
        with found.guard():
            columns = _columns(listed, what, roles, vocabulary, found)
            _refuse_unknown_columns(named, listed, what, found)
    row_id = row_id or ()
    _refuse_types(row_id, columns, ("text", "integer", "boolean", "date", "timestamp"),
                  "the identity of a row", found)  # fmt: skip
    _refuse_types(group, columns, ("integer",), "the user group", found)
    _refuse_no_id(one_per, columns, vocabulary, found)
    found.raise_any()
    return Table(
        own_name,
        columns,
        tuple(one for one, _ in row_id),
        one_per[0][0] if one_per else None,
        group[0][0] if group else None,
        mark=key.mark,
    )


def _is_public(fields: Fields, what: str) -> bool:
    given = fields.take_optional("public")
    return given is not None and boolean(given, f"`public` of {what}")


def _public_table(
    own_name: str, mark: Scalar, fields: Fields, vocabulary: Vocabulary
) -> Table:
    """Return a table that has no rows of people, and its key."""
    what = f"public table `{own_name}`"
    found = Problems()
    key: tuple[tuple[str, Node], ...] = ()
    columns: dict[str, Column] = {}
    with found.guard():
        named = fields.take("key", help="name the column that identifies each row")
        key = ((name(named, f"`key` of {what}"), named),)
    listed = fields.take("columns", help="write columns: {COLUMN: {type: …}}")
    with found.guard():
        fields.finish()
    roles = Roles(frozenset(), frozenset(), frozenset(_names(listed)))
    with found.guard():
        columns = _columns(listed, what, roles, vocabulary, found)
        _refuse_unknown_columns(key, listed, what, found)
    for column, node in Fields(listed, what).rest():
        with found.guard():
            _refuse_private(column, node, vocabulary)
    _refuse_types(key, columns, ("text", "integer", "date"), "the key", found)
    found.raise_any()
    # Rows are of nobody; what is read is the attribute of the column looked up.
    plain = {one: replace(column, attribute=None) for one, column in columns.items()}
    return Table(own_name, plain, (), key=key[0][0], mark=mark.mark)


def _refuse_private(column: Scalar, node: Node, vocabulary: Vocabulary) -> None:
    """Refuse what a column of a public table must not be."""
    units = vocabulary.unit_facts
    roles = {unit.id for unit in units.values()} | clocks_of(units)
    if column.text in roles:
        raise fail(
            Code.KEYS_CONFLICT,
            f"column `{column.text}` of a public table has the name of a unit's id or"
            " time",
            column,
            notes=("a public table holds nothing about people",),
            help="give it another name, in the data as well",
        )
    given = Fields(node, f"column `{column.text}`")
    for word in ("attribute", "partition"):
        if word in given:
            raise fail(
                Code.KEYS_CONFLICT,
                f"column `{column.text}` of a public table has no `{word}`",
                given.key_node(word),
                notes=("it reads the attribute of the column that is looked up",),
                help="leave it out",
            )


def _roles(named: Iterable[str], vocabulary: Vocabulary) -> Roles:
    units = vocabulary.unit_facts
    return Roles(
        ids=frozenset(unit.id for unit in units.values()),
        clocks=clocks_of(units),
        others=frozenset(named),
    )


def _columns(
    node: Node, what: str, roles: Roles, vocabulary: Vocabulary, found: Problems
) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    parts: dict[str, str] = {}
    for key, value in _named(node, f"`columns` of {what}"):
        with found.guard():
            own_name = name(key, f"a column of {what}")
            _refuse_same(own_name, columns, key, f"columns of {what}")
            columns[own_name] = Column(own_name, "text", mark=key.mark)  # If it fails.
            column = read_column(own_name, value, roles, vocabulary)
            columns[own_name] = replace(column, mark=key.mark)
            other = parts.setdefault(column.partition or "", own_name)
            if column.partition is not None and other != own_name:
                raise fail(
                    Code.DUPLICATE_NAME,
                    f"`{other}` and `{own_name}` both have the partitioning attribute"
                    f" `{column.partition}`",
                    key,
                    notes=("the part of a row would be ambiguous",),
                )
    return columns


# --- columns that are named -----------------------------------------------------------


def _columns_named(node: Node, what: str) -> tuple[tuple[str, Node], ...]:
    """Return one column, or several; none twice."""
    nodes = items(node, what) if isinstance(node, Items) else (node,)
    if not nodes:
        raise fail(Code.OUT_OF_RANGE, f"{what} is empty", node)
    seen: dict[str, Node] = {}
    for one in nodes:
        column = name(one, what)
        if column in seen:
            raise fail(Code.DUPLICATE_NAME, f"{what} names `{column}` twice", one)
        seen[column] = one
    return tuple(seen.items())


def _optional_column(
    fields: Fields, key: str, what: str
) -> tuple[tuple[str, Node], ...]:
    node = fields.take_optional(key)
    return () if node is None else ((name(node, f"`{key}` of {what}"), node),)


def _names(listed: Node) -> tuple[str, ...]:
    return (
        ()
        if not isinstance(listed, Entries)
        else tuple(key.text for key, _ in listed.entries)
    )


def _listed(named: Iterable[tuple[str, Node]], listed: Node) -> bool:
    """Return whether all columns that are named are declared."""
    return {one for one, _ in named} <= set(_names(listed))


def _refuse_unknown_columns(
    named: Iterable[tuple[str, Node]], listed: Node, what: str, found: Problems
) -> None:
    known = [key.text for key, _ in Fields(listed, what).rest()]
    for column, node in named:
        with found.guard():
            if column not in known:
                raise fail(
                    Code.UNKNOWN_CHOICE,
                    f"{what} has no column `{column}`",
                    node,
                    label=nearest(column, known),
                    help="known: " + ", ".join(known[:20]),
                )


def _refuse_types(
    named: Iterable[tuple[str, Node]],
    columns: dict[str, Column],
    types: tuple[str, ...],
    tells: str,
    found: Problems,
) -> None:
    for column, node in named:
        with found.guard():
            if column in columns and columns[column].type not in types:
                raise fail(
                    Code.KEYS_CONFLICT,
                    f"`{column}` is of type {columns[column].type}, and cannot be"
                    f" {tells}",
                    node,
                    help="allowed types: " + ", ".join(types),
                )


def _refuse_no_id(
    one_per: Iterable[tuple[str, Node]],
    columns: dict[str, Column],
    vocabulary: Vocabulary,
    found: Problems,
) -> None:
    ids = sorted({unit.id for unit in vocabulary.unit_facts.values()})
    for column, node in one_per:
        with found.guard(), placed(node):
            if column in columns and column not in ids:
                raise fail(
                    Code.UNKNOWN_CHOICE,
                    f"`one_per` names `{column}`, which is not the id of a unit",
                    label=nearest(column, ids),
                    help="ids of units: " + (", ".join(ids) or "none"),
                )
