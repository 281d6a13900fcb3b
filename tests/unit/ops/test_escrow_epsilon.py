"""Epsilon by risk in the escrow: what is public, and what is for owners alone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import NamedTemporaryFile

import pyarrow as pa
import pytest
from samples.escrows import OWNED, MemoryEquipment, World

import modicum as mo
from modicum.api.local.escrow.datasets import Declared
from modicum.api.local.escrow.proposal import Purpose
from modicum.core.errors import ModicumError
from modicum.engines.file_types import header_of
from modicum.engines.sources import CsvFile
from modicum.ops.escrow.epsilon_choice import (
    QueryRisk,
    contract_risk,
    own_risk,
    query_risk,
)
from modicum.policy.compiler import compile_text
from modicum.risk.choice import Claim

POLICY = """\
modicum: policy/v1
name: hospital
units:
  patient: {id: patient}
schema:
  attributes: {clinic: low, cost: high}
policies:
  - {name: all, when: "true", unit: patient, budget: {eps: 100, delta: 1e-6}}
"""
PATIENT = "  patient: {id: patient}\n"
_DAY = "{id: patient, time: {column: day, period: day}, within: patient}"
DAYS = PATIENT + f"  patient-day: {_DAY}\n"
REPLACED = "  patient: {id: patient, neighbors: substitute}\n"
JANUARY = "periods: 2026-01\n"
TABLES = """\
modicum: tables/v1
tables:
  visits:
    row_id: visit
    columns:
      visit: {type: integer}
      patient: {type: integer}
      doctor: {type: integer, attribute: clinic}
      day: {type: date, attribute: clinic}
      clinic: {type: text, attribute: clinic, values: ["01", "02", "03"]}
      note: {type: text, attribute: clinic}
      cost: {type: number, step: 0.5, bounds: [-10, 200], attribute: cost}
  people:
    row_id: patient
    one_per: patient
    columns:
      patient: {type: integer}
      clinic: {type: text, attribute: clinic, values: ["01", "02", "03"]}
"""
PEOPLE = b"patient,clinic\n" + b"".join(b"%d,0%d\n" % (n, n % 3 + 1) for n in range(40))


def visits(count: int = 600, cost: int = 7) -> bytes:
    lines = ["visit,patient,doctor,day,clinic,note,cost"]
    for n in range(count):
        patient = n % 7 if n % 3 else n % 40  # Some have many more rows than others.
        clinic = f"0{n % 3 + 1}" if n % 11 else "99"
        day, paid = f"2026-01-{n % 28 + 1:02}", (n * cost) % 230 - 12
        lines.append(f"{n},{patient},{n % 5},{day},{clinic},x{n % 4},{paid}.5")
    return ("\n".join(lines) + "\n").encode()


def query(
    sql: str = "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic",
    loss: str = "patient: {eps: 1}",
    more: str = "bounds: {patient: 12}",
    noise: str = "laplace",
) -> str:
    return f"""\
release: r-1
query:
  sql: "{sql}"
  noise: {noise}
  loss: {{{loss}}}
  {more}
