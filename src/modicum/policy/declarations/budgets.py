"""Reading budgets: one, or one for each risk level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modicum.accounting import Budget, Unlimited
from modicum.accounting.budget_format import limit_delta, read_measured
from modicum.core.document import Entries, Kind, Node, Scalar
from modicum.core.errors import Code, InputError, Problem
from modicum.core.flow_text import flow_text
from modicum.core.rationals import parse_number
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    fail,
    has_decimal_comma,
    nearest,
    number,
    positive,
)
from modicum.policy.declarations.header import Declarations

#: Risk levels that a budget may name though nothing has them.
USUAL_RISK_LEVELS = ("low", "medium", "high")

_INFINITE = frozenset({".inf", "+.inf"})


class Budgets:
    """Reads budgets under what a policy declares."""

    def __init__(self, declared: Declarations) -> None:
        self._bare = declared.header.bare
        used = [attribute.risk for attribute in declared.attributes.values()]
        self._used = tuple(dict.fromkeys((*used, *declared.categories.values())))
        self.risk_levels = tuple(dict.fromkeys((*USUAL_RISK_LEVELS, *self._used)))

    def read(self, node: Node) -> Budget:
        """Return a budget; the key names the measure, nothing is guessed.

        Raises:
            InputError: If it is none.
        """
        try:
            return self._read(node)
        except InputError as error:
            problems = (_with_remedy(problem, node) for problem in error.problems)
            raise InputError(*problems) from error

    def _read(self, node: Node) -> Budget:
        if not isinstance(node, Scalar):
            return read_measured(node, "a budget", limit_delta)
        if node.kind is Kind.NUMBER:
            return self._read_bare(node)
        if node.kind is Kind.TEXT and node.text == "unlimited":
            return Unlimited()
        plain = node.kind is Kind.TEXT and not node.quoted
        if plain and not has_decimal_comma(node.text):
            raise fail(
                Code.NO_MEASURE,
                f'"{node.text[:40]}" is not a budget',
                node,
                label=nearest(node.text, ["unlimited"]),
                help="write a number, {eps: …} and the like, or unlimited",
            )
        number(node, "a budget")
        return read_measured(node, "a budget", limit_delta)

    def _read_bare(self, node: Scalar) -> Budget:
        value = positive(node, "a budget")
        if self._bare is None:
            raise fail(
                Code.NO_MEASURE,
                f'"{node.text}" has no measure',
                node,
                notes=("it could be pure eps, eps at some delta, rho or mu",),
                help=f"write {{eps: {node.text}, delta: 1e-7}}, or declare"
                " dp.bare_budget once",
            )
        return self._bare(value)

    def read_by_risk(self, node: Node) -> dict[str, Budget]:
        """Return a budget for each risk level that is named.

        Raises:
            InputError: With every mistake found.
        """
        self._refuse_single(node)
        found = Problems()
        budgets: dict[str, Budget] = {}
        for key, value in Fields(node, "`budget`").rest():
            with found.guard():
                level = choice(
                    key, "risk level", self.risk_levels, Code.UNKNOWN_RISK_LEVEL
                )
                budgets[level] = self.read(value)
        found.raise_any()
        return budgets

    def _refuse_single(self, node: Node) -> None:
        """Refuse one budget where one for each risk level is needed."""
        measured = isinstance(node, Entries) and not self._is_by_risk(node)
        if not measured and not isinstance(node, Scalar):
            return
        if measured and not is_measured(node):
            return
        written = flow_text(node)
        levels = self._used or USUAL_RISK_LEVELS
        pairs = ", ".join(f"{level}: {written}" for level in levels)
        raise fail(
            Code.WRONG_TYPE,
            "`budget` of a policy with `for_each` must be a mapping by risk level,"
            f" got {written}",
            node,
            help=f"write  {{{pairs}}}  instead of  {written}",
        )

    def _is_by_risk(self, node: Entries) -> bool:
        return any(key.text in self.risk_levels for key, _ in node.entries)

    def refuse_by_risk(self, node: Node) -> None:
        """Refuse budgets by risk level where one budget is needed.

        Raises:
            InputError: If `node` is a mapping by risk level.
        """
        if isinstance(node, Entries) and self._is_by_risk(node):
            raise fail(
                Code.UNKNOWN_KEY,
                "a budget for each risk level needs `for_each`",
                node,
                notes=("a policy with `when` makes one rule, with one budget",),
                help="write  for_each: attribute  or  for_each: category  instead of"
                " when",
            )


def is_measured(node: Node) -> bool:
    """Return whether a node is a mapping like ``{eps: 1}``."""
    measures = {"eps", "rho", "mu", "rdp", "delta"}
    return isinstance(node, Entries) and any(
        k.text in measures for k, _ in node.entries
    )


def _with_remedy(problem: Problem, node: Node) -> Problem:
    """Add what to write for a budget that is nothing, or without end."""
    if problem.help or problem.code is not Code.OUT_OF_RANGE:
        return problem
    for value in _scalars(node):
        if value.mark != problem.mark or value.kind is not Kind.NUMBER:
            continue
        if value.text.lower() in _INFINITE:
            remedy = f"write  unlimited  instead of  {flow_text(node)}"
            return replace(problem, help=remedy)
        if parse_number(value.text) == 0:
            return replace(problem, help="to forbid something, write a guard")
    return problem


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Entries):
        for key, value in node.entries:
            if isinstance(value, Scalar) and key.text != "delta":
                yield value
