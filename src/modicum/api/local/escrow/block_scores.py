"""Scores of blocks of people in contracts: priced, and read again."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.api.local.escrow.declared_tables import read_query, tables_of
from modicum.api.local.escrow.programs import range_of
from modicum.api.local.evaluation import price_release
from modicum.core.errors import Code, InputError, Problem, StaleError
from modicum.escrow.block_release import BlockScore, Scored, block_score, read_blocks
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program
from modicum.ledger.log.contracts import Charge, Contract, QueryTerms, TaskTerms
from modicum.ledger.state.datasets import DataSet
from modicum.policy import CompiledPolicy


def score_of_blocks(
    scored: Scored, blocks: ByBlocks, compiled: CompiledPolicy
) -> tuple[BlockScore, Charge]:
    """Return the price of a score of blocks, and the charge of its contract."""
    vocabulary = compiled.policy.vocabulary
    score = block_score(scored, blocks, vocabulary)
    # Owners agree to this text: it must be complete and contain nothing else.
    if read_blocks(score.text, vocabulary) != (scored.release, score.blocks):
        raise _otherwise(scored.release)
    recorded = price_release(score.described, compiled)
    return score, Charge(recorded.id, recorded.content, score.text)


def scored_of(
    release: str,
    program: str,
    query: Contract,
    data: Mapping[str, DataSet],
    compiled: CompiledPolicy,
) -> Scored:
    """Return the scored content, with its queries read under a policy."""
    terms = query.terms
    assert isinstance(terms, QueryTerms)  # A task follows from nothing else.
    tables = tables_of(data, query.data.values(), compiled)
    queries = [read_query(one.text, tables, compiled) for one in terms.charges]
    return Scored(release, queries, program, range_of(program))


def read_again(
    contract: Contract,
    query: Contract,
    data: Mapping[str, DataSet],
    compiled: CompiledPolicy,
) -> BlockScore:
    """Return a score of blocks, checked to mean what its owners agreed to."""
    terms = contract.terms
    assert isinstance(terms, TaskTerms)
    if len(terms.charges) != 1:
        raise _otherwise(contract.id)
    (charge,) = terms.charges
    release, blocks = read_blocks(charge.text, compiled.policy.vocabulary)
    scored = scored_of(release, terms.program, query, data, compiled)
    score, now = score_of_blocks(scored, blocks, compiled)
    if now != charge or blocks.number != terms.blocks:
        raise _otherwise(release)
    return score


def refuse_unfit(program: Program) -> None:
    """Refuse a program that no block could be scored by, before anything is spent."""
    if program.compares:
        raise _unfit(
            "a program that compares cannot be scored by blocks: private answers"
            " cover everybody, exact answers cover one block",
            "score the exact answers alone",
        )


def _unfit(why: str, remedy: str) -> InputError:
    return InputError(Problem(Code.DOES_NOT_FIT, why, help=remedy))


def _otherwise(release: str) -> StaleError:
    return StaleError(
        Problem(
            Code.POLICY_STALE,
            f"the score `{release}` has another meaning under the active policy than"
            " when it was approved",
            help="propose it again, under another id",
        )
    )
