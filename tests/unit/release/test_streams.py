"""Prices of streams in releases: units, refusals, and what a ledger makes of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from samples.audited import bundle, described_anew, sealed
from samples.small import compiled
from typer.testing import CliRunner

import modicum as mo
from modicum.accounting.grid import MU2, RHO
from modicum.accounting.group_privacy import group
from modicum.accounting.mechanisms import gaussian
from modicum.api.local import Workspace
from modicum.api.local.evaluation import price_release
from modicum.cli.main import app
from modicum.core.canonical import encode
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT
from modicum.ledger import event_of
from modicum.ledger.log.events import ReleaseReserved
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.release import (
    PricedMechanism,
    Relation,
    Unit,
    Vocabulary,
    parse_release,
    price,
)
from modicum.release.stored_description import (
    Price,
    PriceList,
    UnknownDescription,
    derivations,
)
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

QUARTER = {"periods": "2026-Q3"}
SIGMA = 20
#: Every kind, priced for user-days and for users.
STREAMS: dict[str, Callable[..., dict[str, Any]]] = {
    "binary-tree": mo.binary_tree,
    "square-root-factorization": mo.matrix_factorization,
    "matrix-factorization": lambda **more: mo.matrix_factorization(
        coefficients=[1, Fraction(1, 2), Fraction(1, 3)], **more
    ),
}


def words(user: Relation = "add-remove", day: Relation = "add-remove") -> Vocabulary:
    units = (
        Unit("user", "u", neighbors=user),
        Unit("user-day", "u", "day", "at", ("user",), {}, day),
    )
    facts = {unit.name: unit for unit in units}
    return Vocabulary(frozenset({"page"}), {}, tuple(facts), "add-remove", facts)


WORDS = words()


def stream(
    kind: str,
    user: Mapping[str, Any] | None = None,
    day: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    moves = {"user": user, "user-day": day or mo.l2(1, participations=1)}
    given = {
        "attributes": ["page"],
        "sensitivity": {unit: one for unit, one in moves.items() if one is not None},
        "steps": 92,
        "sigma": SIGMA,
        **QUARTER,
        **more,
    }
    return STREAMS[kind](**given)


def priced(mechanism: dict[str, Any], known: Vocabulary = WORDS) -> PricedMechanism:
    node = from_python({"release": "r", "mechanisms": [mechanism]})
    return price(parse_release(node, known), known).mechanisms[0]


def problem(mechanism: dict[str, Any], known: Vocabulary = WORDS) -> Problem:
    with pytest.raises(InputError) as caught:
        priced(mechanism, known)
    return caught.value.problems[0]


def rho(one: PricedMechanism, unit: str) -> Fraction:
    return Fraction(one.losses[unit].coordinates[RHO], LOSS_UNIT)


# --- prices -----------------------------------------------------------------


@pytest.mark.spec("REL-18")
def test_a_day_of_a_user_costs_its_nodes_and_a_user_the_worst_days() -> None:
    one = priced(stream("binary-tree", user=mo.l2(1, participations=92)))
    # Blocks of 1, 2, 4, 8, 16, 32 and 64 days.
    assert rho(one, "user-day") == Fraction(7, 2 * SIGMA**2)
    nodes = sum(92 // size * size**2 for size in (1, 2, 4, 8, 16, 32, 64))
    assert rho(one, "user") == Fraction(nodes, 2 * SIGMA**2)
    assert (
        one.losses["user"].coordinates[MU2] == 2 * one.losses["user"].coordinates[RHO]
    )
    assert one.sources == {"user": "computed", "user-day": "computed"}


@pytest.mark.parametrize("kind", STREAMS)
def test_rare_and_distant_steps_cost_less(kind: str) -> None:
    patterns = [
        mo.l2(1, participations=92),
        mo.l2(1, participations=30),
        mo.l2(1, participations=30, separation=2),
        mo.l2(1, participations=30, separation=7),
        mo.l2(1, participations=1),
    ]
    found = [rho(priced(stream(kind, user=one)), "user") for one in patterns]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]
    one = priced(stream(kind, user=patterns[-1]))
    assert one.losses["user"] == one.losses["user-day"]
    twice = priced(stream(kind, user=mo.l2(2, participations=1)))
    assert rho(twice, "user") == pytest.approx(4 * rho(one, "user"))


@pytest.mark.parametrize("kind", STREAMS)
def test_the_better_of_stated_and_derived_is_charged(kind: str) -> None:
    """All days of a user are 92 user-days: group privacy knows no pattern."""
    derived = priced(stream(kind, day=mo.l2(1, participations=1)))
    assert derived.sources["user"] == "92 x user-day"
    day = gaussian(rho=rho(derived, "user-day"))
    slack = Fraction(92**2, LOSS_UNIT)  # What is rounded is that of the user.
    assert rho(derived, "user") <= group(day, 92).loss().coordinates[RHO] / LOSS_UNIT
    assert rho(derived, "user") >= 92**2 * rho(derived, "user-day") - slack
    stated = priced(stream(kind, user=mo.l2(1, participations=92)))
    assert stated.sources["user"] == "computed"
    assert rho(stated, "user") < rho(derived, "user")
    vast = priced(stream(kind, user=mo.l2(1000, participations=92)))
    assert vast.sources["user"] == "92 x user-day"
    assert vast.losses["user"] == derived.losses["user"]


@pytest.mark.parametrize("relation", ["substitute", "any-change"])
def test_the_sensitivity_is_that_of_the_relation(relation: Relation) -> None:
    known = words(relation, relation)
    given = stream("binary-tree", user=mo.l2(1, participations=60))
    assert priced(given, known).losses == priced(given).losses


def test_a_list_with_the_square_root_s_numbers_costs_the_same() -> None:
    numbers = [Fraction(1), Fraction(1, 2), Fraction(3, 8), Fraction(5, 16)]
    given: dict[str, Any] = {"user": mo.l2(1, participations=3), "steps": 4}
    listed = stream("square-root-factorization", coefficients=numbers, **given)
    root = stream("square-root-factorization", **given)
    assert listed["mechanism"] == "matrix-factorization"
    assert root["mechanism"] == "square-root-factorization"
    assert priced(listed).losses == priced(root).losses


def test_a_declared_cost_is_enough_and_none_is_too_low() -> None:
    given = {"mechanism": "binary-tree", "attributes": []}
    one = priced({**given, "cost": {"user": {"rho": 1}}})
    assert one.sources["user"] == "declared"
    low = stream("binary-tree", cost={"user-day": {"rho": Fraction(1, 1000)}})
    assert problem(low).code is Code.COST_TOO_LOW


# --- refusals ---------------------------------------------------------------


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("left_out", ["steps", "sigma", "sensitivity", "coefficients"])
def test_nothing_may_be_left_out(kind: str, left_out: str) -> None:
    whole = stream(kind)
    if left_out not in whole:
        return
    found = problem({key: one for key, one in whole.items() if key != left_out})
    assert found.code is Code.MISSING_KEY
    assert f"`{left_out}`" in found.message


def test_the_number_of_steps_of_an_instance_is_never_assumed() -> None:
    found = problem(stream("binary-tree", day=mo.l2(1)))
    assert found.code is Code.MISSING_KEY
    assert "`participations`" in found.message
    assert "number of steps" in found.help
    other = problem(
        mo.gaussian(
            attributes=[], sigma=1, sensitivity={"user": mo.l2(1, participations=1)}
        )
    )
    assert other.code is Code.UNKNOWN_KEY


@pytest.mark.parametrize(
    ("kind", "more", "code"),
    [
        ("binary-tree", {"steps": 0}, Code.OUT_OF_RANGE),
        ("binary-tree", {"steps": 1.5}, Code.OUT_OF_RANGE),
        ("binary-tree", {"steps": 10**6 + 1}, Code.OUT_OF_RANGE),
        ("square-root-factorization", {"steps": 10_001}, Code.OUT_OF_RANGE),
        ("binary-tree", {"sigma": 0}, Code.OUT_OF_RANGE),
        ("binary-tree", {"day": {"l2": 1, "participations": 0}}, Code.OUT_OF_RANGE),
        (
            "binary-tree",
            {"day": {"l2": 1, "participations": 1, "separation": 0}},
            Code.OUT_OF_RANGE,
        ),
        (
            "binary-tree",
            {"day": {"l2": 1, "participations": 1, "apart": 3}},
            Code.UNKNOWN_KEY,
        ),
        ("binary-tree", {"day": {"participations": 1}}, Code.MISSING_KEY),
        ("binary-tree", {"coefficients": [1]}, Code.UNKNOWN_KEY),
        ("binary-tree", {"eps": 1}, Code.UNKNOWN_KEY),
        ("square-root-factorization", {"coefficients": []}, Code.OUT_OF_RANGE),
        ("square-root-factorization", {"coefficients": [0, 1]}, Code.OUT_OF_RANGE),
        ("square-root-factorization", {"coefficients": [1, -1]}, Code.OUT_OF_RANGE),
        ("square-root-factorization", {"coefficients": "root"}, Code.WRONG_TYPE),
        ("square-root-factorization", {"coefficients": ["1"]}, Code.NOT_A_NUMBER),
        (
            "square-root-factorization",
            {"coefficients": [1] * 10_001},
            Code.TOO_LARGE,
        ),
        (
            "square-root-factorization",
            {"coefficients": [1, Fraction(1, 10**40 + 1)]},
            Code.OUT_OF_RANGE,
        ),
        (
            "binary-tree",
            {"sampling": {"unit": "user", "rate": Fraction(1, 2)}},
            Code.NOT_SUPPORTED,
        ),
    ],
)
def test_what_has_no_price_is_refused(
    kind: str, more: dict[str, Any], code: Code
) -> None:
    assert problem(stream(kind, **more)).code is code


def test_so_many_coefficients_are_stored_with_one_release() -> None:
    """A description is kept, and priced, in every audit."""
    one = stream("square-root-factorization", coefficients=[1] * 5_000)

    def parsed(count: int) -> int:
        mechanisms = [{**one, "name": f"n{n}"} for n in range(count)]
        node = from_python({"release": "r", "mechanisms": mechanisms})
        return len(parse_release(node, WORDS).mechanisms)

    assert parsed(2) == 2
    with pytest.raises(InputError, match="more than 10000 `coefficients`"):
        parsed(3)


# --- stored descriptions ----------------------------------------------------


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("kind", STREAMS)
def test_a_stored_stream_costs_the_same_again(kind: str) -> None:
    one = priced(stream(kind, user=mo.l2(3, participations=30, separation=2)))
    described = json.loads(encode(dict(one.mechanism.plain)))
    prices = PriceList(WORDS)
    for _ in range(2):  # The second one is remembered.
        found = prices.of(described, one.mechanism.attributes, one.mechanism.part)
        assert isinstance(found, Price)
        assert found.losses == one.losses
    assert derivations(described, one.mechanism.part, one.losses, WORDS) == {}
    less = {**described["participation"], "user": {"participations": "1"}}
    cheap = prices.of(
        {**described, "participation": less},
        one.mechanism.attributes,
        one.mechanism.part,
    )
    assert isinstance(cheap, Price)
    assert cheap.losses != one.losses


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize(
    "changed",
    [
        {"participation": {}},
        {"participation": None},
        {"participation": {"user-day": {}}},
        {"participation": {"user-day": {"participations": 1}}},
        {"participation": {"user-day": {"participations": "1.5"}}},
        {"participation": {"user-day": {"participations": "0"}}},
        {"participation": {"user-day": {"participations": "01"}}},
        {
            "participation": {
                "user-day": {"participations": "1"},
                "user": {"participations": "1"},
            }
        },
        {"coefficients": []},
        {"coefficients": "1"},
        {"coefficients": ["1.0"]},
        {"coefficients": ["-1"]},
        {"coefficients": [1]},
    ],
)
def test_what_nobody_can_have_asked_for_has_no_price(changed: dict[str, Any]) -> None:
    one = priced(stream("matrix-factorization"))
    described = json.loads(encode(dict(one.mechanism.plain)))
    with pytest.raises(InputError):
        PriceList(WORDS).of(
            {**described, **changed}, one.mechanism.attributes, one.mechanism.part
        )


def test_what_another_version_may_know_is_said() -> None:
    one = priced(stream("binary-tree"))
    described = json.loads(encode(dict(one.mechanism.plain)))
    more = {"user-day": {"participations": "1", "l2": "0.1"}}
    found = PriceList(WORDS).of(
        {**described, "participation": more},
        one.mechanism.attributes,
        one.mechanism.part,
    )
    assert isinstance(found, UnknownDescription)
    assert "participation by `l2`" in found.why


# --- from a workspace to an audit -------------------------------------------

POLICY = """
modicum: policy/v1
name: reading
dp: {filter: zcdp-v1}
units:
  user: {id: user_id}
  user-day: {id: user_id, time: {column: at, period: day}, within: user}
