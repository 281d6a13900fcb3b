"""Names of attributes, labels and categories that a later policy changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples.first_version import as_written_by, with_policy
from samples.redefined import MONTH, POLICY, activate, of, release
from samples.small import NOON, compiled

from modicum.accounting.grid import RHO
from modicum.api.local.access.grants import Granting
from modicum.api.local.access.row_filters import Columns
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.core.errors import Code, InputError
from modicum.ledger import audit
from modicum.reports.deployment_registry import registry_records
from modicum.reports.sources import opened_ledger, report_on
from modicum.storage.proofs.verification import Trust

TENTH = 10**11


def ruled(when: str, attributes: str = "page: low, town: low", more: str = "") -> str:
    """Return a policy with a rule of a unit `time`, about some mechanisms."""
    return (
        POLICY.replace('when: "true", unit: time', f"when: '{when}', unit: time")
        .replace("page: low, town: low", attributes)
        .replace(f"{{{attributes}}}", f"{{{attributes}}}{more}", 1)
    )


def asked(folder: Path, policy: str) -> list[tuple[Code, str]]:
    """Return what is asked before a policy is activated."""
    found = of(folder).governance.preview_activation(compiled(policy)).problems
    history = history_of(of(folder).records(), NOON)
    assert what_if(history, compiled(policy)).problems == found
    return [(one.code, one.message) for one in found]


def spent(folder: Path) -> dict[str, int]:
    return {one.rule.id: one.before.units(RHO) for one in of(folder).standings()}


def reading(name: str, *attributes: str) -> dict[str, Any]:
    found = release(name)
    found["mechanisms"][0]["attributes"] = [*attributes]
    return found


def split(when: str) -> str:
    """Return a policy in which `page` became `host` and `path`."""
    return ruled(when, "host: low, path: low, town: low", ", was: {page: [host, path]}")


# --- attributes ----------------------------------------------------------------------


@pytest.mark.spec("POL-18")
def test_a_rename_that_was_applied_answers_no_later_question(tmp_path: Path) -> None:
    was = ", was: {page: site}"
    by_site = '"site" in m.attributes'
    of(tmp_path, ruled('"page" in m.attributes')).submit(release("r-1"))
    activate(tmp_path, ruled(by_site, "site: low", was))
    # A new attribute of the former name, and then one of another name in its place.
    activate(tmp_path, ruled(by_site, "site: low, page: low", was))
    of(tmp_path).submit(release("r-2"))
    fresh = ruled(by_site, "site: low, fresh: low", was)
    assert asked(tmp_path, fresh) == [
        (
            Code.ATTRIBUTE_DROPPED,
            "the attribute `page` is removed, and one of `fresh`, `site` may be its new"
            " name",
        )
    ]
    activate(tmp_path, fresh, "attribute:page")
    assert spent(tmp_path)["short"] == TENTH
    assert of(tmp_path).verify().decisions == 2


@pytest.mark.spec("POL-19")
def test_what_an_attribute_that_stays_is_mapped_away_from_is_asked(
    tmp_path: Path,
) -> None:
    by_page = '"page" in m.attributes'
    of(tmp_path, ruled(by_page)).submit(release("r-1"))
    mapped = ruled(by_page, more=", was: {page: town}")
    left = (Code.RELEASES_DEPARTED, "1 past release leaves the rule short")
    assert asked(tmp_path, mapped) == [left]
    activate(tmp_path, mapped, "departed:short")
    assert spent(tmp_path)["short"] == 0
    assert of(tmp_path).verify().decisions == 1


@pytest.mark.spec("POL-18")
@pytest.mark.parametrize(
    "when",
    [
        "size(m.attributes) == 1",
        "size(m.attributes) == 2",
        '!("host" in m.attributes)',
        '!("path" in m.attributes)',
        '"path" in m.attributes && !("host" in m.attributes)',
        'm.attributes.all(a, a == "host")',
        'm.attributes.exists(a, a == "path")',
    ],
)
def test_a_split_attribute_counts_as_whatever_it_may_be(
    tmp_path: Path, when: str
) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    activate(tmp_path, split(when))
    assert spent(tmp_path)["short"] == TENTH
    assert of(tmp_path).verify().decisions == 1


@pytest.mark.spec("POL-18")
def test_nothing_is_counted_that_no_choice_of_names_matches(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(reading("r-1", "page", "town"), publish=True)
    activate(tmp_path, split("true"))
    for when, charge in (
        ("size(m.attributes) == 1", 0),
        ("size(m.attributes) == 3", TENTH),
        ('!("town" in m.attributes)', 0),
        ('!("host" in m.attributes || "path" in m.attributes)', 0),
    ):
        activate(tmp_path, split(when))
        assert spent(tmp_path)["short"] == charge, when
    assert of(tmp_path).verify().decisions == 1


@pytest.mark.spec("POL-18")
def test_swapped_attributes_count_by_the_name_that_they_have_now(
    tmp_path: Path,
) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    swap = ", was: {page: town, town: page}"
    for name, charge in (("town", TENTH), ("page", 0)):
        for when in (
            f'"{name}" in m.attributes',
            f'"{name}" in m.attributes && size(m.attributes) == 1',
        ):
            activate(tmp_path, ruled(when, more=swap))
            assert spent(tmp_path)["short"] == charge, when


@pytest.mark.parametrize(
    "more", [", was: {page: town, town: page}", ", was: {page: town}"]
)
def test_rows_are_not_selected_by_names_that_were_mapped(
    tmp_path: Path, more: str
) -> None:
    of(tmp_path, POLICY).submit(reading("r-1", "page", "town"))

    def granted() -> object:
        ws = of(tmp_path)
        standing = ws.standing("r-1")
        vocabulary = ws.policy().policy.vocabulary
        granting = Granting(vocabulary, ws.state().policies, Columns())
        return granting.grants(standing, ws.release_of(standing))

    assert granted()
    activate(tmp_path, POLICY.replace("rho: 9", "rho: 8"))
    assert granted()
    activate(tmp_path, ruled("true", more=more))
    with pytest.raises(InputError, match="another meaning") as caught:
        granted()
    assert caught.value.problems[0].notes == ("its attributes have other names now",)


def test_a_simulation_knows_a_renamed_attribute(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    history = history_of(of(tmp_path).records(), NOON)

    def assumed(more: str) -> list[str]:
        policy = compiled(ruled("true", "site: low, town: low", more))
        found = what_if(history, policy).assumptions
        return [f"{one.subject}: {one.taken}" for one in found]

    assert assumed(", was: {page: site}") == []
    assert assumed("") == [
        "page: no longer known: no rule uses it",
        "site: assumed not read",
    ]


def test_a_registry_names_what_is_charged_today(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)

    def stated() -> object:
        with opened_ledger(tmp_path / "ledger.db") as source:
            statement = report_on(source, Trust())
            (one,) = registry_records(statement, source.store.read(0))
        loss: Any = one["deployment"]
        return loss["privacy_loss"]["privacy_parameters"]["rho"]

    assert stated() == 0.1
    activate(tmp_path, MONTH, "unit:time")
    assert stated() == 0.4


# --- units ----------------------------------------------------------------------------

DEVICES = """
modicum: policy/v1
name: devices
dp: {accountant: zcdp}
units:
  user: {id: uid}
  device: {id: device_id, within: user, groups: {user: 3}}
