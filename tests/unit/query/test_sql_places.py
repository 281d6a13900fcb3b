"""Places in the SQL of a query file, told as places in that file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import asked

from modicum.core.document import Entries, Scalar, from_python
from modicum.core.errors import InputError, Mark
from modicum.core.yaml_reader import read_document
from modicum.ops.files.queries import load_query
from modicum.query.sql_places import SqlPlaces

WORDS = ["SELECT", "page,", "x", "(a)", "<>", "COUNT(*)", "_b", "'it'", "a=1"]
PLAIN = [one for one in WORDS if one[0] not in "<'("]


@st.composite
def written(draw: st.DrawFn) -> str:
    """Return a YAML file with a text in one of the ways to write one."""
    style = draw(st.sampled_from(["|", ">", ">-", "|-", "|+", "plain", "'", '"']))
    lines = draw(
        st.lists(
            st.lists(
                st.sampled_from(PLAIN if style == "plain" else WORDS),
                min_size=1,
                max_size=4,
            ).map(" ".join),
            min_size=1,
            max_size=4,
        )
    )
    indents = [draw(st.sampled_from(["   ", "     "])) for _ in lines]
    blank = "\n" * draw(st.integers(1, 2))
    if style[0] in "|>":
        indents[0] = "   "  # The first line says how far the text is indented.
        body = blank.join(map(str.__add__, indents, lines))
        text = f"{style}\n{body}"
    else:
        quote = "" if style == "plain" else style
        inner = [one.replace("'", "''") if quote == "'" else one for one in lines]
        first, *rest = inner
        text = quote + blank.join([first, *map(str.__add__, indents[1:], rest)]) + quote
    return f"head: 1\nsql: {text}\nnext: SELECT\n"


def sql_of(file: str) -> Scalar:
    node = read_document(file.encode(), "q.yaml")
    assert isinstance(node, Entries)
    found = node.entries[1][1]
    assert isinstance(found, Scalar)
    return found


def places_in(text: str) -> list[tuple[int, int, str]]:
    """Return line, column and character of all that is no blank, slowly."""
    return [
        (line, column, character)
        for line, part in enumerate(text.split("\n"), start=1)
        for column, character in enumerate(part, start=1)
        if character not in " \t"
    ]


@given(file=written())
@settings(max_examples=examples(300), deadline=None)
def test_every_place_is_where_its_character_stands(file: str) -> None:
    node = sql_of(file)
    own = SqlPlaces(node)
    lines = file.split("\n")
    before = (0, 0)
    escaped = "''" in file
    for line, column, character in places_in(node.text):
        found = own.of(Mark("sql", line, column, 1))
        assert found is not None
        assert found.file == "q.yaml"
        if escaped:  # Then the text as a whole, or the right place.
            at = lines[found.line - 1][found.column - 1]
            assert found == node.mark or at == character
            continue
        assert found.source == lines[found.line - 1]
        assert found.source[found.column - 1] == character
        assert before < (found.line, found.column)
        before = (found.line, found.column)


def test_what_cannot_be_told_is_the_whole_text() -> None:
    node = sql_of('a: 1\nsql: "SELECT \\u0078 FROM"\n')
    own = SqlPlaces(node)
    assert own.of(Mark("sql", 1, 10, 4)) == node.mark
    assert own.of(None) == node.mark


def test_a_text_without_a_file_keeps_its_places() -> None:
    node = from_python("SELECT")
    assert isinstance(node, Scalar)
    mark = Mark("sql", 1, 3, 2)
    assert SqlPlaces(node).of(mark) == mark
    assert SqlPlaces(node).of(None) is None


# --- in query files -------------------------------------------------------------------

FILE = """\
release: views
periods: 2026-10
query:
  tables: tables.yaml
  sql: >-
    SELECT page, COUNT(*) AS views
    FROM views
    GROUP BY page{more}
  bounds: {{user-day: 10}}
  noise: gaussian
  loss: {{user-day: {{rho: 0.015}}}}
"""


def mistake(folder: Path, text: str) -> InputError:
    (folder / "tables.yaml").write_text(asked.TABLES)
    (folder / "q.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_query(folder / "q.yaml", asked.compiled())
    return caught.value


def test_a_mistake_in_sql_is_told_with_its_place_in_the_file(tmp_path: Path) -> None:
    (problem,) = mistake(tmp_path, FILE.format(more=" HAVING x")).problems
    assert str(problem.mark) == f"{tmp_path}/q.yaml:8:26"
    assert problem.mark is not None
    assert problem.mark.length == len("x")


def test_so_is_a_mistake_that_is_found_later(tmp_path: Path) -> None:
    text = FILE.format(more="").replace("page", "topic")
    (problem,) = mistake(tmp_path, text).problems
    assert "not all values of the keys are public" in problem.message
    assert str(problem.mark) == f"{tmp_path}/q.yaml:6:12"


def test_where_places_are_not_known_the_place_in_sql_is_a_note(tmp_path: Path) -> None:
    sql = "SELECT page, COUNT(*) AS views\nFROM views GROUP BY page HAVING x"
    text = FILE.format(more="").replace(
        FILE[FILE.index(">-") : FILE.index("{more}")], json.dumps(sql)
    )
    (problem,) = mistake(tmp_path, text).problems
    assert str(problem.mark) == f"{tmp_path}/q.yaml:5:8"
    assert problem.notes[0] == "in the SQL, at line 2, column 33"
