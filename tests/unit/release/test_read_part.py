"""`where`, `periods` and `groups` as written: every form, and every mistake."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import modicum as mo
from modicum.core.canonical import decode, encode
from modicum.core.errors import Code, InputError, Problem
from modicum.core.yaml_reader import read_document
from modicum.release import (
    EVERYTHING,
    Label,
    Part,
    Partition,
    Population,
    Unit,
    Vocabulary,
    between,
    content_digest,
    parse_release,
)
from modicum.release.part_parser import BOXES_MAX, GROUP_MAX, LISTED_MAX
from modicum.release.parts import (
    FIRST_DAY,
    LAST_DAY,
    part_from_plain,
    part_to_plain,
)

UNITS = {
    "user": Unit("user", "user_id"),
    "user-day": Unit("user-day", "user_id", "day", "at", ("user",)),
}
PARTITIONS = {
    "country": Partition("country", ("CH", "DE", "FR"), 0, 2, ("user",), None),
    "year": Partition("year", None, 1900, 2030, ("user",), None),
    "zip": Partition("zip", ("8001", "8002"), 0, 1, (), None),
}
WORDS = Vocabulary(
    frozenset({"country", "page"}),
    {},
    tuple(UNITS),
    "add-remove",
    UNITS,
    Population(PARTITIONS, grouped=frozenset({"user"})),
)
BARE = Vocabulary(frozenset({"country", "page"}), {}, ("user",), "add-remove")

MECHANISM = (
    "{mechanism: declared, attributes: [country], cost: {user: {eps: 1},"
    " user-day: {eps: 1}}"
)


def part(text: str, vocab: Vocabulary = WORDS) -> Part:
    """Return the part of a mechanism that has some more keys."""
    written = f"release: r\nmechanisms:\n  - {MECHANISM}, {text}}}\n"
    release = parse_release(read_document(written.encode(), "release.yaml"), vocab)
    return release.mechanisms[0].part


def problems(text: str, vocab: Vocabulary = WORDS) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        part(text, vocab)
    return list(caught.value.problems)


def days(first: str, last: str) -> tuple[int, int]:
    return date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal()


# --- what is meant --------------------------------------------------------------------


@pytest.mark.spec("REL-12")
@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("{country: CH}", [{"country": ("CH",)}]),
        ("{country: [DE, CH, DE]}", [{"country": ("CH", "DE")}]),
        ("[{country: [DE, CH]}]", [{"country": ("CH", "DE")}]),
        ("[{country: DE}, {country: [CH]}]", [{"country": ("CH", "DE")}]),
        ("{zip: '8001'}", [{"zip": ("8001",)}]),
        ("{year: 1990}", [{"year": ((1990, 1990),)}]),
        ("{year: 1990.0}", [{"year": ((1990, 1990),)}]),
        ("{year: [1990, 1995]}", [{"year": ((1990, 1990), (1995, 1995))}]),
        ("{year: {from: 1990, to: 1995}}", [{"year": ((1990, 1995),)}]),
        ("{year: {from: 2000}}", [{"year": ((2000, 2030),)}]),
        ("{year: {to: 1950}}", [{"year": ((1900, 1950),)}]),
        (
            "{year: [1990, {from: 1991, to: 1995}, 2000]}",
            [{"year": ((1990, 1995), (2000, 2000))}],
        ),
        (
            "{year: {to: 1950}, country: CH}",
            [{"country": ("CH",), "year": ((1900, 1950),)}],
        ),
        (
            "[{year: 2000}, {country: CH}]",
            [{"country": ("CH",)}, {"year": ((2000, 2000),)}],
        ),
        ("{country: [CH, DE, FR]}", None),
        ("{year: {from: 1900}}", None),
        ("{year: {from: 1900}, country: CH}", [{"country": ("CH",)}]),
        ("[{country: [CH, DE]}, {country: FR}]", None),
        ("[{country: CH, year: 2000}, {country: CH}]", [{"country": ("CH",)}]),
        (
            "[{country: CH, year: {to: 1950}}, {country: CH, year: {from: 1951}}]",
            [{"country": ("CH",)}],
        ),
    ],
)
def test_every_form_of_where(written: str, where: Any) -> None:
    expected = None if where is None else tuple(tuple(box.items()) for box in where)
    assert part(f"where: {written}") == Part(expected)


@pytest.mark.spec("REL-12")
@pytest.mark.parametrize(
    ("written", "periods"),
    [
        ("2026-11", [days("2026-11-01", "2026-11-30")]),
        ("2026-11-03", [days("2026-11-03", "2026-11-03")]),
        ("'2026-11-03'", [days("2026-11-03", "2026-11-03")]),
        ("2026-Q4", [days("2026-10-01", "2026-12-31")]),
        ("2026-Q1", [days("2026-01-01", "2026-03-31")]),
        ("2026-W01", [days("2025-12-29", "2026-01-04")]),
        ("2026-W53", [days("2026-12-28", "2027-01-03")]),
        ("2026", [days("2026-01-01", "2026-12-31")]),
        ('"2026"', [days("2026-01-01", "2026-12-31")]),
        ("2028-02", [days("2028-02-01", "2028-02-29")]),
        (
            "{from: 2026-11-01, to: 2026-11-30}",
            [days("2026-11-01", "2026-11-30")],
        ),
        ("{from: 2026-11, to: 2026-W49}", [days("2026-11-01", "2026-12-06")]),
        ("{from: 2026-01}", [(days("2026-01-01", "2026-01-01")[0], LAST_DAY)]),
        ("{to: 2025}", [(FIRST_DAY, days("2025-12-31", "2025-12-31")[0])]),
        ("[2026-11-03, 2026-11-04]", [days("2026-11-03", "2026-11-04")]),
        (
            "[2026, 2024-11-03]",
            [days("2024-11-03", "2024-11-03"), days("2026-01-01", "2026-12-31")],
        ),
        (
            "[2026-11, {from: 2026-12}]",
            [(days("2026-11-01", "2026-11-01")[0], LAST_DAY)],
        ),
        ("{from: 0001-01-01}", None),
        ("[{to: 2025}, {from: 2026}]", None),
        ("9999-W52", [(days("9999-12-27", "9999-12-27")[0], LAST_DAY)]),
        ("9999-12", [(days("9999-12-01", "9999-12-01")[0], LAST_DAY)]),
    ],
)
def test_every_form_of_periods(written: str, periods: Any) -> None:
    expected = None if periods is None else tuple(periods)
    assert part(f"periods: {written}") == Part(periods=expected)


@pytest.mark.spec("REL-12")
@pytest.mark.parametrize(
    ("written", "groups"),
    [
        ("3", ((3, 3),)),
        ("[3, 4]", ((3, 4),)),
        ("[9, 3, 9]", ((3, 3), (9, 9))),
        ("{from: 3, to: 7}", ((3, 7),)),
        ("[0, {from: 2, to: 4}]", ((0, 0), (2, 4))),
        ("{from: 3}", ((3, GROUP_MAX),)),
    ],
)
def test_every_form_of_groups(written: str, groups: Any) -> None:
    assert part(f"groups: {written}") == Part(groups=groups)


def test_a_mechanism_inherits_each_key_and_replaces_it() -> None:
    text = f"""\
