"""What is refused though it reads well."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import policy as oracle
from samples.linted import (
    HEAD,
    LABELS,
    OPEN,
    approvals,
    extension,
    guards,
    policy,
    refused,
    warned,
    whens,
)
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError
from modicum.policy.implication.search import counterexample


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
    escaped = {label for label in LABELS if escapes(rules, label)}
    assert loose_labels(policy(*rules) + "unmatched: allow\n") == escaped
    # What no rule limits is denied otherwise; that is not escaped, either.
    denied = {label for label in LABELS if denial_escaped(rules, label)}
    assert loose_labels(policy(*rules)) == escaped | denied


def loose_labels(text: str) -> set[str]:
    """Return the labels whose default is refused."""
    return {
        problem.message.split("`")[1]
        for problem in refused(text)
        if problem.code is Code.LOOSE_DEFAULT
    }


def denial_escaped(rules: list[tuple[str, int]], label: str) -> bool:
    """Go through all mechanisms: does a rule limit one only without the label?"""
    for reads, *values in product([[], ["age"]], *LABELS.values()):
        given_labels = dict(zip(LABELS, values, strict=True))
        left_out = {**given_labels, label: LABELS[label][0]}
        limited, also_limited = (
            any(
                oracle.holds(when, {"attributes": reads, **labels}, {})
                for when, _ in rules
            )
            for labels in (given_labels, left_out)
        )
        if also_limited and not limited:
            return True
    return False


def test_the_remedy_for_a_denial_that_is_escaped_works() -> None:
    text = policy(('m.ml == "none"', 1))
    (problem,) = refused(text)
    assert problem.help == "add a rule that limits `black-box`, too"
    more = policy(('m.ml == "none"', 1), ('m.ml == "black-box"', 9))
    assert [one.help for one in refused(more)] == ["add a rule that limits `open`, too"]
    assert refused(policy(('m.ml == "none"', 1), ("true", 9))) == []
    assert refused(text + "unmatched: allow\n") == []


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


@pytest.mark.spec("POL-8")
@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (approvals((OPEN, 1, ("a",), False)), "approval"),
        (approvals((OPEN, 1, ("a",), False), ("true", 1, ("a",), False)), None),
        (approvals((OPEN, 2, ("a",), False), ("true", 1, ("a",), False)), "approval"),
        (approvals((OPEN, 1, ("a",), False), ("true", 2, ("a",), False)), None),
        (approvals((OPEN, 1, ("a",), False), ("true", 1, ("a", "b"), False)),
         "approval"),
        (approvals((OPEN, 1, ("a", "b"), False), ("true", 1, ("a",), False)), None),
        (approvals((OPEN, 1, ("a",), False), ("true", 1, ("a",), True)), "approval"),
        (approvals((OPEN, 1, ("a",), True), ("true", 1, ("a",), False)), None),
        (approvals((OPEN, 1, ("a",), False), ("true", 2, ("a",), True)), None),
        (approvals((OPEN, 2, ("a",), False), ("true", 2, ("a",), True)), "approval"),
        (approvals(('release.ml == "none"', 1, ("a",), False)), None),
        (guards('m.ml != "open" || "user" in m.contribution_bound'), "guard"),
        (guards('m.ml != "open" || "user" in m.contribution_bound',
                '"user" in m.contribution_bound'), None),
        (guards('m.ml == "open" || "user" in m.contribution_bound'), None),
    ],
)  # fmt: skip
def test_a_label_left_out_escapes_neither_approvals_nor_guards(
    asked: str, kind: str | None
) -> None:
    found = refused(policy(("true", 1)) + asked)
    if kind is None:
        assert found == []
        return
    (problem,) = found
    assert problem.code is Code.LOOSE_DEFAULT
    assert "`ml`" in problem.message
    assert kind in problem.notes[0]
    assert problem.help == "make `open` the default"
    text = policy(("true", 1)).replace("default: none", "default: open")
    assert refused(text + asked) == []


release_atoms = st.sampled_from(
    [
        f'release.{name} {sign} "{value}"'
        for name, values in LABELS.items()
        for value in values
        for sign in ("==", "!=")
    ]
)
release_whens = st.one_of(
    st.just("true"),
    release_atoms,
    st.tuples(release_atoms, release_atoms).map(" && ".join),
    st.tuples(release_atoms, release_atoms).map(" || ".join),
)
demands = st.tuples(
    release_whens,
    st.integers(1, 2),
    st.sampled_from([("a",), ("a", "b")]),
    st.booleans(),
)
Demand: TypeAlias = "tuple[str, int, tuple[str, ...], bool]"


def satisfying(demand: Demand) -> set[frozenset[tuple[str, bool]]]:
    """Return all groups that satisfy a demand, of people with a role each.

    There are two people of each role, and one more who asks.
    """
    _, need, roles, requester = demand
    people = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"), ("a", "asks")]
    groups = (
        {one for one, chosen in zip(people, choice, strict=True) if chosen}
        for choice in product((False, True), repeat=len(people))
    )
    return {
        frozenset(group)  # type: ignore[arg-type]
        for group in groups
        if sum(role in roles and (requester or who != "asks") for role, who in group)
        >= need
    }


def approval_escaped(asked: list[Demand], label: str) -> bool:
    """Go through all labels of a release and a mechanism: is a demand escaped?"""
    other = next(name for name in LABELS if name != label)
    default = LABELS[label][0]
    for value, mine, its in product(LABELS[label], LABELS[other], LABELS[other]):

        def needed(demand: Demand, given: str, views: tuple[str, ...]) -> bool:
            return any(
                oracle.holds(demand[0], {}, {label: given, other: view})
                for view in views
            )

        for demand in asked:
            if needed(demand, value, (mine, its)) and not any(
                needed(one, default, (mine, its))
                and satisfying(one) <= satisfying(demand)
                for one in asked
            ):
                return True
    return False


@pytest.mark.spec("POL-8")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(demands, min_size=1, max_size=3))
def test_an_approval_is_escaped_exactly_if_a_release_can_be_described_so(
    asked: list[Demand],
) -> None:
    loose = {
        problem.message.split("`")[1]
        for problem in refused(policy(("true", 1)) + approvals(*asked))
        if problem.code is Code.LOOSE_DEFAULT
    }
    assert loose == {label for label in LABELS if approval_escaped(asked, label)}


def guard_escaped(unless: list[str], label: str) -> bool:
    """Go through all mechanisms: is one refused only if it gives the label?"""
    for reads, *values in product([[], ["age"]], *LABELS.values()):
        given_labels = dict(zip(LABELS, values, strict=True))
        left_out = {**given_labels, label: LABELS[label][0]}
        kept, also_kept = (
            all(
                oracle.holds(one, {"attributes": reads, **labels}, {}) for one in unless
            )
            for labels in (given_labels, left_out)
        )
        if not kept and also_kept:
            return True
    return False


@pytest.mark.spec("POL-8")
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(whens, min_size=1, max_size=3))
def test_a_guard_is_escaped_exactly_if_a_mechanism_can_be_described_so(
    unless: list[str],
) -> None:
    loose = {
        problem.message.split("`")[1]
        for problem in refused(policy(("true", 1)) + guards(*unless))
        if problem.code is Code.LOOSE_DEFAULT
    }
    assert loose == {label for label in LABELS if guard_escaped(unless, label)}


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


@pytest.mark.spec("POL-9")
def test_a_guard_that_refuses_everything_is_refused() -> None:
    (problem,) = refused(policy(("true", 1)) + guards("true", "m.ml in []"))
    assert problem.code is Code.NEVER_TRUE
    assert "`g1` refuses every release" in problem.message
    assert problem.mark is not None


@pytest.mark.spec("POL-9")
def test_an_approval_that_nothing_needs_is_refused() -> None:
    never = f'{OPEN} && release.ml == "none"'
    asked = approvals(("true", 1, ("a",), False), (never, 1, ("b", "c"), False))
    (problem,) = refused(policy(("true", 1)) + asked)
    assert problem.code is Code.NEVER_TRUE
    assert "the approval by b or c" in problem.message
    assert problem.mark is not None


@pytest.mark.spec("POL-9")
def test_a_single_release_is_held_against_the_budget_and_not_a_filter() -> None:
    """The filter `as-published` is not proven for such an eps; no rule here uses it."""
    large = policy(("true", 1)).replace("policies:", "per_release:")
    large = large.replace("{eps: 1}", "{eps: 22, delta: 1e-7}")
    large = large.replace("units:", "dp: {filter: as-published}\nunits:")
    assert refused(large) == []
    with pytest.raises(InputError) as caught:
        compiled(large.replace("per_release:", "policies:"))
    assert caught.value.code is Code.OUT_OF_RANGE
    small = policy(("true", 1)).replace("policies:", "per_release:")
    for budget, fits in (("{eps: 1e-11, delta: 1e-9}", True), ("{mu: 1e-7}", False)):
        codes = [one.code for one in refused(small.replace("{eps: 1}", budget))]
        assert codes == ([] if fits else [Code.NOTHING_FITS])


@pytest.mark.spec("POL-9")
@pytest.mark.parametrize("section", ["policies", "per_release"])
def test_a_policy_of_no_rules_is_refused(section: str) -> None:
    by_category = "{name: c, for_each: category, unit: user, budget: {low: {eps: 1}}}"
    text = HEAD + f"{section}: [{by_category}]\n"
    (problem,) = refused(text)
    assert problem.code is Code.NEVER_TRUE
    assert problem.mark is not None
    both = text.replace(section, "policies").replace(
        by_category,
        by_category + ', {name: all, when: "true", unit: user, budget: {eps: 1}}',
    )
    assert refused(both) == []
    assert warned(both) == [
        "error[MOD101]: policy `c` has no rules: the schema has no categories"
    ]


@pytest.mark.spec("POL-5")
@pytest.mark.parametrize("section", ["policies", "per_release"])
def test_a_table_over_two_measures_is_refused_everywhere(section: str) -> None:
    text = (
        POLICY[: POLICY.index("policies:")]
        + f"""\
{section}:
  - name: cat
    for_each: category
    unit: user
    budget: {{high: {{eps: 1}}, low: {{rho: 1}}}}
    levels: {{member: {{map: {{1: 2}}}}}}
