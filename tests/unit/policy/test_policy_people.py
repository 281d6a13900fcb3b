"""Roles, who activates the next policy, and how the population may be divided anew."""

from __future__ import annotations

import pytest
from samples.small import POLICY, compiled

from modicum.core.errors import Code, InputError
from modicum.policy.changes.declarations import declared_differences
from modicum.policy.changes.differences import Verdict
from modicum.policy.past_units import population_of
from modicum.policy.rule_profile import cells_of
from modicum.release import Population
from modicum.release.population import Was

ROLES = "roles: {officer: [olga, pavel], steward: [sam@example.org]}\n"
UNITS = POLICY.replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id},"
    " user-day: {id: user_id, time: {column: at, period: day}, within: user}}",
)


def refused(text: str) -> tuple[Code, str]:
    with pytest.raises(InputError) as caught:
        compiled(text)
    return caught.value.code, str(caught.value)


def test_roles_are_kept() -> None:
    policy = compiled(POLICY + ROLES).policy
    assert policy.roles == {
        "officer": ("olga", "pavel"),
        "steward": ("sam@example.org",),
    }
    assert compiled(POLICY).policy.roles is None


@pytest.mark.parametrize(
    ("roles", "code"),
    [
        ("{officer: olga}", Code.WRONG_TYPE),
        ("{officer: []}", Code.MISSING_KEY),
        ("{officer: [olga, olga]}", Code.DUPLICATE_NAME),
        ("{officer: [olga meier]}", Code.BAD_NAME),
        ("{an officer: [olga]}", Code.BAD_NAME),
        ("[officer]", Code.WRONG_TYPE),
    ],
)
def test_a_mistake_in_roles_is_refused(roles: str, code: Code) -> None:
    assert refused(f"{POLICY}roles: {roles}\n")[0] is code


A, B = "a" * 64, "0f" * 32


@pytest.mark.spec("POL-16")
def test_keys_of_people_are_kept() -> None:
    text = f"{POLICY}{ROLES}keys: {{olga: {A}, sam@example.org: [{B}, {A}]}}\n"
    policy = compiled(text).policy
    assert policy.keys == {"olga": (A,), "sam@example.org": (B, A)}
    assert compiled(POLICY + ROLES).policy.keys == {}
    plain = f"{POLICY}{ROLES}"
    assert policy.digest != compiled(plain).policy.digest
    other = text.replace(f"[{B}, {A}]", f"[{B}]")
    assert policy.digest != compiled(other).policy.digest
    # Where a section stands does not count, nor whether a key is in quotes.
    moved = f"{POLICY}keys: {{olga: '{A}', sam@example.org: [{B}, {A}]}}\n{ROLES}"
    assert compiled(moved).policy.digest == policy.digest


@pytest.mark.spec("POL-16")
@pytest.mark.parametrize(
    ("keys", "code"),
    [
        (f"{{ogla: {A}}}", Code.UNKNOWN_CHOICE),
        (f"{{Olga: {A}}}", Code.UNKNOWN_CHOICE),
        (f"{{officer: {A}}}", Code.UNKNOWN_CHOICE),
        ("{olga: []}", Code.MISSING_KEY),
        (f"{{olga: {A.upper()}}}", Code.WRONG_TYPE),
        (f"{{olga: {A}0}}", Code.WRONG_TYPE),
        (f"{{olga: {A[1:]}}}", Code.WRONG_TYPE),
        (f"{{olga: {{key: {A}}}}}", Code.WRONG_TYPE),
        ("{olga: null}", Code.WRONG_TYPE),
        (f"{{olga: [{A}, {A}]}}", Code.DUPLICATE_NAME),
        (f"[{A}]", Code.WRONG_TYPE),
    ],
)
def test_a_mistake_in_keys_is_refused(keys: str, code: Code) -> None:
    assert refused(f"{POLICY}{ROLES}keys: {keys}\n")[0] is code
    assert refused(f"{POLICY}keys: {{olga: {A}}}\n")[0] is Code.UNKNOWN_CHOICE


def test_a_change_of_keys_is_told() -> None:
    def keyed(written: str) -> str:
        return f"{POLICY}{ROLES}keys: {{{written}}}\n"

    one, both = keyed(f"olga: {A}"), keyed(f"olga: [{A}, {B}]")
    for old, new, verdicts in (
        (POLICY + ROLES, one, {Verdict.TIGHTER}),
        (one, POLICY + ROLES, {Verdict.LOOSER}),
        (one, both, {Verdict.LOOSER}),
        (both, one, {Verdict.TIGHTER}),
        (one, keyed(f"olga: {B}"), {Verdict.TIGHTER, Verdict.LOOSER}),
        (both, keyed(f"olga: [{B}, {A}]"), set()),
    ):
        assert differences(old, new) == {(one, "key") for one in verdicts}


