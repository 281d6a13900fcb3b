"""Predicates: every form of the subset, what is refused, and where the caret is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from oracle import policy as oracle

from modicum.core.document import Kind, Scalar, from_python
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.yaml_reader import read_document
from modicum.policy.cel.compiler import CHARACTERS_MAX, NESTING_MAX, parse_predicate
from modicum.policy.compiler import compile_text
from modicum.policy.implication.search import simplified
from modicum.policy.predicates import (
    Any,
    Constant,
    Facts,
    LabelIn,
    Predicate,
    Scope,
    TextIn,
    holds,
)
from modicum.release import Label, Vocabulary

VOCABULARY = Vocabulary(
    attributes=frozenset({"age", "diagnosis", "größe", "a-b.c"}),
    labels={
        "ml": Label(("none", "black-box"), "none"),
        "audience": Label(("internal", "public"), "public"),
    },
    units=("user", "user-day"),
    neighbors="add-remove",
)

M = {
    "attributes": ["age", "größe"],
    "ml": "black-box",
    "audience": "internal",
    "name": "counts",
    "mechanism": "gaussian",
}
RELEASE = {
    "id": "2026/r-1",
    "ml": "none",
    "audience": "internal",
    "purpose": "it's “research”",
    "requester": "",
    "dataset": "claims",
}


def parsed(when: str) -> Predicate:
    return parse_predicate(from_python(when), "`when`", VOCABULARY)


def facts(m: Mapping[str, object], release: Mapping[str, object]) -> Facts:
    scoped = ((Scope.MECHANISM, m), (Scope.RELEASE, release))
    texts = {(s, key): str(v) for s, given in scoped for key, v in given.items()}
    labels = {(s, name): str(g[name]) for s, g in scoped for name in VOCABULARY.labels}
    attributes = m["attributes"]
    assert isinstance(attributes, list)
    return Facts(frozenset(attributes), labels, texts)


FACTS = facts(M, RELEASE)

READS_TWO = '"age" in m.attributes || "größe" in m.attributes'
READS_OTHERS = '"a-b.c" in m.attributes || "diagnosis" in m.attributes'

TRUE = [
    "true",
    "!false",
    "!!true",
    " ! ! true ",
    "(true)",
    "((true))",
    "\ttrue\n",
    'm.ml == "black-box"',
    "m.ml == 'black-box'",
    'm.ml=="black-box"',
    '"black-box" == m.ml',
    'm.ml != "none"',
    '"none" != m.ml',
    'm . ml == "black-box"',
    'm.ml in ["black-box"]',
    'm.ml in ["none", "black-box"]',
    "m.ml in ['none', \"black-box\"]",
    'm.ml in ["black-box", "black-box"]',
    "!(m.ml in [])",
    '!(m.ml == "none")',
    '"age" in m.attributes',
    "'größe' in m.attributes",
    '!("a-b.c" in m.attributes)',
    'm.name == "counts"',
    'm.name in ["counts", "sums"]',
    'm.mechanism == "gaussian"',
    'm.mechanism != "pate-gnmax"',
    'release.id == "2026/r-1"',
    'release.ml == "none"',
    'release.audience == "internal"',
    'release.purpose == "it\'s “research”"',
    'release.requester == ""',
    'release.dataset in ["claims", "visits"]',
    'release.dataset == "claims" // with a remark',
    'm.ml == "black-box"\n  && "age" in m.attributes',
]


@pytest.mark.spec("POL-7")
@pytest.mark.parametrize("when", TRUE)
def test_every_form_of_the_subset(when: str) -> None:
    without_remark = when.split(" //", maxsplit=1)[0]
    assert oracle.holds(without_remark, M, RELEASE)
    assert holds(parsed(when), FACTS)
    assert not holds(parsed(f"!({without_remark})"), FACTS)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("true || true && false", True),
        ("(true || true) && false", False),
        ("false && false || true", True),
        ("false && (false || true)", False),
        ("true || false && false || false", True),
        ("!false && false", False),
        ("!(false && false)", True),
        ("!true || true", True),
        ("!(true || true)", False),
        ('!("age" in m.attributes) || true', True),
        ("false || false || true", True),
        ("true && true && false", False),
        ('m.ml == "none" || m.ml == "black-box" && "diagnosis" in m.attributes', False),
        ('(m.ml == "none" || m.ml == "black-box") && "age" in m.attributes', True),
    ],
)
def test_and_binds_closer_than_or_and_not_closest(when: str, *, expected: bool) -> None:
    assert oracle.holds(when, M, RELEASE) is expected
    assert holds(parsed(when), FACTS) is expected


def test_a_text_that_a_release_does_not_have_reads_as_empty() -> None:
    nothing = Facts(frozenset(), FACTS.labels, {})
    assert holds(parsed('release.purpose == ""'), nothing)
    assert not holds(parsed('release.purpose != ""'), nothing)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"a\\b"', "a\\b"),
        (r'"say \"so\""', 'say "so"'),
        (r"'it\'s'", "it's"),
        (r"""'say "so"'""", 'say "so"'),
        (r'"\n\t\r"', "\n\t\r"),
        (r'"\u0061\U0001F4A5"', "a\U0001f4a5"),
        (r'"\\"', "\\"),
        ('""', ""),
    ],
)
def test_a_text_may_hold_escapes(written: str, meant: str) -> None:
    expected = TextIn(Scope.MECHANISM, "name", frozenset({meant}))
    assert parsed(f"m.name == {written}") == expected
    assert parsed(f"m.ml == 'none' || {written} == m.name") == Any(
        (LabelIn(Scope.MECHANISM, "ml", frozenset({"none"})), expected)
    )


@pytest.mark.spec("POL-7")
@pytest.mark.parametrize(
    ("when", "plain"),
    [
        ('["age", "größe"].exists(x, x in m.attributes)', READS_TWO),
        ('m.attributes.exists(a, a in ["age", "größe"])', READS_TWO),
        ('m.attributes.exists(a, a == "age" || a.startsWith("gr"))', READS_TWO),
        (
            '["age", "größe"].all(x, x in m.attributes)',
            '"age" in m.attributes && "größe" in m.attributes',
        ),
        (
            'm.attributes.all(a, a == "age" || a == "größe")',
            '!("a-b.c" in m.attributes) && !("diagnosis" in m.attributes)',
        ),
        ("m.attributes.exists(a, true)", f"{READS_TWO} || {READS_OTHERS}"),
        ("m.attributes.all(a, true)", "true"),
        ("[].exists(x, x == x)", "false"),
        ("[].all(x, false)", "true"),
        (
            "[m.ml, release.ml].all(l, l == 'none')",
            "m.ml == 'none' && release.ml == 'none'",
        ),
        ("'none' in [m.ml, release.ml]", "m.ml == 'none' || release.ml == 'none'"),
        ("size(m.attributes) == 0", "m.attributes.size() < 1"),
        ("size(m.attributes) > 2", "3 <= size(m.attributes)"),
        ("size(m.attributes) >= 0", "true"),
        ("size(m.attributes) > 4", "false"),
        ("size(release.purpose) == 0", 'release.purpose == ""'),
        ("has(release.purpose)", 'release.purpose != ""'),
        ('release.purpose.contains("")', "true"),
        (
            'm.mechanism.endsWith("laplace")',
            'm.mechanism in ["laplace", "discrete-laplace"]',
        ),
        (
            '["user", "user-day"].all(u, u in m.contribution_bound)',
            '"user" in m.contribution_bound && "user-day" in m.contribution_bound',
        ),
        ('m.contribution_bound["user"] < 11', '10 >= m.contribution_bound["user"]'),
        ('m.contribution_bound["user"] < 1', "false"),
        ('m.contribution_bound["user"] != 0', "true"),
        ('"a" == "b"', "false"),
        ("size('größe') == 5 && 1 < 0x2", "true"),
        ("m.ml == 'none' && true && m.ml == 'black-box'", "false"),
        (
            'm.ml == "none" ? m.name == "x" : m.name == "y"',
            'm.ml == "none" && m.name == "x" || m.ml != "none" && m.name == "y"',
        ),
    ],
)
def test_longer_forms_mean_what_short_ones_do(when: str, plain: str) -> None:
    assert simplified(parsed(when)) == simplified(parsed(plain))


def test_a_bound_that_is_absent_is_more_than_every_number() -> None:
    few = Facts(frozenset(), FACTS.labels, {}, {"user": 3})
    for when in ("<= 3", "< 4", "== 3", ">= 3", "!= 4", "> 2"):
        assert holds(parsed(f'm.contribution_bound["user"] {when}'), few)
    for when in ("<= 3", "< 4", "== 3", "<= 9000000"):
        assert not holds(parsed(f'm.contribution_bound["user"] {when}'), FACTS)
        assert holds(parsed(f'!(m.contribution_bound["user"] {when})'), FACTS)
    for when in (">= 3", "> 2", "!= 3", "> 9000000"):
        assert holds(parsed(f'm.contribution_bound["user"] {when}'), FACTS)


#: Text, code, and where the caret belongs: the column within the text, from 1.
REFUSED = [
    # Cost and unit are withheld.
    ('m.cost == "x"', Code.CEL_TYPE, 3),
    ('m.unit == "user"', Code.CEL_TYPE, 3),
    ("size(m.cost) > 1", Code.CEL_TYPE, 8),
    ("has(m.cost)", Code.CEL_TYPE, 7),
    # Numbers and arithmetic.
    ("1", Code.CEL_TYPE, 1),
    ('1 == "1"', Code.CEL_TYPE, 6),
    ("m.ml == 1", Code.CEL_TYPE, 9),
    ("m.ml == 1.5", Code.CEL_TYPE, 9),
    ('m.ml in ["none", 2]', Code.CEL_TYPE, 18),
    ('m.name + "x" == "y"', Code.CEL_SUBSET, 1),
    ("-true", Code.CEL_SUBSET, 1),
    # Functions, macros, indexing.
    ('m.attributes.exists_one(a, a == "age")', Code.CEL_SUBSET, 1),
    ('m.attributes.map(a, a) == ["age"]', Code.CEL_SUBSET, 1),
    ('m.attributes.filter(a, a == "age").size() == 1', Code.CEL_SUBSET, 1),
    ('m.attributes.exists(a, a == "agee")', Code.UNKNOWN_ATTRIBUTE, 29),
    ("m.attributes.exists(a, a)", Code.CEL_TYPE, 24),
    ('m.attributes.exists("a", true)', Code.CEL_SUBSET, 1),
    ("m.attributes.exists(m, true)", Code.CEL_TYPE, 21),
    ('["age"].all(a, ["age"].all(a, true))', Code.CEL_TYPE, 28),
    ('["age"].all(a, b in m.attributes)', Code.CEL_TYPE, 16),
    ('["agee"].all(a, a in m.attributes)', Code.UNKNOWN_ATTRIBUTE, 17),
    ('m.contribution_bound.all(u, u == "user")', Code.CEL_SUBSET, 1),
    ("m.name.exists(a, true)", Code.CEL_SUBSET, 1),
    ("exists(a, true)", Code.CEL_SUBSET, 1),
    ("m.name.startsWith(m.name)", Code.CEL_TYPE, 19),
    ('m.name.startsWith("a", "b")', Code.CEL_SUBSET, 1),
    ('startsWith(m.name, "c")', Code.CEL_SUBSET, 1),
    ('m.ml.startsWith("n")', Code.CEL_SUBSET, 1),
    ('m.attributes.contains("age")', Code.CEL_TYPE, 1),
    ("has(m.ml)", Code.CEL_TYPE, 5),
    ("has(release.id)", Code.CEL_TYPE, 5),
    ("has(m.attributes)", Code.CEL_TYPE, 5),
    ("has(m)", Code.CEL_SUBSET, 1),
    ("m.attributes", Code.CEL_TYPE, 1),
    ("size(m.attributes)", Code.CEL_TYPE, 1),
    ('size(m.attributes) == "2"', Code.CEL_TYPE, 23),
    ("size(m.attributes) > 1.5", Code.CEL_TYPE, 22),
    ("size(m.attributes) > size(m.attributes)", Code.CEL_TYPE, 22),
    ("size(m.ml) > 2", Code.CEL_SUBSET, 1),
    ("size(m.contribution_bound) > 0", Code.CEL_SUBSET, 1),
    ("size(release.purpose) > 1", Code.CEL_SUBSET, 1),
    ("size(m) > 1", Code.CEL_TYPE, 6),
    ('matches(m.name, "c.*")', Code.CEL_SUBSET, 1),
    ('m.name.matches("c.*")', Code.CEL_SUBSET, 1),
    ('m["ml"] == "none"', Code.CEL_SUBSET, 1),
    ('m.attributes["age"] == "x"', Code.CEL_SUBSET, 1),
    ('m.contribution_bound["users"] <= 1', Code.UNKNOWN_UNIT, 22),
    ("m.contribution_bound[1] <= 1", Code.CEL_TYPE, 22),
    ('m.contribution_bound["user"] <= "1"', Code.CEL_TYPE, 33),
    ('m.contribution_bound["user"] <= 0.5', Code.CEL_TYPE, 33),
    ("m.contribution_bound <= 1", Code.CEL_SUBSET, 1),
    ('m.contribution_bound == "user"', Code.CEL_TYPE, 1),
    ('"day" in m.contribution_bound', Code.UNKNOWN_UNIT, 1),
    ("1 in m.contribution_bound", Code.CEL_TYPE, 1),
    ("m.contribution_bound.user <= 1", Code.CEL_SUBSET, 1),
    ("size(m.attributes) > 99999999999999999999", Code.CEL_SUBSET, 22),
    ("1 ? true : false", Code.CEL_TYPE, 1),
    ('true ? m.ml : "none"', Code.CEL_TYPE, 8),
    ("{}", Code.CEL_SUBSET, 1),
    # Comparisons of other things.
    ("true == true", Code.CEL_TYPE, 1),
    ('(m.ml == "none") == true', Code.CEL_SUBSET, 2),
    ("[1] == [1]", Code.CEL_TYPE, 8),
    ('m.ml in [["none"]]', Code.CEL_TYPE, 10),
    ('m.ml < "none"', Code.CEL_SUBSET, 1),
    ('"none" in m.ml', Code.CEL_SUBSET, 11),
    ('m.ml in "none"', Code.CEL_SUBSET, 9),
    ("m.ml in m.attributes", Code.CEL_TYPE, 1),
    ("m.ml == release.ml", Code.CEL_SUBSET, 9),
    ("release.id == m.name", Code.CEL_SUBSET, 15),
    ('m.attributes == "age"', Code.CEL_TYPE, 1),
    ('m.attributes in ["age"]', Code.CEL_TYPE, 1),
    ("m.ml == null", Code.CEL_TYPE, 9),
    # Unknown words.
    ('m.mll == "none"', Code.CEL_TYPE, 3),
    ('m.purpose == "x"', Code.CEL_TYPE, 3),
    ('release.name == "x"', Code.CEL_TYPE, 9),
    ('"age" in release.attributes', Code.CEL_TYPE, 18),
    ('rel.ml == "none"', Code.CEL_TYPE, 1),
    ('m.mechanism == "gauss"', Code.UNKNOWN_MECHANISM, 16),
    ('m.mechanism in ["laplace", "x"]', Code.UNKNOWN_MECHANISM, 28),
    ('m.ml == "grey-box"', Code.UNKNOWN_LABEL_VALUE, 9),
    ('m.ml != "None"', Code.UNKNOWN_LABEL_VALUE, 9),
    ('m.ml in ["none", "grey"]', Code.UNKNOWN_LABEL_VALUE, 18),
    ('"agee" in m.attributes', Code.UNKNOWN_ATTRIBUTE, 1),
    ('m.ml == "none" && "x" in m.attributes', Code.UNKNOWN_ATTRIBUTE, 19),
    ('"gro\u0308ße" in m.attributes', Code.UNKNOWN_ATTRIBUTE, 1),  # Not composed.
    # Not true or false.
    ("m", Code.CEL_TYPE, 1),
    ("m.ml", Code.CEL_TYPE, 1),
    ('"none"', Code.CEL_TYPE, 1),
    ("null", Code.CEL_TYPE, 1),
    ("[true]", Code.CEL_TYPE, 2),
    ('m.ml == "none" && m.audience', Code.CEL_TYPE, 19),
    ("!m.ml", Code.CEL_TYPE, 2),
    # Syntax.
    ("", Code.CEL_SYNTAX, 1),
    ("  ", Code.CEL_SYNTAX, None),
    ("// nothing", Code.CEL_SYNTAX, None),
    ('m.ml = "none"', Code.CEL_SYNTAX, 6),
    ('m.ml == "none', Code.CEL_SYNTAX, 9),
    ('m.name == "a\\"', Code.CEL_SYNTAX, 11),
    ("m.ml ==", Code.CEL_SYNTAX, None),
    ('m.ml == "none" and true', Code.CEL_SYNTAX, 16),
    ('m.ml == "none" & true', Code.CEL_SYNTAX, 16),
    ("(true", Code.CEL_SYNTAX, None),
    ("true)", Code.CEL_SYNTAX, 5),
    ("not true", Code.CEL_SYNTAX, None),
    ("m.ml === 'none'", Code.CEL_SYNTAX, 6),
    ("größe", Code.CEL_SYNTAX, 3),
    ("💥", Code.CEL_SYNTAX, 1),
    # Texts with another escape, a prefix or three quotes.
    (r'm.name == "a\qb"', Code.CEL_SUBSET, 11),
    (r'm.name == "\x61"', Code.CEL_SUBSET, 11),
    (r'm.name == "\101"', Code.CEL_SUBSET, 11),
    (r'm.name == "\ud800"', Code.CEL_SUBSET, 11),
    (r'm.name == "\U00110000"', Code.CEL_SUBSET, 11),
    (r'm.name == "\u61"', Code.CEL_SUBSET, 11),
    ('m.name == """a"""', Code.CEL_SUBSET, 11),
    ('m.name == r"a"', Code.CEL_SUBSET, 11),
    ('m.name == b"a"', Code.CEL_TYPE, 11),
]


def refusal(when: str) -> Problem:
    """Return the problem of a predicate that stands in column 12 of line 7."""
    mark = Mark("policy.yaml", 7, 12, len(when) + 2, f"  - {{when: '{when}'}}")
    with pytest.raises(InputError) as caught:
        parse_predicate(
            Scalar(Kind.TEXT, when, quoted=True, mark=mark), "w", VOCABULARY
        )
    return caught.value.problems[0]


@pytest.mark.spec("POL-7")
@pytest.mark.parametrize(("when", "code", "column"), REFUSED)
def test_what_is_refused_and_where(when: str, code: Code, column: int | None) -> None:
    problem = refusal(when)
    assert problem.code is code
    assert problem.mark is not None
    assert problem.mark.line == 7
    if column is not None and when:
        assert problem.mark.column == 12 + column


@pytest.mark.parametrize(
    ("when", "column"),
    [
        ("m.ml == true", 9),
        ('m.ml == "none" && m.name == true', 29),
        ('["age"].exists_one(a, a in m.attributes)', 1),
        ('"true" == m.name && m.ml == true', 29),
        ('true && ["age"] == "x"', 9),
        ("m.ml == []", 9),
        ("m.ml == {}", 9),
        ('m.ml == "none" && []', 19),
        ("true false", 6),
        ('m.ml == "none" false', 16),
        ('m.ml == "none" && {}', 19),
    ],
)
def test_the_caret_finds_words_and_brackets_too(when: str, column: int) -> None:
    mark = refusal(when).mark
    assert mark is not None
    assert mark.column == 12 + column


@pytest.mark.parametrize(
    ("when", "operator"),
    [
        ('m.attributes > "x"', ">"),
        ("size(m.contribution_bound) >= 1", ">="),
        ('m.name < "x"', "<"),
        ("m.cost.eps <= 1", "<="),
    ],
)
def test_a_comparison_outside_the_subset_is_pointed_at_not_its_right_side(
    when: str, operator: str
) -> None:
    mark = refusal(when).mark
    assert mark is not None
    assert mark.column <= 12 + when.index(operator) + 1


def test_looking_at_the_cost_is_explained() -> None:
    for when in ("m.cost < 1", "m.cost.eps == 1", "m.cost.user.eps < 0.5"):
        problem = refusal(when)
        assert "losses incomparable" in " ".join(problem.notes), when


@pytest.mark.parametrize(
    ("when", "label"),
    [
        ('m.mll == "none"', 'did you mean "ml"?'),
        ('m.ml == "blackbox"', 'did you mean "black-box"?'),
        ('"diagnoses" in m.attributes', 'did you mean "diagnosis"?'),
        ('m.mechanism == "gauss"', 'did you mean "gaussian"?'),
        ('m.contribution_bound["user_day"] < 2', 'did you mean "user-day"?'),
        ('m.ml = "none"', 'expected an operator; "=" is not CEL'),
        ('m.ml == "zzzzzzz"', ""),
    ],
)
def test_the_nearest_word_stands_beside_the_caret(when: str, label: str) -> None:
    assert refusal(when).label == label


@pytest.mark.parametrize(
    "when", ['m.labels.ml == "none"', '"age" in m.x.attributes', 'm.a.b.c != "x"']
)
def test_no_message_speaks_of_a_variable_without_a_name(when: str) -> None:
    assert '""' not in refusal(when).message


def test_long_predicates_are_refused() -> None:
    room = CHARACTERS_MAX - len('m.name == ""')
    longest = parsed(f'm.name == "{"x" * room}"')
    assert not holds(longest, FACTS)
    with pytest.raises(InputError) as caught:
        parsed(f'm.name == "{"x" * (room + 1)}"')
    assert caught.value.code in {Code.CEL_LIMIT, Code.TOO_LARGE}


@pytest.mark.parametrize("opening", ["(", "!", "!("])
def test_deep_predicates_are_refused(opening: str) -> None:
    def nested(depth: int) -> str:
        return opening * depth + "true" + ")" * (opening.count("(") * depth)

    deepest = NESTING_MAX // len(opening)
    assert holds(parsed(nested(deepest)), FACTS) == (opening == "(" or deepest % 2 == 0)
    for depth in (deepest + 1, 300):
        with pytest.raises(InputError) as caught:
            parsed(nested(depth))
        assert caught.value.code is Code.CEL_LIMIT


@pytest.mark.parametrize("operator", ["||", "&&"])
def test_a_long_list_of_alternatives_is_not_deep(operator: str) -> None:
    """Fifty names in a row nest nowhere; a reviewer reads them as a list."""
    names = [f'm.name == "{n}"' for n in range(50)]
    assert not holds(parsed(f" {operator} ".join(names)), FACTS)


def test_quantifiers_that_unfold_too_far_are_refused() -> None:
    each = " ".join(f"m.attributes.all(a{n}," for n in range(7))
    with pytest.raises(InputError) as caught:
        parsed(f"{each} true{')' * 7}")
    assert caught.value.code is Code.CEL_LIMIT
    assert "unfolds" in caught.value.problems[0].message
    assert holds(parsed(f"m.attributes.all(a, {'true && ' * 20} true)"), FACTS)


def test_no_backslash_escapes_a_quote_in_a_raw_text() -> None:
    """What follows the quote counts, here up to a remark."""
    when = r'[].exists(a, br"\") || true // ")'
    assert holds(parsed(when), FACTS)


def test_of_two_refusals_at_one_place_the_outer_one_is_shown() -> None:
    assert "cannot be chained" in refusal("1 + 1 < 2 < 3").label


def test_chains_are_nesting_too() -> None:
    for when in (
        "m" + ".a" * 300,
        "true ? true : " * 100 + "true",
        " == ".join(["m.ml"] * 100),
        "size(" * 100 + "m.attributes" + ")" * 100,
    ):
        with pytest.raises(InputError) as caught:
            parsed(when)
        assert caught.value.code is Code.CEL_LIMIT


def test_a_pattern_is_refused_with_the_reason() -> None:
    for when in ("m.name.matches('c.*')", "matches(m.name, 'c.*')"):
        assert "not decidable" in " ".join(refusal(when).notes)


def test_a_value_may_be_compared_on_either_side() -> None:
    assert parsed('"none" == m.ml') == parsed('m.ml == "none"')
    assert parsed('"none" != m.ml') == parsed('!(m.ml == "none")')


# --- places in files ---

POLICY = """\
modicum: policy/v1
name: places
units: {user: {id: user_id}}
labels: {ml: {values: [none, black-box], default: none}}
schema: {attributes: {}}
policies:
"""


def place_of(rest: str) -> tuple[int, int]:
    with pytest.raises(InputError) as caught:
        compile_text((POLICY + rest).encode(), "policy.yaml")
    problems = caught.value.problems
    (mark,) = [p.mark for p in problems if p.code is not Code.MISSING_KEY]
    assert mark is not None
    return mark.line, mark.column


@pytest.mark.parametrize(
    ("rest", "line", "text"),
    [
        ("- {name: a, when: 'm.x == \"a\"', unit: user, budget: {eps: 1}}", 7, "x =="),
        ("- {name: a, when: \"m.x == 'a'\", unit: user, budget: {eps: 1}}", 7, "x =="),
        ("- name: a\n  when: m.x == 'a'\n  unit: user\n  budget: {eps: 1}", 8, "x =="),
        ("- name: a\n  when: true && m.x == 'a'\n  unit: user", 8, "x =="),
        # Through escapes, folds and line breaks.
        ('- {name: a, when: "m.x == \\"a\\"", unit: user}', 7, "x =="),
        ("- name: a\n  when: >\n    m.x == 'a'\n  unit: user", 9, "x =="),
        ("- name: a\n  when: |-\n    true &&\n    m.x == 'a'\n  unit: user", 10, "x"),
        (
            "- name: a\n  when: |\n\n    true &&\n\n      m.x == 'a'\n  unit: user",
            12,
            "x",
        ),
        ("- name: a\n  when: 'm.x == ''a'''\n  unit: user", 8, "x =="),
        ("- name: a\n  when: '''a'' == m.x'\n  unit: user", 8, "x'"),
        ('- name: a\n  when: "\\x27a\\u0027 ==\\tm.x"\n  unit: user', 8, 'x"'),
        ("- name: a\n  when: \"true \\\n    && m.x == 'a'\"\n  unit: user", 9, "x"),
        ("- name: a\n  when: true\n    && m.x == 'a'\n  unit: user", 9, "x"),
    ],
)
def test_the_caret_stands_inside_the_predicate(rest: str, line: int, text: str) -> None:
    source = (POLICY + rest).splitlines()[line - 1]
    assert place_of(rest) == (line, source.index(text) + 1)


def test_a_predicate_without_quotes_is_refused_if_it_is_a_boolean() -> None:
    rest = "- {name: a, when: true, unit: user, budget: {eps: 1}}"
    assert place_of(rest) == (7, rest.index("true") + 1)


def test_from_python_there_is_no_place() -> None:
    with pytest.raises(InputError) as caught:
        parsed("m.x == 'a'")
    assert caught.value.problems[0].mark is None
    node = read_document(b"'true'", "x")
    assert parse_predicate(node, "`when`", VOCABULARY) == Constant(value=True)
