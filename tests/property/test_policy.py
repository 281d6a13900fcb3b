"""What policies compile to, and whom their rules are about, against the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from oracle import policy as oracle

import modicum
from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.core.document import Kind, Scalar, from_python
from modicum.core.errors import Code, InputError, Mark
from modicum.core.yaml_reader import read_document
from modicum.ledger import Balances, decide
from modicum.ledger.bulk.matrix_balances import QuickBalances
from modicum.ledger.decision.balances import facts_of
from modicum.ledger.decision.decide import allows
from modicum.ledger.log.recorded_release import record_release
from modicum.policy import CompiledPolicy, parse_policy
from modicum.policy.budget_maps import apply_map, parse_map
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import Facts, Scope, holds
from modicum.release import Label, Vocabulary, parse_release, price

Written: TypeAlias = dict[str, Any]

#: For tests that compile many policies in one example: shrinking would take minutes.
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)

ATTRIBUTES = ("age", "clinic", "diagnosis", "gps", "salary", "steps")
CATEGORIES = ("finance", "health", "location")
RISKS = ("low", "medium", "high")
LEVELS = ("member", "strong", "weak")
LABELS = {
    "audience": ("internal", "public"),
    "ml": ("none", "black-box"),
    "stage": ("draft", "final", "late"),
}
TEXTS = {"purpose": ("", "research", "it's", 'say "so"'), "requester": ("", "hr")}
BARE: tuple[Written, ...] = (
    {"type": "approx-dp", "delta": Decimal("1e-7")},
    {"type": "pure-dp"},
    {"type": "zcdp"},
    {"type": "gdp"},
)


def spelled(value: object) -> str:
    """Return a value as YAML flow text; all texts but `unlimited` in quotes."""
    if isinstance(value, Mapping):
        pairs = (f"{spelled(key)}: {spelled(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spelled(item) for item in value) + "]"
    if isinstance(value, str) and value != "unlimited":
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def compiled(policy: Written) -> CompiledPolicy:
    return compile_text(spelled(policy).encode(), "policy.yaml")


def refusal(call: Callable[[], object]) -> InputError | None:
    """Return the error of a call, or None if it goes through."""
    try:
        call()
    except InputError as error:
        return error
    return None


def digest_of(text: str) -> str:
    return parse_policy(read_document(text.encode(), "policy.yaml"), text).digest


def as_oracle(budget: Budget) -> oracle.Budget:
    match budget:
        case PureBudget(eps=eps):
            return "eps", eps, None
        case ApproxBudget(eps=eps, delta=delta):
            return "eps", eps, delta
        case ZcdpBudget(rho=rho):
            return "rho", rho, None
        case GdpBudget(mu=mu):
            return "mu", mu, None
        case RenyiBudget():
            raise AssertionError(budget)  # Not generated: no map acts on it.
        case Unlimited():
            return None


# --- what is generated ---------------------------------------------------------

numbers = st.integers(1, 2500).map(lambda n: Decimal(n) / 100)
deltas = st.sampled_from([Decimal("1e-7"), Decimal("1e-18"), Decimal("0.25")])
forms: dict[str, st.SearchStrategy[Any]] = {
    "eps": st.fixed_dictionaries({"eps": numbers}, optional={"delta": deltas}),
    "rho": st.fixed_dictionaries({"rho": numbers}),
    "mu": st.fixed_dictionaries({"mu": numbers}),
}
#: Which measures a policy mixes. Tables act on one only.
MIXED = ("eps", "rho", "mu")
FAMILIES: tuple[tuple[str, ...], ...] = (("eps",), ("eps",), ("rho",), ("mu",), MIXED)


def budgets(family: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Return budgets; a bare number belongs to whatever the policy declares."""
    stated = [forms[measure] for measure in family]
    return st.one_of(numbers, numbers, *stated, st.just("unlimited"))


def bare_of(family: tuple[str, ...]) -> st.SearchStrategy[Written]:
    kinds = {"eps": BARE[:2], "rho": BARE[2:3], "mu": BARE[3:]}
    return st.sampled_from([one for measure in family for one in kinds[measure]])


def shuffled(draw: st.DrawFn, mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: mapping[key] for key in draw(st.permutations(list(mapping)))}


