"""The digest of a policy: what counts as the same, and what does not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import modicum
from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.policy.compiler import compile_text
from modicum.policy.document.canonical_form import formatted

POLICY = """\
modicum: policy/v1
name: digest
dp: {bare_budget: {type: approx-dp, delta: 1e-7}}
units: {user: {id: user_id}}
labels: {ml: {values: [none, black-box], default: none}}
schema:
  categories: {health: high, location: low}
  attributes: {age: [low, {health: weak, location: member}], gps: high}
policies:
  - {name: all, when: "true", unit: user, budget: 2.0}
  - {name: attr, for_each: attribute, unit: user, budget: {low: 2, high: 1}}
extensions:
  - name: ml
    settings:
      standard: {when: 'm.ml == "none"', budget: same, within: black-box}
      black-box: {when: "true", budget: {map: {1: 2, 2: 5}, between: linear}}
per_release:
  - {name: cap, when: "true", unit: user, budget: {eps: 1.5, delta: 1e-7}}
"""


def digest(text: str) -> str:
    return compile_text(text.encode(), "policy.yaml").policy.digest


def test_the_digest_is_64_hexadecimal_digits_and_does_not_know_the_file() -> None:
    found = digest(POLICY)
    assert len(found) == 64
    assert set(found) <= set("0123456789abcdef")
    assert compile_text(POLICY.encode(), "other.yaml").policy.digest == found


@pytest.mark.spec("POL-6")
def test_the_digest_is_the_hash_of_the_canonical_text() -> None:
    text = formatted(read_document(POLICY.encode(), "policy.yaml"))
    assert digest(POLICY) == hashlib.sha256(text.encode()).hexdigest()
    assert digest(text) == digest(POLICY)


@pytest.mark.spec("POL-6")
def test_the_digests_that_stand_in_ledgers_stay() -> None:
    """A change here makes every ledger that holds a policy unreadable."""
    example = Path(modicum.__file__).parent / "ops/examples/acme-health/policy.yaml"
    assert digest(example.read_text()) == (
        "b0eaf0bdfd8ec1bf4094a96c60aa3d93a2eda46e2ed105f840375cf933666dda"
    )
    assert digest(POLICY) == (
        "880b27cfa21f55519be60a3412834b5f377bb7f3f9dce4f920711c14bb36f983"
    )


@pytest.mark.spec("POL-6")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("modicum: policy/v1\nname: digest", "name: digest\nmodicum: policy/v1"),
        ("{type: approx-dp, delta: 1e-7}", "{delta: 1e-7, type: approx-dp}"),
        ("{values: [none, black-box], default: none}",
         "{default: none, values: [none, black-box]}"),
        ('name: all, when: "true"', 'when: "true", name: all'),
        ("name: attr, for_each: attribute", "for_each: attribute, name: attr"),
        ("budget: same, within: black-box", "within: black-box, budget: same"),
        ("map: {1: 2, 2: 5}, between: linear", "between: linear, map: {1: 2, 2: 5}"),
        ("{eps: 1.5, delta: 1e-7}", "{delta: 1e-7, eps: 1.5}"),
    ],
)  # fmt: skip
def test_the_order_of_the_keys_of_the_format_does_not_count(old: str, new: str) -> None:
    changed = POLICY.replace(old, new, 1)
    assert changed != POLICY
    assert digest(changed) == digest(POLICY)


@pytest.mark.spec("POL-6")
def test_the_order_of_the_sections_does_not_count() -> None:
    head, per_release = POLICY.split("per_release:")
    assert digest(f"per_release:{per_release}{head}") == digest(POLICY)


@pytest.mark.spec("POL-6")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("modicum:", "# a remark\n\n\nmodicum:"),
        ("modicum:", "\ufeffmodicum:"),
        ("modicum:", "%YAML 1.2\n---\nmodicum:"),
        ("name: digest\n", "name: digest   # which one?\n"),
        ("name: digest\n", '"name": "digest"\n'),
        ("name: digest\n", "'name':   'digest'\n"),
        ("name: digest\n", "? name\n: digest\n"),
        ("name: digest\n", "name: >-\n  digest\n"),
        ("2.0}", "2}"),
        ("2.0}", "2.00}"),
        ("2.0}", "+2e0}"),
        ("2.0}", "20.0E-1}"),
        ("delta: 1e-7}}", "delta: 0.0000001}}"),
        ("{1: 2, 2: 5}", "{1.0: 2, 0.2e1: 5.0}"),
        ('when: "true"', "when: 'true'"),
        ("{user: {id: user_id}}", "\n  user:\n    id: user_id"),
        ("[none, black-box]", "\n    - none\n    - black-box\n   "),
        ("default: none", 'default: "none"'),
        ("\n", "\r\n"),
    ],
)
def test_layout_and_spelling_do_not_change_the_digest(old: str, new: str) -> None:
    count = -1 if old == "\n" else 1
    changed = POLICY.replace(old, new, count)
    assert changed != POLICY
    if "values: \n" in changed:  # The list has left the flow mapping.
        changed = changed.replace(
            "labels: {ml: {values:", "labels:\n  ml:\n   values:"
        ).replace(", default: none}}", "default: none")
    assert digest(changed) == digest(POLICY)


@pytest.mark.spec("POL-6")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: digest", "name: Digest"),
        ("2.0}", "1.999999999999999999999999}"),
        ("2.0}", "{eps: 2.0, delta: 1e-7}}"),  # The same limit, said differently.
        ("delta: 1e-7}}", "delta: 1e-8}}"),
        ("user_id", "userid"),
        ("[none, black-box]", "[black-box, none]"),
        ("default: none", "default: black-box"),
        ("age: [low", "age: [high"),
        ("health: weak", "health: strong"),
        ("{health: high, location: low}", "{location: low, health: high}"),
        ("gps: high", "gps: [high]"),
        ("for_each: attribute", "for_each: category"),
        ("budget: same", "budget: {scale: 1}"),
        (", within: black-box", ""),
        ("between: linear", "between: floor"),
        ("{1: 2, 2: 5}", "{2: 5, 1: 2}"),
        ("{low: 2, high: 1}", "{high: 1, low: 2}"),
        ("{health: weak, location: member}", "{location: member, health: weak}"),
        ('when: "true", unit', 'when: "true ", unit'),
        ("dp: {", "dp: {filter: combined-v1, "),
        ("name: cap", "name: cab"),
        ("eps: 1.5", "eps: 1.4"),
    ],
)
def test_every_change_of_what_is_said_changes_the_digest(old: str, new: str) -> None:
    changed = POLICY.replace(old, new, 1)
    assert changed != POLICY
    assert digest(changed) != digest(POLICY)


@pytest.mark.spec("POL-6")
def test_the_order_of_policies_and_settings_counts() -> None:
    lines = POLICY.splitlines(keepends=True)
    for first in (9, 14):
        swapped = [*lines]
        swapped[first], swapped[first + 1] = swapped[first + 1], swapped[first]
        assert digest("".join(swapped)) != digest(POLICY)


@pytest.mark.spec("POL-6")
@pytest.mark.parametrize(
    ("unquoted", "quoted"),
    [("2.0}", '"2.0"}'), ("1e-7}}", '"1e-7"}}'), ("{1: 2,", '{"1": 2,')],
)
def test_a_number_in_quotes_is_a_text_and_no_policy(unquoted: str, quoted: str) -> None:
    with pytest.raises(InputError):
        digest(POLICY.replace(unquoted, quoted, 1))


def test_the_text_is_kept_as_it_was_without_the_mark_of_byte_order() -> None:
    text = "# kept\n" + POLICY
    assert compile_text(text.encode("utf-8-sig"), "policy.yaml").policy.text == text


@pytest.mark.spec("POL-6")
def test_a_tag_does_not_slip_in_behind_an_anchor() -> None:
    """`!!str 2.0` is a text; read as a number it would say something else."""
    for budget in ("!!str 2.0", "&b !!str 2.0", "!!float 2.0", "&b !!float 2.0"):
        with pytest.raises(InputError):
            digest(POLICY.replace("2.0}", f"{budget}}}"))
    anchored = POLICY.replace("2.0}", "&b 2.0}").replace("{eps: 1.5,", "{eps: *b,")
    assert digest(anchored) == digest(POLICY.replace("{eps: 1.5,", "{eps: 2,"))
