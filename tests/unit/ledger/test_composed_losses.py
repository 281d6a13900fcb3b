"""Rules for single releases, by the distribution of the whole release's loss."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from samples.parted import TODAY, priced
from samples.small import workspace
from samples.stored import before_sixth, to_plain

from modicum.accounting.privacy_loss import batches
from modicum.accounting.privacy_loss.pairs import (
    Batch,
    discrete_gaussian_pair,
    discrete_laplace_pair,
    gaussian_pair,
    laplace_pair,
    merged,
    pair_of_loss,
    response_pair,
    sampled_gaussian_pair,
)
from modicum.core.canonical import digest, encode
from modicum.ledger import (
    GENESIS,
    Balances,
    Record,
    RecordedRelease,
    audit,
    decide,
    read_record,
)
from modicum.ledger.decision import loss_pairs
from modicum.ledger.decision.amounts import amounts, approximation
from modicum.ledger.decision.charges import charged
from modicum.ledger.decision.loss_pairs import batch_of, pairs_of
from modicum.ledger.decision.single_release import RuleLoss, allows_alone
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.codec import release_from_plain, release_to_plain
from modicum.ledger.log.events import EVENT_VERSION, ReleaseDenied, ReleaseReserved
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text

Written = dict[str, Any]

POLICY = """
modicum: policy/v1
name: composed
units:
  user: {id: user_id}
  visit: {id: visit_id, within: user}
schema:
  attributes: {age: low, pay: low}
policies:
  - {name: all, when: "true", unit: user, budget: {eps: 90, delta: 1e-4}}
per_release:
  - {name: once, when: "true", unit: user, budget: BUDGET}