schema: {attributes: {page: low}}
policies:
  - {name: day, when: "true", unit: user-day, budget: {rho: 0.02}}
  - {name: person, when: "true", unit: user, budget: {rho: 9}}
"""
BEFORE = "2026-06-30T12:00:00.000000Z"


def run(*command: str) -> Any:
    return CliRunner().invoke(app, command)


def workspace(folder: Path) -> Workspace:
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        FixedClock(BEFORE),
        policy=compiled(POLICY),
        actor="ann",
    )


def release(name: str, kind: str = "binary-tree", **more: Any) -> dict[str, Any]:
    one = stream(kind, user=mo.l2(1, participations=30), **more)
    return {"release": name, "mechanisms": [one]}


@pytest.mark.spec("REL-18")
@pytest.mark.parametrize("kind", STREAMS)
def test_one_entry_for_a_quarter_is_charged_to_each_day_and_audited(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = release("views", kind)
    one = workspace(tmp_path)
    decision = one.submit(asked)
    assert decision.allowed
    reserved = [
        body
        for record in one.records()
        if isinstance(body := event_of(record, record.seq).body, ReleaseReserved)
    ]
    assert len(reserved) == 1
    assert reserved[0].release == price_release(asked, compiled(POLICY))
    # Each day of the quarter has room for as many as the budget of one day has.
    fits = Fraction(2, 100) // rho(priced(asked["mechanisms"][0]), "user-day")
    for number in range(1, int(fits)):
        assert one.submit(release(f"views-{number}", kind)).allowed
    denied = one.submit(release("late", kind, periods="2026-09-30"))
    assert not denied.allowed
    assert one.submit(release("next", kind, periods="2026-10-01")).allowed
    assert run("audit", "export", "-o", "bundle.zip").exit_code == 0
    verified = run("audit", "verify", "bundle.zip")
    assert verified.exit_code == 0, verified.output
    shown = run("release", "show", "views").output
    assert "participations 30 per user" in shown
    assert run("ledger", "verify").exit_code == 0


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("named", ["participation", "steps", "coefficients"])
def test_an_audit_finds_a_stream_that_is_described_as_dearer(
    kind: str, named: str, tmp_path: Path
) -> None:
    """The losses stay, and what is described costs more than them."""
    one = workspace(tmp_path)
    assert one.submit(release("views", kind)).allowed
    happened = [event_of(record, record.seq).body for record in one.records()]
    (place,) = [n for n, b in enumerate(happened) if isinstance(b, ReleaseReserved)]
    body = happened[place]
    assert isinstance(body, ReleaseReserved)
    if named == "coefficients" and kind != "matrix-factorization":
        return
    happened[place] = replace(body, release=dearer(body.release, named))
    (tmp_path / "bundle").write_bytes(bundle(sealed(happened)))
    found = run("audit", "verify", str(tmp_path / "bundle"))
    if named == "steps" and kind == "matrix-factorization":
        assert found.exit_code == 0  # Three coefficients cost the same in any.
        return
    assert found.exit_code == 6, found.output
    assert "it states rho" in found.output


def dearer(recorded: RecordedRelease, named: str) -> RecordedRelease:
    (one,) = recorded.mechanisms
    described = json.loads(encode(dict(one.description)))
    if named == "participation":
        described["participation"]["user"]["participations"] = "31"
    elif named == "steps":
        described["parameters"]["steps"] = "1000"
    else:
        described["coefficients"][2] = "0.5"
    changed = dataclasses.replace(one, description=described)
    return described_anew(replace(recorded, mechanisms=(changed,)))
