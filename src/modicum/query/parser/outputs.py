"""The outputs of an answer: the keys of its groups, and their aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from modicum.core.document import Kind, Scalar
from modicum.core.errors import Code, Mark
from modicum.core.reader import Problems
from modicum.core.reader import name as house_name
from modicum.query.model import Aggregate, Key, Output, Released
from modicum.query.parser.aggregates import read_aggregate
from modicum.query.parser.answers import AnswerReader, Selected
from modicum.query.parser.arguments import is_aggregate
from modicum.query.parser.keys import read_key, refuse_key
from modicum.query.parser.scope import Scope, spend_name
from modicum.query.parser.sql_text import only
from modicum.query.parser.windows import is_computed
from modicum.query.refusals import ALL_COLUMNS, Reason, refused
from modicum.query.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp

#: An answer has no more columns than this.
_OUTPUTS_MAX: Final = 100


class Outputs(NamedTuple):
    """The columns of an answer.

    Attributes:
        selected: All of them, in the order of the text.
        reader: Reads what is computed of them, and knows the aggregates.
    """

    selected: tuple[Selected, ...]
    reader: AnswerReader

    @property
    def every(self) -> tuple[Key | Aggregate | Output, ...]:
        """All of them."""
        return tuple(one.output for one in self.selected)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys among them."""
        return tuple(one for one in self.every if isinstance(one, Key))

    @property
    def computed(self) -> tuple[Output, ...]:
        """The numbers among them; none if these are the aggregates in their order."""
        numbers = [one for one in self.every if not isinstance(one, Key)]
        if numbers == self.reader.aggregates:
            return ()
        return tuple(
            one if isinstance(one, Output) else Output(one.name, Released(one.name))
            for one in numbers
        )


def read_outputs(nodes: Sequence[exp.Expr], scope: Scope, tables: Tables) -> Outputs:
    """Return the outputs of a SELECT.

    Raises:
        InputError: If it returns rows, or something unsupported.
    """
    if len(nodes) > _OUTPUTS_MAX:
        message = f"more than {_OUTPUTS_MAX} outputs are selected"
        mark = scope.sql.mark_of(nodes[_OUTPUTS_MAX])
        raise refused(Code.NOT_IN_SUBSET, message, mark, reason=Reason())
    found = Problems()
    every: dict[int, Selected] = {}
    for place, node in enumerate(nodes):
        with found.guard():
            if not _is_computed(_inner(node)):
                every[place] = _selected(node, scope, tables)
    found.raise_any()
    names = {one.output.name for one in every.values()}
    names.update(one.alias for one in nodes if one.alias)
    reader = AnswerReader(scope, [*every.values()], names)
    for place, node in enumerate(nodes):
        with found.guard():
            if place not in every:
                every[place] = _computed(node, place, reader, scope)
    found.raise_any()
    selected = [every[place] for place in range(len(nodes))]
    _refuse_same_names(selected, scope)
    reader.name(selected)
    return Outputs(tuple(selected), reader)


def must_measure(outputs: Outputs, scope: Scope) -> None:
    """Refuse a query without aggregates.

    Raises:
        InputError: If it is one.
    """
    selected = any(not isinstance(one, Key) for one in outputs.every)
    if not (selected and outputs.reader.aggregates):
        raise refused(
            Code.NOT_IN_SUBSET,
            "no aggregate is selected",
            scope.sql.mark(scope.sql.tokens[0]),
            reason=Reason(
                "rows, and the group of a row, are never released",
                "add an aggregate: COUNT(*)",
            ),
        )


def _is_computed(node: exp.Expr) -> bool:
    """Return whether a node is computed of answers: not an aggregate or key itself."""
    from sqlglot import exp

    number = type(node) is exp.Literal and not node.is_string
    return number or (not is_aggregate(node) and is_computed(node))


def _inner(node: exp.Expr) -> exp.Expr:
    """Return what is selected, without its alias and brackets around an aggregate."""
    from sqlglot import exp

    inner: exp.Expr = node.this if type(node) is exp.Alias else node
    while type(inner) is exp.Paren and is_computed(inner):
        inner = inner.this
    return inner


def _selected(node: exp.Expr, scope: Scope, tables: Tables) -> Selected:
    """Return a key or an aggregate that is selected as it is."""
    from sqlglot import exp

    alias, inner = _alias(node, scope), _inner(node)
    output: Key | Aggregate
    if is_aggregate(inner):
        output = read_aggregate(inner, scope)
    else:
        if type(inner) is exp.Star or type(inner.this) is exp.Star:
            raise scope.sql.unread(inner, ALL_COLUMNS)
        output = read_key(inner, scope)
        refuse_key(output, scope, tables)
    name = _name(alias, output.name, output.mark, scope)
    written = None if alias is None else alias.name
    return Selected(inner, written, replace(output, name=name))


def _computed(
    node: exp.Expr, place: int, reader: AnswerReader, scope: Scope
) -> Selected:
    """Return a number that is computed of answers."""
    alias, inner = _alias(node, scope), _inner(node)
    value = reader.number(inner)
    mark = scope.sql.mark_of(inner)
    name = _name(alias, f"answer_{place + 1}", mark, scope)
    written = None if alias is None else alias.name
    return Selected(inner, written, Output(name, value))


def _alias(node: exp.Expr, scope: Scope) -> exp.Expr | None:
    from sqlglot import exp

    if type(node) is not exp.Alias:
        return None
    only(scope.sql, node, ("this", "alias"))
    alias: exp.Expr = node.args["alias"]
    return alias


def _name(alias: exp.Expr | None, usual: str, mark: Mark | None, scope: Scope) -> str:
    """Return the name of a column of the answer, if it is valid."""
    if alias is None:
        given = Scalar(Kind.TEXT, usual, quoted=False, mark=mark)
    else:
        spend_name(scope.sql, alias)
        place = scope.sql.mark_of(alias)
        given = Scalar(Kind.TEXT, alias.name, quoted=False, mark=place)
    return house_name(given, "the name of a column of the answer")


def _refuse_same_names(every: Sequence[Selected], scope: Scope) -> None:
    seen: set[str] = set()
    for one in every:
        name = one.output.name
        if name.lower() in seen:
            raise refused(
                Code.NOT_IN_SUBSET,
                f"two columns of the answer are named `{name[:60]}`",
                scope.sql.mark_of(one.node),
                reason=Reason("", "give it another name: … AS name"),
            )
        seen.add(name.lower())
