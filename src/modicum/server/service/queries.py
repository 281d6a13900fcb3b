"""Private queries as releases. No table is read."""

from __future__ import annotations

from modicum.api.local.decision import Decision
from modicum.api.local.explanation.remedies import Explanation
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.queries.actions import plan_of
from modicum.api.local.release_datasets import data_sets_of, id_of, must
from modicum.api.local.views.queries import plan_view
from modicum.api.local.views.releases import decision_view
from modicum.api.local.visibility import OTHERS
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.release import QueryInput, QueryPlan
from modicum.core.document import Node
from modicum.core.yaml_reader import read_document
from modicum.query.query_file import QueryFile, read_query_file, refuse_misplaced
from modicum.query.table_format import read_tables
from modicum.server.inputs.body import TREE_NODES
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import Visibility
from modicum.writer.service import Decider


class Queries:
    """The operations on private queries.

    Args:
        decider: The ledger.
        threads: Where they run.
        sight: Removes hidden data from responses.
    """

    def __init__(self, decider: Decider, threads: Threads, sight: Visibility) -> None:
        self._decider = decider
        self._threads = threads
        self._sight = sight

    async def plan(self, who: Identity, sent: QueryInput) -> QueryPlan:
        """Return what a query would cost, and the decision. Writes nothing."""
        node = await self._read(who, sent.query, "the query")
        tables = await self._read(who, sent.tables, "the tables file")
        must(who, Action.CHECK_RELEASE, data_sets_of(node))

        def work() -> tuple[QueryFile, Decision, Explanation | None]:
            return self._decider.study(lambda view: _planned(view, node, tables))

        query, decision, found = await self._sight.guard(
            who, lambda: id_of(node), self._threads.ponder(work)
        )
        if found is not None:
            hidden = await self._sight.hidden(who, found.named)
            found = found.hiding(hidden, OTHERS)
        return await self._threads.compute(
            lambda: plan_view(query, decision_view(decision, found, text=True))
        )

    async def _read(self, who: Identity, text: str, name: str) -> Node:
        """Return a file that was sent as a text."""
        return await self._threads.read(
            who.name,
            lambda tick: read_document(text.encode(), name, TREE_NODES, tick),
        )


def _planned(
    view: LedgerView, node: Node, tables: Node
) -> tuple[QueryFile, Decision, Explanation | None]:
    """Return a query under the ledger's policy, its decision, and why it is denied."""
    policy = view.policy().policy
    refuse_misplaced(node, policy.vocabulary)
    declared = read_tables(tables, policy.vocabulary)
    query = read_query_file(node, declared, policy.vocabulary, policy.digest)
    decision = plan_of(view, query)
    return query, decision, decision.explanation()