"""
    )
    text = text.replace("{health: high}", "{health: high, place: low}")
    with pytest.raises(InputError) as caught:
        compiled(text)
    assert caught.value.code is Code.MAP_MEASURE


# --- the release alone leaves a label out ---


@pytest.mark.spec("POL-8")
def test_a_label_that_only_mechanisms_give_escapes_nothing() -> None:
    """The mechanism says one thing; its release says nothing, and reads as default."""
    text = policy(
        ('m.ml == "none" && release.ml == "none"', 1), ('release.ml == "open"', 1),
        ("true", 2),
    )  # fmt: skip
    (problem,) = refused(text)
    assert problem.code is Code.LOOSE_DEFAULT
    assert "`p1`" in problem.notes[0]
    assert refused(policy(('release.ml == "none"', 1), ("true", 2))) == []


def test_a_thousand_contexts_take_no_thousand_searches() -> None:
    """Extensions are asked one by one: 3**8 contexts, and some dozens of questions."""
    labels = "".join(f"  l{n}: {{values: [a, b, c], default: a}}\n" for n in range(8))
    settings = "".join(
        f"  - name: e{n}\n    settings:\n"
        f"      a{n}: {{when: 'm.l{n} == \"a\"', budget: same}}\n"
        f"      b{n}: {{when: 'm.l{n} != \"c\"', budget: {{scale: 2}}}}\n"
        f"      c{n}: {{when: 'true', budget: {{scale: 3}}}}\n"
        for n in range(8)
    )
    head = HEAD.replace("labels:\n", f"labels:\n{labels}")
    text = policy(("true", 1), settings_of=f"extensions:\n{settings}")
    text = text.replace(HEAD, head)
    asked = []

    def counted(*question: object) -> object:
        asked.append(question)
        return counterexample(*question)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("modicum.policy.lint.errors.counterexample", counted)
        found = compiled(text)
        assert len(found.rules) == 3**8
        assert refused(text) == []
    assert len(asked) < 500
    loose = text.replace("default: a", "default: b")
    assert len(refused(loose)) == 8
