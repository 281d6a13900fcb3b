"""Workloads as plain data, tables and files: nothing is lost, nothing is believed."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from modicum.core.canonical import encode
from modicum.core.errors import Code, InputError, UsageError
from modicum.ops.files.workloads import read_workload, write_workload
from modicum.workloads.arrow import from_arrow, to_arrow
from modicum.workloads.cohere import Recipe, cohere
from modicum.workloads.document import FORMAT, from_plain, to_plain
from modicum.workloads.dpolicy import dpolicy
from modicum.workloads.model import Labels, Requests, Workload
from modicum.workloads.request_types import all_types

MOST = 2**63 - 1
RATES = st.fractions(Fraction(1, 1000), 1, max_denominator=1000)


@st.composite
def label_columns(draw: st.DrawFn, count: int) -> Labels:
    rows = draw(
        st.lists(
            st.sets(st.integers(0, MOST), max_size=4), min_size=count, max_size=count
        )
    )
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=int)))
    flat = [number for row in rows for number in sorted(row)]
    months = st.lists(st.integers(0, MOST), min_size=count, max_size=count)
    truths = st.lists(st.booleans(), min_size=count, max_size=count)
    return Labels(
        np.array(draw(truths), dtype=np.bool_),
        np.array(draw(months), dtype=np.int64),
        starts,
        np.array(flat, dtype=np.int64),
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    rates = tuple(draw(st.lists(RATES, min_size=1, max_size=3, unique=True)))
    known = all_types(rates)
    types = tuple(draw(st.lists(st.sampled_from(known), min_size=1, unique=True)))
    count = draw(st.integers(0, 6))
    rounds, window = draw(st.integers(1, 50)), draw(st.integers(1, 20))
    domain = draw(st.integers(1, 2**40))

    def column(low: int, high: int) -> Any:
        numbers = st.integers(low, high)
        drawn = draw(st.lists(numbers, min_size=count, max_size=count))
        return np.array(drawn, dtype=np.int64)

    ids = draw(
        st.lists(st.integers(0, MOST), min_size=count, max_size=count, unique=True)
    )
    requests = Requests(
        types=types,
        id=np.array(ids, dtype=np.int64),
        round=column(window - 1, window + rounds - 2),
        type=column(0, len(types) - 1),
        first=column(0, domain - 1),
        width=column(1, domain),
        utility=column(0, MOST),
        labels=draw(st.none() | label_columns(count)),
    )
    return Workload(
        name=draw(st.sampled_from(["w1", "s3", "our.own-1"])),
        seed=draw(st.integers(0, MOST)),
        repetition=draw(st.integers(0, 9)),
        objective=draw(st.sampled_from(["utility", "requests"])),
        sampling=rates,
        rounds=rounds,
        domain=domain,
        window=window,
        requests=requests,
    )


def same(one: Workload, other: Workload) -> bool:
    """Return whether two workloads are the same to the last number and type."""
    columns = ("id", "round", "type", "first", "width", "utility")
    heads = (
        {field.name: getattr(workload, field.name) for field in fields(workload)}
        for workload in (replace(one, requests=other.requests), other)
    )
    return (
        next(heads) == next(heads)
        and one.types == other.types
        and all(
            np.array_equal(getattr(one.requests, name), getattr(other.requests, name))
            for name in columns
        )
        and (one.requests.labels is None) == (other.requests.labels is None)
        and to_plain(one) == to_plain(other)
    )


@given(workloads())
@settings(max_examples=examples(100), deadline=None)
def test_plain_data_say_everything(workload: Workload) -> None:
    plain = to_plain(workload)
    assert same(from_plain(plain), workload)
    assert same(from_plain(json.loads(encode(plain))), workload)
    assert encode(to_plain(from_plain(plain))) == encode(plain)


@given(workloads())
@settings(max_examples=examples(60), deadline=None)
def test_tables_say_everything(workload: Workload) -> None:
    assert same(from_arrow(to_arrow(workload)), workload)


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.parametrize("name", ["w4", "s2"])
def test_files_say_everything(name: str, suffix: str, tmp_path: Path) -> None:
    recipe = Recipe(seed=3, rounds=2)
    workload = (dpolicy if name == "s2" else cohere)(name, recipe)
    file = tmp_path / f"requests{suffix}"
    write_workload(workload, file)
    assert same(read_workload(file), workload)
    first = file.read_bytes()
    write_workload(read_workload(file), file)
    assert file.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    link = tmp_path / "w.json"
    link.symlink_to(tmp_path / "own" / "real.json")
    workload = cohere("w1", Recipe(rounds=1))
    write_workload(workload, link)
    assert link.is_symlink()
    assert same(read_workload(tmp_path / "own" / "real.json"), workload)


def test_a_file_is_canonical_json(tmp_path: Path) -> None:
    workload = cohere("w1", Recipe(rounds=1))
    write_workload(workload, tmp_path / "w.json")
    assert (tmp_path / "w.json").read_bytes() == encode(to_plain(workload)) + b"\n"


# --- what is wrong --------------------------------------------------------------------


def _plain() -> dict[str, Any]:
    plain: dict[str, Any] = dict(to_plain(dpolicy("s2", Recipe(rounds=1))))
    return copy.deepcopy(plain)


PLAIN = _plain()
DOMAIN = PLAIN["domain"]
Change = Callable[[dict[str, Any]], object]

MISTAKES: dict[str, tuple[Change, Code]] = {
    "another version": (
        lambda d: d.update(format="workload/v2"),
        Code.UNKNOWN_VERSION,
    ),
    "no version": (lambda d: d.pop("format"), Code.MISSING_KEY),
    "no requests": (lambda d: d.pop("requests"), Code.MISSING_KEY),
    "an unknown key": (lambda d: d.update(more=1), Code.UNKNOWN_KEY),
    "a misspelt key": (lambda d: d.update(sede=d.pop("seed")), Code.UNKNOWN_KEY),
    "requests in a list": (lambda d: d.update(requests=[]), Code.WRONG_TYPE),
    "labels of nothing": (lambda d: d.update(labels=None), Code.WRONG_TYPE),
    "a negative seed": (lambda d: d.update(seed=-1), Code.OUT_OF_RANGE),
    "no rounds": (lambda d: d.update(rounds=0), Code.OUT_OF_RANGE),
    "no domain": (lambda d: d.update(domain=0), Code.OUT_OF_RANGE),
    "half a window": (lambda d: d.update(window="12"), Code.NOT_A_NUMBER),
    "no objective": (lambda d: d.update(objective="x"), Code.UNKNOWN_CHOICE),
    "a bad name": (lambda d: d.update(name="a b"), Code.BAD_NAME),
    "a rate as a number": (lambda d: d.update(sampling=[1]), Code.WRONG_TYPE),
    "no rates": (lambda d: d.update(sampling=[]), Code.OUT_OF_RANGE),
    "no types": (lambda d: d.update(types=[]), Code.OUT_OF_RANGE),
    "a rate of 0": (lambda d: d.update(sampling=["0"]), Code.OUT_OF_RANGE),
    "a rate that is none": (lambda d: d.update(sampling=["1/0"]), Code.OUT_OF_RANGE),
    "a rate above 1": (
        lambda d: d["types"][0].update(sampling="3/2"),
        Code.OUT_OF_RANGE,
    ),
    "an unknown mechanism": (
        lambda d: d["types"][0].update(mechanism="magic"),
        Code.UNKNOWN_MECHANISM,
    ),
    "an unknown size": (
        lambda d: d["types"][0].update(size="whale"),
        Code.UNKNOWN_CHOICE,
    ),
    "a type twice": (
        lambda d: d["types"].append(d["types"][0]),
        Code.DUPLICATE_NAME,
    ),
    "a type with more": (lambda d: d["types"][0].update(x=1), Code.UNKNOWN_KEY),
    "a type with less": (lambda d: d["types"][0].pop("size"), Code.MISSING_KEY),
    "a missing column": (lambda d: d["requests"].pop("width"), Code.MISSING_KEY),
    "an unknown column": (
        lambda d: d["requests"].update(color=[]),
        Code.UNKNOWN_KEY,
    ),
    "a short column": (lambda d: d["requests"]["width"].pop(), Code.OUT_OF_RANGE),
    "a column of texts": (
        lambda d: d["requests"]["width"].__setitem__(0, "1"),
        Code.WRONG_TYPE,
    ),
    "a column of truths": (
        lambda d: d["requests"]["width"].__setitem__(0, True),
        Code.WRONG_TYPE,
    ),
    "a column of nothing": (
        lambda d: d["requests"]["width"].__setitem__(0, None),
        Code.WRONG_TYPE,
    ),
    "a column that is none": (
        lambda d: d["requests"].update(width=5),
        Code.WRONG_TYPE,
    ),
    "a negative width": (
        lambda d: d["requests"]["width"].__setitem__(3, -1),
        Code.OUT_OF_RANGE,
    ),
    "no width": (
        lambda d: d["requests"]["width"].__setitem__(3, 0),
        Code.OUT_OF_RANGE,
    ),
    "a width beyond the ring": (
        lambda d: d["requests"]["width"].__setitem__(3, DOMAIN + 1),
        Code.OUT_OF_RANGE,
    ),
    "a beginning beyond the ring": (
        lambda d: d["requests"]["first"].__setitem__(3, DOMAIN),
        Code.OUT_OF_RANGE,
    ),
    "a type beyond the types": (
        lambda d: d["requests"]["type"].__setitem__(3, 36),
        Code.OUT_OF_RANGE,
    ),
    "a round before the first": (
        lambda d: d["requests"]["round"].__setitem__(3, 10),
        Code.OUT_OF_RANGE,
    ),
    "a round after the last": (
        lambda d: d["requests"]["round"].__setitem__(3, 12),
        Code.OUT_OF_RANGE,
    ),
    "a negative utility": (
        lambda d: d["requests"]["utility"].__setitem__(3, -1),
        Code.OUT_OF_RANGE,
    ),
    "a utility beyond counting": (
        lambda d: d["requests"]["utility"].__setitem__(3, 2**63),
        Code.OUT_OF_RANGE,
    ),
    "an id twice": (
        lambda d: d["requests"]["id"].__setitem__(3, 4),
        Code.DUPLICATE_NAME,
    ),
    "a missing label": (lambda d: d["labels"].pop("month"), Code.MISSING_KEY),
    "an unknown label": (lambda d: d["labels"].update(x=[]), Code.UNKNOWN_KEY),
    "a short label": (lambda d: d["labels"]["month"].pop(), Code.OUT_OF_RANGE),
    "a number for a truth": (
        lambda d: d["labels"]["black_box"].__setitem__(0, 1),
        Code.WRONG_TYPE,
    ),
    "attributes that are none": (
        lambda d: d["labels"]["attributes"].__setitem__(0, 1),
        Code.WRONG_TYPE,
    ),
    "attributes that fall": (
        lambda d: d["labels"]["attributes"].__setitem__(0, [3, 2]),
        Code.DUPLICATE_NAME,
    ),
    "an attribute twice": (
        lambda d: d["labels"]["attributes"].__setitem__(0, [3, 3]),
        Code.DUPLICATE_NAME,
    ),
    "a negative attribute": (
        lambda d: d["labels"]["attributes"].__setitem__(0, [-3, 3]),
        Code.OUT_OF_RANGE,
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str, tmp_path: Path) -> None:
    change, code = MISTAKES[name]
    wrong = copy.deepcopy(PLAIN)
    change(wrong)
    with pytest.raises(InputError) as caught:
        from_plain(wrong)
    assert caught.value.code is code, caught.value.render()
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong))
    with pytest.raises(InputError) as again:
        read_workload(file)
    assert again.value.code is code


PLACES: dict[str, str] = {
    "a column of texts": "column `width`, row 1, does not contain integers",
    "a column of truths": "column `width`, row 1, does not contain integers",
    "a negative width": "column `width`, row 4: -1 is out of its range",
    "a width beyond the ring": f"column `width`, row 4: {DOMAIN + 1} is out",
    "a round before the first": "column `round`, row 4: 10 is out",
    "a utility beyond counting": f"column `utility`, row 4: {2**63} is out",
    "an id twice": "the requests in rows 4 and 5 have the same id 4",
    "a number for a truth": "column `black_box`, row 1, does not contain true or false",
    "attributes that are none": "column `attributes`, row 1, does not contain lists",
    "attributes that fall": "the attributes of the request in row 1 are not increasing",
    "a negative attribute": "column `attributes`, row 1: -3 is out of its range",
    "a rate above 1": "the sampling rate of type 1 is `3/2`",
    "a type with more": "type 1",
    "no rates": "`sampling` is empty",
}


@pytest.mark.parametrize("name", PLACES)
def test_a_mistake_is_told_with_its_row_and_its_file(name: str, tmp_path: Path) -> None:
    wrong = copy.deepcopy(PLAIN)
    MISTAKES[name][0](wrong)
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong))
    with pytest.raises(InputError) as caught:
        read_workload(file)
    (problem,) = caught.value.problems
    assert PLACES[name] in problem.message
    assert problem.notes[-1] == f"in {file}"


@given(st.integers(0, 60), st.integers(1, 3), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_the_row_that_is_told_is_the_one_that_is_wrong(
    row: int, attributes: int, data: st.DataObject
) -> None:
    """Lists of several attributes lie before it."""
    wrong = copy.deepcopy(PLAIN)
    column = data.draw(st.sampled_from(["attributes", "month", "width", "type"]))
    part = "labels" if column in wrong["labels"] else "requests"
    bad: Any = [*range(attributes), -1] if column == "attributes" else -1
    wrong[part][column][row] = bad
    with pytest.raises(InputError) as caught:
        from_plain(wrong)
    text = f"column `{column}`, row {row + 1}: -1 is out of its range"
    assert caught.value.problems[0].message == text


def test_what_is_no_json_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text('{\n "format": ,\n}')
    with pytest.raises(InputError) as caught:
        read_workload(file)
    mark = caught.value.problems[0].mark
    assert mark is not None
    assert (mark.file, mark.line, mark.column) == (str(file), 2, 12)


def test_what_is_right_is_not_refused() -> None:
    assert same(from_plain(copy.deepcopy(PLAIN)), dpolicy("s2", Recipe(rounds=1)))
    assert PLAIN["format"] == FORMAT == "workload/v1"


def test_all_mistakes_of_a_head_are_found_at_once() -> None:
    wrong = {**PLAIN, "seed": -1, "rounds": 0, "more": 1, "objective": "x"}
    with pytest.raises(InputError) as caught:
        from_plain(wrong)
    assert len(caught.value.problems) == 4


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
@settings(max_examples=examples(60), deadline=None)
def test_anything_else_is_refused(document: object) -> None:
    with pytest.raises(InputError):
        from_plain(document)


@given(
    st.sampled_from(sorted(set(PLAIN) | set(PLAIN["requests"]) | set(PLAIN["labels"]))),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
)
@settings(max_examples=examples(120), deadline=None)
def test_strange_values_are_refused_and_nothing_breaks(key: str, value: object) -> None:
    wrong = copy.deepcopy(PLAIN)
    for part in (wrong, wrong["requests"], wrong["labels"]):
        if key in part:
            part[key] = value
    try:
        from_plain(wrong)
    except InputError:
        return
    # Few values are right: another seed, repetition, or number of rounds.
    assert type(value) is int or (isinstance(value, str) and key == "name")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", Code.YAML_SYNTAX),
        (b"{", Code.YAML_SYNTAX),
        (b"\xff\xfe\x00", Code.NOT_TEXT),
        (b"[]", Code.WRONG_TYPE),
        (b'{"seed": 1.5}', Code.YAML_SYNTAX),
        (b'{"seed": NaN}', Code.YAML_SYNTAX),
        (b'{"seed": 1, "seed": 2}', Code.DUPLICATE_KEY),
        (b"[" * 100_000, Code.YAML_SYNTAX),
        # Of many keys the last one stands twice: looking for it takes no minutes.
        (
            b"{%s}" % b",".join(b'"k%d": 1' % (k % 200_000) for k in range(200_001)),
            Code.DUPLICATE_KEY,
        ),
    ],
)
def test_a_file_that_is_no_workload_is_refused(
    text: bytes, code: Code, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.json"
    file.write_bytes(text)
    with pytest.raises(InputError) as caught:
        read_workload(file)
    assert caught.value.code is code


def test_a_file_of_another_name_is_refused(tmp_path: Path) -> None:
    for act in (
        lambda: read_workload(tmp_path / "w.csv"),
        lambda: write_workload(cohere("w1", Recipe(rounds=1)), tmp_path / "w.csv"),
    ):
        with pytest.raises(InputError) as caught:
            act()
        assert caught.value.code is Code.UNKNOWN_CHOICE


def test_a_file_that_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "w.json"
    workload = cohere("w1", Recipe(rounds=1))
    with pytest.raises(InputError) as unread:
        read_workload(file)
    with pytest.raises(UsageError) as unwritten:
        write_workload(workload, file)
    for caught in (unread, unwritten):
        assert caught.value.code is Code.FILE_UNREADABLE


# --- tables ---------------------------------------------------------------------------


def table() -> pa.Table:
    return to_arrow(dpolicy("s2", Recipe(rounds=1)))


def replaced(column: str, values: Any) -> pa.Table:
    whole = table()
    return whole.set_column(whole.column_names.index(column), column, values)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda: table().drop_columns(["width"]), Code.MISSING_KEY),
        (lambda: table().drop_columns(["month"]), Code.MISSING_KEY),
        (lambda: table().append_column("more", table()["width"]), Code.UNKNOWN_KEY),
        (lambda: table().append_column("id", table()["id"]), Code.DUPLICATE_KEY),
        (lambda: table().replace_schema_metadata({}), Code.MISSING_KEY),
        (lambda: table().replace_schema_metadata({"modicum": "{"}), Code.WRONG_TYPE),
        (lambda: table().replace_schema_metadata({"modicum": "1"}), Code.WRONG_TYPE),
        (
            lambda: table().replace_schema_metadata({"modicum": '{"a": 1, "a": 2}'}),
            Code.DUPLICATE_KEY,
        ),
        (
            lambda: table().replace_schema_metadata({"modicum": '{"a": NaN}'}),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced("width", table()["width"].cast(pa.float64())),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced("width", pa.array([None] * len(table()), pa.int64())),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced("utility", pa.array([2**64 - 1] * len(table()), "uint64")),
            Code.OUT_OF_RANGE,
        ),
        (lambda: replaced("attributes", table()["width"]), Code.WRONG_TYPE),
        (lambda: replaced("black_box", table()["width"]), Code.WRONG_TYPE),
        (
            lambda: replaced("month", pa.array(["x"] * len(table()))),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced("month", table()["month"].cast(pa.timestamp("s"))),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced("width", pa.array([{"a": 1}] * len(table()))),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced("attributes", pa.array([["x"]] * len(table()))),
            Code.WRONG_TYPE,
        ),
        (
            lambda: replaced(
                "attributes", pa.array([[None]] * len(table()), pa.list_(pa.int64()))
            ),
            Code.WRONG_TYPE,
        ),
    ],
)
def test_a_table_that_is_wrong_is_refused(
    wrong: Callable[[], pa.Table], code: Code
) -> None:
    with pytest.raises(InputError) as caught:
        from_arrow(wrong())
    assert caught.value.code is code, caught.value.render()


def test_narrow_numbers_and_pieces_are_read(tmp_path: Path) -> None:
    workload = cohere("w1", Recipe(rounds=1))
    whole = to_arrow(workload)
    narrow = whole.set_column(1, "round", whole["round"].cast(pa.uint8()))
    assert same(from_arrow(narrow), workload)
    pieces = pa.concat_tables([whole.slice(0, 7), whole.slice(7)])
    assert pieces["id"].num_chunks == 2
    assert same(from_arrow(pieces), workload)
    parquet.write_table(narrow, tmp_path / "narrow.parquet")
    assert same(read_workload(tmp_path / "narrow.parquet"), workload)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wrong.parquet"
    parquet.write_table(table(), file)
    no_text = file.read_bytes().replace(b"utility", b"util\xff\xffy")
    for data in (b"", b"PAR1", b"{}" * 100, no_text):
        file.write_bytes(data)
        with pytest.raises(InputError) as caught:
            read_workload(file)
        assert caught.value.code is Code.FILE_UNREADABLE


def test_without_pyarrow_there_is_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = cohere("w1", Recipe(rounds=1))
    written = tmp_path / "w.parquet"
    write_workload(workload, written)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for act in (
        lambda: write_workload(workload, tmp_path / "other.parquet"),
        lambda: read_workload(written),
    ):
        with pytest.raises(InputError) as caught:
            act()
        assert caught.value.code is Code.NOT_SUPPORTED
        assert "pip install 'modicum[tables]'" in caught.value.problems[0].help
    assert [path.name for path in tmp_path.iterdir()] == ["w.parquet"]
    write_workload(workload, tmp_path / "w.json")
    assert same(read_workload(tmp_path / "w.json"), workload)