release: r
where: {{country: CH}}
periods: 2026-11
groups: 1
mechanisms:
  - {MECHANISM}}}
  - {MECHANISM}, where: {{country: DE}}, periods: 2026-12}}
  - {MECHANISM}, where: {{country: [CH, DE, FR]}}, groups: [2, 3]}}
"""
    release = parse_release(read_document(text.encode(), "x"), WORDS)
    november = (days("2026-11-01", "2026-11-30"),)
    december = (days("2026-12-01", "2026-12-31"),)
    only_ch = ((("country", ("CH",)),),)
    assert [one.part for one in release.mechanisms] == [
        Part(only_ch, november, ((1, 1),)),
        Part(((("country", ("DE",)),),), december, ((1, 1),)),
        Part(None, november, ((2, 3),)),
    ]


def test_what_reads_everything_has_the_contents_that_it_always_had() -> None:
    def content(more: str) -> str:
        text = f"release: r\nmechanisms: [{MECHANISM}{more}}}]"
        return content_digest(parse_release(read_document(text.encode(), "x"), WORDS))

    assert content("") == content(", where: {country: [FR, DE, CH]}")
    assert content(", where: {country: [DE, CH]}") == content(
        ", where: [{country: CH}, {country: DE}]"
    )
    some = {content(more) for more in ("", ", where: {country: CH}", ", groups: 1")}
    assert len(some | {content(", periods: 2026"), content(", periods: 2027")}) == 5


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "code", "at"),
    [
        ("where: {contry: CH}", Code.UNKNOWN_ATTRIBUTE, "contry"),
        ("where: {page: x}", Code.UNKNOWN_ATTRIBUTE, "page"),
        ("where: {1: x}", Code.WRONG_TYPE, "1"),
        ("where: {country: CX}", Code.UNKNOWN_CHOICE, "CX"),
        ("where: {country: ch}", Code.UNKNOWN_CHOICE, "ch"),
        ("where: {country: [CH, [DE]]}", Code.WRONG_TYPE, "[DE]"),
        ("where: {country: [CH, null]}", Code.WRONG_TYPE, "null"),
        ("where: {country: {from: CH}}", Code.WRONG_TYPE, "{from"),
        ("where: {country: []}", Code.OUT_OF_RANGE, "[]"),
        ("where: {country: }", Code.WRONG_TYPE, "country"),
        ("where: {zip: 8001}", Code.WRONG_TYPE, "8001"),
        ("where: {year: '1990'}", Code.NOT_A_NUMBER, "'1990'"),
        ("where: {year: 1899}", Code.OUT_OF_RANGE, "1899"),
        ("where: {year: 2031}", Code.OUT_OF_RANGE, "2031"),
        ("where: {year: 1990.5}", Code.OUT_OF_RANGE, "1990.5"),
        ("where: {year: {from: 2000, to: 1990}}", Code.OUT_OF_RANGE, "1990"),
        ("where: {year: {from: 2000, until: 2001}}", Code.UNKNOWN_KEY, "until"),
        ("where: {year: {}}", Code.MISSING_KEY, "{}"),
        ("where: {year: []}", Code.OUT_OF_RANGE, "[]"),
        ("where: {year: 1990-1995}", Code.NOT_A_NUMBER, "1990-1995"),
        ("where: {}", Code.OUT_OF_RANGE, "{}"),
        ("where: []", Code.OUT_OF_RANGE, "[]"),
        ("where: [{}]", Code.OUT_OF_RANGE, "{}"),
        ("where: [[{country: CH}]]", Code.WRONG_TYPE, "[{country"),
        ("where: CH", Code.WRONG_TYPE, "CH"),
        ("where: null", Code.WRONG_TYPE, "null"),
        ("where: {country: CH, country: DE}", Code.DUPLICATE_KEY, "country: DE"),
        ("periods: 2026-13", Code.OUT_OF_RANGE, "2026-13"),
        ("periods: 2026-00", Code.OUT_OF_RANGE, "2026-00"),
        ("periods: 2026-02-29", Code.OUT_OF_RANGE, "2026-02-29"),
        ("periods: 2025-W53", Code.OUT_OF_RANGE, "2025-W53"),
        ("periods: 2026-W00", Code.OUT_OF_RANGE, "2026-W00"),
        ("periods: 2026-Q5", Code.OUT_OF_RANGE, "2026-Q5"),
        ("periods: 0000", Code.OUT_OF_RANGE, "0000"),
        ("periods: 26-11", Code.OUT_OF_RANGE, "26-11"),
        ("periods: 2026-11-3", Code.OUT_OF_RANGE, "2026-11-3"),
        ("periods: 20261103", Code.OUT_OF_RANGE, "20261103"),
        ("periods: 2026.0", Code.OUT_OF_RANGE, "2026.0"),
        ("periods: 2026-w14", Code.OUT_OF_RANGE, "2026-w14"),
        ("periods: \uff12026", Code.OUT_OF_RANGE, "\uff12026"),
        ("periods: 2026-11-03T10:00:00Z", Code.OUT_OF_RANGE, "2026-11-03T"),
        ("periods: 2026-11-03 10:00", Code.OUT_OF_RANGE, "2026-11-03 10"),
        ("periods: true", Code.OUT_OF_RANGE, "true"),
        ("periods: null", Code.WRONG_TYPE, "null"),
        ("periods: []", Code.OUT_OF_RANGE, "[]"),
        ("periods: {}", Code.MISSING_KEY, "{}"),
        ("periods: [[2026]]", Code.OUT_OF_RANGE, "[2026]"),
        ("periods: {from: 2026-11, to: 2026-10}", Code.OUT_OF_RANGE, "2026-10"),
        ("periods: {from: [2026]}", Code.OUT_OF_RANGE, "[2026]"),
        ("periods: {from: null}", Code.OUT_OF_RANGE, "null"),
        ("periods: {since: 2026}", Code.UNKNOWN_KEY, "since"),
        ("groups: -1", Code.OUT_OF_RANGE, "-1"),
        (f"groups: {GROUP_MAX + 1}", Code.OUT_OF_RANGE, f"{GROUP_MAX + 1}"),
        ("groups: '3'", Code.NOT_A_NUMBER, "'3'"),
        ("groups: {from: 7, to: 3}", Code.OUT_OF_RANGE, "3}"),
        ("groups: []", Code.OUT_OF_RANGE, "[]"),
        ("groups: null", Code.WRONG_TYPE, "null"),
    ],
)
def test_a_mistake_is_refused_at_its_place(written: str, code: Code, at: str) -> None:
    (problem,) = problems(written)
    assert problem.code is code
    assert problem.mark is not None
    found = problem.mark.source[problem.mark.column - 1 :]
    assert found.startswith(at), found
    assert problem.message


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("where: {country: CH}", Code.UNKNOWN_ATTRIBUTE),
        ("periods: 2026", Code.KEYS_CONFLICT),
        ("groups: 3", Code.KEYS_CONFLICT),
    ],
)
def test_what_the_policy_does_not_tell_apart_is_refused(
    written: str, code: Code
) -> None:
    bare = "{mechanism: declared, attributes: [], cost: {user: {eps: 1}}"
    text = f"release: r\nmechanisms: [{bare}, {written}}}]"
    with pytest.raises(InputError) as caught:
        parse_release(read_document(text.encode(), "x"), BARE)
    (problem,) = caught.value.problems
    assert problem.code is code
    assert "leave" in problem.help


def test_the_nearest_word_is_shown() -> None:
    (attribute,) = problems("where: {contry: CH}")
    assert attribute.label == 'did you mean "country"?'
    assert attribute.help == "known: country, year, zip"
    (of_data,) = problems("where: {page: x}")
    assert "attribute of the data" in of_data.notes[0]
    (value,) = problems("where: {country: [CHE]}")
    assert value.label == 'did you mean "CH"?'


def test_all_mistakes_are_reported_at_once() -> None:
    found = problems(
        "where: [{country: CX, year: 1}, {contry: CH}], periods: [2026-13, {from: x}],"
        " groups: [a, -1]"
    )
    assert [problem.code for problem in found] == [
        Code.UNKNOWN_CHOICE,
        Code.OUT_OF_RANGE,
        Code.UNKNOWN_ATTRIBUTE,
        Code.OUT_OF_RANGE,
        Code.OUT_OF_RANGE,
        Code.NOT_A_NUMBER,
        Code.OUT_OF_RANGE,
    ]


def test_too_much_is_refused() -> None:
    def boxes(count: int) -> str:
        return json.dumps([{"year": 1900 + number} for number in range(count)])

    assert part(f"where: {boxes(BOXES_MAX)}") == Part(
        ((("year", ((1900, 1900 + BOXES_MAX - 1),)),),)
    )
    (problem,) = problems(f"where: {boxes(BOXES_MAX + 1)}")
    assert problem.code is Code.OUT_OF_RANGE
    (problem,) = problems(f"groups: {json.dumps([1] * (LISTED_MAX + 1))}")
    assert problem.code is Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("attributes", "where", "hidden"),
    [
        ("[page]", "{country: CH}", True),
        ("[]", "[{year: 2000}, {country: CH, year: 1999}]", True),
        ("[]", "{year: 2000}", False),
        ("[country]", "{country: CH}", False),
        ("[]", "{country: [CH, DE, FR]}", False),
    ],
)
def test_who_chooses_rows_by_an_attribute_reads_it(
    attributes: str, where: str, hidden: bool
) -> None:
    """Else the attribute's own rules would not see the release."""
    cost = "cost: {user: {eps: 1}, user-day: {eps: 1}}"
    text = (
        f"release: r\nwhere: {where}\nmechanisms:\n"
        f"  - {{mechanism: declared, attributes: {attributes}, {cost}}}\n"
    )
    node = read_document(text.encode(), "x")
    if not hidden:
        parse_release(node, WORDS)
        return
    with pytest.raises(InputError) as caught:
        parse_release(node, WORDS)
    (problem,) = caught.value.problems
    assert problem.code is Code.MISSING_KEY
    assert problem.mark is not None
    assert problem.mark.line == 4
    assert problem.help == "add country to `attributes`"


