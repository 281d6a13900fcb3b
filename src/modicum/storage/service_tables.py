"""Service tables beside the log: they may be changed and deleted from.

Nothing of it is in the chain, in an audit bundle or in a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, Protocol, TypeAlias, runtime_checkable

#: Maximum number of old responses deleted per turn: more than a batch stores, so that
#: they do not accumulate.
FORGOTTEN_MAX = 500


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of SQL that SQLite and PostgreSQL both support, and its values.

    Attributes:
        text: The statement. `{s}` is replaced by the schema, `{name}` by a value.
        values: The values, by name.
        since: The version of SQLite's tables since which its tables exist.
    """

    text: LiteralString
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    since: int = 3


#: Returns the rows of a query within a turn.
Query: TypeAlias = Callable[[Statement], list[tuple[Any, ...]]]


@runtime_checkable
class ServiceTables(Protocol):
    """A store with service tables beside its log; every built-in store has them.

    All methods raise the same errors as the methods of `EventStore`.
    """

    def rows_beside(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none where the tables do not exist yet.

        It takes no turn, and writes nothing.
        """
        ...

    def change_beside(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one turn; on return it is durable.

        Tables that are missing are made first.
        """
        ...

    def change_read(self, change: Callable[[Query], Sequence[Statement]]) -> list[int]:
        """Run statements that follow from what is read in the same turn.

        Args:
            change: Returns the statements; its argument returns the rows of a query.
        """
        ...
