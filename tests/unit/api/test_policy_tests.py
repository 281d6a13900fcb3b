"""Policy tests: what they find is what a ledger would answer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from budget import counted, seed
from samples.small import POLICY, compiled, counts, workspace

from modicum.api.local import Workspace
from modicum.api.local.policies.test_format import PolicyTests, read_tests
from modicum.api.local.policies.tests import Answer, coverage, run_test
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError, ModicumError, UsageError
from modicum.core.yaml_reader import read_document
from modicum.ops.files.policy_tests import load_suites, run_suites

GOVERNED = (
    POLICY
    + """
guards:
  - {name: bounded, unless: '"user" in m.contribution_bound || m.ml == "none"',
     message: state how often a user contributes}
  - {name: named, unless: 'release.purpose != "?"', message: state a purpose}
approvals:
  - {when: 'release.audience == "public"', need: 2, from: [officer]}
  - {when: 'release.purpose == "ads"', need: 1, from: [officer]}
"""
)
FILES = {
    "past.yaml": [counts("past-1"), counts("past-2")],
    "one.yaml": counts("one"),
    "none.yaml": [],
}


def read(path: str) -> tuple[Node, ...]:
    found: Any = FILES[path]
    each = found if isinstance(found, list) else [found]
    return tuple(from_python(one) for one in each)


def file_of(*tests: dict[str, Any], **more: Any) -> PolicyTests:
    written = {"format": "policy-test/v1", "policy": "p.yaml", "tests": list(tests)}
    text = json.dumps({**written, **more}, indent=1)
    return read_tests(read_document(text.encode(), "p.test.yaml"), read)


def answer(policy: str = POLICY, **test: Any) -> Answer:
    (read_test,) = file_of({"name": "a test", "expect": "allow", **test}).tests
    return run_test(read_test, compiled(policy))


def refused(**test: Any) -> str:
    with pytest.raises(InputError) as caught:
        answer(**test)
    assert all(problem.mark is not None for problem in caught.value.problems)
    return caught.value.render()


DENIED = counts("r", rho=0.02)


def test_what_is_expected_comes_true() -> None:
    assert answer(release=counts("r")).passed
    assert not answer(release=counts("r"), expect="deny").passed
    assert not answer(release=DENIED).passed
    assert answer(release=DENIED, expect="deny").passed
    assert answer(release="one.yaml").passed


def test_the_rules_that_deny_are_named_exactly() -> None:
    blocking = ["attr:diagnosis @standard", "cat:health/member @standard"]
    found = answer(release=DENIED, expect="deny", blocking=blocking[:1])
    assert found.decision is not None
    real = list(found.blocking)
    assert answer(release=DENIED, expect="deny", blocking=real).passed
    assert answer(release=DENIED, expect="deny", blocking=real[::-1]).passed
    assert not answer(release=DENIED, expect="deny", blocking=real[1:]).passed
    more = [*real, "global @black-box"]
    assert not answer(release=DENIED, expect="deny", blocking=more).passed
    assert not answer(release=DENIED, expect="deny", blocking=[]).passed


def test_no_rule_denies_what_no_rule_limits() -> None:
    about = "'\"diagnosis\" in m.attributes'"
    narrow = POLICY[: POLICY.index("policies:")] + (
        f"policies: [{{name: d, when: {about}, unit: user, budget: 1}}]\n"
    )
    asked = counts("r", attributes=("age",))
    assert answer(narrow, release=asked, expect="deny", blocking=[]).passed
    assert not answer(narrow, release=asked, expect="deny", blocking=["d"]).passed
    assert answer(narrow + "unmatched: allow\n", release=asked).passed


def test_history_counts_and_is_not_denied() -> None:
    some = [counts(f"older-{n}", rho=0.01) for n in range(3)]
    assert answer(release=counts("r"), expect="allow").passed
    assert answer(release=counts("r"), history=some, expect="deny").passed
    both = [*some, "past.yaml"]
    (test,) = file_of(
        {"name": "x", "history": both, "release": "one.yaml", "expect": "deny"}
    ).tests
    assert len(test.history) == 5
    assert run_test(test, compiled()).passed
    assert answer(release=counts("r"), history="past.yaml").passed


def test_mistakes_and_guards_are_invalid() -> None:
    typo = counts("r", attributes=("diagnoses",))
    assert answer(release=typo, expect="invalid").passed
    assert answer(release=typo, expect="invalid", code="MOD117").passed
    assert not answer(release=typo, expect="invalid", code="MOD504").passed
    assert not answer(release=typo, expect="deny").passed
    guarded = counts("r", ml="black-box")
    found = answer(GOVERNED, release=guarded, expect="invalid", code="MOD504")
    assert found.passed
    assert found.guards == ("bounded",)
    # What happened already is counted, however badly it is described.
    assert answer(GOVERNED, release=counts("s"), history=[guarded]).passed


def test_approvals() -> None:
    public = counts("r", audience="public")
    assert answer(GOVERNED, release=public, expect="needs-approval").passed
    assert not answer(GOVERNED, release=public, expect="allow").passed
    denied = {**DENIED, "audience": "public"}
    assert answer(GOVERNED, release=denied, expect="deny").passed


def submitted(ledger: Workspace, release: dict[str, Any]) -> tuple[str, object]:
    """Return what a ledger answers, and the rules that deny or codes of mistakes."""
    try:
        decision = ledger.submit(release)
    except ModicumError as error:
        codes = [problem.code for problem in error.problems]
        if codes == [Code.NEEDS_APPROVAL]:
            return "needs-approval", ()
        return "invalid", codes
    return ("allow" if decision.allowed else "deny"), decision.blocking


def test_an_answer_is_that_of_a_ledger(tmp_path: Path) -> None:
    rng = random.Random(seed())
    seen = {"allow": 0, "deny": 0, "needs-approval": 0, "invalid": 0}
    for number in range(counted(40)):
        releases = [
            counts(
                f"r-{n}",
                rho=rng.choice([0.001, 0.008, 0.015]),
                attributes=tuple(rng.sample(["age", "diagnosis", "steps"], 2)),
                **rng.choice([{}, {"audience": "public"}, {"ml": "black-box"}]),
            )
            for n in range(rng.randint(1, 4))
        ]
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger = workspace(folder, policy=GOVERNED)
        for one in releases[:-1]:
            ledger.backfill(one)
        found = answer(GOVERNED, history=releases[:-1], release=releases[-1])
        outcome, blocking = submitted(ledger, releases[-1])
        assert found.outcome.value == outcome
        codes = [problem.code for problem in found.problems]
        assert (codes or found.blocking) == blocking
        seen[outcome] += 1
    assert all(count >= 2 for count in seen.values()), seen


# --- mistakes in the file of tests ----------------------------------------------


@pytest.mark.parametrize(
    ("test", "code", "says"),
    [
        ({"expect": "alloww"}, Code.UNKNOWN_CHOICE, 'did you mean "allow"?'),
        ({"blocking": []}, Code.KEYS_CONFLICT, "is for  expect: deny"),
        ({"code": "MOD504"}, Code.KEYS_CONFLICT, "is for  expect: invalid"),
        (
            {"expect": "invalid", "code": "MOD999"},
            Code.UNKNOWN_CHOICE,
            "unknown code",
        ),
        ({"release": "past.yaml"}, Code.OUT_OF_RANGE, "the file has 2"),
        ({"release": "none.yaml"}, Code.OUT_OF_RANGE, "the file has 0"),
        ({"release": 3}, Code.WRONG_TYPE, "must be text"),
        ({"history": [["past.yaml"]]}, Code.WRONG_TYPE, "must be text"),
        ({"hystory": []}, Code.UNKNOWN_KEY, 'did you mean "history"?'),
        (
            {"expect": "deny", "blocking": ["attr:diagnoses @standard"]},
            Code.UNKNOWN_CHOICE,
            'did you mean "attr:diagnosis @standard"?',
        ),
        (
            {"history": [counts("x", attributes=("shoes",))]},
            Code.UNKNOWN_ATTRIBUTE,
            'unknown attribute "shoes"',
        ),
        ({"history": [counts("x"), counts("x")]}, Code.DUPLICATE_NAME, "named `x`"),
        ({"history": [counts("r")]}, Code.DUPLICATE_NAME, "named `r`"),
    ],
)
def test_a_mistake_in_a_test_is_told_with_its_place(
    test: dict[str, Any], code: Code, says: str
) -> None:
    result = refused(**{"release": counts("r"), **test})
    assert f"error[{code.value}]" in result
    assert says in result
    assert "--> p.test.yaml:" in result


def test_what_a_file_must_have() -> None:
    one: dict[str, Any] = {"name": "x", "release": "one.yaml", "expect": "allow"}
    wrong: list[tuple[list[dict[str, Any]], dict[str, Any], Code]] = [
        ([], {}, Code.OUT_OF_RANGE),
        ([one, one], {}, Code.DUPLICATE_NAME),
        ([one], {"format": "policy-test/v2"}, Code.UNKNOWN_VERSION),
        ([one], {"policyy": "x"}, Code.UNKNOWN_KEY),
        ([{**one, "name": "a\nb"}], {}, Code.NOT_TEXT),
        ([{"name": "x"}], {}, Code.MISSING_KEY),
    ]
    for tests, more, code in wrong:
        with pytest.raises(InputError) as caught:
            file_of(*tests, **more)
        assert caught.value.code is code
    several = [{**one, "expect": "maybe"}, {**one, "name": "y", "blocking": []}]
    with pytest.raises(InputError) as caught:
        file_of(*several)
    assert [problem.code for problem in caught.value.problems] == [
        Code.UNKNOWN_CHOICE,
        Code.KEYS_CONFLICT,
    ]


# --- coverage -------------------------------------------------------------------


def test_what_no_test_touched() -> None:
    policy = compiled(GOVERNED)
    tests = file_of(
        {"name": "1", "release": counts("r", audience="public"), "expect": "allow"},
        {"name": "2", "release": counts("r", ml="black-box"), "expect": "invalid"},
        {
            "name": "3",
            "history": [counts("s", attributes=("age",))],
            "release": counts("r", audience="internal"),
            "expect": "allow",
        },
    ).tests
    found = coverage(policy, [run_test(test, policy) for test in tests])
    assert (found.rules, found.guards, found.approvals) == (15, 2, 2)
    assert set(found.untouched_rules) == {
        f"attr:{name} @{context}"
        for name in ("age", "steps")
        for context in ("standard", "black-box")
    }
    assert found.untouched_guards == ("named",)
    assert found.untouched_approvals == policy.policy.approvals[1:]
    nothing = coverage(policy, [])
    assert len(nothing.untouched_rules) == 15


# --- files ----------------------------------------------------------------------

TEST = """
format: policy-test/v1
policy: {policy}
tests:
  - {{name: {name}, release: one.yaml, expect: allow}}
