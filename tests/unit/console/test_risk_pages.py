"""The chooser of epsilon: for whom a result is, and what may leave the page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from samples.jobs import finished
from samples.served import Served, served
from samples.small import POLICY

from modicum.api.permissions.actions import Role
from modicum.console.pages.risk import analysis_of
from modicum.console.risk_study import LINES_MAX, lines_of, noise_of, profile_pictures
from modicum.core.errors import InputError
from modicum.risk.worker.messages import Bounds
from modicum.server.resources import Equipment
from modicum.server.settings.tables import TablesOf

EVERY = frozenset({"*"})
WHO = {
    "dara": {Role.DATA_STEWARD: EVERY},
    "vera": {Role.DATA_STEWARD: frozenset({"labs"})},
    "amir": {Role.ANALYST: EVERY},
}
QUERY = "SELECT SUM(age) FROM visits"
FIELDS = {
    "dataset": "visits",
    "query": QUERY,
    "bounds": "age=0:120",
    "rows_max": "2",
    "tau": "0.5",
}
PROFILE = "distance,people,group\n0,120,young\n1,80,old\n2,3,old\n"
ASKED = {"sensitivity": "2", "tau": "0.8", "choice": "data-independent"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("risk")
    (folder / "policy.yaml").write_text(POLICY)
    rows = {"patient": [1, 1, 2, 3], "age": [30, 31, 60, 90]}
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    tables = {"visits": TablesOf({"": str(folder / "visits.parquet")}, "patient")}
    own = Equipment(tables, Bounds(rows=5000, seconds=600))
    policy: Path = folder / "policy.yaml"
    with served(
        folder / "l.db", policy=policy, people=WHO, own=own, console=True
    ) as one:
        yield one


def result(server: Served, state: str = "done", **more: str) -> tuple[str, str]:
    """Return the address of an analysis, and its page."""
    answered = server.fill("dara", "/risk/analyses", **{**FIELDS, **more})
    assert answered.status_code == 303, answered.text
    place = str(answered.headers["location"])
    found = re.search("job=([^&]+)", place)
    assert found
    begun = httpx2.Response(202, headers={"location": f"/jobs/{found[1]}"})
    assert finished(server, "dara", begun)["state"] == state
    return place, html.unescape(server.page("dara", place).text)


def test_a_choice_for_any_table_goes_into_a_draft(server: Served) -> None:
    place, page = result(server)
    assert place.startswith("/risk?job=")
    draft = html.unescape(page.partition('name="text"')[2].partition("</textarea>")[0])
    for line in ("epsilon_choice: dp by data-independent", "{user: {l1: 240}}"):
        assert line in draft
    fields = {"way": "yaml", "text": draft.partition(">")[2]}
    drafted = server.fill("dara", "/new-release", **fields)
    assert "scale: 240" in drafted.text
    assert 'value="submit"' not in drafted.text  # It names no attribute yet.
    assert page.index("stay here") < page.index("<svg")
    assert "For the controller of the data only" in page
    assert "No row was read for these numbers." in page
    assert QUERY in page
    assert 'value="0.5"' in page  # The target stays for the next look.
    assert "aria-valuetext" in page
    rows = re.findall(r'<tr[^>]*data-ratio="([^"]+)"', page)
    assert len(rows) == 37
    assert server.page("vera", place).text.count("<svg") == 0


def test_advice_from_rows_goes_nowhere(server: Served) -> None:
    _, page = result(server, choice="as-published", epsilons="0.001, 0.1")
    assert "controller-only advice" in page
    assert "the ledger accepts no release at it" in page
    assert 'action="/new-release"' not in page
    assert "No row was read for these numbers." not in page


def test_an_analysis_that_failed_says_why(server: Served) -> None:
    _, page = result(server, "failed", rows_max="")
    assert "The analysis failed" in page
    assert "`rows_max`" in page
    assert "<svg" not in page


@pytest.mark.parametrize(
    ("who", "status", "code"), [("vera", 404, "MOD838"), ("amir", 403, "MOD832")]
)
def test_others_start_nothing(server: Served, who: str, status: int, code: str) -> None:
    answered = server.fill(who, "/risk/analyses", **FIELDS)
    assert (answered.status_code, code in answered.text) == (status, True)
    assert server.get(who, "/jobs").json() == {"jobs": []}
    hidden = server.page("amir", "/risk").text
    assert "Only data stewards may analyze" in hidden


def test_a_mistake_is_shown_where_it_was_made(server: Served) -> None:
    answered = server.fill("dara", "/risk/analyses", **{**FIELDS, "tau": "many"})
    assert answered.status_code == 422
    page = html.unescape(answered.text)
    assert 'role="alert"' in page
    assert f">{QUERY}</textarea>" in page
    assert 'value="age=0:120"' in page


def test_a_profile_is_studied_and_not_kept(server: Served) -> None:
    before = server.parts.decider.glance(lambda view: view.state().head)
    answered = server.fill("amir", "/risk/profile", profile=PROFILE, **ASKED)
    assert answered.status_code == 200, answered.text
    assert answered.headers["cache-control"] == "no-store"
    page = answered.text
    for picture in ("Similarity of people", "groups", "People at epsilon 0.2"):
        assert picture in page
    assert page.index("Similarity of people") < page.index("People at epsilon")
    assert "    scale: 10\n" in page
    assert server.parts.decider.glance(lambda view: view.state().head) == before
    assert "People at epsilon" not in server.page("amir", "/risk").text


def test_a_hostile_profile_runs_nothing(server: Served) -> None:
    hostile = '<img src=x onerror="alert(1)">'
    text = f"1,2,{hostile}\n2,3,{hostile}2\n"
    answered = server.fill("amir", "/risk/profile", profile=text, **ASKED)
    assert answered.status_code == 200
    assert "<img" not in answered.text


@pytest.mark.parametrize(
    "text",
    ["", "x", "1", "-1,2", "1,2.5", "1,-2", "1,1e99", "nan,1", "inf,1", "1,x"],
)
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        lines_of(text)


def test_a_profile_has_an_end() -> None:
    assert len(lines_of("1,1\n" * LINES_MAX)) == LINES_MAX
    for text in (
        "1,1\n" * (LINES_MAX + 1),
        "".join(f"1,1,group {n}\n" for n in range(50)),
    ):
        with pytest.raises(InputError):
            lines_of(text)


def test_a_profile_leads_to_what_its_numbers_say() -> None:
    """One of ten people moves the answer by 1: the ratio is 1/eps over 1/eps + 1."""
    asked = {"sensitivity": "1", "tau": "0.75", "choice": "as-published"}
    found = profile_pictures("0 9\n1\t1\n", noise_of(asked), asked)
    assert found.study.choice.epsilon == Fraction(3, 10)
    assert found.draft("user") == ""
    ratios = {one.epsilon: one.rdr.ratio for one in found.study.candidates if one.rdr}
    assert ratios[Fraction(1)] == 0.5
    public = {**asked, "choice": "data-independent", "epsilons": "0.1 0.2"}
    draft = profile_pictures("0,9", noise_of(public), public).draft("user")
    assert draft.endswith("sensitivity: {user: {l1: 1}}\n    scale: 5\n")
    nobody = profile_pictures("1,0", noise_of(asked), asked)
    assert nobody.study.choice.epsilon is None


def test_a_form_says_what_a_request_would() -> None:
    fields: dict[str, Any] = {
        **FIELDS,
        "unit": "",
        "epsilons": "0.1, 1e-3",
        "groups": "age < 60\n\nage >= 60\n",
        "statistic": "max",
        "bounds": "0:120",
    }
    found = analysis_of(fields)
    assert "unit" not in found
    assert [bytes(one) for one in found["epsilons"]] == [b"0.1", b"0.001"]
    assert found["groups"] == ["age < 60", "age >= 60"]
    assert [bytes(one) for one in found["bounds"]] == [b"0", b"120"]
    assert bytes(found["tau"]) == b"0.5"
    assert analysis_of({**FIELDS, "tau": "1; x"})["tau"] == "1; x"
