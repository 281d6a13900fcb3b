"""Documents: what a file says and where; and whatever is wrong has code and place."""

from __future__ import annotations

import json
import random
import string
import time
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from modicum.core.canonical import Plain
from modicum.core.document import (
    DEPTH_MAX,
    Entries,
    Items,
    Kind,
    Node,
    Scalar,
    describe,
    from_python,
    to_plain,
)
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.yaml_reader import NODES_MAX, TEXT_BYTES_MAX, read_document


def plain(text: str | bytes) -> Plain:
    data = text.encode() if isinstance(text, str) else text
    return to_plain(read_document(data, "f"))


def outcome(data: bytes) -> Plain | Code:
    """Return what a text says, or the code it is refused with."""
    try:
        return to_plain(read_document(data, "f"))
    except InputError as error:
        return error.code


def refused(data: str | bytes, file: str = "policy.yaml") -> Problem:
    """Read what must be refused; return the problem, which has a code and place."""
    raw = data.encode() if isinstance(data, str) else data
    with pytest.raises(InputError) as caught:
        read_document(raw, file)
    (problem,) = caught.value.problems
    assert problem.mark is not None
    assert problem.mark.file == file
    assert problem.mark.line >= 1
    assert problem.mark.column >= 1
    assert problem.code.value in problem.render()
    assert str(problem.mark) in problem.render()
    return problem


def place(problem: Problem) -> tuple[Code, int, int]:
    assert problem.mark is not None
    return problem.code, problem.mark.line, problem.mark.column


# --- what plain and quoted words are -----------------------------------------------


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *((word, Kind.NUMBER) for word in ("1", "-1", "+1", "007", "1.", ".5", "1e-7")),
        *((word, Kind.NUMBER) for word in ("1.0E-7", "0x1F", "0o17", ".inf", "-.INF")),
        *((word, Kind.NUMBER) for word in (".nan", ".NaN", "1e999999999", "9" * 200)),
        *((word, Kind.BOOLEAN) for word in ("true", "True", "TRUE", "false", "FALSE")),
        *((word, Kind.NULL) for word in ("null", "Null", "NULL", "~", "")),
        *((word, Kind.TEXT) for word in ("yes", "no", "on", "off", "tRUE")),
        *((word, Kind.TEXT) for word in ("1_000", "1:30", "0b1", "nan", "inf", "1e")),
        *((word, Kind.TEXT) for word in ("2001-01-01", "1/3", "0X1F", ".e5", "-x")),
    ],
)  # fmt: skip
def test_a_bare_word_is_what_yaml_1_2_says(word: str, kind: Kind) -> None:
    node = read_document(f"key: {word}\n".encode(), "f")
    assert isinstance(node, Entries)
    ((_, value),) = node.entries
    assert isinstance(value, Scalar)
    assert (value.kind, value.quoted) == (kind, False)
    assert value.text == word, "the text as written"


