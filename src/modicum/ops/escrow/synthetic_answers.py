"""Synthetic answers to a contract's queries, for trying a task; no row is read."""

from __future__ import annotations

from random import Random

from modicum.api.local.escrow.declared_tables import read_query, tables_of
from modicum.api.local.escrow.synthetic_answers import (
    SyntheticAnswers,
    synthetic_answers_of,
)
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.log.contracts import QueryTerms
from modicum.ops.escrow.epsilon_choice import WithEscrow


def synthetic_answers(ws: WithEscrow, name: str, *, seed: int = 0) -> SyntheticAnswers:
    """Return synthetic answers to a contract's queries, by its declared data.

    Tasks that run on them run on the real ones, too: they have the same columns and the
    same groups. They contain no information about any person, and their noise
    gives no protection.

    Args:
        ws: The ledger, with an escrow, here or over HTTP; a vault is not needed.
            Nothing is written.
        name: The contract.
        seed: The seed; equal seeds give equal answers.

    Raises:
        InputError: If the contract does not exist, has no query, or has one with more
            than 100,000 groups.
    """
    contract = ws.escrow.show(name).flow.contract
    if not isinstance(contract.terms, QueryTerms):
        raise InputError(
            Problem(
                Code.CONTRACT_REFUSED,
                f"the contract `{name}` has no query",
                help="name the contract of the task's query",
            )
        )
    compiled = ws.policy()
    tables = tables_of(ws.escrow.data(), contract.data.values(), compiled)
    queries = {
        one.release: read_query(one.text, tables, compiled)
        for one in contract.terms.charges
    }
    return synthetic_answers_of(queries, Random(seed))  # noqa: S311 - nothing is kept secret
