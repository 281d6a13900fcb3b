"""What using a reservation needs of the ledger and of the shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from modicum.api.ports.engine import Engines
from modicum.api.ports.in_use import InUse
from modicum.api.ports.reservation import Reserved
from modicum.ledger import RecordedRelease, Standing

if TYPE_CHECKING:
    from modicum.api.local.decision import Decision
    from modicum.core.document import Node


class Ledger(Protocol):
    """What using a reservation needs of a workspace."""

    def check(self, release: Node) -> Decision:
        """Return what `submit` would answer now."""
        ...

    def standing(self, release: str) -> Standing:
        """Return where a release stands now."""
        ...

    def release_of(self, standing: Standing) -> RecordedRelease:
        """Return what a release is and costs, as the ledger keeps it."""
        ...

    def policy_text_at(self, seq: int) -> str:
        """Return the text of the policy that held at an entry; empty for none."""
        ...

    def start(self, release: str) -> Standing:
        """Note, durably, that rows are about to be read."""
        ...

    def post(self, release: str) -> Standing:
        """Note that a started release is out."""
        ...


class Adapters(Engines, Protocol):
    """Engines and other libraries, held to what is reserved; of the shell."""

    def process(self) -> object:
        """Return what tells this process from those that are copies of it."""
        ...

    def opendp(self, use: InUse, mechanism: Reserved) -> Any:
        """Return what runs OpenDP as one mechanism of a reservation."""
        ...

    def opacus(self, use: InUse, mechanism: Reserved) -> Any:
        """Return what trains by Opacus as one mechanism of a reservation."""
        ...

    def tumult(
        self,
        use: InUse,
        mechanism: Reserved,
        python: str,
        settings: Mapping[str, str] | None,
    ) -> Any:
        """Return what runs scripts for Tumult as one mechanism of a reservation."""
        ...