@pytest.mark.parametrize("word", ["1", "1e-7", "true", "null", "~", "", ".nan", "x"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_whatever_is_quoted_is_text(word: str, quote: str) -> None:
    node = read_document(f"key: {quote}{word}{quote}\n".encode(), "f")
    assert isinstance(node, Entries)
    ((_, value),) = node.entries
    assert isinstance(value, Scalar)
    assert (value.kind, value.text, value.quoted) == (Kind.TEXT, word, True)


def test_block_texts_are_text() -> None:
    assert plain("a: |\n  1\nb: >-\n  2\n") == {"map": [["a", "1\n"], ["b", "2"]]}


def test_every_node_knows_where_it_stands() -> None:
    root = read_document(b"# comment\nrules:\n  - {eps: 1.50}\n", "p.yaml")
    assert isinstance(root, Entries)
    ((key, rules),) = root.entries
    assert isinstance(rules, Items)
    (rule,) = rules.items
    assert isinstance(rule, Entries)
    ((eps, value),) = rule.entries
    assert key.mark == Mark("p.yaml", 2, 1, 5, "rules:")
    assert rule.mark == Mark("p.yaml", 3, 5, 11, "  - {eps: 1.50}")
    assert eps.mark == Mark("p.yaml", 3, 6, 3, "  - {eps: 1.50}")
    assert value.mark == Mark("p.yaml", 3, 11, 4, "  - {eps: 1.50}")


def test_a_byte_order_mark_is_not_a_character_of_the_text() -> None:
    node = read_document(b"\xef\xbb\xbfa: 1", "f")
    assert isinstance(node, Entries)
    assert node.entries[0][0].mark == Mark("f", 1, 1, 1, "a: 1")


# --- YAML and JSON say the same -----------------------------------------------------


def test_spelling_and_layout_do_not_show_but_order_and_kind_do() -> None:
    one = plain("a: 1e-7\nb: [true, null, x]\n")
    assert one == plain('{"a": 0.00000010, "b": [TRUE, ~, "x"]}')
    assert one == plain("# why\n'a': 1.0E-7\n\nb:\n- True\n-\n- x\n")
    assert one != plain('{"b": [true, null, "x"], "a": 1e-7}')
    assert one != plain('{"a": "1e-7", "b": [true, null, "x"]}')
    assert one != plain('{"a": 1e-7, "b": ["true", null, "x"]}')
    assert one != plain('{"a": 1e-7, "b": [true, "null", "x"]}')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: # why\n  bcd\n\nb: x\n", {"map": [["a", "bcd"], ["b", "x"]]}),
        ("# why\n- | # text\n  x\n", {"list": ["x\n"]}),
        ("[ # a\n# b\nx, # c\ny\n# d\n] # e\n", {"list": ["x", "y"]}),
        ("- {# a\n b: x # c\n# d\n} # e\n", {"list": [{"map": [["b", "x"]]}]}),
        ("# a\n---  # b\nx  # c\n# d\n", "x"),
        (
            "a:\n# b\n  - x # c\n\n\n# d\n  - y\n",
            {"map": [["a", {"list": ["x", "y"]}]]},
        ),
    ],
)
def test_comments_may_stand_anywhere_and_say_nothing(text: str, value: Plain) -> None:
    assert plain(text) == value


def test_aliases_say_the_same_as_what_they_stand_for() -> None:
    assert plain("a: &x [1, 2]\nb: *x\n") == plain("a: [1, 2]\nb: [1, 2]\n")


def test_an_anchor_may_be_used_again() -> None:
    """As YAML 1.2 allows; no warning reaches a terminal."""
    assert plain("a: &x 1\nb: &x 2\nc: *x\n") == plain("a: 1\nb: 2\nc: 2\n")


letters = st.characters(exclude_categories=["Cs"], exclude_characters="\x7f")
words = st.one_of(
    st.text(letters, max_size=12),
    st.sampled_from(
        ["1", "true", "null", "~", "", " ", "- a", "a: b", "# c", "&x", "*x"]
    ),
    st.sampled_from(
        ["!t", "<<", "=", "|", "[", "}", "'", '"', "\\", "\n", "a\n b", "%"]
    ),
)
numbers = st.one_of(
    st.integers(-(10**60), 10**60),
    st.floats(allow_nan=False, allow_infinity=False),
)
trees: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, words),
    lambda children: st.one_of(
        st.lists(children, max_size=4), st.dictionaries(words, children, max_size=4)
    ),
    max_leaves=15,
)


def yaml_text(value: Any, indent: int = 0) -> str:
    """Write a value as block YAML, by hand: quoted texts, bare other words."""
    pad = "  " * indent
    if isinstance(value, Mapping) and value:
        return "".join(
            f"\n{pad}? {json.dumps(key)}\n{pad}: {yaml_text(item, indent + 1)}"
            for key, item in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"\n{pad}- {yaml_text(item, indent + 1)}" for item in value)
    return json.dumps(value)


@settings(max_examples=examples(120))
@given(trees)
def test_json_yaml_and_python_say_the_same(value: Any) -> None:
    ours = to_plain(from_python(value))
    assert plain(json.dumps(value)) == ours
    assert plain(json.dumps(value, indent="\t")) == ours, "tabs are space in JSON"
    assert plain(json.dumps(value, separators=(",", ":"))) == ours
    assert plain(yaml_text(value)) == ours


