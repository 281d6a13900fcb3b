"""Requests in files: every form says the same, and every mistake is placed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from samples.small import POLICY, compiled, counts, workspace

import modicum as mo
from modicum.api.local.plans import requests as planning
from modicum.api.local.plans.requests import MISTAKES_MAX, read_request
from modicum.core.errors import Code, InputError, Problem
from modicum.ops.files import json_lines, request_tables
from modicum.ops.files.json_lines import LINE_BYTES_MAX, handed
from modicum.ops.files.requests import Request, load, unread
from modicum.ops.files.yaml_documents import Piece

COMPILED = compiled()
#: What a file of each form holds; each is the text of one release.
Texts = list[str]


def text(name: str, **more: Any) -> str:
    return json.dumps(counts(name, **more))


def table(path: Path, texts: Texts, **columns: Any) -> Path:
    parquet.write_table(pa.table({"release": texts, **columns}), path)
    return path


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(requests: tuple[Request, ...]) -> list[tuple[str, str, Fraction]]:
    return [(one.release.id, one.release.content, one.utility) for one in requests]


def problems(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        load(path, policy=COMPILED)
    return caught.value.problems


# --- every form says the same ---------------------------------------------------------


def as_documents(folder: Path, texts: Texts) -> Path:
    return written(folder / "a.yaml", "".join(f"---\n{one}\n" for one in texts))


def as_ended_documents(folder: Path, texts: Texts) -> Path:
    body = "".join(f"--- # next\r\n{one}\r\n...\r\n" for one in texts)
    return written(folder / "a.yml", f"# all\r\n%YAML 1.2\r\n{body}---\r\n")


def as_list(folder: Path, texts: Texts) -> Path:
    return written(folder / "a.yaml", "".join(f"- {one}\n" for one in texts))


def as_requests(folder: Path, texts: Texts) -> Path:
    return written(folder / "a.json", f'{{"requests": [{", ".join(texts)}]}}')


def as_lines(folder: Path, texts: Texts) -> Path:
    return written(folder / "a.jsonl", "\ufeff" + "\n \n".join(texts))


def as_table(folder: Path, texts: Texts) -> Path:
    return table(folder / "a.parquet", texts)


def as_folder(folder: Path, texts: Texts) -> Path:
    for place, one in enumerate(texts):
        written(folder / f"{place:03}.yaml", one)
    written(folder / ".000.yaml", "not: a release")
    written(folder / "README.md", "# no request")
    (folder / "inner").mkdir(exist_ok=True)
    written(folder / "inner" / "000.yaml", "not: a release")
    return folder


FORMS = (
    as_documents,
    as_ended_documents,
    as_list,
    as_requests,
    as_lines,
    as_table,
    as_folder,
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same_in_the_same_order(
    form: Callable[[Path, Texts], Path], tmp_path: Path
) -> None:
    texts = [
        text("z", utility=2.5, audience="public"),
        text("a", rho="0.25"),
        text("m", utility=0, attributes=("age", "steps")),
    ]
    found = load(form(tmp_path, texts), policy=COMPILED)
    assert [one.release.id for one in found] == ["z", "a", "m"]
    assert [one.utility for one in found] == [Fraction(5, 2), 1, 0]
    # The oracle: what the ledger would keep if each were submitted by itself.
    draft = workspace(tmp_path)
    for one, single in zip(found, texts, strict=True):
        assert one.release == draft.prepare(json.loads(single)).release


def test_a_request_says_where_it_stands_and_what(tmp_path: Path) -> None:
    lines = as_lines(tmp_path, [text("a"), text("b")])
    rows = as_table(tmp_path, [text("c")])
    list_ = written(tmp_path / "l.yaml", f"# x\nrequests:\n- {text('d', utility=3)}\n")
    assert [one.source for one in load(lines, policy=COMPILED)] == [
        f"{lines}:1",
        f"{lines}:3",
    ]
    assert [one.source for one in load(rows, policy=COMPILED)] == [f"{rows}, row 1"]
    (last,) = load(list_, policy=COMPILED)
    assert last.source == f"{list_}:3"
    assert last.text().startswith("release: d\n\nutility: 3\n")
    again = load(written(tmp_path / "again.yaml", last.text()), policy=COMPILED)
    assert told(again) == told((last,))


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "B.json", "a10.jsonl", "a9.yml"):
        written(tmp_path / name, text(name))
    table(tmp_path / "a1.parquet", [text("a1.parquet")])
    found = load(tmp_path, policy=COMPILED)
    assert [one.release.id for one in found] == [
        "B.json",
        "a1.parquet",
        "a10.jsonl",
        "a9.yml",
        "b.yaml",
    ]


def test_the_policy_may_be_a_path(tmp_path: Path) -> None:
    policy = written(tmp_path / "policy.yaml", POLICY)
    batch = written(tmp_path / "batch.yaml", text("a"))
    assert told(load(batch, policy=policy)) == told(load(str(batch), policy=COMPILED))
    assert mo.requests.load is load


def test_guards_look_at_requests(tmp_path: Path) -> None:
    guard = "\nguards:\n  - {name: no, unless: 'false', message: never}\n"
    batch = written(tmp_path / "batch.yaml", f"---\n{text('a')}\n---\n{text('b')}\n")
    with pytest.raises(InputError) as caught:
        load(batch, policy=compiled(POLICY + guard))
    assert [one.code for one in caught.value.problems] == [Code.GUARDED] * 2


# --- utilities in tables --------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([3, None]), [Fraction(3), Fraction(1)]),
        (pa.array([0.1, 2.5]), [Fraction(1, 10), Fraction(5, 2)]),
        (pa.array(["0.25", "7"]).cast(pa.decimal128(9, 3)), [Fraction(1, 4), 7]),
    ],
)
def test_a_column_of_utilities(
    column: Any, expected: list[Any], tmp_path: Path
) -> None:
    path = table(tmp_path / "a.parquet", [text("a"), text("b")], utility=column)
    assert [one.utility for one in load(path, policy=COMPILED)] == expected


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (pa.array([-1]), Code.OUT_OF_RANGE),
        (pa.array([float("nan")]), Code.OUT_OF_RANGE),
        (pa.array([10**9 + 1]), Code.OUT_OF_RANGE),
        (pa.array(["3"]), Code.NOT_A_NUMBER),
        (pa.array([True]), Code.NOT_A_NUMBER),
        (pa.array([b"3"]), Code.NOT_A_NUMBER),
    ],
)
def test_a_wrong_utility_names_its_row(column: Any, code: Code, tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", [text("a")], utility=column)
    (problem,) = problems(path)
    assert problem.code is code
    assert problem.mark is not None
    assert problem.mark.file == f"{path}, row 1"


def test_a_utility_is_said_once(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", [text("a", utility=3)], utility=[3])
    (problem,) = problems(path)
    assert problem.code is Code.KEYS_CONFLICT


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"releases": ["x"]}, Code.MISSING_KEY),
        ({"release": ["x"], "priority": [1]}, Code.UNKNOWN_KEY),
        ({"release": [1]}, Code.WRONG_TYPE),
        ({"release": pa.array([None], pa.string())}, Code.WRONG_TYPE),
    ],
)
def test_tables_of_another_form(columns: Any, code: Code, tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    (problem,) = problems(tmp_path / "a.parquet")
    assert problem.code is code


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([text("a")])] * 2, ["release", "release"])
    parquet.write_table(twice, tmp_path / "a.parquet")
    assert [one.code for one in problems(tmp_path / "a.parquet")] == [
        Code.DUPLICATE_KEY
    ]


def test_parquet_without_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_table(tmp_path, [text("a")])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (problem,) = problems(path)
    assert problem.code is Code.NOT_SUPPORTED
    assert "modicum[tables]" in problem.help


# --- mistakes -------------------------------------------------------------------------


def test_all_mistakes_of_all_files_are_said_with_their_places(tmp_path: Path) -> None:
    first = written(
        tmp_path / "1.yaml",
        f"--- {text('a')}\n---\nrelease: b\nmechanisms: [\n---\n"
        "release: c\nutility: -1\nmechanisms: []\n",
    )
    second = written(
        tmp_path / "2.jsonl", f'{text("d")}\n{{"release":\n{text("e", utility="3")}\n'
    )
    third = table(tmp_path / "3.parquet", ["{}", text("a")])
    written(tmp_path / "4.yaml", "")
    fifth = written(tmp_path / "5.json", b"\xff")
    (tmp_path / "6.yaml").mkdir()
    found = [
        (one.code, one.mark and (one.mark.file, one.mark.line))
        for one in problems(tmp_path)
    ]
    assert found == [
        (Code.YAML_SYNTAX, (str(first), 5)),
        (Code.OUT_OF_RANGE, (str(first), 6)),
        (Code.OUT_OF_RANGE, (str(first), 7)),
        (Code.YAML_SYNTAX, (str(second), 2)),
        (Code.NOT_A_NUMBER, (str(second), 3)),
        *[(Code.MISSING_KEY, (f"{third}, row 1", 1))] * 2,
        (Code.DUPLICATE_NAME, (f"{third}, row 2", 1)),
        (Code.EMPTY_DOCUMENT, (str(tmp_path / "4.yaml"), 1)),
        (Code.NOT_TEXT, (str(fifth), 1)),
        (Code.FILE_UNREADABLE, None),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_two_requests_of_one_id_are_both_named(
    form: Callable[[Path, Texts], Path], tmp_path: Path
) -> None:
    path = form(tmp_path, [text("a"), text("b"), text("a", rho="0.5")])
    (problem,) = problems(path)
    assert problem.code is Code.DUPLICATE_NAME
    names = problem.message.removeprefix("two requests are named `a`: ").split(" and ")
    assert len(names) == 2
    assert all(str(path) in name for name in names)


def test_only_so_many_mistakes_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MISTAKES_MAX", 10)
    texts = [text(f"r-{n}", utility=-1) for n in range(15)]
    for form in (as_documents, as_list, as_lines, as_table):
        found = problems(form(tmp_path, texts))
        assert [one.code for one in found] == [Code.OUT_OF_RANGE] * 10
        assert "there may be more" in found[-1].notes[-1]
        few = problems(form(tmp_path, texts[:9]))
        assert len(few) == 9
        assert not any("may be more" in note for one in few for note in one.notes)


def test_mistakes_are_counted_over_all_files(tmp_path: Path) -> None:
    texts = [text(f"r-{n}", utility=-1) for n in range(MISTAKES_MAX + 20)]
    found = problems(as_folder(tmp_path, texts))
    assert len(found) == MISTAKES_MAX
    assert "there may be more" in found[-1].notes[-1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", ""),
        ("a.yaml", "# nothing\n---\n...\n---\n"),
        ("a.yaml", "requests: []"),
        ("a.json", "[]"),
        ("a.jsonl", "\n \n"),
        ("README.md", "# nothing\n"),
    ],
)
def test_an_empty_batch_is_refused(name: str, content: str, tmp_path: Path) -> None:
    written(tmp_path / name, content)
    assert [one.code for one in problems(tmp_path)] == [Code.EMPTY_DOCUMENT]


def test_too_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "REQUESTS_MAX", 3)
    texts = [text(f"r-{n}") for n in range(9)]
    wrong = text("wrong", utility=-1)
    for form in FORMS[:-1]:
        assert len(load(form(tmp_path, texts[:3]), policy=COMPILED)) == 3
        (problem,) = problems(form(tmp_path, texts))
        assert problem.code is Code.TOO_LARGE
        assert "at most 3 requests" in problem.message
        mistakes = problems(form(tmp_path, [*texts[:2], wrong, *texts[2:]]))
        assert [one.code for one in mistakes] == [Code.OUT_OF_RANGE]


def test_a_table_of_too_many_rows_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_tables, "REQUESTS_MAX", 3)
    assert len(load(as_table(tmp_path, list(map(text, "abc"))), policy=COMPILED)) == 3
    (problem,) = problems(as_table(tmp_path, ["no request"] * 4))
    assert problem.code is Code.TOO_LARGE
    assert "has 4 rows" in problem.message


def test_too_many_requests_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "REQUESTS_MAX", 3)
    (problem,) = problems(as_folder(tmp_path, [text(f"r-{n}") for n in range(9)]))
    assert problem.code is Code.TOO_LARGE


def test_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = written(tmp_path / "long.jsonl", text("a") + " " * LINE_BYTES_MAX)
    assert [one.code for one in problems(long)] == [Code.TOO_LARGE]
    cell = table(tmp_path / "a.parquet", [text("a") + " " * LINE_BYTES_MAX])
    assert [one.code for one in problems(cell)] == [Code.TOO_LARGE]
    monkeypatch.setattr(json_lines, "LINES_MAX", 3)
    lines = written(tmp_path / "many.jsonl", f"{text('a')}\n\n\n\n")
    assert [one.code for one in problems(lines)] == [Code.TOO_LARGE]
    file = written(tmp_path / "large.yaml", b"#" * (8 * 2**20 + 1))
    assert [one.code for one in problems(file)] == [Code.TOO_LARGE]


@pytest.mark.parametrize(
    "name", ["a.txt", "nowhere.yaml", "nowhere.jsonl", "n.parquet"]
)
def test_files_that_are_none(name: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path / name)
    known = Code.UNKNOWN_CHOICE if name == "a.txt" else Code.FILE_UNREADABLE
    assert problem.code is known


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (problem,) = problems(written(tmp_path / "a.parquet", "release"))
    assert problem.code is Code.FILE_UNREADABLE


# --- quick reading, against the tree --------------------------------------------------

SPELLED = st.sampled_from(
    [
        *("1", "0.1", "1e-1", "0.10", "1E2", "-0", "0e999", "1e-400", "1e400", "1e401"),
        *("0.1000000000000000055511151231257827", "123456789012345678901234567890"),
        *("0." + "1" * 70, "1" * 65, "1.0e5", "NaN", "Infinity", "true", "null", '"1"'),
        *("1.7976931348623157e308", "5e-324", "0.30000000000000004", "2.5", "01", "+1"),
    ]
)
KEYS = st.sampled_from(
    [
        *('"audience": "public"', '"audience": "x"', '"ml": "black-box"', '"ml": "no"'),
        *(
            '"purpose": "a\\u0007"',
            '"purpose": "\\ud83d\\ude00"',
            '"purpose": "\\ud800"',
        ),
        *('"purpose": "\u202e"', '"purpose": "\uffff"', '"purpose": "\\uffff"'),
        *('"purpose": "x", "purpose": "y"', '"purpose": 1', '"colour": "red"'),
        *('"where": {}', '"purpose": null', '"dataset": "\x7f"', '"\\u0061": 1'),
    ]
)


@given(SPELLED, SPELLED, st.lists(KEYS, max_size=2), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_quick_reading_is_strict_reading(
    sigma: str, utility: str, keys: list[str], cost: bool
) -> None:
    more = "".join(f"{key}, " for key in keys)
    noise = f'"cost": {{"user": {{"rho": {sigma}}}}}' if cost else f'"sigma": {sigma}'
    line = (
        f'{{"release": "r", "utility": {utility}, {more}"mechanisms": [{{"mechanism":'
        f' "gaussian", "attributes": [], "sensitivity": {{"user": {{"l2": 1}}}},'
        f" {noise}}}]}}"
    ).encode()
    piece = Piece(line, "a.jsonl", 6)
    quick = handed(piece)
    strict = planning.Handed(quick.source, quick.mark, piece.read)

    def outcome(one: planning.Handed) -> object:
        try:
            request = read_request(one, COMPILED)
        except InputError as error:
            return error.problems
        return request.release, request.utility

    assert outcome(quick) == outcome(strict)


def test_most_lines_are_read_quickly() -> None:
    line = text("r", utility=0.1, where=None, rho="0.25").encode()
    assert handed(Piece(line, "a.jsonl")).plain is not None
    assert handed(Piece(b'{"a": 0.1000000000000000055511}', "a")).plain is None


# --- what is read, and what is not ----------------------------------------------------


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    as_folder(tmp_path, [text("a")])
    written(tmp_path / "b.YML", text("b"))
    written(tmp_path / "c.yaml.bak", text("c"))
    assert [one.release.id for one in load(tmp_path, policy=COMPILED)] == ["a", "b"]
    assert unread(tmp_path) == ("README.md", "c.yaml.bak", "inner/")
    assert unread(str(tmp_path / "README.md")) == ()
    assert unread(tmp_path / "nothing") == ()


def test_where_there_is_no_request_it_is_said_what_was_not_read(tmp_path: Path) -> None:
    for place in range(7):
        written(tmp_path / f"{place}.txt", text("a"))
    (problem,) = problems(tmp_path)
    assert problem.code is Code.EMPTY_DOCUMENT
    shown = "0.txt, 1.txt, 2.txt, 3.txt, 4.txt, ..."
    assert problem.message == f"there is no request in {tmp_path} (not read: {shown})"


def test_a_folder_that_cannot_be_listed_is_one_mistake_among_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError) as caught:
        load(tmp_path / "nothing.yaml", tmp_path, policy=COMPILED)
    first, second = caught.value.problems
    assert "nothing.yaml" in first.message
    assert second.message == f"cannot read {tmp_path}: permission denied"


def test_files_and_folders_are_read_in_the_order_in_which_they_are_given(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    inner = as_folder(folder, [text("b"), text("a")])
    last, first = (written(tmp_path / f"{n}.yaml", text(n)) for n in ("d", "c"))
    found = load(last, str(inner), first, policy=COMPILED)
    assert [one.release.id for one in found] == ["d", "b", "a", "c"]


def test_mistakes_of_all_that_is_given_are_told(tmp_path: Path) -> None:
    one = written(tmp_path / "one.yaml", text("a"))
    with pytest.raises(InputError) as caught:
        load(one, tmp_path / "nothing.yaml", one, policy=COMPILED)
    codes = [problem.code for problem in caught.value.problems]
    assert codes == [Code.FILE_UNREADABLE, Code.DUPLICATE_NAME]
