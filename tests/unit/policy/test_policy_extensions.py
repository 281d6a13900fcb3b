"""Extensions: a setting for everything, true claims, and labels only."""

from __future__ import annotations

import pytest

from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import Facts, Scope, holds

POLICY = """\
modicum: policy/v1
name: extensions
units: {user: {id: user_id}}
labels:
  ml: {values: [none, black-box, open], default: none}
  stage: {values: [draft, final], default: final}
schema: {attributes: {age: low}}
policies: [{name: all, when: "true", unit: user, budget: {eps: 1}}]
extensions:
"""


def compiled(*settings: str) -> list[str]:
    """Return the ids of the rules under one extension with these settings."""
    lines = "".join(f"      {setting}\n" for setting in settings)
    text = POLICY + "  - name: ext\n    settings:\n" + lines
    return [rule.id for rule in compile_text(text.encode(), "policy.yaml").rules]


def refusal(*settings: str) -> Problem:
    with pytest.raises(InputError) as caught:
        compiled(*settings)
    (problem,) = caught.value.problems
    return problem


def setting(name: str, when: str, more: str = "") -> str:
    return f"{name}: {{when: '{when}', budget: same{more}}}"


# --- a setting that matches every mechanism ---


@pytest.mark.spec("POL-4")
@pytest.mark.parametrize(
    "when",
    [
        "true",
        "!false",
        'm.ml == "none" || m.ml != "none"',
        'm.ml in ["none", "black-box", "open"]',
        '!(m.ml == "none" && m.ml == "open")',
        'm.ml != "none" || m.stage in ["draft", "final"]',
        'release.ml in ["open", "none", "black-box"]',
    ],
)
def test_what_matches_every_mechanism_is_a_catch_all(when: str) -> None:
    assert compiled(setting("a", when)) == ["all @a"]


@pytest.mark.spec("POL-4")
@pytest.mark.parametrize(
    ("when", "missed"),
    [
        ('m.ml == "none"', "m.ml = black-box"),
        ('m.ml in ["none", "black-box"]', "m.ml = open"),
        ('m.ml != "open"', "m.ml = open"),
        ('m.ml == "none" || m.stage == "draft"', "m.ml = black-box, m.stage = final"),
        ('m.ml == "none" || release.ml != "none"', "release.ml = none"),
        ("false", "any label"),
        ('m.ml == "none" && m.ml == "open"', "m.ml = none"),
    ],
)
def test_without_a_catch_all_the_message_says_what_escapes(
    when: str, missed: str
) -> None:
    problem = refusal(setting("a", when))
    assert problem.code is Code.NO_CATCH_ALL
    assert "ext" in problem.message
    assert missed in " ".join(problem.notes)
    assert problem.mark is not None
    assert problem.mark.line == 12
    assert '"true"' in problem.help


def test_settings_that_only_together_cover_everything_are_not_enough() -> None:
    """Each rule of the scope would have a hole; one has to be the loosest."""
    problem = refusal(setting("a", 'm.ml == "none"'), setting("b", 'm.ml != "none"'))
    assert problem.code is Code.NO_CATCH_ALL
    assert len(problem.notes) == 2


def test_the_catch_all_may_stand_anywhere() -> None:
    narrow = setting("a", 'm.ml == "none"')
    assert compiled(narrow, setting("b", "true")) == ["all @a", "all @b"]
    assert compiled(setting("b", "true"), narrow) == ["all @b", "all @a"]


# --- claims ---


@pytest.mark.spec("POL-4")
@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ('m.ml == "none"', "true"),
        ('m.ml == "none"', 'm.ml != "open"'),
        ("false", 'm.ml == "none"'),
        ('m.ml == "none" && m.stage == "draft"', 'm.stage == "draft"'),
        ('m.ml == "none"', 'm.ml == "none"'),
    ],
)
def test_a_true_claim_is_accepted(narrow: str, wide: str) -> None:
    whole = setting("c", "true")
    claim = setting("a", narrow, ", within: b")
    assert len(compiled(claim, setting("b", wide), whole)) == 3
    assert len(compiled(whole, setting("b", wide), claim)) == 3