#: Characters of JSON texts that YAML reads as line breaks.
BREAKS = "\x85\u2028\u2029"


@settings(max_examples=examples(120))
@given(st.text(letters, max_size=12).filter(lambda t: not set(t) & set(BREAKS)))
def test_json_need_not_escape_what_is_not_ascii(text: str) -> None:
    raw = json.dumps([text], ensure_ascii=False).encode()
    assert outcome(raw) in ({"list": [text]}, Code.NOT_TEXT), "YAML forbids some"


@pytest.mark.parametrize("text", ["a\x85b", "a \u2028 b", "a \u2029b", " \x85 "])
def test_unescaped_line_separators_are_kept_or_refused(text: str) -> None:
    """Never read as another text: JSON says they are characters like others."""
    raw = json.dumps([text], ensure_ascii=False).encode()
    assert outcome(raw) in ({"list": [text]}, Code.NOT_TEXT, Code.YAML_SYNTAX)


def test_json_escapes() -> None:
    assert plain(r'{"a": "\u0041\/\\\"\b\f\n\r\t\ud83d\ude00\u0000"}') == {
        "map": [["a", 'A/\\"\b\f\n\r\t\U0001f600\x00']]
    }


# --- what a file must not hold ------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", Code.EMPTY_DOCUMENT, 1, 1),
        ("\n\n# only a comment\n", Code.EMPTY_DOCUMENT, 1, 1),
        ("a: 1\nb: 2\na: 3\n", Code.DUPLICATE_KEY, 3, 1),
        ('{"a": 1, "b": {"x": 1, "x": 2}}', Code.DUPLICATE_KEY, 1, 24),
        ("a: 1\n'a': 2\n", Code.DUPLICATE_KEY, 2, 1),
        ('1: a\n"1": b\n', Code.DUPLICATE_KEY, 2, 1),
        ("a: !!str 5\n", Code.YAML_FEATURE, 1, 4),
        ("a: !!float 5\n", Code.YAML_FEATURE, 1, 4),
        ("a: ! 5\n", Code.YAML_FEATURE, 1, 4),
        ("a: !<tag:yaml.org,2002:str> 5\n", Code.YAML_FEATURE, 1, 4),
        ("!policy\na: 5\n", Code.YAML_FEATURE, 1, 1),
        ("- 1\n- !!python/object:os.system x\n", Code.YAML_FEATURE, 2, 3),
        ("!!set {a, b}\n", Code.YAML_FEATURE, 1, 1),
        ("!!binary aGk=\n", Code.YAML_FEATURE, 1, 1),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", Code.YAML_FEATURE, 3, 3),
        ("a: 1\n---\nb: 2\n", Code.YAML_FEATURE, 2, 1),
        ("a: *x\n", Code.YAML_SYNTAX, 1, 4),
        ("? [1, 2]\n: a\n", Code.WRONG_TYPE, 1, 3),
        ("{a: 1}: b\n", Code.WRONG_TYPE, 1, 1),
        ("a: [1, 2\nb: 3\n", Code.YAML_SYNTAX, 1, 4),
        ("a:\n\tb: 1\n", Code.YAML_SYNTAX, 2, 1),
        ("a: 'x\n", Code.YAML_SYNTAX, 1, 4),
        ("a: @x\n", Code.YAML_SYNTAX, 1, 4),
        ("a: b: c\n", Code.YAML_SYNTAX, 1, 4),
        ('a: "\\q"\n', Code.YAML_SYNTAX, 1, 5),
        ('a: "\\ud800"\n', Code.NOT_TEXT, 1, 4),
        ('- 1\n- "x\\udc00\\ud800y"\n', Code.NOT_TEXT, 2, 3),
        ("&a [*a]\n", Code.YAML_SYNTAX, 1, 5),
        ("x: &a {b: [*a]}\n", Code.YAML_SYNTAX, 1, 12),
        ("&a {*a : 1}\n", Code.YAML_SYNTAX, 1, 5),
    ],
)
def test_what_a_reviewable_file_does_not_use(
    text: str, code: Code, line: int, column: int
) -> None:
    assert place(refused(text)) == (code, line, column)


