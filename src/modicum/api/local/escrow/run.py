"""Runs of contracts: queries and tasks, whose results are withheld.

A run is counted before anything is read. Whatever its outcome, the requester learns
only that it ended: the cause of a failure may depend on rows.

The answers about all blocks are computed first, in memory; then the program runs on one
after the other, each for the time of its contract. So a run takes as long as the engine
needs, plus the number of blocks times that time. No answer and no score of a block is
stored: only the noisy mean is withheld.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import Final

from modicum.api.local.balances import Entry
from modicum.api.local.escrow import programs
from modicum.api.local.escrow.block_scores import read_again, refuse_unfit
from modicum.api.local.escrow.declared_tables import charge_of, read_query, tables_of
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
from modicum.api.local.escrow.placement import runnable
from modicum.api.local.escrow.retry import Ledger, retry
from modicum.api.local.governance.approval_cases import active_policy
from modicum.api.local.queries.execution import answered, must_be_drawn, must_fit
from modicum.api.ports.engine import Engine, Engines, Sampler, SecretSource
from modicum.api.ports.escrow import (
    Equipment,
    Scorer,
    Scoring,
    Sealed,
    Work,
    answers_from_bytes,
    answers_to_bytes,
    score_to_bytes,
    table_of,
)
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    StaleError,
    check,
)
from modicum.escrow.block_division import block_of
from modicum.escrow.block_release import BlockScore
from modicum.escrow.blocks import SENSITIVITY, mean_of, sum_of
from modicum.escrow.programs import Program, Table
from modicum.ledger.log.contracts import Charge, Contract, QueryTerms, TaskTerms
from modicum.ledger.state.flow import Flow
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile
from modicum.query.statistics import Block, Secrets
from modicum.query.tables import Tables

_PRIVATE_FIRST: Final = ("private", "exact")


class NoNoise:
    """A sampler that adds no noise: its results are exact, and never disclosed."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Return; there is nothing to draw."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Return whole numbers as they are."""
        return list(values)


def run_query(ledger: Ledger, tools: Tools, contract: Contract) -> Ran:
    """Run the queries of a contract, and withhold their answers."""
    terms = contract.terms
    assert isinstance(terms, QueryTerms)
    queries, rows = ledger.turn(
        lambda entry: (_queries(entry, contract, terms), rows_of(entry, contract)),
        deciding=True,
    )
    policy = queries[0].policy
    # A run that cannot start reserves nothing.
    if "private" in terms.results:
        for one in queries:
            must_be_drawn(one.compiled, tools.engines.sampler())
    requests = [(one.heading.id, one.described) for one in queries]
    denied = reserve(ledger, tools, requests)
    if denied is not None:
        return Ran(denied)
    stored = contract.digest, terms.results
    with opened(tools, rows, _query_work, queries, *stored) as apart:
        try:
            run = retry(
                ledger,
                tools.equipment,
                lambda entry: _start_query(entry, contract, terms, policy),
            )
        except (ConflictError, InputError, StaleError):
            # The policy or people's minds changed since. Nothing was started.
            give_up(ledger, [one for one, _ in requests], CHANGED)
            raise
        return carried_out(ledger, tools, contract, run, lambda: apart.finish(run))


def _query_work(
    equipment: Equipment,
    engines: Engines,
    rows: Rows,
    queries: Sequence[QueryFile],
    contract: str,
    results: Sequence[str],
) -> Work:
    by_name: dict[str, Sampler] = {"private": engines.sampler(), "exact": NoNoise()}
    with ExitStack() as stack:
        requests = opened_engines(equipment, engines, rows, queries, stack)
        for query, engine in requests:
            for name in results:
                must_fit(query.compiled, engine, by_name[name])
        run = yield None
        found = {
            name: {
                query.heading.id: answered(query, engine, by_name[name], engines.lots())
                for query, engine in requests
            }
            for name in results
        }
    return {
        name: equipment.vault.seal(
            programs.of_result(contract, int(run or 0), name), answers_to_bytes(one)
        ).digest
        for name, one in found.items()
    }


def opened_engines(
    equipment: Equipment,
    engines: Engines,
    rows: Rows,
    queries: Sequence[QueryFile],
    stack: ExitStack,
) -> list[tuple[QueryFile, Engine]]:
    """Return queries, each with an engine that has its rows, while a stack is open."""
    sources = {
        name: stack.enter_context(equipment.rows(*where))
        for name, where in rows.items()
    }
    return [
        (
            one,
            stack.enter_context(
                engines.engine(
                    "duckdb",
                    {name: sources[name] for name in one.request.query.sources},
                    "",
                    spills=False,
                )
            ),
        )
        for one in queries
    ]


def run_task(ledger: Ledger, tools: Tools, contract: Contract, query: Flow) -> Ran:
    """Run the program of a contract, on private and exact answers separately."""
    terms = contract.terms
    assert isinstance(terms, TaskTerms)
    ledger.turn(lambda entry: must_be_permitted(entry, contract))
    # A run that cannot start uses nothing up.
    program, limits = runnable(tools, terms)
    # A run may leave traces in the machine's caches for the next one. So the run on
    # exact answers is last; its score depends on them anyway.
    inputs = {
        name: (
            where_is(query, name),
            where_is(query, "private") if program.compares else None,
        )
        for name in sorted(terms.results, key=_PRIVATE_FIRST.index)
    }
    opens = {one.id for both in inputs.values() for one in both if one is not None}
    with (
        tools.equipment.apart(
            _task_work, inputs, program, contract.digest, opens=opens, still=tools.still
        ) as apart,
        ExitStack() as resources,
    ):
        sandbox = tools.equipment.sandbox(terms.tier)
        turn = resources.enter_context(sandbox.turn(tools.still))
        run = retry(
            ledger, tools.equipment, lambda entry: begin(entry, contract), tools.still
        )
        scorer = Scorer(program, turn, limits, resources.close)
        return carried_out(
            ledger, tools, contract, run, lambda: apart.finish(run, scorer), resources
        )


def _task_work(
    equipment: Equipment,
    inputs: Mapping[str, tuple[Sealed, Sealed | None]],
    program: Program,
    contract: str,
) -> Work:
    run = yield None
    scores = {}
    for name, (given, compared) in inputs.items():
        tables = _tables(equipment, given)
        reference = None if compared is None else _tables(equipment, compared)
        scores[name] = yield Scoring(program, tables, reference)
    yield None  # The rest does not need the sandbox.
    return {
        name: equipment.vault.seal(
            programs.of_result(contract, int(run or 0), name), score_to_bytes(score)
        ).digest
        for name, score in scores.items()
    }


def _tables(equipment: Equipment, sealed: Sealed) -> Mapping[str, Table]:
    return answers_from_bytes(equipment.vault.open(sealed)).tables


def where_is(flow: Flow, name: str) -> Sealed:
    """Return where a result lies in the vault."""
    return Sealed(
        programs.of_result(flow.contract.digest, flow.ended_by, name),
        flow.results[name],
    )


def _queries(entry: Entry, contract: Contract, terms: QueryTerms) -> list[QueryFile]:
    must_be_permitted(entry, contract)
    compiled = active_policy(entry.book)
    data = entry.book.state.escrow.data
    tables = tables_of(data, contract.data.values(), compiled)
    return [_query(one, tables, compiled) for one in terms.charges]


def _query(charge: Charge, tables: Tables, compiled: CompiledPolicy) -> QueryFile:
    query = read_query(charge.text, tables, compiled)
    if charge_of(charge.text, query, compiled).content != charge.content:
        raise StaleError(
            Problem(
                Code.POLICY_STALE,
                f"the query `{query.heading.id}` has another meaning under the active"
                " policy than when it was approved",
                help="propose it again, under another id",
            )
        )
    return query


def _start_query(
    entry: Entry, contract: Contract, terms: QueryTerms, policy: str
) -> int:
    """Count a run of queries, checked to mean what their owners agreed to."""
    if active_policy(entry.book).policy.digest != policy:
        _queries(entry, contract, terms)  # Another one became active since.
    return begin(entry, contract)


class OneDivision:
    """Secrets of a run in which each id stays in one block throughout.

    Args:
        lots: The source of secrets.
    """

    def __init__(self, lots: SecretSource) -> None:
        self._lots = lots
        self._block_key = lots.draw().block_key
        check(bool(self._block_key), "people are assigned to blocks by a secret key")

    def draw(self) -> Secrets:
        """Return new secrets, with the key of the blocks that was drawn first."""
        new = self._lots.draw()
        return Secrets(new.order_key, new.sample_seed, self._block_key)


def run_blocks(ledger: Ledger, tools: Tools, contract: Contract, query: Flow) -> Ran:
    """Run the program of a contract on each block, and withhold the noisy mean.

    Args:
        ledger: The ledger.
        tools: Its dependencies.
        contract: The contract.
        query: The contract whose queries run on each block.

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
    # A run that cannot start reserves nothing.
    program, limits = runnable(tools, terms)
    refuse_unfit(program)
    blocks, release = score.blocks, score.scored.release
    tools.engines.sampler().check(blocks.noise, blocks.scale, Fraction(SENSITIVITY))
    with ExitStack() as resources:
        sandbox = tools.equipment.sandbox(terms.tier)
        turn = resources.enter_context(sandbox.turn(tools.still))
        denied = reserve(ledger, tools, [(release, score.described)])
        if denied is not None:
            return Ran(denied)
        stored = score, program, contract.digest
        with opened(tools, rows, _work, *stored) as apart:
            run = _query_started(ledger, tools, contract, query, release)
            scorer = Scorer(program, turn, limits, resources.close)
            return carried_out(
                ledger,
                tools,
                contract,
                run,
                lambda: apart.finish(run, scorer),
                resources,
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
        requests = opened_engines(equipment, engines, rows, queries, stack)
        for query, engine in requests:
            must_fit(query.compiled, engine, NoNoise())
        run = yield None
        answers = list(_answers(score, requests, engines))
    scores = []
    for one in answers:
        scores.append((yield Scoring(program, one)))
    yield None  # The rest does not need the sandbox.
    content = score_to_bytes(_mean(score, scores, sampler))
    place = programs.of_result(contract, int(run or 0), "private")
    return {"private": equipment.vault.seal(place, content).digest}


def _query_started(
    ledger: Ledger, tools: Tools, contract: Contract, query: Flow, release: str
) -> int:
    """Start a reserved run, or cancel its reservation."""

    def start(entry: Entry) -> int:
        _score(entry, contract, query)
        return begin(entry, contract)

    try:
        return retry(ledger, tools.equipment, start)
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
    score: BlockScore, requests: Sequence[tuple[QueryFile, Engine]], engines: Engines
) -> Iterator[Mapping[str, Table]]:
    """Yield the exact answers about each block, by release."""
    lots = OneDivision(engines.lots())
    for number in range(score.blocks.number):
        block = Block(score.blocks.unit, number, score.blocks.number)
        yield {
            query.heading.id: _table(block_of(query, block), engine, lots)
            for query, engine in requests
        }


def _table(query: QueryFile, engine: Engine, lots: SecretSource) -> Table:
    return table_of(answered(query, engine, NoNoise(), lots))
