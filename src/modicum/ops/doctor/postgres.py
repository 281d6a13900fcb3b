"""Checks of a ledger in PostgreSQL: whether its server keeps what it acknowledges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import Connection, errors
from psycopg.conninfo import make_conninfo

from modicum.core.errors import ModicumError
from modicum.ops.doctor.findings import Finding, Status, known_name, of_error
from modicum.storage.postgres_errors import translated
from modicum.storage.postgres_tables import Statements
from modicum.storage.postgres_url import Address, parse_address

#: Timeout for the turn: a server's turns take less than a second.
WAIT_SECONDS = 5.0
_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "server_version")


def check_server(url: str) -> Iterator[Finding]:
    """Yield the findings about a ledger's server. Changes nothing."""
    address = parse_address(url)
    try:
        with translated(address), _connected(address) as connection:
            yield _check_settings(connection)
            yield _check_turn(address, connection)
    except ModicumError as error:
        yield of_error("server", error)


def _connected(address: Address) -> Connection[Any]:
    return psycopg.connect(make_conninfo("", **address.parameters), autocommit=True)


def _check_settings(connection: Connection[Any]) -> Finding:
    columns = ", ".join(f"current_setting('{name}')" for name in _SETTINGS)
    row = connection.execute(f"SELECT {columns}".encode()).fetchone()
    found = dict(zip(_SETTINGS, row or (), strict=True))
    version = found.pop("server_version").split()[0]
    facts = {name: known_name(value) for name, value in found.items()}
    facts["version"] = known_name(version)
    risky = [name for name in ("fsync", "full_page_writes") if found[name] != "on"]
    if risky:
        message = f"{' and '.join(risky)} off: acknowledged writes may be lost"
        remedy = f"set  {risky[0]} = on  in postgresql.conf"
        return Finding("server", Status.FAIL, message, remedy, facts)
    # Turns set synchronous_commit themselves, whatever the server's default is.
    message = f"PostgreSQL {version}; acknowledged writes are durable"
    return Finding("server", Status.OK, message, facts=facts)


def _check_turn(address: Address, connection: Connection[Any]) -> Finding:
    try:
        with translated(address):
            Statements(address, WAIT_SECONDS).start_turn(connection)
    except ModicumError as error:
        if isinstance(error.__cause__, errors.InsufficientPrivilege):
            message = "this role may only read the ledger"
            return Finding("turn", Status.WARN, message, facts={"may_write": False})
        return of_error("turn", error)
    finally:
        connection.execute("ROLLBACK")
    return Finding("turn", Status.OK, "available", facts={"may_write": True})