@st.composite
def tables(draw: st.DrawFn, *, total: bool = False) -> Written:
    """Return a budget map by table that never falls, its keys in any order."""
    keys = draw(st.lists(numbers, min_size=1, max_size=5, unique=True))
    values = draw(st.lists(numbers, min_size=len(keys), max_size=len(keys)))
    points = dict(zip(sorted(keys), sorted(values), strict=True))
    table: Written = {"map": shuffled(draw, points)}
    undefined = [] if total else ["error", None]
    for key, names in (
        ("between", ["linear", "floor", "linear"]),
        ("below", ["proportional", "proportional", "proportional"]),
        ("above", ["last", "unlimited", "last"]),
    ):
        name = draw(st.sampled_from([*names, *undefined]))
        if name is not None:
            table[key] = name
    return table


def maps(family: tuple[str, ...], *, tabled: bool) -> st.SearchStrategy[Any]:
    limits = budgets(family)
    found = [
        st.just("same"),
        st.fixed_dictionaries({"scale": numbers}),
        st.fixed_dictionaries({"to": limits}),
        st.fixed_dictionaries({"add": limits.filter(lambda b: not has_delta(b))}),
    ]
    several = [tables(), tables(total=True), tables(total=True)] if tabled else []
    return st.one_of(*found, *several)


def has_delta(budget: Any) -> bool:
    return isinstance(budget, dict) and "delta" in budget


def quoted(draw: st.DrawFn, text: str) -> str:
    quote = draw(st.sampled_from([mark for mark in "\"'" if mark not in text]))
    return f"{quote}{text}{quote}"


@st.composite
def atoms(draw: st.DrawFn, attributes: tuple[str, ...], labels: Written) -> str:
    """Return one comparison; about labels only if there are no attributes."""
    kinds = (
        ["label"] * 4 + ["constant"] + (["reads", "reads", "text"] * bool(attributes))
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "constant":
        return draw(st.sampled_from(["true", "false"]))
    if kind == "reads":
        attribute = quoted(draw, draw(st.sampled_from(attributes)))
        return f"{attribute} in m.attributes"
    if kind == "label":
        label = draw(st.sampled_from(sorted(labels)))
        path = draw(st.sampled_from(["m", "release"])) + f".{label}"
        known = labels[label]["values"]
    else:
        known_texts = {f"release.{field}": texts for field, texts in TEXTS.items()}
        known_texts |= {
            "m.name": ("mechanism-1", "b"),
            "m.mechanism": ("declared", "laplace"),
        }
        known_texts |= {"release.id": ("r-1", "r-2")}
        path = draw(st.sampled_from(sorted(known_texts)))
        known = known_texts[path]
    value = quoted(draw, draw(st.sampled_from(known)))
    listed = draw(st.lists(st.sampled_from(known), max_size=3))
    values = ", ".join(quoted(draw, one) for one in listed)
    return draw(
        st.sampled_from(
            [
                f"{path} == {value}",
                f"{value}=={path}",
                f"{path} != {value}",
                f"{value} != {path}",
                f"{path} in [{values}]",
            ]
        )
    )


def predicates(attributes: tuple[str, ...], labels: Written) -> st.SearchStrategy[str]:
    """Return CEL texts; what belongs together is up to precedence and parentheses."""

    def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operators = st.sampled_from([" && ", " || ", "&&", "||", "\n  && "])
        joined = st.builds(
            lambda first, rest: first + "".join(op + one for op, one in rest),
            inner,
            st.lists(st.tuples(operators, inner), min_size=1, max_size=3),
        )
        forms = st.sampled_from(["({})", "!({})", "! ( {} )", "!!({})", "(({}))"])
        return st.one_of(joined, st.builds(lambda f, one: f.format(one), forms, inner))

    return st.recursive(atoms(attributes, labels), longer, max_leaves=8)


@st.composite
def labellings(draw: st.DrawFn) -> Written:
    names = draw(st.lists(st.sampled_from(sorted(LABELS)), min_size=1, unique=True))
    return {
        name: {
            "values": list(LABELS[name]),
            "default": draw(st.sampled_from(LABELS[name])),
        }
        for name in names
    }


@st.composite
def base_policies(
    draw: st.DrawFn,
    number: int,
    attributes: tuple[str, ...],
    labels: Written,
    family: tuple[str, ...],
) -> Written:
    limits = budgets(family)
    base: Written = {
        "name": f"p{number}",
        "unit": draw(st.sampled_from(["user", "day"])),
    }
    kind = draw(st.sampled_from(["custom", "attribute", "category", "category"]))
    if kind == "custom":
        base["when"] = draw(predicates(attributes, labels))
        return {**base, "budget": draw(limits)}
    base["for_each"] = kind
    base["budget"] = shuffled(draw, {risk: draw(limits) for risk in RISKS})
    if kind == "attribute" and draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(attributes), unique=True))
        base["override"] = {name: draw(limits) for name in names}
    if kind == "category" and draw(st.integers(0, 3)):
        levels = draw(st.lists(st.sampled_from(LEVELS), min_size=1, unique=True))
        base["levels"] = {
            level: draw(maps(family, tabled=len(family) == 1)) for level in levels
        }
    return base


