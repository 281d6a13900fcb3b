"""What is refused though it reads well, and what is only warned about."""

from __future__ import annotations

from itertools import product

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import policy as oracle
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError, Problem

HEAD = """
modicum: policy/v1
name: lint
units: {user: {id: user_id}}
labels:
  ml: {values: [none, black-box, open], default: none}
  stage: {values: [draft, final], default: draft}
schema: {attributes: {age: low}}
"""


def refused(text: str) -> list[Problem]:
    """Return what is refused about a policy that compiles."""
    found = compiled(text)
    try:
        found.refuse_mistakes()
    except InputError as error:
        return list(error.problems)
    return []


def policy(*rules: tuple[str, object], settings_of: str = "") -> str:
    lines = [
        f"  - {{name: p{number}, when: '{when}', unit: user, budget: {{eps: {eps}}}}}"
        for number, (when, eps) in enumerate(rules)
    ]
    return HEAD + "policies:\n" + "\n".join(lines) + "\n" + settings_of


def extension(*contexts: tuple[str, str]) -> str:
    lines = [
        f"      s{number}: {{when: '{when}', budget: {changed}}}"
        for number, (when, changed) in enumerate(contexts)
    ]
    return "extensions:\n  - name: e\n    settings:\n" + "\n".join(lines) + "\n"


def test_a_policy_without_mistakes_is_not_refused() -> None:
    assert refused(POLICY) == []
    assert refused(policy(("true", 1))) == []


# --- labels: the default is the strictest reading ---


@pytest.mark.spec("POL-8")
@pytest.mark.parametrize(
    ("text", "label"),
    [
        (policy(("true", 2), ('m.ml == "open"', 1)), "ml"),
        (policy(("true", 2), ('release.ml == "open"', 1)), "ml"),
        (policy(("true", 2), ('m.ml != "none"', 2), ('m.ml == "none"', 3)), None),
        (policy(("true", 1), ('m.ml == "open"', 2)), None),
        (policy(("true", 1), ('m.ml == "open"', 1)), None),
        (policy(('m.ml == "none"', 1), ('m.ml == "open"', 2), ("true", 3)), None),
        (policy(('m.ml == "none"', 2), ('m.ml == "open"', 1), ("true", 3)), "ml"),
        (policy(("true", 2), ('m.ml == "open" && m.stage == "draft"', 1)), "ml"),
        (policy(("true", 2), ('"age" in m.attributes && m.ml == "open"', 1)), "ml"),
        (
            policy(("true", 2), ('"age" in m.attributes && m.ml == "open"', 1),
                   ('"age" in m.attributes', 1)),
            None,
        ),
        (
            policy(("true", 2), settings_of=extension(
                ('m.ml == "none"', "same"), ("true", "{scale: 2}"))),
            None,
        ),
        (
            policy(("true", 2), settings_of=extension(
                ('m.ml == "open"', "same"), ("true", "{scale: 2}"))),
            "ml",
        ),
        (
            policy(("true", 2), settings_of=extension(
                ('m.ml == "open"', "{scale: 3}"), ("true", "{scale: 2}"))),
            None,
        ),
        (
            policy(("true", 2), settings_of=extension(
                ('m.ml == "none"', "same"), ('m.ml == "open"', "{scale: 1.5}"),
                ("true", "{scale: 2}"))),
            None,
        ),
    ],
)  # fmt: skip
def test_the_default_of_a_label_falls_under_rules_as_tight_as_any_value(
    text: str, label: str | None
) -> None:
    found = refused(text)
    if label is None:
        assert found == []
        return
    (problem,) = found
    assert problem.code is Code.LOOSE_DEFAULT
    assert f"`{label}`" in problem.message
    assert problem.mark is not None
    assert problem.mark.source[problem.mark.column - 1 :].startswith("none")


LABELS = {"ml": ("none", "black-box", "open"), "stage": ("draft", "final")}
atoms = st.sampled_from(
    [
        "true",
        *(f'm.{name} == "{v}"' for name, values in LABELS.items() for v in values),
        *(f'm.{name} != "{v}"' for name, values in LABELS.items() for v in values),
        '"age" in m.attributes',
    ]
)
whens = st.one_of(
    atoms,
    st.tuples(atoms, atoms).map(" && ".join),
    st.tuples(atoms, atoms).map(" || ".join),
)


def escapes(rules: list[tuple[str, int]], label: str) -> bool:
    """Go through all mechanisms: does leaving out a label escape a rule?"""
    default = LABELS[label][0]
    for reads, *values in product([[], ["age"]], *LABELS.values()):
        given_labels = dict(zip(LABELS, values, strict=True))
        left_out = {**given_labels, label: default}
        for when, eps in rules:
            if oracle.holds(
                when, {"attributes": reads, **given_labels}, {}
            ) and not any(
                oracle.holds(other, {"attributes": reads, **left_out}, {})
                for other, tight in rules
                if tight <= eps
            ):
                return True
    return False


@pytest.mark.spec("POL-8")
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(whens, st.integers(1, 3)), min_size=1, max_size=4))
def test_a_loose_default_is_refused_exactly_if_a_mechanism_can_escape(
    rules: list[tuple[str, int]],
) -> None:
    found = refused(policy(*rules))
    loose = {
        problem.message.split("`")[1]
        for problem in found
        if problem.code is Code.LOOSE_DEFAULT
    }
    assert loose == {label for label in LABELS if escapes(rules, label)}


