"""Balances under one policy, for one decision after the other."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.core.errors import check
from modicum.ledger.bulk.engines import Engine, EngineOf
from modicum.ledger.bulk.layout import Asked, layout_of
from modicum.ledger.bulk.matrix_balances import Numbering
from modicum.ledger.bulk.numpy_kernel import NumpyEngine
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.single_release import allows_alone
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.policy import CompiledPolicy


class QuickBalances:
    """What `Balances` and `decide` say where everybody is charged for all time.

    Without the reasons, and in microseconds. Parts of the data are not told apart:
    a release is charged as if it read everything, which is never less.

    Mutable, and owned by one caller; not for several threads at once.

    Args:
        compiled: The policy.
        releases: What was charged before.
        pruned: Whether to leave out the rules that others imply. The answers are the
            same.
        kernel: What goes through the rules: `numba_engine()`, or None for NumPy.

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
            "budgets of user groups are unlocked step by step: ask `decide`",
        )
        self.compiled = compiled
        self._pruned = pruned
        self._empty = Balances(compiled)
        numbers = compiled.pruned.kept if pruned else range(len(compiled.rules))
        layout = layout_of(compiled, numbers)
        self._numbering = Numbering(compiled, layout)
        self.engine: Engine = (kernel or NumpyEngine)(layout.rows, layout.caps)
        for release in releases:
            self.charge(release)

    def asked(self, release: RecordedRelease) -> Asked:
        """Return a release in the numbers of these balances, to ask about it often.

        Args:
            release: The priced release.
        """
        return self._numbering.asked(release)

    def allows(self, release: RecordedRelease) -> bool:
        """Return whether every rule lets the release pass: `decide(…).allowed`.

        Args:
            release: The priced release.
        """
        alone = not self.compiled.release_rules or allows_alone(
            self._empty, release, pruned=self._pruned
        )
        return alone and self.engine.admits(self.asked(release))

    def charge(self, release: RecordedRelease) -> None:
        """Add a release to every rule that it falls under."""
        self.engine.move(self.asked(release), 1)

    def take_back(self, release: RecordedRelease) -> None:
        """Undo `charge` for a release that was given up before it started.

        Raises:
            InvariantError: If it was never charged; nothing is changed then.
        """
        asked = self.asked(release)
        covered = self.engine.move(asked, -1)
        if not covered:
            self.engine.move(asked, 1)
        check(covered, "ACC-3: only what was added is taken back")
