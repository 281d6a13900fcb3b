"""What is allowed but probably not meant."""

from __future__ import annotations

from itertools import product

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import policy as oracle
from samples.linted import (
    LABELS,
    OPEN,
    approvals,
    extension,
    guards,
    policy,
    warned,
    whens,
)
from samples.small import POLICY, compiled

from modicum.core.errors import Code

# --- what no rule and no mechanism reaches ---


def test_an_attribute_of_which_nobody_said_to_what_it_belongs() -> None:
    text = POLICY.replace("age: [low, {health: weak}]", "age: low")
    assert warned(text) == ["error[MOD113]: `age` has no category assignment"]
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
        "error[MOD207]: no mechanism can match `p1 @s0`",
        "error[MOD207]: no mechanism can match `p2 @s0`",
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
    assert compiled(text).warnings[0].mark is not None


# --- what nothing limits ---


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(whens, st.booleans()), min_size=1, max_size=3),
    st.lists(whens, max_size=2),
    st.sampled_from(["{scale: 2}", "{to: unlimited}"]),
    st.sampled_from(["same", "{to: unlimited}"]),
)
def test_a_mechanism_that_nothing_limits_is_warned_of(
    rules: list[tuple[str, bool]], unless: list[str], in_open: str, otherwise: str
) -> None:
    """Exactly if there is one that the guards let pass."""
    text = policy(*((when, number) for number, (when, _) in enumerate(rules, 1)))
    for number, (_, finite) in enumerate(rules, 1):
        text = text if finite else text.replace(f"{{eps: {number}}}", "unlimited")
    text += extension(('m.ml == "open"', in_open), ("true", otherwise))
    text += guards(*unless) if unless else ""

    def limited(m: dict[str, object]) -> bool:
        applies = ["unlimited" not in otherwise]
        applies += [True] * (m["ml"] == "open" and "unlimited" not in in_open)
        return any(applies) and any(
            finite and oracle.holds(when, m, {}) for when, finite in rules
        )

    worlds: list[dict[str, object]] = [
        {"attributes": reads, "ml": ml, "stage": stage}
        for reads, ml, stage in product([[], ["age"]], *LABELS.values())
    ]
    escaped = any(
        all(oracle.holds(one, m, {}) for one in unless) and not limited(m)
        for m in worlds
    )
    allowing = warned(text + ALLOW)
    assert any("for unit `user`" in one for one in allowing) == escaped
    # What nothing limits is denied, unless the policy says otherwise.
    denying = warned(text)
    assert not any("for unit `user`" in one for one in denying)
    assert (ALL_DENIED in denying) == (not any(map(limited, worlds)))


ALLOW = "unmatched: allow\n"
ALL_DENIED = "error[MOD101]: every release is denied: no rule over history has a limit"


def test_a_unit_is_without_limit_where_another_one_has_one() -> None:
    """Of two units with rules, neither limits all that is allowed."""
    text = policy(('"age" in m.attributes', 1), ('m.ml == "open"', 1))
    text = text.replace("{id: user_id}}", "{id: user_id}, home: {id: home_id}}")
    second = text.rindex("unit: user")
    text = text[:second] + text[second:].replace("unit: user", "unit: home", 1)
    found = [one for one in warned(text) if "MOD101" in one]
    assert found == [
        f"error[MOD101]: for unit `{unit}`, no limit matches every mechanism"
        for unit in ("user", "home")
    ]


def test_every_unit_that_no_other_covers_needs_a_limit() -> None:
    text = policy(("true", 1))
    day = "user-day: {id: user_id, time: {column: t, period: day}, within: user}"
    assert warned(text.replace("{id: user_id}}", "{id: user_id}, " + day + "}")) == []
    other = text.replace("{id: user_id}}", "{id: user_id}, home: {id: home_id}}")
    assert warned(other) == ["error[MOD101]: for unit `home`, there is no limit at all"]
    unlimited = text.replace("{eps: 1}", "unlimited")
    assert warned(unlimited) == [ALL_DENIED]
    assert warned(unlimited + ALLOW) == [
        "error[MOD101]: for unit `user`, there is no limit at all"
    ]


def test_rules_on_each_release_alone_limit_no_history() -> None:
    text = policy(("true", 1)).replace("policies:", "per_release:")
    nothing = ["error[MOD101]: nothing limits the total loss of all releases"]
    assert warned(text) == [ALL_DENIED]
    assert warned(text + approvals(("true", 1, ("a",), False))) == [ALL_DENIED]
    text += ALLOW
    assert warned(text) == nothing
    assert warned(text + approvals((OPEN, 1, ("a",), False))) == nothing
    # Then it is people who look at what was released before.
    assert warned(text + approvals(("true", 1, ("a",), False))) == []


