"""Scores on exact answers by blocks of people: asked for, charged, run, and let go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from msgspec import structs
from oracle.escrow import permits
from samples.escrows import OWNED, POLICY, ROWS, TABLES, World, query
from samples.first_version import take_up
from samples.stored import to_plain

from modicum.api.local.escrow import execution, run
from modicum.api.local.escrow.datasets import Declared
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.local.escrow.review import examined
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
)
from modicum.core.rationals import LOSS_UNIT
from modicum.engines.factory import SystemSecrets
from modicum.engines.noise import NoiseSampler
from modicum.escrow.blocks import SENSITIVITY, ByBlocks
from modicum.escrow.programs import STEPS, Program, Range
from modicum.integrations.loader import Adapters
from modicum.ledger import event_of
from modicum.ledger.log.contracts import TaskTerms
from modicum.ledger.log.escrow_events import ContractProposed
from modicum.ledger.log.events import ReleaseReserved
from modicum.policy.compiler import compile_text
from modicum.query.statistics import Secrets

SHARE = b"""\
def score(tables, arguments, reference):
    assert reference is None
    (table,) = tables.values()
    people = sum(row[-1] for row in table["rows"])
    return table["rows"][0][-1] / people if people else None
"""
#: Everything that one person can do to it, they do.
PARITY = b"""\
def score(tables, arguments, reference):
    people = sum(row[-1] for one in tables.values() for row in one["rows"])
    return 1e12 if people % 2 else -1e12
"""
UNIT = Range(Fraction(0), Fraction(1))
PROGRAM = Program("wasm", SHARE, {}, UNIT)
TWENTY = ByBlocks(20, Fraction("0.5"))
HEADING = Purpose("t", "what noise costs")


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    found.register()
    found.queried()
    return found


def asked(world: World, blocks: ByBlocks = TWENTY, program: Program = PROGRAM) -> None:
    world.office("amir").submit_task(HEADING, "q", program, blocks=blocks)
    world.agree("t")


def received(world: World) -> Fraction:
    world.office("amir").submit_signal(Purpose("s", "to know"), "t")
    world.agree("s")
    found = world.office("amir").receive("s")
    assert found.private
    assert found.score is not None
    return Fraction(found.score)


def log(world: World) -> list[dict[str, Any]]:
    records = world.workspace("auditor").records()
    return [dict(to_plain(event_of(one, one.seq))) for one in records]


def kinds(world: World) -> list[str]:
    return [str(one["kind"]) for one in log(world)]


def priced(world: World, name: str = "t") -> Any:
    """Return the one mechanism of a release, as the ledger recorded it."""
    for one in world.workspace("auditor").records():
        body = event_of(one, one.seq).body
        if isinstance(body, ReleaseReserved) and body.release.id == name:
            (mechanism,) = body.release.mechanisms
            return mechanism
    raise AssertionError(name)


@dataclass
class Noted:
    """A sampler that adds nothing, and notes what it was to add."""

    asked: list[tuple[str, Fraction, list[int]]] = field(default_factory=list)

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        NoiseSampler().check(noise, scale, sensitivity)

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        self.asked.append((noise, scale, list(values)))
        return list(values)


def quiet(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Let runs draw no noise from here on."""
    noted = Noted()
    monkeypatch.setattr(Adapters, "sampler", lambda _: noted)
    return noted


# --- the whole way --------------------------------------------------------------------


@pytest.mark.spec("ESC-10")
def test_a_score_by_blocks_goes_the_way_of_all_scores(world: World) -> None:
    asked(world)
    flow = world.office("olga").show("t").flow
    terms = flow.contract.terms
    assert isinstance(terms, TaskTerms)
    assert (terms.blocks, terms.results, flow.contract.uses) == (20, ("private",), 1)
    assert world.office("amir").run("t").denied is None
    assert kinds(world)[-4:] == [
        "release-reserved",
        "release-started",
        "flow-begun",
        "flow-withheld",
    ]
    assert 0 <= received(world) <= 1
    # The queries' release and that of the score are out with it.
    assert kinds(world)[-3:] == ["flow-released", "release-posted", "release-posted"]
    assert world.workspace("amir").standing("t").status.value == "published"
    with pytest.raises(ConflictError, match="no exact result"):
        world.office("amir").submit_raw_signal(Purpose("r", "to know"), "t", width=None)


