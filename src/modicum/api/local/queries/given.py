"""What somebody gives for a query, and how it becomes one."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.core.errors import Code, InputError, Problem
from modicum.query.query_file import QueryFile

_FILE = 'read its file:  mo.load_query("query.yaml", ws.policy())'
_SQL = "make one:  mo.sql_query(ID, SQL, tables=…, policy=ws.policy(), …)"


def must_be_query(given: object) -> None:
    """Refuse what is no query. What it says is not repeated: it may be SQL.

    Args:
        given: What somebody gave.

    Raises:
        InputError: If it is something else.
    """
    if isinstance(given, QueryFile):
        return
    what, remedy = f"of type {type(given).__name__}", f"{_FILE}  , or {_SQL}"
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        is_sql = str(given).lstrip()[:6].casefold() == "select"
        what, remedy = ("SQL", _SQL) if is_sql else ("a path", _FILE)
    elif isinstance(given, Mapping):
        what, remedy = "a mapping", _SQL
    raise InputError(
        Problem(Code.WRONG_TYPE, f"this is {what}, and no query yet", help=remedy)
    )
