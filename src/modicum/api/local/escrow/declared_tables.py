"""Declarations of data sets in the ledger, for queries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from modicum.api.local.escrow import programs
from modicum.api.local.escrow.retry import Ledger
from modicum.api.local.evaluation import price_release
from modicum.api.ports.escrow import Equipment, Sealed
from modicum.core.document import Entries, Node, Scalar, from_python
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.ledger.log.contracts import Charge, Version
from modicum.ledger.state.datasets import DataSet, version_of
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.table_format import FORMAT, read_tables, tables_with
from modicum.query.tables import Table, Tables
from modicum.release.vocabulary import Vocabulary

#: Maximum number of values in a query, including those repeated by aliases.
QUERY_NODES = 2**15


def declared_table(text: str, name: str, compiled: CompiledPolicy) -> Table:
    """Return the declaration of a data set's table in a tables file."""
    tables = read_tables(_read(text, name), compiled.policy.vocabulary)
    _declaration(text, name)
    return tables.by_name[name]


def tables_of(
    data: Mapping[str, DataSet], versions: Iterable[Version], compiled: CompiledPolicy
) -> Tables:
    """Return the declarations of versions of data sets."""
    found = dict[str, Table]()
    for one in versions:
        table = _table_of(data, one, compiled)
        if isinstance(table, InputError):
            raise InputError(*table.problems)
        found[one.id] = table
    return tables_with(found, compiled.policy.vocabulary)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest versions of data sets, and their declarations.

    Attributes:
        versions: The versions, by data set.
        tables: The tables whose vocabulary the policy still has.
        stale: Why the others cannot be read, by data set.
    """

    versions: Mapping[str, Version]
    tables: Tables
    stale: Mapping[str, InputError]

    def read(self, text: str, compiled: CompiledPolicy) -> QueryFile:
        """Return a query of them as mechanisms under a policy. Reads no table."""
        try:
            return read_query(text, self.tables, compiled)
        except InputError as error:
            problems = list(error.problems)
            for name, why in self.stale.items():
                if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
                    problems += why.problems
            raise InputError(*problems) from None


def newest_of(
    data: Mapping[str, DataSet],
    compiled: CompiledPolicy,
    among: Collection[str] | None = None,
) -> Newest:
    """Return the newest version of each data set, except for shredded ones.

    Data sets that the policy no longer matches do not block queries on the others.
    """
    versions = {
        name: Version(name, one.newest)
        for name, one in data.items()
        if not one.versions[one.newest].shredded and (among is None or name in among)
    }
    found, stale = dict[str, Table](), dict[str, InputError]()
    taken = set[str]()
    for name, one in versions.items():
        if name.lower() in taken:
            continue  # Queries know no capitals: the first has the name.
        taken.add(name.lower())
        table = _table_of(data, one, compiled)
        if isinstance(table, InputError):
            stale[name] = table
        else:
            found[name] = table
    return Newest(versions, tables_with(found, compiled.policy.vocabulary), stale)


def read_query(text: str, tables: Tables, compiled: CompiledPolicy) -> QueryFile:
    """Return a query as mechanisms under a policy. Reads no table."""
    node, policy = query_tree(text), compiled.policy
    return read_query_file(node, tables, policy.vocabulary, policy.digest)


# It is parsed when it is sent, so that the turn of the ledger finds it.
@lru_cache(maxsize=16)
def query_tree(text: str) -> Node:
    """Return the text of a query, parsed."""
    return read_document(text.encode("utf-8"), "the query", QUERY_NODES)


def charge_of(text: str, query: QueryFile, compiled: CompiledPolicy) -> Charge:
    """Return the charge of a query."""
    recorded = price_release(query.described, compiled)
    return Charge(recorded.id, recorded.content, text)


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The vocabulary of a policy, identified by its digest."""

    policy: str
    vocabulary: Vocabulary = field(compare=False)


def _table_of(
    data: Mapping[str, DataSet], version: Version, compiled: CompiledPolicy
) -> Table | InputError:
    """Return the declaration of a version, or why it cannot be read."""
    vocabulary = _Vocabulary(compiled.policy.digest, compiled.policy.vocabulary)
    return _table(version_of(data, version).table, version.id, vocabulary)


# It is read again for each query, in the turn of the ledger, and never changes.
@lru_cache(maxsize=4096)
def _table(text: str, name: str, vocabulary: _Vocabulary) -> Table | InputError:
    whole = from_python({"modicum": FORMAT, "tables": {}})
    assert isinstance(whole, Entries)
    format_, (key, _) = whole.entries
    try:
        declaration = _declaration(text, name)
        node = Entries((format_, (key, Entries((declaration,), None))), None)
        return read_tables(node, vocabulary.vocabulary).by_name[name]
    except InputError as error:
        return InputError(*error.problems)  # It is cached without its input.


def _read(text: str, name: str) -> Node:
    return read_document(text.encode("utf-8"), f"the table of {name}")


def _declaration(text: str, name: str) -> tuple[Scalar, Node]:
    node = _read(text, name)
    listed = [
        value
        for key, value in (node.entries if isinstance(node, Entries) else ())
        if key.text == "tables" and isinstance(value, Entries)
    ]
    for key, value in listed[0].entries if listed else ():
        if key.text == name:
            return key, value
    raise InputError(
        Problem(
            Code.UNKNOWN_NAME,
            f"the tables file does not declare the table `{name}`",
            help="a data set has the name of its table",
        )
    )


@contextmanager
def own_rows(
    ledger: Ledger, equipment: Equipment, actor: str, versions: Iterable[Version]
) -> Iterator[Mapping[str, object]]:
    """Yield the rows of versions of data sets by name, to an owner of all of them."""
    # No entry records that an owner looked. A contract governs flows to others, which
    # this is not; and a log of who looked, and when, would show analysts which
    # decisions followed a look at rows.
    book, _, _ = ledger.current()
    data, requested = book.state.escrow.data, tuple(versions)
    for one in requested:  # All of them are checked before any key is requested.
        _must_own(data, one, actor)
    with ExitStack() as stack:
        found = {}
        for one in requested:
            version = data[one.id].versions[one.number]
            sealed = Sealed(programs.of_data(one), version.sealed)
            found[one.id] = stack.enter_context(equipment.rows(sealed, version.media))
        yield found


def _must_own(data: Mapping[str, DataSet], one: Version, actor: str) -> None:
    version = version_of(data, one)
    if not data[one.id].ownership.is_owner(actor):
        raise _refused(
            f"`{actor}` does not own the data set `{one.id}`",
            "only an owner of all data sets of a query may look at its rows",
        )
    if version.shredded:
        raise _refused(
            f"version {one.number} of the data set `{one.id}` was shredded",
            "it can no longer be read",
        )


def _refused(message: str, remedy: str) -> ConflictError:
    return ConflictError(Problem(Code.CONTRACT_REFUSED, message, help=remedy))
