"""Nobody is named like somebody else, and nobody is sent to another site."""

from __future__ import annotations

import unicodedata
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL
from modicum.core.errors import AccessError, Code
from modicum.policy.declarations.roles import person_key
from modicum.server.auth.grants import GrantTable, groups_in
from modicum.server.auth.names import PROGRAM_PREFIX, person_name, program_name
from modicum.server.auth.safe_redirect import own_path

TRICKS = [
    "Dana",
    "DANA",
    " dana",
    "dana ",
    "dana\t",
    "da na",
    "dana\u200b",
    "\u202edana",
    "dan\u0061\u0301x\u0301",
    "\uff44ana",  # Full width.
    "\u017ftan",  # A long s, which folds to s.
    "\u212aarl",  # The sign of kelvin, whose small letter is k.
    "dana\x00",
    "service:etl",
    "Service:etl",
    "",
    "-dana",
    "*",
    "d" * 193,
]


def in_person(claimed: object) -> str:
    return person_name(claimed, fold_case=False)


@pytest.mark.parametrize("claimed", [*TRICKS, None, 7, True, ["dana"], {"a": 1}])
def test_a_name_that_could_be_anothers_is_refused(claimed: object) -> None:
    for named in (in_person, program_name):
        with pytest.raises(AccessError) as caught:
            named(claimed)
        assert caught.value.code is Code.FORBIDDEN
        if isinstance(claimed, str) and claimed.strip("*-"):
            assert claimed not in caught.value.render()


@pytest.mark.parametrize(
    "name", ["dana", "dana@example.org", "d.o-b_x+1", "ärzte", "7f3"]
)
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert (
        person_name(name, fold_case=False) == person_name(name, fold_case=True) == name
    )
    assert program_name(name) == f"service:{name}"


def test_capitals_are_folded_where_they_mean_nothing() -> None:
    assert person_name("Dana@Example.ORG", fold_case=True) == "dana@example.org"
    assert person_name("Ärzte", fold_case=True) == "ärzte"
    for trick in (
        "\u017ftan",
        "\u212aarl",
        "\uff24ana",
        " Dana",
        "Service:x",
        "Straße",
    ):
        with pytest.raises(AccessError):
            person_name(trick, fold_case=True)


def accepted(claimed: str, *, fold_case: bool) -> str | None:
    try:
        return person_name(claimed, fold_case=fold_case)
    except AccessError:
        return None


@given(st.text(max_size=8), st.text(max_size=8), st.booleans())
@example("stan", "\u017ftan", True)
@example("karl", "\u212aarl", True)
@example("dana", "Dana", False)
def test_two_claims_get_one_name_only_if_the_provider_takes_them_for_one(
    one: str, other: str, fold_case: bool
) -> None:
    first = accepted(one, fold_case=fold_case)
    second = accepted(other, fold_case=fold_case)
    if first is None or second is None or one == other:
        return
    same_to_a_policy = person_key(first) == person_key(second)
    assert same_to_a_policy == (first == second)
    if same_to_a_policy:
        assert fold_case
        assert one.lower() == other.lower()
        assert unicodedata.normalize("NFKC", one) == one


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_person_is_named_like_a_program(person: str, program: str) -> None:
    name = accepted(person, fold_case=True)
    assert name is None or not name.startswith(PROGRAM_PREFIX)


# --- from names to roles -----------------------------------------------------

ROSTER = GrantTable(
    groups={
        "labs": {Role.ANALYST: frozenset({"labs"})},
        "team": {Role.PRIVACY_OFFICER: frozenset({ALL})},
        "auditors": {Role.AUDITOR: frozenset({ALL})},
    },
    people={"ann": {Role.ANALYST: frozenset({"visits"})}},
    programs={"etl": {Role.ANALYST: frozenset({ALL})}},
)


def test_what_somebody_and_their_groups_may_adds_up() -> None:
    ann = ROSTER.person("ann", ("labs", "nothing", "LABS"), "x")
    assert ann.grants == {Role.ANALYST: frozenset({"labs", "visits"})}
    assert ROSTER.person("bob", ("labs", "team"), "x").grants == {
        Role.ANALYST: frozenset({"labs"}),
        Role.PRIVACY_OFFICER: frozenset({ALL}),
    }
    assert ROSTER.program("service:etl", "x").is_service


@pytest.mark.parametrize("groups", [(), ("unknown",), ("LABS",), ("labs ",), ("etl",)])
def test_who_has_no_role_is_told_so(groups: tuple[str, ...]) -> None:
    with pytest.raises(AccessError, match="no role") as caught:
        ROSTER.person("nora", groups, "x")
    assert caught.value.code is Code.FORBIDDEN


def test_a_person_gets_nothing_that_a_program_has_and_the_other_way_round() -> None:
    with pytest.raises(AccessError):
        ROSTER.person("etl", (), "x")
    with pytest.raises(AccessError):
        ROSTER.program("service:ann", "x")


def test_groups_that_join_duties_let_nobody_in() -> None:
    with pytest.raises(AccessError) as caught:
        ROSTER.person("bob", ("team", "auditors"), "x")
    assert caught.value.code is Code.DUTIES_JOINED


@pytest.mark.parametrize(
    ("claim", "groups"),
    [
        (["a", "b"], ("a", "b")),
        ("a", ("a",)),
        (None, ()),
        ({"a": 1}, ()),
        ([1, None, "a", ["b"]], ("a",)),
        (True, ()),
    ],
)
def test_groups_are_names_and_nothing_else(
    claim: object, groups: tuple[str, ...]
) -> None:
    assert groups_in(claim) == groups


# --- own pages ---------------------------------------------------------------

ELSEWHERE = [
    "https://evil.example",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "javascript:alert(1)",
    "/a:b",
    "evil.example",
    "",
    " /",
    "/a#b",
    "/a\r\nSet-Cookie: x=y",
]


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_nobody_is_sent_elsewhere(wanted: str) -> None:
    assert own_path(wanted) == "/"


@pytest.mark.parametrize("wanted", ["/", "/rules", "/rules?scope=labs&x=%2F", "/a/b/"])
def test_own_pages_are_kept(wanted: str) -> None:
    assert own_path(wanted) == wanted


@given(st.text(alphabet="/\\:.@a%?\t\r\n #", max_size=10))
def test_wherever_somebody_is_sent_is_here(wanted: str) -> None:
    # What browsers do first: drop tabs and line breaks, and turn backslashes.
    path = own_path(wanted)
    seen = path.translate({9: None, 10: None, 13: None, 92: "/"}).strip()
    target = urlsplit(urljoin("https://privacy.example.org/login", seen))
    assert (target.scheme, target.netloc) == ("https", "privacy.example.org")
