"""Who holds which reservations: those that are not started, and that no plan took.

Names that differ in capitals or blanks only are one holder.
"""

from __future__ import annotations

from collections.abc import KeysView
from dataclasses import dataclass, field

from modicum.policy.declarations.roles import meant_by


@dataclass(slots=True)
class Holders:
    """The holder of each reservation, and the reservations of each holder.

    Attributes:
        by: By release, who holds it; oldest first.
    """

    by: dict[str, str] = field(default_factory=dict)
    #: By holder, the releases; made when somebody first asks for it.
    _of: dict[str, dict[str, None]] | None = field(
        default=None, init=False, compare=False
    )

    def add(self, release: str, actor: str) -> None:
        """Note that somebody reserved a release."""
        self.by[release] = actor = meant_by(actor)
        if self._of is not None:
            self._of.setdefault(actor, {})[release] = None

    def drop(self, release: str) -> None:
        """Note that a release is held no more, if it was."""
        actor = self.by.pop(release, None)
        if actor is not None and self._of is not None:
            own = self._of[actor]
            del own[release]
            if not own:
                del self._of[actor]

    def of(self, actor: str) -> KeysView[str]:
        """Return the releases that somebody holds, oldest first."""
        if self._of is None:
            self._of = {}
            for release, one in self.by.items():
                self._of.setdefault(one, {})[release] = None
        return self._of.get(meant_by(actor), {}).keys()
