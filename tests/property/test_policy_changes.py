"""Policies that change: what is said of it is what decisions show."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import POLICY, compiled, counts, rule_holds

from modicum.accounting import ApproxBudget, filter_for
from modicum.accounting.budgets import parameter, with_parameter
from modicum.accounting.filters.comparison import no_looser
from modicum.api.local.explanation.conflicts import conflicts
from modicum.core.document import from_python
from modicum.ledger import Balances, RecordedRelease, decide, record_release
from modicum.ledger.decision.balances import reserved_releases
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Verdict, differences
from modicum.policy.changes.rule_comparison import Comparison
from modicum.policy.rules import Rule, Stage
from modicum.release import parse_release, price

# --- policies, releases and ledgers -------------------------------------------------

PREDICATES = (
    "true",
    'm.ml == "none"',
    'm.ml == "black-box"',
    '"age" in m.attributes',
    '"age" in m.attributes || "steps" in m.attributes',
    '"diagnosis" in m.attributes && m.ml == "none"',
    "size(m.attributes) >= 2",
    'release.purpose == "marketing"',
    '!(release.purpose == "marketing")',
)
EPS = ("0.2", "0.5", "0.8", "1", "1.1", "1.5", "2", "3")

rules = st.tuples(
    st.sampled_from(PREDICATES),
    st.sampled_from(
        [
            *(f"{{eps: {eps}, delta: 1e-7}}" for eps in EPS),
            *(f"{{eps: {eps}}}" for eps in EPS),
            *(f"{{rho: {rho}}}" for rho in ("0.005", "0.02", "0.1")),
            *(f"{{mu: {mu}}}" for mu in ("0.1", "0.3")),
            "{rdp: {2: 0.02, 8: 0.1}}",
            "{rdp: {8: 0.05}}",
            "unlimited",
        ]
    ),
)
policies = st.lists(rules, min_size=1, max_size=4)

HEAD = POLICY.split("policies:")[0] + "policies:\n"


def policy_of(
    written: list[tuple[str, str]], unmatched: str = "allow"
) -> CompiledPolicy:
    lines = (
        f"  - {{name: r{n}, when: '{when}', unit: user, budget: {budget}}}\n"
        for n, (when, budget) in enumerate(written)
    )
    return compiled(HEAD + "".join(lines) + f"unmatched: {unmatched}\n")


costs = st.one_of(
    st.builds(lambda x: {"rho": x}, st.sampled_from([0.0005, 0.004, 0.01, 0.03])),
    st.builds(lambda x: {"eps": x}, st.sampled_from([0.01, 0.1, 0.3, 0.7])),
    st.builds(lambda x: {"eps": x, "delta": 1e-9}, st.sampled_from([0.1, 0.4])),
    st.builds(lambda x: {"mu": x}, st.sampled_from([0.05, 0.2])),
)
mechanisms = st.fixed_dictionaries(
    {
        "mechanism": st.just("declared"),
        "attributes": st.lists(
            st.sampled_from(["age", "diagnosis", "steps"]), max_size=3, unique=True
        ),
        "ml": st.sampled_from(["none", "black-box"]),
        "cost": st.fixed_dictionaries({"user": costs}),
    }
)
descriptions = st.fixed_dictionaries(
    {
        "purpose": st.sampled_from(["marketing", "research"]),
        "mechanisms": st.lists(mechanisms, min_size=1, max_size=2),
    }
)
histories = st.lists(descriptions, max_size=6)


def recorded(described: dict[str, Any], number: int) -> RecordedRelease:
    vocabulary = compiled().policy.vocabulary
    node = from_python({"release": f"r-{number}", **described})
    return record_release(price(parse_release(node, vocabulary), vocabulary))


def releases_of(history: list[dict[str, Any]]) -> list[RecordedRelease]:
    return [recorded(one, number) for number, one in enumerate(history)]


def allows(
    policy: CompiledPolicy, past: list[RecordedRelease], release: RecordedRelease
) -> bool:
    return decide(Balances(policy, reserved_releases(past)), release).allowed


# --- decisions ------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(policies, rules, histories, descriptions)
def test_one_more_rule_never_allows_more(
    written: list[tuple[str, str]],
    rule: tuple[str, str],
    history: list[dict[str, Any]],
    request: dict[str, Any],
) -> None:
    past, release = releases_of(history), recorded(request, 99)
    if allows(policy_of([*written, rule]), past, release):
        assert allows(policy_of(written), past, release)


def scaled(budget: str, factor: int) -> str:
    """Return a budget with every number but delta and the orders multiplied."""
    if budget == "unlimited":
        return budget
    tokens = budget.replace("{", " { ").replace("}", " } ").replace(",", " , ").split()
    for place, token in enumerate(tokens):
        number = place and tokens[place - 1].endswith(":") and token != "{"
        if number and tokens[place - 1] != "delta:":
            tokens[place] = str(float(Fraction(token) * factor))
    return " ".join(tokens)


@settings(max_examples=examples(60), deadline=None)
@given(policies, st.integers(0, 3), st.integers(2, 5), histories, descriptions)
def test_a_looser_budget_never_denies_more(
    written: list[tuple[str, str]],
    place: int,
    factor: int,
    history: list[dict[str, Any]],
    request: dict[str, Any],
) -> None:
    past, release = releases_of(history), recorded(request, 99)
    place %= len(written)
    when, budget = written[place]
    looser = [*written[:place], (when, scaled(budget, factor)), *written[place + 1 :]]
    if allows(policy_of(written), past, release):
        assert allows(policy_of(looser), past, release)
    found = differences(policy_of(written), policy_of(looser))
    expected = [] if budget == "unlimited" else [Verdict.LOOSER]
    assert [change.verdict for change in found.rules] == expected
    back = differences(policy_of(looser), policy_of(written))
    assert [change.verdict for change in back.rules] == (expected and [Verdict.TIGHTER])
    assert not back.loosens


# --- differences ----------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(policies)
def test_nothing_differs_from_itself(written: list[tuple[str, str]]) -> None:
    one = policy_of(written)
    again = compiled("# the same\n" + one.policy.text)
    assert differences(one, again).same_document
    # Also where the documents are compared rule by rule.
    named = compiled(one.policy.text.replace("name: small", "name: other"))
    assert differences(one, named).empty


@settings(max_examples=examples(100), deadline=None)
@given(
    *(policies, policies, histories, descriptions),
    st.tuples(*[st.sampled_from(["deny", "deny", "allow"])] * 2),
)
def test_what_loosens_nothing_denies_whatever_was_denied(
    old: list[tuple[str, str]],
    new: list[tuple[str, str]],
    history: list[dict[str, Any]],
    request: dict[str, Any],
    unmatched: tuple[str, str],
) -> None:
    """The claim that a reviewer relies on, against decisions."""
    before, after = policy_of(old, unmatched[0]), policy_of(new, unmatched[1])
    past, release = releases_of(history), recorded(request, 99)
    found = differences(before, after)
    decided = decide(Balances(before, reserved_releases(past)), release)
    if not (decided.allowed or found.loosens):
        assert not allows(after, past, release)
    looser, tighter = (
        any(one.verdict is verdict for one in found.declared)
        for verdict in (Verdict.LOOSER, Verdict.TIGHTER)
    )
    then, now = (
        set(decide(Balances(one), release).unmatched) for one in (before, after)
    )
    assert looser or then <= now
    assert tighter or now <= then
    losses = decided.losses
    denying = {loss.rule.id for loss in losses if not loss.allowed}
    loosened = {change.old for change in found.rules if change.loosens}
    if denying - loosened:
        assert not allows(after, past, release)
    # Whoever covers a rule denies by itself what that rule denied.
    verdict = decide(Balances(after, reserved_releases(past)), release)
    for change in found.rules:
        if change.covered_by and change.old in denying:
            assert change.covered_by in verdict.blocking


@settings(max_examples=examples(80), deadline=None)
@given(policies, policies)
def test_differences_turned_round(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    there = differences(policy_of(old), policy_of(new))
    back = differences(policy_of(new), policy_of(old))
    mirrored = {
        Verdict.TIGHTER: Verdict.LOOSER,
        Verdict.LOOSER: Verdict.TIGHTER,
        Verdict.CHANGED: Verdict.CHANGED,
        Verdict.NEW: Verdict.REMOVED,
        Verdict.REMOVED: Verdict.NEW,
    }
    turned = [(one.new, one.old, mirrored[one.verdict].value) for one in there.rules]
    found = [(one.old, one.new, one.verdict.value) for one in back.rules]
    assert sorted(turned) == sorted(found)
    assert there.same_rules == back.same_rules


@settings(max_examples=examples(120), deadline=None)
@given(
    st.integers(1, 5 * 10**12),
    st.integers(1, 5 * 10**12),
    st.sampled_from([Fraction(1, 10**7), Fraction(1, 10**9)]),
    st.sampled_from(["combined-v1", "combined-v2", "zcdp-v1", "basic-v1"]),
    st.sampled_from([0, 1, 2, 3, 10**6]),
)
def test_budgets_by_eps_alone_are_compared_as_their_filters_are(
    one: int, other: int, delta: Fraction, name: str, near: int
) -> None:
    if near:
        other = one + near
    old, new = (ApproxBudget(Fraction(n, 10**12), delta) for n in (one, other))
    policy = compiled(POLICY.replace("dp: {", f"dp: {{filter: {name}, "))
    found = Comparison(policy, policy, Stage.HISTORY).budgets(old, new)
    first, second = filter_for(old, name), filter_for(new, name)
    assert found == (no_looser(second, first), no_looser(first, second))


# --- conflicts ------------------------------------------------------------------------


def zero_cost(policy: CompiledPolicy, rule: Rule) -> RecordedRelease | None:
    """Return a release that costs nothing and falls under a rule, if one is found."""
    from modicum.ledger.decision.balances import facts_of

    for attributes in ((), ("age",), ("diagnosis",), ("steps",), ("age", "steps")):
        for ml in ("none", "black-box"):
            for purpose in ("marketing", "research"):
                described = counts("free", rho="1e-12", attributes=attributes)
                described["mechanisms"][0]["ml"] = ml
                release = recorded({**described, "purpose": purpose}, 98)
                facts = facts_of(release, policy.policy.vocabulary)
                if rule_holds(rule, facts[0]):
                    return release
    return None


@settings(max_examples=examples(70), deadline=None)
@given(policies, histories.filter(bool))
def test_a_conflict_denies_what_costs_nothing_until_its_budget_fits(
    written: list[tuple[str, str]], history: list[dict[str, Any]]
) -> None:
    policy, past = policy_of(written), releases_of(history)
    found = {
        one.rule.id: one for one in conflicts(list(reserved_releases(past)), policy)
    }
    balances = Balances(policy, reserved_releases(past))
    for rule in policy.rules:
        own = policy.filter_of(rule.budget)
        assert (rule.id in found) == (not own.admits(balances.total(rule)))
        if rule.id not in found:
            continue
        release = zero_cost(policy, rule)
        assert release is not None
        assert rule.id in decide(balances, release).blocking
        fits = found[rule.id].fits
        if fits is not None:
            assert policy.filter_of(fits).admits(balances.total(rule))
            value, unit = parameter(fits), Fraction(1, 10**12)
            if value is not None and value > unit:
                less = with_parameter(fits, value - unit)
                assert not policy.filter_of(less).admits(balances.total(rule))
        shares = [one.share for one in found[rule.id].contributors]
        assert None in shares or sum(share for share in shares if share) == 1
