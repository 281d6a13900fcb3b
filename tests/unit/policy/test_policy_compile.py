"""What a policy compiles to, worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction

import pytest
from samples.small import rule_holds

from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.core.errors import Code, InputError
from modicum.policy import CompiledPolicy, Rule, compiler
from modicum.policy.compiler import RULES_MAX, compile_text
from modicum.policy.predicates import Facts, Scope
from modicum.policy.rules import BaseRule, Stage

HEAD = """\
modicum: policy/v1
name: compile
dp: {bare_budget: {type: approx-dp, delta: 1e-7}}
units: {user: {id: user_id}, day: {id: day_id}}
labels:
  ml: {values: [none, black-box], default: none}
  stage: {values: [draft, final], default: final}
schema:
  categories: {health: high, location: medium}
  attributes:
    country:   [low,    {location: weak}]
    diagnosis: [high,   {health: member}]
    employer:  [medium, {health: weak, location: strong}]
    gps:       [high,   {location: member}]
    steps:     [medium, {health: strong}]
    year:      low
"""
GLOBAL = 'policies: [{name: all, when: "true", unit: user, budget: 2}]\n'
ATTRIBUTES = ("country", "diagnosis", "employer", "gps", "steps", "year")


def compiled(*parts: str) -> CompiledPolicy:
    return compile_text((HEAD + "".join(parts)).encode(), "policy.yaml")


def limits(rules: Iterable[Rule]) -> dict[str, tuple[str, Budget]]:
    return {rule.id: (rule.unit, rule.budget) for rule in rules}


def eps(value: str | int) -> ApproxBudget:
    return ApproxBudget(Fraction(value), Fraction(1, 10**7))


def facts(
    *attributes: str, ml: str = "none", stage: str = "final", release_ml: str = "none"
) -> Facts:
    labels = {
        (Scope.MECHANISM, "ml"): ml,
        (Scope.MECHANISM, "stage"): stage,
        (Scope.RELEASE, "ml"): release_ml,
        (Scope.RELEASE, "stage"): "final",
    }
    return Facts(frozenset(attributes), labels, {})


def readers(rule: Rule) -> set[str]:
    """Return the attributes that alone bring a mechanism under a rule."""
    return {name for name in ATTRIBUTES if rule_holds(rule, facts(name))}


def test_without_extensions_rules_are_named_after_what_they_are_about() -> None:
    found = compiled(
        GLOBAL,
        "per_release: [{name: cap, when: 'true', unit: day, budget: {rho: 0.1}}]\n",
    )
    assert limits(found.rules) == {"all": ("user", eps(2))}
    assert limits(found.release_rules) == {"cap": ("day", ZcdpBudget(Fraction(1, 10)))}
    assert [rule.stage for rule in found.rules] == [Stage.HISTORY]
    assert [rule.stage for rule in found.release_rules] == [Stage.RELEASE]
    assert not any("@" in rule.id for rule in (*found.rules, *found.release_rules))


def test_one_rule_for_each_attribute_by_its_risk_or_its_override() -> None:
    found = compiled(
        "policies: [{name: attr, for_each: attribute, unit: day,"
        " budget: {low: 3, medium: 2, high: 1},"
        " override: {gps: {rho: 0.5}, year: unlimited}}]\n"
    )
    assert limits(found.rules) == {
        "attr:country": ("day", eps(3)),
        "attr:diagnosis": ("day", eps(1)),
        "attr:employer": ("day", eps(2)),
        "attr:gps": ("day", ZcdpBudget(Fraction(1, 2))),
        "attr:steps": ("day", eps(2)),
        "attr:year": ("day", Unlimited()),
    }
    for rule in found.rules:
        assert readers(rule) == {rule.id.removeprefix("attr:")}
        assert not rule_holds(rule, facts())


@pytest.mark.spec("POL-3")
def test_the_levels_of_a_category_are_cumulative() -> None:
    found = compiled(
        "policies: [{name: cat, for_each: category, unit: user,"
        " budget: {medium: 2, high: 1},"
        " levels: {member: same, strong: {scale: 1.5}, weak: {add: 3}}}]\n"
    )
    assert limits(found.rules) == {
        "cat:health/member": ("user", eps(1)),
        "cat:health/strong": ("user", eps("1.5")),
        "cat:health/weak": ("user", eps(4)),
        "cat:location/member": ("user", eps(2)),
        "cat:location/strong": ("user", eps(3)),
        "cat:location/weak": ("user", eps(5)),
    }
    assert {rule.id: readers(rule) for rule in found.rules} == {
        "cat:health/member": {"diagnosis"},
        "cat:health/strong": {"diagnosis", "steps"},
        "cat:health/weak": {"diagnosis", "steps", "employer"},
        "cat:location/member": {"gps"},
        "cat:location/strong": {"gps", "employer"},
        "cat:location/weak": {"gps", "employer", "country"},
    }


def test_a_level_covers_the_closer_ones_that_have_no_rule_of_their_own() -> None:
    found = compiled(
        "policies:\n"
        "- {name: a, for_each: category, unit: user, budget: {medium: 2, high: 1}}\n"
        "- {name: b, for_each: category, unit: user, budget: {medium: 2, high: 1},"
        " levels: {weak: {scale: 2}}}\n"
    )
    assert {rule.id: readers(rule) for rule in found.rules} == {
        "a:health/member": {"diagnosis"},
        "a:location/member": {"gps"},
        "b:health/weak": {"diagnosis", "steps", "employer"},
        "b:location/weak": {"gps", "employer", "country"},
    }


def test_a_mechanism_that_reads_several_attributes_falls_under_each_rule() -> None:
    found = compiled(
        "policies: [{name: attr, for_each: attribute, unit: user,"
        " budget: {low: 3, medium: 2, high: 1}}]\n"
    )
    about = facts("gps", "year")
    assert [r.id for r in found.rules if rule_holds(r, about)] == [
        "attr:gps",
        "attr:year",
    ]


EXTENSION = """\
extensions:
  - name: ml
    settings:
      standard: {when: 'm.ml == "none"', budget: same}
      black-box: {when: "true", budget: {scale: 2}}
