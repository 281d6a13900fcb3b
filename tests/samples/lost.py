"""A ledger with a witness, restored from older copies."""

from __future__ import annotations

import shutil
from pathlib import Path

from modicum.api.local import Workspace
from modicum.api.local.governance.gaps import BroughtBack, bring_back
from modicum.api.ports.storage import Store
from modicum.ops.backup.resume import Resumption, exported_records, resume_after_loss
from modicum.storage.factory import open_store
from modicum.storage.witness.factory import witnessed
from modicum.system.clock import FixedClock
from samples.small import NOON, compiled

#: A policy that compiles quickly.
RULES = """
modicum: policy/v1
name: small
units: {user: {id: user_id}}
schema: {attributes: {diagnosis: low}}
policies: [{name: all, when: "true", unit: user, budget: {rho: 2}}]
"""


class Restored:
    """A ledger in a folder, its witness beside it, and copies of earlier times.

    Args:
        folder: The folder.
        policy: The text of the first policy; None if the ledger is there.
    """

    def __init__(self, folder: Path, policy: str | None) -> None:
        self.folder = folder
        self.clock = FixedClock(NOON)
        self.path: Path | str = folder / "ledger.db"
        self._policy = policy

    def store(self) -> Store:
        """Return the ledger with its witness."""
        return witnessed(open_store(self.path), str(self.folder / "head"))

    def workspace(self, actor: str = "ann") -> Workspace:
        """Return the ledger as a new process finds it."""
        policy = None if self._policy is None else compiled(self._policy)
        self._policy = None
        return Workspace(self.store(), self.clock, policy=policy, actor=actor)

    def keep(self, name: str) -> Path:
        """Return a copy of the ledger as it is."""
        return Path(shutil.copy(self.path, self.folder / name))

    def restore(self, copy: Path) -> None:
        """Put a copy in the place of the ledger."""
        for one in self.folder.glob("ledger.db*"):
            one.unlink()
        shutil.copy(copy, self.path)

    def resume(self, actor: str, *, agree: bool) -> Resumption:
        """Ask to go on, or agree."""
        return resume_after_loss(
            self.store(), actor, "the disk died", agree=agree, clock=self.clock
        )

    def resumed(self) -> Workspace:
        """Return the ledger after two people agreed to go on."""
        self.resume("ann", agree=False)
        self.resume("bob", agree=True)
        return self.workspace()

    def bring_back(self, source: Path, actor: str = "ann") -> BroughtBack:
        """Bring the lost entries back from another ledger, or a file."""
        return self.workspace(actor).turn(
            lambda entry: bring_back(entry, exported_records(str(source))),
            deciding=True,
        )
