"""What a message tells to write is written, literally, and then it compiles."""

from __future__ import annotations

import re

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.document import from_python
from modicum.core.errors import InputError, Problem
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.compiler import CompiledPolicy, compile_text
from modicum.policy.implication.search import simplified

#: A policy in which every line has a chance to be written wrongly.
POLICY = """\
modicum: policy/v1
name: clinic
dp: {bare_budget: {type: approx-dp, delta: 1e-7}}
units:
  user: {id: user_id}
  user-day: {id: user_id, time: {column: at, period: day}, within: user}
labels:
  ml: {values: [none, black-box], default: none}
  audience: {values: [public, staff], default: public}
schema:
  categories: {health: high}
  attributes:
    age: low
    grade: [high, {health: member}]
population: {partition_by: {country: {values: [CH, DE]}}}
policies:
  - name: everything
    when: "true"
    unit: user
    budget: 3
  - {name: some, when: 'm.ml == "none"', unit: user, budget: {eps: 2, delta: 1e-7}}
  - {name: each, for_each: attribute, unit: user, budget: {low: 2, high: 1}}
  - name: cat
    for_each: category
    unit: user
    budget: {high: 1}
    levels: {member: same, strong: {to: 1.5}}
extensions:
  - name: e
    settings:
      standard: {when: 'm.ml == "none"', budget: same}
      models: {when: "true", budget: {scale: 2}}
guards:
  - {name: bound, unless: '"user" in m.contribution_bound', message: give a bound}
"""
ROUNDS_MAX = 5

_WRITE = re.compile(
    r"^write  (.+?)(?:  instead of  (.+?))?(?:  for .*| , and .*|; \{.*)?$"
)
_SPACES = re.compile(r"indent it by (\d+) space")
_ADD = re.compile(r"^add  (.+?)(?:  |$)")


def compiled(text: str) -> CompiledPolicy | Problem:
    """Return the policy, or the first mistake in it."""
    try:
        return compile_text(text.encode(), "policy.yaml")
    except InputError as error:
        return error.problems[0]


def followed(text: str, problem: Problem) -> str:
    """Return a text in which a remedy was followed to the letter."""
    mark, remedy = problem.mark, problem.help
    assert mark is not None
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: mark.line - 1]))
    place = start + mark.column - 1
    whole = "whole text in single quotes" in remedy
    if remedy == "leave it out":
        return text[:place] + text[place + 1 :]
    if remedy == 'compare with "=="':
        return text[:place] + "==" + text[place + 1 :]
    if found := _SPACES.match(remedy):
        lines[mark.line - 1] = " " * int(found[1]) + lines[mark.line - 1].lstrip()
        return "".join(lines)
    if found := _ADD.match(remedy):
        assert text[place] == "{"
        return f"{text[: place + 1]}{found[1]}, {text[place + 1 :]}"
    if remedy == "put it in quotes":
        end = place + mark.length
        return f'{text[:place]}"{text[place:end]}"{text[end:]}'
    found = _WRITE.search(remedy)
    assert found, problem.render()
    new, old = found[1], found[2]
    begin = text.index(old, start) if old else place
    if old:
        text = text[:begin] + new + text[begin + len(old) :]
    pattern = r"(.*?when: )(.*)" if whole else r"""(.*?when: ["']?)(.*?)["']?$"""
    predicate = re.compile(pattern, re.M).match(text, start)
    if predicate is None or (old and not whole):
        return text
    meant = predicate[2] if old else new
    quoted = f"'{meant}'" if whole else meant
    return text[: predicate.start(2)] + quoted + text[predicate.end(2) :]


def mended(text: str) -> str:
    """Return a text in which the remedies of all its mistakes were followed."""
    for _ in range(ROUNDS_MAX):
        result = compiled(text)
        if isinstance(result, CompiledPolicy):
            return text
        text = followed(text, result)
    message = f"not mended in {ROUNDS_MAX} rounds: {text}"
    raise AssertionError(message)


# --- predicates ---------------------------------------------------------------------

