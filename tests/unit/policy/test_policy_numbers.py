"""A number in a policy is the number that was written, in every spelling."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import modicum as mo
from modicum.accounting import ApproxBudget, Budget, PureBudget, ZcdpBudget
from modicum.core.errors import Code, InputError
from modicum.policy.compiler import compile_text

TINY = Fraction(1, 10**7)

#: One ten-millionth in every form of a YAML 1.2 number.
SPELLINGS = [
    *("1e-7", "1E-7", "1.0e-7", "1.e-7", ".1e-6", "+1e-7", "0.0000001", "1e-07"),
    *("10e-8", ".0000001", "+.1E-6", "0.1e-06", "100.0E-9", "1.00e-7", "01e-7"),
]
#: Those of them that are JSON.
JSON_SPELLINGS = ["1e-7", "1E-7", "1.0e-7", "0.0000001", "1e-07", "10e-8", "0.1E-6"]

POLICY = """\
modicum: policy/v1
name: numbers
dp: {{bare_budget: {{type: approx-dp, delta: {bare_delta}}}}}
units: {{user: {{id: user_id}}}}
schema: {{categories: {{c: high}}, attributes: {{age: [high, {{c: member}}]}}}}
policies:
  - {{name: p, when: "true", unit: user, budget: {budget}}}
  - {{name: c, for_each: category, unit: user, budget: {{high: 1}},
     levels: {{member: {level}}}}}