def test_a_label_that_is_named_groups_is_a_label() -> None:
    vocab = Vocabulary(
        WORDS.attributes,
        {"groups": Label(("a", "b"), "a")},
        WORDS.units,
        WORDS.neighbors,
        WORDS.unit_facts,
        WORDS.population,
    )
    text = f"release: r\ngroups: b\nmechanisms:\n  - {MECHANISM}}}\n"
    release = parse_release(read_document(text.encode(), "x"), vocab)
    assert release.labels == {"groups": "b"}
    assert release.mechanisms[0].part == EVERYTHING


# --- from Python ----------------------------------------------------------------------


def drafted(**fields: Any) -> Part:
    cost = {"user": mo.pure_dp(1), "user-day": mo.pure_dp(1)}
    own = {key: fields.pop(key) for key in list(fields) if key.startswith("own_")}
    more = {key.removeprefix("own_"): value for key, value in own.items()}
    one = mo.declared(attributes=["country"], cost=cost, **more)
    draft = mo.Release("r", mechanisms=[one], **fields)
    return parse_release(draft.to_node(), WORDS).mechanisms[0].part


def test_a_draft_says_what_a_file_says() -> None:
    year = between(1990, 1995)
    assert drafted(where={"country": ["CH"], "year": year}) == part(
        "where: {country: CH, year: {from: 1990, to: 1995}}"
    )
    assert drafted(periods="2026-11", groups=[1, 2]) == part(
        "periods: 2026-11, groups: {from: 1, to: 2}"
    )
    assert drafted(periods=2026) == part("periods: 2026")
    assert drafted(periods=date(2026, 11, 3)) == part("periods: 2026-11-03")
    assert drafted(own_periods=between(date(2026, 11, 3))) == part(
        "periods: {from: 2026-11-03}"
    )
    assert drafted(periods=2026, own_periods=2027) == part("periods: 2027")
    assert drafted(where=None, periods=None, groups=None) == EVERYTHING


