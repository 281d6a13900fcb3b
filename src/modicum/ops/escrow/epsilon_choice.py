"""Epsilon by risk: the loss at which owners of data may approve a query.

What analysts may see (`contract_risk`, `query_risk`) is computed from the ledger alone,
which contains no rows: it does not depend on the vault. What owners see of their own
rows (`own_risk`) is advice for them only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Protocol

import numpy as np

from modicum.api.local import Workspace
from modicum.api.local.escrow.actions import ShownContract
from modicum.api.local.escrow.declared_tables import (
    charge_of,
    newest_of,
    read_query,
    tables_of,
)
from modicum.api.local.explanation.release_text import (
    release_text,
    with_number,
    written,
)
from modicum.api.schema import escrow
from modicum.api.schema import shape as schema
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem, StaleError
from modicum.core.rationals import number_spelled
from modicum.engines.factory import EngineOptions, SystemSecrets, open_engine
from modicum.ledger.log.contracts import Charge, QueryTerms, Version
from modicum.ledger.state.datasets import DataSet
from modicum.ledger.state.flow import Flow
from modicum.ops.escrow.risk_queries import RiskyQuery, risky
from modicum.policy import CompiledPolicy
from modicum.query.statistics import Exact, KeyValue
from modicum.risk.arguments import Number
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice
from modicum.risk.measurement.documents import choice_to_dict
from modicum.risk.measurement.study import Risk
from modicum.risk.profile import Influence

#: The conditions of every choice for a query of the escrow.
DISCRETE: Final = (
    "The indicators are those of continuous noise. The noise of an answer is discrete,"
    " and varies less where its scale is below a few steps: there, the indicators"
    " differ a bit more."
)
_NOBODY: Final = np.zeros(0, dtype=np.int64)


class EscrowView(Protocol):
    """The needed part of an escrow; see `EscrowOffice`."""

    def show(self, name: str) -> ShownContract:
        """Return a contract as people look at it."""
        ...

    def data(self) -> Mapping[str, DataSet]:
        """Return the data sets that are registered, by name."""
        ...


class WithEscrow(Protocol):
    """A ledger with an escrow, here or over HTTP."""

    @property
    def escrow(self) -> EscrowView:
        """The escrow operations."""
        ...

    def policy(self) -> CompiledPolicy:
        """Return the policy that is decided by."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """The given facts about a query besides its contract.

    Attributes:
        query: The release that it is; None if the contract has only one.
        delta: For Gaussian noise.
        epsilons: The candidates.
    """

    query: str | None = None
    delta: Number | None = None
    epsilons: Sequence[Number] = PUBLISHED


@dataclass(frozen=True, slots=True, repr=False)
class QueryRisk:
    """The meaning of an epsilon for a query of the escrow, without reading any row.

    Attributes:
        contract: The contract of the query; empty for none.
        data: The version of its data.
        risky: The query.
        unseen: Its risk on empty data.
    """

    contract: str
    data: Version
    risky: RiskyQuery
    unseen: Risk

    def choose(self, tau: Number) -> Choice:
        """Return the largest epsilon for any rows; it is public."""
        return self.unseen.choose(tau)

    def loss_at(self, choice: Choice) -> Fraction | None:
        """Return the loss to write into the query file; None if none suffices.

        Args:
            choice: The choice.
        """
        if choice.epsilon is None:
            return None
        return self.risky.loss_at(self.unseen.noise, choice.epsilon)

    def fits(self, choice: Choice) -> bool:
        """Return whether the query loses no more than was chosen."""
        most = self.loss_at(choice)
        return most is not None and self.risky.query.request.loss <= most

    def file_at(self, choice: Choice) -> str:
        """Return the query file with the chosen loss; empty for none."""
        loss = self.loss_at(choice)
        if loss is None:
            return ""
        path = ("query", "loss", self.risky.unit.name, self.risky.measure)
        return release_text(with_number(written(self.risky.query.file), path, loss))

    def to_dict(self, choice: Choice) -> dict[str, Any]:
        """Return the documented JSON form; it is public."""
        loss = self.loss_at(choice)
        found: dict[str, Any] = schema.plain(
            escrow.QueryRisk(
                contract=self.contract or None,
                query=self.risky.query.heading.id,
                data=escrow.Version(id=self.data.id, version=self.data.number),
                unit=self.risky.unit.name,
                measure=self.risky.measure,
                requested=number_spelled(self.risky.query.request.loss),
                loss=None if loss is None else number_spelled(loss),
                fits=self.fits(choice),
                note=DISCRETE,
                **choice_to_dict(choice),
            )
        )
        return found

    def __repr__(self) -> str:
        return f"<QueryRisk of {self.risky.query.heading.id}: no row was read>"


def contract_risk(
    ws: WithEscrow,
    name: str,
    *,
    query: str | None = None,
    delta: Number | None = None,
    epsilons: Sequence[Number] = PUBLISHED,
) -> QueryRisk:
    """Return the meaning of an epsilon for a query of a contract. Reads no row.

    Args:
        ws: The ledger, with an escrow, here or over HTTP; a vault is not needed.
            Nothing is written.
        name: The contract.
        query: The release that its query is; None if it has only one.
        delta: For Gaussian noise; needed there.
        epsilons: The candidates.

    Raises:
        InputError: If there is no such contract or query, or no epsilon is chosen by
            risk for it.
        StaleError: If it means something else under the active policy.
        UsageError: If there is no ledger with a policy.
    """
    flow = ws.escrow.show(name).flow
    return risk_of(flow, ws.escrow.data(), ws.policy(), Facts(query, delta, epsilons))


def risk_of(
    flow: Flow, known: Mapping[str, DataSet], compiled: CompiledPolicy, facts: Facts
) -> QueryRisk:
    """Return the meaning of an epsilon for a query of a contract."""
    charge, data = _charge(flow, facts.query), flow.contract.data
    tables = tables_of(known, data.values(), compiled)
    read = read_query(charge.text, tables, compiled)
    if charge_of(charge.text, read, compiled).content != charge.content:
        raise StaleError(
            Problem(
                Code.POLICY_STALE,
                f"the query `{charge.release}` has another meaning under the active"
                " policy than when it was proposed",
                help="have it proposed again, under another id",
            )
        )
    risky_query = risky(read)
    return QueryRisk(
        flow.contract.id,
        data[risky_query.table],
        risky_query,
        _unseen(risky_query, facts),
    )


def query_risk(
    ws: WithEscrow,
    text: str,
    *,
    delta: Number | None = None,
    epsilons: Sequence[Number] = PUBLISHED,
) -> QueryRisk:
    """Return the meaning of an epsilon for a query of the newest data. Reads no row.

    Args:
        ws: The ledger, with an escrow, here or over HTTP; a vault is not needed.
            Nothing is written.
        text: A query file; its table is a data set.
        delta: For Gaussian noise; needed there.
        epsilons: The candidates.

    Raises:
        InputError: If it cannot be priced, reads unregistered data, or epsilon cannot
            be chosen by risk for it.
        UsageError: If there is no ledger with a policy.
    """
    return risk_of_file(text, ws.escrow.data(), ws.policy(), Facts("", delta, epsilons))


def risk_of_file(
    text: str, known: Mapping[str, DataSet], compiled: CompiledPolicy, facts: Facts
) -> QueryRisk:
    """Return the meaning of an epsilon for a query of the newest data."""
    newest = newest_of(known, compiled)
    read = newest.read(text, compiled)
    charge_of(text, read, compiled)  # A query without a price cannot be requested.
    risky_query = risky(read)
    return QueryRisk(
        "", newest.versions[risky_query.table], risky_query, _unseen(risky_query, facts)
    )


def _charge(flow: Flow, query: str | None) -> Charge:
    terms, name = flow.contract.terms, flow.contract.id
    if not isinstance(terms, QueryTerms):
        raise InputError(
            Problem(
                Code.CONTRACT_REFUSED,
                f"the contract `{name}` has no query",
                help="use the contract that it follows from",
            )
        )
    found = {one.release: one for one in terms.charges}
    if query is None and len(found) == 1:
        (charge,) = found.values()
        return charge
    if query in found:
        return found[query]
    if query is None:
        message = (
            f"the contract `{name}` has {len(found)} queries, each with its own noise"
        )
    else:
        message = f"the contract `{name}` has no query `{query[:200]}`"
    raise InputError(
        Problem(
            Code.MISSING_KEY if query is None else Code.UNKNOWN_NAME,
            message,
            label="" if query is None else nearest(query, list(found)),
            help="choose one of " + ", ".join(found),
        )
    )


def _unseen(risky_query: RiskyQuery, facts: Facts) -> Risk:
    nothing = Influence(
        risky_query.query.compiled.groups,
        np.zeros(0),
        np.zeros(1, dtype=np.int64),
        _NOBODY,
    )
    return Risk(
        query=risky_query.sql,
        question=risky_query.question,
        influence=nothing,
        noise=risky_query.noise(facts.delta),
        private=(),
        unbounded=(),
        typed_by_rows=False,
        candidates=checked(facts.epsilons),
    )


#: Shown whenever results from rows are displayed.
OWNERS_ONLY: Final = (
    "For the owners of the data only: computed from rows without noise. It reveals"
    " information about people, and so does any epsilon that follows from it: share"
    " only the public choice with analysts."
)
#: Why a choice that reads rows may not be shared: it would be a flow without a
#: contract.
_NO_CONTRACT: Final = "these rows are in escrow, and no contract permits this choice"


def own_risk(ws: Workspace, risk: QueryRisk) -> Risk:
    """Return the risk of a query on the rows in the vault, to an owner of the data.

    Rows are read in memory, capped and bounded as a run of the query would: where a cap
    cuts, which rows count is drawn anew each time. Nothing is written.

    Args:
        ws: The ledger, opened with its vault by an owner.
        risk: The query.

    Returns:
        The risk. It is for owners of the data only, never for analysts.

    Raises:
        ConflictError: If the caller does not own the data, or it was shredded.
        InputError: If the data is not as declared.
        UnavailableError: If it cannot be read; without the cause.
        UsageError: If there is no vault.
        VerificationError: If the sealed content was changed.
    """
    one = risk.risky
    with ws.escrow.own_rows([risk.data]) as rows:
        source = {one.table: rows[risk.data.id]}
        with open_engine("duckdb", source, EngineOptions(spills=False)) as engine:
            engine.check(one.of_each_person)
            lots, name = SystemSecrets().draw(), one.line.statistic.name
            everybody = engine.run(one.of_everybody, lots)[name]
            found = engine.run(one.of_each_person, lots)[name]
    influence = _influence(risk, everybody, found)
    return replace(risk.unseen, influence=influence, unbounded=(_NO_CONTRACT,))


def _influence(risk: QueryRisk, everybody: Exact, found: Exact) -> Influence:
    """Return how far everybody moves the answer, people of the same moves together."""
    moves: defaultdict[KeyValue, list[int]] = defaultdict(list)
    for (who, *_), number in found.items():
        if number:
            moves[who].append(number)
    kinds = Counter(tuple(sorted(moves.get(who, ()))) for (who,) in everybody)
    return _of_kinds(risk, kinds)


def _of_kinds(risk: QueryRisk, kinds: Mapping[tuple[int, ...], int]) -> Influence:
    step = risk.risky.step
    flat = [float(number * step) for one in kinds for number in one]
    starts = list(accumulate(map(len, kinds), initial=0))
    return Influence(
        risk.risky.query.compiled.groups,
        np.array(flat, dtype=np.float64),
        np.array(starts, dtype=np.int64),
        np.array(list(kinds.values()), dtype=np.int64),
    )