@pytest.mark.parametrize(
    "text",
    [
        *("a: &x !!str 5\n", "a: &x !!float '5'\n", "a: &x ! 5\n", "&x !!map {a: 1}\n"),
        *("a: &x\n  !!str 5\n", "- &x\n  !!seq [1]\n", "&k !!str a: 1\n"),
    ],
)
def test_an_anchor_does_not_hide_a_tag(text: str) -> None:
    assert refused(text).code is Code.YAML_FEATURE


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_they_end(line_break: str) -> None:
    assert place(refused(f"a: 1{line_break}a: 2")) == (Code.DUPLICATE_KEY, 2, 1)
    deep = refused(f"a: 1{line_break}b: " + "[" * 1000)
    assert deep.mark is not None
    assert deep.mark.line == 2


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"\xff\xfea\x00", 1, 1),
        (b"a: 1\nb: \xe9\n", 2, 4),
        (b"a: \xed\xa0\x80", 1, 4),
        (b"\xef\xbb\xbfab\xff", 1, 3),
        (b"ok\nab\x00c", 2, 3),
        (b"\xef\xbb\xbfab\x01", 1, 3),
        (b"a: \x1b[31mred", 1, 4),
        (b"a: x\x7f", 1, 5),
        ("a: 1\nb: é\x81".encode(), 2, 5),
        ("a: \ufffe".encode(), 1, 4),
        (b"SQLite format 3\x00\x10\x00", 1, 16),
        (b"\x89PNG\r\n\x1a\n", 1, 1),
    ],
)
def test_bytes_that_are_not_text_are_refused_where_they_stand(
    data: bytes, line: int, column: int
) -> None:
    assert place(refused(data)) == (Code.NOT_TEXT, line, column)


def test_a_duplicate_key_says_where_the_first_one_stands() -> None:
    problem = refused("eps: 1\nrho: 2\neps: 3\n")
    assert problem.message == "the key `eps` is given twice"
    assert problem.notes == ("first at policy.yaml:1:1",)


@pytest.mark.parametrize(
    "escape", ["\\UFFFFFFFF", "\\U00110000", "\\U80000000", "\\x0", "\\u12", "\\U1234"]
)
def test_an_escape_beyond_unicode_is_a_coded_error(escape: str) -> None:
    assert refused(f'a: "{escape}"\n').code in (Code.YAML_SYNTAX, Code.NOT_TEXT)


@pytest.mark.parametrize(
    "text",
    [
        *("%YAML 3.1\n---\na: 1\n", "%YAML 1\n---\na\n", "%TAG\n---\na\n", "%\n"),
        *(
            "a: |1000\n x",
            "a: >-+\n x",
            "- - -\n-",
            "...",
            "--- --- ---",
            "&",
            "*",
            "!",
        ),
        *("a: !<", "a: !<%ED%A0%80> x", "? ? ?", "{", "}", "[}", "{a: b: c}", "a: `b"),
        *(
            "\t",
            "a:\t\tb:\tc",
            "? |\n",
            ":",
            "- :",
            "[?]",
            "{?}",
            "!!str : x",
            "&a &b c",
        ),
        *("a: &x *x", "*x : 1", "&x : *x", "<<: 1", "<<: *a", "{<<: []}", '"\\', "'"),
    ],
)
def test_odd_texts_are_read_or_refused_with_a_code(text: str) -> None:
    try:
        read_document(text.encode(), "f")
    except InputError:
        refused(text)


# --- hostile sizes --------------------------------------------------------------------


def levels(opening: str, closing: str, depth: int) -> str:
    return opening * depth + closing * depth


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000,
        levels("[", "]", 10_000),
        levels('{"a":', "}", 10_000).replace(":}", ":1}", 1),
        "- " * 10_000 + "x",
        "? " * 10_000,
        "\n".join(" " * n + "a:" for n in range(1000)),
        "\n".join(" " * n + "-" for n in range(1000)),
        levels("[", "]", 8 * DEPTH_MAX),
        levels("[", "]", DEPTH_MAX + 2),
    ],
    ids=lambda text: repr(text[:12]) + str(len(text)),
)
def test_deep_nesting_is_refused_quickly(text: str) -> None:
    began = time.process_time()
    problem = refused(text)
    assert problem.code in (Code.TOO_LARGE, Code.YAML_SYNTAX)
    assert time.process_time() - began < 2