#: What people write, and what they mean.
PREDICATES = [
    ('m.ml == "none" and m.audience == "public"', None),
    ('m.ml == "none" or m.ml == "black-box" AND true', None),
    ('not m.ml == "none"', 'm.ml != "none"'),
    ('not ("age" in m.attributes) and true', '!("age" in m.attributes)'),
    ('not("age" in m.attributes)', '!("age" in m.attributes)'),
    ('true && not "age" in m.attributes', '!("age" in m.attributes)'),
    ('m.ml not in ["none"]', 'm.ml != "none"'),
    ('true && m.ml not in ["none"] || false', 'm.ml != "none"'),
    ('m.ml <> "none"', 'm.ml != "none"'),
    ('m.ml is "none"', 'm.ml == "none"'),
    ('m.ml is not "none"', 'm.ml != "none"'),
    ('m.ml = "none"', 'm.ml == "none"'),
    ('m.ml === "none"', 'm.ml == "none"'),
    ('m.ml !== "none"', 'm.ml != "none"'),
    ('m.ml == "none" & true', 'm.ml == "none"'),
    ('m.ml == "none" | false', 'm.ml == "none"'),
    ('m.ml == "none";', 'm.ml == "none"'),
    ('m.ml == "none', 'm.ml == "none"'),
    ('m.ml == "black-box', 'm.ml == "black-box"'),
    ('m.ml == none"', 'm.ml == "none"'),
    ("m.ml == “none”", 'm.ml == "none"'),
    ("m.ml == \u2018none\u2019", 'm.ml == "none"'),
    ('(m.ml == "none"', 'm.ml == "none"'),
    ('m.ml == "none")', 'm.ml == "none"'),
    ("size(m.attributes > 1", "size(m.attributes) > 1"),
    ("size(m.attributes => 1", "size(m.attributes) >= 1"),
    ("size(m.attributes) =< 1", "size(m.attributes) <= 1"),
    ('m.ml in ("none", "black-box")', 'm.ml in ["none", "black-box"]'),
    ('m.ml in {"none", "black-box"}', 'm.ml in ["none", "black-box"]'),
    ('m.ml in ("none")', 'm.ml == "none"'),
    ('m.ml in "none"', 'm.ml == "none"'),
    ('m.attributes contains "age"', '"age" in m.attributes'),
    ('release.purpose startswith "a"', 'release.purpose.startsWith("a")'),
    ("1 <= size(m.attributes) <= 2", None),
    ("  ", "true"),
    ("m.audience == public", 'm.audience == "public"'),
    ("m.ml == black-box", 'm.ml == "black-box"'),
    ("m.ml in [none, black-box]", 'm.ml in ["none", "black-box"]'),
    ("release.purpose == research", 'release.purpose == "research"'),
    ("age in m.attributes", '"age" in m.attributes'),
    ('audience == "public"', 'm.audience == "public"'),
    ('purpose == "x"', 'release.purpose == "x"'),
    ('m.purpose == "x"', 'release.purpose == "x"'),
    ("True", "true"),
    ("m.contribution_bound.user <= 2", 'm.contribution_bound["user"] <= 2'),
    ("m.contribution_bound.user-day <= 2", 'm.contribution_bound["user-day"] <= 2'),
    ('m.contribution_bound["user"] <= "20"', 'm.contribution_bound["user"] <= 20'),
    ('m.attributes.contains("age")', '"age" in m.attributes'),
    ('m.attributes.has("age")', '"age" in m.attributes'),
    ('m.attributes["age"]', '"age" in m.attributes'),
    ('m.attributes == "age"', '"age" in m.attributes'),
    ('"public" in m.audience', 'm.audience == "public"'),
    ('"public" in release.audience', 'release.audience == "public"'),
    ('m["ml"] == "none"', 'm.ml == "none"'),
    ("release.purpose == null", "!has(release.purpose)"),
    ("release.purpose != null", "has(release.purpose)"),
    ('m.ml.startsWith("b")', 'm.ml == "black-box"'),
    ('m.attributes.any(a, a == "age")', '"age" in m.attributes'),
    ("len(m.attributes) > 1", "size(m.attributes) > 1"),
    ("m.attributes.length > 1", "size(m.attributes) > 1"),
    ('m.name.starts_with("a")', 'm.name.startsWith("a")'),
    ('m.name.startwith("a")', 'm.name.startsWith("a")'),
]
STYLES = {
    "single": lambda text: "'" + text.replace("'", "''") + "'",
    "double": lambda text: '"' + text.replace('"', "'") + '"',
    "plain": lambda text: text,
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("written", "meant"), PREDICATES)
def test_a_predicate_is_mended_by_its_remedies(
    written: str, meant: str | None, style: str
) -> None:
    if style == "plain" and (written[:1] in "\"'  " or "[" in written[:1]):
        pytest.skip("YAML itself says something about it")
    text = POLICY.replace('"true"\n    unit', STYLES[style](written) + "\n    unit")
    assert not isinstance(compiled(text), CompiledPolicy)
    result = compiled(mended(text))
    assert isinstance(result, CompiledPolicy)
    policy = result.policy
    if meant is not None:
        expected = parse_predicate(from_python(meant), "`when`", policy.vocabulary)
        (rule,) = [one for one in policy.base_policies if one.name == "everything"]
        assert simplified(getattr(rule, "predicate")) == simplified(expected)  # noqa: B009


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("m.bound <= 3", 'did you mean "contribution_bound"?'),
        ('m.contribution_bound["user"] <= 20.5', "20 or 21"),
        ('m.contribution_bound["user"] > "x"', "write an integer"),
        ("size(m.attributes) < 1.5", "1 or 2"),
        ("m.ml ==", "an operand is missing after this"),
        ('m.ml == "none" "x"', "join two comparisons with && or ||"),
        ("m.ml == null", "it always has a value"),
        ("m.ml == True", "known: m, release"),
    ],
)
def test_where_nothing_can_be_written_the_reason_is_said(
    written: str, said: str
) -> None:
    text = POLICY.replace('"true"\n    unit', f"'{written}'\n    unit")
    problem = compiled(text)
    assert isinstance(problem, Problem)
    assert said in f"{problem.label} {problem.help}"


