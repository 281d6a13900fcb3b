"""Grants as row-level security of PostgreSQL: a role for each, and what it may read.

One role for two grants could read the columns of the one in the rows of the other. So
each grant has a role of its own; and since whoever has two roles is bound by the
restrictive policies of both, even that person reads only rows of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from modicum.api.local.access.access_document import Access
from modicum.api.local.access.grants import Grant
from modicum.api.local.access.sql import (
    Spelling,
    about_grant,
    heading,
    quoted_name,
    sql_predicate,
    unsampled,
)
from modicum.core.canonical import digest, encode
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import ReleaseStatus

#: PostgreSQL cuts off what a name has beyond, so that it may be another one.
NAME_BYTES_MAX = 63

# Texts are compared byte by byte, whatever the type and the collation of the column.
# A moment with a zone would be compared in the zone of the session, which may be set
# by whoever reads: no row has such a column then.
_EXACT = Spelling(
    text='CAST({} AS text) COLLATE "C"',
    moment="pg_typeof({}) IN ('date'::regtype, 'timestamp'::regtype)",
)


def postgresql_policies(access: Access, table: str) -> Iterator[str]:
    """Yield lines of SQL that let one role for each grant read what it may.

    Args:
        access: The grants, and where they come from.
        table: The table, or its schema and the table, joined by a dot.

    Raises:
        InputError: If PostgreSQL cannot hold somebody to a grant.
    """
    _refuse_unstarted(access)
    target = ".".join(map(_named, table.split(".")))
    yield from heading(access)
    yield "BEGIN;"
    yield f"ALTER TABLE {target} ENABLE ROW LEVEL SECURITY;"
    for grant in access.grants:
        yield "--"
        yield from about_grant(grant)
        yield from _policies(grant, target)
    yield "COMMIT;"


def role_of(grant: Grant) -> str:
    """Return the name of the role for a grant; other contents give another one.

    Args:
        grant: The grant.
    """
    known = encode([grant.id, grant.release.content, grant.standing.seq])
    return f"modicum_{digest(known)[:16]}"


def _policies(grant: Grant, target: str) -> Iterator[str]:
    _refuse_unheld(grant)
    rows = unsampled(grant)
    for condition in (one for each in rows.alternatives() for one in each):
        _named(condition.column)
    predicate = sql_predicate(rows, _EXACT)
    role = role_of(grant)
    columns = ", ".join(map(_named, grant.columns))
    yield f"CREATE ROLE {_named(role)} NOLOGIN;"
    yield f"GRANT SELECT ({columns}) ON {target} TO {_named(role)};"
    for suffix, kind in (("allows", "PERMISSIVE"), ("bounds", "RESTRICTIVE")):
        yield (
            f"CREATE POLICY {_named(f'{role}_{suffix}')} ON {target} AS {kind}"
            f" FOR SELECT TO {_named(role)}"
        )
        yield f"  USING ({predicate});"


def _refuse_unstarted(access: Access) -> None:
    """Refuse all releases that were not started, at once."""
    waiting = [
        one.release.id
        for one in access.grants
        if one.standing.status is not ReleaseStatus.STARTED
    ]
    problems = [
        Problem(
            Code.NOT_SUPPORTED,
            f"release `{one}` was not started, and a role may read from the beginning",
            help=f"modicum release start {one}",
        )
        for one in dict.fromkeys(waiting)
    ]
    if problems:
        raise InputError(*problems)


def _refuse_unheld(grant: Grant) -> None:
    """Refuse a grant to which the server cannot hold whoever has the role."""
    if not grant.columns:
        raise _refused(
            grant, "names no column, and PostgreSQL grants reading by columns", ""
        )


def _named(name: str) -> str:
    """Return a quoted name that PostgreSQL takes as a whole."""
    if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise InputError(
            Problem(
                Code.BAD_NAME,
                f"the name `{name[:60]}` is too long for PostgreSQL",
                notes=(f"it cuts off what a name has beyond {NAME_BYTES_MAX} bytes",),
                help="give the column a shorter name, and say so with  --column",
            )
        )
    return quoted_name(name)


def _refused(grant: Grant, why: str, remedy: str) -> InputError:
    message = f"grant `{grant.id}` {why}"
    return InputError(Problem(Code.NOT_SUPPORTED, message, help=remedy))
