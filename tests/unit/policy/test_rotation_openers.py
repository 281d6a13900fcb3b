"""Who may open rounds: read, laid out, explained, warned of, compared."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from budget import counted, seed
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError, Problem
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Verdict, differences
from modicum.policy.document.canonical_form import reformatted
from modicum.policy.json_schema.policy import policy_schema
from modicum.policy.rule_lookup import Place
from modicum.policy.rule_profile import rule_profiles
from modicum.policy.rules import Stage

GROUPED = POLICY + "population: {groups: {immutable: [user]}}\n"
ROLES = "roles: {officer: [olga], planner: [ben, kim], head: [ruth]}\n"


def opened_by(written: str | None, roles: str = ROLES) -> CompiledPolicy:
    key = "" if written is None else f", opened_by: {written}"
    return compiled(f"{GROUPED}rotation: {{active: 12{key}}}\n{roles}")


def openers(policy: CompiledPolicy) -> tuple[str, ...] | None:
    rotation = policy.policy.rotation
    assert rotation is not None
    return rotation.opened_by


# --- reading --------------------------------------------------------------------------


def test_roles_are_read_in_their_order() -> None:
    assert openers(opened_by("[planner]")) == ("planner",)
    assert openers(opened_by("[planner, head]")) == ("planner", "head")
    assert openers(opened_by(None)) is None
    # As with approvals, a policy without roles is read, and warned of.
    assert openers(opened_by("[planner]", roles="")) == ("planner",)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("[]", Code.MISSING_KEY),
        ("", Code.WRONG_TYPE),
        ("planner", Code.WRONG_TYPE),
        ("{planner: 1}", Code.WRONG_TYPE),
        ("[7]", Code.WRONG_TYPE),
        ("[[planner]]", Code.WRONG_TYPE),
        ("['two words']", Code.BAD_NAME),
        ("[planer]", Code.UNKNOWN_CHOICE),
        ("[ben]", Code.UNKNOWN_CHOICE),  # A person is no role.
        ("[planner, officer, planner]", Code.DUPLICATE_NAME),
    ],
)
def test_every_mistake_is_told_at_its_place(written: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        opened_by(written)
    (problem,) = caught.value.problems
    assert problem.code is code
    assert problem.mark is not None
    assert problem.mark.line == len(GROUPED.splitlines()) + 1


def test_an_unknown_role_is_told_as_in_approvals() -> None:
    with pytest.raises(InputError) as here:
        opened_by("[planer]")
    with pytest.raises(InputError) as there:
        compiled(POLICY + ROLES + "activation: {need: 1, from: [planer]}\n")
    one, other = here.value.problems[0], there.value.problems[0]
    assert (one.code, one.message, one.help) == (other.code, other.message, other.help)


def test_a_mistake_in_the_roles_is_not_told_twice() -> None:
    with pytest.raises(InputError) as caught:
        opened_by("[planner]", roles="roles: {planner: []}\n")
    (problem,) = caught.value.problems
    assert "planner" in problem.message


# --- layout and schema ----------------------------------------------------------------


def test_its_layout_is_canonical() -> None:
    text = GROUPED + ROLES + "rotation:\n  opened_by: [planner]\n  active: 12.0\n"
    laid_out = reformatted(text.encode(), "policy.yaml")
    assert "rotation: {active: 12, opened_by: [planner]}\n" in laid_out
    assert reformatted(laid_out.encode(), "policy.yaml") == laid_out
    again, before = compiled(laid_out).policy, compiled(text).policy
    assert (again.rotation, again.digest) == (before.rotation, before.digest)


def test_the_digest_tells_openers_apart() -> None:
    written = (None, "[planner]", "[officer]", "[planner, officer]")
    assert len({opened_by(one).policy.digest for one in written}) == len(written)


def test_the_schema_sees_what_the_parser_sees() -> None:
    sections: Any = policy_schema()["properties"]
    schema = Draft202012Validator(sections["rotation"])
    for good in (["planner"], ["planner", "head"]):
        assert schema.is_valid({"active": 12, "opened_by": good})
        opened_by(json.dumps(good))
    bads: list[Any] = [[], "planner", None, [7], {"planner": 1}, ["two words"]]
    for bad in bads:
        assert not schema.is_valid({"active": 12, "opened_by": bad}), bad
        with pytest.raises(InputError):
            opened_by(json.dumps(bad))


# --- explained and warned of ----------------------------------------------------------


def test_a_rule_tells_who_may_open_rounds() -> None:
    def unlocking(policy: CompiledPolicy) -> str:
        (found,) = rule_profiles(policy, [Place(Stage.HISTORY, 0)])
        return found.unlocking

    told = unlocking(opened_by("[planner, head]"))
    assert told == unlocking(opened_by(None)) + "; planner or head may open rounds"


def warned(policy: CompiledPolicy) -> list[Problem]:
    return [one for one in policy.warnings if one.code is Code.NEEDS_APPROVAL]


def test_rounds_that_anybody_opens_are_warned_of_where_there_are_roles() -> None:
    (warning,) = warned(opened_by(None))
    assert "anybody" in warning.message
    assert warning.mark is not None
    assert "opened_by: [officer]" in str(warning.help)
    assert not warned(opened_by("[officer]"))
    assert not warned(opened_by(None, roles=""))
    assert not warned(opened_by(None, roles="roles: {}\n"))
    assert not warned(compiled(GROUPED + ROLES))


def test_rounds_that_nobody_opens_are_warned_of() -> None:
    (warning,) = warned(opened_by("[planner]", roles=""))
    assert "nobody" in warning.message
    assert "roles: {planner: [PERSON]}" in str(warning.help)


# --- changes --------------------------------------------------------------------------


def told(old: str | None, new: str | None) -> list[tuple[Verdict, str]]:
    found = differences(opened_by(old), opened_by(new))
    return [(one.verdict, one.text) for one in found.declared]


def test_a_change_says_who_may_open_rounds() -> None:
    assert told(None, "[planner, head]") == [
        (
            Verdict.TIGHTER,
            "rounds are opened by planner or head only, before by anybody",
        )
    ]
    assert told("[planner]", None) == [
        (Verdict.LOOSER, "rounds are opened by anybody, before by planner only")
    ]
    assert told("[planner]", "[officer, planner, head]") == [
        (Verdict.LOOSER, "who may open rounds: adds officer, head")
    ]
    assert told("[officer, planner]", "[planner]") == [
        (Verdict.TIGHTER, "who may open rounds: drops officer")
    ]
    assert told("[officer]", "[planner]") == [
        (Verdict.LOOSER, "who may open rounds: adds planner"),
        (Verdict.TIGHTER, "who may open rounds: drops officer"),
    ]
    assert told("[officer, planner]", "[planner, officer]") == []


def test_a_new_rotation_says_who_opens_its_rounds() -> None:
    found = differences(compiled(GROUPED + ROLES), opened_by("[planner]"))
    (one,) = found.declared
    assert one.verdict is Verdict.TIGHTER
    assert one.text.endswith("retired closed, rounds opened by planner")


def test_whatever_lets_somebody_more_open_rounds_loosens() -> None:
    """Both ways, over all sets of people: a role looser, its people looser."""
    rng = random.Random(f"openers {seed()}")
    everybody = {"ann", "ben", "kim", "lea"}
    subsets = [
        "[" + ", ".join(some) + "]"
        for count in (1, 2, 3)
        for some in itertools.combinations(("a", "b", "c"), count)
    ]
    loosened = 0
    for _ in range(counted(60)):
        sides = []
        for _ in range(2):
            people = {
                role: rng.sample(sorted(everybody), rng.randint(1, 2)) for role in "abc"
            }
            written = rng.choice([None, *subsets])
            policy = opened_by(written, f"roles: {json.dumps(people)}\n")
            may = {
                one
                for role in openers(policy) or ()
                for one in (policy.policy.roles or {})[role]
            }
            sides.append((policy, everybody if written is None else may))
        (old, before), (new, after) = sides
        if after - before:
            assert differences(old, new).loosens
            loosened += 1
    assert loosened > counted(60) // 4
