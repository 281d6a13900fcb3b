"""The risk of a query on the rows of the escrow, for their owners' eyes only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Final

import numpy as np

from modicum.api.local import Workspace
from modicum.engines.factory import SystemLots, open_engine
from modicum.ops.escrow.epsilon_choice import QueryRisk
from modicum.query.statistics import Exact, KeyValue
from modicum.risk.measurement.study import Risk
from modicum.risk.profile import Influence

#: Said whenever somebody is shown what was found of rows.
OWNERS_ONLY: Final = (
    "For the owners of the data only: computed from rows without noise. Whoever learns"
    " any of it, or an epsilon that follows from it, learns about people; tell analysts"
    " the public choice alone."
)
#: Why no choice that reads rows may be told: it would be a flow without a contract.
_NO_CONTRACT: Final = "these rows lie in an escrow, and no contract lets them choose"


def own_risk(ws: Workspace, asked: QueryRisk) -> Risk:
    """Return the risk of a query on the rows in the vault, to an owner of the data.

    Rows are read in memory, capped and bounded as a run of the query would: where a cap
    cuts, which rows count is drawn anew each time. Nothing is written.

    Args:
        ws: The ledger, opened with its vault by an owner.
        asked: The query.

    Returns:
        What was found. It is for owners of the data only: never for analysts.

    Raises:
        ConflictError: If who asks does not own the data, or it was shredded.
        InputError: If the data is not as declared.
        UnavailableError: If it cannot be read; nothing of why is told.
        UsageError: If there is no vault.
        VerificationError: If it is not what was put in.
    """
    one = asked.asked
    with ws.escrow.own_rows([asked.data]) as rows:
        source = {one.table: rows[asked.data.id]}
        with open_engine("duckdb", source, spills=False) as engine:
            engine.check(one.of_each_person)
            lots, name = SystemLots().draw(), one.line.statistic.name
            everybody = engine.run(one.of_everybody, lots)[name]
            found = engine.run(one.of_each_person, lots)[name]
    influence = _influence(asked, everybody, found)
    return replace(asked.unseen, influence=influence, unbounded=(_NO_CONTRACT,))


def _influence(asked: QueryRisk, everybody: Exact, found: Exact) -> Influence:
    """Return how far everybody moves the answer, people of the same moves together."""
    moves: defaultdict[KeyValue, list[int]] = defaultdict(list)
    for (who, *_), number in found.items():
        if number:
            moves[who].append(number)
    kinds = Counter(tuple(sorted(moves.get(who, ()))) for (who,) in everybody)
    return _of_kinds(asked, kinds)


def _of_kinds(asked: QueryRisk, kinds: Mapping[tuple[int, ...], int]) -> Influence:
    step = asked.asked.step
    flat = [float(number * step) for one in kinds for number in one]
    starts = list(accumulate(map(len, kinds), initial=0))
    return Influence(
        asked.asked.query.lowered.groups,
        np.array(flat, dtype=np.float64),
        np.array(starts, dtype=np.int64),
        np.array(list(kinds.values()), dtype=np.int64),
    )