def owned(written: str) -> str:
    return f"{POLICY}{ROLES}owners: {{{written}}}\n"


@pytest.mark.spec("POL-11")
def test_owners_are_kept() -> None:
    policy = compiled(owned("service:etl: [olga], 'bob@example.org': [olga]")).policy
    assert policy.owners == {"service:etl": ("olga",), "bob@example.org": ("olga",)}
    plain = compiled(POLICY + ROLES).policy
    assert plain.owners == {}
    assert plain.digest != policy.digest


@pytest.mark.parametrize(
    ("owners", "code"),
    [
        ("service:etl: [ogla]", Code.UNKNOWN_CHOICE),
        ("service:etl: [Olga]", Code.UNKNOWN_CHOICE),
        ("service:etl: [officer]", Code.UNKNOWN_CHOICE),
        ("service:etl: []", Code.MISSING_KEY),
        ("service:etl: olga", Code.WRONG_TYPE),
        ("service:etl: [olga, olga]", Code.DUPLICATE_NAME),
        ("service:etl: [olga], service:etl: [olga]", Code.DUPLICATE_KEY),
        ("'a job': [olga]", Code.BAD_NAME),
        ("olga: [sam@example.org]", Code.KEYS_CONFLICT),
        ("OLGA: [sam@example.org]", Code.KEYS_CONFLICT),
    ],
)
def test_a_mistake_in_owners_is_refused(owners: str, code: Code) -> None:
    assert refused(owned(owners))[0] is code
    assert refused(f"{POLICY}owners: {{service:etl: [olga]}}\n")[0] is (
        Code.UNKNOWN_CHOICE
    )


def test_a_change_of_owners_is_told() -> None:
    one, other = owned("service:etl: [olga]"), owned("service:etl: [sam@example.org]")
    both = owned("service:etl: [olga, sam@example.org]")
    for old, new, verdicts in (
        (POLICY + ROLES, one, {Verdict.TIGHTER}),
        (one, POLICY + ROLES, {Verdict.LOOSER}),
        (one, both, {Verdict.TIGHTER}),
        (one, other, {Verdict.TIGHTER, Verdict.LOOSER}),
        (both, both, set()),
    ):
        assert differences(old, new) == {(one, "owner") for one in verdicts}


@pytest.mark.parametrize("key", ["approvals", "activation"])
@pytest.mark.parametrize(
    ("people", "code"),
    [
        ("need: 1, from: [oficer]", Code.UNKNOWN_CHOICE),
        ("need: 3, from: [officer]", Code.OUT_OF_RANGE),
        ("need: 4, from: [officer, steward]", Code.OUT_OF_RANGE),
        ("need: 1, from: []", Code.MISSING_KEY),
        ("need: 0, from: [officer]", Code.OUT_OF_RANGE),
    ],
)
def test_who_is_asked_must_be_there(key: str, people: str, code: Code) -> None:
    written = (
        f"approvals: [{{when: 'true', {people}}}]\n"
        if key == "approvals"
        else f"activation: {{{people}}}\n"
    )
    assert refused(POLICY + ROLES + written)[0] is code


def test_without_roles_any_role_may_be_named_and_lint_says_that_nobody_has_it() -> None:
    text = POLICY + "activation: {need: 9, from: [somebody]}\n"
    (warning,) = compiled(text).warnings
    assert warning.code is Code.NEEDS_APPROVAL
    activation = compiled(text).policy.activation
    assert activation is not None
    assert (activation.need, activation.roles) == (9, ("somebody",))
    assert compiled(POLICY + ROLES).warnings == ()


# --- the population ---------------------------------------------------------------


def test_groups_name_units() -> None:
    text = UNITS + "population: {groups: {immutable: [user]}}\n"
    assert compiled(text).policy.vocabulary.population.grouped == {"user"}
    for groups, code in (
        ("{immutable: [usr]}", Code.UNKNOWN_UNIT),
        ("{}", Code.MISSING_KEY),
        ("{immutable: [user], of: 3}", Code.UNKNOWN_KEY),
    ):
        wrong = UNITS + f"population: {{groups: {groups}}}\n"
        assert refused(wrong)[0] is code