@st.composite
def extensions(
    draw: st.DrawFn, number: int, labels: Written, family: tuple[str, ...]
) -> Written:
    limits = maps(family, tabled=len(family) == 1)
    label = draw(st.sampled_from(sorted(labels)))
    values = labels[label]["values"]
    everything = draw(
        st.sampled_from(
            [
                "true",
                f'm.{label} == "{values[0]}" || m.{label} != "{values[0]}"',
                f"release.{label} in {json.dumps(values)}",
            ]
        )
    )
    whens = [everything, *draw(st.lists(predicates((), labels), max_size=2))]
    found = {
        f"s{number}{place}": {"when": when, "budget": draw(limits)}
        for place, when in enumerate(draw(st.permutations(whens)))
    }
    return {"name": f"e{number}", "settings": found}


@st.composite
def policies(draw: st.DrawFn) -> Written:
    """Return a policy in which every key and every form of a value may occur."""
    attributes = tuple(
        draw(st.lists(st.sampled_from(ATTRIBUTES), min_size=1, unique=True))
    )
    names = draw(st.lists(st.sampled_from(CATEGORIES), unique=True))
    risks = st.sampled_from(RISKS)
    # Every risk level occurs, so that none of the budgets is for nothing.
    categories = {name: draw(risks) for name in names}
    memberships = st.dictionaries(
        st.sampled_from(names or ["-"]), st.sampled_from(LEVELS), max_size=len(names)
    )
    tagged: Written = {
        attribute: draw(
            st.one_of(
                risks,
                risks.map(lambda risk: [risk]),
                st.tuples(risks, memberships if names else st.just({})).map(list),
                st.tuples(risks, memberships if names else st.just({})).map(list),
            )
        )
        for attribute in attributes
    }
    tagged |= {f"{risk}_risk": risk for risk in RISKS}
    labels = draw(labellings())
    family = draw(st.sampled_from(FAMILIES))
    number = draw(st.integers(1, 3))
    several = [extensions(place, labels, family) for place in range(3)]
    per_release = [
        {**draw(base_policies(place, attributes, labels, family)), "name": f"r{place}"}
        for place in range(draw(st.integers(0, 1)))
    ]
    return {
        "modicum": "policy/v1",
        "name": "generated",
        "dp": {"bare_budget": dict(draw(bare_of(family)))},
        "units": {"user": {"id": "user_id"}, "day": {"id": "day_id"}},
        "labels": labels,
        "schema": {"categories": categories, "attributes": tagged},
        "policies": [
            draw(base_policies(place, attributes, labels, family))
            for place in range(number)
        ],
        "extensions": [
            draw(extension) for extension in several[: draw(st.integers(0, 3))]
        ],
        "per_release": per_release,
        **draw(st.sampled_from([{}, {"unmatched": "deny"}, {"unmatched": "allow"}])),
    }


@st.composite
def releases(draw: st.DrawFn, policy: Written) -> Written:
    attributes = list(policy["schema"]["attributes"])

    def some_labels() -> Written:
        given = {
            name: draw(st.sampled_from([None, *label["values"]]))
            for name, label in policy["labels"].items()
        }
        return {name: value for name, value in given.items() if value is not None}

    texts = {
        key: draw(st.sampled_from(known))
        for key, known in TEXTS.items()
        if draw(st.booleans())
    }
    mechanisms: list[Written] = [
        {
            "mechanism": "declared",
            "attributes": draw(
                st.lists(st.sampled_from(attributes), unique=True, max_size=3)
            ),
            "cost": {"user": {"eps": 1}, "day": {"rho": 1}},
            **some_labels(),
        }
        for _ in range(draw(st.integers(1, 3)))
    ]
    if draw(st.booleans()):
        mechanisms[0]["name"] = "b"
    # Each attribute is also read alone, so that no level of a category goes unseen.
    mechanisms += [
        {"mechanism": "declared", "attributes": [one], "cost": mechanisms[0]["cost"]}
        for one in attributes
    ]
    release = draw(st.sampled_from(["r-1", "r-3"]))
    return {"release": release, **texts, **some_labels(), "mechanisms": mechanisms}