"""


def test_a_wider_setting_also_counts_what_the_narrow_one_counts() -> None:
    found = compiled(GLOBAL, EXTENSION)
    assert limits(found.rules) == {
        "all @standard": ("user", eps(2)),
        "all @black-box": ("user", eps(4)),
    }
    standard, black_box = found.rules
    assert standard.context == ("standard",)
    assert rule_holds(standard, facts(ml="none"))
    assert not rule_holds(standard, facts(ml="black-box"))
    assert rule_holds(black_box, facts(ml="none"))
    assert rule_holds(black_box, facts(ml="black-box"))


def test_extensions_do_not_touch_rules_for_one_release() -> None:
    found = compiled(
        GLOBAL,
        EXTENSION,
        "per_release: [{name: cap, for_each: category, unit: user,"
        " budget: {medium: 2, high: 1}}]\n",
    )
    assert limits(found.release_rules) == {
        "cap:health/member": ("user", eps(1)),
        "cap:location/member": ("user", eps(2)),
    }


def two_extensions(first: str, second: str) -> str:
    return (
        "extensions:\n"
        f'  - {{name: a, settings: {{x: {{when: "true", budget: {first}}}}}}}\n'
        f'  - {{name: b, settings: {{y: {{when: "true", budget: {second}}}}}}}\n'
    )


@pytest.mark.spec("POL-2")
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("{scale: 3}", "{add: 1}", 7),
        ("{add: 1}", "{scale: 3}", 9),
        ("{to: 5}", "{scale: 3}", 15),
        ("{scale: 3}", "{to: 5}", 5),
        ("{map: {1: 1, 4: 10}, between: linear}", "{scale: 2}", 8),
        ("{scale: 2}", "{map: {1: 1, 4: 10}, between: linear}", 10),
    ],
)
def test_the_budget_maps_of_extensions_apply_in_the_order_of_the_file(
    first: str, second: str, expected: int
) -> None:
    found = compiled(GLOBAL, two_extensions(first, second))
    assert limits(found.rules) == {"all @x @y": ("user", eps(expected))}


@pytest.mark.spec("POL-2")
def test_there_are_as_many_rules_as_base_rules_times_settings() -> None:
    found = compiled(
        "policies:\n"
        '- {name: all, when: "true", unit: user, budget: 2}\n'
        "- {name: attr, for_each: attribute, unit: user,"
        " budget: {low: 3, medium: 2, high: 1}}\n"
        "- {name: cat, for_each: category, unit: day, budget: {medium: 2, high: 1},"
        " levels: {weak: same, member: same}}\n",
        EXTENSION,
        "  - name: stage\n"
        "    settings:\n"
        "      one: {when: 'm.stage == \"draft\"', budget: same}\n"
        "      two: {when: 'm.ml == \"none\"', budget: same}\n"
        "      three: {when: 'true', budget: same}\n",
    )
    assert dict(found.base_rules) == {"all": 1, "attr": 6, "cat": 4}
    assert len(found.rules) == (1 + 6 + 4) * 2 * 3
    assert len({rule.id for rule in found.rules}) == len(found.rules)
    assert [rule.id for rule in found.rules[:7]] == [
        "all @standard @one",
        "all @standard @two",
        "all @standard @three",
        "all @black-box @one",
        "all @black-box @two",
        "all @black-box @three",
        "attr:country @standard @one",
    ]


def test_a_rule_says_in_words_and_places_where_it_comes_from() -> None:
    found = compiled(GLOBAL, EXTENSION)
    standard, black_box = found.rules
    assert standard.when == 'm.ml == "none"'
    assert black_box.when == "true"
    assert [mark and (mark.line, mark.column) for mark in standard.marks] == [
        (17, 12),
        (21, 7),
    ]
    narrow = compiled(GLOBAL.replace("true", "'gps' in m.attributes"), EXTENSION)
    assert narrow.rules[0].when == '("gps" in m.attributes) && (m.ml == "none")'


TABLE = "extensions: [{name: e, settings: {s: {when: 'true', budget: TABLE}}}]\n"
POINTS = "{map: {1: 2, 2: 5}, between: linear, below: proportional, above: last}"
CATEGORIES = (
    "- {name: cat, for_each: category, unit: user, budget: {medium: 2, high: 1},"
    " levels: {member: LEVEL}}\n"
)


def with_table(*base: str, more: str = "") -> CompiledPolicy:
    return compiled("policies:\n", *base, TABLE.replace("TABLE", POINTS), more)


@pytest.mark.spec("POL-5")
@pytest.mark.parametrize(
    "base",
    [
        # A table of eps says nothing about rho, whoever brings the rho in.
        '- {name: a, when: "true", unit: user, budget: {rho: 1}}\n'
        '- {name: b, when: "true", unit: user, budget: 2}\n',
        "- {name: a, for_each: attribute, unit: user,"
        " budget: {low: 2, medium: 2, high: 1}, override: {gps: {mu: 1}}}\n",
        CATEGORIES.replace("LEVEL", "{to: {rho: 1}}")
        + '- {name: b, when: "true", unit: user, budget: 2}\n',
    ],
)
def test_a_table_acts_on_budgets_of_one_measure(base: str) -> None:
    with pytest.raises(InputError) as caught:
        with_table(base)
    assert caught.value.code is Code.MAP_MEASURE


@pytest.mark.spec("POL-5")
def test_a_table_does_not_act_on_what_an_extension_before_it_turned_into_rho() -> None:
    first = 'one: {when: "true", budget: {to: {rho: 1}}},'
    first += ' two: {when: "true", budget: same}'
    table = f'three: {{when: "true", budget: {POINTS}}}'
    extensions = (
        "extensions:\n"
        f"- {{name: a, settings: {{{first}}}}}\n"
        f"- {{name: b, settings: {{{table}}}}}\n"
    )
    with pytest.raises(InputError) as caught:
        compiled(GLOBAL, extensions)
    assert caught.value.code is Code.MAP_MEASURE


@pytest.mark.spec("POL-5")
def test_a_table_of_a_level_acts_on_budgets_of_one_measure() -> None:
    mixed = CATEGORIES.replace("medium: 2", "medium: {rho: 2}").replace("LEVEL", POINTS)
    with pytest.raises(InputError) as caught:
        compiled("policies:\n", mixed)
    assert caught.value.code is Code.MAP_MEASURE


@pytest.mark.parametrize(
    "base",
    [
        '- {name: a, when: "true", unit: user, budget: {eps: 1}}\n'
        '- {name: b, when: "true", unit: user, budget: {eps: 2, delta: 1e-9}}\n'
        '- {name: c, when: "true", unit: user, budget: unlimited}\n',
        '- {name: a, when: "true", unit: user, budget: {rho: 1}}\n',
    ],
)
def test_a_table_may_act_on_every_budget_of_one_measure(base: str) -> None:
    more = 'per_release: [{name: r, when: "true", unit: user, budget: {mu: 1}}]\n'
    assert with_table(base, more=more).rules


@pytest.mark.parametrize(
    "when",
    [
        "true",
        "'gps' in m.attributes // and nothing else",
        "true || // never\n false",
        "'gps' in m.attributes && (m.stage == 'draft' || !(m.ml == 'none'))",
        "release.purpose == 'say \"so\"'",
        'release.purpose != "it\'s"',
        "m.ml in []",
    ],
)
def test_the_words_of_a_rule_mean_what_the_rule_does(when: str) -> None:
    """People read `when` in explanations; it has to be the predicate."""
    base = f"policies: [{{name: p, when: {json.dumps(when)}, unit: user, budget: 2}}]\n"
    rules = compiled(base, EXTENSION).rules
    again = "".join(
        f"- {{name: p{n}, when: {json.dumps(rule.when)}, unit: user, budget: 2}}\n"
        for n, rule in enumerate(rules)
    )
    for rule, read in zip(rules, compiled("policies:\n", again).rules, strict=True):
        for about in (
            facts("gps"),
            facts(ml="black-box"),
            facts("gps", ml="black-box"),
        ):
            assert rule_holds(rule, about) == rule_holds(read, about)


@pytest.mark.parametrize(
    ("bare", "expected"),
    [
        ("{type: pure-dp}", PureBudget(Fraction(2))),
        ("{type: approx-dp, delta: 1e-9}", ApproxBudget(Fraction(2), Fraction("1e-9"))),
        ("{type: zcdp}", ZcdpBudget(Fraction(2))),
        ("{type: gdp}", GdpBudget(Fraction(2))),
    ],
)
def test_a_bare_number_means_what_the_policy_declares(
    bare: str, expected: Budget
) -> None:
    head = HEAD.replace("{type: approx-dp, delta: 1e-7}", bare)
    found = compile_text((head + GLOBAL).encode(), "policy.yaml")
    assert found.rules[0].budget == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{eps: 3}", PureBudget(Fraction(3))),
        ("{eps: 3, delta: 1e-9}", ApproxBudget(Fraction(3), Fraction("1e-9"))),
        ("{delta: 1e-9, eps: 3}", ApproxBudget(Fraction(3), Fraction("1e-9"))),
        ("{rho: 3}", ZcdpBudget(Fraction(3))),
        ("{mu: 3}", GdpBudget(Fraction(3))),
        ("unlimited", Unlimited()),
        ('"unlimited"', Unlimited()),  # As JSON has to write it.
    ],
)
def test_the_key_of_a_budget_names_its_measure(written: str, expected: Budget) -> None:
    assert compiled(GLOBAL.replace("2}", f"{written}}}")).rules[0].budget == expected


@pytest.mark.parametrize(
    ("block", "filter_name"),
    [
        ("", "combined-v1"),
        ("dp: {filter: zcdp-v1}\n", "zcdp-v1"),
        ("dp: {neighbors: add-remove, accountant: rdp}\n", "combined-v1"),
        ("dp: {accountant: zcdp}\n", "zcdp-v1"),
        ("dp: {accountant: basic}\n", "basic-v1"),
    ],
)
def test_the_filter_is_the_one_that_the_policy_names(
    block: str, filter_name: str
) -> None:
    old = "dp: {bare_budget: {type: approx-dp, delta: 1e-7}}\n"
    text = HEAD.replace(old, block) + GLOBAL.replace("2}", "{eps: 2}}")
    policy = compile_text(text.encode(), "policy.yaml").policy
    assert policy.filter_name == filter_name
    assert policy.report_delta is None


def test_a_missing_risk_level_is_named_with_what_needs_it() -> None:
    with pytest.raises(InputError) as caught:
        compiled(
            "policies: [{name: attr, for_each: attribute, unit: user,"
            " budget: {low: 3, medium: 1}}]\n"
        )
    (problem,) = caught.value.problems
    assert problem.code is Code.NO_BUDGET
    assert "`attr`" in problem.message
    assert "`high`" in problem.message
    assert "`diagnosis`" in problem.message


@pytest.mark.parametrize("each", ["attribute", "category"])
def test_a_budget_for_a_risk_level_that_nothing_has_is_not_ignored(each: str) -> None:
    """A policy's every key is known, those that name risk levels too."""
    with pytest.raises(InputError) as caught:
        compiled(
            f"policies: [{{name: p, for_each: {each}, unit: user,"
            " budget: {low: 3, medium: 2, high: 1, hihg: 0.5}}]\n"
        )
    problem = caught.value.problems[0]
    assert problem.code is Code.UNKNOWN_RISK_LEVEL
    assert problem.label == 'did you mean "high"?'
    assert problem.mark is not None
    assert problem.mark.source[problem.mark.column - 1 :].startswith("hihg")