"""


@cache
def policy(budget: str = "{eps: 4.8, delta: 1e-6}", also: str = "") -> CompiledPolicy:
    return compile_text((POLICY.replace("BUDGET", budget) + also).encode(), "p.yaml")


def written(kind: str, norm: str = "", moved: object = 1, **more: object) -> Written:
    given = {"sensitivity": {"user": {norm: moved}, "visit": {norm: moved}}}
    return {
        "mechanism": kind,
        "attributes": ["age"],
        **(given if norm else {}),
        **{key.replace("_", "-"): value for key, value in more.items()},
    }


def released(*mechanisms: Written, compiled: CompiledPolicy) -> RecordedRelease:
    named = [{**one, "name": f"m{place}"} for place, one in enumerate(mechanisms)]
    return priced({"release": "asked", "mechanisms": named}, compiled)


def once(compiled: CompiledPolicy, asked: RecordedRelease) -> RuleLoss:
    verdict = decide(Balances(compiled), asked, TODAY)
    (found,) = (one for one in verdict.losses if one.rule.id == "once")
    blocks = "once" in verdict.blocking
    assert found.allowed != blocks
    return found


def laplaces(compiled: CompiledPolicy, count: int = 100) -> RecordedRelease:
    """Return Laplace noise so often that sums of its losses say 4.98 at 1e-6."""
    noise = [written("laplace", "l1", scale=10)] * count
    return released(*noise, compiled=compiled)


@pytest.mark.spec("DEC-13")
def test_what_only_the_distribution_allows_is_allowed() -> None:
    compiled = policy()
    found = once(compiled, laplaces(compiled))
    assert found.allowed
    assert found.cells_denying == 0
    assert found.composed == batches.batch_epsilon(
        merged([(laplace_pair(Fraction(1, 10))[0][0], 100)]), Fraction(1, 10**6)
    )
    shown, near = amounts(found), approximation(found)
    assert shown.together == shown.alone == found.composed
    assert shown.together <= shown.limit
    assert near is not None
    assert (near.together.units, near.together.method) == (found.composed, "pld")


@pytest.mark.spec("DEC-3")
def test_what_it_denies_shows_the_least_that_is_proven() -> None:
    compiled = policy("{eps: 4.6, delta: 1e-6}")
    found = once(compiled, laplaces(compiled))
    assert not found.allowed
    shown = amounts(found)
    assert shown.together == found.composed
    assert shown.together > shown.limit


@pytest.mark.parametrize("eps", ["4.6", "4.8"])
def test_pruned_rules_decide_alike(eps: str) -> None:
    also = "  - {name: wide, when: 'true', unit: user, budget: {eps: 4.9, delta: 1e-6}}"
    compiled = policy(f"{{eps: {eps}, delta: 1e-6}}", also)
    balances, asked = Balances(compiled), laplaces(compiled)
    verdict = decide(balances, asked, TODAY)
    assert allows_alone(balances, asked, TODAY) == verdict.allowed == (eps == "4.8")


@pytest.mark.spec("DEC-13")
def test_decisions_before_version_6_are_made_as_they_were() -> None:
    compiled = policy()
    asked = laplaces(compiled)
    plain = release_to_plain(asked)
    assert isinstance(plain, dict)
    assert once(compiled, release_from_plain(plain, 6)).allowed
    former = with_fields(
        asked, mechanisms=tuple(replace(one, derived=None) for one in asked.mechanisms)
    )
    balances = Balances(compiled)
    for release, allowed in ((asked, True), (former, False), (asked, True)):
        assert decide(balances, release, TODAY).allowed == allowed


def test_equal_losses_of_other_mechanisms_are_not_confused() -> None:
    compiled = policy("{eps: 1.4, delta: 1e-6}")
    stated = [written("discrete-gaussian", "l2", sigma=10)] * 10
    declared = [
        {
            "mechanism": "declared",
            "attributes": ["age"],
            "cost": {"user": {"rho": 0.005}, "visit": {"rho": 0.005}},
        }
    ] * 10
    both = [released(*one, compiled=compiled) for one in (stated, declared)]
    assert both[0].mechanisms[0].losses == both[1].mechanisms[0].losses
    for releases in (both, both[::-1]):
        balances = Balances(compiled)
        found = [decide(balances, one, TODAY).allowed for one in releases]
        assert found == [one is both[0] for one in releases]


def test_it_is_computed_only_where_sums_deny_and_it_may_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Batch] = []
    exact = batches.batch_epsilon

    def counted(batch: Batch, delta: Fraction) -> int | None:
        asked.append(batch)
        return exact(batch, delta)

    monkeypatch.setattr(batches, "batch_epsilon", counted)
    for budget in ("{eps: 6, delta: 1e-6}", "{eps: 0.5, delta: 1e-6}", "{rho: 0.1}"):
        once(policy(budget), laplaces(policy(budget)))
    assert not asked
    compiled = policy("{eps: 4.7, delta: 1e-6}")
    balances = Balances(compiled)
    for _ in range(3):
        decide(balances, laplaces(compiled), TODAY)
    assert len(asked) == 1


_ONCE_A_STREAM = {"l2": 1, "participations": 1}
KINDS: dict[str, tuple[Written, Batch | None]] = {
    "laplace": (
        written("laplace", "l1", 3, scale=10),
        laplace_pair(Fraction(3, 10)),
    ),
    "discrete-laplace": (
        written("discrete-laplace", "l1", 3, scale=10),
        discrete_laplace_pair(3, Fraction(10)),
    ),
    "gaussian": (
        written("gaussian", "l2", 2, sigma=10),
        gaussian_pair(Fraction(1, 25)),
    ),
    "discrete-gaussian": (
        written("discrete-gaussian", "l2", 1.5, sigma=10),
        discrete_gaussian_pair(Fraction(3, 2), Fraction(10)),
    ),
    "response": (
        written(
            "randomized-response",
            truth=0.7,
            values=3,
        )
        | {"contribution_bound": {"user": 4, "visit": 1}, "public_frame": True},
        response_pair(Fraction(7, 10), 3, 4),
    ),
    "sampled": (
        written("gaussian", "l2", 2, sigma=10)
        | {"sampling": {"unit": "user", "rate": 0.1}},
        sampled_gaussian_pair(Fraction(1, 10), Fraction(5)),
    ),
    "dp-sgd": (
        written("dp-sgd", noise_multiplier=2, steps=30)
        | {"sampling": {"unit": "user", "rate": 0.1}},
        sampled_gaussian_pair(Fraction(1, 10), Fraction(2), 30),
    ),
    "declared with parameters": (
        written("laplace", "l1", scale=10)
        | {"cost": {"user": {"eps": 0.2}, "visit": {"eps": 0.2}}},
        None,
    ),
    "the best of several runs": (
        written("laplace", "l1", scale=10)
        | {"selection": {"distribution": "geometric", "gamma": 0.5}},
        None,
    ),
    "sampled and the best of several runs": (
        written("gaussian", "l2", sigma=10)
        | {"selection": {"distribution": "geometric", "gamma": 0.5}}
        | {"sampling": {"unit": "user", "rate": 0.1}},
        None,
    ),
    "a stream": (
        written("binary-tree", sigma=10, steps=30)
        | {"sensitivity": dict.fromkeys(["user", "visit"], _ONCE_A_STREAM)},
        None,
    ),
    "sampled by another unit": (
        written("laplace", "l1", scale=10)
        | {"sampling": {"unit": "visit", "rate": 0.1}},
        None,
    ),
    "too far": (written("discrete-gaussian", "l2", 2, sigma=10), None),
    "exponential": (written("exponential", "linf", eps=0.1), None),
}


@pytest.mark.parametrize("name", KINDS)
def test_pairs_are_those_of_the_description_or_of_the_charge(name: str) -> None:
    compiled = policy()
    one, expected = KINDS[name]
    (mechanism,) = released(one, compiled=compiled).mechanisms
    vocabulary = compiled.policy.vocabulary
    found = batch_of([pairs_of(mechanism, "user", vocabulary)])
    if expected is None:
        of_charge = pair_of_loss(charged(mechanism, "user", vocabulary))
        assert found == (None if of_charge is None else merged(of_charge))
    else:
        assert found == merged(expected)
    # What follows from another unit has the pair of its charge.
    derived = replace(mechanism, derived=("user", "visit"))
    of_charge = pair_of_loss(charged(mechanism, "user", vocabulary))
    found = batch_of([pairs_of(derived, "user", vocabulary)])
    assert found == (None if of_charge is None else merged(of_charge))


def test_a_loss_under_another_relation_has_the_pair_of_its_charge() -> None:
    compiled = policy()
    changed = POLICY.replace("user_id}", "user_id, neighbors: substitute}")
    now = compile_text(changed.replace("BUDGET", "{eps: 9, delta: 1e-6}").encode(), "p")
    (one,) = laplaces(compiled, 1).mechanisms
    found = batch_of([pairs_of(one, "user", now.policy.vocabulary)])
    assert found is not None
    assert found == pair_of_loss(charged(one, "user", now.policy.vocabulary))
    assert found[0][0].numbers == (Fraction(1, 5),)


def test_a_release_takes_so_much_work_whatever_rules_it_matches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A denial costs no budget: it must not cost others their time, or an audit's."""
    each = [
        f'  - {{name: at-{n}, when: "true", unit: user,'
        f" budget: {{eps: {4.5 - n / 100}, delta: {n}e-7}}}}\n"
        for n in range(2, 9)
    ]
    compiled = compile_text(
        (POLICY.replace("BUDGET", "{eps: 4.5, delta: 1e-7}") + "".join(each)).encode(),
        "p.yaml",
    )
    asked: list[int] = []
    exact = batches.batch_epsilon

    def counted(batch: Batch, delta: Fraction) -> int | None:
        asked.append(batches.work(batch))
        return exact(batch, delta)

    monkeypatch.setattr(batches, "batch_epsilon", counted)
    noise = [written("laplace", "l1", scale=10 + Fraction(n, 1000)) for n in range(100)]
    assert not decide(
        Balances(compiled), released(*noise[:40], *noise[:40], compiled=compiled), TODAY
    ).allowed
    assert asked
    assert sum(asked) <= batches.WORK_MAX


