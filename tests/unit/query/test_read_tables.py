"""The tables file: what is read, and what is refused with its place."""

from __future__ import annotations

from fractions import Fraction

import pytest

from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.query.table_format import read_tables
from modicum.query.tables import Column, Table, Tables
from modicum.release.population import Partition, Population
from modicum.release.units import Unit
from modicum.release.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    attributes=frozenset({"page", "country", "pay", "age", "user_id"}),
    labels={},
    units=("user", "user-day", "device"),
    neighbors="add-remove",
    unit_facts={
        "user": Unit("user", "user_id"),
        "user-day": Unit("user-day", "user_id", "day", "event_time"),
        "device": Unit("device", "device_id"),
    },
    population=Population(
        partitions={
            "country": Partition("country", ("CH", "DE"), 0, 1, (), None),
            "birth": Partition("birth", None, 1900, 2030, (), None),
        }
    ),
)

FILE = """\
modicum: tables/v1
tables:
  views:
    row_id: [day, view_id]
    group: user_group
    columns:
      view_id: {type: integer}
      day: {type: date}
      user_id: {type: text, attribute: none}
      device_id: {type: integer}
      user_group: {type: integer}
      event_time: {type: timestamp}
      page: {type: text, values: [main, help]}
      land: {type: text, attribute: country, partition: country, values: [DE]}
      year: {type: integer, attribute: age, partition: birth, values: [1900, 2030]}
      amount: {type: number, attribute: pay, step: 0.01, bounds: [-0.5, 500]}
      age: {type: integer, bounds: [0, 120]}
      adult: {type: boolean, attribute: age, values: [false, true]}
      since: {type: date, attribute: age, values: [2026-11-01, 2026-11-02]}
  users:
    row_id: user_id
    one_per: user_id
    columns:
      user_id: {type: text}
"""


def read(text: str) -> Tables:
    return read_tables(read_document(text.encode(), "tables.yaml"), VOCABULARY)


def test_a_file_is_read() -> None:
    tables = read(FILE)
    views, users = tables.by_name["views"], tables.by_name["users"]
    assert list(tables.by_name) == ["views", "users"]
    assert tables.ids == {"user_id", "device_id"}
    assert tables.clocks == {"event_time"}
    assert users == Table(
        "users",
        {"user_id": Column("user_id", "text", "user_id")},
        ("user_id",),
        one_per="user_id",
    )
    assert (views.row_id, views.group, views.one_per) == (
        ("day", "view_id"),
        "user_group",
        None,
    )
    assert list(views.columns.values()) == [
        Column("view_id", "integer"),
        Column("day", "date"),
        Column("user_id", "text"),
        Column("device_id", "integer"),
        Column("user_group", "integer"),
        Column("event_time", "timestamp"),
        Column("page", "text", "page", values=("main", "help")),
        Column("land", "text", "country", "country", values=("DE",)),
        Column("year", "integer", "age", "birth", values=(1900, 2030)),
        Column(
            "amount",
            "number",
            "pay",
            step=Fraction(1, 100),
            low=Fraction(-1, 2),
            high=Fraction(500),
        ),
        Column("age", "integer", "age", low=Fraction(0), high=Fraction(120)),
        Column("adult", "boolean", "age", values=(False, True)),
        Column("since", "date", "age", values=("2026-11-01", "2026-11-02")),
    ]


def test_a_table_needs_no_row_id() -> None:
    users = read(FILE.replace("    row_id: user_id\n", "")).by_name["users"]
    assert users.row_id == ()
    with pytest.raises(InputError) as caught:
        read(FILE.replace("    row_id: [day, view_id]\n", ""))
    # A column that neither identifies a row nor holds an attribute stays out.
    assert [one.code for one in caught.value.problems] == [Code.UNKNOWN_ATTRIBUTE] * 2


def test_everything_knows_where_it_stands() -> None:
    views = read(FILE).by_name["views"]
    assert views.mark is not None
    assert views.mark.line == 3
    page = views.columns["page"].mark
    assert page is not None
    assert (page.line, page.column, page.file) == (13, 7, "tables.yaml")


