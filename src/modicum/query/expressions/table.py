"""All functions of expressions, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from modicum.query.expressions.choices import CHOICES
from modicum.query.expressions.function import Function
from modicum.query.expressions.numbers import NUMBERS
from modicum.query.expressions.patterns import PATTERNS
from modicum.query.expressions.texts import TEXTS
from modicum.query.expressions.times import TIME_FUNCTIONS

FUNCTIONS: Final[Mapping[str, Function]] = {
    **NUMBERS,
    **CHOICES,
    **TEXTS,
    **PATTERNS,
    **TIME_FUNCTIONS,
}
#: By a word in the text of a query, the name of its function.
BY_WORD: Final[Mapping[str, str]] = {
    word: name for name, function in FUNCTIONS.items() for word in function.words
}
#: By a class of sqlglot, the name of its function.
BY_NODE: Final[Mapping[str, str]] = {
    node: name for name, function in FUNCTIONS.items() for node in function.nodes
}