def test_a_label_that_is_not_declared_is_told_how_to_declare_it() -> None:
    problem = compiled(POLICY.replace("m.ml ==", "m.purpose_kind =="))
    assert isinstance(problem, Problem)
    assert problem.help.startswith(
        "if it is a label, declare it under `labels`, as in  labels:"
        " {purpose_kind: {values: [none, some], default: some}} ; known: attributes,"
    )
    misspelt = compiled(POLICY.replace("m.ml ==", "m.mll =="))
    assert isinstance(misspelt, Problem)
    assert "declare" not in misspelt.help
    of_releases = compiled(POLICY.replace("m.ml ==", "m.sigma =="))
    assert isinstance(of_releases, Problem)
    assert "declare" not in of_releases.help


def test_a_field_that_is_a_label_too_is_listed_once() -> None:
    problem = compiled(POLICY.replace("m.ml ==", "release.mll =="))
    assert isinstance(problem, Problem)
    assert problem.help.count("audience") == 1


# --- files --------------------------------------------------------------------------

#: What is replaced, by what, and what the mended file says there.
FILES = [
    ("name: clinic\n", "name clinic\n", None),
    ("name: clinic\n", "name:clinic\n", None),
    ("labels:\n", "labels\n", None),
    ("name: clinic\n", 'name: "clinic\n', 'name: "clinic"\n'),
    ("  user: {id: user_id}\n", "  user: {id: user_id\n", None),
    ("  user: {id: user_id}\n", "  user: {id: user_id}}\n", None),
    ("    unit: user\n    budget: 3\n", "   unit: user\n    budget: 3\n", None),
    ("    unit: user\n    budget: 3\n", "     unit: user\n    budget: 3\n", None),
    ("  - name: everything\n", "  -name: everything\n", None),
    ("user: {id: user_id}", "user: {id: @user_id}", 'user: {id: "@user_id"}'),
    ('"true"\n    unit', '"m.ml == "none""\n    unit', "'m.ml == \"none\"'\n    unit"),
    (
        '"true"\n    unit',
        '"age" in m.attributes\n    unit',
        "'\"age\" in m.attributes'\n    unit",
    ),
    ('"true"\n    unit', "!(m.ml == 1)\n    unit", ""),
    (
        '"true"\n    unit',
        "!has(release.purpose)\n    unit",
        "'!has(release.purpose)'\n    unit",
    ),
    ("budget: 3\n", "budget: 0,5\n", "budget: 0.5\n"),
    ("{eps: 2, delta", "{eps: 0,5, delta", "{eps: 0.5, delta"),
    ("{low: 2, high: 1}", "{low: 0,5, high: 1}", "{low: 0.5, high: 1}"),
    ("budget: 3\n", "budget: .inf\n", "budget: unlimited\n"),
    ("budget: 3\n", "budget: {eps: .inf}\n", "budget: unlimited\n"),
    ("budget: {low: 2, high: 1}", "budget: 2", "budget: {low: 2, high: 2}"),
    (
        "budget: {low: 2, high: 1}",
        "budget: {eps: 1}",
        "budget: {low: {eps: 1}, high: {eps: 1}}",
    ),
    ("{to: 1.5}", "1.5", None),
    ("{to: 1.5}", "unlimited", "{to: unlimited}"),
    ("{to: 1.5}", "{eps: 2}", "{to: {eps: 2}}"),
    ("{type: approx-dp, delta: 1e-7}", "{eps: 1, delta: 1e-7}", None),
    ("{type: approx-dp, delta: 1e-7}", "{rho: 1}", "{type: zcdp}"),
    ("{type: approx-dp, delta: 1e-7}", "{type: approx-dp}", ""),
    ("{values: [none, black-box], default: none}", "[none, black-box]", None),
    ("default: none}", "}", ""),
    ("age: low", "age: lwo", None),
    ("age: low", "age: [low, health]", "age: [low, {health: member}]"),
    ("age: low", "age: [low, static]", "age: [low, {}, static]"),
    ("age: low", "age: {risk: low}", None),
    ("country: {values: [CH, DE]}", "country: [CH, DE]", None),
    ("{name: some, when: 'm.ml == \"none\"', unit", "{name: some, unit", ""),
    ("unit: user, budget: {eps: 2", "budget: {eps: 2", ""),
    ("standard: {when: 'm.ml == \"none\"', budget", "standard: {budget", ""),
    ('models: {when: "true", budget: {scale: 2}}', 'models: {when: "true"}', ""),
    ("values: [CH, DE]", "values: CH", "values: [CH]"),
    ("name: clinic", "name: [clinic]", "name: clinic"),
]


