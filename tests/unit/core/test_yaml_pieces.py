"""Texts of several YAML documents are cut where YAML does it, and keep their lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.events import DocumentStartEvent, ScalarEvent

from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.errors import Code, InputError, Mark
from modicum.core.yaml_reader import read_document
from modicum.ops.files.yaml_documents import pieces

#: Documents; in some of them stands what looks like the end of one.
DOCUMENTS = (
    "a: 1\n",
    "a: 1\n\nb: [2,\n  3]\n# remark\n",
    "a: |\n  ---\n  text\nb: x\n",
    "a: '---\n\n  --- x'\n",
    "- a\n- b: {c: 1}\n",
    "{a: 1, # remark\n b: 2}\n",
    "a: --- b\n",
    "a: &x [1, 2]\nb: *x\n",
    "text\n---x\n",
    '"%": 1\n',
)
#: What says nothing, and may stand anywhere between documents.
NOTHING = ("", "# remark\n", "\n \n", "---\n", "---  # none\n", "--- \n...\n")
ENDS = ("", "...\n", "... # end\n", "\n# remark\n")


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts = [draw(st.sampled_from(["", "# first\n", "%YAML 1.2\n---\n", "---\n"]))]
    for document in draw(st.lists(st.sampled_from(DOCUMENTS), max_size=5)):
        parts.append(draw(st.sampled_from(NOTHING)))
        start = draw(st.sampled_from(["---\n", "--- # x\n", "---\n# x\n"]))
        parts.append(start + document)
        parts.append(draw(st.sampled_from(ENDS)))
    parts.append(draw(st.sampled_from(NOTHING)))
    text = "".join(parts)
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def by_yaml(text: str) -> list[list[tuple[int, int, str]]]:
    """Return line, column and text of the scalars of each document, as ruamel reads."""
    found: list[list[tuple[int, int, str]]] = []
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, DocumentStartEvent):
            found.append([])
        elif isinstance(event, ScalarEvent):
            mark = event.start_mark
            found[-1].append((mark.line + 1, mark.column + 1, event.value))
    return [one for one in found if one and (len(one) > 1 or one[0][2])]


def scalars(node: Node) -> Iterator[tuple[int, int, str]]:
    match node:
        case Scalar(mark=Mark(line=line, column=column), text=text):
            yield line, column, text
        case Scalar():
            pytest.fail("a scalar without a place")
        case Items(items=items):
            for each in items:
                yield from scalars(each)
        case Entries(entries=entries):
            for key, value in entries:
                yield from scalars(key)
                yield from scalars(value)


@given(texts())
@settings(max_examples=examples(100), deadline=None)
def test_documents_are_cut_where_yaml_cuts_them(text: str) -> None:
    expected = by_yaml(text)
    found = list(pieces(text.encode(), "a.yaml"))
    if not expected:
        (empty,) = found
        with pytest.raises(InputError) as caught:
            empty.read()
        assert caught.value.code is Code.EMPTY_DOCUMENT
        return
    # What an alias stands for is there a second time, and no event.
    read = [list(dict.fromkeys(scalars(piece.read()))) for piece in found]
    assert read == expected


@given(texts(), st.sampled_from(["a: [\n", "a: 1\na: 2\n", "a: !x 1\n", "a: <<: 1\n"]))
@settings(max_examples=examples(40), deadline=None)
def test_a_mistake_has_the_place_that_it_has_in_the_file(text: str, bad: str) -> None:
    whole = f"{text}---\n{bad}"
    (*_, last) = pieces(whole.encode(), "a.yaml")
    padded = "\n" * len(text.splitlines()) + f"---\n{bad}"
    with pytest.raises(InputError) as expected:
        read_document(padded.encode(), "a.yaml")
    with pytest.raises(InputError) as found:
        last.read()
    assert found.value.problems == expected.value.problems


def test_all_marks_move() -> None:
    text = 'a: "x\n  y"\nb: [1, {c: 2}]\n'
    (first, second) = pieces(f"---\n{text}---\n{text}".encode(), "a.yaml")
    assert first.before == 0
    assert second.before == 4
    padded = read_document(b"\n" * 4 + f"---\n{text}".encode(), "a.yaml")
    moved = second.read()
    assert repr(moved) == repr(padded)
    assert isinstance(moved, Entries)
    assert isinstance(padded, Entries)
    several = [entries[0][1] for entries in (moved.entries, padded.entries)]
    assert all(isinstance(one, Scalar) for one in several)
    (one, other) = (one.lines for one in several if isinstance(one, Scalar))
    assert one == other
    assert len(one) == 2


def test_a_byte_order_mark_is_none_of_the_text() -> None:
    (piece,) = pieces("\ufeff--- {a: 1}\n".encode(), "a.yaml")
    assert piece.text == b"--- {a: 1}\n"


def test_what_ends_without_a_new_beginning_is_refused() -> None:
    (piece,) = pieces(b"a: 1\n...\nb: 2\n", "a.yaml")
    with pytest.raises(InputError) as caught:
        piece.read()
    assert caught.value.code is Code.YAML_FEATURE


def test_shared_values_stay_shared() -> None:
    wide = "".join(f"  - &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, 15))
    text = f"---\na: 1\n---\nb:\n  - &x0 [1]\n{wide}"
    (_, second) = pieces(text.encode(), "a.yaml")
    node = second.read()
    assert isinstance(node, Entries)
    items = node.entries[0][1]
    assert isinstance(items, Items)
    last = items.items[-1]
    assert isinstance(last, Items)
    assert last.items[0] is last.items[1] is items.items[-2]