# --- compiling and matching ----------------------------------------------------


def expected_rules(
    policy: Written,
) -> tuple[list[oracle.Rule], list[oracle.Rule]] | None:
    try:
        return oracle.rules(policy), oracle.release_rules(policy)
    except oracle.UndefinedError:
        return None


@pytest.mark.spec("POL-2")
@pytest.mark.spec("POL-3")
@settings(max_examples=examples(120))
@given(policies())
def test_compiles_to_exactly_the_rules_of_the_oracle(policy: Written) -> None:
    expected = expected_rules(policy)
    if expected is None:
        with pytest.raises(InputError) as caught:
            compiled(policy)
        codes = {problem.code for problem in caught.value.problems}
        assert codes <= {Code.MAP_UNDEFINED, Code.MAP_MEASURE}
        return
    found = compiled(policy)
    for rules, meant in zip((found.rules, found.release_rules), expected, strict=True):
        assert [(rule.id, rule.unit, as_oracle(rule.budget)) for rule in rules] == [
            (rule.id, rule.unit, rule.budget) for rule in meant
        ]
    size = sum(found.base_rules.values())
    for extension in policy["extensions"]:
        size *= len(extension["settings"])
    assert len(found.rules) == size == len({rule.id for rule in found.rules})
    assert all(rule.id.count(" @") == len(policy["extensions"]) for rule in found.rules)


@pytest.mark.spec("POL-7")
@pytest.mark.spec("REL-6")
@settings(max_examples=examples(80))
@given(st.data())
def test_rules_match_exactly_the_mechanisms_that_the_oracle_says(
    data: st.DataObject,
) -> None:
    policy = data.draw(policies().filter(expected_rules))
    release = data.draw(releases(policy))
    found = compiled(policy)
    vocabulary = found.policy.vocabulary
    node = from_python(release)
    recorded = record_release(price(parse_release(node, vocabulary), vocabulary))
    facts = facts_of(recorded, vocabulary)
    rules = (*found.rules, *found.release_rules)
    sets = (found.rules, found.release_rules)
    matched = {rule.id: about for one in sets for rule, about in one.matching(facts)}
    meant = [*oracle.rules(policy), *oracle.release_rules(policy)]
    assert [rule.id for rule in rules] == [rule.id for rule in meant]
    for rule in meant:
        about = tuple(
            number - 1
            for number in range(1, len(release["mechanisms"]) + 1)
            if oracle.matches(policy, rule, release, number)
        )
        assert matched.get(rule.id, ()) == about, rule
    for compiled_rule in rules:  # What people read about a rule means the same.
        for place in range(len(release["mechanisms"])):
            m, of_release = oracle.scopes(policy, release, place + 1)
            expected = place in matched.get(compiled_rule.id, ())
            when = compiled_rule.when
            assert oracle.holds(when, m, of_release) == expected, when


@pytest.mark.spec("DEC-12")
@settings(max_examples=examples(80), deadline=None)
@given(st.data())
def test_what_no_rule_limits_is_denied_exactly_as_the_oracle_says(
    data: st.DataObject,
) -> None:
    policy = data.draw(policies().filter(expected_rules))
    release = data.draw(releases(policy))
    found = compiled(policy)
    vocabulary = found.policy.vocabulary
    node = from_python(release)
    recorded = record_release(price(parse_release(node, vocabulary), vocabulary))
    balances = Balances(found)
    verdict = decide(balances, recorded)
    assert list(verdict.unmatched) == oracle.unmatched(policy, release)
    uncovered = oracle.unmatched({**policy, "unmatched": "deny"}, release)
    assert list(verdict.uncovered) == uncovered
    assert verdict.allowed == (not verdict.blocking and not verdict.unmatched)
    # However it is decided: pruned, in kernels, and whatever was charged before.
    assert allows(balances, recorded) == verdict.allowed
    assert QuickBalances(found).allows(recorded) == verdict.allowed
    balances.charge(recorded)
    assert decide(balances, recorded).unmatched == verdict.unmatched


# --- budget maps ---------------------------------------------------------------


