"""How user groups take turns: read, laid out, explained, warned of, compared."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from budget import examples, seed
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from samples import divided
from samples.small import POLICY, compiled

from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX, Unlocking
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.cells.axes import space_of
from modicum.ops.files.documents import load_policy
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Differences, Verdict, differences
from modicum.policy.document.canonical_form import reformatted
from modicum.policy.json_schema.policy import policy_schema
from modicum.policy.model import Retired, RotationRule
from modicum.policy.rule_lookup import Place
from modicum.policy.rule_profile import RuleProfile, rule_profiles
from modicum.policy.rules import Stage
from modicum.policy.user_groups import grouped_through

GROUPED = POLICY + "population: {groups: {immutable: [user]}}\n"
DAYS = (
    "units: {user: {id: user_id}, user-day: {id: user_id,"
    " time: {column: at, period: day}, within: user}}"
)
WITH_DAYS = POLICY.replace("units: {user: {id: user_id}}", DAYS)


def turning(rotation: str, policy: str = GROUPED) -> CompiledPolicy:
    return compiled(f"{policy}rotation: {rotation}\n")


def rule_of(rotation: str) -> RotationRule:
    found = turning(rotation).policy.rotation
    assert found is not None
    return found


def refused(rotation: str, policy: str = GROUPED) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        turning(rotation, policy)
    return list(caught.value.problems)


# --- reading --------------------------------------------------------------------------


def test_a_rotation_is_read_exactly() -> None:
    found = rule_of("{active: 12, slack: 0.4, retired: first-come}")
    assert found == RotationRule(Unlocking(12, Fraction(2, 5)), Retired.FIRST_COME)
    assert found.mark is not None
    assert rule_of("{active: 1}") == RotationRule(
        Unlocking(1, Fraction(0)), Retired.CLOSED
    )
    assert rule_of("{active: 3, retired: closed}").retired is Retired.CLOSED
    thirds = rule_of("{active: 3, slack: 0.3333333333333333333333}")
    assert thirds.schedule.slack == Fraction(3333333333333333333333, 10**22)
    assert compiled(GROUPED).policy.rotation is None


@pytest.mark.parametrize("written", ["1", "1.0", "0", "0.0", "1e0", "5e-1"])
def test_the_ends_of_the_slack_are_allowed(written: str) -> None:
    assert rule_of(f"{{active: 2, slack: {written}}}").schedule.slack == Fraction(
        written
    )


@pytest.mark.parametrize(
    ("rotation", "codes"),
    [
        ("{}", [Code.MISSING_KEY]),
        ("{slack: 0.4}", [Code.MISSING_KEY]),
        ("", [Code.WRONG_TYPE]),
        ("12", [Code.WRONG_TYPE]),
        ("[{active: 12}]", [Code.WRONG_TYPE]),
        ("{active: 0}", [Code.OUT_OF_RANGE]),
        ("{active: -3}", [Code.OUT_OF_RANGE]),
        ("{active: 1.5}", [Code.OUT_OF_RANGE]),
        (f"{{active: {ROUNDS_MAX + 1}}}", [Code.OUT_OF_RANGE]),
        ("{active: '12'}", [Code.NOT_A_NUMBER]),
        ("{active: 12, slack: 1.0000000001}", [Code.OUT_OF_RANGE]),
        ("{active: 12, slack: -0.1}", [Code.OUT_OF_RANGE]),
        ("{active: 12, slack: .nan}", [Code.OUT_OF_RANGE]),
        ("{active: 12, slack: some}", [Code.NOT_A_NUMBER]),
        ("{active: 12, retired: open}", [Code.UNKNOWN_CHOICE]),
        ("{active: 12, retired: true}", [Code.WRONG_TYPE]),
        ("{active: 12, rounds: 3}", [Code.UNKNOWN_KEY]),
        ("{active: 0, slack: 2}", [Code.OUT_OF_RANGE, Code.OUT_OF_RANGE]),
    ],
)
def test_every_mistake_is_told_at_its_place(rotation: str, codes: list[Code]) -> None:
    found = refused(rotation)
    assert [problem.code for problem in found] == codes
    assert all(problem.mark is not None for problem in found)
    lines = {problem.mark.line for problem in found if problem.mark is not None}
    assert lines == {len(GROUPED.splitlines()) + 1}


def test_the_most_rounds_are_allowed() -> None:
    assert rule_of(f"{{active: {ROUNDS_MAX}}}").schedule.rounds == ROUNDS_MAX


def test_a_mistake_in_the_population_is_not_told_twice() -> None:
    (problem,) = refused(
        "{active: 12}", POLICY + "population: {groups: {immutable: [usr]}}\n"
    )
    assert problem.code is Code.UNKNOWN_UNIT


# --- turns of nobody ------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        POLICY,
        POLICY + "population: {partition_by: {country: 3}}\n",
        POLICY + "population: {groups: {immutable: []}}\n",
        WITH_DAYS + "population: {groups: {immutable: [user-day]}}\n",
        POLICY.split("policies:")[0]
        + 'per_release: [{name: one, when: "true", unit: user, budget: 1}]\n'
        + "population: {groups: {immutable: [user]}}\n",
    ],
)
def test_a_rotation_needs_a_rule_that_is_added_up_by_group(policy: str) -> None:
    compiled(policy)
    (problem,) = refused("{active: 12}", policy)
    assert problem.code is Code.KEYS_CONFLICT
    assert problem.mark is not None
    assert problem.help


def test_a_smaller_unit_takes_the_turns_of_the_one_it_lies_in() -> None:
    only_days = WITH_DAYS.replace("unit: user,", "unit: user-day,") + (
        "population: {groups: {immutable: [user]}}\n"
    )
    assert turning("{active: 12}", only_days).policy.rotation is not None


def test_units_take_turns_exactly_where_cells_are_told_apart_by_group() -> None:
    rng = random.Random(f"turns {seed()}")
    seen = set()
    for _ in range(examples(150)):
        vocabulary = divided.policy(rng).policy.vocabulary
        for unit in vocabulary.units:
            grouped = space_of(unit, vocabulary).grouped
            through = grouped_through(unit, vocabulary)
            assert bool(through) is grouped
            assert set(through) <= vocabulary.population.grouped
            relation = vocabulary.relation(unit)
            own = unit in vocabulary.population.grouped
            seen.add((grouped, own, relation == "add-remove"))
    # Groups that are inherited, and ones that a change may lead out of.
    assert {(True, False, True), (True, False, False), (False, False, False)} <= seen


# --- layout and schema ----------------------------------------------------------------


def test_its_layout_is_canonical_and_keeps_comments() -> None:
    text = GROUPED + (
        "# how groups take turns\nrotation:\n  retired: first-come\n"
        "  slack: 0.40\n  active: 12.0\n"
    )
    laid_out = reformatted(text.encode(), "policy.yaml")
    assert (
        "# how groups take turns\n"
        "rotation: {active: 12, slack: 0.4, retired: first-come}\n"
    ) in laid_out
    assert laid_out.index("population:") < laid_out.index("rotation:")
    assert laid_out.index("rotation:") < laid_out.index("policies:")
    assert reformatted(laid_out.encode(), "policy.yaml") == laid_out
    again, before = compiled(laid_out).policy, compiled(text).policy
    assert (again.rotation, again.digest) == (before.rotation, before.digest)


def test_the_digest_tells_rotations_apart() -> None:
    written = (
        "{active: 12}",
        "{active: 11}",
        "{active: 12, slack: 0.1}",
        "{active: 12, retired: first-come}",
    )
    digests = {turning(one).policy.digest for one in written}
    assert len(digests | {compiled(GROUPED).policy.digest}) == 5


def test_the_schema_sees_what_the_parser_sees() -> None:
    sections: Any = policy_schema()["properties"]
    schema = Draft202012Validator(sections["rotation"])
    good: list[Any] = [{"active": 1040}, {"active": 2, "slack": 1, "retired": "closed"}]
    bad: list[Any] = [
        12,
        {},
        {"active": 0},
        {"active": 1041},
        {"active": 1.5},
        {"active": 12, "slack": 1.1},
        {"active": 12, "slack": -0.1},
        {"active": 12, "slack": "0.5"},
        {"active": 12, "retired": "open"},
        {"active": 12, "rounds": 3},
    ]
    for rotation in good:
        assert schema.is_valid(rotation)
        turning(json.dumps(rotation))
    for rotation in bad:
        assert not schema.is_valid(rotation), rotation
        assert refused(json.dumps(rotation))


def test_a_rotation_may_stand_in_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("include: turns.yaml\n" + POLICY)
    (tmp_path / "turns.yaml").write_text(
        "rotation: {active: 12}\npopulation: {groups: {immutable: [user]}}\n"
    )
    found = load_policy(tmp_path / "policy.yaml")
    assert found.policy.rotation == rule_of("{active: 12}")
    assert found.policy.digest == turning("{active: 12}").policy.digest


# --- explained and warned of ----------------------------------------------------------


def profile(policy: CompiledPolicy, stage: Stage = Stage.HISTORY) -> RuleProfile:
    (found,) = rule_profiles(policy, [Place(stage, 0)])
    return found


def test_a_rule_tells_how_it_is_unlocked() -> None:
    found = profile(turning("{active: 12, slack: 0.4}"))
    assert found.unlocking == (
        "in 12 rounds for which a user group is active, slack 0.4;"
        " before, nothing, and nothing once it is retired"
    )
    found = profile(turning("{active: 1, retired: first-come}"))
    assert found.unlocking == (
        "in 1 round for which a user group is active, slack 0;"
        " before, nothing, and all that is left once it is retired"
    )


def test_what_is_not_unlocked_by_turns_says_nothing() -> None:
    rotating = turning("{active: 12}")
    assert profile(rotating, Stage.RELEASE).unlocking == ""
    assert profile(compiled(GROUPED)).unlocking == ""
    days = WITH_DAYS.replace('"true", unit: user,', '"true", unit: user-day,', 1)
    mixed = turning("{active: 2}", days + "population: {groups: {immutable: [user]}}\n")
    assert profile(mixed).unlocking


OTHERS = POLICY.replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id}, doctor: {id: doctor_id}}",
)
WITH_DOCTORS = OTHERS.replace(
    "policies:\n",
    'policies:\n  - {name: doctors, when: "true", unit: doctor, budget: BUDGET}\n',
)
GROUPS = "population: {groups: {immutable: [user]}}\n"


def warned(policy: CompiledPolicy) -> list[Problem]:
    return [one for one in policy.warnings if "rotation" in one.message]


def test_rules_that_take_no_turns_are_warned_of() -> None:
    policy = turning("{active: 12}", WITH_DOCTORS.replace("BUDGET", "1") + GROUPS)
    (warning,) = warned(policy)
    assert "`doctor`" in warning.message
    assert warning.code is Code.NEVER_TRUE
    assert warning.mark is not None
    without = compiled(WITH_DOCTORS.replace("BUDGET", "1") + GROUPS)
    assert not warned(without)
    assert not warned(turning("{active: 12}"))


def test_rules_without_a_limit_and_units_without_rules_are_not() -> None:
    unlimited = WITH_DOCTORS.replace("BUDGET", "unlimited") + GROUPS
    assert not warned(turning("{active: 12}", unlimited))
    assert not warned(turning("{active: 12}", OTHERS + GROUPS))


def test_a_slack_without_effect_is_warned_of() -> None:
    def idle(rotation: str) -> bool:
        return any("`slack`" in one.message for one in turning(rotation).warnings)

    assert idle("{active: 1, slack: 0.4}")
    assert not idle("{active: 1}")
    assert not idle("{active: 1, slack: 0}")
    assert not idle("{active: 2, slack: 0.4}")


WIDER = """
modicum: policy/v1
name: wider
dp: {neighbors: any-change}
units:
  user: {id: user_id}
  day: {id: user_id, time: {column: at, period: day}, within: user}