@pytest.mark.parametrize(
    "rest",
    [
        "policies: []\n",
        "per_release: []\n",
        "",
        "policies: []\nper_release: []\n",
    ],
)
def test_a_policy_without_rules_is_refused(rest: str) -> None:
    with pytest.raises(InputError) as caught:
        compiled(rest)
    assert caught.value.code is Code.MISSING_KEY


def test_levels_that_are_empty_do_not_drop_every_rule_in_silence() -> None:
    with pytest.raises(InputError):
        compiled(
            "policies: [{name: cat, for_each: category, unit: user,"
            " budget: {medium: 2, high: 1}, levels: {}}]\n"
        )


def test_one_mistake_is_reported_as_one() -> None:
    """Nothing is reported that is only a consequence of another mistake."""
    with pytest.raises(InputError) as caught:
        compiled(GLOBAL.replace("budget: 2", "budget: -2"))
    assert [problem.code for problem in caught.value.problems] == [Code.OUT_OF_RANGE]


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    with pytest.raises(InputError) as caught:
        compiled(
            "policies:\n"
            '- {name: a, when: "true", unit: usr, budget: 2}\n'
            '- {name: b, when: "true", unit: user, budget: -2}\n'
            "extensions: [{name: e, settings: {s: {when: 'm.x', budget: same}}}]\n"
            "per_release: [{name: c, when: 'm', unit: user, budget: 2}]\n"
            "zzz: 1\n"
        )
    found = [(problem.code, problem.mark) for problem in caught.value.problems]
    assert [(code, mark.line) for code, mark in found if mark] == [
        (Code.UNKNOWN_UNIT, 18),
        (Code.OUT_OF_RANGE, 19),
        (Code.CEL_TYPE, 20),
        (Code.CEL_TYPE, 21),
        (Code.UNKNOWN_KEY, 22),
    ]


