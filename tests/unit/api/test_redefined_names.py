"""A name that losses were recorded under keeps its meaning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields, replace
from oracle.auditor import audit as audited_again
from samples.first_version import as_written_by, with_policy
from samples.redefined import MONTH, POLICY, WITHOUT, activate, of, release, run
from samples.small import NOON, compiled

from modicum.accounting import INFINITE
from modicum.accounting.grid import RHO
from modicum.api.local import Workspace
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.core.errors import Code, InputError, VerificationError
from modicum.ledger import ChainBreakError, audit, event_of
from modicum.ledger.log.events import ReleaseReserved
from modicum.ledger.replay.migration import Migration
from modicum.policy.past_units import vocabulary_of
from modicum.release import Unit
from modicum.release.entailment import CLAIMS, MEANING, RECORDED, entailment
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

#: Written by a version that let `user-time` become a month after it was a day.
OLD = Path(__file__).parents[2] / "golden" / "ledgers" / "v4-redefined-unit.db"


def refused(folder: Path, policy: str) -> list[tuple[Code, str]]:
    """Return why a policy is refused: by weighing it, and by activating it."""
    before = of(folder).state().head
    with pytest.raises(InputError) as caught:
        activate(folder, policy)
    assert of(folder).state().head == before
    preview = of(folder).governance.preview_activation(compiled(policy))
    assert caught.value.problems[: len(preview.problems)] == preview.problems
    history = history_of(of(folder).records(), NOON)
    assert what_if(history, compiled(policy)).problems == preview.problems
    return [(one.code, one.message) for one in preview.problems]


# --- units ------------------------------------------------------------------------


#: A rho of 0.1 for a day and for a user, and for one of the unit `time` as defined now.
TENTH = 10**11


@pytest.mark.spec("POL-17")
@pytest.mark.parametrize(
    ("was", "now", "told", "charge"),
    [
        # All that a month loses, its user loses: two changes of them make any of it.
        ("period: day", "period: month", "period day -> month", 2**2 * TENTH),
        # A month is removed, and added with the rest of its days.
        ("period: month", "period: day", "period month -> day", 2**2 * TENTH),
        ("id: uid, time", "id: household, time", "id uid -> household", INFINITE),
        # As of a day, all that is known is that it lies in its user.
        ("column: at", "column: seen", "column at -> seen", 2**2 * TENTH),
        (
            "uid, time: {column: at, period: day}",
            "uid",
            "period day -> none, column at -> none",
            TENTH,
        ),
    ],
)
def test_a_unit_is_redefined_only_if_that_is_accepted_and_is_charged_then(
    tmp_path: Path, was: str, now: str, told: str, charge: int
) -> None:
    first = POLICY if was in POLICY else MONTH
    of(tmp_path, first).submit(release("r-1"), publish=True)
    changed = first.replace(was, now, 1)
    assert refused(tmp_path, changed) == [
        (
            Code.UNIT_REDEFINED,
            f"the unit `time` is redefined under the same name: {told}",
        )
    ]
    named_anew = changed.replace("  time:", "  other:").replace(
        "unit: time", "unit: other"
    )
    found = of(tmp_path).governance.preview_activation(compiled(named_anew))
    assert found.problems == ()
    # Another name makes no difference: a unit is known by its definition.
    over = ["short"] if charge > 10**12 else []
    assert [one.rule.id for one in found.conflicts] == over
    with pytest.raises(InputError) as caught:
        activate(tmp_path, changed, *over)
    assert caught.value.code is Code.UNIT_REDEFINED
    activate(tmp_path, changed, "unit:time", *over)
    (short, _) = of(tmp_path).standings()
    assert short.before.units(RHO) == charge
    assert of(tmp_path).verify().understated == ()
    # It is not asked again, nor is the definition that the loss was recorded for.
    activate(tmp_path, changed.replace("rho: 9", "rho: 10"), *over)
    activate(tmp_path, first)
    assert of(tmp_path).standings()[0].before.units(RHO) == TENTH


@pytest.mark.spec("POL-17")
def test_a_unit_that_no_loss_counts_for_is_redefined(tmp_path: Path) -> None:
    ws = of(tmp_path, POLICY)
    ws.init()
    activate(tmp_path, MONTH)
    week = POLICY.replace("period: day", "period: week")
    of(tmp_path).submit(release("given-up"))
    assert refused(tmp_path, week)
    of(tmp_path).cancel("given-up", reason="not needed")
    big = release("denied")
    big["mechanisms"][0]["cost"]["time"] = {"rho": 5}
    assert not of(tmp_path).submit(big).allowed
    activate(tmp_path, week)
    of(tmp_path).submit(release("lapses"))
    later = "2026-09-01T12:00:00.000000Z"
    assert refused(tmp_path, POLICY)
    activate(tmp_path, POLICY, now=later)
    assert of(tmp_path, now=later).verify().understated == ()


@pytest.mark.spec("POL-17")
def test_a_unit_that_was_removed_does_not_come_back_as_another(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    activate(tmp_path, WITHOUT)
    of(tmp_path).submit(release("r-2", ["user"]), publish=True)
    ((code, message),) = refused(tmp_path, MONTH)
    assert code is Code.UNIT_REDEFINED
    assert message.endswith("period day -> month")
    # As it was, it may come back: a day lies in its user, two changes of whom make any
    # change of it.
    activate(tmp_path, POLICY)
    (short, _) = of(tmp_path).standings()
    assert short.before.units(RHO) == TENTH + 4 * TENTH
    assert of(tmp_path).verify().decisions == 2


@pytest.mark.spec("POL-17")
def test_another_neighboring_relation_is_converted_and_not_refused(
    tmp_path: Path,
) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    other = POLICY
    for relation in ("substitute", "any-change"):
        other = POLICY.replace("id: uid,", f"id: uid, neighbors: {relation},")
        found = of(tmp_path).governance.preview_activation(compiled(other))
        assert found.problems == ()
    activate(tmp_path, other)
    (short, _) = of(tmp_path).standings()
    assert short.before.units(1) == 4 * 10**11  # Two changes: four times 0.1.


@pytest.mark.spec("POL-17")
def test_who_agreed_does_not_make_a_redefinition_right(tmp_path: Path) -> None:
    by_day = POLICY + "roles: {officer: [olga]}\nactivation: {need: 1, from: [officer]}"
    of(tmp_path, by_day).submit(release("r-1"), publish=True)
    month = compiled(by_day.replace("period: day", "period: month"))
    of(tmp_path).governance.propose_policy(month, reason="months")
    olga = Workspace(
        SqliteStore(tmp_path / "ledger.db", wait_seconds=20),
        FixedClock(NOON),
        actor="olga",
    )
    vote = olga.governance.approve_policy(month.policy.digest[:12], reason="yes")
    assert vote.preview is not None
    assert [one.code for one in vote.preview.problems] == [Code.UNIT_REDEFINED]
    with pytest.raises(InputError) as caught:
        of(tmp_path).governance.activate(month, reason="months", accept=["short"])
    assert caught.value.code is not Code.POLICY_CONFLICT
    with pytest.raises(InputError) as caught:
        of(tmp_path).governance.activate(month, reason="months")
    assert caught.value.code is Code.UNIT_REDEFINED


@pytest.mark.spec("POL-17")
def test_every_field_of_a_unit_is_told_apart() -> None:
    classified = ["name", *MEANING, *CLAIMS, *RECORDED]
    assert sorted(classified) == sorted(one.name for one in fields(Unit))


DEVICE = Unit("device", "device_id", within=("user",), groups={"user": 5})
USER, DAY = Unit("user", "uid"), Unit("day", "uid", "day", "at", within=("user",))


@pytest.mark.spec("POL-17")
@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        # A user of ten devices loses more than what was derived for five.
        (DEVICE, replace(DEVICE, groups={"user": 10}), ["user"]),
        (DEVICE, replace(DEVICE, groups={"user": 4}), []),
        (DEVICE, replace(DEVICE, groups={}), ["user"]),
        (replace(DEVICE, groups={}), DEVICE, []),
        # A device may be many users'.
        (replace(DEVICE, groups={}), Unit("device", "device_id"), ["device"]),
        (Unit("device", "device_id"), DEVICE, []),
        # A day is its user's, claimed or not.
        (DAY, replace(DAY, within=()), []),
        (replace(DAY, within=()), DAY, []),
        (DAY, replace(DAY, id="household", within=()), ["day"]),
        (DAY, replace(DAY, period="week"), ["day"]),
        (DAY, replace(DAY, column="seen"), ["day"]),
        (DAY, replace(DAY, neighbors="any-change"), []),
    ],
)
def test_what_a_loss_was_derived_from_is_claimed_as_strongly_as_before(
    old: Unit, new: Unit, changed: list[str]
) -> None:
    # Of `any-change`, a loss of the user says something about the device in it.
    for relation in ("add-remove", "any-change"):
        user = replace(USER, neighbors=relation)
        before, after = ({one.name: one, "user": user} for one in (old, new))
        found = entailment(before, after)
        weaker = dict.fromkeys(unit for unit, _ in found.weaker)
        assert [*dict.fromkeys((*found.redefined, *weaker))] == changed


def test_a_claim_about_a_unit_that_is_gone_is_not_made_any_more() -> None:
    both = {"device": DEVICE, "user": USER}
    pairs = [("device", "user"), ("user", "device")]
    found = entailment(both, {"user": USER})
    assert [*found.weaker] == pairs
    found = entailment(both, {"device": replace(DEVICE, within=(), groups={})})
    assert [*found.weaker] == pairs


# --- ledgers of versions that allowed it ------------------------------------------


@pytest.mark.spec("LED-24")
def test_an_audit_names_the_rules_that_show_too_little(tmp_path: Path) -> None:
    shutil.copy(OLD, tmp_path / "ledger.db")
    with pytest.raises(VerificationError) as caught:
        of(tmp_path).verify()
    assert not isinstance(caught.value, ChainBreakError)  # No entry is damaged.
    assert caught.value.code is Code.UNIT_REDEFINED
    told = caught.value.render()
    assert "period day -> month" in told
    assert "these rules undercount: all" in told
    rows = [(one.seq, one.payload, one.hash) for one in of(tmp_path).records()]
    found = audited_again(lambda: rows)
    assert found.understated == ["all"]
    # As it was, or with a new name for the month, nothing is understated any more.
    # Nor is it if the redefinition is accepted: the past is charged for the month.
    day, month = (one.text for one in of(tmp_path).state().policies)
    activate(tmp_path, month.replace("user-time", "user-month"), "all")
    assert of(tmp_path).verify().decisions == 1
    activate(tmp_path, day)
    assert of(tmp_path).verify().decisions == 1


@pytest.mark.spec("LED-24")
def test_the_commands_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(OLD, "ledger.db")
    verified = run("ledger", "verify")
    assert (verified.exit_code, "error[MOD608]" in verified.stderr) == (6, True)
    assert run("audit", "export", "-o", "bundle.zip").exit_code == 0
    for command in (("verify",), ("report", "-o", "r.html")):
        assert run("audit", *command, "bundle.zip").exit_code == 6
    status = run("status")
    assert status.exit_code == 0
    assert "warning[MOD608]" in status.stderr
    (problem,) = json.loads(run("status", "--json").stdout)["problems"]
    assert problem["code"] == "MOD608"
    # A backup is not lost for it.
    assert run("db", "backup", "copy.db").exit_code == 0
    restored = run("db", "restore", "copy.db", "--ledger", "new.db", "--no-head")
    assert restored.exit_code == 0


@pytest.mark.spec("LED-24")
def test_a_redefinition_breaks_a_log_of_a_version_that_refuses_it(
    tmp_path: Path,
) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    records = [*of(tmp_path).records()]
    with pytest.raises(ChainBreakError, match="redefined under the same name"):
        audit(as_written_by(5, with_policy(records, MONTH)))
    with pytest.raises(ChainBreakError, match="the rules that it accepts"):
        audit(with_policy(records, MONTH))
    assert audit(with_policy(records, MONTH, accepted=("unit:time",))).entries == 5
    old = as_written_by(4, with_policy(records, MONTH))
    assert [one.subject for one in audit(old).understated] == ["time"]
    # Without a rule of it, nothing is understated.
    no_rule = MONTH.replace("unit: time", "unit: user")
    assert audit(as_written_by(4, with_policy(records, no_rule))).understated == ()


# --- attributes -------------------------------------------------------------------

RENAMED = POLICY.replace("page: low", "site: low")


@pytest.mark.spec("POL-18")
def test_whether_a_new_attribute_is_a_dropped_one_is_asked(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    ((code, message),) = refused(tmp_path, RENAMED)
    assert code is Code.ATTRIBUTE_DROPPED
    assert (
        message
        == "the attribute `page` is removed, and one of `site` may be its new name"
    )
    with pytest.raises(InputError, match="no conflict is named"):
        activate(tmp_path, RENAMED, "attribute:town")
    activate(tmp_path, RENAMED, "attribute:page")
    assert of(tmp_path).state().policies[-1].accepted == ("attribute:page",)
    assert of(tmp_path).verify().entries == 5
    # It was said: it is not asked again.
    activate(tmp_path, RENAMED.replace("site: low", "site: low, color: low"))
    assert of(tmp_path).verify().entries == 6


@pytest.mark.spec("POL-18")
def test_a_renamed_attribute_keeps_its_history(tmp_path: Path) -> None:
    by_page = POLICY.replace(
        'when: "true", unit: time', "when: '\"page\" in m.attributes', unit: time"
    )
    by_site = by_page.replace("page: low", "site: low").replace('"page"', '"site"')
    was = by_site.replace("town: low}", "town: low}, was: {page: site}")
    of(tmp_path, by_page).submit(release("r-1"), publish=True)
    ((code, _),) = refused(tmp_path, by_site)
    assert code is Code.ATTRIBUTE_DROPPED
    activate(tmp_path, was)
    (short, _) = of(tmp_path).standings()
    assert short.before.units(RHO) == TENTH
    of(tmp_path).submit(release("r-2", attribute="site"), publish=True)
    assert of(tmp_path).standings()[0].before.units(RHO) == 2 * TENTH
    assert of(tmp_path).verify().decisions == 2
    # Renamed once more, or split, both count; without it, both are asked about.
    split = was.replace("site: low", "host: low, path: low")
    split = split.replace("page: site", "site: [host, path]")
    split = split.replace('"site"', '"path"')
    activate(tmp_path, split)
    assert of(tmp_path).standings()[0].before.units(RHO) == 2 * TENTH
    # Back to a former name, without saying so, it would lose its history.
    assert [code for code, _ in refused(tmp_path, by_page)] == [
        Code.ATTRIBUTE_DROPPED
    ] * 2
    # Another attribute of a former name is another one.
    again = split.replace("town: low}", "town: low, site: low}")
    activate(tmp_path, again)
    of(tmp_path).submit(release("r-3", attribute="site"), publish=True)
    assert of(tmp_path).standings()[0].before.units(RHO) == 2 * TENTH
    activate(tmp_path, again.replace("rho: 9", "rho: 8"))
    assert of(tmp_path).standings()[0].before.units(RHO) == 2 * TENTH
    assert of(tmp_path).verify().decisions == 3


@pytest.mark.spec("POL-18")
def test_an_attribute_is_asked_about_when_others_come_later(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    dropped = POLICY.replace("page: low, ", "")
    activate(tmp_path, dropped)
    ((code, _),) = refused(tmp_path, RENAMED)
    assert code is Code.ATTRIBUTE_DROPPED
    activate(tmp_path, RENAMED, "attribute:page")
    # Back again, and gone again: that is another question.
    activate(tmp_path, POLICY)
    later = POLICY.replace("page: low", "street: low")
    assert [code for code, _ in refused(tmp_path, later)] == [Code.ATTRIBUTE_DROPPED]


@pytest.mark.spec("POL-18")
def test_nothing_is_asked_where_nothing_can_be_renamed(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    # Nobody read `town`; without a new attribute, none is renamed.
    activate(tmp_path, POLICY.replace("town: low", "city: low"))
    activate(tmp_path, POLICY.replace("page: low, ", ""))
    assert of(tmp_path).verify().entries == 6


@pytest.mark.spec("POL-18")
def test_a_new_name_that_came_before_the_old_one_went_is_asked_about(
    tmp_path: Path,
) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    activate(tmp_path, POLICY.replace("page: low", "page: low, site: low"))
    ((code, message),) = refused(tmp_path, RENAMED)
    assert code is Code.ATTRIBUTE_DROPPED
    assert (
        message
        == "the attribute `page` is removed, and one of `site` may be its new name"
    )
    activate(tmp_path, RENAMED, "attribute:page")
    assert of(tmp_path).verify().entries == 6


@pytest.mark.spec("POL-18")
@pytest.mark.spec("LED-24")
def test_an_audit_finds_attributes_that_nobody_was_asked_about(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    records = [*of(tmp_path).records()]
    for accepted in ((), ("attribute:town",), ("attribute:page", "attribute:town")):
        with pytest.raises(ChainBreakError, match="the rules that it accepts"):
            audit(with_policy(records, RENAMED, accepted=accepted))
    right = with_policy(records, RENAMED, accepted=("attribute:page",))
    assert audit(right).entries == 5
    assert audit(right, again=lambda: right).entries == 5
    assert audit(as_written_by(4, with_policy(records, RENAMED))).entries == 5


# --- what commands say ------------------------------------------------------------


@pytest.mark.spec("POL-17")
@pytest.mark.spec("POL-18")
def test_diff_simulate_and_activate_name_what_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    Path("next.yaml").write_text(RENAMED.replace("period: day", "period: month"))
    unit = "the unit `time` is redefined under the same name: period day -> month"
    attribute = "the attribute `page` is removed, and one of `site` may be its new name"
    diff = run("policy", "diff", "active", "next.yaml", "--ledger", "ledger.db")
    assert diff.exit_code == 4
    assert f"CONFLICT {unit}\n         {attribute}\n" in diff.stdout
    assert "error[MOD608]" in diff.stderr
    told = json.loads(run("policy", "diff", "next.yaml", "--json").stdout)
    assert [one["code"] for one in told["problems"]] == ["MOD608", "MOD609"]
    simulated = run("policy", "simulate", "next.yaml")
    assert f"conflict: {unit}\nconflict: {attribute}\n" in simulated.stdout
    dry = run("policy", "activate", "next.yaml", "--reason", "x", "--dry-run")
    assert dry.exit_code == 4
    assert f"  CONFLICT  {unit}\n  CONFLICT  {attribute}\n" in dry.stdout
    assert "--accept-conflict attribute:page" in dry.stderr
    Path("next.yaml").write_text(RENAMED)
    accepting = ("--reason", "x", "--accept-conflict", "attribute:page")
    done = run("policy", "activate", "next.yaml", *accepting)
    assert done.exit_code == 0
    assert "  accepted  attribute:page is removed\n" in done.stdout


# --- claims about the population --------------------------------------------------

DIVIDED = POLICY + (
    "population: {partition_by: {region: {values: [EU, US]}}, groups: GROUPS}\n"
)


def over(name: str, **part: Any) -> dict[str, Any]:
    found = release(name)
    found["mechanisms"][0].update(part, cost={"time": {"rho": 0.6}, "user": {"rho": 6}})
    return found


@pytest.mark.spec("REL-16")
@pytest.mark.parametrize(
    ("claim", "one", "other"),
    [
        (
            "immutable: [user, time]",
            {"where": {"region": ["EU"]}},
            {"where": {"region": ["US"]}},
        ),
        ("", {"groups": [0]}, {"groups": [1]}),
    ],
    ids=["value", "group"],
)
def test_who_is_said_to_keep_a_value_later_was_not_known_to_before(
    tmp_path: Path, claim: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    said = DIVIDED.replace("[EU, US]", f"[EU, US], {claim}" if claim else "[EU, US]")
    groups = "{immutable: [user, time]}"
    said = said.replace("GROUPS", groups)
    without = said.replace(f", {claim}", "") if claim else said.replace(groups, "")
    without = without.replace(", groups: }", "}")

    def allowed(folder: Path, *policies: str) -> list[bool]:
        folder.mkdir()
        ws = of(folder, policies[0])
        first = ws.submit(
            over("r-1", **(one if claim or policies[0] == said else {}))
        ).allowed
        for policy in policies[1:]:
            activate(folder, policy)
        ws = of(folder)
        second = ws.submit(over("r-2", **other)).allowed
        third = ws.submit(over("r-3", **one)).allowed
        ws.verify()
        return [first, second, third]

    # Claimed from the start, they share nothing.
    assert allowed(tmp_path / "always", said) == [True, True, False]
    assert allowed(tmp_path / "kept", said, said.replace("rho: 9", "rho: 8")) == [
        True,
        True,
        False,
    ]
    if claim:  # Before a claim, the value of a row is read, and nobody keeps it.
        assert allowed(tmp_path / "late", without, said) == [True, False, False]
    # In between, anybody may have moved.
    assert allowed(tmp_path / "lapsed", said, without, said) == [True, False, False]


# --- what settings and labels mean --------------------------------------------------

CONTEXTS = (
    POLICY
    + """
