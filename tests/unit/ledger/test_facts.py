"""What predicates of a later policy see of releases made under an earlier one."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from modicum.ledger.decision.balances import facts_of
from modicum.ledger.decision.rule_matching import Matching
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy.compiler import compile_text
from modicum.policy.predicates import Scope
from modicum.release import Label, Vocabulary

POLICY = """
modicum: policy/v1
name: facts
labels: {labels}
policies: [{{name: all, when: 'm.topic == "strict"', unit: user, budget: {{rho: 1}}}}]
schema: {{attributes: {{age: low}}}}
units: {{user: {{id: user_id}}}}
"""
PURPOSE = Label(("ads", "care"), "care")


def words(**labels: Label) -> Vocabulary:
    return Vocabulary(frozenset(), labels, ("user",), "add-remove")


def recorded(labels: dict[str, str], metadata: dict[str, str]) -> RecordedRelease:
    mechanism = RecordedMechanism({"name": "a", "kind": "declared"}, (), labels, {})
    return RecordedRelease("r", "0" * 64, labels, metadata, (mechanism,))


def test_a_label_that_is_open_text_now_is_read_as_text() -> None:
    (facts,) = facts_of(recorded({"purpose": "ads", "ml": "none"}, {}), words())
    assert facts.texts[Scope.RELEASE, "purpose"] == "ads"
    assert (Scope.RELEASE, "ml") not in facts.texts


def test_open_text_that_is_a_label_now_is_read_as_label() -> None:
    vocabulary = words(purpose=PURPOSE)
    (facts,) = facts_of(recorded({}, {"purpose": "ads"}), vocabulary)
    assert facts.labels[Scope.RELEASE, "purpose"] == "ads"
    assert facts.labels[Scope.MECHANISM, "purpose"] == "ads"
    (facts,) = facts_of(recorded({}, {"purpose": "something else"}), vocabulary)
    assert facts.labels[Scope.MECHANISM, "purpose"] == "care"


def test_what_was_a_label_then_and_is_one_now_is_read_as_it_was() -> None:
    release = recorded({"purpose": "ads"}, {"evidence": "https://example.org"})
    (facts,) = facts_of(release, words(purpose=PURPOSE))
    assert facts.labels[Scope.MECHANISM, "purpose"] == "ads"


def test_what_was_open_text_is_not_mixed_up_with_what_was_not() -> None:
    text = POLICY.format(labels="{topic: {values: [strict, lax], default: strict}}")
    matching = Matching(compile_text(text.encode(), "policy.yaml"))
    mechanism = replace(recorded({}, {}).mechanisms[0], attributes=("age",))
    plain = structs.replace(recorded({}, {}), mechanisms=(mechanism,))
    lax = structs.replace(plain, metadata={"topic": "lax"})
    assert matching.of(plain).over_history
    assert not matching.of(lax).over_history
    assert matching.of(plain).over_history