@pytest.mark.spec("POL-5")
@settings(max_examples=examples(200))
@given(maps(MIXED, tabled=True), budgets(MIXED), budgets(MIXED), bare_of(MIXED))
def test_a_budget_map_does_what_the_oracle_says_and_never_falls(
    budget_map: Any, first: Any, second: Any, bare: Written
) -> None:
    header = {"dp": {"bare_budget": bare}}

    def read(written: Any) -> Budget:
        base = {"name": "p", "when": "true", "unit": "user", "budget": written}
        return compiled(small(policies=[base], dp=header["dp"])).rules[0].budget

    def result(written: Any) -> oracle.Budget | str:
        try:
            return as_oracle(apply_map(parsed, read(written), "rule"))
        except InputError as error:
            undefined = error.code in {Code.MAP_UNDEFINED, Code.MAP_MEASURE}
            return "undefined" if undefined else str(error)

    def meant(written: Any) -> oracle.Budget | str:
        try:
            return oracle.changed(
                header, budget_map, oracle.read_budget(header, written)
            )
        except oracle.UndefinedError:
            return "undefined"

    node = read_document(spelled(budget_map).encode(), "map.yaml")
    parsed = parse_map(node, lambda node: read(plain(node)))
    assert result(first) == meant(first)
    assert result(second) == meant(second)
    small_in, large_in = as_oracle(read(first)), as_oracle(read(second))
    small_out, large_out = result(first), result(second)
    if isinstance(small_out, str) or isinstance(large_out, str):
        return
    if no_more_than(small_in, large_in):
        assert no_more_than(small_out, large_out)


def plain(node: Any) -> Any:
    """Return what a budget's tree says, as data that `spelled` writes again."""
    if isinstance(node, Scalar):
        return Decimal(node.text) if node.kind is Kind.NUMBER else node.text
    return {key.text: plain(item) for key, item in node.entries}


def no_more_than(one: oracle.Budget, other: oracle.Budget) -> bool:
    """Return whether a budget allows no more than another of the same measure."""
    if one is None or other is None:
        return other is None
    return (one[0], one[2]) == (other[0], other[2]) and bool(one[1] <= other[1])


def small(**parts: Any) -> Written:
    return {
        "modicum": "policy/v1",
        "name": "small",
        "units": {"user": {"id": "user_id"}},
        "labels": {
            name: {"values": list(values), "default": values[0]}
            for name, values in LABELS.items()
        },
        "schema": {"attributes": {"age": "low", "gps": "low"}},
        "policies": [
            {"name": "p", "when": "true", "unit": "user", "budget": {"eps": 1}}
        ],
        **parts,
    }


@pytest.mark.spec("POL-5")
@settings(max_examples=examples(150))
@given(st.dictionaries(numbers, numbers, min_size=1, max_size=5))
def test_a_table_is_refused_exactly_if_it_falls(points: dict[Decimal, Decimal]) -> None:
    node = read_document(spelled({"map": points}).encode(), "map.yaml")
    falls = any(x < y and points[x] > points[y] for x, y in product(points, repeat=2))
    error = refusal(lambda: parse_map(node, lambda _: Unlimited()))
    assert (error is not None) == falls
    assert error is None or error.code is Code.MAP_NOT_MONOTONE


# --- claims about settings -----------------------------------------------------


def combinations() -> Iterator[tuple[Written, Written]]:
    """Yield every pair of a mechanism's and a release's labels."""
    everything = [
        dict(zip(LABELS, values, strict=True)) for values in product(*LABELS.values())
    ]
    yield from product(everything, repeat=2)


LABEL_PREDICATES = predicates((), small()["labels"])


def implied(narrow: str, wide: str) -> bool:
    return all(
        oracle.holds(wide, m, release)
        for m, release in combinations()
        if oracle.holds(narrow, m, release)
    )


def with_settings(**whens: str) -> Written:
    found = {name: {"when": when, "budget": "same"} for name, when in whens.items()}
    return small(extensions=[{"name": "e", "settings": found}])