labels: {audience: {values: [public, internal], default: public}}
extensions:
  - name: audience
    settings:
      open: {when: "true", budget: {scale: 2}}
      strict: {when: 'm.audience == "public"', budget: same, within: open}
"""
)


@pytest.mark.spec("POL-19")
def test_a_swap_of_label_values_shows_what_leaves_the_strict_setting(
    tmp_path: Path,
) -> None:
    ws = of(tmp_path, CONTEXTS)
    for number, audience in enumerate(["public", "internal", "public"]):
        ws.submit({**release(f"r-{number}"), "audience": audience})
    ws.cancel("r-2", reason="it counts no more")
    swapped = CONTEXTS.replace('== "public"', '== "internal"')
    swapped = swapped.replace("default: public", "default: internal")
    found = refused(tmp_path, swapped)
    assert {code for code, _ in found} == {Code.RELEASES_DEPARTED}
    assert [text for _, text in found] == [
        "1 past release leaves the rule short @strict",
        "1 past release leaves the rule long @strict",
    ]
    accept = ["departed:short", "departed:long"]
    with pytest.raises(InputError) as caught:
        activate(tmp_path, swapped, accept[0])
    assert [one.code for one in caught.value.problems] == [Code.RELEASES_DEPARTED]
    activate(tmp_path, swapped, *accept)
    assert of(tmp_path).state().policies[-1].accepted == tuple(accept)
    assert of(tmp_path).verify().decisions == 3
    records = [*of(tmp_path).records()]
    with pytest.raises(ChainBreakError, match="the rules that it accepts"):
        audit(with_policy(records, CONTEXTS))
    # An edit of the rule itself is shown by `diff`, and is no departure.
    edited = swapped.replace(
        'when: "true", unit: time', 'when: "size(m.attributes) > 1", unit: time'
    )
    activate(tmp_path, edited)


# --- what losses rest on --------------------------------------------------------------

DEVICES = """
modicum: policy/v1
name: devices
dp: {accountant: zcdp}
units:
  user: {id: uid}
  day: {id: uid, time: {column: at, period: day}, within: user}
  device: {id: device_id, within: user, groups: {user: 3}}