schema: {attributes: {age: low}}
policies:
  - {name: per-user, when: "true", unit: user, budget: {rho: 1}}
  - {name: per-day, when: "true", unit: day, budget: {rho: 2}}
"""


def test_what_is_unlocked_at_once_implies_nothing_that_is_unlocked_by_turns() -> None:
    """A day may have a tenth of 2 left where the whole 1 of its user is left."""

    def implied(units: str, rotation: str = "") -> bool:
        text = f"{WIDER}population: {{groups: {{immutable: [{units}]}}}}\n{rotation}"
        return compiled(text).pruned.witness[1] == 0

    turns = "rotation: {active: 10}\n"
    assert implied("day")
    assert not implied("day", turns)
    assert implied("user", turns)
    assert implied("user, day", turns)


# --- changes --------------------------------------------------------------------------


def between(old: str, new: str) -> Differences:
    texts = (f"rotation: {one}\n" if one else "" for one in (old, new))
    return differences(*(compiled(GROUPED + text) for text in texts))


def told(old: str, new: str) -> list[tuple[Verdict, str]]:
    return [
        (one.verdict, one.text)
        for one in between(old, new).declared
        if one.subject == "rotation"
    ]


def test_groups_begin_and_cease_to_take_turns() -> None:
    one = "{active: 12, slack: 0.4}"
    assert told("", one) == [
        (
            Verdict.TIGHTER,
            "is new: active 12, slack 0.4, retired closed",
        )
    ]
    assert not between("", one).loosens
    ((verdict, _),) = told(one, "")
    assert verdict is Verdict.LOOSER
    assert between(one, "").loosens


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "{active: 12}",
            "{active: 13}",
            [
                # At age 13, a group had retired, and has its last turn now.
                (
                    Verdict.LOOSER,
                    "active 12 -> 13: more is unlocked at age 13",
                ),
                (
                    Verdict.TIGHTER,
                    "active 12 -> 13: less is unlocked at ages 1 to 12",
                ),
            ],
        ),
        (
            "{active: 12, retired: first-come}",
            "{active: 13, retired: first-come}",
            [
                (
                    Verdict.TIGHTER,
                    "active 12 -> 13: less is unlocked at ages 1 to 12",
                )
            ],
        ),
        (
            "{active: 13}",
            "{active: 12}",
            [
                (
                    Verdict.LOOSER,
                    "active 13 -> 12: more is unlocked at ages 1 to 12",
                ),
                (
                    Verdict.TIGHTER,
                    "active 13 -> 12: less is unlocked at age 13",
                ),
            ],
        ),
        (
            "{active: 12, slack: 0.4}",
            "{active: 12, slack: 0.5}",
            [
                (
                    Verdict.LOOSER,
                    "slack 0.4 -> 0.5: more is unlocked at ages 1 to 11",
                )
            ],
        ),
        (
            "{active: 2}",
            "{active: 5, slack: 1}",
            [
                (
                    Verdict.LOOSER,
                    "active 2 -> 5, slack 0 -> 1: more is unlocked at ages 3 to 5",
                ),
                (
                    Verdict.TIGHTER,
                    "active 2 -> 5, slack 0 -> 1: less is unlocked at ages 1 to 2",
                ),
            ],
        ),
        (
            "{active: 1}",
            "{active: 1, slack: 0.5}",
            [
                (
                    Verdict.SAME,
                    "slack 0 -> 0.5: the unlocked share is the same at every age",
                )
            ],
        ),
        (
            "{active: 12}",
            "{active: 12, retired: first-come}",
            [(Verdict.LOOSER, "retired groups: closed -> first-come")],
        ),
        (
            "{active: 12, retired: first-come}",
            "{active: 12}",
            [(Verdict.TIGHTER, "retired groups: first-come -> closed")],
        ),
        (
            "{active: 4}",
            "{active: 6, slack: 1}",
            [
                (
                    Verdict.LOOSER,
                    "active 4 -> 6, slack 0 -> 1: more is unlocked at"
                    " ages 1 to 3, 5 to 6",
                )
            ],
        ),
        (
            "{active: 9, slack: 0}",
            "{active: 10, slack: 0.5}",
            [
                (
                    Verdict.LOOSER,
                    "active 9 -> 10, slack 0 -> 0.5: more is unlocked at"
                    " ages 1 to 8, 10",
                ),
                (
                    Verdict.TIGHTER,
                    "active 9 -> 10, slack 0 -> 0.5: less is unlocked at age 9",
                ),
            ],
        ),
    ],
)
def test_a_changed_rotation_tells_what_is_looser_and_what_is_tighter(
    old: str, new: str, expected: list[tuple[Verdict, str]]
) -> None:
    assert told(old, new) == expected
    loosens = any(verdict is Verdict.LOOSER for verdict, _ in expected)
    assert between(old, new).loosens is loosens


def test_the_same_rotation_is_no_difference() -> None:
    assert between(
        "{active: 12, slack: 0.1}", "{slack: 1e-1, active: 12}"
    ).same_document
    spelled_out = between("{active: 12}", "{active: 12, slack: 0, retired: closed}")
    assert spelled_out.empty
    assert not spelled_out.same_document
