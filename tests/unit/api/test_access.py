"""Grants: who gets one, what stands in it, and what is refused rather than guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import structs
from samples.first_version import take_up
from samples.small import NOON, compiled, workspace
from typer.testing import CliRunner

from modicum.accounting import Loss
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.api.local import Workspace
from modicum.api.local.access.grants import (
    Access,
    Grant,
    Granting,
    access_to_plain,
    losses_to_text,
    rows_to_plain,
)
from modicum.api.local.access.releases import Wanted, exported_access
from modicum.api.local.access.row_filters import Columns, row_filter
from modicum.api.local.access.sql import postgresql_policies, sql_filters, sql_predicate
from modicum.core.canonical import digest, encode
from modicum.core.errors import Code, ConflictError, InputError, ModicumError
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing
from modicum.ledger.log.events import PlanCommitted, RoundOpened
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.ops.wiring import open_workspace
from modicum.policy import CompiledPolicy
from modicum.release import Part, Population, Vocabulary
from modicum.release.parts import FIRST_DAY, LAST_DAY
from modicum.release.sampling import Sampling
from modicum.system.clock import FixedClock, add_seconds

POLICY = """
modicum: policy/v1
name: clinics
units:
  patient: {id: patient_id}
  patient-day:
    {id: patient_id, time: {column: seen_at, period: day}, within: patient}
labels:
  team: {values: [research, other], default: other}
schema:
  attributes:
    diagnosis: [high, {}]
    born_in: [low, {}, static]
population:
  partition_by:
    region: {values: [north, south], immutable: [patient]}
    born: {range: [1900, 2030], immutable: [patient]}
  groups: {immutable: [patient]}
policies:
  - {name: global, when: "true", unit: patient, budget: {rho: 10}}
