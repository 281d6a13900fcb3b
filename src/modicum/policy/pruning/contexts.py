"""The contexts of a rule set, compared by way of their extensions.

A context is a setting of each extension. Extensions without a variable in common are
independent: a context can be true exactly if its settings in each *group* of
connected extensions can be, and it implies another one exactly if it does so in each
group. So the order of thousands of contexts is a product of small ones, and the
least of all that a context implies is found group by group.

A *node* is a predicate together with a context. Where the predicate looks at nothing
that any context looks at, it is *plain*, and its nodes decompose: for B and B' plain
and contexts e and e', all of them satisfiable,

    B and e imply B' and e'   exactly if   B implies B' and e implies e'.

(B and B' use other variables than e and e'. So any way to make B true is compatible
with any way to make e true, and if both together imply B', then B alone does; the same
for e'.) All other nodes are *tied*: each is compared as a whole. What no mechanism can
match has no node.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from modicum.policy.pruning.chains import Flags, Integers, Lists
from modicum.policy.pruning.logic import Logic, Parts

#: In a group with more combinations of settings than this, extensions are treated as
#: independent: results are true, but an implication may be missed.
GROUP_MAX = 250


@dataclass(frozen=True, slots=True)
class Group:
    """Extensions that are compared together.

    Attributes:
        axes: The extensions, by number, rising.
        possible: For each combination of their settings whether it can be true.
        wider: For each combination those that it implies, itself too; for one that
            cannot be true, only itself.
    """

    axes: tuple[int, ...]
    possible: tuple[bool, ...]
    wider: tuple[tuple[int, ...], ...]


class Contexts:
    """All contexts of a rule set, in its order, and which one implies which.

    Args:
        extensions: For each extension the predicates of its settings.
        logic: Decides implications.
    """

    def __init__(self, extensions: Sequence[Parts], logic: Logic) -> None:
        self._extensions = tuple(extensions)
        self._logic = logic
        self._shape = tuple(len(settings) for settings in self._extensions)
        self._groups = [self._group(axes) for axes in self._connected()]

    def __len__(self) -> int:
        return prod(self._shape)

    def parts(self, context: int) -> Parts:
        """Return the predicates of a context's settings."""
        places = np.unravel_index(context, self._shape) if self._shape else ()
        return tuple(
            settings[place]
            for settings, place in zip(self._extensions, places, strict=True)
        )

    def possible(self) -> Flags:
        """Return for each context whether it can be true; False only if proven."""
        found = np.ones(self._shape, bool)
        for group in self._groups:
            found &= self._spread(group, np.array(group.possible))
        return found.ravel()

    def breadth(self) -> Integers:
        """Return for each context how many contexts it implies, itself too."""
        found = np.ones(self._shape, np.int64)
        for group in self._groups:
            lengths = np.array([len(wider) for wider in group.wider], np.int64)
            found *= self._spread(group, lengths)
        return found.ravel()

    def implied_by(self, parts: Parts) -> list[int]:
        """Return the contexts that a conjunction which can be true implies."""
        implied = [
            [at for at, one in enumerate(settings) if self._logic.implies(parts, one)]
            for settings in self._extensions
        ]
        if not self._shape:
            return [0]
        numbers = np.arange(len(self)).reshape(self._shape)[np.ix_(*implied)]
        return [int(number) for number in numbers.ravel()]

    def least(self, keys: Integers) -> Integers:
        """Return for each context the least key of all contexts that it implies.

        Args:
            keys: A row for each context; where one cannot be true, the largest key.
        """
        rest = keys.shape[1:]
        best = keys.reshape(*self._shape, *rest)
        for group in self._groups:
            sizes = [self._shape[axis] for axis in group.axes]
            front = range(len(group.axes))
            moved = np.moveaxis(best, group.axes, front)
            rows = moved.reshape(prod(sizes), *moved.shape[len(sizes) :])
            each = [rows[list(wider)].min(axis=0) for wider in group.wider]
            best = np.moveaxis(np.stack(each).reshape(moved.shape), front, group.axes)
        return best.reshape(keys.shape)

    # --- groups ---

    def _connected(self) -> list[tuple[int, ...]]:
        """Return the extensions in groups without a variable in common."""
        groups: list[tuple[set[int], set[Hashable]]] = []
        for axis, settings in enumerate(self._extensions):
            axes = {axis}
            variables = {
                v for one in settings for v in self._logic.looks(one).variables
            }
            apart = []
            for other in groups:
                if other[1].isdisjoint(variables):
                    apart.append(other)
                else:
                    axes |= other[0]
                    variables |= other[1]
            groups = [*apart, (axes, variables)]
        found: list[tuple[int, ...]] = []
        for axes, _ in groups:
            small = prod(self._shape[axis] for axis in axes) <= GROUP_MAX
            found += [tuple(sorted(axes))] if small else [(axis,) for axis in axes]
        return sorted(found)

    def _group(self, axes: tuple[int, ...]) -> Group:
        joint = list(product(*(self._extensions[axis] for axis in axes)))
        possible = [self._logic.satisfiable(parts) for parts in joint]
        wider = [
            self._wider(parts, axes, possible) if can_be else (place,)
            for place, (parts, can_be) in enumerate(zip(joint, possible, strict=True))
        ]
        return Group(axes, tuple(possible), tuple(wider))

    def _wider(
        self, parts: Parts, axes: tuple[int, ...], possible: Sequence[bool]
    ) -> tuple[int, ...]:
        """Return the combinations in a group that one which can be true implies."""
        implied = [
            [self._logic.implies(parts, one) for one in self._extensions[axis]]
            for axis in axes
        ]
        return tuple(
            place
            for place, each in enumerate(product(*implied))
            if all(each) and possible[place]
        )

    def _spread(self, group: Group, values: Integers | Flags) -> Integers | Flags:
        """Return a group's values along its own axes, ready for broadcasting."""
        shape = [1] * len(self._shape)
        for axis in group.axes:
            shape[axis] = self._shape[axis]
        return values.reshape(shape)


#: In place of the node of a rule that no mechanism can match.
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Scopes:
    """The nodes of a rule set and their order.

    Attributes:
        node: For each base rule and context its node, or `NOWHERE`.
        size: The number of nodes.
        plain: The number of plain predicates. Node `e * plain + p` is plain predicate
            `p` in context `e`; tied nodes come after these.
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
        """Return for each node the least key of all nodes that it implies."""
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
