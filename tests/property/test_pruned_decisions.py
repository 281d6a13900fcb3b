"""Pruning changes no decision; and what is kept is not kept for nothing.

Every decision on all rules is compared with the one on the constraining rules only.
In the other direction, ledgers are built in which a kept rule is the only one to deny.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import TypeAlias

import pytest
from budget import examples, seed
from msgspec import structs
from samples import ledgers

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.accounting.grid import EPS
from modicum.ledger import Balances, Verdict, decide
from modicum.ledger.decision.balances import charges
from modicum.ledger.decision.decide import allows
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy, Rule
from modicum.release import Relation

NOTHING = Loss((0,) * COORDINATES)
CHANGE: Relation = "any-change"


def dice(what: str, number: int) -> random.Random:
    return random.Random(f"{what} {seed()} {number}")


def witnesses(compiled: CompiledPolicy) -> dict[str, str]:
    """Return for each pruned rule the rule that makes it superfluous, by id."""
    found: dict[str, str] = {}
    for rules, pruned in (
        (compiled.rules, compiled.pruned),
        (compiled.release_rules, compiled.pruned_alone),
    ):
        for number, witness in enumerate(pruned.witness):
            if witness >= 0:
                assert pruned.witness[witness] < 0, "a witness is kept"
                found[rules[number].id] = rules[witness].id
    return found


def nobody_denies_alone(verdict: Verdict, witness: dict[str, str]) -> None:
    """Check that where a pruned rule denies, its witness does."""
    for rule in verdict.blocking:
        assert rule not in witness or witness[rule] in verdict.blocking, rule


# --- pruning changes no decision ------------------------------------------------------


def history(
    rng: random.Random, compiled: CompiledPolicy, decisions: int
) -> Iterator[tuple[Balances, RecordedRelease]]:
    """Yield what to decide. Most of what is denied happens nonetheless."""
    balances = Balances(compiled)
    for number in range(decisions):
        release = ledgers.release(rng, number, huge=ledgers.chance(rng, 0.05))
        yield balances, release
        if decide(balances, release).allowed or ledgers.chance(rng, 0.3):
            balances.charge(release)


def test_decisions_on_all_rules_and_on_the_kept_ones_are_the_same() -> None:
    decisions, denials, pruned_rules, pruned_denials = 0, 0, 0, 0
    for number in range(examples(105)):
        rng = dice("decisions", number)
        compiled = ledgers.compiled_from(ledgers.policy_text(rng))
        witness = witnesses(compiled)
        pruned_rules += len(witness)
        for balances, release in history(rng, compiled, 10):
            verdict = decide(balances, release)
            assert allows(balances, release) == verdict.allowed, (number, verdict)
            nobody_denies_alone(verdict, witness)
            decisions += 1
            denials += not verdict.allowed
            pruned_denials += bool(witness.keys() & set(verdict.blocking))
    print(
        f"{decisions} decisions, {denials} denials, {pruned_denials} of them also by"
        f" one of {pruned_rules} pruned rules"
    )
    assert decisions >= examples(1000)
    assert decisions / 5 < denials < decisions * 4 / 5
    assert pruned_rules > examples(100)
    assert pruned_denials > decisions / 20


#: Every mechanism that the predicates of the random policies can tell apart.
READS = [reads for size in range(3) for reads in combinations(ledgers.ATTRIBUTES, size)]
LABELINGS = [
    dict(zip(ledgers.LABELS, values, strict=True))
    for values in product(*ledgers.LABELS.values())
]


def mechanism(
    reads: tuple[str, ...], labels: dict[str, str], losses: dict[str, Loss], name: str
) -> RecordedMechanism:
    return RecordedMechanism(
        description={"name": name, "kind": "declared"},
        attributes=reads,
        labels=labels,
        losses=losses,
        neighbors=dict.fromkeys(losses, CHANGE),
    )


def release_of(
    *parts: RecordedMechanism, labels: dict[str, str], purpose: str
) -> RecordedRelease:
    return RecordedRelease("r", "0" * 64, labels, {"purpose": purpose}, parts)


def only_just_too_much(compiled: CompiledPolicy, rule: Rule) -> Loss | None:
    """Return a loss that a rule denies, and that is as small as it can be."""
    own_filter = compiled.filter_of(rule.budget)
    if not own_filter.enforced:
        return None
    coordinates = [0] * COORDINATES
    for index, cap in own_filter.caps:
        coordinates[index] = min(cap, INFINITE - 1) + 1
    loss = Loss(tuple(coordinates))
    assert not own_filter.admits(Total().plus(loss))
    return loss


def test_no_pruned_rule_denies_alone_even_if_everything_is_made_for_it() -> None:
    tried = 0
    for number in range(examples(40)):
        rng = dice("alone", number)
        compiled = ledgers.compiled_from(ledgers.policy_text(rng))
        witness = witnesses(compiled)
        for rule in compiled.rules:
            loss = only_just_too_much(compiled, rule)
            if rule.id not in witness or loss is None:
                continue
            reads, labels = rng.choice(READS), rng.choice(LABELINGS)
            losses = dict.fromkeys(compiled.policy.vocabulary.units, NOTHING)
            part = mechanism(reads, labels, losses | {rule.unit: loss}, "a")
            release = release_of(
                part, labels=rng.choice(LABELINGS), purpose=rng.choice(["", "study"])
            )
            verdict = decide(Balances(compiled), release)
            nobody_denies_alone(verdict, witness)
            assert allows(Balances(compiled), release) == verdict.allowed
            tried += rule.id in verdict.blocking
    print(f"{tried} denials by a pruned rule")
    assert tried > examples(40)


# --- and what is kept matters ---------------------------------------------------------


Offer: TypeAlias = tuple[RecordedRelease, frozenset[str]]


def offers(compiled: CompiledPolicy) -> list[list[Offer]]:
    """Return releases of one mechanism, and the ids of the rules about each.

    Those of a list differ in nothing that is said of the release as a whole.
    """
    vocabulary = compiled.policy.vocabulary
    found: list[list[Offer]] = []
    for labels, purpose in product(LABELINGS, ("", "study")):
        alike: list[Offer] = []
        for reads, own, name in product(READS, LABELINGS, ("a", "b")):
            part = mechanism(reads, own, {}, name)
            release = release_of(part, labels=labels, purpose=purpose)
            about = charges(compiled.rules, release, vocabulary)
            alike.append((release, frozenset(rule.id for rule, _ in about)))
        found.append(alike)
    return found


def filled(
    compiled: CompiledPolicy, rule: Rule, offered: list[Offer]
) -> RecordedRelease | None:
    """Return a release that only this rule denies, or None if none was found.

    Each mechanism that the rule is about gets as much of pure eps as all others leave
    it; those with the fewest other rules come first.
    """
    left = {
        one.id: own.caps[0][1] + (one == rule)
        for one in compiled.rules
        if one.unit == rule.unit and (own := compiled.filter_of(one.budget)).enforced
    }
    nothing = dict.fromkeys(compiled.policy.vocabulary.units, NOTHING)
    parts: list[RecordedMechanism] = []
    mine = [(offer, about) for offer, about in offered if rule.id in about]
    for offer, about in sorted(mine, key=lambda pair: len(pair[1])):
        limited = left.keys() & about
        amount = min(left[one] for one in limited)
        for one in limited:
            left[one] -= amount
        losses = nothing | {rule.unit: pure(amount)}
        neighbors = dict.fromkeys(losses, CHANGE)
        part = offer.mechanisms[0]
        parts.append(replace(part, losses=losses, neighbors=neighbors))
    if left[rule.id]:
        return None
    return structs.replace(mine[0][0], mechanisms=tuple(parts))


def test_most_kept_rules_can_be_the_only_one_that_denies() -> None:
    kept, needed = 0, 0
    for number in range(examples(12)):
        rng = dice("needed", number)
        written = json.loads(ledgers.policy_text(rng, "eps", ordered=False))
        written.pop("per_release", None)
        compiled = ledgers.compiled_from(json.dumps(written))
        offered = offers(compiled)
        for place in compiled.pruned.kept:
            rule = compiled.rules[place]
            if not compiled.filter_of(rule.budget).enforced:
                continue
            kept += 1
            found = (filled(compiled, rule, some) for some in offered)
            release = next((one for one in found if one is not None), None)
            if release is not None:
                verdict = decide(Balances(compiled), release)
                assert verdict.blocking == (rule.id,)
                assert not allows(Balances(compiled), release)
                needed += 1
    print(f"{needed} of {kept} kept rules denied alone")
    assert kept > examples(40)
    assert needed > kept * 3 / 4


# --- between units --------------------------------------------------------------------

UNITS = """
modicum: policy/v1
name: units
units:
  user: {{id: user_id, neighbors: {relation}}}
  day: {{id: user_id, within: user, neighbors: {relation}}}
