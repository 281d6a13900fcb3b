"""The report of a choice: safe to open, for whom it is, and complete."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from xml.etree import ElementTree

import pytest
from samples.pages import Reader, read
from samples.risk_studies import COUNT, GAUSSIAN, HOSTILE, STUDIES, TAU

from modicum.risk.choice import Charge, Choice, Claim, Selection
from modicum.risk.noise import LaplaceNoise
from modicum.risk.report import page as words
from modicum.risk.report import risk_report
from modicum.risk.study.study import STUDY_ONLY, Reference, Study
from modicum.risk.study.tables import (
    Table,
    groups_table,
    histogram_table,
    ranges_table,
    units_table,
)

NAMES = ["count", "two groups", "nobody", "extreme", "public", "public, none"]


@cache
def page(name: str) -> str:
    return risk_report(STUDIES[name])


def said(reader: Reader) -> str:
    return " ".join(" ".join(reader.said).split())


def pictures(text: str) -> list[ElementTree.Element]:
    """Return the pictures of a page."""
    found = re.findall("<svg .*?</svg>", text, re.DOTALL)
    return [ElementTree.fromstring(one) for one in found]


def shown_tables(study: Study) -> list[Table]:
    found = [ranges_table(study)]
    found += [groups_table(study)] if study.groups else []
    histograms = study.seen.histograms if study.seen else ()
    found += [histogram_table(study, one) for one in histograms]
    return [*found, units_table(study)]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_well_formed_and_loads_nothing(name: str) -> None:
    text = page(name)
    reader = read(text)
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    forbidden = {"script", "link", "iframe", "object", "embed", "form", "base"}
    assert not forbidden & {*reader.tags}
    names = {name for name, _ in reader.attributes}
    assert not {one for one in names if one.startswith("on")}
    assert not {"href", "srcset", "style", "action"} & names
    assert "@import" not in text
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert ("content", policy) in reader.attributes
    assert reader.tags.count("h1") == 1
    labels = [v or "" for name, v in reader.attributes if name == "aria-labelledby"]
    ids = [v for name, v in reader.attributes if name == "id"]
    used = re.findall(r"url\((.*?)\)", text)
    assert {*" ".join(labels).split(), *(one[1:] for one in used)} == {*ids}
    assert all(one.startswith("#") for one in used)
    assert len(set(ids)) == len(ids) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_has_words_and_is_followed_by_its_table(name: str) -> None:
    study = STUDIES[name]
    reader = read(page(name))
    found = pictures(page(name))
    tables = shown_tables(study)
    assert len(found) == len(tables) - 1  # The last one is the numbers in units.
    for root in found:
        assert root.get("role") == "img"
        assert root[0].text
        assert root[1].text
    order = [tag for tag in reader.tags if tag in {"svg", "table"}]
    assert order == ["svg", "table"] * len(found) + ["table"]
    cells = iter(reader.said)
    for table in tables:
        for words_ in (
            table.caption,
            *table.titles,
            *(c for r in table.rows for c in r),
        ):
            assert words_ in cells  # In this order: what was passed is gone.


@pytest.mark.spec("RSK-1")
@pytest.mark.parametrize("name", NAMES)
def test_whom_a_page_is_for_stands_above_and_below(name: str) -> None:
    study = STUDIES[name]
    reader = read(page(name))
    pieces = [one for one in reader.said if one.strip()]
    if study.notice is None:
        assert "controller of the data" not in said(reader)
        kinds = [value for name, value in reader.attributes if name == "class"]
        assert not [one for one in kinds if one and "banner" in one]
        return
    # It stands in each picture, too.
    assert pieces.count(study.notice) == 2 + len(pictures(page(name)))
    heading = pieces.index("Disclosure risk of a query", 1)
    assert pieces[-1] == study.notice == pieces[heading - 1]
    kinds = [value for name, value in reader.attributes if name == "class"]
    assert [one for one in kinds if one and one.endswith(" banner")] == [
        "first banner",
        "last banner",
    ]


def test_on_paper_the_banner_is_on_every_page() -> None:
    """Heads and feet of a table are repeated where it is broken."""
    text = page("count")
    printed = text[text.rindex("@media print { .sheet") :]
    assert ".sheet { display: table;" in printed
    assert ".first.banner { display: table-header-group;" in printed
    assert ".last.banner { display: table-footer-group;" in printed


def test_a_choice_without_a_promise_is_for_the_controller_without_people_too() -> None:
    bare = Choice(None, Claim.EXPERIMENTAL, "from-pri", "nothing passed")
    reader = read(risk_report(replace(STUDIES["public"], choice=bare)))
    assert reader.said.count(STUDY_ONLY) == 3


def test_hostile_text_is_only_said() -> None:
    study = STUDIES["six groups"]
    asked = replace(study.query, question=HOSTILE, person=HOSTILE, unit=HOSTILE)
    choice = replace(study.choice, why=HOSTILE, caveats=(HOSTILE,), method=HOSTILE)
    reference = Reference(5.0, HOSTILE)
    study = replace(study, query=asked, choice=choice, reference=reference)
    text = risk_report(study)
    reader = read(text)
    assert "script" not in reader.tags
    assert reader.said.count(HOSTILE) >= 5
    assert any(HOSTILE in one for one in reader.said if one.startswith("Largest RDR"))
    assert any(HOSTILE in one for one in reader.said if one.startswith("Also in %"))
    for root in pictures(text):
        assert not [one for one in root.iter() if one.tag.endswith("script")]


def test_what_a_page_of_people_says() -> None:
    result = said(read(page("count")))
    for words_ in (
        "SELECT COUNT(*) FROM t",
        "all rows of one id",
        "Laplace noise on the answer, of scale 1 divided by epsilon",
        "200",
        "Epsilon 1 ",
        "1 is the largest of 4 candidates",
        "controller-only advice",
        "find-epsilon-from-rdr",
        words.CLAIMS[Claim.ADVICE],
        words.NOT_CHARGED[Claim.ADVICE],
        words.INDICATOR,
        words.HISTOGRAM,
        words.OWN_LOSS.format(loss="epsilon"),
        *STUDIES["count"].choice.caveats,
    ):
        assert words_ in result
    assert "No epsilon was chosen" not in result


def test_what_a_page_that_may_be_released_says() -> None:
    result = said(read(page("public")))
    for words_ in (
        words.CLAIMS[Claim.DP],
        words.ANY_TABLE,
        "A release at the chosen epsilon kind: laplace, l1: 1, scale: 1",
        "The largest candidate that meets the target 1",
    ):
        assert words_ in result
    for words_ in ("Median", "99 %", "People in the table", "own epsilon"):
        assert words_ not in result
    none = said(read(risk_report(STUDIES["public, none"])))
    assert "No epsilon was chosen" in none
    assert words.NOT_CHARGED[Claim.DP] in none


def test_a_choice_that_may_be_released_beside_people_who_may_not() -> None:
    both = replace(STUDIES["count"], choice=STUDIES["public"].choice)
    assert words.PEOPLE_BESIDE in said(read(risk_report(both)))
    for name in ("count", "public"):
        assert words.PEOPLE_BESIDE not in said(read(page(name)))


def test_all_that_must_be_charged_is_said() -> None:
    spent = Selection(Fraction(1, 4), Fraction(1, 2))
    for release in (COUNT.described(TAU), GAUSSIAN.described(TAU)):
        choice = Choice(
            TAU, Claim.DP, "private-selection", "so", charge=Charge(release, spent)
        )
        lines = dict(words.charged(choice))
        assert len(lines) == 2
        for described in (release, spent.described()):
            whole = [
                one for one in lines.values() if f"kind: {described['kind']}" in one
            ]
            assert len(whole) == 1
            for key, value in described.items():
                assert f"{key}: {value}" in whole[0]
        assert "(epsilon 0.75)" in lines["The choice itself, whatever its result"]
    refused = Choice(
        None, Claim.DP, "private-selection", "so", charge=Charge(None, spent)
    )
    assert list(dict(words.charged(refused))) == [
        "The choice itself, whatever its result"
    ]


def test_noise_in_words() -> None:
    assert words.noise_text(LaplaceNoise(Fraction(3, 2), 6)) == (
        "Laplace noise on each of 6 numbers, of scale 1.5 divided by epsilon"
    )
    exact = words.noise_text(GAUSSIAN)
    assert "the smallest sufficient noise for epsilon and delta 1e-6" in exact
    assert "L2 sensitivity of 1600" in exact
    classical = words.noise_text(replace(GAUSSIAN, calibration="published"))
    assert "classical" in classical


def test_too_many_groups_for_a_picture_have_a_table() -> None:
    study = STUDIES["one group"]
    assert study.seen is not None
    group, many = study.seen.groups[0], 7
    seen = replace(study.seen, groups=(group,) * many, histograms=())
    candidates = tuple(
        replace(one, groups=one.groups * many) for one in study.candidates
    )
    reader = read(risk_report(replace(study, seen=seen, candidates=candidates)))
    assert "More than 6 groups are shown in a table only." in said(reader)
    assert [tag for tag in reader.tags if tag in {"svg", "table"}] == [
        "svg",
        "table",
        "table",
        "table",
    ]


def test_the_same_study_has_the_same_page() -> None:
    assert risk_report(STUDIES["one group"]) == page("one group")


def test_no_person_is_told_of_unless_asked() -> None:
    study = STUDIES["count"]
    assert study.seen is not None
    seen = replace(study.seen, histograms=())
    text = risk_report(replace(study, seen=seen))
    assert "How many people" not in said(read(text))
    assert len(pictures(text)) == 1