#: What is written in place of what, and the code, place and words of the mistake.
_MISTAKES = [
    ("tables/v1", "tables/v2", Code.UNKNOWN_VERSION, 1, "tables/v2"),
    ("modicum: tables/v1\n", "", Code.MISSING_KEY, 1, "needs the key `modicum`"),
    ("tables:\n  views:", "table:\n  views:", Code.UNKNOWN_KEY, 2, "`table`"),
    ("row_id: user_id", "row_ids: user_id", Code.UNKNOWN_KEY, 21, "`row_ids`"),
    ("row_id: user_id", "row_id: usr_id", Code.UNKNOWN_CHOICE, 21, "usr_id"),
    ("row_id: user_id", "row_id: []", Code.OUT_OF_RANGE, 21, "is empty"),
    ("[day, view_id]", "[day, day]", Code.DUPLICATE_NAME, 4, "twice"),
    ("[day, view_id]", "[day, amount]", Code.KEYS_CONFLICT, 4, "the identity of a row"),
    ("group: user_group", "group: page", Code.KEYS_CONFLICT, 5, "the user group"),
    ("group: user_group", "group: groups", Code.UNKNOWN_CHOICE, 5, "groups"),
    ("one_per: user_id", "one_per: page", Code.UNKNOWN_CHOICE, 22, "page"),
    (
        "group: user_group",
        "group: user_group\n    one_per: page",
        Code.UNKNOWN_CHOICE,
        6,
        "not the id of a unit",
    ),
    (
        "group: user_group",
        "group: user_group\n    rows: 3",
        Code.UNKNOWN_KEY,
        6,
        "`rows`",
    ),
    ("      user_id: {type: text}\n", "", Code.WRONG_TYPE, 23, "`columns`"),
    (
        "view_id: {type: integer}",
        "view_id: {type: int}",
        Code.UNKNOWN_CHOICE,
        7,
        '"int"',
    ),
    ("view_id: {type: integer}", "view_id: {}", Code.MISSING_KEY, 7, "`type`"),
    ("view_id: {type: integer}", "view_id: integer", Code.WRONG_TYPE, 7, "mapping"),
    (
        "view_id: {type: integer}",
        "view_id: {type: integer, attribute: view}",
        Code.UNKNOWN_ATTRIBUTE,
        7,
        '"view"',
    ),
    (
        "view_id: {type: integer}",
        "VIEW_ID: {type: integer, attribute: age}\n      view_id: {type: integer}",
        Code.DUPLICATE_NAME,
        8,
        "except for case",
    ),
    ("  users:", "  VIEWS:", Code.DUPLICATE_NAME, 20, "except for case"),
    ("  users:", "  my users:", Code.BAD_NAME, 20, "my users"),
    (
        "user_id: {type: text, attribute: none}",
        "user_id: {type: boolean}",
        Code.KEYS_CONFLICT,
        9,
        "the id of a unit",
    ),
    (
        "device_id: {type: integer}",
        "device_id: {type: date}",
        Code.KEYS_CONFLICT,
        10,
        "the id of a unit",
    ),
    (
        "event_time: {type: timestamp}",
        "event_time: {type: text}",
        Code.KEYS_CONFLICT,
        12,
        "the time of a unit",
    ),
    (
        "page: {type: text,",
        "pages: {type: text,",
        Code.UNKNOWN_ATTRIBUTE,
        13,
        "has no attribute",
    ),
    (
        "page: {type: text,",
        "page: {type: text, attribute: none,",
        Code.UNKNOWN_ATTRIBUTE,
        13,
        "has no attribute",
    ),
    ("[main, help]", "[main, main]", Code.DUPLICATE_NAME, 13, "twice"),
    ("[main, help]", "[main, 3]", Code.WRONG_TYPE, 13, "must be text"),
    ("[main, help]", "[]", Code.OUT_OF_RANGE, 13, "1 to 10000"),
    (
        "partition: country, values: [DE]",
        "partition: land",
        Code.UNKNOWN_ATTRIBUTE,
        14,
        '"land"',
    ),
    ("values: [DE]", "values: [FR]", Code.UNKNOWN_CHOICE, 14, "`country`"),
    (
        "partition: country, values: [DE]",
        "partition: birth",
        Code.KEYS_CONFLICT,
        14,
        "type integer",
    ),
    (
        "partition: birth, values: [1900, 2030]",
        "partition: country",
        Code.KEYS_CONFLICT,
        15,
        "type text",
    ),
    ("[1900, 2030]", "[1899]", Code.UNKNOWN_CHOICE, 15, "`birth`"),
    ("[1900, 2030]", "[1900, 1900.0]", Code.DUPLICATE_NAME, 15, "twice"),
    ("[1900, 2030]", "[1900.5]", Code.OUT_OF_RANGE, 15, "an integer"),
    ("step: 0.01, ", "", Code.MISSING_KEY, 16, "`step`"),
    ("step: 0.01", "step: 0", Code.OUT_OF_RANGE, 16, "greater than 0"),
    ("step: 0.01", "step: 1e-13", Code.OUT_OF_RANGE, 16, "between 1e-12"),
    ("step: 0.01", "step: 0.03", Code.OUT_OF_RANGE, 16, "multiple of the step"),
    ("[-0.5, 500]", "[0.005, 500]", Code.OUT_OF_RANGE, 16, "multiple of the step"),
    ("[-0.5, 500]", "[500, -0.5]", Code.OUT_OF_RANGE, 16, "below the second"),
    ("[-0.5, 500]", "[500, 500]", Code.OUT_OF_RANGE, 16, "below the second"),
    ("[-0.5, 500]", "[500]", Code.OUT_OF_RANGE, 16, "two numbers"),
    ("[-0.5, 500]", "500", Code.WRONG_TYPE, 16, "must be a list"),
    ("[-0.5, 500]", "[0, 21474836.48]", Code.OUT_OF_RANGE, 16, "2^31"),
    ("[-0.5, 500]", "[0, high]", Code.NOT_A_NUMBER, 16, "must be a number"),
    ("[-0.5, 500]", "[0, 500], values: [1, 2]", Code.KEYS_CONFLICT, 16, "no `values`"),
    (
        "age: {type: integer, bounds: [0, 120]}",
        "age: {type: integer, step: 2}",
        Code.KEYS_CONFLICT,
        17,
        "no `step`",
    ),
    ("[0, 120]", "[0, 120.5]", Code.OUT_OF_RANGE, 17, "multiple of the step"),
    (
        "age: {type: integer, bounds: [0, 120]}",
        "age: {type: text, bounds: [0, 120]}",
        Code.KEYS_CONFLICT,
        17,
        "no `bounds`",
    ),
    (
        "age: {type: integer, bounds: [0, 120]}",
        "age: {type: integer, bound: [0, 120]}",
        Code.UNKNOWN_KEY,
        17,
        "`bound`",
    ),
    (
        "age: {type: integer, bounds: [0, 120]}",
        "age: {type: integer, partition: birth}",
        Code.DUPLICATE_NAME,
        17,
        "both have",
    ),
    ("[false, true]", "[no]", Code.WRONG_TYPE, 18, "true or false"),
    (
        "[2026-11-01, 2026-11-02]",
        "[2026-11-31]",
        Code.OUT_OF_RANGE,
        19,
        "a valid date",
    ),
    (
        "[2026-11-01, 2026-11-02]",
        "[20261101]",
        Code.OUT_OF_RANGE,
        19,
        "a valid date",
    ),
]