@pytest.mark.parametrize("section", ["policies", "per_release"])
def test_a_level_that_is_missing_is_told_once(section: str) -> None:
    levels = POLICY[POLICY.index("levels:") : POLICY.index("extensions:")]
    text = POLICY.replace(levels, "levels: {member: same}}\n")
    text = text.replace("{health: weak}", "{health: strong}")
    if section == "per_release":
        start, end = text.index("  - {name: cat"), text.index("extensions:")
        text = text[:start] + text[end:] + text[start:end]
    assert warned(text) == [
        "error[MOD101]: policy `cat` has no strong rule: `age` in `health` and 1 more"
        " escape it"
    ]


def test_a_guard_that_refuses_nothing() -> None:
    text = policy(("true", 1)) + guards('m.ml in ["none", "black-box", "open"]')
    assert warned(text) == [
        "error[MOD207]: the guard `g0` refuses nothing: its `unless` is always true"
    ]
    assert warned(policy(("true", 1)) + guards('m.ml in ["none", "open"]')) == []


# --- limits that never deny ---


@pytest.mark.parametrize("section", ["policies", "per_release"])
@pytest.mark.parametrize(
    ("strong", "weak", "dead"),
    [
        ("{scale: 3}", "{scale: 2}", ["strong"]),
        ("{scale: 2}", "{scale: 2}", []),
        ("{scale: 2}", "{scale: 3}", []),
        ("{scale: 0.5}", "{scale: 2}", ["member"]),
        ("{scale: 0.5}", "{scale: 0.2}", ["member", "member", "strong"]),
        ("{to: unlimited}", "{scale: 2}", ["strong"]),
        ("{scale: 2}", "{to: {rho: 1}}", []),
    ],
)
def test_a_level_with_a_larger_budget_than_a_wider_one(
    section: str, strong: str, weak: str, dead: list[str]
) -> None:
    text = POLICY.replace("{scale: 1.25}", strong).replace("{scale: 1.5}", weak)
    text = text[: text.index("extensions:")]
    if section == "per_release":
        start = text.index("  - {name: cat")
        text = text[:start] + "per_release:\n" + text[start:]
    warnings = compiled(text).warnings
    assert {one.code for one in warnings} <= {Code.MAP_NOT_MONOTONE}
    assert [one.message.split()[1] for one in warnings] == dead
    assert all(one.mark is not None for one in warnings)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(whens, st.integers(1, 4)), min_size=1, max_size=3))
def test_a_setting_with_larger_budgets_than_a_wider_one(
    contexts: list[tuple[str, int]],
) -> None:
    about = [one for one in contexts if "age" not in one[0]]
    every = [*about, ("true", 3)]
    text = policy(("true", 1), ('"age" in m.attributes', 2), settings_of=extension(
        *((when, f"{{scale: {factor}}}") for when, factor in every)))  # fmt: skip
    worlds = [
        dict(zip(LABELS, values, strict=True)) for values in product(*LABELS.values())
    ]

    def within(narrow: str, wide: str) -> bool:
        return all(
            oracle.holds(wide, m, {}) for m in worlds if oracle.holds(narrow, m, {})
        )

    expected = [
        (f"s{narrow}", f"s{wide}")
        for narrow, (own, larger) in enumerate(every)
        for wide, (other, smaller) in enumerate(every)
        if smaller < larger and within(own, other)
    ]
    dead = [w for w in compiled(text).warnings if w.code is Code.MAP_NOT_MONOTONE]
    assert [tuple(one.message.split("`")[1::2]) for one in dead] == expected
    assert all(one.mark is not None for one in dead)


def test_settings_are_compared_within_each_context_of_the_others() -> None:
    """What the second extension sees is what the first one made of the budget."""
    text = policy(("true", 1)) + (
        "extensions:\n"
        "  - name: e\n    settings: {a: {when: 'm.ml == \"open\"', budget: {scale: 4}},"
        " all: {when: 'true', budget: same}}\n"
        "  - name: f\n    settings: {b: {when: 'm.stage == \"final\"',"
        " budget: {map: {1: 1, 4: 5}}},"
        " every: {when: 'true', budget: {map: {1: 2, 4: 4}}}}\n"
    )
    found = compiled(text.replace("{map: {1: 1, 4: 5}}", "{map: {1: 3, 4: 5}}"))
    assert ["`b`" in one.message for one in found.warnings] == [False, False, True]
    assert not any("`b`" in one.message for one in compiled(text).warnings)