def test_ten_thousand_block_levels_are_refused() -> None:
    """One line each would be 50 MB; a few indented lines of many dashes will do."""
    text = "\n".join(" " * (2 * n) + "- " * 2000 + "x" for n in range(5))
    assert refused(text).code in (Code.TOO_LARGE, Code.YAML_SYNTAX)


def test_the_deepest_file_that_is_read() -> None:
    text = levels("[", "]", DEPTH_MAX + 1)
    assert plain(text) == plain(f"# same\n{text}")
    nested: Any = []
    for _ in range(DEPTH_MAX):
        nested = [nested]
    assert to_plain(from_python(nested)) == plain(text)
    with pytest.raises(InputError) as caught:
        from_python([nested])
    assert caught.value.code is Code.TOO_LARGE
    assert refused(levels("[", "]", DEPTH_MAX + 2)).code is Code.TOO_LARGE


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f'- "[0, {n})"' for n in range(300)),
        "# " + "[" * 300 + "\na: 1\n",
        "why: |\n  " + "{ " * 300 + "\n",
    ],
    ids=["intervals", "comment", "block"],
)
def test_brackets_in_texts_and_comments_are_not_nesting(text: str) -> None:
    read_document(text.encode(), "f")


def test_a_bomb_of_aliases_is_refused() -> None:
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    problem = refused("\n".join(laughs))
    assert problem.code is Code.TOO_LARGE
    assert str(NODES_MAX) in problem.message