@pytest.mark.spec("POL-8")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(whens, st.integers(1, 3)), min_size=1, max_size=3))
def test_the_same_holds_of_the_settings_of_an_extension(
    contexts: list[tuple[str, int]],
) -> None:
    """A setting with a factor is a rule with that budget, for a base rule of eps 1."""
    about_labels = [(when, factor) for when, factor in contexts if "age" not in when]
    all_contexts = [*about_labels, ("true", 4)]
    written = extension(*((when, f"{{scale: {f}}}") for when, f in all_contexts))
    found = refused(policy(("true", 1), settings_of=written))
    loose = {
        problem.message.split("`")[1]
        for problem in found
        if problem.code is Code.LOOSE_DEFAULT
    }
    assert loose == {label for label in LABELS if escapes(all_contexts, label)}


def test_the_remedy_for_a_loose_default_works() -> None:
    text = policy(("true", 2), ('m.ml == "open"', 1))
    (problem,) = refused(text)
    assert problem.help == "make `open` the default"
    assert refused(text.replace("default: none", "default: open")) == []
    both = policy(("true", 3), ('m.ml == "open"', 1), ('m.stage == "final"', 1))
    assert [one.help for one in refused(both)] == [
        "make `open` the default",
        "make `final` the default",
    ]


# --- rules about nothing, budgets for nothing ---


@pytest.mark.spec("POL-9")
@pytest.mark.parametrize(
    "when",
    [
        "false",
        'm.ml == "none" && m.ml == "open"',
        'm.ml in []',
        '!(m.stage == "draft" || m.stage == "final")',
        '"age" in m.attributes && !("age" in m.attributes)',
        'release.purpose == "a" && release.purpose == "b"',
    ],
)  # fmt: skip
def test_a_predicate_that_is_never_true_is_refused(when: str) -> None:
    codes = [problem.code for problem in refused(policy(("true", 1), (when, 2)))]
    assert codes == [Code.NEVER_TRUE]
    if "attributes" not in when and "purpose" not in when:
        written = extension((when, "same"), ("true", "same"))
        found = refused(policy(("true", 1), settings_of=written))
        assert [problem.code for problem in found] == [Code.NEVER_TRUE]


@pytest.mark.spec("POL-9")
@pytest.mark.parametrize(
    ("budget", "fits"),
    [
        ("{rho: 1e-12}", True),
        ("{rho: 9.9e-13}", False),
        ("{eps: 1e-12}", True),
        ("{eps: 1e-13}", False),
        ("{eps: 1e-13, delta: 1e-9}", False),
        ("{eps: 1e-3, delta: 1e-9}", True),
        ("{mu: 1e-6}", True),
        ("{mu: 1e-7}", False),
        ("{rdp: {8: 1, 32: 1e-13}}", False),
        ("{rdp: {8: 1, 32: 1e-12}}", True),
        ("unlimited", True),
    ],
)
def test_a_budget_that_lets_nothing_pass_is_refused(budget: str, fits: bool) -> None:
    text = policy(("true", 1)).replace("{eps: 1}", budget)
    codes = [problem.code for problem in refused(text)]
    assert codes == ([] if fits else [Code.NOTHING_FITS])
    single = text.replace("policies:", "per_release:")
    assert [problem.code for problem in refused(single)] == codes


# --- warnings ---


def warned(text: str) -> list[str]:
    return [warning.render().split("\n")[0] for warning in compiled(text).warnings]


def test_an_attribute_of_which_nobody_said_to_what_it_belongs() -> None:
    text = POLICY.replace("age: [low, {health: weak}]", "age: low")
    assert warned(text) == [
        "error[MOD113]: nothing says to which categories `age` belongs"
    ]
    assert warned(POLICY.replace("[low, {health: weak}]", "[low, {}]")) == []


def test_an_extension_that_keeps_no_budget() -> None:
    text = POLICY.replace("budget: same", "budget: {scale: 1}")
    assert warned(text) == [
        "error[MOD101]: extension `ml` changes the budget in every setting"
    ]


def test_a_rule_that_its_context_excludes() -> None:
    text = policy(
        ("true", 2), ('m.ml == "open"', 2), ('m.ml == "open" && m.stage == "draft"', 2),
        settings_of=extension(('m.ml == "none"', "same"), ("true", "same")),
    )  # fmt: skip
    assert warned(text) == [
        "error[MOD207]: no mechanism can fall under `p1 @s0`",
        "error[MOD207]: no mechanism can fall under `p2 @s0`",
    ]


def test_settings_that_exclude_each_other() -> None:
    text = policy(("true", 2)) + (
        "extensions:\n"
        "  - name: e\n    settings: {a: {when: 'm.ml == \"open\"', budget: same},"
        " all: {when: 'true', budget: same}}\n"
        "  - name: f\n    settings: {b: {when: 'm.ml == \"none\"', budget: same},"
        " every: {when: 'true', budget: same}}\n"
    )
    assert warned(text) == ["error[MOD207]: no rule @a @b can match"]
