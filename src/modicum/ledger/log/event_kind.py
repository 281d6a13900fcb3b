"""The declared properties of each kind of event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from modicum.ledger.log.recorded_release import RecordedRelease

#: What an event changes: `balances` if a loss is added, changed or released;
#: `decisions` if the same release may be decided differently after it.
Moves: TypeAlias = Literal["balances", "decisions", "nothing"]


class EventBody(Struct, frozen=True):
    """The body of an event.

    Attributes:
        kind: The name of its kind, as it is stored.
        since: The schema version that introduced it.
        later: Fields added later, and the version of each.
        moves: What it changes.
        claims: Whether it makes claims under the active policy, besides what the state
            allows: an audit checks `ledger.proof.consistency`.
    """

    kind: ClassVar[str]
    since: ClassVar[int]
    later: ClassVar[Mapping[str, int]]
    moves: ClassVar[Moves]
    claims: ClassVar[bool]
    _shown: ClassVar[str]

    @property
    def summary(self) -> str:
        """Its subject, in brief."""
        return self._shown.format(self)

    @property
    def release_id(self) -> str:
        """The id of the release that it is about; empty if it is about none."""
        named: str | RecordedRelease = getattr(self, "release", "")
        return named if isinstance(named, str) else named.id


B = TypeVar("B", bound=EventBody)


def event(
    kind: str,
    since: int,
    moves: Moves,
    *,
    claims: bool,
    shown: str = "{0.release_id}",
    later: Mapping[str, int] = {},
) -> Callable[[type[B]], type[B]]:
    """Return the decorator that declares a kind of event.

    `EventBody` describes the arguments; `shown` is a template over fields: its summary.
    """

    def declare(own: type[B]) -> type[B]:
        own.kind, own.since, own.later = kind, since, later
        own.moves, own.claims, own._shown = moves, claims, shown  # noqa: SLF001
        return own

    return declare
