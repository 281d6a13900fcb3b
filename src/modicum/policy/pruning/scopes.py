"""Which rules are about less than which, whatever their units and budgets.

A *node* is a predicate together with a context. Where the predicate looks at nothing
that any context looks at, it is *plain*, and its nodes decompose: for B and B' plain
and contexts e and e', all of them satisfiable,

    B and e imply B' and e'   exactly if   B implies B' and e implies e'.

(B and B' look at other things than e and e'. So any way to make B true goes together
with any way to make e true, and if both together imply B', then B alone does; the
same for e'.) All other nodes are *tied*: each is compared as a whole. What no
mechanism can match has no node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modicum.policy.pruning.contexts import Contexts
from modicum.policy.pruning.lists import Integers, Lists

#: In place of the node of a rule that no mechanism can match.
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Scopes:
    """The nodes of a rule set and their order.

    Attributes:
        node: For each base rule and context its node, or `NOWHERE`.
        size: How many nodes there are.
        plain: How many plain predicates there are. Node `e * plain + p` is plain
            predicate `p` in context `e`; tied nodes come after these.
        contexts: The contexts and their order.
        wider: For each plain predicate those it implies, itself too.
        ties: For each node those it implies, where it or they are tied; for a tied
            node, itself too.
    """

    node: Integers
    size: int
    plain: int
    contexts: Contexts
    wider: Lists
    ties: Lists

    def least(self, keys: Integers) -> Integers:
        """Return for each node the least key of all nodes that it implies.

        Args:
            keys: A row for each unit, a column for each node.
        """
        best = keys.copy()
        if self.plain:
            count = len(self.contexts)
            rows = keys[:, : count * self.plain].reshape(-1, count, self.plain)
            by_context = self.contexts.least(rows.swapaxes(0, 1)).swapaxes(0, 1)
            found = self.wider.least(by_context.reshape(-1, self.plain))
            best[:, : count * self.plain] = found.reshape(len(keys), -1)
        tied = self.ties.targets
        best[:, tied] = np.minimum(best[:, tied], self.ties.least(keys))
        return best

    def breadth(self) -> Integers:
        """Return for each node how many nodes it implies: the fewer, the wider."""
        contexts = self.contexts.breadth()
        found = np.zeros(self.size, dtype=np.int64)
        found[: self.plain * contexts.size] = np.outer(
            contexts, self.wider.lengths
        ).ravel()
        found[self.ties.targets] += self.ties.lengths
        return found