@pytest.mark.spec("POL-4")
@settings(max_examples=examples(60))
@given(LABEL_PREDICATES, LABEL_PREDICATES)
def test_a_within_claim_is_accepted_exactly_if_it_is_true(
    narrow: str, wide: str
) -> None:
    policy = with_settings(narrow=narrow, wide=wide, all="true")
    policy["extensions"][0]["settings"]["narrow"]["within"] = "wide"
    error = refusal(lambda: compiled(policy))
    assert (error is None) == implied(narrow, wide)
    if error is None:
        return
    assert error.code is Code.FALSE_WITHIN
    note = error.problems[0].notes[0]
    claimed = note.split("a mechanism with ")[1].split(" matches")[0]
    pairs = [one.split(" = ") for one in claimed.split(", ") if " = " in one]
    matches = {
        (oracle.holds(narrow, m, release), oracle.holds(wide, m, release))
        for m, release in combinations()
        if all(named({"m": m, "release": release}, path) == v for path, v in pairs)
    }
    assert matches == {(True, False)}  # The counterexample is one.


def named(scopes: Written, path: str) -> object:
    scope, field = path.split(".")
    found: object = scopes[scope][field]
    return found


@pytest.mark.spec("POL-4")
@settings(max_examples=examples(60))
@given(LABEL_PREDICATES, LABEL_PREDICATES)
def test_an_extension_is_accepted_exactly_if_one_setting_catches_all(
    one: str, other: str
) -> None:
    covers = implied("true", one) or implied("true", other)
    error = refusal(lambda: compiled(with_settings(one=one, other=other)))
    assert (error is None) == covers
    assert error is None or error.code is Code.NO_CATCH_ALL


# --- predicates ----------------------------------------------------------------

VOCABULARY = Vocabulary(
    frozenset(ATTRIBUTES),
    {name: Label(values, values[0]) for name, values in LABELS.items()},
    ("user",),
    "add-remove",
)


@pytest.mark.spec("POL-7")
@settings(max_examples=examples(400))
@given(
    predicates(ATTRIBUTES, small()["labels"]),
    st.sampled_from(list(combinations())),
    st.sets(st.sampled_from(ATTRIBUTES)),
    st.fixed_dictionaries({key: st.sampled_from(v) for key, v in TEXTS.items()}),
    st.sampled_from([("mechanism-1", "declared"), ("b", "gaussian")]),
)
def test_a_predicate_is_as_true_as_the_oracle_says(
    when: str,
    labels: tuple[Written, Written],
    attributes: set[str],
    texts: dict[str, str],
    kind: tuple[str, str],
) -> None:
    scopes = (Scope.MECHANISM, Scope.RELEASE)
    m = {"name": kind[0], "mechanism": kind[1]}
    about = {**texts, "id": "r-1"}
    facts = Facts(
        frozenset(attributes),
        {
            (scope, name): value
            for scope, given_labels in zip(scopes, labels, strict=True)
            for name, value in given_labels.items()
        },
        {
            (scope, name): value
            for scope, given_texts in zip(scopes, (m, about), strict=True)
            for name, value in given_texts.items()
        },
    )
    predicate = parse_predicate(from_python(when), "`when`", VOCABULARY)
    meant = oracle.holds(
        when,
        {**m, **labels[0], "attributes": attributes},
        {**about, **labels[1]},
    )
    assert holds(predicate, facts) == meant


def refused_or_read(when: str) -> None:
    """Read a predicate that stands in a file; a refusal must point into its line."""
    source = f"when: {when}".replace("\n", " ")
    mark = Mark("policy.yaml", 3, 7, max(1, len(when)), source)
    try:
        parse_predicate(
            Scalar(Kind.TEXT, when, quoted=True, mark=mark), "w", VOCABULARY
        )
    except InputError as error:
        for problem in error.problems:
            assert problem.mark is not None
            assert problem.mark.line == 3
            assert 7 <= problem.mark.column <= len(source) + 1
            assert problem.render()


@settings(max_examples=examples(400))
@given(st.text(max_size=60))
def test_no_text_crashes_the_reader_of_predicates(when: str) -> None:
    refused_or_read(when)


PIECES = (
    *("m", "release", ".", ".ml", ".attributes", ".cost", ".x", "[", "]", "(", ")"),
    *("==", "!=", "=", "<", ">=", "in", "&&", "||", "!", "-", "+", "?", ":", ","),
    *('"none"', "'none'", '"', "'", '"""', 'r"none"', 'b"x"', "\\", "//", "\n"),
    *("true", "false", "null", "0", "1.5", "0x1F", "2u", "{", "}", "size(", "has("),
    *("exists(a, a == 'x')", "as", "for", "é", "💥", "\u2028", "\t", "m.ml == 'none'"),
)


@settings(max_examples=examples(600))
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["", " "]))
def test_nothing_that_looks_like_cel_crashes_the_reader(
    pieces: list[str], between: str
) -> None:
    refused_or_read(between.join(pieces))