@pytest.mark.parametrize("above", [1, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_what_aliases_stand_for_is_as_deep_as_if_it_was_written(
    above: int, times: int
) -> None:
    """The first anchor has a list of `below` levels, each other one `above` more."""

    def text(below: int) -> str:
        lines = ["a0: &a0 " + "[" * below + "x" + "]" * below]
        for number in range(1, times + 1):
            nested = "[" * above + f"*a{number - 1}, [y]" + "]" * above
            lines.append(f"a{number}: &a{number} {nested}")
        return "\n".join(lines)

    most = DEPTH_MAX - 1 - above * times  # The root is a level, too.
    read_document(text(most).encode(), "f")
    problem = refused(text(most + 1))
    assert problem.code is Code.TOO_LARGE
    assert f"deeper than {DEPTH_MAX}" in problem.message


def test_more_bytes_than_a_file_may_have_are_refused_unread() -> None:
    began = time.process_time()
    problem = refused(b"a" * (TEXT_BYTES_MAX + 1))
    assert place(problem) == (Code.TOO_LARGE, 1, 1)
    assert str(TEXT_BYTES_MAX) in problem.message
    assert time.process_time() - began < 0.5


def test_a_recursive_python_value_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InputError) as caught:
        from_python(loop)
    assert caught.value.code is Code.TOO_LARGE


# --- anything at all ------------------------------------------------------------------


def assert_read_or_refused(data: bytes) -> None:
    """Parse, or raise an `InputError` whose place lies in the text; nothing else."""
    try:
        node = read_document(data, "f")
    except InputError as error:
        for problem in error.problems:
            assert problem.mark is not None
            assert problem.mark.file == "f"
            assert 1 <= problem.mark.line <= data.count(b"\n") + data.count(b"\r") + 5
            assert problem.mark.column >= 1
            problem.render()
        return
    to_plain(node)
    describe(node)


pytest_soak = pytest.mark.soak


@pytest_soak
@settings(max_examples=examples(300))
@given(st.binary(max_size=200))
@example(bytes(range(256)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert_read_or_refused(data)


@pytest_soak
@settings(max_examples=examples(300))
@given(st.text(max_size=80))
@example('"\\UFFFFFFFF"')
@example("\ufeff\ufeff")
def test_any_text_is_read_or_refused(text: str) -> None:
    assume(not any("\ud800" <= c <= "\udfff" for c in text))
    assert_read_or_refused(text.encode())


TOKENS = [
    *("a", "b", "1", "1e-7", "true", "null", "'", '"', "\\", "\\u", "\\ud800", "x"),
    *(
        "[",
        "]",
        "{",
        "}",
        ",",
        ": ",
        ":",
        "- ",
        "-",
        "? ",
        "?",
        "&a ",
        "*a",
        "*a ",
        "!",
    ),
    *(
        "!!str ",
        "!<",
        ">",
        "|",
        "|\n",
        "%",
        "%YAML 1.1\n",
        "%TAG ! x\n",
        "---\n",
        "...\n",
    ),
    *(
        "\n",
        "\n  ",
        "\n    ",
        " ",
        "\t",
        "\r",
        "\r\n",
        "#",
        " #",
        "<<: ",
        "=",
        "@",
        "`",
    ),
    *("\x85", "\u2028", "\ufeff", "é", "😀", "\\UFFFFFFFF", "0", "~", "+", ".inf"),
]


@pytest_soak
@settings(max_examples=examples(500))
@given(st.lists(st.sampled_from(TOKENS), max_size=25).map("".join))
@example("&a x: &a y")
@example('"\\UFFFFFFFF"')
@example("#\n| #")
@example(": #\n x\n\n")
def test_any_heap_of_yaml_tokens_is_read_or_refused(text: str) -> None:
    assert_read_or_refused(text.encode())


@pytest_soak
@settings(max_examples=examples(150))
@given(trees, st.data())
def test_a_damaged_document_is_read_or_refused(value: Any, data: st.DataObject) -> None:
    raw = bytearray(yaml_text(value).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(raw) - 1)))
        raw[at : at + 1] = data.draw(st.binary(max_size=3))
    assert_read_or_refused(bytes(raw))


@pytest_soak
def test_random_punctuation_is_read_or_refused() -> None:
    """Seed 7, 400 texts: what a shrinker would not think of."""
    source = random.Random(7)
    for _ in range(examples(400)):
        size = source.randint(1, 60)
        text = "".join(source.choices(string.printable + "\x85é😀", k=size))
        assert_read_or_refused(text.encode())


# --- Python values --------------------------------------------------------------------


def test_python_values_are_read_as_if_they_stood_in_a_file() -> None:
    value = {
        "eps": 0.1,
        "delta": 1e-7,
        "exact": Fraction(1, 8),
        "decimal": Decimal("0.30"),
        "values": (1, True, None, "1"),
        2: "two",
    }
    text = "{eps: 0.1, delta: 1e-7, exact: 0.125, decimal: 0.3,"
    text += ' values: [1, true, null, "1"], 2: two}'
    assert to_plain(from_python(value)) == plain(text)


@pytest.mark.parametrize(
    "value",
    [
        *(object(), {1, 2}, 1j, len, Code.INTERNAL, iter([])),
        *({None: 1}, {True: 1}, {(1, 2): 3}, {b"a": 1}),
        *({1: "a", "1": "b"}, {"x": [object()]}),
        *(10**5000, -(10**5000), Fraction(1, 3**10_000), {10**5000: 1}),
        *(b"bytes", bytearray(b"bytes"), memoryview(b"bytes")),
        *("\ud800", ["\udc00"], {"\ud800": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_could_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        from_python(value)
    assert caught.value.render()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("-Infinity")])
def test_numbers_that_are_none_stay_numbers_until_they_are_read(value: Any) -> None:
    """`reading.number` refuses them with the place; as text they would pass."""
    node = from_python(value)
    assert isinstance(node, Scalar)
    assert (node.kind, node.quoted) == (Kind.NUMBER, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "a list"),
        ("{a: 1}", "a mapping"),
        ("'x'", 'text "x"'),
        ("~", "nothing"),
        ("1.50", "`1.50`"),
        ("true", "`true`"),
        ("x" * 50, f'text "{"x" * 40}"'),
    ],
)
def test_a_node_in_words(text: str, words: str) -> None:
    node: Node = read_document(text.encode(), "f")
    assert describe(node) == words
