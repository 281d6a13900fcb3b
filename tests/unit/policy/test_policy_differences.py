"""What a new policy changes, case by case."""

from __future__ import annotations

import pytest
from samples.small import POLICY, compiled

from modicum.policy.changes.differences import (
    Differences,
    RuleChange,
    Verdict,
    differences,
)


def between(*edits: tuple[str, str], old: str = POLICY) -> Differences:
    """Return what some edits of a text change."""
    new = old
    for was, now in edits:
        assert was in new, was
        new = new.replace(was, now)
    return differences(compiled(old), compiled(new))


def verdicts(found: Differences) -> dict[str, Verdict]:
    return {change.new or change.old: change.verdict for change in found.rules}


def change_of(found: Differences, rule: str) -> RuleChange:
    return next(one for one in found.rules if rule in (one.new, one.old))


def test_the_same_document_has_no_differences() -> None:
    found = between(("modicum: policy/v1", "# a remark\nmodicum: policy/v1"))
    assert found.same_document
    assert found.empty
    assert not found.loosens
    assert found.same_rules == len(compiled().rules) + len(compiled().release_rules)


def test_another_name_changes_no_rule() -> None:
    found = between(("name: small", "name: other"))
    assert not found.same_document
    assert found.empty


def test_a_smaller_budget_is_tighter_in_every_context() -> None:
    found = between(("high: 1.0}", "high: 0.7}"))
    assert verdicts(found) == {
        "attr:diagnosis @standard": Verdict.TIGHTER,
        "attr:diagnosis @black-box": Verdict.TIGHTER,
    }
    assert not found.loosens
    change = change_of(found, "attr:diagnosis @standard")
    assert (change.budget, change.predicate) == (Verdict.TIGHTER, Verdict.SAME)


def test_a_larger_budget_is_looser_unless_another_rule_covers_it() -> None:
    found = between(("high: 1.0}", "high: 1.1}"))
    change = change_of(found, "attr:diagnosis @standard")
    assert change.verdict is Verdict.LOOSER
    assert change.covered_by == ""
    assert found.loosens
    covered = between(
        ("high: 1.0}", "high: 1.9}"),
        ("{high: 1.2}", "{high: 0.9}"),
    )
    change = change_of(covered, "attr:diagnosis @standard")
    assert change.verdict is Verdict.LOOSER
    assert change.covered_by == "cat:health/member @standard"
    assert not change.loosens


def test_a_closer_membership_is_tighter_and_a_lost_one_looser() -> None:
    found = between(("{health: weak}", "{health: member}"))
    change = change_of(found, "cat:health/member @standard")
    assert (change.verdict, change.predicate) == (Verdict.TIGHTER, Verdict.TIGHTER)
    assert "cat:health/weak @standard" not in verdicts(found)
    found = between(("{health: weak}", "{}"))
    change = change_of(found, "cat:health/weak @standard")
    assert (change.verdict, change.predicate) == (Verdict.LOOSER, Verdict.LOOSER)


def test_a_smaller_budget_about_less_is_neither() -> None:
    found = between(("{health: weak}", "{}"), ("{scale: 1.5}", "{scale: 1.4}"))
    change = change_of(found, "cat:health/weak @standard")
    assert change.verdict is Verdict.CHANGED


def test_what_is_written_otherwise_and_means_the_same_is_the_same() -> None:
    found = between(('m.ml == "none"\'', 'm.ml != "black-box"\''))
    assert not found.same_document
    assert found.empty


def test_new_and_removed_rules() -> None:
    extra = "  - {name: more, when: 'm.ml == \"none\"', unit: user, budget: 0.5}\n"
    more = POLICY.replace("extensions:", extra + "extensions:")
    added = differences(compiled(), compiled(more))
    assert verdicts(added) == {
        "more @standard": Verdict.NEW,
        "more @black-box": Verdict.NEW,
    }
    assert not added.loosens
    removed = differences(compiled(more), compiled())
    assert {change.verdict for change in removed.rules} == {Verdict.REMOVED}
    assert removed.loosens
    assert [change.old for change in removed.rules] == [
        "more @standard",
        "more @black-box",
    ]


