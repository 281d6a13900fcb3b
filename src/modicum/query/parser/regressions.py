"""Aggregates of pairs of numbers: CORR, COVAR_POP, REGR_SLOPE and the like.

They are arithmetic on averages and spreads, which are measured; so they need no
mechanism of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from modicum.query.model import (
    Aggregate,
    Call,
    Expression,
    Function,
    IsNull,
    Literal,
    Not,
    Released,
)
from modicum.query.parser.aggregates import numbers
from modicum.query.parser.arguments import fitted
from modicum.query.parser.keys import label_of
from modicum.query.parser.periods import needed
from modicum.query.parser.scope import Scope
from modicum.query.parser.sql_text import only

if TYPE_CHECKING:
    from sqlglot import exp

_WORDS: Final[Mapping[str, str]] = {
    "Corr": "CORR",
    "CovarPop": "COVAR_POP",
    "CovarSamp": "COVAR_SAMP",
    "RegrCount": "REGR_COUNT",
    "RegrIntercept": "REGR_INTERCEPT",
    "RegrR2": "REGR_R2",
    "RegrSlope": "REGR_SLOPE",
}


def read_regression(
    node: exp.Expr, scope: Scope, measured: Callable[[Aggregate], str]
) -> Expression:
    """Return an aggregate of pairs, computed of others; NULL in a pair drops it.

    Args:
        node: The call; of a regression, y comes first.
        scope: The tables that are read.
        measured: Notes that an aggregate is measured, and returns its name.

    Raises:
        InputError: If it is not of two numbers.
    """
    word = _WORDS[type(node).__name__]
    only(scope.sql, node, ("this", "expression"))
    y, x = (
        numbers(needed(node, part, scope.sql), node, scope)
        for part in ("this", "expression")
    )
    scope.sql.spend_call(node, (word,))
    product = fitted("times", (y, x), node, scope)

    def of(function: Function, value: Expression) -> Expression:
        if value is not product:
            none = Literal(None, scope.facts(value).type)
            value = Call("case", (Not(IsNull(product)), value, none))
        name = f"{function}_{label_of(value)}"
        everybody = function in ("variance", "stddev")
        made = Aggregate(name, function, value, population=everybody)
        return Released(measured(made))

    def covariance() -> Expression:
        means = Call("times", (of("avg", x), of("avg", y)))
        return Call("minus", (of("avg", product), means))

    def slope() -> Expression:
        return Call("ratio", (covariance(), of("variance", x)))

    if word == "CORR":
        spreads = Call("times", (of("stddev", x), of("stddev", y)))
        return Call("ratio", (covariance(), spreads))
    if word == "COVAR_SAMP":
        count = of("count", product)
        fewer = Call("minus", (count, Literal(1, "integer")))
        return Call("ratio", (Call("times", (covariance(), count)), fewer))
    if word == "REGR_R2":
        both = covariance()
        spreads = Call("times", (of("variance", x), of("variance", y)))
        return Call("ratio", (Call("times", (both, both)), spreads))
    if word == "REGR_INTERCEPT":
        rise = Call("times", (slope(), of("avg", x)))
        return Call("minus", (of("avg", y), rise))
    return {
        "REGR_COUNT": lambda: of("count", product),
        "COVAR_POP": covariance,
        "REGR_SLOPE": slope,
    }[word]()
