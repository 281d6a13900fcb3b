"""CEL is parsed as by the grammar of cel-python, and in linear time."""

from __future__ import annotations

import re

import pytest
from budget import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st
from oracle.cel_trees import RefusedError, tree_of

from modicum.core.errors import Code
from modicum.policy.cel.compiler import CHARACTERS_MAX
from modicum.policy.cel.parser import NESTING_MAX, read_cel
from modicum.policy.cel.tree import CelError, Part, Place

ATOMS = (
    *("m", "release", "a.b.c", ".x", ".f(1)", "f()", "not(m)", "in", "r", "b"),
    *("1", "-3", "- 3", "0x1F", "2u", "-2u", "1.5", "-.5", "5.", "1e5", "9" * 20),
    *("true", "false", "null", "trues", '""', '"age"', "'x'", 'r"a"', 'b"q"'),
    *('"""m"""', "'''\n'''", r'"a\n"', r'"a\q"', r'"\\"', r'"it\"s"', "'“'"),
    *("[]", "{}", "{m: 1}", "T{}", "T{a: 1, b: 2}", "m['a']", 'm.has("x")'),
    *('m.attributes.exists(a, a == "x")', "// note\n", "size(m.attributes)"),
)
INFIX = ("&&", "||", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%")
STRAY = (*INFIX, *"?:,.()[]{}!=&| \n;'\"\\", "and", "not ", "“")


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return texts that hold smaller ones."""
    some = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(inner, st.sampled_from(INFIX), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(("&&", "||")), inner).map(" ".join),
        st.builds("({})".format, inner),
        st.builds("{}{}".format, st.sampled_from("!-"), inner),
        st.builds("{} ? {} : {}".format, inner, inner, inner),
        st.builds("[{}]".format, some),
        st.builds("{}.f({})".format, inner, some),
        st.builds("{}.name".format, inner),
        st.builds("{}[{}]".format, inner, inner),
    )


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a text; half of them have a slip."""
    text = draw(st.recursive(st.sampled_from(ATOMS), larger, max_leaves=12))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        left_out = draw(st.integers(0, 1))
        text = text[:at] + draw(st.sampled_from(("", *STRAY))) + text[at + left_out :]
    return text


Outcome = Part | tuple[Code, Place | None]


def expected(text: str) -> Outcome:
    try:
        return tree_of(text)
    except RefusedError as refused:
        return refused.code, refused.at


def outcome(text: str) -> Outcome:
    try:
        return read_cel(text)
    except CelError as error:
        return error.code, error.at


@settings(max_examples=examples(800))
@given(texts())
def test_texts_are_parsed_as_by_the_grammar_of_cel_python(text: str) -> None:
    """But for what Lark cuts into tokens otherwise than CEL's specification.

    It takes `in` for an operator wherever one may stand, even in `9inch`, and if a text
    has no end, it looks for one behind a backslash.
    """
    found, right = outcome(text), expected(text)
    event(found[0].name if isinstance(found, tuple) else "parsed")
    if isinstance(found, tuple) and isinstance(right, tuple) and right[1] is None:
        found = found[0], None  # Where an error of the syntax is shown is free.
    assert found == right or differs_in_tokens(text)


def differs_in_tokens(text: str) -> bool:
    """Return whether Lark may cut a text otherwise."""
    touching = re.search(r"[\w\"')\]}]in|in[\w\"'\\]|\d[a-zA-Z_]|true\w|false\w", text)
    # A backslash before a quote that may be the last one, or in a raw text.
    at_end = re.search(r"\\[\"']|[rR][\"'].*\\", text.replace(r"\\", ""), re.DOTALL)
    return touching is not None or at_end is not None


@pytest.mark.parametrize("opening", ["(", "[", "!", "true ? true : ", "f(", "m["])
def test_what_nests_too_deeply_is_refused(opening: str) -> None:
    closing = {"(": ")", "[": "]", "f(": ")", "m[": "]"}.get(opening, "")
    read_cel(opening * NESTING_MAX + "true" + closing * NESTING_MAX)
    for levels in (NESTING_MAX + 1, CHARACTERS_MAX // len(opening)):
        with pytest.raises(CelError) as caught:
            read_cel(opening * levels + "true" + closing * levels)
        assert caught.value.code is Code.CEL_LIMIT
