"""Turning releases into the numbers of a layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from operator import le
from typing import Protocol, TypeAlias

import numpy as np

from modicum.accounting import Loss
from modicum.core.errors import check
from modicum.ledger.bulk.layout import (
    EVERYTHING,
    Booleans,
    Integers,
    Layout,
    ReleaseRows,
    Rows,
    flattened,
    layout_of,
)
from modicum.ledger.bulk.numpy_kernel import NumpyEngine
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.charges import UNKNOWN, charged_by_unit
from modicum.ledger.decision.rule_matching import facts_of
from modicum.ledger.decision.single_release import allows_alone
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.coverage import limited
from modicum.policy.predicates import Constant, Facts, holds, looks_only_at_labels
from modicum.release.vocabulary import METADATA

#: The contexts of this many different labelings are remembered.
LABELINGS_MAX = 10_000

_Ask: TypeAlias = Callable[[], tuple[Facts, ...]]


class Numbering:
    """Converts releases to the numbers of one layout.

    Args:
        compiled: The policy that the layout was made from.
        layout: The layout.
    """

    def __init__(self, compiled: CompiledPolicy, layout: Layout) -> None:
        self._vocabulary = compiled.policy.vocabulary
        self._layout = layout
        vocabulary = self._vocabulary
        self._relations = [
            (unit, vocabulary.relation(unit)) for unit in vocabulary.units
        ]
        self._lowering = [
            (unit, cover)
            for unit in vocabulary.units
            for cover in vocabulary.bounding(unit)
        ]
        self._extensions = [
            [setting.predicate for setting in settings]
            for settings in compiled.rules.extensions
        ]
        #: The part that no mechanism lies in.
        self._none: Booleans = np.zeros((0, len(compiled.rules.contexts)), np.bool_)
        self._once_text = [name for name in METADATA if name in vocabulary.labels]
        looks = (looks_only_at_labels(one) for e in self._extensions for one in e)
        check(all(looks), "a setting looks only at labels")
        self._by_labels: dict[object, Booleans] = {}

    def release_rows(self, release: RecordedRelease) -> ReleaseRows:
        """Return a release in numbers."""

        @cache
        def facts() -> tuple[Facts, ...]:
            return facts_of(release, self._vocabulary)

        first_key, keys = flattened(
            [self._keys(one, at, facts) for at, one in enumerate(release.mechanisms)]
        )
        inside = [
            self._contexts(release, place, facts)
            for place in range(len(release.mechanisms))
        ]
        return ReleaseRows(
            first_key,
            keys,
            inside[0] if len(inside) == 1 else np.concatenate([self._none, *inside]),
            self._losses(release),
        )

    def _keys(self, one: RecordedMechanism, place: int, facts: _Ask) -> list[int]:
        attributes = self._layout.attributes
        keys = [attributes[name] for name in one.attributes if name in attributes]
        for key, predicate in self._layout.custom:
            if holds(predicate, facts()[place]):
                keys.append(key)
        keys.append(EVERYTHING)
        return keys

    def _contexts(self, release: RecordedRelease, place: int, facts: _Ask) -> Booleans:
        """Return, as a matrix of one line, which contexts a mechanism is in."""
        labels = release.mechanisms[place].labels
        # Former open text may be a label now: `facts_of` reads it as one.
        texts = (release.metadata.get(name) for name in self._once_text)
        labeling = tuple(release.labels.items()), tuple(labels.items()), *texts
        found = self._by_labels.get(labeling)
        if found is None:
            if len(self._by_labels) >= LABELINGS_MAX:
                self._by_labels.clear()
            found = self._by_labels[labeling] = self._inside(facts()[place])
        return found

    def _inside(self, facts: Facts) -> Booleans:
        inside: Booleans = np.ones(1, dtype=np.bool_)
        for settings in self._extensions:
            reached = [holds(setting, facts) for setting in settings]
            inside = np.outer(inside, np.array(reached, dtype=np.bool_)).ravel()
        return inside.reshape(1, -1)

    def _losses(self, release: RecordedRelease) -> Integers:
        coordinates, units = self._layout.coordinates, self._layout.units
        values: list[int] = []
        for one in release.mechanisms:
            by_unit = self._charged(one)
            for unit in units:
                loss = by_unit.get(unit, UNKNOWN).coordinates
                values += [loss[index] for index in coordinates]
        losses: Integers = np.array(values, dtype=np.int64)
        return losses.reshape(len(release.mechanisms), len(units), len(coordinates))

    def _charged(self, one: RecordedMechanism) -> Mapping[str, Loss]:
        if self._is_charged_as_recorded(one):
            return one.losses
        return charged_by_unit(one, self._vocabulary)

    def _is_charged_as_recorded(self, one: RecordedMechanism) -> bool:
        """Return whether `charged_by_unit` would change nothing; it is far slower.

        This holds where every unit's loss is proven under the present relation, and
        nowhere exceeds that of a unit by which it might be lowered.
        """
        losses, recorded = one.losses, one.neighbors
        return all(
            unit in losses and recorded.get(unit, "add-remove") == relation
            for unit, relation in self._relations
        ) and all(
            all(map(le, losses[unit].coordinates, losses[cover].coordinates))
            for unit, cover in self._lowering
        )


class Engine(Protocol):
    """Holds the charge of each row, and decides.

    A sum is stored as `carried * 2**62 + rest`, where an infinite entry adds 2**62. It
    reads as infinite exactly if anything was carried; and since it is exact, additions
    can be undone.

    Attributes:
        left: By row and coordinate, the remainder. `NEVER` if the sum exceeds its cap,
            `ALWAYS` if the filter ignores it.
        rest: By row and coordinate, the sum without the carried part.
        carried: How often 2**62 was carried.
    """

    left: Integers
    rest: Integers
    carried: Integers

    def admits(self, rows: ReleaseRows) -> bool:
        """Return whether every row allows the release."""

    def move(self, rows: ReleaseRows, sign: int) -> bool:
        """Add a release to its rows (1), or take it back (-1)."""


#: Makes an engine that has been charged nothing, of rows and their caps.
EngineOf: TypeAlias = Callable[[Rows, Integers], Engine]


def numba_engine() -> EngineOf | None:
    """Return the engine with compiled loops, ready for use, if numba is installed.

    Importing numba and loading the loops takes about a second, compiling them without a
    cache more. It pays for a process that decides thousands of releases; for a few,
    `None` (the engine of NumPy) is faster.
    """
    if find_spec("numba") is None:
        return None
    from modicum.ledger.bulk.numba_kernel import NumbaEngine, warm

    warm()
    return NumbaEngine


class QuickBalances:
    """The results of `Balances` and `decide` if every release reads everything.

    Without the reasons, and in microseconds. Parts of the data are not distinguished: a
    release is charged as if it read everything, which is never less.

    Mutable, with one owner; not safe for several threads.

    Args:
        compiled: The policy.
        releases: The releases charged before.
        pruned: Whether to leave out redundant rules. The decisions are the same.
        kernel: Checks the rules: `numba_engine()`, or None for NumPy.

    Attributes:
        compiled: The policy.
        engine: The sums.
    """

    def __init__(
        self,
        compiled: CompiledPolicy,
        releases: Iterable[RecordedRelease] = (),
        *,
        pruned: bool = True,
        kernel: EngineOf | None = None,
    ) -> None:
        check(
            compiled.policy.rotation is None,
            "budgets of user groups are unlocked step by step: use `decide`",
        )
        self.compiled = compiled
        self._pruned = pruned
        self._empty = Balances(compiled)
        self._has_gaps = not compiled.policy.allows_unmatched and limited(
            compiled.rules
        ) != Constant(value=True)
        numbers = compiled.pruned.kept if pruned else range(len(compiled.rules))
        layout = layout_of(compiled, numbers)
        self._numbering = Numbering(compiled, layout)
        self.engine: Engine = (kernel or NumpyEngine)(layout.rows, layout.caps)
        for release in releases:
            self.charge(release)

    def release_rows(self, release: RecordedRelease) -> ReleaseRows:
        """Return a release in the numbers of these balances, for repeated decisions."""
        return self._numbering.release_rows(release)

    def allows(self, release: RecordedRelease) -> bool:
        """Return whether the release is allowed: `decide(…).allowed`."""
        if self._has_gaps and self._empty.unmatched(release):
            return False
        alone = not self.compiled.release_rules or allows_alone(
            self._empty, release, pruned=self._pruned
        )
        return alone and self.engine.admits(self.release_rows(release))

    def charge(self, release: RecordedRelease) -> None:
        """Add a release to every rule that it falls under."""
        self.engine.move(self.release_rows(release), 1)

    def take_back(self, release: RecordedRelease) -> None:
        """Undo `charge` for a release that was canceled before it started.

        Raises:
            InvariantError: If it was never charged; nothing is changed then.
        """
        rows = self.release_rows(release)
        covered = self.engine.move(rows, -1)
        if not covered:
            self.engine.move(rows, 1)
        check(covered, "ACC-3: only what was added is taken back")
