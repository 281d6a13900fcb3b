"""A drafted tables file is read as it stands, and marks what was guessed."""

from __future__ import annotations

from fractions import Fraction

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.query.table_format import read_tables
from modicum.query.tables import TYPES, Column
from modicum.query.tables_draft import draft_table, draft_text
from modicum.release.population import Partition, Population
from modicum.release.units import Unit
from modicum.release.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    attributes=frozenset({"page", "home_region", "null", "country", "age"}),
    labels={},
    units=("user", "user-day"),
    neighbors="add-remove",
    unit_facts={
        "user": Unit("user", "user_id"),
        "user-day": Unit("user-day", "user_id", "day", "at", within=("user",)),
    },
    population=Population(
        {
            "country": Partition("country", ("AT", "DE"), 0, 0, (), None),
            "age": Partition("age", None, 0, 120, (), None),
        }
    ),
)
NAMES = st.sampled_from(
    ["page", "Page", "home region", "home-region", "null", "country", "age", "user_id",
     "at", "id", "views_id", "view_id", "0", "true", "x" * 200, "a: b", "# c",
     "\x1b[2J", "USER_ID", "é", ""]
)  # fmt: skip


@st.composite
def columns(draw: st.DrawFn) -> list[tuple[str, Column | None]]:
    found: list[tuple[str, Column | None]] = []
    for name in draw(st.lists(NAMES, min_size=1, unique=True)):
        kind = draw(st.none() | st.sampled_from(TYPES))
        step = Fraction(1, 100) if kind == "number" else Fraction(1)
        found.append((name, None if kind is None else Column(name, kind, step=step)))
    return found


@given(columns(), st.sampled_from(["views", "users", "user", "null", "2026"]))
@settings(max_examples=examples(300), deadline=None)
def test_a_draft_is_a_tables_file(
    found: list[tuple[str, Column | None]], name: str
) -> None:
    try:
        draft = draft_table(name, "views.csv", found, VOCABULARY)
    except InputError as error:
        if error.problems[0].code is not Code.UNKNOWN_ATTRIBUTE:
            raise
        return
    text = draft_text([draft], VOCABULARY)
    assert all(one.isprintable() for one in text.split("\n"))
    table = read_tables(read_document(text.encode(), "draft"), VOCABULARY).by_name[name]
    assert table.columns == {one.name: one for one in draft.columns}
    assert (table.row_id or (None,)) == (draft.row_id,)
    assert table.one_per == draft.one_per
    # No column is lost without a word.
    assert {*table.columns, *draft.left_out} == {own_name for own_name, _ in found}


def test_a_draft_marks_its_guesses() -> None:
    found = [
        ("user_id", Column("user_id", "integer")),
        ("at", Column("at", "text")),
        ("Page", Column("Page", "text")),
        ("country", Column("country", "integer")),
        ("note", Column("note", "text")),
    ]
    draft = draft_table("views", "views.csv", found, VOCABULARY)
    assert draft_text([draft], VOCABULARY).splitlines()[4:] == [
        "tables:",
        "  views:  # from views.csv",
        "    # No row_id: rows are ordered by their contents. If a column",
        "    # permanently identifies a row, name it:  row_id: COLUMN",
        "    columns:",
        "      user_id: {type: integer}  # guess: type; identifies the owner of a row",
        "      at: {type: date}  # guess: type; the time of a row",
        "      Page: {type: text, attribute: page}  # guess: type; attribute; public"
        " groups need values: [ALL, OF, THEM]",
        "      country: {type: text, partition: country}  # guess: type",
        "      # note: left out, it has no attribute of the policy",
    ]


def test_a_table_of_people_has_one_row_each() -> None:
    found = [("user_id", Column("user_id", "text")), ("age", Column("age", "integer"))]
    draft = draft_table("users", "users.csv", found, VOCABULARY)
    assert (draft.row_id, draft.one_per) == ("user_id", "user_id")
    draft = draft_table("visits", "visits.csv", found, VOCABULARY)
    assert (draft.row_id, draft.one_per) == (None, None)


def test_nothing_to_declare_is_refused() -> None:
    with pytest.raises(InputError, match="an id or an attribute of the policy"):
        draft_table("t", "t.csv", [("note", Column("note", "text"))], VOCABULARY)
