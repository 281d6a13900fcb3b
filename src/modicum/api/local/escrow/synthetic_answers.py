"""Synthetic answers to queries, for trying a task before requesting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from modicum.api.local.escrow.declared_tables import newest_of
from modicum.api.local.escrow.retry import Ledger
from modicum.api.local.escrow.review import examined
from modicum.api.local.governance.approval_cases import active_policy
from modicum.core.errors import Code, Problem, StaleError
from modicum.escrow.dummy_data import RandomSource, dummy_answers, with_noise
from modicum.escrow.programs import Table
from modicum.query.explanation import errors_of
from modicum.query.model import Output, Released
from modicum.query.query_file import QueryFile

_SURE: Final = Fraction(19, 20)
#: Laplace noise of scale 1 lies within ± 3 so often: ln 20 is almost 3.
_WIDTH: Final = 3


@dataclass(frozen=True, slots=True)
class SyntheticAnswers:
    """Synthetic answers, by release.

    Attributes:
        exact: The synthetic exact answers.
        private: The same with noise, about as much as the queries would add.
    """

    exact: Mapping[str, Table] = field(repr=False)
    private: Mapping[str, Table] = field(repr=False)


def queries_under(ledger: Ledger, contract: str) -> dict[str, QueryFile]:
    """Return the queries of a contract, by release. Writes nothing."""
    found = {}
    for one in examined(ledger, contract).queries:
        if one.score is not None:
            continue  # It has no answers.
        if one.query is None or one.problem:
            message = f"the query `{one.charge.release}` cannot be read: {one.problem}"
            raise StaleError(Problem(Code.POLICY_STALE, message))
        found[one.charge.release] = one.query
    return found


def queries_written(ledger: Ledger, texts: Sequence[str]) -> dict[str, QueryFile]:
    """Return queries that are not requested yet, by release. Writes nothing."""
    book, _, _ = ledger.current()
    compiled = active_policy(book)
    newest = newest_of(book.state.escrow.data, compiled)
    read = [newest.read(text, compiled) for text in texts]
    return {one.heading.id: one for one in read}


def synthetic_answers_of(
    queries: Mapping[str, QueryFile], dice: RandomSource
) -> SyntheticAnswers:
    """Return synthetic answers to queries, from their declarations only.

    The noise is not secure, and gives no protection. Averages, and other results
    computed from several mechanisms, get none.
    """
    exact, private = {}, {}
    for release, one in queries.items():
        request = one.request
        table = dummy_answers(request.query, request.tables, dice, request.part)
        exact[release] = table
        shown = {each.name for each in request.query.outputs if _is_measured(each)}
        for error in errors_of(one.compiled, _SURE):
            if error.per == "answer" and error.aggregate in shown:
                scale = error.half_width / _WIDTH
                table = with_noise(table, scale, dice, error.aggregate)
        private[release] = table
    return SyntheticAnswers(exact, private)


def _is_measured(output: Output) -> bool:
    """Return whether an output is an aggregate, and not computed of some."""
    return output.value == Released(output.name)
