"""Running a program on the exact answers about each block of people.

The answers about all blocks are computed first, in memory; then the program runs on one
after the other, each for the time of its contract. So a run takes as long as the engine
needs, and the number of blocks times that time. No answer, and no score of a block, is
kept: what is withheld is the mean, with its noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction

from modicum.api.local.balances import Entry
from modicum.api.local.escrow import places
from modicum.api.local.escrow.block_scores import read_again, refuse_unfit
from modicum.api.local.escrow.execution import (
    CHANGED,
    Ran,
    Rows,
    Tools,
    begin,
    carried_out,
    give_up,
    must_be_permitted,
    opened,
    reserve,
    rows_of,
)
from modicum.api.local.escrow.ledger import Ledger
from modicum.api.local.escrow.placement import to_run
from modicum.api.local.escrow.retry import surely
from modicum.api.local.escrow.run import NoNoise, opened_engines
from modicum.api.local.governance.governance import active_policy
from modicum.api.local.queries.execution import answered, must_fit
from modicum.api.ports.engine import Engine, Engines, Lots, Sampler
from modicum.api.ports.escrow import Equipment, Scorer, Scoring, Work
from modicum.api.ports.results import score_to_bytes, table_of
from modicum.core.errors import ConflictError, InputError, StaleError, check
from modicum.escrow.block_division import block_of
from modicum.escrow.block_release import BlockScore
from modicum.escrow.blocks import SENSITIVITY, mean_of, sum_of
from modicum.escrow.programs import Program, Table
from modicum.ledger.log.contracts import Contract, TaskTerms
from modicum.ledger.state.flow import Flow
from modicum.query.query_file import QueryFile
from modicum.query.statistics import Block, Secrets


class OneDivision:
    """Secrets of a run in which each id stays in one block, whatever is computed.

    Args:
        lots: Where secrets come from.
    """

    def __init__(self, lots: Lots) -> None:
        self._lots = lots
        self._block_key = lots.draw().block_key
        check(bool(self._block_key), "blocks are divided by a secret key")

    def draw(self) -> Secrets:
        """Return new secrets, with the key of the blocks that was drawn first."""
        new = self._lots.draw()
        return Secrets(new.order_key, new.sample_seed, self._block_key)


def run_blocks(ledger: Ledger, tools: Tools, contract: Contract, query: Flow) -> Ran:
    """Run the program of a contract on each block, and withhold the mean, with noise.

    Args:
        ledger: The ledger.
        tools: What it needs.
        contract: The contract.
        query: The contract whose queries are asked of each block.

    Raises:
        ApprovalError: If people must agree to its release first.
        ConflictError: If the contract does not permit it now.
        InputError: If its queries cannot be read any more, or its noise not be drawn.
        StaleError: If it was priced under another policy.
        UnavailableError: If its sandbox is not there, and nothing ran; or it ended
            without a score, and its loss is spent.
    """
    terms = contract.terms
    assert isinstance(terms, TaskTerms)
    score, rows = ledger.turn(
        lambda entry: (_score(entry, contract, query), rows_of(entry, contract)),
        deciding=True,
    )
    # What cannot run is not reserved.
    program, limits = to_run(tools, terms)
    refuse_unfit(program)
    blocks, release = score.blocks, score.scored.release
    tools.engines.sampler().check(blocks.noise, blocks.scale, Fraction(SENSITIVITY))
    with ExitStack() as held:
        sandbox = tools.equipment.sandbox(terms.tier)
        turn = held.enter_context(sandbox.turn(tools.still))
        denied = reserve(ledger, tools, [(release, score.described)])
        if denied is not None:
            return Ran(denied)
        kept = score, program, contract.digest
        with opened(tools, rows, _work, *kept) as apart:
            run = _begun(ledger, tools, contract, query, release)
            scorer = Scorer(program, turn, limits, held.close)
            return carried_out(
                ledger, tools, contract, run, lambda: apart.finish(run, scorer), held
            )


def _work(
    equipment: Equipment,
    engines: Engines,
    rows: Rows,
    score: BlockScore,
    program: Program,
    contract: str,
) -> Work:
    sampler = engines.sampler()
    with ExitStack() as stack:
        queries = score.scored.queries
        asked = opened_engines(equipment, engines, rows, queries, stack)
        for query, engine in asked:
            must_fit(query.lowered, engine, NoNoise())
        run = yield None
        answers = list(_answers(score, asked, engines))
    scores = []
    for one in answers:
        scores.append((yield Scoring(program, one)))
    yield None  # What comes after keeps nobody waiting.
    content = score_to_bytes(_mean(score, scores, sampler))
    place = places.of_result(contract, int(run or 0), "private")
    return {"private": equipment.vault.seal(place, content).digest}


def _begun(
    ledger: Ledger, tools: Tools, contract: Contract, query: Flow, release: str
) -> int:
    """Begin a run that was reserved, or take back what was."""

    def start(entry: Entry) -> int:
        _score(entry, contract, query)
        return begin(entry, contract)

    try:
        return surely(ledger, tools.equipment, start)
    except (ConflictError, InputError, StaleError):
        # The policy or people's minds changed since. Nothing was started.
        give_up(ledger, [release], CHANGED)
        raise


def _score(entry: Entry, contract: Contract, query: Flow) -> BlockScore:
    must_be_permitted(entry, contract)
    data = entry.book.state.escrow.data
    return read_again(contract, query.contract, data, active_policy(entry.book))


def _mean(
    score: BlockScore, scores: Sequence[float | None], sampler: Sampler
) -> Fraction:
    """Return the mean of the scores of all blocks, with noise on their sum."""
    blocks, span = score.blocks, score.scored.span
    total = sum_of(scores, span)
    (noisy,) = sampler.add(blocks.noise, blocks.scale, [total])
    return mean_of(noisy, blocks.number, span)


def _answers(
    score: BlockScore, asked: Sequence[tuple[QueryFile, Engine]], engines: Engines
) -> Iterator[Mapping[str, Table]]:
    """Yield the exact answers about each block, by release."""
    lots = OneDivision(engines.lots())
    for number in range(score.blocks.number):
        block = Block(score.blocks.unit, number, score.blocks.number)
        yield {
            query.heading.id: _table(block_of(query, block), engine, lots)
            for query, engine in asked
        }


def _table(query: QueryFile, engine: Engine, lots: Lots) -> Table:
    return table_of(answered(query, engine, NoNoise(), lots))
