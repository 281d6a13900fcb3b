"""Who holds which reservations: those that are not started, and that no plan took."""

from __future__ import annotations

from collections.abc import KeysView, Mapping


class Holders:
    """The holder of each reservation, and the reservations of each holder.

    Args:
        by: By release, who holds it; oldest first.
    """

    def __init__(self, by: Mapping[str, str] | None = None) -> None:
        self.by: dict[str, str] = {}
        self._of: dict[str, dict[str, None]] = {}
        for release, actor in (by or {}).items():
            self.add(release, actor)

    def add(self, release: str, actor: str) -> None:
        """Note that somebody reserved a release."""
        self.by[release] = actor
        self._of.setdefault(actor, {})[release] = None

    def drop(self, release: str) -> None:
        """Note that a release is held no more, if it was."""
        actor = self.by.pop(release, None)
        if actor is not None:
            own = self._of[actor]
            del own[release]
            if not own:
                del self._of[actor]

    def of(self, actor: str) -> KeysView[str]:
        """Return the releases that somebody holds, oldest first."""
        return self._of.get(actor, {}).keys()