@pytest.mark.parametrize("last", [[], [written("exponential", "linf", eps=0.0001)]])
def test_each_mechanism_is_read_once_however_many_rules_deny(
    last: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules and mechanisms may be a thousand each, and a turn waits for both."""
    each = [
        f'  - {{name: r{n}, when: "true", unit: user,'
        f" budget: {{eps: 4.{n}, delta: 1e-7}}}}\n"
        for n in range(1, 9)
    ]
    compiled = policy("{eps: 4.5, delta: 1e-7}", "".join(each))
    noise = [written("laplace", "l1", scale=10 + Fraction(n, 1000)) for n in range(80)]
    asked = released(*noise, *last, compiled=compiled)
    read: list[object] = []
    exact = loss_pairs.pairs_of

    def counted(one: Any, unit: str, vocabulary: Any) -> Batch | None:
        read.append(one)
        return exact(one, unit, vocabulary)

    monkeypatch.setattr(loss_pairs, "pairs_of", counted)
    assert not decide(Balances(compiled), asked, TODAY).allowed
    assert 0 < len(read) <= len(asked.mechanisms)


# --- in a log -------------------------------------------------------------------------


@pytest.mark.spec("DEC-13")
@pytest.mark.parametrize("version", [5, EVENT_VERSION])
def test_an_audit_expects_it_of_entries_since_version_6(
    version: int, tmp_path: Path
) -> None:
    budget = "{eps: 4.8, delta: 1e-6}"
    ws = workspace(tmp_path, policy=POLICY.replace("BUDGET", budget))
    noise = [
        {**written("laplace", "l1", scale=10), "name": f"m{n}"} for n in range(100)
    ]
    assert ws.submit({"release": "asked", "mechanisms": noise}).allowed
    assert ws.verify().decisions == 1
    first, last = ws.records()
    activated = read_record(first, 1, GENESIS)
    reserved = read_record(last, 2, first.hash).body
    assert isinstance(reserved, ReleaseReserved)
    denied = ReleaseDenied(reserved.release, reserved.policy, ("once",))
    for body, right in ((reserved, version >= 6), (denied, version < 6)):
        log: list[Record] = []
        for event in (activated, with_fields(activated, body=body)):
            plain = {**to_plain(event), "v": version}
            previous = log[-1].hash if log else GENESIS
            stored = plain if version >= 6 else before_sixth(plain)
            whole: Any = {"seq": len(log) + 1, "prev": previous, "event": stored}
            payload = encode(whole)
            log.append(Record(len(log) + 1, payload, digest(payload)))
        if right:
            assert audit(log).decisions == 1
        else:
            with pytest.raises(ChainBreakError, match="does not follow"):
                audit(log)
