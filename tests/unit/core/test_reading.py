"""Reading marked trees strictly, and how a mistake is shown."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.api.local.views.ledger import problems_view
from modicum.api.schema.shape import plain
from modicum.core import reader as reading
from modicum.core.document import Node, from_python
from modicum.core.errors import (
    Code,
    InputError,
    InvariantError,
    Mark,
    ModicumError,
    Problem,
    check,
)
from modicum.core.reader import PROBLEMS_MAX, Fields, Problems, fail
from modicum.core.yaml_reader import read_document


def read(text: str) -> Node:
    return read_document(text.encode(), "p.yaml")


def problem_of(act: Callable[[], object]) -> Problem:
    with pytest.raises(InputError) as caught:
        act()
    (problem,) = caught.value.problems
    return problem


# --- numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1e-7", "1.0E-7", ".1e-6", "0.0000001"])
def test_a_number_is_exact(text: str) -> None:
    assert reading.number(read(text), "delta") == Fraction(1, 10**7)


def test_a_fraction_from_python_is_exact() -> None:
    assert reading.number(from_python(Fraction(1, 3)), "eps") == Fraction(1, 3)
    assert reading.number(from_python(0.1), "eps") == Fraction(1, 10)


@pytest.mark.spec("ACC-6")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        *((text, Code.NOT_A_NUMBER) for text in ('"1"', "'1e-7'", "x", "true", "null")),
        *(
            (text, Code.NOT_A_NUMBER)
            for text in ("1_000", "1/3", "[1]", "{a: 1}", "1,5")
        ),
        *(
            (text, Code.OUT_OF_RANGE)
            for text in (".nan", ".NaN", ".inf", "-.INF", "0x1F")
        ),
        *((text, Code.OUT_OF_RANGE) for text in ("0o17", "1e999999999", "1e401")),
        *((text, Code.OUT_OF_RANGE) for text in ("9" * 65, "9" * 100_000)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_number_is_refused(text: str, code: Code) -> None:
    problem = problem_of(lambda: reading.number(read(text), "eps"))
    assert problem.code is code
    assert problem.message.startswith("eps must be a ")
    assert len(problem.message) < 200
    assert problem.mark is not None


def test_a_quoted_number_says_that_the_quotes_are_to_blame() -> None:
    problem = problem_of(lambda: reading.number(read('"1"'), "eps"))
    assert problem.label == "this is text, because of the quotes"
    assert problem.help == "remove the quotes"
    assert problem_of(lambda: reading.number(read('"x"'), "eps")).help == ""


@pytest.mark.parametrize("text", [".nan", ".inf"])
def test_nan_and_infinity_are_named(text: str) -> None:
    problem = problem_of(lambda: reading.number(read(text), "eps"))
    assert problem.notes == ("NaN and infinity are not allowed",)


@pytest.mark.parametrize(
    ("text", "positive", "probability"),
    [
        ("0", False, False),
        ("-0", False, False),
        ("-1", False, False),
        ("1e-400", True, True),
        ("0.999999999999999999999999", True, True),
        ("1", True, False),
        ("1.0", True, False),
        ("2", True, False),
    ],
)
def test_ranges_exclude_their_ends(
    text: str, positive: bool, probability: bool
) -> None:
    for reader, fits in (
        (reading.positive, positive),
        (reading.probability, probability),
    ):
        if fits:
            assert reader(read(text), "x") == Fraction(text)
        else:
            problem = problem_of(lambda reader=reader: reader(read(text), "x"))  # type: ignore[misc]
            assert problem.code is Code.OUT_OF_RANGE
            assert problem.message.endswith(f"got {text}")


@pytest.mark.parametrize(("text", "fits"), [("1", True), ("9", True), ("9.0", True)])
def test_a_count_may_be_at_its_ends(text: str, fits: bool) -> None:
    assert fits
    found = reading.count(read(text), "k", at_least=1, at_most=9)
    assert type(found) is int
    assert found == Fraction(text)


@pytest.mark.parametrize("text", ["0", "10", "1.5", "-1", "1e-3", "1e300"])
def test_a_count_is_whole_and_within_bounds(text: str) -> None:
    problem = problem_of(lambda: reading.count(read(text), "k", at_least=1, at_most=9))
    assert problem.code is Code.OUT_OF_RANGE
    assert problem.message == f"k must be an integer from 1 to 9, got {text}"


# --- words --------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1", "true", "1e-7", "[x]", "{x: y}"])
def test_text_is_never_guessed_from_something_else(text: str) -> None:
    problem = problem_of(lambda: reading.text(read(text), "purpose"))
    assert problem.code is Code.WRONG_TYPE
    assert (problem.help == "put it in quotes") == (text[0] not in "[{")
    assert reading.text(read(f"'{text}'"), "purpose") == text


def test_nothing_is_no_text() -> None:
    assert problem_of(lambda: reading.text(read("~"), "purpose")).help == ""


def test_a_text_has_a_greatest_length() -> None:
    assert reading.text(read("x" * 2000), "purpose") == "x" * 2000
    problem = problem_of(lambda: reading.text(read("x" * 2001), "purpose"))
    assert problem.code is Code.TOO_LARGE
    longer = reading.text(read("x" * 2001), "purpose", characters_max=2001)
    assert len(longer) == 2001


@pytest.mark.parametrize(
    "text",
    ["a\x00b", "\x1b[31m", "a\x07", "a\rb", "\x7f", "\x9b31m", "\u202egpj", "\ud800"],
)
def test_a_text_moves_nobodys_cursor(text: str) -> None:
    from modicum.core.document import Kind, Scalar

    node = Scalar(Kind.TEXT, text, quoted=True, mark=None)
    assert problem_of(lambda: reading.text(node, "why")).code is Code.NOT_TEXT


def test_a_text_may_have_lines_and_tabs() -> None:
    assert reading.text(from_python("a\n\tb\u00a0é😀"), "why") == "a\n\tb\u00a0é😀"


@pytest.mark.parametrize(
    "text", ["a", "_", "r-1", "a.b+c_d", "é", "患者", "x" * 128, "7a"]
)
def test_names(text: str) -> None:
    assert reading.name(read(f"'{text}'"), "unit") == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-a",
        ".a",
        "a b",
        "a/b",
        "a:b",
        "a\n",
        "x" * 129,
        "e\u0301",
        "a*",
    ],
)
def test_what_is_no_name(text: str) -> None:
    problem = problem_of(lambda: reading.name(from_python(text), "unit"))
    assert problem.code is Code.BAD_NAME
    assert "letter, digit or _" in problem.help


@pytest.mark.parametrize(
    ("text", "fits"),
    [("r/2026:1@x", True), ("x" * 200, True), ("x" * 201, False), ("/r", False)],
)
def test_release_ids_are_names_with_a_few_signs_more(text: str, fits: bool) -> None:
    if fits:
        assert reading.release_id(from_python(text), "id") == text
    else:
        problem = problem_of(lambda: reading.release_id(from_python(text), "id"))
        assert problem.code is Code.BAD_NAME


def test_a_word_outside_a_closed_set_gets_the_nearest_one() -> None:
    known = ["low", "medium", "high"]
    assert reading.choice(read("low"), "risk", known, Code.UNKNOWN_CHOICE) == "low"
    problem = problem_of(
        lambda: reading.choice(read("hihg"), "risk", known, Code.UNKNOWN_CHOICE)
    )
    assert problem.code is Code.UNKNOWN_CHOICE
    assert problem.label == 'did you mean "high"?'
    assert problem.help == "known: low, medium, high"
    far = problem_of(
        lambda: reading.choice(read("zzz"), "risk", [], Code.UNKNOWN_CHOICE)
    )
    assert (far.label, far.help) == ("", "known: none")


def test_booleans() -> None:
    assert reading.boolean(read("true"), "x") is True
    assert reading.boolean(read("FALSE"), "x") is False
    for text in ("yes", "1", "'true'", "null", "[true]"):
        problem = problem_of(lambda text=text: reading.boolean(read(text), "x"))  # type: ignore[misc]
        assert problem.code is Code.WRONG_TYPE


def test_lists() -> None:
    assert len(reading.items(read("[1, 2]"), "rules")) == 2
    assert reading.items(read("[]"), "rules") == ()
    problem = problem_of(lambda: reading.items(read("a: 1"), "rules"))
    assert problem.message == "rules must be a list, got a mapping"


# --- mappings -----------------------------------------------------------------------


def test_fields_are_taken_one_by_one_and_none_is_ignored() -> None:
    fields = Fields(read("a: 1\nb: 2\n"), "the rule")
    assert "a" in fields
    assert fields.key_node("b").text == "b"
    reading.number(fields.take("a"), "a")
    assert "a" not in fields
    assert fields.take_optional("c") is None
    problem = problem_of(fields.finish)
    assert problem.code is Code.UNKNOWN_KEY
    assert problem.message == "unknown key `b` in the rule"
    assert problem.mark == Mark("p.yaml", 2, 1, 1, "b: 2")
    assert problem.help == "known keys: a, c"


def test_a_misspelled_key_gets_the_nearest_one() -> None:
    fields = Fields(read("budgte: 1\n"), "the rule")
    fields.take_optional("budget")
    assert problem_of(fields.finish).label == 'did you mean "budget"?'


def test_all_leftover_keys_are_reported_in_the_order_of_the_text() -> None:
    fields = Fields(read("z: 1\nlater: 2\na: 3\n"), "the rule")
    with pytest.raises(InputError) as caught:
        fields.finish(unsupported={"later": "comes later"})
    assert [p.mark.line for p in caught.value.problems if p.mark] == [1, 2, 3]
    codes = [problem.code for problem in caught.value.problems]
    assert codes == [Code.UNKNOWN_KEY, Code.NOT_SUPPORTED, Code.UNKNOWN_KEY]
    assert caught.value.problems[1].notes == ("comes later",)


def test_a_missing_key_is_missed_where_the_mapping_stands() -> None:
    fields = Fields(read("- {a: 1}").items[0], "the rule")  # type: ignore[union-attr]
    problem = problem_of(lambda: fields.take("b"))
    assert problem.code is Code.MISSING_KEY
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.column) == (1, 3)


def test_the_rest_is_taken_in_order() -> None:
    fields = Fields(read("b: 1\na: 2\nc: 3\n"), "the labels")
    fields.take("a")
    assert [key.text for key, _ in fields.rest()] == ["b", "c"]
    fields.finish()


@pytest.mark.parametrize("text", ["[a]", "a", "1", "~"])
def test_only_a_mapping_has_fields(text: str) -> None:
    assert problem_of(lambda: Fields(read(text), "it")).code is Code.WRONG_TYPE


# --- several mistakes at once --------------------------------------------------------


def test_problems_are_raised_together_in_the_order_of_the_text() -> None:
    nodes = read("[a, b, c]").items  # type: ignore[union-attr]
    found = Problems()
    for node in reversed(nodes):
        with found.guard():
            reading.number(node, "eps")
    found.add(Problem(Code.NO_BUDGET, "no place"))
    with pytest.raises(InputError) as caught:
        found.raise_any()
    places = [str(p.mark) if p.mark else "" for p in caught.value.problems]
    assert places == ["", "p.yaml:1:2", "p.yaml:1:5", "p.yaml:1:8"]


def test_no_problem_is_no_error() -> None:
    found = Problems()
    with found.guard():
        pass
    found.raise_any()


def test_a_guard_lets_other_errors_through() -> None:
    found = Problems()
    with pytest.raises(InvariantError), found.guard():
        check(False, "ACC-1: something")


def test_too_many_problems_end_the_collection() -> None:
    found = Problems()
    for number in range(PROBLEMS_MAX - 1):
        found.add(Problem(Code.NOT_A_NUMBER, f"number {number}"))
    with pytest.raises(InputError) as caught, found.guard():
        raise fail(Code.NOT_A_NUMBER, "once more")
    assert len(caught.value.problems) == PROBLEMS_MAX
    assert "reading stopped here" in caught.value.problems[-1].notes[0]


def at(line: int, message: str = "unknown key `date` in the release") -> Problem:
    return Problem(Code.UNKNOWN_KEY, message, Mark("p.yaml", line, 1, 4, "date: x"))


def test_equal_mistakes_are_shown_once_with_their_number_and_places() -> None:
    text = InputError(*(at(line) for line in range(1, 105))).render()
    assert text.count("unknown key") == 1
    assert text.splitlines()[-1] == (
        "   = found 104 times; also at p.yaml:2, p.yaml:3, p.yaml:4, p.yaml:5, p.yaml:6"
        " and 98 more; --json has them all"
    )


def test_no_mistake_is_left_out_without_a_word() -> None:
    error = InputError(*(at(line, f"number {line}") for line in range(1, 63)))
    text = error.render()
    assert text.count("error[") == 50
    assert text.endswith("\n\n… and 12 more errors; --json has them all")
    assert "more mistakes" not in InputError(*error.problems[:50]).render()


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("pateint", "patient"),
        ("diagnoses", "diagnosis"),
        ("blackbox", "black-box"),
        ("user_day", "user-day"),
        ("Page", "page"),
        ("pge", "page"),
        ("ogla", "olga"),
        ("gauss", "gaussian"),
        ("polices", "policies"),
        ("frist-come", "first-come"),
        ("FRA", "FR"),
        ("mll", "ml"),
    ],
)
def test_a_slip_of_the_pen_gets_a_suggestion(word: str, known: str) -> None:
    others = ["zebra", known, "quantile"]
    assert reading.nearest(word, others) == f'did you mean "{known}"?'


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("date", "rate"),
        ("date", "delta"),
        ("page", "age"),
        ("epsilon", "person"),
        ("release", "replace"),
        ("country", "currency"),
        ("attributes", "contributors"),
        ("sigma", "sample"),
        ("mean", "median"),
        ("id", "ip"),
        ("eps", "epidemic-status"),
        ("", "ml"),
        ("__", "ml"),
    ],
)
def test_another_word_is_never_suggested(word: str, known: str) -> None:
    assert reading.nearest(word, [known]) == ""


def test_the_nearest_of_several_words_is_suggested() -> None:
    words = ["statistics", "static", "statics"]
    assert reading.nearest("statik", words) == 'did you mean "static"?'


def test_a_place_in_words() -> None:
    assert reading.place(Mark("p.yaml", 3, 4)) == "p.yaml:3"
    assert reading.place(None) == "-"


# --- how a mistake is shown (core.errors) ---------------------------------------


def test_a_problem_is_shown_with_a_caret_under_its_column() -> None:
    problem = Problem(
        Code.NOT_A_NUMBER,
        'eps must be a number, got text "1"',
        Mark("policy.yaml", 12, 15, 3, '    - {eps:   "1", delta: 1e-7}'),
        label="this is text, because of the quotes",
        notes=("numbers are read exactly",),
        help="remove the quotes",
    )
    assert problem.render() == (
        'error[MOD105]: eps must be a number, got text "1"\n'
        "  --> policy.yaml:12:15\n"
        "    |\n"
        ' 12 |     - {eps:   "1", delta: 1e-7}\n'
        "    |               ^^^ this is text, because of the quotes\n"
        "   = numbers are read exactly\n"
        "   = help: remove the quotes"
    )


def test_a_problem_from_a_file_is_shown_at_its_place() -> None:
    problem = problem_of(
        lambda: reading.positive(
            read("a: 1\nb: {x: 2, eps: -1.50}\n").entries[1][1].entries[1][1],  # type: ignore[union-attr]
            "eps",
        )
    )
    assert problem.render() == (
        "error[MOD106]: eps must be greater than 0, got -1.50\n"
        "  --> p.yaml:2:16\n"
        "   |\n"
        " 2 | b: {x: 2, eps: -1.50}\n"
        "   |                ^^^^^"
    )


def test_a_problem_without_a_place_is_one_line() -> None:
    assert Problem(Code.NO_POLICY, "there is no policy").render() == (
        "error[MOD603]: there is no policy"
    )
    without_source = Problem(Code.NOT_TEXT, "x", Mark("f", 3, 1))
    assert without_source.render() == "error[MOD002]: x\n  --> f:3:1"


def test_a_tab_is_as_wide_as_the_caret_thinks() -> None:
    problem = Problem(Code.BAD_NAME, "x", Mark("f", 1, 4, 2, "\t\ta bc"))
    *_, source, caret = problem.render().splitlines()
    assert source == " 1 |   a bc"
    assert caret == "   |    ^^"


@pytest.mark.parametrize("column", [1, 40, 61, 62, 300, 499, 500])
def test_a_long_line_is_cut_around_the_caret(column: int) -> None:
    letters = "".join(chr(ord("a") + n % 26) for n in range(500))
    problem = Problem(Code.BAD_NAME, "x", Mark("f", 7, column, 3, letters))
    *_, source, caret = problem.render().splitlines()
    assert len(source) <= len(" 7 | ") + 120
    assert len(caret) <= len(" 7 | ") + 120
    assert source[caret.index("^")] == letters[column - 1], "the caret is under it"
    assert caret.count("^") == min(3, 500 - column + 1)


@settings(max_examples=examples(150))
@given(
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=400),
    st.integers(1, 500),
    st.integers(0, 500),
)
def test_the_caret_stands_under_its_character_on_any_line(
    line: str, column: int, length: int
) -> None:
    shown = Problem(Code.BAD_NAME, "x", Mark("f", 7, column, length, line)).render()
    if not line:
        assert shown.count("\n") == 1
        return
    *_, source, caret = shown.splitlines()
    assert "^" in caret
    if column <= len(line):
        at = caret.index("^")
        assert source[at] == line[column - 1]
        assert caret.count("^") <= max(1, min(length, len(source) - at))


def test_the_json_form_of_a_problem() -> None:
    mark = Mark("f", 1, 4, length=2)
    problem = Problem(Code.BAD_NAME, "x", mark, label="l", notes=("n",), help="h")
    (shown,) = plain(problems_view([problem]))
    assert shown == {
        "code": "MOD107",
        "message": "x",
        "file": "f",
        "line": 1,
        "column": 4,
        "length": 2,
        "label": "l",
        "notes": ["n"],
        "help": "h",
    }
    (nowhere,) = plain(problems_view([Problem(Code.BAD_NAME, "x")]))
    assert [nowhere[key] for key in ("file", "line", "column", "length")] == [None] * 4
    assert nowhere["label"] == ""


def test_codes_are_unique_and_well_formed() -> None:
    values = [code.value for code in Code]
    assert len(values) == len(set(values))
    assert all(len(value) == 6 and value.startswith("MOD") for value in values)


def test_an_error_has_at_least_one_problem_and_renders_all() -> None:
    with pytest.raises(ValueError, match="at least one problem"):
        ModicumError()
    error = InputError(Problem(Code.BAD_NAME, "one"), Problem(Code.NOT_TEXT, "two"))
    assert error.code is Code.BAD_NAME
    assert str(error) == "one\ntwo"
    assert error.render() == "error[MOD107]: one\n\nerror[MOD002]: two"


def test_a_broken_invariant_stops_the_program() -> None:
    check(True, "ACC-1: fine")
    with pytest.raises(
        InvariantError, match="invariant violated: ACC-1: not"
    ) as caught:
        check(False, "ACC-1: not")
    assert caught.value.code is Code.INTERNAL


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u00ad", "\u200d", "\ufe0f", "\u2060", "\u3164", "\U000e0041"]
)
def test_a_text_holds_nothing_that_nobody_sees(hidden: str) -> None:
    with pytest.raises(InputError) as caught:
        reading.text(from_python(f"mark{hidden}"), "the purpose")
    assert caught.value.code is Code.NOT_TEXT
    assert "invisible" in str(caught.value)