@pytest.mark.spec("QRY-2")
@pytest.mark.parametrize(
    ("old", "new", "code", "line", "words"),
    _MISTAKES,
    ids=[f"{new.strip()[:40]}" for _, new, *_ in _MISTAKES],
)
def test_a_mistake_is_refused_where_it_stands(
    old: str, new: str, code: Code, line: int, words: str
) -> None:
    assert FILE.count(old) >= 1
    begin = FILE.index(old)
    if "users" in words or line >= 20:
        begin = FILE.rindex(old)
    text = FILE[:begin] + new + FILE[begin + len(old) :]
    with pytest.raises(InputError) as caught:
        read(text)
    problem = caught.value.problems[0]
    assert problem.mark is not None
    assert (problem.code, problem.mark.line) == (code, line), caught.value.render()
    assert words in problem.message + problem.label


def test_several_mistakes_are_told_at_once() -> None:
    text = (
        FILE.replace("type: integer, bounds: [0, 120]", "type: integer, bounds: [9, 1]")
        .replace("[false, true]", "[3]")
        .replace("partition: country", "partition: contry")
        .replace("one_per: user_id", "one_per: users")
    )
    with pytest.raises(InputError) as caught:
        read(text)
    places = [
        (problem.mark.line if problem.mark else 0, problem.code)
        for problem in caught.value.problems
    ]
    assert places == [
        (14, Code.UNKNOWN_ATTRIBUTE),
        (17, Code.OUT_OF_RANGE),
        (18, Code.WRONG_TYPE),
        (22, Code.UNKNOWN_CHOICE),
    ]
    assert 'did you mean "country"?' in caught.value.render()


def test_a_bound_may_be_just_below_the_limit() -> None:
    """The greatest number of steps is 2^31 - 1, on both sides."""
    most = "21474836.47"
    tables = read(FILE.replace("[-0.5, 500]", f"[-{most}, {most}]"))
    amount = tables.by_name["views"].columns["amount"]
    assert amount.high is not None
    assert amount.high / amount.step == 2**31 - 1
    assert amount.low == -amount.high


def test_a_bound_that_is_no_multiple_names_its_neighbors() -> None:
    with pytest.raises(InputError) as caught:
        read(FILE.replace("[-0.5, 500]", "[-0.005, 500]"))
    assert caught.value.problems[0].help == "write -0.01 or 0"


def test_a_policy_without_ids_has_no_tables_of_one_row_each() -> None:
    words = Vocabulary(VOCABULARY.attributes, {}, ("user",), "add-remove")
    text = FILE[: FILE.index("  views:")] + FILE[FILE.index("  users:") :]
    with pytest.raises(InputError) as caught:
        read_tables(read_document(text.encode(), "tables.yaml"), words)
    assert caught.value.code is Code.UNKNOWN_CHOICE
    assert caught.value.problems[0].help == "ids of units: none"
