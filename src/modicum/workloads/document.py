"""A workload as plain data, and back: the contents of all file formats.

A head describes the workload; columns contain the requests. Files are untrusted, so
everything is checked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np

from modicum.core.canonical import Plain
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text, parse_number
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    items,
    name,
    take_format,
    text,
)
from modicum.workloads.cohere import OBJECTIVES, ROUNDS_MAX
from modicum.workloads.columns import Columns, read_columns
from modicum.workloads.model import COLUMNS, Labels, Requests, Workload
from modicum.workloads.random_draws import SEED_MAX
from modicum.workloads.request_types import RequestType

#: The version of the format.
FORMAT = "workload/v1"

_DOMAIN_MAX = 2**40
_WINDOW_MAX = 1000
_FRACTION = re.compile(r"[0-9]{1,30}/[1-9][0-9]{0,29}", re.ASCII)


def to_plain(workload: Workload) -> dict[str, Plain]:
    """Return a workload as plain data, without floats.

    Returns:
        `head(workload)`, and the columns as lists under `requests` and `labels`.
    """
    requests = workload.requests
    document: dict[str, Plain] = {
        **head(workload),
        "requests": {one: getattr(requests, one).tolist() for one in COLUMNS},
    }
    if requests.labels is not None:
        document["labels"] = _labels_to_plain(requests.labels)
    return document


def head(workload: Workload) -> dict[str, Plain]:
    """Return everything but the columns as plain data."""
    return {
        "format": FORMAT,
        "name": workload.name,
        "seed": workload.seed,
        "repetition": workload.repetition,
        "objective": workload.objective,
        "sampling": [number_text(rate) for rate in workload.sampling],
        "rounds": workload.rounds,
        "domain": workload.domain,
        "window": workload.window,
        "types": [
            {
                "mechanism": kind.mechanism,
                "size": kind.size,
                "sampling": number_text(kind.sampling),
            }
            for kind in workload.types
        ],
    }


def _labels_to_plain(labels: Labels) -> Plain:
    return {
        "black_box": labels.black_box.tolist(),
        "month": labels.month.tolist(),
        "attributes": [list(labels.attributes_of(one)) for one in range(len(labels))],
    }


# --- reading --------------------------------------------------------------------------


def whole_numbers(data: bytes) -> object:
    """Return the value of JSON whose numbers are all integers.

    Raises:
        InputError: If a key is repeated.
        ValueError: If it is not JSON, or has other numbers.
        RecursionError: If it is nested too deeply.
    """
    return json.loads(
        data, parse_float=_refuse, parse_constant=_refuse, object_pairs_hook=_once
    )


def _refuse(text: str) -> object:
    raise ValueError(text)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = Counter(key for key, _ in pairs)
        twice = next(key for key, times in seen.items() if times > 1)
        problem = Problem(Code.DUPLICATE_KEY, f"the key `{twice[:60]}` is given twice")
        raise InputError(problem)
    return found


def from_plain(document: object) -> Workload:
    """Return the workload of plain data.

    Raises:
        InputError: With every mistake found in the head, or one in the columns.
    """
    if not isinstance(document, Mapping):
        raise _not_a_mapping("a workload", document)
    parts = {key: document.get(key) for key in ("requests", "labels")}
    rest = {key: value for key, value in document.items() if key not in parts}
    if "requests" not in document:
        raise InputError(
            Problem(
                Code.MISSING_KEY,
                "a workload needs the key `requests`",
                help=f"add its columns: {', '.join(COLUMNS)}",
            )
        )
    for key, part in parts.items():
        if key in document and not isinstance(part, Mapping):
            raise _not_a_mapping(f"`{key}`", part)
    labels = cast("Mapping[str, object] | None", parts["labels"])
    return workload_of(rest, cast("Mapping[str, object]", parts["requests"]), labels)


def workload_of(
    head: Mapping[str, object],
    requests: Mapping[str, object],
    labels: Mapping[str, object] | None,
) -> Workload:
    """Return the workload of a head and of columns.

    Args:
        head: The result of `head`, or anything else.
        requests: The columns of the requests, as lists or arrays.
        labels: Those of their labels, if they have any.

    Raises:
        InputError: With every mistake found in the head, or one in the columns.
    """
    read, types = _read_head(from_python(head))
    first = read["window"] - 1
    columns = Columns(
        types=len(types),
        rounds=range(first, first + read["rounds"]),
        domain=read["domain"],
    )
    found, own_labels = read_columns(columns, requests, labels)
    return Workload(**read, requests=Requests(types, **found, labels=own_labels))


def _read_head(node: Node) -> tuple[dict[str, Any], tuple[RequestType, ...]]:
    found = Problems()
    read: dict[str, Any] = {}
    types: tuple[RequestType, ...] = ()
    fields = Fields(node, "a workload")
    take_format(fields, FORMAT)
    with found.guard():
        read["name"] = name(fields.take("name"), "the name of a workload")
    with found.guard():
        known = OBJECTIVES
        given = fields.take("objective")
        read["objective"] = choice(given, "objective", known, Code.UNKNOWN_CHOICE)
    for key, least, most in (
        ("seed", 0, SEED_MAX),
        ("repetition", 0, SEED_MAX),
        ("rounds", 1, ROUNDS_MAX),
        ("domain", 1, _DOMAIN_MAX),
        ("window", 1, _WINDOW_MAX),
    ):
        with found.guard():
            value = count(fields.take(key), f"`{key}`", at_least=least, at_most=most)
            read[key] = value
    with found.guard():
        rates = _some(fields.take("sampling"), "`sampling`")
        read["sampling"] = tuple(
            _rate(rate, f"sampling rate {number}")
            for number, rate in enumerate(rates, start=1)
        )
    with found.guard():
        types = _types(fields.take("types"))
    with found.guard():
        fields.finish()
    found.raise_any()
    return read, types


def _types(node: Node) -> tuple[RequestType, ...]:
    found = Problems()
    types: list[RequestType] = []
    for number, item in enumerate(_some(node, "`types`"), start=1):
        with found.guard():
            kind = _type(item, number)
            if kind in types:
                message = f"type {number}, `{kind.name}`, is given twice"
                raise fail(Code.DUPLICATE_NAME, message, item)
            types.append(kind)
    found.raise_any()
    return tuple(types)


def _some(node: Node, what: str) -> tuple[Node, ...]:
    found = items(node, what)
    if not found:
        raise fail(
            Code.OUT_OF_RANGE, f"{what} is empty", node, help="name at least one"
        )
    return found


def _type(node: Node, number: int) -> RequestType:
    """Return a type; its number, from 1, is for error messages."""
    what = f"type {number}"
    fields = Fields(node, what)
    mechanism = text(fields.take("mechanism"), f"the mechanism of {what}")
    size = text(fields.take("size"), f"the size of {what}")
    sampling = _rate(fields.take("sampling"), f"the sampling rate of {what}")
    fields.finish()
    return RequestType(mechanism, size, sampling)


def _rate(node: Node, what: str) -> Fraction:
    written = text(node, what)
    fraction = _FRACTION.fullmatch(written)
    value = Fraction(written) if fraction else parse_number(written)
    if value is None or not 0 < value <= 1:
        raise fail(
            Code.OUT_OF_RANGE,
            f"{what} is `{written[:40]}`",
            node,
            help='it is the text of a number above 0, at most 1, such as "0.25"',
        )
    return value


def _not_a_mapping(what: str, given: object) -> InputError:
    kind = (
        "a list" if isinstance(given, list | tuple | np.ndarray) else repr(given)[:40]
    )
    return InputError(Problem(Code.WRONG_TYPE, f"{what} must be a mapping, got {kind}"))