schema: {attributes: {page: low, birth: [low, {}, static]}}
policies:
  - {name: each, when: "true", unit: user, budget: {rho: 1000}}
  - {name: daily, when: "true", unit: day, budget: {rho: 1000}}
"""


def by_hand(name: str, **more: Any) -> dict[str, Any]:
    mechanism = {"name": "views", "mechanism": "gaussian", "attributes": ["page"]}
    return {"release": name, "mechanisms": [{**mechanism, **more}]}


@pytest.mark.spec("REL-15")
def test_a_sensitivity_from_caps_may_rest_on_claims(tmp_path: Path) -> None:
    capped = by_hand(
        "capped",
        sigma=1,
        contribution_bound={"device": 1},
        sensitivity={"device": {"l2": 1}, "user": {"l2": 3}, "day": {"l2": 3}},
    )
    of(tmp_path, DEVICES).submit(capped, publish=True)
    more = DEVICES.replace("{user: 3}", "{user: 30}")
    assert {code for code, _ in refused(tmp_path, more)} == {Code.UNIT_REDEFINED}
    preview = of(tmp_path).governance.preview_activation(compiled(more))
    accept = [one.message.split("`")[1] for one in preview.problems]
    over_limit = [one.rule.id for one in preview.conflicts]
    assert over_limit == ["daily"]  # Nothing else is known of a day.
    activate(tmp_path, more, *(f"unit:{one}" for one in accept), *over_limit)
    (each, _) = of(tmp_path).standings()
    # A half for a device, and 30 of them change with a user.
    assert each.before.units(RHO) == 30**2 * 5 * TENTH
    # It is not asked about again, whatever else changes.
    activate(tmp_path, more.replace("1000", "2000"))
    assert of(tmp_path).verify().decisions == 1


@pytest.mark.spec("REL-14")
def test_days_that_are_not_known_any_more_prove_no_derived_loss(tmp_path: Path) -> None:
    one_day = by_hand("day", cost={"day": {"rho": 0.1}}, periods="2026-05-01")
    one_day["mechanisms"][0]["cost"]["device"] = {"rho": 0.1}
    of(tmp_path, DEVICES).submit(one_day, publish=True)
    (each, daily) = of(tmp_path).standings()
    assert each.before.units(RHO) == daily.before.units(RHO) == TENTH
    timeless = DEVICES.replace("page: low", "page: [low, {}, static]")
    preview = of(tmp_path).governance.preview_activation(compiled(timeless))
    activate(tmp_path, timeless, *(one.rule.id for one in preview.conflicts))
    (each, daily) = of(tmp_path).standings()
    # Three devices change with a user, each at the cost of one.
    assert each.before.units(RHO) == 3**2 * TENTH
    assert daily.before.units(RHO) == TENTH


@pytest.mark.spec("POL-18")
def test_an_attribute_without_time_has_none_under_another_name(tmp_path: Path) -> None:
    read = by_hand("born", cost={"user": {"rho": 0.1}, "day": {"rho": 0.1}})
    read["mechanisms"][0] |= {"attributes": ["birth"], "periods": "2026-05-01"}
    read["mechanisms"][0]["cost"]["device"] = {"rho": 0.1}
    of(tmp_path, DEVICES).submit(read, publish=True)
    renamed = DEVICES.replace(
        "birth: [low, {}, static]}", "dob: low}, was: {birth: dob}"
    )
    activate(tmp_path, renamed)
    other = by_hand("other", cost=read["mechanisms"][0]["cost"], periods="2026-05-02")
    of(tmp_path).submit(other, publish=True)
    # The first one is charged to every day, that of the second one too.
    assert of(tmp_path).standings()[1].before.units(RHO) == 2 * TENTH


@pytest.mark.spec("REL-16")
def test_a_claim_about_another_unit_changes_nothing(tmp_path: Path) -> None:
    place = (
        "population: {partition_by: {region: {values: [EU, US], immutable: [UNITS]}}}"
    )
    divided = f"{POLICY}{place}\n"
    first = divided.replace("UNITS", "user, time")
    of(tmp_path, first).submit(over("r-1", where={"region": ["EU"]}))
    more = first.replace("time: {id", "house: {id: house}\n  time: {id", 1)
    more = more.replace("immutable: [user", "immutable: [house, user")
    activate(tmp_path, more)
    second = over("r-2", where={"region": ["US"]})
    second["mechanisms"][0]["cost"]["house"] = {"rho": 1}
    assert of(tmp_path).submit(second).allowed
    # Nor does another name of the unit.
    renamed = first.replace("time: {id", "shift: {id", 1).replace(
        "unit: time", "unit: shift"
    )
    activate(tmp_path, renamed.replace("user, time]", "user, shift]"))
    third = over("r-3", where={"region": ["US"]})
    third["mechanisms"][0]["cost"] = {"shift": {"rho": 0.3}, "user": {"rho": 0.3}}
    assert of(tmp_path).submit(third).allowed
    assert of(tmp_path).verify().decisions == 3


def test_each_policy_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = of(tmp_path, POLICY)
    ws.init()
    for number in range(12):
        ws.submit(release(f"r-{number}"))
        activate(tmp_path, POLICY.replace("rho: 9", f"rho: {10 + number}"))
        ws = of(tmp_path)
    state, records = ws.state(), [*ws.records()]
    read: list[str] = []

    def counted(text: str) -> Any:
        read.append(text)
        return vocabulary_of(text)

    monkeypatch.setattr("modicum.policy.past_units.vocabulary_of", counted)
    policy = ws.policy().policy
    migration = Migration(state.policies, policy.vocabulary, policy.text)
    for record in records:
        body = event_of(record, record.seq).body
        if isinstance(body, ReleaseReserved):
            assert migration.release(body.release, record.seq) == body.release
    assert len(read) == len(state.policies) - 1