@pytest.mark.spec("ESC-10")
def test_the_ledger_and_a_plain_reading_of_it_take_it(world: World) -> None:
    asked(world)
    world.office("amir").run("t")
    received(world)
    result = log(world)
    judged = 0
    for place, one in enumerate(result):
        if str(one["kind"]).startswith(("flow-", "contract-", "data-")):
            assert permits(result[:place], one), one
            judged += 1
    assert judged > 8
    world.workspace("auditor").verify()


@pytest.mark.spec("ESC-10")
def test_the_mean_of_all_blocks_is_told_and_nothing_else_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(world.equipment.vault.things)
    noted = quiet(monkeypatch)
    asked(world)
    world.office("amir").run("t")
    given = [tables for tables, _ in world.equipment.box.given]
    assert len(given) == 20
    rows = [dict(one["r-q"].rows) for one in given]
    assert sum(one["north"] + one["south"] for one in rows) == 300
    assert {one["north"] + one["south"] for one in rows} != {15}  # By a hash.
    scores = [
        Fraction(one["north"], one["north"] + one["south"])
        if any(one.values())
        else Fraction(1, 2)
        for one in rows
    ]
    mean = sum(scores, Fraction(0)) / 20
    assert abs(received(world) - mean) < Fraction(2, 10**9)
    ((noise, scale, (total,)),) = noted.asked
    assert abs(Fraction(total, 20 * STEPS) - mean) < Fraction(1, 10**9)
    assert (noise, scale) == ("laplace", TWENTY.scale)
    left = set(world.equipment.vault.things) - before
    assert sorted(one.split("/")[0] for one in left) == ["code", "result"]
    assert [one for one in left if one.endswith("/1/private")]