schema: {{attributes: {{age: low}}}}
policies:
  - {{name: by-user, when: "true", unit: user, budget: {{eps: 1}}}}
  - {{name: by-day, when: "true", unit: day, budget: {{eps: 2}}}}
"""


def pure(eps: int) -> Loss:
    return Loss((eps, *NOTHING.coordinates[1:]))


def a_day_costs_more(relation: Relation) -> RecordedRelease:
    """Return a release that reveals more of a day than of a whole user.

    That is no contradiction between neighbors of which one lacks the instance: to
    add a user adds all her days at once.
    """
    losses = {"user": pure(ledgers.ONE // 2), "day": pure(3 * ledgers.ONE)}
    part = RecordedMechanism(
        description={},
        attributes=("age",),
        labels={},
        losses=losses,
        neighbors={unit: relation for unit in losses if relation != "add-remove"},
    )
    return RecordedRelease("r", "0" * 64, {}, {}, (part,))


def test_a_rule_of_a_larger_unit_prunes_where_losses_hold_for_any_change() -> None:
    compiled = ledgers.compiled_from(UNITS.format(relation="any-change"))
    assert list(compiled.pruned.witness) == [-1, 0]
    verdict = decide(Balances(compiled), a_day_costs_more("any-change"))
    assert verdict.allowed  # A change of a day is a change of the user: at most 0.5.
    assert [loss.alone.units(EPS) for loss in verdict.losses] == [ledgers.ONE // 2] * 2


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_it_prunes_nothing_where_they_do_not(relation: Relation) -> None:
    compiled = ledgers.compiled_from(UNITS.format(relation=relation))
    assert list(compiled.pruned.witness) == [-1, -1]
    release = a_day_costs_more(relation)
    verdict = decide(Balances(compiled), release)
    assert verdict.blocking == ("by-day",)  # Without it, the release would pass.
    assert not allows(Balances(compiled), release)