EXAMPLE = Path(modicum.__file__).parent / "ops" / "examples" / "acme-health"
BROKEN = (
    *(
        ": ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "- ",
        '"',
        "'",
        "\n",
        "  ",
        "#",
        "&a ",
        "*a",
        "<<",
    ),
    *("!!str ", "1e-7", ".nan", "null", "true", "unlimited", "same", "map", "eps", "|"),
    *("\t", "\\", "?", "%", "@", "\u2028", "\x85", "é", "💥", "-1", "1e400", "m.ml"),
)


@pytest.mark.parametrize("name", ["policy.yaml", "releases"])
@settings(max_examples=examples(150))
@given(st.data())
def test_no_broken_file_crashes_the_reader(name: str, data: st.DataObject) -> None:
    """Something is cut out of a good file or put in: it is read, or refused."""
    files = sorted((EXAMPLE / name).glob("*.yaml")) or [EXAMPLE / name]
    text = data.draw(st.sampled_from(files)).read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.sampled_from([0, 0, 1, 2, 5, 20, 100]))
        text = text[:start] + data.draw(st.sampled_from(["", *BROKEN])) + text[end:]

    vocabulary = modicum.load_policy(EXAMPLE / "policy.yaml").policy.vocabulary

    def read() -> None:
        if name == "policy.yaml":
            compile_text(text.encode(), name)
        else:
            node = read_document(text.encode(), name)
            price(parse_release(node, vocabulary), vocabulary)

    error = refusal(read)
    if error is not None:
        assert error.render().startswith("error[MOD")
        for mark in (problem.mark for problem in error.problems):
            assert (
                mark is None or mark.column <= len(mark.source) + 1 or not mark.source
            )


# --- keys ----------------------------------------------------------------------

#: Mappings whose keys are names that the policy makes up.
OPEN = (
    ("units",),
    ("labels",),
    ("schema", "categories"),
    ("schema", "attributes"),
    ("extensions", "*", "settings"),
)


VALUES: tuple[Any, ...] = (1, "same", "member", None, True, {}, [1], "low")