"""


def files(folder: Path) -> Path:
    (folder / "below").mkdir()
    for place in (folder, folder / "below"):
        (place / "policy.yaml").write_text(POLICY)
        (place / "one.yaml").write_text(json.dumps(counts("one")))
        (place / "a.test.yaml").write_text(TEST.format(policy="policy.yaml", name="a"))
    (folder / "other.yaml").write_text(POLICY)
    text = TEST.format(policy="other.yaml", name="b")
    (folder / "b.test.yaml").write_text(text)
    return folder


def test_which_tests_are_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files(tmp_path)
    monkeypatch.chdir(folder)

    def meant(*paths: str | Path) -> list[str]:
        return [str(one.file) for one in load_suites([Path(path) for path in paths])]

    assert meant() == ["a.test.yaml", "b.test.yaml"]
    assert meant("policy.yaml") == ["a.test.yaml"]
    assert meant("other.yaml") == ["b.test.yaml"]
    assert meant(".") == ["a.test.yaml", "b.test.yaml", "below/a.test.yaml"]
    assert meant("below", "below/a.test.yaml") == ["below/a.test.yaml"]
    assert meant("b.test.yaml", folder / "b.test.yaml") == ["b.test.yaml"]
    for nothing in ("one.yaml", "below/one.yaml"):
        with pytest.raises(UsageError, match="no policy tests"):
            meant(nothing)
    with pytest.raises(InputError, match="there is no file"):
        meant("absent.yaml")


def test_a_file_that_is_missing_is_told_where_it_is_named(tmp_path: Path) -> None:
    folder = files(tmp_path)
    (folder / "one.yaml").unlink()
    (folder / "below" / "policy.yaml").unlink()
    with pytest.raises(InputError) as caught:
        load_suites([folder])
    places = [str(problem.mark).split("/")[-1] for problem in caught.value.problems]
    assert places == ["a.test.yaml:5:24", "b.test.yaml:5:24", "a.test.yaml:3:9"]


def test_suites_are_run_in_their_order(tmp_path: Path) -> None:
    suites = load_suites([files(tmp_path)])
    counted: list[int] = []
    results = run_suites(suites, on_test=counted.append)
    assert counted == [1, 2, 3]
    assert [one.test.name for _, own in results for one in own] == ["a", "b", "a"]
    assert suites[0].compiled is not suites[1].compiled