"""


def budgets(
    budget: str = "1", *, bare_delta: str = "1e-5", level: str = "same"
) -> dict[str, Budget]:
    text = POLICY.format(budget=budget, bare_delta=bare_delta, level=level)
    return {r.id: r.budget for r in compile_text(text.encode(), "policy.yaml").rules}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_yaml_spelling_is_exactly_one_number(spelling: str) -> None:
    assert budgets(spelling)["p"] == ApproxBudget(TINY, Fraction(1, 10**5))
    assert budgets(f"{{eps: {spelling}}}")["p"] == PureBudget(TINY)
    assert budgets(f"{{rho: {spelling}}}")["p"] == ZcdpBudget(TINY)
    assert budgets(f"{{eps: 1, delta: {spelling}}}")["p"] == ApproxBudget(
        Fraction(1), TINY
    )
    assert budgets(bare_delta=spelling)["p"] == ApproxBudget(Fraction(1), TINY)
    for level in (f"{{scale: {spelling}}}", f"{{to: {spelling}}}"):
        scaled = budgets(level=level)["c:c/member"]
        assert scaled == ApproxBudget(TINY, Fraction(1, 10**5))
    added = budgets(level=f"{{add: {spelling}}}")["c:c/member"]
    assert added == ApproxBudget(1 + TINY, Fraction(1, 10**5))
    table = f"{{map: {{{spelling}: {spelling}}}, above: last}}"
    looked_up = budgets(level=table)["c:c/member"]
    assert looked_up == ApproxBudget(TINY, Fraction(1, 10**5))


@pytest.mark.parametrize("spelling", JSON_SPELLINGS)
@pytest.mark.parametrize("separator", [": ", ":"])
def test_every_json_spelling_is_exactly_one_number(
    spelling: str, separator: str, tmp_path: Path
) -> None:
    policy: dict[str, Any] = {
        "modicum": "policy/v1",
        "name": "json",
        "units": {"user": {"id": "user_id"}},
        "schema": {"attributes": {}},
        "policies": [
            {
                "name": "p",
                "when": "true",
                "unit": "user",
                "budget": {"eps": "NUMBER", "delta": "NUMBER"},
            }
        ],
    }
    text = json.dumps(policy, separators=(",", separator), indent="\t")
    path = tmp_path / "policy.json"
    path.write_text(text.replace('"NUMBER"', spelling))
    assert mo.load_policy(path).rules[0].budget == ApproxBudget(TINY, TINY)


@pytest.mark.parametrize(
    "spelling",
    [
        "0.1",
        "0.3",
        "1.1",
        "2.675",
        "9007199254740993",
        "0.1000000000000000055511151231257827021181583404541015625",
        "3.14159265358979323846264338327950288419716939937510582097494",
        "1e-400",
        "1e400",
        "1." + "0" * 61 + "1",  # 64 characters.
    ],
)
def test_no_digit_passes_through_a_float(spelling: str) -> None:
    assert budgets(f"{{eps: {spelling}}}")["p"] == PureBudget(Fraction(spelling))


@pytest.mark.parametrize(
    ("spelling", "code"),
    [
        ('"2.0"', Code.NOT_A_NUMBER),
        ("'1e-7'", Code.NOT_A_NUMBER),
        ("two", Code.NOT_A_NUMBER),
        ("1_000", Code.NOT_A_NUMBER),
        ("1/3", Code.NOT_A_NUMBER),
        ("1:30", Code.NOT_A_NUMBER),
        ("true", Code.NOT_A_NUMBER),
        ("null", Code.NOT_A_NUMBER),
        ("~", Code.NOT_A_NUMBER),
        ("2026-01-01", Code.NOT_A_NUMBER),
        ("--1", Code.NOT_A_NUMBER),
        ("1e", Code.NOT_A_NUMBER),
        (".", Code.NOT_A_NUMBER),
        ("inf", Code.NOT_A_NUMBER),
        ("NaN", Code.NOT_A_NUMBER),
        (".nan", Code.OUT_OF_RANGE),
        (".NaN", Code.OUT_OF_RANGE),
        (".inf", Code.OUT_OF_RANGE),
        ("-.inf", Code.OUT_OF_RANGE),
        ("0x1F", Code.OUT_OF_RANGE),
        ("0o17", Code.OUT_OF_RANGE),
        ("1e401", Code.OUT_OF_RANGE),
        ("1e-401", Code.OUT_OF_RANGE),
        ("1e999999999999", Code.OUT_OF_RANGE),
        ("1" * 65, Code.OUT_OF_RANGE),
        ("0", Code.OUT_OF_RANGE),
        ("-0.0", Code.OUT_OF_RANGE),
        ("-1", Code.OUT_OF_RANGE),
    ],
)
@pytest.mark.parametrize("form", ["{eps: NUMBER}", "{rho: NUMBER}", "{mu: NUMBER}"])
def test_what_is_no_positive_finite_number_is_refused(
    spelling: str, code: Code, form: str
) -> None:
    with pytest.raises(InputError) as caught:
        budgets(form.replace("NUMBER", spelling))
    assert caught.value.code is code
    mark = caught.value.problems[0].mark
    assert mark is not None
    assert (mark.line, mark.file) == (7, "policy.yaml")
    assert mark.source[mark.column - 1 :].startswith(spelling)
    assert mark.length == len(spelling)


@pytest.mark.parametrize(
    ("delta", "accepted"),
    [
        ("0", False),
        ("1", False),
        ("-1e-7", False),
        ("1.0000001", False),
        ("9.99e-19", False),  # Less than one unit of the ledger.
        ("1e-18", True),
        ("0.999999999999999999999", True),
    ],
)
@pytest.mark.parametrize("place", ["budget", "bare"])
def test_the_delta_of_a_limit_lies_between_a_ledger_unit_and_one(
    delta: str, *, accepted: bool, place: str
) -> None:
    def read() -> dict[str, Budget]:
        if place == "bare":
            return budgets(bare_delta=delta)
        return budgets(f"{{eps: 1, delta: {delta}}}")

    if accepted:
        assert read()["p"] == ApproxBudget(Fraction(1), Fraction(delta))
        return
    with pytest.raises(InputError) as caught:
        read()
    assert caught.value.code is Code.OUT_OF_RANGE
    mark = caught.value.problems[0].mark
    assert mark is not None
    assert mark.source[mark.column - 1 :].startswith(delta)


@pytest.mark.parametrize("spelling", ["1e401", "1e-500", "1" * 65])
def test_a_finite_number_is_not_called_infinite(spelling: str) -> None:
    """It is refused for its size; the message has to say so."""
    with pytest.raises(InputError) as caught:
        budgets(f"{{eps: {spelling}}}")
    problem = caught.value.problems[0]
    text = " ".join((problem.message, *problem.notes, problem.help))
    assert "400" in text or "64" in text or "digits" in text
