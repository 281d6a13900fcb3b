"""What is computed of answers: arithmetic on aggregates, conditions on groups, windows.

It is read of the same syntax as expressions of rows, but its names are keys and
aggregates. Aggregates that are named nowhere else are measured as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from typing import Literal as OneOf

from modicum.core.errors import Code
from modicum.query.aggregates import free_name
from modicum.query.answer_expressions import READ, parts_of
from modicum.query.expressions.table import BY_NODE, FUNCTIONS
from modicum.query.model import (
    Aggregate,
    AllOf,
    AnyOf,
    Call,
    Expression,
    IsNull,
    Key,
    Literal,
    Not,
    Order,
    Output,
    Released,
    Window,
    grouping_of,
)
from modicum.query.parser.aggregates import read_aggregate
from modicum.query.parser.arguments import arguments_of, is_aggregate, is_of_pairs
from modicum.query.parser.expressions import COMPARISONS
from modicum.query.parser.keys import at_position, read_key
from modicum.query.parser.literals import is_value, read_literal, time_value
from modicum.query.parser.periods import needed
from modicum.query.parser.regressions import read_regression
from modicum.query.parser.scope import Scope, spend_name
from modicum.query.parser.sql_text import only
from modicum.query.parser.windows import is_computed, read_window
from modicum.query.refusals import Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

#: The type of a value of an answer; `null` fits all.
_Type = OneOf["number", "text", "boolean", "date", "null"]

#: Deeper expressions are refused: each level takes several calls in Python.
_LEVELS_MAX: Final = 64
_DIGITS_MAX: Final = 12

_CAST: Final = Reason(
    "numbers of an answer are exact", "round them: ROUND(…, 2), FLOOR(…) or CEIL(…)"
)


class Selected(NamedTuple):
    """A column of the answer: its node, its alias, and what it is."""

    node: exp.Expr
    alias: str | None
    output: Key | Aggregate | Output


class AnswerReader:
    """Reads what is computed of answers, and collects the aggregates that it needs.

    Args:
        scope: The tables that are read.
        selected: The keys and aggregates that are selected as they are.
        names: The names of all columns of the answer.
    """

    def __init__(
        self, scope: Scope, selected: Sequence[Selected], names: Collection[str]
    ) -> None:
        self._scope = scope
        self._sql = scope.sql
        self._taken = set(names)
        self.aggregates = [
            one.output for one in selected if isinstance(one.output, Aggregate)
        ]
        self._keys = [
            (one.node, one.output) for one in selected if isinstance(one.output, Key)
        ]
        self._key_aliases = {
            str(one.alias).lower(): one.output.name
            for one in selected
            if isinstance(one.output, Key)
        }
        self._aliases: dict[str, Key | Aggregate | Output] = {}
        self._outputs: list[Key | Aggregate | Output] = []
        self._readers: Mapping[str, Callable[[exp.Expr, int], Expression]] = {
            "Paren": self._in_brackets,
            "Div": self._ratio,
            "Sqrt": self._root,
            "Case": self._case,
            "If": self._if,
            "Cast": self._cast,
            "TryCast": self._cast,
            "And": self._joined,
            "Or": self._joined,
            "Not": self._not,
            "Between": self._between,
            "In": self._in,
            "Is": self._is,
            "Grouping": self._grouping,
            **dict.fromkeys(COMPARISONS, self._compared),
        }

    def name(self, selected: Sequence[Selected]) -> None:
        """Make the columns known by alias and position, for clauses behind SELECT."""
        for one in selected:
            self._outputs.append(one.output)
            if one.alias is not None:
                self._aliases[one.alias.lower()] = one.output

    def number(self, node: exp.Expr) -> Expression:
        """Return a number that is computed of answers.

        Raises:
            InputError: If it is something else.
        """
        found = self._of_type(node, "number")
        if self.type_of(found) == "null":
            raise self._misfit(node, "number", "null")
        return found

    def condition(self, node: exp.Expr) -> Expression:
        """Return a condition on groups of the answer.

        Raises:
            InputError: If it is something else.
        """
        found = self._of_type(node, "boolean")
        if any(isinstance(one, Window) for one in parts_of(found)):
            reason = Reason(
                "HAVING comes before windows", "compute it from the answer, at no cost"
            )
            raise self._sql.unread_at(self._sql.keyword("OVER"), reason)
        return found

    def orders(self, order: exp.Expr) -> tuple[Order, ...]:
        """Return the items of an ORDER BY clause.

        Raises:
            InputError: If one is no value of the answer.
        """
        return self._orders(order, self._named)

    def _orders(
        self, order: exp.Expr, value_of: Callable[[exp.Expr], Expression]
    ) -> tuple[Order, ...]:
        only(self._sql, order, ("expressions",))
        found = []
        for item in order.args["expressions"]:
            only(self._sql, item, ("this", "desc", "nulls_first"))
            value = value_of(item.this)
            self._spend_direction(item)
            descending, nulls_first = map(
                bool, (item.args.get("desc"), item.args.get("nulls_first"))
            )
            found.append(Order(value, descending, nulls_first))
        return tuple(found)

    def _named(self, node: exp.Expr) -> Expression:
        """Return an item of ORDER BY: an output by name or position, or a value."""
        alias = self._aliases.get(node.name.lower()) if _is_name(node) else None
        if alias is not None:  # In ORDER BY, it hides a column of the same name.
            spend_name(self._sql, node.this)
            return _of_output(alias)
        if type(node).__name__ == "Literal":
            return _of_output(at_position(node, self._outputs, self._sql))
        return self.read(node)

    def _in_window(self, node: exp.Expr) -> Expression:
        """Return an item of ORDER BY in a window, where a number is no position."""
        if is_value(node):
            raise self._sql.unread(node, Reason("", "name a key or an aggregate"))
        return self.read(node)

    def _spend_direction(self, item: exp.Expr) -> None:
        sql, place = self._sql, (self._sql.last(item.this) or 0) + 1
        while sql.kind(place) in _CLOSING or sql.is_spent(place):
            place += 1
        if sql.word(place) in ("ASC", "DESC"):
            sql.spend(place)
            place += 1
        if sql.word(place) == "NULLS" and sql.word(place + 1) in ("FIRST", "LAST"):
            sql.spend(place, place + 1)

    # --- any value --------------------------------------------------------------------

    def read(self, node: exp.Expr, level: int = 0) -> Expression:
        """Return a value that is computed of answers.

        Raises:
            InputError: If it is none that is read.
        """
        if level > _LEVELS_MAX:
            message, mark = "the expression is nested too deep", self._sql.mark_of(node)
            raise refused(Code.NOT_IN_SUBSET, message, mark, reason=Reason())
        key = self._key(node)
        if key is not None:
            return key
        kind = type(node).__name__
        if is_value(node):
            return read_literal(node, self._sql)
        if kind == "Window":
            return self._window(node)
        if is_aggregate(node):
            return Released(self._measured(read_aggregate(node, self._scope)))
        if is_of_pairs(node):
            return read_regression(node, self._scope, self._measured)
        reader = self._readers.get(kind)
        if reader is not None:
            return reader(node, level + 1)
        return self._called(node, level + 1)

    def _key(self, node: exp.Expr) -> Expression | None:
        """Return the key that a node is, or the column that it is the name of."""
        for written, key in self._keys:
            if node == written:
                read_key(node, self._scope)  # Its tokens are understood.
                return Released(key.name)
        if type(node).__name__ != "Column" and not _is_period(node):
            return None
        alias = self._aliases.get(node.name.lower()) if _is_name(node) else None
        if alias is not None and not self._scope.knows(node.this):
            spend_name(self._sql, node.this)
            return _of_output(alias)
        read = read_key(node, self._scope)
        for _, key in self._keys:
            if (key.value, key.grain) == (read.value, read.grain):
                return Released(key.name)
        if alias is not None:
            raise refused(
                Code.UNKNOWN_NAME,
                f"`{node.name[:60]}` is both a column and the name of another output",
                self._sql.mark_of(node),
                reason=Reason(
                    "engines resolve it differently",
                    "write the aggregate itself, or give the output another name",
                ),
            )
        raise refused(
            Code.NOT_IN_SUBSET,
            f"`{read.name[:60]}` is neither in an aggregate nor in GROUP BY",
            self._sql.mark_of(node),
            reason=Reason("", "select it and add it to GROUP BY, or use an aggregate"),
        )

    def _measured(self, aggregate: Aggregate) -> str:
        """Return the name of an aggregate, which is measured once."""
        for one in self.aggregates:
            if replace(one, name=aggregate.name) == aggregate:
                return one.name
        name = free_name(aggregate.name, self._taken)
        self._taken.add(name)
        self.aggregates.append(replace(aggregate, name=name))
        return name

    # --- types ------------------------------------------------------------------------

    def type_of(self, value: Expression) -> _Type:
        """Return the type of a value."""
        match value:
            case Released(name=name):
                return self._type_of_name(name)
            case Literal(value=None):
                return "null"
            case Literal(type=kind):
                return _TYPES[kind]
            case Window(function="lag" | "lead", value=inner) if inner is not None:
                return self.type_of(inner)
            case Call(function=name, arguments=arguments) if name in _SAME_TYPE:
                found = (self.type_of(one) for one in _SAME_TYPE[name](arguments))
                return next((one for one in found if one != "null"), "null")
            case Call(function=name):
                return "boolean" if name in _TRUTHS else "number"
            case Window():
                return "number"
            case _:
                return "boolean"

    def _type_of_name(self, name: str) -> _Type:
        for _, key in self._keys:
            if key.name == name:
                if key.grain is not None:
                    return "date"
                return _TYPES[self._scope.facts(key.value).type]
        return "number"

    def _of_type(self, node: exp.Expr, wanted: _Type, level: int = 0) -> Expression:
        found = self.read(node, level)
        self._must_be(found, wanted, node)
        return found

    def _must_be(self, value: Expression, wanted: _Type, node: exp.Expr) -> None:
        if self.type_of(value) not in (wanted, "null"):
            raise self._misfit(node, wanted, self.type_of(value))

    def _misfit(self, node: exp.Expr, wanted: _Type, found: _Type) -> Exception:
        return refused(
            Code.DOES_NOT_FIT,
            f"{_A[wanted]} is needed here, and this is {_A[found]}",
            self._sql.mark_of(node),
            reason=Reason("", _REMEDIES.get((wanted, found), "")),
        )

    def alike(self, nodes: Sequence[exp.Expr], level: int) -> list[Expression]:
        """Return values of one type; texts beside dates are dates."""
        return self._of_one_type([self.read(one, level) for one in nodes], nodes)

    def _of_one_type(
        self, values: Sequence[Expression], nodes: Sequence[exp.Expr]
    ) -> list[Expression]:
        types = [self.type_of(one) for one in values]
        first: _Type = next((one for one in types if one != "null"), "null")
        wanted: _Type = "date" if "date" in types else first
        found: list[Expression] = []
        for one, node in zip(values, nodes, strict=True):
            value = one
            if wanted == "date" and isinstance(one, Literal) and one.value is not None:
                value = time_value(
                    _without_time(str(one.value)), "date", node, self._sql
                )
            self._must_be(value, wanted, node)
            found.append(value)
        return found

    # --- functions --------------------------------------------------------------------

    def _called(self, node: exp.Expr, level: int) -> Expression:
        name = BY_NODE.get(type(node).__name__, "")
        if name not in READ:
            raise self._unread(node)
        function = FUNCTIONS[name]
        only(self._sql, node, (*function.parts, *function.ignored))
        nodes = arguments_of(node, function.parts)
        if name in _SAME_TYPE:
            values = self.alike(nodes, level)
        else:
            values = [self._of_type(one, "number", level) for one in nodes]
        if name == "round" and len(values) > 1:
            self._refuse_digits(values[1], nodes[1])
        if function.words:
            self._sql.spend_call(node, function.words)
        return Call(name, tuple(values))

    def _refuse_digits(self, digits: Expression, node: exp.Expr) -> None:
        given = digits.value if isinstance(digits, Literal) else None
        if not isinstance(given, int) or abs(given) > _DIGITS_MAX:
            reason = Reason(
                "", f"write an integer of at most {_DIGITS_MAX}: ROUND(…, 2)"
            )
            raise self._sql.unread(node, reason)

    def _unread(self, node: exp.Expr) -> Exception:
        """Return the refusal of a node; a name in it may be the mistake."""
        if not is_computed(node):
            return self._sql.unread(node)
        reason = Reason(
            "answers are computed with + - * /, ROUND, FLOOR, CEIL, ABS, SIGN, SQRT,"
            " LEAST, GREATEST, COALESCE, NULLIF, CASE, IF and comparisons",
            "select the aggregates, and compute the rest from the answer, at no cost",
        )
        return self._sql.unread(node, reason)

    def _pair(self, node: exp.Expr, level: int) -> list[Expression]:
        only(self._sql, node, ("this", "expression"))
        both = node.this, node.expression
        return [self._of_type(one, "number", level) for one in both]

    def _ratio(self, node: exp.Expr, level: int) -> Expression:
        return Call("ratio", tuple(self._pair(node, level)))

    def _root(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this",))
        value = self._of_type(needed(node, "this", self._sql), "number", level)
        self._sql.spend_call(node, ("SQRT",))
        return Call("sqrt", (value,))

    def _in_brackets(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this",))
        return self.read(node.this, level)

    def _case(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this", "ifs", "default"))
        operand = node.args.get("this")
        compared = None if operand is None else self.read(operand, level)
        conditions: list[Expression] = []
        values = []
        for one in node.args["ifs"]:
            only(self._sql, one, ("this", "true"))
            if compared is None or operand is None:
                conditions.append(self._of_type(one.this, "boolean", level))
            else:
                both = [compared, self.read(one.this, level)]
                same = self._of_one_type(both, (operand, one.this))
                conditions.append(Call("=", tuple(same)))
            values.append(one.args["true"])
        return self._chosen(conditions, values, node.args.get("default"), level)

    def _if(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this", "true", "false"))
        condition = self._of_type(node.this, "boolean", level)
        other = node.args.get("false")
        found = self._chosen([condition], [node.args["true"]], other, level)
        self._sql.spend_call(node, ("IF", "IIF"))
        return found

    def _chosen(
        self,
        conditions: Sequence[Expression],
        nodes: Sequence[exp.Expr],
        default: exp.Expr | None,
        level: int,
    ) -> Expression:
        every = [*nodes] if default is None else [*nodes, default]
        values = self.alike(every, level)
        if default is None:
            values.append(Literal(None, "number"))
        pairs = zip(conditions, values[:-1], strict=True)
        return Call("case", (*(one for pair in pairs for one in pair), values[-1]))

    def _grouping(self, node: exp.Expr, _level: int) -> Expression:
        """Return GROUPING(key): 1 in groups that are not by the key, else 0."""
        only(self._sql, node, ("expressions",))
        parts = node.args["expressions"]
        one, found = parts[0], None
        if len(parts) == 1 and _is_name(one):
            found = self._key_aliases.get(one.name.lower())
        if found is not None:
            spend_name(self._sql, one.this)
        elif len(parts) == 1 and isinstance(key := self._key(one), Released):
            found = key.name
        if found is None:
            raise self._sql.unread(node, Reason("", "name one key: GROUPING(key)"))
        self._sql.spend_call(node, ("GROUPING",))
        return Released(grouping_of(found))

    def _cast(self, node: exp.Expr, level: int) -> Expression:
        sql, to = self._sql, node.args["to"]
        only(sql, node, ("this", "to", "safe", "_type"))
        only(sql, to, ("this", "nested"))
        value = self._of_type(node.this, "number", level)
        if sql.spend_cast(node) not in ("DOUBLE", "FLOAT", "REAL"):
            raise sql.unread(node, _CAST)
        return value

    # --- conditions -------------------------------------------------------------------

    def _compared(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this", "expression"))
        both = self.alike([node.this, node.expression], level)
        return Call(COMPARISONS[type(node).__name__], tuple(both))

    def _joined(self, node: exp.Expr, level: int) -> Expression:
        kind, waiting, parts = type(node), [node], []
        while waiting:
            one = waiting.pop()
            if type(one) is kind:
                only(self._sql, one, ("this", "expression"))
                waiting.extend((one.expression, one.this))
            else:
                parts.append(self._of_type(one, "boolean", level))
        return (AllOf if kind.__name__ == "And" else AnyOf)(tuple(parts))

    def _not(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this",))
        return Not(self._of_type(node.this, "boolean", level))

    def _between(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this", "low", "high"))
        ends = node.args["low"], node.args["high"]
        return Call("between", tuple(self.alike([node.this, *ends], level)))

    def _in(self, node: exp.Expr, level: int) -> Expression:
        only(self._sql, node, ("this", "expressions"))
        nodes = node.args.get("expressions") or []
        if not nodes:
            raise self._sql.unread(node)
        return Call("in", tuple(self.alike([node.this, *nodes], level)))

    def _is(self, node: exp.Expr, level: int) -> Expression:
        from sqlglot import exp

        only(self._sql, node, ("this", "expression"))
        if type(node.expression) is exp.Null:
            return IsNull(self.read(node.this, level))
        if type(node.expression) is not exp.Boolean:
            raise self._sql.unread(node.expression)
        truth = Literal(bool(node.expression.this), "boolean")
        return Call("same", (self._of_type(node.this, "boolean", level), truth))

    def _window(self, node: exp.Expr) -> Expression:
        def orders(order: exp.Expr) -> tuple[Order, ...]:
            return self._orders(order, self._in_window)

        found = read_window(node, self._sql, self.read, orders)
        if found.function == "sum" and found.value is not None:
            self._must_be(found.value, "number", node.this.this)
        return found


def _is_name(node: Any) -> bool:
    return type(node).__name__ == "Column" and not node.args.get("table")


def _is_period(node: exp.Expr) -> bool:
    kind, inner = type(node).__name__, node.args.get("this")
    dated = kind in ("TimestampTrunc", "DateTrunc", "Date") or (
        kind == "Cast" and node.args["to"].this.name == "DATE"
    )
    return dated and type(inner).__name__ == "Column"


def _without_time(text: str) -> str:
    """Return a timestamp at the beginning of a day as that day."""
    return text.removesuffix("T00:00:00")


def _of_output(output: Key | Aggregate | Output) -> Expression:
    return output.value if isinstance(output, Output) else Released(output.name)


#: Tokens that may stand between an item of ORDER BY and its direction.
_CLOSING: Final = frozenset(
    {"R_PAREN", "L_PAREN", "STAR", "NULL", "TRUE", "FALSE", "END"}
)
_A: Final[Mapping[_Type, str]] = {
    "number": "a number",
    "text": "a text",
    "boolean": "a condition",
    "date": "a date",
    "null": "NULL",
}
_REMEDIES: Final[Mapping[tuple[_Type, _Type], str]] = {
    ("number", "boolean"): "write CASE WHEN … THEN 1 ELSE 0 END",
    ("number", "text"): "answers are numbers: give each text one, as in THEN 1 ELSE 0",
    ("boolean", "number"): "compare it with a value: COUNT(*) > 10",
}
_TYPES: Final[Mapping[str, _Type]] = {
    "text": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "date",
}
_TRUTHS: Final = frozenset({*COMPARISONS.values(), "between", "in", "same"})
#: Functions whose value is one of their arguments, and which these are.
_SAME_TYPE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "coalesce": lambda parts: parts,
    "least": lambda parts: parts,
    "greatest": lambda parts: parts,
    "nullif": lambda parts: parts[:1],
    "case": lambda parts: (*parts[1::2], parts[-1]),
}