def test_a_removed_rule_that_another_one_covers_loosens_nothing() -> None:
    looser = "  - {name: more, when: 'm.ml == \"none\"', unit: user, budget: 2.5}\n"
    more = POLICY.replace("extensions:", looser + "extensions:")
    found = differences(compiled(more), compiled())
    change = change_of(found, "more @standard")
    assert change.covered_by == "global @standard"
    assert not found.loosens


def test_the_order_of_extensions_does_not_matter() -> None:
    second = """
  - name: who
    settings:
      inside: {when: 'm.who == "staff"', budget: same}
      anyone: {when: "true", budget: {scale: 2}}
"""
    start, end = POLICY.split("extensions:\n")
    first, rest = end.split("per_release:")
    start = start.replace(
        "labels:", "labels:\n  who: {values: [staff, all], default: staff}"
    )
    rest = "per_release:" + rest
    one = f"{start}extensions:\n{first}{second.lstrip(chr(10))}{rest}"
    # Budgets of `to` and `same` would differ by order; scaling a table's result, too.
    plain = one.replace(
        "{map: {1.0: 2, 2.0: 5}, between: linear,\n"
        "                                         below: proportional, above: last}",
        "{scale: 3}",
    )
    assert plain != one
    head, tail = plain.split("extensions:\n")
    own, rest = tail.split("per_release:")
    ml, who = own.split("  - name: who")
    turned = f"{head}extensions:\n  - name: who{who.rstrip()}\n{ml}per_release:{rest}"
    found = differences(compiled(plain), compiled(turned))
    assert not found.rules
    assert [one.subject for one in found.declared] == ["extension"]


def test_a_new_extension_is_compared_at_its_widest_setting() -> None:
    start, end = POLICY.split("extensions:\n")
    _, rest = end.split("per_release:")
    before = f"{start}per_release:{rest}"
    found = differences(compiled(before), compiled())
    change = change_of(found, "attr:diagnosis @black-box")
    assert (change.old, change.verdict) == ("attr:diagnosis", Verdict.LOOSER)
    assert change.across == ("ml",)
    assert change_of(found, "attr:diagnosis @standard").verdict is Verdict.NEW
    back = differences(compiled(), compiled(before))
    change = change_of(back, "attr:diagnosis")
    assert (change.old, change.verdict) == (
        "attr:diagnosis @black-box",
        Verdict.TIGHTER,
    )
    removed = change_of(back, "attr:diagnosis @standard")
    assert removed.verdict is Verdict.REMOVED
    assert removed.covered_by == "attr:diagnosis"
    assert not any(change.loosens for change in back.rules)


def test_rules_for_single_releases_are_compared_too() -> None:
    found = between(("{eps: 1.5, delta: 1e-7}", "{eps: 1.4, delta: 1e-7}"))
    assert verdicts(found) == {"cap": Verdict.TIGHTER}
    found = between(("{eps: 1.5, delta: 1e-7}", "{eps: 1.4, delta: 1e-6}"))
    assert verdicts(found) == {"cap": Verdict.CHANGED}


def test_another_filter_is_compared_by_what_it_admits() -> None:
    found = between(("dp: {", "dp: {filter: zcdp-v1, "))
    assert found.rules
    assert {change.budget for change in found.rules} <= {
        Verdict.CHANGED,
        Verdict.LOOSER,
        Verdict.TIGHTER,
    }
    assert [one.subject for one in found.declared] == ["filter"]


