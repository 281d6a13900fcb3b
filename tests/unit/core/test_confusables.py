"""Names that look alike: letters of other alphabets, capitals, and nothing else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modicum.core.confusable_letters import LOOKALIKES
from modicum.core.confusables import confusable, keys

CYRILLIC_A, GREEK_O, FULLWIDTH_F = "\u0430", "\u03bf", "\uff46"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age", f"{CYRILLIC_A}ge"),
        ("zone", f"z{GREEK_O}ne"),
        ("first", f"{FULLWIDTH_F}irst"),
        ("coce", "\u0441\u043e\u0441\u0435"),  # All of it is Cyrillic.
        ("Age", "age"),
        ("ID", "lD"),
        ("ID", "ld"),
        ("r-10", "r-lO"),
        ("form", "forrn"),
        ("strasse", "stra\u00dfe"),
        ("\u00e9t\u00e9", "\u0435\u0301t\u0435\u0301"),
        ("\U0001d41a", "a"),
    ],
)
def test_what_looks_alike_is_confusable(one: str, other: str) -> None:
    assert confusable(one, other)
    assert confusable(other, one)
    assert not confusable(one, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age", "ages"),
        ("r-1", "r-2"),
        ("cafe", "caf\u00e9"),
        ("user-day", "user_day"),
        ("phase-i", "phase-1"),
        ("\u0436", "\u0448"),
    ],
)
def test_what_looks_different_is_not(one: str, other: str) -> None:
    assert not confusable(one, other)


@given(st.text(max_size=12), st.data())
def test_any_letter_may_be_exchanged_for_one_that_looks_like_it(
    name: str, data: st.DataObject
) -> None:
    prototype, letters = data.draw(st.sampled_from(LOOKALIKES))
    letter = data.draw(st.sampled_from(letters))
    assert not keys(name + prototype).isdisjoint(keys(name + letter))


@given(st.text(max_size=20))
def test_a_name_has_the_keys_of_its_normal_forms(name: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        normal = unicodedata.normalize(form, name)
        assert not keys(name).isdisjoint(keys(normal))
    assert not keys(name).isdisjoint(keys(name.casefold()))


@given(st.text("abIlO01mMrn_-", max_size=12))
def test_names_in_ascii_are_compared_as_others_are(name: str) -> None:
    other = name + "\u0430"  # It takes the longer way.
    assert {key + "a" for key in keys(name)} == keys(other)


def test_the_table_has_letters_digits_and_marks_only_and_is_settled() -> None:
    sources = [letter for _, letters in LOOKALIKES for letter in letters]
    assert len(sources) == len(set(sources)) > 1300
    for prototype, letters in LOOKALIKES:
        for one in letters:
            assert one.isalnum() or unicodedata.category(one).startswith("M")
        assert not {*prototype} & {*sources}