@pytest.mark.parametrize(
    "moment", [datetime(2026, 11, 3, tzinfo=UTC), "2026-11-03T00:00", 20261103]
)
def test_a_moment_is_no_period(moment: object) -> None:
    with pytest.raises(InputError):
        drafted(periods=moment)


# --- anything at all ------------------------------------------------------------------

ends: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["CH", "DE", "8001", "2026", "2026-11", "2026-W53", "9999-Q4", ""]),
    st.sampled_from([0, 3, 1900, 1990, 2030, 2026, 1990.5, True, None, -1, 10**400]),
    st.dates(),
    st.text(max_size=3),
)
written = st.recursive(
    ends,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["from", "to", "country", "year", "zip", "zzz"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(400), deadline=None)
@given(st.dictionaries(st.sampled_from(["where", "periods", "groups"]), written))
@example({"where": {"year": [1990, {"from": 1991}]}, "periods": ["9999-W52", 2026]})
def test_whatever_is_written_is_a_part_that_can_be_stored_or_a_mistake(
    fields: dict[str, Any],
) -> None:
    try:
        found = drafted(**fields)
    except InputError as error:
        assert error.render().startswith("error[MOD")  # noqa: PT017
        return
    assert part_from_plain(**decode(encode(part_to_plain(found)))) == found  # type: ignore[arg-type]
