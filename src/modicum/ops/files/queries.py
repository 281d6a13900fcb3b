"""Reading query files and tables files."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from modicum.core.diagnostics import placed
from modicum.core.document import Entries, from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.ops.files.documents import load_policy, read_bytes
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile, read_query_file, tables_named
from modicum.query.request_format import QUERY_KEYS
from modicum.query.table_format import read_tables
from modicum.query.tables import Tables
from modicum.release.vocabulary import Vocabulary


def load_query(path: str | Path, policy: CompiledPolicy | str | Path) -> QueryFile:
    """Return the query of a file, as mechanisms under a policy. Reads no table.

    The tables file that it names is looked for from the folder that it is in.

    Args:
        path: The query file.
        policy: The policy, or its file.

    Raises:
        InputError: With the mistakes found, each with its position.
    """
    compiled = _compiled(policy)
    vocabulary = compiled.policy.vocabulary
    if not isinstance(path, str | PathLike):
        raise _wrong("give a query file by its path", path, "")
    node = read_document(read_bytes(path), str(path))
    named = tables_named(node, vocabulary)
    with placed(named):
        tables = load_tables(Path(path).parent / named.text, vocabulary)
    return read_query_file(node, tables, vocabulary, compiled.policy.digest)


def sql_query(
    release: str,
    sql: str,
    *,
    tables: str | Path | Mapping[str, object],
    policy: CompiledPolicy | str | Path,
    **fields: object,
) -> QueryFile:
    """Return a query, as mechanisms under a policy. Reads no table.

    It is read as a query file with the same keys is, and refused for the same reasons.

    Args:
        release: The id of the release that it will be.
        sql: One SELECT.
        tables: The declaration of its tables: a file, or its contents. It is read under
            this policy.
        policy: The policy, or its file.
        fields: `bounds`, `noise`, `loss` and the other keys of `query`; and labels,
            `periods`, `where` and other keys of a release.

    Raises:
        InputError: With the mistakes found.
    """
    compiled = _compiled(policy)
    vocabulary = compiled.policy.vocabulary
    fields_of_query = {key: value for key, value in fields.items() if key in QUERY_KEYS}
    heading = {key: value for key, value in fields.items() if key not in QUERY_KEYS}
    place = {"tables": str(tables)} if isinstance(tables, str | Path) else {}
    query = {**place, "sql": sql, **fields_of_query}
    node = from_python({"release": release, **heading, "query": query})
    declared = _declared(tables, vocabulary)
    return read_query_file(node, declared, vocabulary, compiled.policy.digest)


def _compiled(policy: object) -> CompiledPolicy:
    if isinstance(policy, CompiledPolicy):
        return policy
    if isinstance(policy, str | PathLike):
        return load_policy(Path(policy))
    remedy = "give  ws.policy()  , that of the ledger, or the path of a policy file"
    raise _wrong("a query is read under a policy", policy, remedy)


def _wrong(rule: str, given: object, remedy: str) -> InputError:
    message = f"{rule}, got something of type {type(given).__name__}"
    return InputError(Problem(Code.WRONG_TYPE, message, help=remedy))


def is_tables_file(path: str | Path) -> bool:
    """Return whether a file declares tables, or is in another format.

    Args:
        path: The file.

    Raises:
        InputError: If it cannot be read.
    """
    node = read_document(read_bytes(path), str(path))
    return isinstance(node, Entries) and any(
        key.text == "modicum" for key, _ in node.entries
    )


def _declared(
    tables: str | Path | Mapping[str, object], vocabulary: Vocabulary
) -> Tables:
    if isinstance(tables, str | Path):
        return load_tables(tables, vocabulary)
    return read_tables(from_python(tables), vocabulary)


def load_tables(path: str | Path, vocabulary: Vocabulary) -> Tables:
    """Return the declaration in a tables file."""
    return read_tables(read_document(read_bytes(path), str(path)), vocabulary)