def mappings(
    value: Any, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Written]]:
    """Yield every mapping inside a value, with the way to it."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from mappings(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from mappings(item, (*path, place))


def is_closed(path: tuple[Any, ...]) -> bool:
    """Return whether the format, not the policy, says which keys a mapping has."""
    return tuple("*" if isinstance(part, int) else part for part in path) not in OPEN


@pytest.mark.spec("POL-1")
@settings(max_examples=examples(10), phases=NO_SHRINKING)
@given(
    policies().filter(expected_rules),
    st.sampled_from(["zzz", "eps_", "Name", "static", "rdp"]),
    st.permutations(VALUES),
)
def test_an_unknown_key_in_any_mapping_of_a_policy_is_an_error(
    policy: Written, key: str, values: list[Any]
) -> None:
    def read() -> CompiledPolicy:
        text = spelled(policy).replace("None", "null")
        return compile_text(text.encode(), "policy.yaml")

    for number, (path, mapping) in enumerate(list(mappings(policy))):
        if not is_closed(path):
            continue
        mapping[key] = values[number % len(values)]
        error = refusal(read)
        assert error is not None, path
        assert any(problem.mark is not None for problem in error.problems)
        del mapping[key]


@pytest.mark.spec("REL-1")
@settings(max_examples=examples(100))
@given(st.data())
def test_an_unknown_key_in_any_mapping_of_a_release_is_an_error(
    data: st.DataObject,
) -> None:
    vocabulary = Vocabulary(
        frozenset({"age", "low_risk"}),
        {name: Label(values, values[0]) for name, values in LABELS.items()},
        ("user", "day"),
        "add-remove",
    )
    release = data.draw(
        releases(
            {"schema": {"attributes": {"age": "low"}}, "labels": small()["labels"]}
        )
    )
    common: Written = {"attributes": ["age"]}
    release["mechanisms"] += [
        {
            **common,
            "mechanism": "gaussian",
            "sensitivity": {"user": {"l2": 1}, "day": {"l2": 1}},
            "sigma": 2,
        },
        {
            **common,
            "mechanism": "randomized-response",
            "truth": Decimal("0.75"),
            "contribution_bound": {"user": 2, "day": 1},
            "public_frame": True,
        },
    ]
    price(parse_release(from_python(release), vocabulary), vocabulary)
    path, mapping = data.draw(st.sampled_from(list(mappings(release))))
    key = data.draw(
        st.sampled_from(
            ["zzz", "Name", "l1", "rdp", "rho", "where", "sampling", "scale"]
        )
    )
    assume(key not in mapping)
    mapping[key] = data.draw(
        st.sampled_from([1, "x", True, {}, {"l2": 1}, [], Decimal(2)])
    )
    text = spelled(release)
    node = read_document(text.encode(), "release.yaml")
    error = refusal(lambda: price(parse_release(node, vocabulary), vocabulary))
    assert error is not None, path
    assert all(problem.mark is not None for problem in error.problems)


# --- the digest ----------------------------------------------------------------

COMMENTS = st.sampled_from(["", "", "  # so be it", "   "])
PLAIN_WORD = frozenset(
    {*ATTRIBUTES, *CATEGORIES, *RISKS, *LEVELS, *LABELS, "name", "when", "unit"}
)


def in_other_words(draw: st.DrawFn, value: Any, indent: int) -> str:
    """Return a value as YAML in some other layout, quoting and spelling."""
    if not value or not isinstance(value, dict | list) or draw(st.booleans()):
        return in_flow(draw, value) + draw(COMMENTS)
    if isinstance(value, list):
        heads = [("-", item) for item in value]
    else:
        heads = [(f"{in_flow(draw, key)}:", item) for key, item in value.items()]
    lines = [draw(st.sampled_from(["", "  # a note", "\n# a note\n"]))]
    for head, item in heads:
        deeper = indent + draw(st.integers(1, 3))
        lines.append(f"{' ' * indent}{head} {in_other_words(draw, item, deeper)}")
    return "\n".join(lines)


def in_flow(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{in_flow(draw, k)}: {in_flow(draw, v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(in_flow(draw, item) for item in value) + "]"
    if isinstance(value, int | Decimal):
        forms = (f"{value}", f"{value:f}", f"+{value}", f"{value:e}", f"{value:E}")
        return draw(st.sampled_from([*forms, f"{value:f}".lstrip("0") or "0"]))
    if value == "unlimited" or (value in PLAIN_WORD and draw(st.booleans())):
        return str(value)
    single = "'" not in value and "\n" not in value and draw(st.booleans())
    return f"'{value}'" if single else json.dumps(value)


@st.composite
def two_spellings(draw: st.DrawFn) -> tuple[str, str]:
    policy = draw(policies().filter(expected_rules))
    return spelled(policy), in_other_words(draw, policy, 0)


@pytest.mark.spec("POL-6")
@settings(max_examples=examples(60))
@given(two_spellings())
def test_layout_quotes_comments_and_spelling_leave_the_digest(
    texts: tuple[str, str],
) -> None:
    assert digest_of(texts[0]) == digest_of(texts[1])


def changes(policy: Written) -> Iterator[Written]:
    """Yield the policy with one number, word or order changed."""
    for text, other in (
        ('"low"', '"medium"'),
        ('"member"', '"weak"'),
        ('"user_id"', '"id"'),
        ('"generated"', '"Generated"'),
        ('"true"', '"false || true"'),
        ('"last"', '"unlimited"'),
        ('"linear"', '"floor"'),
        ('"same"', '{"scale": 1}'),
    ):
        changed = spelled(policy).replace(text, other, 1)
        if changed != spelled(policy):
            yield {"text": changed}
    for key in ("policies", "extensions"):
        if len(policy[key]) > 1:
            yield {"text": spelled({**policy, key: policy[key][::-1]})}
    for path, mapping in mappings(policy):
        for key, value in mapping.items():
            if isinstance(value, Decimal):
                mapping[key] = value + Decimal("1e-20")
                yield {"text": spelled(policy)}
                mapping[key] = value
        if len(mapping) > 1 and path != ():
            last = next(reversed(mapping))
            value = mapping.pop(last)
            yield {"text": spelled(policy)}
            mapping[last] = value


@pytest.mark.spec("POL-6")
@settings(max_examples=examples(12), phases=NO_SHRINKING)
@given(policies().filter(expected_rules))
def test_every_change_of_what_is_said_changes_the_digest(policy: Written) -> None:
    digests = [digest_of(spelled(policy))]
    for changed in changes(policy):
        try:
            digests.append(digest_of(changed["text"]))
        except InputError:
            continue  # What is no policy has no digest.
    assert len(set(digests)) == len(digests)
