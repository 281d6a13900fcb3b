"""Reading query files, and the files that say what their tables are."""

from __future__ import annotations

from pathlib import Path

from modicum.core.yaml_reader import read_document
from modicum.policy import CompiledPolicy
from modicum.query.document import QueryFile, read_query_file, tables_named
from modicum.query.read_tables import read_tables
from modicum.query.tables import Tables
from modicum.release.vocabulary import Vocabulary
from modicum.shell.files import load_policy, read_bytes


def load_query(path: str | Path, policy: CompiledPolicy | str | Path) -> QueryFile:
    """Return the query of a file, as mechanisms under a policy. Reads no table.

    The tables file that it names is looked for from the folder that it is in.

    Args:
        path: The query file.
        policy: The policy, or its file.

    Raises:
        InputError: With the mistakes found, each with its place.
    """
    compiled = policy if isinstance(policy, CompiledPolicy) else load_policy(policy)
    vocabulary = compiled.policy.vocabulary
    node = read_document(read_bytes(path), str(path))
    tables = load_tables(Path(path).parent / tables_named(node).text, vocabulary)
    return read_query_file(node, tables, vocabulary, compiled.policy.digest)


def load_tables(path: str | Path, vocabulary: Vocabulary) -> Tables:
    """Return what a file declares about tables.

    Args:
        path: The file.
        vocabulary: The words of the policy.

    Raises:
        InputError: With the mistakes found, each with its place.
    """
    return read_tables(read_document(read_bytes(path), str(path)), vocabulary)