@pytest.mark.parametrize(
    ("old", "new"), [("combined-v1", "zcdp-v1"), ("zcdp-v1", "combined-v1")]
)
def test_a_smaller_eps_under_another_filter_is_not_tighter_for_that(
    old: str, new: str
) -> None:
    """Each of the two admits what the other does not."""
    text = POLICY.replace("dp: {", f"dp: {{filter: {old}, ")
    found = between((old, new), ("high: 1.0}", "high: 0.99}"), old=text)
    change = change_of(found, "attr:diagnosis @standard")
    assert change.budget is not Verdict.TIGHTER
    assert found.loosens


GUARD = """
guards:
  - {name: frame, unless: 'm.ml == "none"', message: "state it"}
"""
APPROVAL = """
approvals:
  - {when: 'release.audience == "public"', need: 2, from: [officer]}
"""
PARTITION = """
population:
  partition_by:
    region: {values: [north, south], immutable: [user]}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", GUARD, Verdict.TIGHTER),
        (GUARD, "", Verdict.LOOSER),
        (GUARD, GUARD.replace("==", "!="), Verdict.CHANGED),
        (GUARD, GUARD.replace("'m.ml == \"none\"'", '"true"'), Verdict.LOOSER),
        (GUARD, GUARD.replace("state it", "say it"), Verdict.SAME),
        ("", APPROVAL, Verdict.TIGHTER),
        (APPROVAL, "", Verdict.LOOSER),
        ("", PARTITION, Verdict.CHANGED),
        (PARTITION, "", Verdict.SAME),
        (PARTITION, PARTITION.replace("[user]", "[]"), Verdict.CHANGED),
        ("", "\ndisclosed_invariants: [total]\n", Verdict.LOOSER),
        ("\ndisclosed_invariants: [total]\n", "", Verdict.SAME),
    ],
)
def test_what_is_checked_beside_budgets(old: str, new: str, expected: Verdict) -> None:
    found = differences(compiled(POLICY + old), compiled(POLICY + new))
    assert [one.verdict for one in found.declared] == [expected]
    assert found.loosens == (expected in (Verdict.LOOSER, Verdict.CHANGED))


def test_fewer_approvers_are_looser_and_more_are_tighter() -> None:
    fewer = APPROVAL.replace("need: 2", "need: 1")
    found = differences(compiled(POLICY + APPROVAL), compiled(POLICY + fewer))
    assert [one.verdict for one in found.declared] == [Verdict.LOOSER]
    found = differences(compiled(POLICY + fewer), compiled(POLICY + APPROVAL))
    assert [one.verdict for one in found.declared] == [Verdict.TIGHTER]


@pytest.mark.parametrize(
    ("was", "now", "subject", "expected"),
    [
        ("dp: {", "dp: {neighbors: any-change, ", "unit", Verdict.CHANGED),
        ("dp: {", "dp: {neighbors: substitute, ", "unit", Verdict.CHANGED),
        ("id: user_id", "id: account", "unit", Verdict.CHANGED),
        ("[none, black-box]", "[none, gray, black-box]", "label", Verdict.SAME),
        ("[none, black-box]", "[none]", "label", Verdict.CHANGED),
        (
            "[low, {health: weak}]",
            "[medium, {health: weak}]",
            "attribute",
            Verdict.SAME,
        ),
        ("{health: weak}]", "{health: weak}, static]", "attribute", Verdict.CHANGED),
    ],
)
def test_what_is_declared(was: str, now: str, subject: str, expected: Verdict) -> None:
    found = between((was, now))
    assert [(one.subject, one.verdict) for one in found.declared] == [
        (subject, expected)
    ]


def test_another_relation_may_loosen_whichever_it_is() -> None:
    """A loss that is stated for any change of a user costs a day of hers half."""
    units = "units: {user: {id: u}, day: {id: u, within: user}}"
    day = POLICY.replace("units: {user: {id: user_id}}", units)
    wide = day.replace("user: {id: u}", "user: {id: u, neighbors: any-change}")
    for old, new in ((day, wide), (wide, day)):
        found = differences(compiled(old), compiled(new))
        assert [one.verdict for one in found.declared] == [Verdict.CHANGED]
        assert found.loosens


def test_new_words_are_told() -> None:
    found = between(
        ("    steps:", "    weight: [medium, {health: weak}]\n    steps:"),
        ("labels:", "labels:\n  who: {values: [staff, all], default: staff}"),
    )
    assert [one.text for one in found.declared] == ["`who` is new", "`weight` is new"]
    assert verdicts(found)["attr:weight @standard"] is Verdict.NEW
    assert verdicts(found)["cat:health/weak @standard"] is Verdict.TIGHTER


# --- rules about nothing --------------------------------------------------------

#: No attribute is in `place`.
EMPTY = POLICY.replace(
    "categories: {health: high}", "categories: {health: high, place: low}"
).replace("budget: {high: 1.2}", "budget: {high: 1.2, low: 1.2}")


def test_rules_about_nothing_are_left_out() -> None:
    edit = ("low: 1.2}", "low: 1.9}")
    assert between(edit, old=EMPTY).rules == ()
    assert differences(compiled(POLICY), compiled(EMPTY)).rules == ()
    gone = differences(compiled(EMPTY), compiled(POLICY))
    assert gone.rules == ()
    assert gone.declared


def test_the_first_member_is_tighter_and_the_last_one_that_leaves_is_looser() -> None:
    old = compiled(EMPTY)
    new = compiled(
        EMPTY.replace(
            "age: [low, {health: weak}]", "age: [low, {health: weak, place: weak}]"
        )
    )
    scopes = {"cat:place/weak @standard", "cat:place/weak @black-box"}
    joined, left = differences(old, new), differences(new, old)
    assert {
        one for one, v in verdicts(joined).items() if v is Verdict.TIGHTER
    } == scopes
    assert set(verdicts(joined)) == scopes
    assert not joined.loosens
    assert verdicts(left) == dict.fromkeys(scopes, Verdict.LOOSER)
    wider = EMPTY.replace("low: 1.2}", "low: 1.9}")
    assert verdicts(differences(compiled(wider), new)) == verdicts(joined)


ABOUT_DIAGNOSIS = POLICY[: POLICY.index("policies:")] + (
    "policies:\n"
    "  - {name: d, when: '\"diagnosis\" in m.attributes', unit: user, budget: 1}\n"
)


@pytest.mark.spec("POL-20")
@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("unmatched: allow\n", [Verdict.LOOSER]),
        ("unmatched: deny\n", []),
        # What no rule limited was denied, and may be allowed now.
        ('  - {name: all, when: "true", unit: user, budget: 9}\n', [Verdict.LOOSER]),
        ('  - {name: all, when: "true", unit: user, budget: unlimited}\n', []),
        ("  - {name: d2, when: '\"diagnosis\" in m.attributes', unit: user,"
         " budget: 0.5}\n", []),
    ],
)  # fmt: skip
def test_what_no_rule_limits_is_compared_as_a_denial(
    more: str, found: list[Verdict]
) -> None:
    mirrored = {Verdict.LOOSER: Verdict.TIGHTER}
    there = differences(compiled(ABOUT_DIAGNOSIS), compiled(ABOUT_DIAGNOSIS + more))
    back = differences(compiled(ABOUT_DIAGNOSIS + more), compiled(ABOUT_DIAGNOSIS))
    for one, expected in ((there, found), (back, [mirrored[each] for each in found])):
        assert [each.verdict for each in one.declared] == expected
        assert {each.subject for each in one.declared} <= {"unmatched"}
    assert there.loosens == bool(found)


@pytest.mark.spec("POL-20")
def test_a_rule_in_the_place_of_another_limits_others() -> None:
    found = between(('"diagnosis" in', '"steps" in'), old=ABOUT_DIAGNOSIS)
    assert [one.verdict for one in found.declared] == [Verdict.LOOSER, Verdict.TIGHTER]
    allowing = ABOUT_DIAGNOSIS + "unmatched: allow\n"
    assert between(('"diagnosis" in', '"steps" in'), old=allowing).declared == ()