@pytest.mark.spec("POL-4")
@pytest.mark.parametrize(
    ("narrow", "wide", "example"),
    [
        ('m.ml == "none"', 'm.ml == "open"', "m.ml = none"),
        ('m.ml != "none"', 'm.ml == "open"', "m.ml = black-box"),
        ("true", 'm.ml == "open"', "m.ml = none"),
        (
            'm.ml == "none"',
            'release.ml == "none"',
            "m.ml = none, release.ml = black-box",
        ),
        ('m.ml == "none"', 'm.stage == "draft"', "m.ml = none, m.stage = final"),
    ],
)
def test_a_false_claim_is_refused_with_a_counterexample(
    narrow: str, wide: str, example: str
) -> None:
    claim = setting("a", narrow, ", within: b")
    problem = refusal(claim, setting("b", wide), setting("c", "true"))
    assert problem.code is Code.FALSE_WITHIN
    assert problem.message == '"a" is not within "b"'
    assert f"a mechanism with {example} matches" in problem.notes[0]
    assert "policy.yaml:13" in problem.notes[0]
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.length) == (12, 1)
    assert problem.mark.source[problem.mark.column - 1 :] == "b}"
    labels = dict(pair.split(" = ") for pair in example.split(", "))
    known = {f"{s.value}.{n}": v for s in Scope for n, v in DEFAULTS.items()} | labels
    assert true_of(narrow, known)
    assert not true_of(wide, known)


DEFAULTS = {"ml": "none", "stage": "final"}


def true_of(when: str, labels: dict[str, str]) -> bool:
    vocabulary = compile_text(
        POLICY.replace("extensions:\n", "").encode(), "policy.yaml"
    ).policy.vocabulary
    scoped = {
        (scope, name): labels[f"{scope.value}.{name}"]
        for scope in Scope
        for name in DEFAULTS
    }
    predicate = parse_predicate(from_python(when), "`when`", vocabulary)
    return holds(predicate, Facts(frozenset(), scoped, {}))


@pytest.mark.parametrize(
    ("other", "label"), [("d", ""), ("blackbox", 'did you mean "black-box"?')]
)
def test_a_claim_names_a_setting_of_the_same_extension(other: str, label: str) -> None:
    claim = setting("a", 'm.ml == "none"', f", within: {other}")
    problem = refusal(claim, setting("black-box", "true"))
    assert problem.code is Code.UNKNOWN_CHOICE
    assert problem.label == label
    assert problem.mark is not None
    assert problem.mark.source[problem.mark.column - 1 :] == f"{other}}}"


# --- labels only ---


@pytest.mark.parametrize(
    "when",
    [
        '"age" in m.attributes',
        'm.ml == "none" || "age" in m.attributes',
        'release.purpose == "research"',
        'm.name != "x"',
        'm.mechanism in ["laplace"]',
        'true || release.id == "r"',
    ],
)
def test_a_setting_looks_only_at_labels(when: str) -> None:
    problem = refusal(setting("a", when), setting("b", "true"))
    assert problem.code is Code.CEL_SUBSET
    assert problem.mark is not None
    assert problem.mark.source[problem.mark.column - 1 :].startswith("'" + when[:3])


# --- names ---


def test_settings_of_different_extensions_have_different_names() -> None:
    text = (
        POLICY
        + "  - {name: one, settings: {a: {when: 'true', budget: same}}}\n"
        + "  - {name: two, settings: {a: {when: 'true', budget: same}}}\n"
    )
    with pytest.raises(InputError) as caught:
        compile_text(text.encode(), "policy.yaml")
    (problem,) = caught.value.problems
    assert problem.code is Code.DUPLICATE_NAME
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.column) == (11, 28)


def test_two_extensions_of_one_name_are_refused() -> None:
    text = (
        POLICY
        + "  - {name: one, settings: {a: {when: 'true', budget: same}}}\n"
        + "  - {name: one, settings: {b: {when: 'true', budget: same}}}\n"
    )
    with pytest.raises(InputError) as caught:
        compile_text(text.encode(), "policy.yaml")
    assert caught.value.code is Code.DUPLICATE_NAME


def test_an_extension_without_settings_is_refused() -> None:
    text = POLICY + "  - {name: one, settings: {}}\n"
    with pytest.raises(InputError) as caught:
        compile_text(text.encode(), "policy.yaml")
    assert caught.value.code is Code.NO_CATCH_ALL


def many_labels() -> str:
    labels = "".join(f"  l{n}: {{values: [a, b], default: a}}\n" for n in range(20))
    same = " && ".join(f'm.l{n} == "a"' for n in range(20))
    return POLICY.replace("schema:", labels + "schema:") + (
        "  - name: one\n    settings:\n"
        f"      a: {{when: '{same}', budget: same, within: b}}\n"
        "      b: {when: 'true', budget: same}\n"
    )


@pytest.mark.spec("POL-4")
def test_a_million_label_combinations_are_decided() -> None:
    assert compile_text(many_labels().encode(), "policy.yaml").rules


@pytest.mark.spec("POL-4")
def test_what_is_not_decided_in_time_is_refused_rather_than_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("modicum.policy.implication.search.STEPS_MAX", 5)
    with pytest.raises(InputError) as caught:
        compile_text(many_labels().encode(), "policy.yaml")
    assert caught.value.code is Code.CEL_LIMIT