"""
PART = {
    "where": [{"region": "north", "born": {"from": 1990}}, {"region": "south"}],
    "periods": "2026-11",
    "groups": [3, {"from": 5, "to": 7}],
}


def described(identifier: str, **more: Any) -> dict[str, Any]:
    return {
        "release": identifier,
        "team": "research",
        "requester": "ann -- \u00fc",
        "purpose": "public-health",
        "dataset": "visits",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"patient": {"l2": 3}},
                "sigma": 40,
                "contribution_bound": {"patient": 3},
            }
            | more
        ],
    }


def begun(folder: Path, clock: FixedClock | None = None) -> Workspace:
    return workspace(folder, policy=POLICY, clock=clock)


def exported(ws: Workspace, *releases: str, **wanted: str) -> Access:
    return exported_access(ws, Wanted(releases, **wanted), Columns())


def refused(ws: Workspace, *releases: str, **wanted: str) -> ModicumError:
    with pytest.raises(ModicumError) as caught:
        exported(ws, *releases, **wanted)
    return caught.value


def only(access: Access) -> Grant:
    (grant,) = access.grants
    return grant


# --- what stands in a grant -----------------------------------------------------------


def test_a_grant_says_who_what_how_and_at_what_cost(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    ws.submit(described("r-1", **PART))
    document: Any = access_to_plain(exported(ws, "r-1"))
    state, standing = ws.state(), ws.standing("r-1")
    assert document["format"] == "modicum-access/1"
    assert document["ledger"] == {"seq": state.seq, "head": state.head}
    assert document["policy"] == compiled(POLICY).policy.digest
    assert document["left_out"] == []
    (grant,) = document["grants"]
    assert grant["id"] == "r-1#counts"
    assert grant["decision"] == {
        "release": "r-1",
        "content": standing.content,
        "entry": 2,
        "status": "reserved",
    }
    assert grant["subject"] == {
        "requester": "ann -- \u00fc",
        "purpose": "public-health",
        "audience": None,
        "labels": {"team": "research"},
    }
    assert grant["action"] == "read"
    months = {"column": "seen_at", "during": [["2026-11-01", "2026-12-01"]]}
    groups = {"column": "user_group", "between": [[3, 3], [5, 7]]}
    assert grant["resource"] == {
        "dataset": "visits",
        "attributes": ["diagnosis"],
        "rows": {
            "any": [
                {
                    "all": [
                        {"column": "born", "between": [[1990, 2030]]},
                        {"column": "region", "in": ["north"]},
                        months,
                        groups,
                    ]
                },
                {"all": [{"column": "region", "in": ["south"]}, months, groups]},
            ]
        },
    }
    assert grant["conditions"] == {"sampling": None, "not_after": standing.expires_at}
    owed = grant["obligations"]
    recorded = ws.release_of(standing).mechanisms[0]
    assert owed["mechanism"]["kind"] == "gaussian"
    assert owed["mechanism"]["parameters"] == {"sigma": "40"}
    assert owed["mechanism"]["sensitivity"] == {"patient": "3"}
    assert owed["digest"] == digest(encode(dict(recorded.description)))
    assert owed["contribution_bound"] == {
        "patient": {"column": "patient_id", "most": 3}
    }


def test_losses_are_what_was_charged_to_the_last_digit(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    ws.submit(described("r-1", sensitivity={"patient": {"l2": 1}}, sigma=3))
    document: Any = access_to_plain(exported(ws, "r-1"))
    losses = document["grants"][0]["obligations"]["losses"]
    assert losses["patient"]["rho"] == "0.055555555556"  # 1/18, rounded up.
    assert losses["patient"]["eps"] == "inf"
    assert losses["patient"]["delta"] == "0"
    recorded = ws.release_of(ws.standing("r-1")).mechanisms[0].losses
    assert losses.keys() == recorded.keys() == {"patient", "patient-day"}
    assert Fraction(losses["patient"]["rho"]) >= Fraction(1, 18)
    assert len(losses["patient"]) == len(recorded["patient"].coordinates)


def test_a_delta_is_counted_in_its_own_unit() -> None:
    losses = losses_to_text({"patient": Loss((10**12,) * DELTA + (10,))})
    assert losses["patient"] == {
        coordinate_name(index): "1" for index in range(DELTA)
    } | {"delta": "0.00000000000000001"}


def test_an_open_end_is_not_written_as_a_day() -> None:
    days = ((FIRST_DAY, 739_921), (739_930, LAST_DAY))
    rows = row_filter(Part(periods=days), VOCABULARY, Columns())
    assert sql_predicate(rows) == (
        "((\"seen_at\" < DATE '2026-11-02') OR (\"seen_at\" >= DATE '2026-11-10'))"
    )
    document: Any = rows_to_plain(rows)
    (condition,) = document["any"][0]["all"]
    assert condition["during"] == [[None, "2026-11-02"], ["2026-11-10", None]]


def test_everything_is_true_of_every_row(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    ws.submit(described("r-1"))
    access = exported(ws, "r-1")
    document: Any = access_to_plain(access)
    assert document["grants"][0]["resource"]["rows"] == {"any": [{"all": []}]}
    assert list(sql_filters(access))[-1] == "WHERE 1 = 1"


def test_sql_is_a_predicate_for_each_grant(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    release = described("r-1", **PART)
    release["mechanisms"].append(release["mechanisms"][0] | {"name": "more"})
    ws.submit(release)
    lines = list(sql_filters(exported(ws, "r-1")))
    predicates = [one for one in lines if not one.startswith("--") and one]
    assert (
        predicates
        == [
            "WHERE "
            '((("born" BETWEEN 1990 AND 2030) AND "region" IN (\'north\'))'
            " OR (\"region\" IN ('south')))"
            " AND (\"seen_at\" >= DATE '2026-11-01'"
            " AND \"seen_at\" < DATE '2026-12-01')"
            ' AND (("user_group" BETWEEN 5 AND 7) OR ("user_group" IN (3)))'
        ]
        * 2
    )
    assert "-- requester: ann -- \u00fc" in lines


def test_sql_warns_of_what_it_cannot_see_to(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    ws.submit(described("r-1", **PART))
    ws.submit(described("r-2", attributes=["diagnosis"], contribution_bound={}))
    remark = '-- "patient_id" is not among the columns: a reader of only these'
    lines = list(sql_filters(exported(ws, "r-1")))
    assert any("ANSI_QUOTES" in one and "EVERY ROW" in one for one in lines)
    assert sum(one.startswith(remark) for one in lines) == 1
    assert not any(
        "not among the columns" in one for one in sql_filters(exported(ws, "r-2"))
    )
    called = exported_access(
        ws, Wanted(("r-1",)), Columns(named={"diagnosis": "patient_id"})
    )
    assert not any("not among the columns" in one for one in sql_filters(called))
    assert all(one.startswith(("--", "WHERE ")) for one in lines)
    ws.start("r-1")
    policies = list(postgresql_policies(exported(ws, "r-1"), "visits"))
    assert sum(one.startswith(remark) for one in policies) == 1
    assert not any("ANSI_QUOTES" in one for one in policies)


def test_columns_are_called_as_they_are_in_the_table(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    ws.submit(described("r-1", **PART))
    named = {"diagnosis": "icd 10", "seen_at": "at", "patient_id": "pid"}
    grant = only(exported_access(ws, Wanted(("r-1",)), Columns("g", named)))
    assert grant.columns == ("icd 10",)
    assert grant.bounds["patient"].column == "pid"
    used = {one.column for each in grant.rows.alternatives() for one in each}
    assert used == {"region", "born", "at", "g"}
    with pytest.raises(InputError) as caught:
        exported_access(ws, Wanted(("r-1",)), Columns(named={"regoin": "r"}))
    assert caught.value.code is Code.UNKNOWN_ATTRIBUTE


# --- who gets one ---------------------------------------------------------------------


def test_only_what_is_reserved_or_started_gives_access(tmp_path: Path) -> None:
    clock = FixedClock(NOON)
    ws = begun(tmp_path, clock)
    for name in ("reserved", "started", "published", "canceled"):
        ws.submit(described(name))
    ws.submit(described("expired"), reserve_seconds=60)
    ws.submit(described("denied", sigma=Fraction(1, 100)))
    ws.backfill(described("past"))
    ws.start("started")
    ws.start("published")
    ws.publish("published")
    ws.cancel("canceled", reason="called off")
    clock.time = add_seconds(NOON, 61)
    assert only(exported(ws, "started")).standing.expires_at == ""
    assert only(exported(ws, "reserved")).standing.expires_at > clock.time
    for name in ("published", "canceled", "expired", "past"):
        for releases in ((name,), ("started", name)):
            error = refused(ws, *releases)
            assert error.code is Code.RELEASE_STATE
            assert f"`{name}`" in error.render()
    for name in ("denied", "unheard-of"):
        assert refused(ws, name).code is Code.RELEASE_UNKNOWN
    assert "was denied" in refused(ws, "denied").render()


def unstarted(access: Access) -> InputError:
    with pytest.raises(InputError) as caught:
        list(postgresql_policies(access, "visits"))
    return caught.value


def test_plans_and_rounds_name_their_releases(tmp_path: Path) -> None:
    ws = begun(tmp_path)
    for name in ("a", "b", "c", "d"):
        ws.submit(described(name))
    ws.cancel("b", reason="called off")
    ws.cancel("d", reason="called off")
    for body in (
        RoundOpened("w-1", {}),
        PlanCommitted("p-1", "w-1", "0" * 64, ("a", "b")),
        PlanCommitted("p-2", "w-1", "1" * 64, ("c",)),
        PlanCommitted("p-3", "w-1", "2" * 64, ("d",)),
        PlanCommitted("p-4", "w-1", "3" * 64, ()),
        RoundOpened("w-2", {}),
    ):
        ws.turn(lambda entry, body=body: entry.add(body))  # type: ignore[misc]

    plan = exported(ws, plan="p-1")
    assert [one.release.id for one in plan.grants] == ["a"]
    document: Any = access_to_plain(plan)
    assert document["left_out"] == [{"release": "b", "status": "canceled"}]
    assert "-- left out: b (canceled)" in list(sql_filters(plan))
    whole = exported(ws, round="w-1")
    assert [one.release.id for one in whole.grants] == ["a", "c"]
    assert [one.id for one in whole.left_out] == ["b", "d"]
    over = refused(ws, plan="p-3")
    assert over.code is Code.RELEASE_STATE
    assert "no release of `p-3` grants access any more" in over.render()
    assert "`d` is canceled" in over.render()
    assert "in a new plan" in over.render()
    assert [one.help for one in unstarted(whole).problems] == [
        "modicum release start a",
        "modicum release start c",
    ]
    for wanted in (
        {"plan": "p-9"},
        {"round": "p-1"},
        {"plan": "p-4"},
        {"round": "w-2"},
    ):
        assert refused(ws, **wanted).code is Code.PLAN_UNKNOWN


# --- what cannot be told --------------------------------------------------------------


def changed(before: str, after: str) -> CompiledPolicy:
    assert before in POLICY
    return compiled(POLICY.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        # What was `north` is `east` now, and `north` means something else.
        (
            "{values: [north, south], immutable: [patient]}",
            "{values: [north, south, east], immutable: [patient],"
            " was: {north: east, south: north}}",
            {"where": {"region": "north"}},
        ),
        (
            "region: {values: [north, south], immutable: [patient]}\n    ",
            "",
            {"where": {"region": "north"}},
        ),
        ("column: seen_at", "column: loaded_at", {"periods": "2026-11"}),
    ],
)
def test_words_that_mean_something_else_by_now_select_nothing(
    before: str, after: str, part: dict[str, Any], tmp_path: Path
) -> None:
    begun(tmp_path).submit(described("old", **part))
    ws = workspace(tmp_path, policy=None)
    assert exported(ws, "old").grants
    take_up(ws, changed(before, after))
    ws = workspace(tmp_path, policy=None)
    assert refused(ws, "old").code is Code.POLICY_CONFLICT
    ws.submit(described("everything"))
    assert exported(ws, "everything").grants


def test_a_policy_that_changes_nothing_about_the_words_changes_no_grant(
    tmp_path: Path,
) -> None:
    begun(tmp_path).submit(described("old", attributes=["born_in"], **PART))
    ws = workspace(tmp_path, policy=None)
    before = only(exported(ws, "old"))
    ws.governance.activate(changed("rho: 10", "rho: 9"), reason="less")
    after = only(exported(workspace(tmp_path, policy=None), "old"))
    assert after == before


UNITS = "patient: {id: patient_id}"
DAYS = "{id: patient_id, time: {column: seen_at, period: day}, within: patient}"


@pytest.mark.parametrize(
    ("before", "after", "unit"),
    [
        (UNITS, "patient: {id: account_id}", "patient"),
        (UNITS, "patient: {id: patient_id, neighbors: any-change}", "patient"),
        (DAYS, DAYS.replace("period: day", "period: month"), "patient-day"),
        (DAYS, DAYS.replace("seen_at", "loaded_at"), "patient-day"),
    ],
)
def test_a_unit_that_is_another_one_by_now_bounds_nobody(
    before: str, after: str, unit: str, tmp_path: Path
) -> None:
    # Of a unit like patient-day only the charge tells: nothing is bounded by it.
    begun(tmp_path).submit(described("old"))
    ws = workspace(tmp_path, policy=None)
    ws.start("old")
    assert exported(ws, "old").grants
    take_up(ws, changed(before, after))
    ws = workspace(tmp_path, policy=None)
    (problem,) = refused(ws, "old").problems
    assert problem.code is Code.POLICY_CONFLICT
    assert problem.notes == (
        f"the unit `{unit}` had another definition when it was charged",
    )
    # Nothing that was proven for patients bounds an account: its rules are over.
    is_allowed = ws.submit(described("new")).allowed
    assert is_allowed == ("account_id" not in after)
    if is_allowed:
        assert exported(ws, "new").grants
    # What was changed back was another one meanwhile.
    take_up(ws, compiled(POLICY))
    assert refused(workspace(tmp_path, policy=None), "old").code is (
        Code.POLICY_CONFLICT
    )


class Was(NamedTuple):
    """A policy that held, of which nothing is known but its text."""

    text: str
    seq: int
    entails: bool = True


@pytest.mark.parametrize(
    ("texts", "granted"),
    [
        ((POLICY,), True),
        ((POLICY, POLICY), True),
        (("modicum: policy/v0",), True),  # It is the only one: nothing changed.
        (("modicum: policy/v0", POLICY), False),
        ((POLICY, "modicum: policy/v0", POLICY), False),
        ((POLICY, POLICY.replace("rho: 10", "rho: 9")), True),
        ((POLICY, POLICY.replace(UNITS, "patient: {id: x}")), False),
    ],
)
def test_units_are_compared_through_all_policies(
    texts: tuple[str, ...], granted: bool
) -> None:
    policies = [Was(text, 3 * place) for place, text in enumerate(texts)]
    granting = Granting(VOCABULARY, policies, Columns())
    one = mechanism(contribution_bound={"patient": 4})
    standing = Standing("r", "0" * 64, ReleaseStatus.STARTED, "", 2, 700_000)
    if granted:
        assert granting.grants(standing, recorded("r", one))
        return
    with pytest.raises(InputError, match="names that have another meaning"):
        granting.grants(standing, recorded("r", one))


VOCABULARY = compiled(POLICY).policy.vocabulary
ODD = [
    Part(where=()),
    Part(where=((),)),
    Part(where=((("region", ()),),)),
    Part(where=((("nation", ("north",)),),)),
    Part(where=((("region", ("east",)),),)),
    Part(where=((("region", ((1, 2),)),),)),
    Part(where=((("born", ("1990",)),),)),
    Part(where=((("born", ((1800, 1990),)),),)),
    Part(where=((("born", ((1990, 1980),)),),)),
    Part(where=((("region", ("south", "north")),),)),
    Part(where=((("region", ("north",)), ("region", ("south",))),)),
    Part(periods=()),
    Part(periods=((5, 4),)),
    Part(periods=((0, 4),)),
    Part(groups=()),
    Part(groups=((-1, 4),)),
    Part(groups=((1, 2), (3, 4))),
]


@pytest.mark.parametrize("part", ODD, ids=str)
def test_a_part_that_cannot_be_told_is_refused(part: Part) -> None:
    with pytest.raises(InputError) as caught:
        row_filter(part, VOCABULARY, Columns())
    assert caught.value.code is Code.NOT_SUPPORTED


@pytest.mark.parametrize("clocks", [frozenset(), frozenset({"seen_at", "loaded_at"})])
def test_days_of_no_clock_or_of_several_are_refused(clocks: frozenset[str]) -> None:
    units = {
        one: structs.replace(VOCABULARY.unit_facts["patient-day"], name=one, column=one)
        for one in clocks
    }
    vocabulary = Vocabulary(frozenset(), {}, (), "add-remove", units, Population())
    with pytest.raises(InputError):
        row_filter(Part(periods=((700_000, 700_001),)), vocabulary, Columns())


@pytest.mark.parametrize(
    "columns",
    [
        Columns("region"),
        Columns("SEEN_AT"),
        Columns(named={"region": "born"}),
        Columns(named={"region": "Born"}),
        Columns(named={"seen_at": "user_group"}),
    ],
    ids=str,
)
def test_one_column_for_two_things_is_refused(columns: Columns) -> None:
    box = (("born", ((1990, 1990),)), ("region", ("north",)))
    part = Part((box,), ((700_000, 700_001),), ((1, 1),))
    assert row_filter(part, VOCABULARY, Columns()).boxes
    with pytest.raises(InputError) as caught:
        row_filter(part, VOCABULARY, columns)
    assert caught.value.code is Code.DUPLICATE_NAME


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "\u202eb", "\ud800", "x" * 129])
def test_what_no_column_is_called_is_refused(name: str) -> None:
    part = Part(groups=((1, 1),))
    with pytest.raises(InputError) as caught:
        row_filter(part, VOCABULARY, Columns(name))
    assert caught.value.code is Code.BAD_NAME


def test_a_comment_stays_a_comment() -> None:
    line = "x\nWHERE 1 = 1; --\r\u2028\u0085"
    lines = list(sql_filters(access_of(recorded(line, mechanism(name=line)))))
    assert all(one.isprintable() for one in lines)
    assert sum(one.startswith("WHERE") for one in lines) == 1


def test_a_text_that_databases_read_differently_is_refused() -> None:
    partition = VOCABULARY.population.partitions["region"]
    for value in ("a\\", "a\nb", "a\0"):
        domain = {"region": replace(partition, values=(value,))}
        vocabulary = replace(VOCABULARY, population=Population(domain))
        rows = row_filter(Part(((("region", (value,)),),)), vocabulary, Columns())
        with pytest.raises(InputError):
            sql_predicate(rows)


# --- what a description may hold ------------------------------------------------------


def mechanism(**said: Any) -> RecordedMechanism:
    description = {"name": "counts", "kind": "declared"} | said
    return RecordedMechanism(description, ("diagnosis",), {}, {})


def recorded(identifier: str, *mechanisms: RecordedMechanism) -> RecordedRelease:
    return RecordedRelease(identifier, "0" * 64, {}, {}, mechanisms)


def access_of(
    release: RecordedRelease, status: ReleaseStatus = ReleaseStatus.STARTED
) -> Access:
    standing = Standing(release.id, release.content, status, "", 2, 700_000)
    grants = Granting(VOCABULARY, (), Columns()).grants(standing, release)
    return Access(9, "f" * 64, "e" * 64, grants)


def test_grants_are_made_of_nothing_that_may_not_read() -> None:
    for status in ReleaseStatus:
        if status in (ReleaseStatus.RESERVED, ReleaseStatus.STARTED):
            assert access_of(recorded("r", mechanism()), status).grants
        else:
            with pytest.raises(ConflictError) as caught:
                access_of(recorded("r", mechanism()), status)
            assert caught.value.code is Code.RELEASE_STATE


def test_a_sample_is_a_condition_that_no_predicate_meets() -> None:
    said = mechanism(sampling={"unit": "patient", "rate": "0.25"})
    access = access_of(recorded("r", said))
    assert only(access).sampling == Sampling("patient", Fraction(1, 4))
    document: Any = access_to_plain(access)
    assert document["grants"][0]["conditions"]["sampling"] == {
        "unit": "patient",
        "rate": "0.25",
        "draw": "fresh",
    }
    for lines in (sql_filters(access), postgresql_policies(access, "visits")):
        with pytest.raises(InputError) as caught:
            list(lines)
        assert caught.value.code is Code.NOT_SUPPORTED


@pytest.mark.parametrize(
    "said",
    [
        {"sampling": {"unit": "patient"}},
        {"sampling": {"unit": "patient", "rate": "0"}},
        {"sampling": {"unit": "patient", "rate": "1"}},
        {"sampling": {"unit": "patient", "rate": "1/0"}},
        {"sampling": {"unit": "patient", "rate": "0.50"}},
        {"sampling": {"unit": "patient", "rate": "x"}},
        {"sampling": {"unit": "nobody", "rate": "0.5"}},
        {"sampling": {"unit": "patient", "rate": "0.5", "without": "replacement"}},
        {"sampling": "half"},
        {"joined_with": "something"},
        {"contribution_bound": {"nobody": 3}},
        {"name": None},
    ],
    ids=str,
)
def test_what_a_description_says_beyond_what_is_known_is_refused(
    said: dict[str, Any],
) -> None:
    with pytest.raises(InputError) as caught:
        access_of(recorded("r", mechanism(**said)))
    assert caught.value.code is Code.NOT_SUPPORTED


# --- the command ----------------------------------------------------------------------


def run(*command: str, code: int = 0) -> str:
    import typer

    from modicum.cli.plan_access import export_access

    app = typer.Typer()
    app.command()(export_access)
    found = CliRunner().invoke(app, command)
    assert found.exit_code == code, (command, found.output, found.exception)
    return found.output


def test_the_command_writes_all_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("policy.yaml").write_text(POLICY)
    ws = open_workspace("ledger.db", policy=Path("policy.yaml"))
    ws.submit(described("r-1", **PART))
    access = exported(ws, "r-1")
    document = access_to_plain(access)
    assert json.loads(run("--release", "r-1")) == document
    assert run("--release", "r-1", "--format", "sql").splitlines() == list(
        sql_filters(access)
    )
    assert "access.json: 1 grant\n" in run("--release", "r-1", "-o", "access.json")
    assert Path("access.json").read_bytes() == encode(document) + b"\n"
    run("--release", "r-1", "--format", "sql", "-o", "access.sql")
    assert Path("access.sql").read_text().splitlines() == list(sql_filters(access))
    named = ("--group-column", "g", "--column", "born=year=born")
    written = run("--release", "r-1", "--format", "sql", *named)
    assert '"year=born" BETWEEN 1990 AND 2030' in written
    assert '"g" IN (3)' in written
    refusal = run("--release", "r-1", "--format=postgresql", "--table=t", code=4)
    assert "modicum release start r-1" in refusal
    ws.start("r-1")
    policies = run("--release", "r-1", "--format=postgresql", "--table=clinic.visits")
    assert 'ON "clinic"."visits" AS RESTRICTIVE FOR SELECT' in policies


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((), "Invalid value for PLAN-ID: choose what to export"),
        (("p-1", "--release", "r-1"), "--release cannot be combined with PLAN-ID"),
        (("p-1", "--plan", "p-1"), "--plan cannot be combined with PLAN-ID"),
        (("--plan", "p-1", "--round", "w-1"), "--round cannot be combined with --plan"),
        (
            ("--round", "w-1", "--release", "r-1"),
            "--round cannot be combined with --release",
        ),
        (("p-1", "--format", "xml"), "is not one of json, sql, postgresql"),
        (("p-1", "--format", "postgresql"), "needs --table"),
        (("p-1", "--format", "sql", "--table", "t"), "only --format postgresql"),
        (("p-1", "--column", "born"), "write NAME=COLUMN"),
        (("p-1", "--column", "a=b", "--column", "a=c"), "has two columns"),
        (("p-1", "--output", "-"), "is not a file"),
    ],
)
def test_the_command_line_is_checked_first(
    command: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert message in run(*command, code=2)


def test_a_mistake_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("--release", "r-1", code=2)  # There is no ledger.
    ws = begun(tmp_path)
    ws.submit(described("gone"))
    ws.cancel("gone", reason="called off")
    as_json = ("--format", "json")
    error = json.loads(run("--release", "gone", *as_json, code=4))["error"]
    assert error["code"] == "MOD705"
    for named in (("p-1",), ("--plan", "p-1")):
        document = json.loads(run(*named, *as_json, code=4))
        assert document["error"]["code"] == "MOD804"
        assert "`p-1`" in document["error"]["message"]


def test_a_mistake_is_told_to_people_unless_json_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun(tmp_path).submit(described("r-1"))
    assert run("--plan", "p-1", code=4).startswith("error[MOD804]: unknown")
