"""A workload as an Arrow table, and back; needs the library pyarrow.

The columns are those of the plain form; its head is the table's metadata.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from modicum.core.canonical import encode
from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.columns import LABELS
from modicum.workloads.document import head, whole_numbers, workload_of
from modicum.workloads.model import COLUMNS, Workload

#: The metadata key of the head.
METADATA = b"modicum"


def library() -> ModuleType:
    """Return pyarrow.

    Raises:
        InputError: If it is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(
            Problem(
                Code.NOT_SUPPORTED,
                "Parquet needs the library pyarrow",
                help="pip install 'modicum[tables]', or use a file that ends in .json",
            )
        ) from error
    found: ModuleType = pa
    return found


def to_arrow(workload: Workload) -> Any:
    """Return a workload as a table, one row for each request.

    Raises:
        InputError: If pyarrow is not installed.
    """
    pa = library()
    requests = workload.requests
    columns = {one: pa.array(getattr(requests, one)) for one in COLUMNS}
    labels = requests.labels
    if labels is not None:
        columns["black_box"] = pa.array(labels.black_box)
        columns["month"] = pa.array(labels.month)
        columns["attributes"] = pa.LargeListArray.from_arrays(
            pa.array(labels.starts), pa.array(labels.attributes)
        )
    metadata = {METADATA: encode(head(workload))}
    return pa.table(columns).replace_schema_metadata(metadata)


def from_arrow(table: Any) -> Workload:
    """Return the workload of a table.

    Raises:
        InputError: As `document.from_plain` does, and if the table has no head.
    """
    metadata = (table.schema.metadata or {}).get(METADATA)
    if metadata is None:
        problem = Problem(
            Code.MISSING_KEY,
            "the table has no workload metadata",
            notes=(f"its metadata have no key `{METADATA.decode()}`",),
            help="write it with  modicum workload generate",
        )
        raise InputError(problem)
    names = table.column_names
    if len(set(names)) < len(names):
        problem = Problem(Code.DUPLICATE_KEY, "two columns of the table have one name")
        raise InputError(problem)
    given = {one: _column(table, one) for one in names}
    labels = {one: given.pop(one) for one in LABELS if one in given}
    return workload_of(_head_of(metadata), given, labels or None)


def _head_of(metadata: bytes) -> dict[str, object]:
    try:
        found = whole_numbers(metadata)
    except (ValueError, RecursionError) as error:
        problem = Problem(Code.WRONG_TYPE, "the metadata of the table are not JSON")
        raise InputError(problem) from error
    if not isinstance(found, dict):
        raise InputError(
            Problem(Code.WRONG_TYPE, "the metadata of the table are not a mapping")
        )
    return found


def _column(table: Any, name: str) -> object:
    """Return a column of numbers, of truths or of lists of numbers; else nothing."""
    column, types = table.column(name), library().types
    if column.null_count:
        return None
    if types.is_integer(column.type) or types.is_boolean(column.type):
        return column.to_numpy()
    lists = types.is_list(column.type) or types.is_large_list(column.type)
    if lists and types.is_integer(column.type.value_type):
        return column.to_pylist()
    return None