schema: {attributes: {page: low}}
policies:
  - {name: each, when: "true", unit: device, budget: {rho: 1000}}
"""


@pytest.mark.spec("LED-24")
def test_version_five_let_a_unit_go_that_losses_were_derived_from(
    tmp_path: Path,
) -> None:
    of(tmp_path, DEVICES).submit(release("r-1", ["device"]), publish=True)
    alone = DEVICES.replace("  user: {id: uid}\n", "").replace(
        ", within: user, groups: {user: 3}", ""
    )
    records = with_policy([*of(tmp_path).records()], alone)
    assert audit(as_written_by(5, records)).entries == len(records)


# --- labels ---------------------------------------------------------------------------

LABELS = "{audience: {values: [public, internal], default: public}}"


def labeled(labels: str, when: str) -> str:
    """Return a policy with a rule about a label, and others that ask less."""
    return POLICY.replace('when: "true", unit: time', f"when: '{when}', unit: time") + (
        f"labels: {labels}\n"
    )


BY_AUDIENCE = labeled(LABELS, 'm.audience == "public"')


def to_audiences(folder: Path) -> None:
    for number, audience in enumerate(["public", "internal"]):
        written = {**release(f"r-{number}"), "audience": audience}
        of(folder, BY_AUDIENCE).submit(written, publish=True)


@pytest.mark.spec("POL-19")
@pytest.mark.parametrize(
    ("labels", "when"),
    [
        # Another value, another name, both, and a swap.
        (
            "{audience:"
            " {values: [open, internal], default: open, was: {public: open}}}",
            'm.audience == "open"',
        ),
        (
            LABELS.replace("audience: {", "reach: {former_name: audience, "),
            'm.reach == "public"',
        ),
        (
            "{reach: {values: [open, own], default: open, former_name: audience,"
            " was: {public: open, internal: own}}}",
            'm.reach == "open"',
        ),
        (
            "{audience: {values: [public, internal], default: internal,"
            " was: {public: internal, internal: public}}}",
            'm.audience == "internal"',
        ),
    ],
)
def test_a_renamed_label_or_value_keeps_its_history(
    tmp_path: Path, labels: str, when: str
) -> None:
    to_audiences(tmp_path)
    assert spent(tmp_path) == {"short": TENTH, "long": 2 * TENTH}
    renamed = labeled(labels, when)
    assert asked(tmp_path, renamed) == []
    activate(tmp_path, renamed)
    assert spent(tmp_path) == {"short": TENTH, "long": 2 * TENTH}
    # Its step was taken: it is not taken again.
    activate(tmp_path, renamed.replace("rho: 9", "rho: 8"))
    assert spent(tmp_path) == {"short": TENTH, "long": 2 * TENTH}
    assert of(tmp_path).verify().decisions == 2


@pytest.mark.spec("POL-19")
def test_a_value_under_another_name_is_asked_about_without_was(tmp_path: Path) -> None:
    to_audiences(tmp_path)
    # What is not known any more reads as the default, which is the strictest.
    own = "{audience: {values: [public, own], default: own}}"
    either = labeled(own, 'm.audience == "own" || m.audience == "public"')
    assert asked(tmp_path, either) == []
    left = (Code.RELEASES_DEPARTED, "1 past release leaves the rule short")
    assert asked(tmp_path, labeled(own, 'm.audience == "own"')) == [left]


@pytest.mark.spec("POL-1")
@pytest.mark.parametrize(
    ("label", "code"),
    [
        ("was: {public: nobody}", Code.UNKNOWN_LABEL_VALUE),
        ("was: [public]", Code.WRONG_TYPE),
        ("former_name: [a]", Code.WRONG_TYPE),
    ],
)
def test_a_label_becomes_what_there_is(label: str, code: Code) -> None:
    labels = LABELS.replace("default:", f"{label}, default:")
    with pytest.raises(InputError) as caught:
        compiled(labeled(labels, "true"))
    assert caught.value.code is code


@pytest.mark.spec("POL-6")
def test_the_past_of_a_label_is_part_of_a_policy() -> None:
    digests = {
        compiled(labeled(LABELS.replace("default: public", one), "true")).policy.digest
        for one in (
            "default: public",
            "default: public, former_name: reach",
            "former_name: reach, default: public",
            "default: public, was: {open: public}",
        )
    }
    assert len(digests) == 3


# --- categories -----------------------------------------------------------------------

GROUPED = POLICY.replace(
    '{name: short, when: "true", unit: time, budget: {rho: 1}}',
    "{name: of, for_each: category, unit: time, budget: {low: {rho: 1}},"
    " levels: {member: same}}",
).replace(
    "schema: {attributes: {page: low, town: low}}",
    "schema: {categories: {web: low},"
    " attributes: {page: [low, {web: member}], town: [low, {web: member}]}}",
)


@pytest.mark.spec("POL-19")
def test_a_category_counts_by_its_members_under_any_name(tmp_path: Path) -> None:
    of(tmp_path, GROUPED).submit(release("r-1"), publish=True)
    renamed = GROUPED.replace("web:", "sites:")
    assert asked(tmp_path, renamed) == []
    activate(tmp_path, renamed)
    assert spent(tmp_path)["of:sites/member"] == TENTH
    assert of(tmp_path).verify().decisions == 1


@pytest.mark.spec("POL-19")
@pytest.mark.parametrize("name", ["web", "sites"])
def test_a_category_that_loses_a_member_is_left_by_what_read_it(
    tmp_path: Path, name: str
) -> None:
    of(tmp_path, GROUPED).submit(release("r-1"), publish=True)
    of(tmp_path).submit(reading("r-2", "town"))
    smaller = GROUPED.replace("page: [low, {web: member}]", "page: [low, {}]")
    smaller = smaller.replace("web:", f"{name}:")
    left = (Code.RELEASES_DEPARTED, "1 past release leaves the rule of:web/member")
    assert asked(tmp_path, smaller) == [left]
    activate(tmp_path, smaller, "departed:of:web/member")
    assert spent(tmp_path)[f"of:{name}/member"] == TENTH
    assert of(tmp_path).verify().decisions == 2
    # A member more is no question.
    activate(tmp_path, GROUPED.replace("web:", f"{name}:"))
    assert spent(tmp_path)[f"of:{name}/member"] == 2 * TENTH