@pytest.mark.parametrize(("right", "wrong", "expected"), FILES)
def test_a_file_is_mended_by_its_remedies(
    right: str, wrong: str, expected: str | None
) -> None:
    """The mended file is as it was (None), says this, or merely compiles (empty)."""
    assert POLICY.count(right) >= 1
    text = POLICY.replace(right, wrong, 1)
    assert not isinstance(compiled(text), CompiledPolicy)
    result = mended_to_the_end(text)
    if expected != "":
        assert result == POLICY.replace(right, expected or right, 1)


def mended_to_the_end(text: str) -> str:
    if "!(m.ml == 1)" not in text:
        return mended(text)
    problem = compiled(text)  # What is in the quotes then has a mistake of its own.
    assert isinstance(problem, Problem)
    return mended(followed(text, problem).replace("m.ml == 1", 'm.ml == "none"'))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("budget: 3\n", "budget: 0\n", "write a guard"),
        ("budget: 3\n", "budget: {low: 2, high: 1}\n", "for_each: attribute"),
        (
            "for_each: category\n",
            "for_each: category\n    when: 'true'\n",
            "leave `when`",
        ),
        ("age: low", 'age: "[low, {}]"', "leave the quotes out"),
        ("[none, black-box]", '"[none, black-box]"', "leave the quotes around it out"),
        ("  user: {id", "  - user: {id", None),
        ("      standard: {when", "      - standard: {when", None),
        ("modicum: policy/v1\n", "", "lint the file that includes it"),
        ("{to: 1.5}", "1.5", "{scale: 1.5}"),
    ],
)
def test_what_else_a_message_says(right: str, wrong: str, said: str | None) -> None:
    assert right in POLICY
    problem = compiled(POLICY.replace(right, wrong, 1))
    assert isinstance(problem, Problem)
    assert problem.help
    assert said is None or said in problem.help


