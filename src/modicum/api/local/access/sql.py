"""Grants as SQL: row filters for any database, and row security of PostgreSQL.

Every name and text is quoted by `quoted_name` and `quoted_text`, numbers and days are
digits, and comments contain no line break: no input becomes part of the SQL syntax.

A role shared by two grants could read the columns of one in the rows of the other. So
each grant has its own role; and since the restrictive policies of both roles bind a
person with both, even that person reads only rows of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from modicum.api.local.access.grants import FORMAT, Access, Grant
from modicum.api.local.access.row_filters import (
    Between,
    Condition,
    Days,
    During,
    In,
    RowFilter,
    column_name,
)
from modicum.core.canonical import digest, encode
from modicum.core.errors import Code, InputError, Problem, printable
from modicum.ledger import ReleaseStatus
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release.parts import Span

#: A condition that is true for every row, in every database.
_TRUE = "1 = 1"
#: A warning that the user of the SQL cannot notice: a text is compared, not the column.
_QUOTES = (
    "WARNING: MySQL and MariaDB read names in double quotes as strings unless sql_mode"
    " has ANSI_QUOTES; without it, a predicate may be TRUE FOR EVERY ROW"
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """The exact comparisons of texts and days in a database.

    Attributes:
        text: The column that is compared with texts, around its quoted name.
        moment: A further condition on a column of days; empty for none.
    """

    text: str = "{}"
    moment: str = ""


#: Standard SQL.
STANDARD = Spelling()


def sql_predicate(rows: RowFilter, spelling: Spelling = STANDARD) -> str:
    """Return a predicate that is true of exactly the rows of a filter."""
    found = []
    if rows.boxes is not None:
        boxes = [
            " AND ".join(_condition(one, spelling) for one in box) for box in rows.boxes
        ]
        found.append(_either(boxes))
    found += [_condition(one, spelling) for one in rows.always]
    return " AND ".join(found) or _TRUE


def sql_filters(access: Access) -> Iterator[str]:
    """Yield lines: for each grant its description, in comments, and its predicate."""
    yield from heading(access)
    yield _comment(_QUOTES)
    for grant in access.grants:
        yield "--"
        yield from about_grant(grant)
        yield f"WHERE {sql_predicate(unsampled(grant))}"


def heading(access: Access) -> Iterator[str]:
    """Yield comments on the source of the grants and on omissions."""
    yield _comment(f"{FORMAT}, ledger entry {access.seq}, head {access.head}")
    for one in access.left_out:
        yield _comment(f"left out: {one.id} ({one.status.value})")


def about_grant(grant: Grant) -> Iterator[str]:
    """Yield comments that describe a grant."""
    standing = grant.standing
    yield _comment(f"grant {grant.id} (entry {standing.seq}, {standing.status.value})")
    for key in ("requester", "purpose", "audience", "dataset"):
        if key in grant.release.metadata:
            yield _comment(f"{key}: {grant.release.metadata[key]}")
    yield _comment(f"columns: {', '.join(map(quoted_name, grant.columns)) or 'none'}")
    yield _comment(f"mechanism: {_kind(grant.mechanism)}, sha-256 {grant.digest}")
    for unit, bound in grant.bounds.items():
        yield _comment(
            f"at most {bound.most} contributions of one {unit},"
            f" identified by {quoted_name(bound.column)}"
        )
        if bound.column not in grant.columns:
            yield _comment(
                f"{quoted_name(bound.column)} is not among the columns: a reader of"
                " only these cannot enforce that bound"
            )
    if standing.expires_at:
        yield _comment(f"start it before reading, by {standing.expires_at}")


def _kind(mechanism: RecordedMechanism) -> str:
    return str(mechanism.description.get("kind"))


def unsampled(grant: Grant) -> RowFilter:
    """Return the rows of a grant that is about all of them."""
    if grant.sampling is not None:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"grant `{grant.id}` is for a sample, which a predicate cannot draw",
                help="export it with  --format json,  and let the data layer draw",
            )
        )
    return grant.rows


# --- conditions -----------------------------------------------------------------------


def _condition(one: Condition, spelling: Spelling) -> str:
    column = quoted_name(one.column)
    if isinstance(one, In):
        texts = ", ".join(map(quoted_text, one.values))
        return f"{spelling.text.format(column)} IN ({texts})"
    if isinstance(one, Between):
        return _either(_spans(column, one.spans))
    return _during(column, one, spelling)


def _spans(column: str, spans: Iterable[Span]) -> Iterator[str]:
    """Yield a condition for each span, and one for all spans of a single number."""
    single = []
    for low, high in spans:
        if low == high:
            single.append(str(int(low)))
        else:
            yield f"{column} BETWEEN {int(low)} AND {int(high)}"
    if single:
        yield f"{column} IN ({', '.join(single)})"


def _during(column: str, one: During, spelling: Spelling) -> str:
    days = _either([_stretch(column, ends) for ends in one.days])
    moment = spelling.moment.format(column)
    return f"{moment} AND {days}" if moment else days


def _stretch(column: str, ends: Days) -> str:
    first, until = ends
    parts = []
    if first is not None:
        parts.append(f"{column} >= DATE '{date.fromordinal(first).isoformat()}'")
    if until is not None:
        parts.append(f"{column} < DATE '{date.fromordinal(until).isoformat()}'")
    return " AND ".join(parts)


def _either(conditions: Iterable[str]) -> str:
    found = list(conditions)
    if len(found) == 1:
        return f"({found[0]})"
    return f"({' OR '.join(f'({one})' for one in found)})"


# --- untrusted text -------------------------------------------------------------------


def quoted_name(name: str) -> str:
    """Return a name as SQL writes it.

    Examples:
        >>> quoted_name('a"b')
        '"a""b"'
    """
    doubled = column_name(name).replace('"', '""')
    return f'"{doubled}"'


def quoted_text(value: str) -> str:
    r"""Return a text as SQL writes it.

    Examples:
        >>> quoted_text("Côte d'Ivoire")
        "'Côte d''Ivoire'"
    """
    if "\\" in value or not value.isprintable():
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                f"the value `{value[:60]}` cannot be written safely in SQL",
                notes=(
                    "databases differ in how they read a backslash or a control"
                    " character",
                ),
                help="use  --format json",
            )
        )
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _comment(text: str) -> str:
    """Return a one-line comment, whatever the text contains."""
    return f"-- {printable(text)}"


#: PostgreSQL truncates longer names, so two could collide.
NAME_BYTES_MAX = 63

# Texts are compared byte by byte, whatever the type and the collation of the column. A
# timestamp with time zone would be compared in the time zone of the session, which the
# reader can set: then no row matches.
_EXACT = Spelling(
    text='CAST({} AS text) COLLATE "C"',
    moment="pg_typeof({}) IN ('date'::regtype, 'timestamp'::regtype)",
)


def postgresql_policies(access: Access, table: str) -> Iterator[str]:
    """Yield SQL that lets one role per grant read exactly what it grants."""
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
    """Return the name of the role for a grant; other contents give another one."""
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
    """Refuse all releases that were not started, in one error."""
    waiting = [
        one.release.id
        for one in access.grants
        if one.standing.status is not ReleaseStatus.STARTED
    ]
    problems = [
        Problem(
            Code.NOT_SUPPORTED,
            f"release `{one}` was not started, and a role can read at once",
            help=f"modicum release start {one}",
        )
        for one in dict.fromkeys(waiting)
    ]
    if problems:
        raise InputError(*problems)


def _refuse_unheld(grant: Grant) -> None:
    """Refuse a grant that the server cannot enforce on the role."""
    if not grant.columns:
        raise _refused(
            grant, "has no column, and PostgreSQL grants access by column", ""
        )


def _named(name: str) -> str:
    """Return a quoted name that PostgreSQL does not truncate."""
    if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise InputError(
            Problem(
                Code.BAD_NAME,
                f"the name `{name[:60]}` is too long for PostgreSQL",
                notes=(f"it truncates names to {NAME_BYTES_MAX} bytes",),
                help="give the column a shorter name, and map it with  --column",
            )
        )
    return quoted_name(name)


def _refused(grant: Grant, why: str, remedy: str) -> InputError:
    message = f"grant `{grant.id}` {why}"
    return InputError(Problem(Code.NOT_SUPPORTED, message, help=remedy))
