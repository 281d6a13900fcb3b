"""Names of a policy that look alike: in it, and beside the active one's."""

from __future__ import annotations

import pytest
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError, Problem
from modicum.policy.lint.confusable_names import confusable_between

#: A letter that looks like an a.
CYRILLIC_A = "\u0430"


def refused(text: str) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        compiled(text).refuse_mistakes()
    return [one for one in caught.value.problems if one.code is Code.DUPLICATE_NAME]


@pytest.mark.spec("POL-21")
@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ("    age: [low", f"    {CYRILLIC_A}ge: low\n    age: [low", "attributes"),
        ("    age: [low", "    Age: low\n    age: [low", "attributes"),
        ("{health: high}", "{health: high, he\u0430lth: high}", "categories"),
        ("{user: {id: user_id}}", "{user: {id: u}, \u057dser: {id: u}}", "units"),
        ("labels:\n", "labels:\n  ML: {values: [a], default: a}\n", "labels"),
        ("values: [none, black-box]", "values: [none, black-box, b1ack-box]",
         "values of label `ml`"),
        ("per_release:", "per_release:\n  - {name: g1obal, when: 'true', unit: user,"
         " budget: 9}", "policies"),
        ("      black-box: {when",
         "      Standard: {when: 'true', budget: same}\n      black-box: {when",
         "settings"),
    ],
)  # fmt: skip
def test_two_names_that_look_alike_are_a_mistake(was: str, now: str, kind: str) -> None:
    assert was in POLICY
    text = POLICY.replace(was, now)
    (problem,) = refused(text)
    assert problem.message.startswith(f"two {kind} look alike: ")
    assert problem.notes[-1].startswith("they are spelled ")
    # A ledger that holds it can be read.
    assert compiled(text).policy.name == "small"


def test_both_places_are_named() -> None:
    (problem,) = refused(POLICY.replace("    steps: [", f"    {CYRILLIC_A}ge: [", 1))
    assert problem.mark is not None
    first = POLICY[: POLICY.index("    age:")].count("\n") + 1
    assert problem.notes[0] == f"the first is at policy.yaml:{first}"
    assert problem.notes[1] == r"they are spelled 'age' and '\u0430ge'"


def test_people_whose_names_look_alike_are_a_mistake() -> None:
    roles = "roles: {officer: [olga, 0lga, " + "\u043elga]}\n"
    found = refused(POLICY + roles)
    assert {one.message.split(":")[0] for one in found} == {"two people look alike"}


@pytest.mark.spec("POL-21")
def test_a_new_name_that_looks_like_an_old_one_is_found() -> None:
    old = compiled().policy
    new = compiled(POLICY.replace("    age: [", f"    {CYRILLIC_A}ge: [")).policy
    (problem,) = confusable_between(old, new)
    assert problem.message == f"`{CYRILLIC_A}ge` looks like `age` of the active policy"
    assert list(confusable_between(old, old)) == []
    # What looks like a name of another kind is a name of its own.
    other = POLICY.replace("name: global", "name: Age")
    assert list(confusable_between(old, compiled(other).policy)) == []