def partition(written: str) -> str:
    return f"{POLICY}population: {{partition_by: {{c: {written}}}}}\n"


def test_old_values_are_kept_with_what_they_may_stand_for() -> None:
    text = partition("{values: [DE, FR], was: {EU: [FR, DE], GDR: DE}}")
    (found,) = compiled(text).policy.vocabulary.population.partitions.values()
    assert found.was == (Was(("EU",), ("DE", "FR")), Was(("GDR",), ("DE",)))
    text = partition(
        "{range: [0, 9], was: [{old: {from: 10, to: 19}, now: [1, 2, 5]}]}"
    )
    (found,) = compiled(text).policy.vocabulary.population.partitions.values()
    assert found.was == (Was(((10, 19),), ((1, 2), (5, 5))),)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{values: [DE], was: {EU: [DE, FR]}}", Code.UNKNOWN_CHOICE),
        ("{values: [DE], was: {EU: []}}", Code.MISSING_KEY),
        ("{values: [DE], was: [EU]}", Code.WRONG_TYPE),
        ("{range: [0, 9], was: {3: 4}}", Code.WRONG_TYPE),
        ("{range: [0, 9], was: [{old: 3, now: 10}]}", Code.OUT_OF_RANGE),
        ("{range: [0, 9], was: [{old: 3}]}", Code.MISSING_KEY),
        ("{range: [0, 9], was: [{old: 3, now: {from: 5, to: 4}}]}", Code.OUT_OF_RANGE),
        ("{was: {EU: DE}}", Code.MISSING_KEY),
    ],
)
def test_a_mistake_in_old_values_is_refused(written: str, code: Code) -> None:
    assert refused(partition(written))[0] is code


def test_a_detail_that_changes_nothing_is_warned_of() -> None:
    assert compiled(partition("4")).warnings == ()
    detailed = UNITS + "population: {time_detail: {user-day: 7}}\n"
    messages = [str(one.message) for one in compiled(detailed).warnings]
    assert any("time_detail" in one for one in messages)


def test_a_smaller_unit_inherits_what_never_changes() -> None:
    text = UNITS + (
        "population:\n"
        "  partition_by: {c: {values: [DE, FR], immutable: [user]}, ward: 3}\n"
        "  groups: {immutable: [user-day]}\n"
        "  time_detail: {user-day: 7}\n"
    )
    vocabulary = compiled(text).policy.vocabulary
    assert cells_of("user", vocabulary) == ("c, which no user changes",)
    assert cells_of("user-day", vocabulary) == (
        "c, which no user-day, within one user, changes",
        "each day, the current day and 6 before and after it",
        "each user group, which no user-day leaves",
    )
    assert cells_of("user", compiled(POLICY).policy.vocabulary) == ()


def test_the_population_of_a_past_policy_can_be_read() -> None:
    text = partition("{values: [DE, FR], immutable: [user]}")
    assert population_of(text) == compiled(text).policy.vocabulary.population
    assert population_of("modicum: policy/v0") == Population()


# --- differences ------------------------------------------------------------------


def differences(old: str, new: str) -> set[tuple[Verdict, str]]:
    found = declared_differences(compiled(old).policy, compiled(new).policy)
    return {(one.verdict, one.subject) for one in found}


def test_who_has_a_say_is_compared() -> None:
    policy = POLICY + ROLES + "activation: {need: 2, from: [officer]}\n"
    assert (Verdict.TIGHTER, "activation") in differences(POLICY, policy)
    assert (Verdict.LOOSER, "activation") in differences(policy, POLICY)
    fewer = policy.replace("need: 2", "need: 1")
    assert differences(policy, fewer) == {(Verdict.LOOSER, "activation")}
    more = policy.replace("pavel]", "pavel, mallory]")
    assert differences(policy, more) == {(Verdict.LOOSER, "role")}
    assert differences(more, policy) == {(Verdict.TIGHTER, "role")}
    assert differences(policy, policy) == set()


def test_a_new_division_is_told() -> None:
    old = partition("{values: [EU, US], immutable: [user]}")
    new = partition("{values: [DE, FR, US], immutable: [user], was: {EU: [DE, FR]}}")
    found = declared_differences(compiled(old).policy, compiled(new).policy)
    assert "`c`: EU may stand for DE, FR" in [one.text for one in found]
    grouped = POLICY + "population: {groups: {immutable: [user]}}\n"
    assert differences(POLICY, grouped) == {(Verdict.CHANGED, "group")}