def test_a_policy_may_not_compile_to_more_rules_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = ", ".join(
        f's{{0}}{n}: {{{{when: "true", budget: same}}}}' for n in range(64)
    )

    def extensions(count: int) -> str:
        lines = (
            f"  - {{name: e{n}, settings: {{{wide.format(f'{n}_')}}}}}\n"
            for n in range(count)
        )
        return "extensions:\n" + "".join(lines)

    assert 64**2 <= RULES_MAX < 64**3
    assert len(compiled(GLOBAL, extensions(2)).rules) == 64**2
    with pytest.raises(InputError) as caught:
        compiled(GLOBAL, extensions(3))
    assert caught.value.code is Code.TOO_LARGE
    assert str(64**3) in caught.value.problems[0].message
    # A number with more digits than Python writes is not written.
    monkeypatch.setattr(compiler, "_COUNTABLE", 1000)
    with pytest.raises(InputError, match="over 1000 rules"):
        compiled(GLOBAL, extensions(3))


@pytest.mark.parametrize(
    "section", ["policies", "per_release"], ids=["history", "release"]
)
def test_what_is_too_much_is_refused_before_any_rule_is_made(
    section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = "for_each: attribute, unit: user, budget: {low: 1, medium: 1, high: 1}"
    levels = "levels: {weak: same, strong: same, member: same}"
    base = [
        f"{{name: a, {each}}}",
        f"{{name: c, {each.replace('attribute', 'category')}, {levels}}}",
        '{name: g, when: "true", unit: user, budget: 2}',
    ]
    parts = f"{section}: [{', '.join(base)}]\n"
    if section != "policies":
        parts += GLOBAL
    found = compiled(parts)
    rules = found.rules if section == "policies" else found.release_rules
    assert len(rules) == 6 + 2 * 3 + 1
    monkeypatch.setattr(compiler, "RULES_MAX", len(rules))
    assert compiled(parts).policy.digest == found.policy.digest
    monkeypatch.setattr(compiler, "RULES_MAX", len(rules) - 1)
    monkeypatch.setattr(BaseRule, "__init__", _none_is_made)
    with pytest.raises(InputError) as caught:
        compiled(parts)
    assert [one.code for one in caught.value.problems] == [Code.TOO_LARGE]


def _none_is_made(*_: object, **__: object) -> None:
    raise AssertionError("a rule was made")


def test_warnings_name_what_is_allowed_and_probably_not_meant() -> None:
    head = HEAD.replace(", day: {id: day_id}", "")
    lonely = head.replace("location: medium}", "location: medium, finance: low}")
    narrow = GLOBAL.replace('"true"', "'\"gps\" in m.attributes'")
    text = lonely + narrow + "unmatched: allow\n"
    found = compile_text(text.encode(), "policy.yaml")
    assert [warning.code for warning in found.warnings] == [
        Code.UNKNOWN_CATEGORY,
        Code.NO_CATCH_ALL,
    ]
    assert "finance" in found.warnings[0].message
    assert compile_text((head + GLOBAL).encode(), "policy.yaml").warnings == ()
