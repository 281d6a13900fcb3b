"""What a service keeps beside the log: tables that may be changed and deleted from.

Nothing of it is in the chain, in an audit bundle or in a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, Protocol, runtime_checkable

#: A turn that keeps answers forgets at most so many old ones: more than a batch keeps,
#: so that they do not pile up.
FORGOTTEN_MAX = 500


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of SQL that SQLite and PostgreSQL both know, and its values.

    Attributes:
        text: The statement. `{s}` stands for the schema, `{name}` for a value.
        values: The values, by name.
    """

    text: LiteralString
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@runtime_checkable
class ServiceTables(Protocol):
    """A store that keeps something beside its log; every store of the shell does.

    Both methods raise what the methods of `EventStore` do.
    """

    def rows_beside(self, statement: Statement) -> list[tuple[Any, ...]]:
        """Return what a query finds; nothing where the tables are not made yet.

        It takes no turn, and writes nothing.
        """
        ...

    def change_beside(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements in one turn; on return it is durable.

        Tables that are missing are made first.
        """
        ...