@pytest.mark.parametrize("section", ["guards", "population", "extensions", "approvals"])
def test_a_section_that_is_left_empty_can_be_left_out(section: str) -> None:
    text = re.sub(rf"^{section}:.*?(?=^\w|\Z)", "", POLICY, flags=re.M | re.S)
    assert isinstance(compiled(text), CompiledPolicy)
    problem = compiled(f"{text}{section}:\n")
    assert isinstance(problem, Problem)
    assert problem.help == f"leave `{section}` out"


@pytest.mark.parametrize("block", ["units", "settings"])
def test_names_are_no_items_of_a_list(block: str) -> None:
    written = {
        "units": (
            "  user: {id: user_id}\n  user-day",
            "  - user: {id: u}\n  - user-day",
        ),
        "settings": (
            "      standard: {when: 'm.ml == \"none\"', budget: same}\n      models",
            "      - standard: {when: 'true', budget: same}\n      - models",
        ),
    }
    right, wrong = written[block]
    assert right in POLICY
    problem = compiled(POLICY.replace(right, wrong))
    assert isinstance(problem, Problem)
    assert "remove the dashes" in problem.help


# --- one mistake, one message -------------------------------------------------------


def test_a_map_that_fits_no_rule_is_reported_once() -> None:
    with pytest.raises(InputError) as caught:
        compile_text(
            POLICY.replace("{scale: 2}", "{add: {rho: 1}}").encode(), "policy.yaml"
        )
    (problem,) = caught.value.problems
    assert re.fullmatch(r"… and \d+ more rules", problem.notes[-1])


def test_a_misspelt_section_is_not_missed_by_predicates() -> None:
    with pytest.raises(InputError) as caught:
        compile_text(POLICY.replace("labels:", "label:").encode(), "policy.yaml")
    (problem,) = caught.value.problems
    assert problem.label == 'did you mean "labels"?'
    assert "include" in problem.help


def test_a_misspelt_key_is_not_missed_in_a_second_message() -> None:
    with pytest.raises(InputError) as caught:
        compile_text(
            POLICY.replace("for_each: attribute", "foreach: attribute").encode(), "p"
        )
    (problem,) = caught.value.problems
    assert problem.label == 'did you mean "for_each"?'
    assert "`when` or `for_each`" in problem.notes[0]


def test_mistakes_in_budgets_and_overrides_are_reported_together() -> None:
    wrong = "budget: {low: -2, high: 1}, override: {agee: 1}"
    with pytest.raises(InputError) as caught:
        compile_text(
            POLICY.replace("budget: {low: 2, high: 1}", wrong).encode(), "policy.yaml"
        )
    assert len(caught.value.problems) == 2


# --- whatever is written ------------------------------------------------------------

WORDS = [
    *("and", "or", "not", "is", "in", "contains", "m", "m.ml", "release.purpose"),
    *('"none"', "'none'", '"', "'", "“", "”", "(", ")", "[", "]", "{", "}", ",", "."),
    *("==", "=", "<", "<=", "&", "&&", "|", "!", "1", "2.5", "-", "?", ":", ";", "//"),
    *("m.attributes", "black", "box", "null", "True", "size", "exists", "\\", "\n"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["", " "]))
@settings(max_examples=examples(300), deadline=None)
def test_no_slip_is_answered_with_a_crash(words: list[str], between: str) -> None:
    vocabulary = compile_text(POLICY.encode(), "policy.yaml").policy.vocabulary
    codes: set[str] = set()
    try:
        parse_predicate(from_python(between.join(words)), "`when`", vocabulary)
    except InputError as error:
        codes = {problem.code.value[:4] for problem in error.problems}
    assert codes <= {"MOD1", "MOD3", "MOD0"}


@given(
    st.integers(0, len(POLICY) - 1),
    st.integers(0, 3),
    st.sampled_from(["", *"{}[]:,-'\"!@#&*|>\t\n", "  ", ": ", "- "]),
)
@settings(max_examples=examples(300), deadline=None)
def test_no_wrong_character_is_answered_with_a_crash(
    place: int, dropped: int, put: str
) -> None:
    result = compiled(POLICY[:place] + put + POLICY[place + dropped :])
    if isinstance(result, Problem):
        mark = result.mark
        assert mark is None or mark.column <= len(mark.source) + 1
