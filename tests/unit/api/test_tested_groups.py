"""Policy tests that tell of user groups: what they may say, and what it means."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from budget import examples, seed
from samples.small import POLICY, compiled
from typer.testing import CliRunner

from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX
from modicum.api.local.policies.test_format import (
    PolicyTest,
    UserGroups,
    planning_of,
    read_tests,
)
from modicum.api.local.policies.tests import Answer, run_test
from modicum.cli.main import app
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.policy import CompiledPolicy

GROUPED = (
    POLICY.split("policies:")[0]
    + "population: {groups: {immutable: [user]}}\n"
    + "policies:\n"
    + '  - {name: all, when: "true", unit: user, budget: {rho: 1}}\n'
)
TURNS = GROUPED + "rotation: {active: 4, slack: 0.5, retired: RETIRED}\n"


def policy(retired: str = "closed") -> CompiledPolicy:
    return compiled(TURNS.replace("RETIRED", retired))


def release(rho: float, groups: str, name: str = "asked") -> str:
    cost = f"{{user: {{rho: {rho}}}}}"
    named = f"groups: {groups}, " if groups else ""
    return (
        f"{{release: {name}, {named}mechanisms:"
        f" [{{mechanism: declared, attributes: [age], cost: {cost}}}]}}"
    )


def written(rho: float, groups: str, more: str = "", expect: str = "allow") -> str:
    return (
        "format: policy-test/v1\npolicy: policy.yaml\ntests:\n"
        f"  - name: a test\n    release: {release(rho, groups)}\n"
        f"    expect: {expect}\n{more}"
    )


def read(text: str) -> PolicyTest:
    (found,) = read_tests(
        read_document(text.encode(), "t.test.yaml"), lambda _: []
    ).tests
    return found


def answer(
    rho: float, groups: str, more: str = "", under: CompiledPolicy | None = None
) -> Answer:
    return run_test(read(written(rho, groups, more)), under or policy())


AGES = "    groups: {1: 4, 2: 2, 3: 1}\n"


@pytest.mark.parametrize(
    ("groups", "most"),
    # Of 4 rounds with slack 0.5: 0.375, 0.75, 0.875, 1.
    [("[1]", 1), ("[2]", 0.75), ("[3]", 0.375), ("[1, 2]", 0.75), ("[1, 2, 3]", 0.375)],
)
@pytest.mark.spec("DEC-11")
def test_the_least_unlocked_group_decides(groups: str, most: float) -> None:
    assert answer(most, groups, AGES).passed
    assert not answer(most + 1e-9, groups, AGES).passed


@pytest.mark.parametrize("groups", ["[4]", "[3, 4]", "[0]", ""])
def test_a_group_that_is_not_named_was_never_active(groups: str) -> None:
    assert not answer(1e-9, groups, AGES).passed
    assert answer(1e-9, groups, AGES).blocking == ("all",)


@pytest.mark.spec("DEC-11")
def test_without_groups_nothing_is_unlocked() -> None:
    for groups in ("", "[0]", "[1]"):
        assert not answer(1e-9, groups).passed
        assert not answer(1e-9, groups, "    groups: {}\n").passed
        assert answer(1, groups, under=compiled(GROUPED)).passed


@pytest.mark.spec("DEC-11")
def test_retired_groups_have_everything_or_nothing() -> None:
    retired = AGES + "    retired: [0, 7]\n"
    assert not answer(1e-9, "[0]", retired).passed
    assert answer(1, "[0, 7]", retired, policy("first-come")).passed
    assert not answer(0.376, "[0, 3]", retired, policy("first-come")).passed
    alone = "    retired: [0]\n"
    assert answer(1, "[0]", alone, policy("first-come")).passed
    assert not answer(1e-9, "[1]", alone, policy("first-come")).passed


def test_a_history_counts_in_its_groups() -> None:
    past = f"    history: [{release(0.5, '[2]', 'before')}]\n{AGES}"
    assert answer(0.25, "[2]", past).passed
    assert not answer(0.26, "[2]", past).passed
    assert answer(1, "[1]", past).passed


def test_the_rounds_are_those_that_were_told() -> None:
    rng = random.Random(f"ages {seed()}")
    for _ in range(examples(200)):
        groups = rng.sample(range(30), rng.randint(0, 8))
        ages = {group: rng.choice([1, 2, 3, 9]) for group in groups}
        retired = [one for one in groups if rng.random() < 0.3]
        for one in retired:
            del ages[one]
        planning = planning_of(UserGroups(ages, tuple(retired), None))
        assert planning.ages() == ages
        assert set(planning.groups) == set(groups)
        assert all(one.unlocked == {} for one in planning.rounds.values())


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ("groups: 3", [Code.WRONG_TYPE]),
        ("groups: [1, 2]", [Code.WRONG_TYPE]),
        ("groups: {1: 0}", [Code.OUT_OF_RANGE]),
        ("groups: {1: 1.5}", [Code.OUT_OF_RANGE]),
        (f"groups: {{1: {ROUNDS_MAX + 1}}}", [Code.OUT_OF_RANGE]),
        ("groups: {1: old}", [Code.NOT_A_NUMBER]),
        ("groups: {one: 1}", [Code.NOT_A_NUMBER]),
        ("groups: {-1: 1}", [Code.OUT_OF_RANGE]),
        ("groups: {1: 1, 1.0: 2}", [Code.DUPLICATE_NAME]),
        ("groups: {1: 0, 2: 0}", [Code.OUT_OF_RANGE, Code.OUT_OF_RANGE]),
        ("retired: 3", [Code.WRONG_TYPE]),
        ("retired: [x]", [Code.NOT_A_NUMBER]),
        ("retired: [1, 1]", [Code.DUPLICATE_NAME]),
        ("retired: [10000000000]", [Code.OUT_OF_RANGE]),
        ("groups: {1: 1}\n    retired: [1]", [Code.KEYS_CONFLICT]),
        ("groups: {1: 0}\n    retired: 1", [Code.OUT_OF_RANGE, Code.WRONG_TYPE]),
        ("gruops: {1: 1}", [Code.UNKNOWN_KEY]),
    ],
)
def test_a_mistake_in_groups_is_told_at_its_place(more: str, codes: list[Code]) -> None:
    with pytest.raises(InputError) as caught:
        read(written(1, "[1]", f"    {more}\n"))
    assert [problem.code for problem in caught.value.problems] == codes
    lines = len(written(1, "[1]").splitlines())
    for problem in caught.value.problems:
        assert problem.mark is not None
        assert problem.mark.line > lines


def test_groups_are_refused_where_none_takes_turns() -> None:
    for more in (AGES, "    groups: {}\n", "    retired: [3]\n"):
        with pytest.raises(InputError) as caught:
            answer(1, "[1]", more, compiled(GROUPED))
        (problem,) = caught.value.problems
        assert problem.code is Code.KEYS_CONFLICT
        assert problem.mark is not None
        assert problem.help


def test_a_file_with_groups_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(TURNS.replace("RETIRED", "closed"))
    Path("t.test.yaml").write_text(written(0.76, "[2]", AGES, "deny"))
    found = CliRunner().invoke(app, ["policy", "test", "--json"])
    assert found.exit_code == 0, found.output
    Path("t.test.yaml").write_text(written(0.75, "[2]", AGES, "deny"))
    found = CliRunner().invoke(app, ["policy", "test", "--json"])
    assert found.exit_code == 8
    assert json.loads(found.output)