def test_a_block_without_a_score_counts_as_the_middle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = quiet(monkeypatch)
    nothing = b"def score(tables, arguments, reference):\n    return None\n"
    asked(world, program=Program("wasm", nothing, {}, Range(Fraction(2), Fraction(5))))
    world.office("amir").run("t")
    assert noted.asked[0][2] == [20 * STEPS // 2]
    assert received(world) == Fraction(7, 2)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_is_as_wide_as_the_ledger_says(world: World, noise: Any) -> None:
    blocks = ByBlocks(4, Fraction("2"), "user", noise)
    asked(world, blocks)
    (one,) = examined(world.workspace("olga"), "t").queries
    score = one.score
    assert score is not None
    sampler = NoiseSampler()
    scores: list[float | None] = [0.5] * 4
    strays = [abs(float(run._mean(score, scores, sampler)) - 0.5) for _ in range(4000)]
    assert score.moved == Fraction(1, 4)
    usual = 1 if noise == "laplace" else 0.79788
    # A loss of eps 2, and of rho 2, both take half of what one person moves.
    expected = usual * float(score.moved) / 2
    assert 0.93 * expected < fmean(strays) < 1.07 * expected
    outside = fmean(one > float(score.half_width) for one in strays)
    assert 0.03 < outside < 0.07


# --- one person, one block ------------------------------------------------------------

WHO = f"who: {{type: integer, attribute: income, values: {list(range(100))}}}"
VISITS = f"""\
modicum: tables/v1
tables:
  visits:
    row_id: visit
    columns:
      visit: {{type: integer}}
      person: {{type: integer}}
      {WHO}
"""
VISITED = b"visit,person,who\n" + b"".join(
    b"%d,%d,%d\n" % (n, n % 100, n % 100) for n in range(500)
)
NAMED = TABLES.replace(
    "income: {type: text, attribute: income, values: [low, high]}", WHO
)
NAMES = b"person,town,who\n" + b"".join(b"%d,north,%d\n" % (n, n) for n in range(100))


def by_name(release: str, tables: str, more: str = "") -> str:
    """Return a query that tells everybody apart."""
    who = f"{tables.split(maxsplit=1)[0]}.who"
    return f"""\
release: {release}
query:
  sql: "SELECT {who}, COUNT(*) AS n{more} FROM {tables} GROUP BY {who}"
  bounds: {{user: 100}}
  noise: laplace
  loss: {{user: {{eps: 0.1}}}}
"""


@pytest.fixture
def named(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.office("olga").register("people", NAMES, Declared(NAMED), OWNED)
    world.office("olga").register("visits", VISITED, Declared(VISITS), OWNED)
    return world


def run_query(world: World, texts: list[str]) -> None:
    world.office("amir").submit_query(Purpose("q", "to know"), texts)
    world.agree("q")
    assert world.office("amir").run("q").denied is None


@pytest.mark.spec("ESC-10")
def test_all_rows_of_a_person_are_in_one_block_of_all_queries(named: World) -> None:
    joined = "visits JOIN people ON visits.person = people.person"
    texts = [
        by_name("r-1", "people"),
        by_name("r-2", "visits", ", COUNT(visits.who) AS m"),
        by_name("r-3", joined),
    ]
    run_query(named, texts)
    asked(named, ByBlocks(3, Fraction("0.1")), Program("wasm", PARITY, {}, UNIT))
    named.office("amir").run("t")
    seen: dict[str, dict[object, int]] = {}
    for number, (tables, _) in enumerate(named.equipment.box.given):
        for release, table in tables.items():
            for who, *counts in table.rows:
                if not any(counts):
                    continue
                assert counts[0] == counts[-1]
                assert seen.setdefault(release, {}).setdefault(who, number) == number
    assert set(seen) == {"r-1", "r-2", "r-3"}
    assert all(len(one) == 100 for one in seen.values())
    assert seen["r-1"] == seen["r-2"] == seen["r-3"]


def test_each_run_divides_people_anew_and_keeps_to_it() -> None:
    lots = [run.OneDivision(SystemSecrets()) for _ in range(2)]
    drawn = [[one.draw() for _ in range(3)] for one in lots]
    keys = [{one.block_key for one in each} for each in drawn]
    assert [len(one) for one in keys] == [1, 1]
    assert keys[0] != keys[1]
    assert all(len(one) >= 32 for each in keys for one in each)
    assert len({one.order_key for each in drawn for one in each}) == 6


class FixedLots:
    """Secrets that are always the same."""

    def draw(self) -> Secrets:
        return Secrets("ab", "cd", "5eed")


@pytest.mark.spec("ESC-10")
@pytest.mark.parametrize("number", [2, 7])
def test_without_a_person_one_score_changes_and_the_mean_by_no_more_than_priced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """From rows in the vault to the sum that gets noise, for the worst program."""
    noted = quiet(monkeypatch)
    monkeypatch.setattr(Adapters, "lots", lambda _: FixedLots())
    first, *lines = ROWS.splitlines(keepends=True)
    for place, without in enumerate((None, 0, 1, 77, 299)):
        rows = b"".join([first, *(one for n, one in enumerate(lines) if n != without)])
        (tmp_path / str(place)).mkdir()
        world = World(tmp_path / str(place))
        world.office("olga").register("people", rows, Declared(TABLES), OWNED)
        world.queried()
        asked(world, ByBlocks(number, Fraction("0.5")), replace(PROGRAM, code=PARITY))
        world.office("amir").run("t")
        assert len(world.equipment.box.given) == number
    sums = [values[0] for noise, _, values in noted.asked if noise == "laplace"]
    assert len(sums) == 5
    assert {abs(one - sums[0]) for one in sums[1:]} == {SENSITIVITY}


# --- what it costs --------------------------------------------------------------------


@pytest.mark.spec("ESC-11")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_it_is_charged_as_an_ordinary_release(world: World, noise: Any) -> None:
    asked(world, ByBlocks(20, Fraction("0.25"), noise=noise))
    world.office("amir").run("t")
    one = priced(world)
    assert one.description["kind"] == f"discrete-{noise}"
    norm = "1000000000"
    assert one.description["sensitivity"] == {"user": norm}
    place = 0 if noise == "laplace" else 1
    result = Fraction(one.losses["user"].coordinates[place], LOSS_UNIT)
    assert Fraction("0.2499") < result <= Fraction("0.25") + Fraction(1, LOSS_UNIT)
    assert one.attributes == ("town",)
    assert world.workspace("amir").standing("t").status.value == "started"


WIDER = POLICY.replace(
    "units: {user: {id: person}}",
    """\
units:
  user: {id: person}
  user-day: {id: person, time: {column: at, period: day}, within: [user]}
  device: {id: device, within: [user]}
labels: {purpose: {values: [care, ads], default: care}}""",
)


@pytest.mark.spec("ESC-11")
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute", "any-change"])
def test_units_of_the_same_id_move_one_block_under_any_relation(
    tmp_path: Path, neighbors: str
) -> None:
    text = WIDER.replace("  device: {id: device, within: [user]}\n", "")
    for unit in ("id: person,", "id: person}"):
        end = unit[-1]
        text = text.replace(unit, f"id: person, neighbors: {neighbors}{end}")
    world = other_world(tmp_path, text)
    asked(world, ByBlocks(20, Fraction("0.25"), "user"))
    world.office("amir").run("t")
    found = priced(world)
    assert set(found.losses) == {"user", "user-day"}
    assert len({one.coordinates for one in found.losses.values()}) == 1
    assert dict(found.neighbors) == (
        {} if neighbors == "add-remove" else dict.fromkeys(found.losses, neighbors)
    )


@pytest.mark.spec("ESC-11")
def test_what_follows_for_other_units_is_the_ledgers_to_prove(tmp_path: Path) -> None:
    world = other_world(tmp_path, WIDER)
    asked(world, ByBlocks(20, Fraction("0.25"), "user"))
    world.office("amir").run("t")
    losses = priced(world).losses
    assert losses["user"].coordinates[0] == losses["user-day"].coordinates[0]
    # A device that comes makes of one person another one: who goes, and comes again.
    twice = 2 * losses["user"].coordinates[0]
    assert losses["device"].coordinates[0] >= twice - 2  # Both are rounded up.
    assert priced(world).description["sensitivity"].keys() == {"user", "user-day"}


@pytest.mark.spec("ESC-11")
def test_a_unit_of_which_nothing_is_proven_refuses_it(tmp_path: Path) -> None:
    text = POLICY.replace("{id: person}}", "{id: person}, ward: {id: ward}}")
    world = World(tmp_path)
    activate(world, text)
    world.register()
    with pytest.raises(InputError, match="ward"):
        world.queried()
    world = other_world(tmp_path / "b", POLICY)
    activate(world, text)
    for unit in ("user", "ward"):
        with pytest.raises(InputError, match="ward"):
            world.office("amir").submit_task(
                HEADING, "q", PROGRAM, blocks=ByBlocks(20, Fraction(1), unit)
            )


def activate(world: World, text: str) -> None:
    compiled = compile_text(text.encode(), "policy.yaml")
    world.workspace("olga").governance.activate(compiled, reason="other units")


def other_world(folder: Path, text: str, asks: str = "") -> World:
    """Return a world under another policy, where the queries ran."""
    folder.mkdir(exist_ok=True)
    world = World(folder)
    if text != POLICY:
        activate(world, text)
    world.register()
    run_query(
        world, [asks or query("r-q", "0.1").replace('GROUP BY town"', 'GROUP BY town"')]
    )
    return world


@pytest.mark.spec("ESC-11")
def test_owners_see_what_it_costs_before_they_agree(world: World) -> None:
    world.office("amir").submit_task(HEADING, "q", PROGRAM, blocks=TWENTY)
    (one,) = examined(world.workspace("olga"), "t").queries
    assert one.charge.release == "t"
    assert "number: 20" in one.charge.text
    assert "eps: 0.5" in one.charge.text
    assert one.score is not None
    assert one.score.moved == Fraction(1, 20)
    assert abs(one.score.scale - Fraction(1, 10)) < Fraction(1, 10**6)
    assert "0.05" in "".join(one.score.explain())
    assert one.decision is not None
    assert one.decision.allowed
    too_much = ByBlocks(20, Fraction(9))
    other = Purpose("t2", "to know")
    world.office("amir").submit_task(other, "q", PROGRAM, blocks=too_much)
    (one,) = examined(world.workspace("olga"), "t2").queries
    assert one.decision is not None
    assert not one.decision.allowed


# --- what is refused ------------------------------------------------------------------


def refused(world: World, blocks: ByBlocks = TWENTY, **other: Any) -> str:
    """Return why a score by blocks cannot be asked for."""
    before = len(log(world))
    given: dict[str, Any] = {"program": PROGRAM, **other}
    with pytest.raises(ModicumError) as caught:
        world.office("amir").submit_task(HEADING, "q", blocks=blocks, **given)
    assert len(log(world)) == before
    return "".join(one.render() for one in caught.value.problems)


@pytest.mark.spec("ESC-12")
def test_programs_and_units_that_do_not_fit_are_refused(world: World) -> None:
    comparing = replace(PROGRAM, compares=True)
    assert "compares" in refused(world, program=comparing)
    assert "does not run programs in wasm" in refused(world, tier="gvisor")
    assert "split into blocks by `town`" in refused(
        world, ByBlocks(20, Fraction(1), "town")
    )
    assert "used once" in refused_uses(world)
    world.scored("other")
    with pytest.raises(ConflictError, match="has no queries to score"):
        world.office("amir").submit_task(HEADING, "other", PROGRAM, blocks=TWENTY)


def refused_uses(world: World) -> str:
    with pytest.raises(ConflictError) as caught:
        world.office("amir").submit_task(
            replace(HEADING, uses=2), "q", PROGRAM, blocks=TWENTY
        )
    return str(caught.value)


@pytest.mark.spec("ESC-12")
def test_units_with_a_period_are_no_blocks(tmp_path: Path) -> None:
    world = other_world(tmp_path, WIDER)
    assert "`user-day`" in refused(world, ByBlocks(20, Fraction(1), "user-day"))
    assert "have no privacy unit" in refused(world, ByBlocks(20, Fraction(1)))


VISITED_BY_TEXT = """\
modicum: tables/v1
tables:
  visits:
    row_id: visit
    columns:
      visit: {type: integer}
      person: {type: text}
      town: {type: text, attribute: town, values: [north, south]}
"""


@pytest.mark.spec("ESC-12")
def test_ids_that_are_written_otherwise_are_refused(tmp_path: Path) -> None:
    """The number 1 and the text 1 are one person, and may be in two blocks."""
    world = World(tmp_path)
    world.register()
    declared = Declared(VISITED_BY_TEXT)
    rows = b"visit,person,town\n1,x,north\n"
    world.office("olga").register("visits", rows, declared, OWNED)
    visits = query("r-2", "0.1").replace("FROM people", "FROM visits")
    visits = visits.replace("  noise", "  bounds: {user: 2}\n  noise")
    run_query(world, [query("r-1", "0.1"), visits])
    result = refused(world)
    assert "MOD813" in result
    assert "must be text in all tables, or integer in all" in result


@pytest.mark.spec("ESC-12")
def test_samples_and_several_labels_are_refused(tmp_path: Path) -> None:
    sampled = query("r-q", "0.1") + "sampling: {unit: user, rate: 0.5}\n"
    world = other_world(tmp_path / "sampled", POLICY, sampled)
    assert "secret sample" in refused(world)
    labelled = POLICY + "labels: {kind: {values: [a, b], default: a}}\n"
    world = World(tmp_path)
    activate(world, labelled)
    world.register()
    run_query(world, [query("r-1", "0.1"), query("r-2", "0.1") + "kind: b\n"])
    assert "different labels" in refused(world)


WARDS = POLICY.replace(
    "{user: {id: person}}", "{user: {id: person, within: [ward]}, ward: {id: ward}}"
)
OF_WARDS = """\
modicum: tables/v1
tables:
  stays:
    row_id: stay
    columns:
      stay: {type: integer}
      ward: {type: text}
      town: {type: text, attribute: town, values: [north, south]}
  wards:
    row_id: ward
    one_per: ward
    columns:
      ward: {type: text}
      income: {type: text, attribute: income, values: [low, high]}
"""


@pytest.mark.spec("ESC-12")
def test_tables_that_do_not_tell_the_id_of_a_row_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    activate(world, WARDS)
    rows = {"stays": b"stay,ward,town\n1,a,north\n", "wards": b"ward,income\na,low\n"}
    for name, content in rows.items():
        world.office("olga").register(name, content, Declared(OF_WARDS), OWNED)
    plain = query("r-1", "0.1").replace("people GROUP", "stays GROUP")
    plain = plain.replace("user:", "ward:").replace(
        "  noise", "  bounds: {ward: 2}\n  noise"
    )
    joined = plain.replace("r-1", "r-2").replace("SELECT town", "SELECT stays.town")
    joined = joined.replace(
        "stays GROUP BY town",
        "stays JOIN wards ON stays.ward = wards.ward GROUP BY stays.town",
    )
    for name, text, why in (
        ("q", plain, "`stays` has no column `person`"),
        ("q2", joined, "joined on `ward`"),
    ):
        world.office("amir").submit_query(Purpose(name, "to know"), [text])
        world.agree(name)
        assert world.office("amir").run(name).denied is None
        with pytest.raises(InputError, match=why) as caught:
            world.office("amir").submit_task(
                HEADING, name, PROGRAM, blocks=ByBlocks(20, Fraction("0.1"), "user")
            )
        assert caught.value.code is Code.NOT_BOUNDED


# --- when it goes wrong ---------------------------------------------------------------


@pytest.mark.spec("ESC-12")
def test_it_runs_once(world: World) -> None:
    asked(world)
    with pytest.raises(ConflictError):
        world.office("bea").receive("t")
    world.office("amir").run("t")
    given = len(world.equipment.box.given)
    with pytest.raises(ConflictError, match="withheld"):
        world.office("amir").run("t")
    assert len(world.equipment.box.given) == given


def test_it_does_not_run_without_its_owners(world: World) -> None:
    world.office("amir").submit_task(HEADING, "q", PROGRAM, blocks=TWENTY)
    world.agree("t", "olga")
    opened = list(world.equipment.vault.opened)
    with pytest.raises(ConflictError, match="1 more must approve"):
        world.office("amir").run("t")
    assert world.equipment.vault.opened == opened
    assert kinds(world).count("release-reserved") == 1


@pytest.mark.spec("ESC-11")
def test_a_run_that_fails_is_spent(world: World) -> None:
    asked(world)
    world.equipment.vault.broken = True
    with pytest.raises(UnavailableError, match="ended without a result"):
        world.office("amir").run("t")
    world.equipment.vault.broken = False
    assert kinds(world)[-1] == "flow-failed"
    assert world.workspace("amir").standing("t").status.value == "started"
    with pytest.raises(ConflictError, match="used 1 times"):
        world.office("amir").run("t")
    world.workspace("auditor").verify()


@pytest.mark.spec("ESC-11")
def test_what_is_refused_before_it_begins_costs_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(world, ByBlocks(20, Fraction(9)))
    opened = world.equipment.vault.opened
    del opened[:]
    denied = world.office("amir").run("t").denied
    assert denied is not None
    assert not denied.allowed
    # Not even rows are opened: how long that takes depends on how many there are.
    assert [one for one in opened if one.startswith("data/")] == []
    assert world.office("amir").show("t").flow.runs == 0
    world.office("amir").submit_task(
        Purpose("t2", "to know"), "q", PROGRAM, blocks=TWENTY
    )
    world.agree("t2")
    world.equipment.box.there = False
    with pytest.raises(UnavailableError, match="no bubblewrap"):
        world.office("amir").run("t2")
    world.equipment.box.there = True

    refusal = InputError(Problem(Code.DOES_NOT_FIT, "another price"))

    def no(*_: object) -> None:
        raise refusal

    monkeypatch.setattr(NoiseSampler, "check", no)
    with pytest.raises(InputError):
        world.office("amir").run("t2")
    assert kinds(world).count("release-reserved") == 1
    assert world.equipment.box.given == []


@pytest.mark.spec("ESC-11")
def test_it_has_its_sandbox_from_before_it_costs_to_its_end(world: World) -> None:
    """Otherwise a machine on which others are busy could cost a loss."""
    asked(world)
    box, costs = world.equipment.box, list[str]()
    box.before_turn = lambda: costs.append(kinds(world)[-1])
    world.office("amir").run("t")
    assert costs == ["approval-given"]
    assert box.turns == ["taken", *["scored"] * 20, "left"]


def test_a_policy_that_means_something_else_stops_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = POLICY.replace("units: {user: {id: person}}", "units: {user: {id: town}}")
    other = compile_text(text.encode(), "policy.yaml")
    asked(world)
    take_up(world.workspace("olga"), other)
    with pytest.raises((StaleError, InputError)):
        world.office("amir").run("t")
    activate(world, POLICY)
    reserve = execution.reserve

    def reserved(*given: Any) -> Any:
        found = reserve(*given)
        take_up(world.workspace("olga"), other)
        return found

    monkeypatch.setattr(run, "reserve", reserved)
    with pytest.raises((StaleError, InputError)):
        world.office("amir").run("t")
    assert "flow-begun" not in kinds(world)[-8:]
    assert world.workspace("amir").standing("t").status.value == "canceled"


def test_what_is_reserved_is_taken_back_if_an_owner_refuses_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(world)
    reserve = execution.reserve

    def reserved(*given: Any) -> Any:
        found = reserve(*given)
        world.office("olga").reject("t", reason="no")
        return found

    monkeypatch.setattr(run, "reserve", reserved)
    with pytest.raises(ConflictError, match="`olga` rejected it"):
        world.office("amir").run("t")
    assert world.workspace("amir").standing("t").status.value == "canceled"
    assert world.office("amir").show("t").flow.runs == 0


@pytest.mark.parametrize("odd", [{"tier": "bubblewrap"}, {"seconds": 1}])
def test_a_contract_of_somebody_s_own_for_what_cannot_run_costs_nothing(
    world: World, odd: dict[str, Any]
) -> None:
    world.office("amir").submit_task(HEADING, "q", PROGRAM, blocks=TWENTY)
    honest = world.office("amir").show("t").flow.contract
    assert isinstance(honest.terms, TaskTerms)
    forged = structs.replace(honest, id="f", terms=structs.replace(honest.terms, **odd))
    workspace = world.workspace("amir")
    workspace.turn(lambda entry: entry.add(ContractProposed(forged, "why not")))
    world.agree("f")
    with pytest.raises(InputError, match=r"does not run programs|too short"):
        world.office("amir").run("f")
    assert kinds(world).count("release-reserved") == 1
    assert world.equipment.box.turns == []


@pytest.mark.spec("ESC-11")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eps: 0.5", "eps: 0.05"),
        ("number: 20", "number: 40"),
        ("range: [0, 1]", "range: [0, 9]"),
        ("laplace", "gaussian"),
        ('release: "t"', 'release: "t9"'),
        ("blocks:", "# little\nblocks:"),
    ],
)
def test_a_text_that_says_something_else_than_is_charged_does_not_run(
    world: World, old: str, new: str
) -> None:
    """Whoever writes contracts of their own cannot show owners a lower price."""
    world.office("amir").submit_task(HEADING, "q", PROGRAM, blocks=TWENTY)
    honest = world.office("amir").show("t").flow.contract
    terms = honest.terms
    assert isinstance(terms, TaskTerms)
    (charge,) = terms.charges
    assert old in charge.text
    lying = charge._replace(text=charge.text.replace(old, new, 1))
    forged = structs.replace(
        honest, id="f", terms=structs.replace(terms, charges=(lying,))
    )
    workspace = world.workspace("amir")
    workspace.turn(lambda entry: entry.add(ContractProposed(forged, "why not")))
    world.agree("f")
    assert examined(world.workspace("olga"), "f").queries[0].problem
    with pytest.raises((StaleError, InputError)):
        world.office("amir").run("f")
    assert kinds(world).count("flow-begun") == 1


@pytest.mark.spec("ESC-11")
def test_more_blocks_than_are_priced_do_not_run(world: World) -> None:
    world.office("amir").submit_task(HEADING, "q", PROGRAM, blocks=TWENTY)
    honest = world.office("amir").show("t").flow.contract
    assert isinstance(honest.terms, TaskTerms)
    forged = structs.replace(
        honest, id="f", terms=structs.replace(honest.terms, blocks=2)
    )
    workspace = world.workspace("amir")
    workspace.turn(lambda entry: entry.add(ContractProposed(forged, "why not")))
    world.agree("f")
    with pytest.raises(StaleError):
        world.office("amir").run("f")