"""


@dataclass
class FileEquipment(MemoryEquipment):
    """Rows as a file without types, as an escrow has them."""

    @contextmanager
    def rows_in(self, content: bytes, media: str, name: str) -> Iterator[object]:
        assert media == "csv"
        with NamedTemporaryFile(suffix=".csv") as file:
            file.write(content)
            file.flush()
            yield CsvFile(file.name, header_of(file.name, name))


class Hospital(World):
    def __init__(
        self, folder: Path, rows: bytes | None = None, units: str = PATIENT
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.units = units
        super().__init__(folder, equipment=FileEquipment())
        olga = self.workspace("olga").escrow
        olga.register("visits", rows or visits(), Declared(TABLES), OWNED)
        olga.register("people", PEOPLE, Declared(TABLES), OWNED)

    def __post_init__(self) -> None:
        policy = POLICY.replace("  patient: {id: patient}\n", self.units)
        self.workspace("olga", compile_text(policy.encode(), "p.yaml")).init()

    def asked(self, text: str) -> QueryRisk:
        return query_risk(self.workspace("amir"), text)


@pytest.fixture
def hospital(tmp_path: Path) -> Hospital:
    return Hospital(tmp_path / "one")


# --- what may be told -----------------------------------------------------------------


def test_the_public_choice_is_the_one_of_the_library(hospital: Hospital) -> None:
    found = hospital.asked(query()).choose(0.5)
    schema = pa.schema([("patient", pa.int64()), ("clinic", pa.string())])
    same = mo.risk.choose_publicly(
        schema.empty_table(),
        "SELECT clinic, COUNT(*) AS n FROM t GROUP BY clinic",
        0.5,
        unit="patient",
        rows_max=12,
        dimensions=3,
    )
    assert found.claim is Claim.DP
    assert found.to_dict() == same.to_dict()
    assert found.epsilon == 3


def test_a_sum_has_the_sensitivity_of_its_bounds_and_steps(hospital: Hospital) -> None:
    asked = hospital.asked(query("SELECT SUM(cost) AS c FROM visits"))
    assert asked.unseen.noise.sensitivity == 12 * 200
    assert asked.unseen.noise.dimensions == 1


def test_the_loss_in_the_file_makes_the_noise_of_the_choice(hospital: Hospital) -> None:
    asked = hospital.asked(query("SELECT SUM(cost) AS c FROM visits"))
    choice = asked.choose("0.75")
    assert choice.epsilon == Fraction("0.3")
    assert not asked.fits(choice)  # It asks for 1.
    again = hospital.asked(asked.file_at(choice))
    assert again.fits(choice)
    assert again.risky.query.request.loss == choice.epsilon
    scale, wanted = again.risky.line.scale * again.risky.step, Fraction(2400) / 3 * 10
    assert wanted <= scale <= wanted * (1 + Fraction(1, 10**5))


def test_gaussian_noise_is_told_in_rho(hospital: Hospital) -> None:
    text = query(noise="gaussian", loss="patient: {rho: 0.1}")
    asked = query_risk(hospital.workspace("amir"), text, delta="1e-6")
    choice = asked.choose(0.9)
    assert choice.epsilon is not None
    again = query_risk(hospital.workspace("amir"), asked.file_at(choice), delta="1e-6")
    assert again.risky.query.request.loss == asked.loss_at(choice)
    assert again.risky.line.scale >= asked.unseen.noise.width(choice.epsilon)
    with pytest.raises(mo.InputError, match="only with a delta"):
        hospital.asked(text)
    with pytest.raises(mo.InputError, match="Laplace noise has no delta"):
        query_risk(hospital.workspace("amir"), query(), delta="1e-6")


def test_nothing_fits_where_nothing_was_chosen(hospital: Hospital) -> None:
    asked = hospital.asked(query())
    choice = asked.choose(1)
    assert choice.epsilon is None
    assert asked.loss_at(choice) is None
    assert not asked.fits(choice)
    assert asked.file_at(choice) == ""


def test_what_is_public_needs_no_vault(hospital: Hospital) -> None:
    ws = hospital.workspace("amir")
    ws.equipment = None
    before = ws.current()[0].state.seq
    assert query_risk(ws, query()).choose(0.5).epsilon == 3
    assert hospital.equipment.vault.opened == []
    assert ws.current()[0].state.seq == before


ANY_QUERY = [
    query(),
    query("SELECT SUM(cost) AS c FROM visits WHERE note = 'x1' OR clinic = '02'"),
    query("SELECT clinic, COUNT(DISTINCT patient) AS n FROM visits GROUP BY clinic"),
    query("SELECT AVG(cost) AS c FROM visits"),
    query("SELECT note, COUNT(*) AS n FROM visits GROUP BY note"),
    query(loss="doctor: {eps: 1}"),
]
ANY_ROWS = [
    visits(),
    visits(1),
    visits(700, cost=31),
    b"visit,patient,doctor,day,clinic,note,cost\n",
]


@pytest.mark.parametrize("text", ANY_QUERY)
def test_what_is_public_depends_on_no_row(tmp_path: Path, text: str) -> None:
    result = set()
    for number, rows in enumerate(ANY_ROWS):
        world = Hospital(tmp_path / str(number), rows)
        try:
            asked = world.asked(text)
            choice = asked.choose("0.8")
            result.add(json.dumps(asked.to_dict(choice)) + asked.file_at(choice))
        except ModicumError as error:
            result.add(error.render())
    assert len(result) == 1


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (query("SELECT AVG(cost) AS c FROM visits"), "several mechanisms"),
        (query("SELECT COUNT(*) AS a, SUM(cost) AS b FROM visits"), "several mech"),
        (query("SELECT MEDIAN(cost) AS c FROM visits"), "a tree of counts"),
        (query("SELECT COUNT(DISTINCT doctor) AS n FROM visits"), "depends on others"),
        (
            query(
                "SELECT COUNT(*) AS n FROM visits JOIN people USING (patient)",
            ),
            "several tables or a subquery",
        ),
        (
            query(
                "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
                more="bounds: {patient: 2}\n  discover: {delta: 1e-6}",
            ),
            "reveals keys",
        ),
        (query() + "sampling: {unit: patient, rate: 0.5}\n", "secret sample"),
        (query("SELECT 2 * COUNT(*) AS n FROM visits"), "computes with its answer"),
        (query("SELECT COUNT(*) AS n FROM visits LIMIT 1"), "computes with its answer"),
    ],
)
def test_other_queries_have_no_indicator(
    hospital: Hospital, text: str, why: str
) -> None:
    with pytest.raises(mo.InputError, match=why):
        hospital.asked(text)


@pytest.mark.parametrize(
    ("units", "loss", "bounds", "why"),
    [
        (
            DAYS,
            "patient-day",
            "patient-day: 3, patient: 9",
            "loss is per `patient-day`",
        ),
        (REPLACED, "patient", "patient: 3", "take the place of other"),
    ],
)
def test_people_do_not_move_rows_of_others(
    tmp_path: Path, units: str, loss: str, bounds: str, why: str
) -> None:
    world = Hospital(tmp_path / "one", units=units)
    text = query(loss=f"{loss}: {{eps: 1}}", more=f"bounds: {{{bounds}}}")
    text += JANUARY if units == DAYS else ""
    with pytest.raises(mo.InputError, match=why):
        world.asked(text)


def test_caps_of_parts_of_a_person_move_nobody_else(tmp_path: Path) -> None:
    world = Hospital(tmp_path / "one", units=DAYS)
    text = query(more="bounds: {patient-day: 1, patient: 9}") + JANUARY
    olga = world.workspace("olga")
    found = own_risk(olga, query_risk(olga, text))
    assert found.noise.sensitivity == 9
    days: defaultdict[str, set[str]] = defaultdict(set)
    for row in visits().decode().splitlines()[1:]:
        _, patient, _, day, clinic, *_ = row.split(",")
        days[patient].update([day] if clinic != "99" else ())
    wanted = Counter(min(9, len(one)) for one in days.values())
    profile = found.influence.profile("l1")
    result = dict(zip(profile.values, profile.people, strict=True))
    assert result == wanted
    assert len(result) > 1


def test_a_contract_is_named_with_one_of_its_queries(hospital: Hospital) -> None:
    amir = hospital.workspace("amir")
    other = query("SELECT SUM(cost) AS c FROM visits").replace("r-1", "r-2")
    amir.escrow.submit_query(Purpose("two", "to know"), [query(), other])
    with pytest.raises(mo.InputError, match="has 2 queries"):
        contract_risk(amir, "two")
    with pytest.raises(mo.InputError, match="has no query `r-3`"):
        contract_risk(amir, "two", query="r-3")
    found = contract_risk(amir, "two", query="r-2")
    assert found.unseen.noise.sensitivity == 2400
    assert found.data.id == "visits"
    with pytest.raises(mo.InputError, match="unknown contract"):
        contract_risk(amir, "three")


# --- what owners see ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "facts"),
    [
        ("SELECT COUNT(*) AS n FROM visits", {}),
        (
            "SELECT clinic, COUNT(*) AS n FROM visits"
            " WHERE clinic IN ('01', '02', '03') GROUP BY clinic",
            {},
        ),
        ("SELECT SUM(cost) AS c FROM visits WHERE note = 'x1'", {"bounds": (-10, 200)}),
        ("SELECT SUM(cost) AS c FROM visits WHERE note = 'x9'", {"bounds": (-10, 200)}),
        (
            "SELECT clinic, SUM(cost) AS c FROM visits WHERE clinic <> '99' AND"
            " doctor BETWEEN 1 AND 3 GROUP BY clinic",
            {"bounds": (-10, 200)},
        ),
    ],
)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_owners_see_what_rdr_sees_on_the_same_rows(
    hospital: Hospital, tmp_path: Path, sql: str, facts: dict[str, object], noise: str
) -> None:
    olga = hospital.workspace("olga")
    of_noise = {"laplace": "patient: {eps: 1}", "gaussian": "patient: {rho: 1}"}
    text = query(sql, of_noise[noise], "bounds: {patient: 500}", noise)
    delta = None if noise == "laplace" else "1e-6"
    asked = query_risk(olga, text, delta=delta)
    found = own_risk(olga, asked)
    rows = pa.csv.read_csv(
        pa.BufferReader(visits()),
        convert_options=pa.csv.ConvertOptions(column_types={"clinic": pa.string()}),
    )
    same = mo.risk.rdr(
        {"visits": rows},
        sql,
        unit="patient",
        mechanism=noise,  # type: ignore[arg-type]
        delta=delta,
        rows_max=500,
        dimensions=asked.unseen.noise.dimensions,
        **facts,  # type: ignore[arg-type]
    )
    assert found.people == same.people == 40
    assert found.noise == same.noise
    for one, other in zip(found.rows(), same.rows(), strict=True):
        assert one.to_dict() == pytest.approx(other.to_dict())
    mine, theirs = (
        one.choose(0.5, choice="as-published").to_dict() for one in (found, same)
    )
    assert mine["epsilon"] == theirs["epsilon"]
    assert mine["claim"] == Claim.ADVICE.value


def test_rows_above_a_cap_do_not_count(hospital: Hospital) -> None:
    olga = hospital.workspace("olga")
    asked = query_risk(olga, query("SELECT COUNT(*) AS n FROM visits"))
    found = own_risk(olga, asked)
    distances = found.influence.profile("l1")
    assert distances.greatest == 12  # Some have over 50 rows.
    assert found.choose(0.5, choice="as-published").epsilon is not None


def test_nothing_that_was_read_can_be_chosen_privately(hospital: Hospital) -> None:
    olga = hospital.workspace("olga")
    found = own_risk(olga, query_risk(olga, query()))
    with pytest.raises(mo.InputError, match="no contract permits this choice"):
        found.choose(0.5, choice="private-selection", allowance=2, eps_select=1)
    assert found.choose(0.5).epsilon == 3  # As it is told to everybody.


@pytest.mark.parametrize("who", ["amir", "zoe"])
def test_only_owners_look_at_rows(hospital: Hospital, who: str) -> None:
    ws = hospital.workspace(who)
    asked = query_risk(ws, query())
    with pytest.raises(mo.ConflictError, match=f"`{who}` does not own"):
        own_risk(ws, asked)
    assert hospital.equipment.vault.opened == []


def test_an_owner_of_one_of_two_data_sets_sees_neither(hospital: Hospital) -> None:
    mine = mo.Ownership({"mia": ()}, 1)
    hospital.office("mia").register("people2", PEOPLE, _renamed(), mine)
    versions = [
        mo.Version("people2", 1),
        mo.Version("visits", 1),
    ]
    for order in (versions, versions[::-1]):
        with (
            pytest.raises(mo.ConflictError, match="does not own the data set `visits`"),
            hospital.office("mia").own_rows(order),
        ):
            pass
    assert hospital.equipment.vault.opened == []


def _renamed() -> Declared:
    return Declared(TABLES.replace("people:", "people2:"))


def test_looking_leaves_no_entry(hospital: Hospital) -> None:
    ws = hospital.workspace("olga")
    head = ws.current()[0].state.head
    own_risk(ws, query_risk(ws, query()))
    assert ws.current()[0].state.head == head


def test_what_was_shredded_is_not_looked_at(hospital: Hospital) -> None:
    ws = hospital.workspace("olga")
    hospital.office("amir").submit_query(Purpose("q", "to know"), [query()])
    asked = contract_risk(ws, "q")
    ws.escrow.shred(mo.Version("visits", 1), reason="the law")
    with pytest.raises(mo.ConflictError, match="was shredded"):
        own_risk(ws, asked)
    with pytest.raises(mo.InputError):
        query_risk(ws, query())


def test_an_owner_without_a_vault_sees_no_row(hospital: Hospital) -> None:
    ws = hospital.workspace("olga")
    ws.equipment = None
    with pytest.raises(mo.UsageError, match="no vault"):
        own_risk(ws, query_risk(ws, query()))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM VISITS",
        "SELECT CLINIC AS c, SUM(COST) AS n FROM visits v GROUP BY c",
        "SELECT DATE_TRUNC('week', day) AS w, COUNT(*) AS n FROM visits GROUP BY w",
        "SELECT DATE(day) AS d, COUNT(DISTINCT patient) AS n FROM visits GROUP BY d",
    ],
)
def test_nobody_moves_the_answer_farther_than_the_public_noise_is_for(
    tmp_path: Path, sql: str
) -> None:
    olga = Hospital(tmp_path / "one", units=DAYS).workspace("olga")
    text = query(sql, more="bounds: {patient: 9, patient-day: 2}") + JANUARY
    found = own_risk(olga, query_risk(olga, text))
    assert found.people == 40
    assert 0 < found.influence.profile("l1").greatest <= found.noise.sensitivity


def test_people_count_whatever_ids_are_declared(tmp_path: Path) -> None:
    world = Hospital(tmp_path / "one")
    ids = TABLES.replace("patient: {type: integer}", "patient: {type: integer, VALUES}")
    values = ids.replace("VALUES", "values: [1, 2], attribute: clinic")
    second = world.office("olga").register("visits", visits(), Declared(values))
    world.office("pavel").approve_data(second, reason="so it is")
    olga = world.workspace("olga")
    asked = query_risk(olga, query())
    assert asked.data.number == 2
    found = own_risk(olga, asked)
    assert found.people == int(found.influence.people.sum()) == 40
