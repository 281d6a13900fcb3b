"""Policies that are compiled, compared and tried over HTTP, and single rules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.jobs import finished
from samples.served import HEADER, Served, served
from samples.shapes import exactly
from samples.small import POLICY, compiled

import modicum as mo
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.api.local.views.policy_changes import differences_view, simulation_view
from modicum.api.schema.policy import CompiledPage, Rule
from modicum.api.schema.policy_change import Differences
from modicum.api.schema.shape import plain
from modicum.policy.changes.differences import differences

pytestmark = pytest.mark.filterwarnings("error")

YAML = {"Content-Type": "application/yaml"}
#: Both rules about everything are tighter, and the one about age is looser.
TIGHTER = POLICY.replace(
    "unit: user, budget: 2.0}", "unit: user, budget: 0.1}"
).replace("{low: 2.0", "{low: 3.0")


def release(name: str, sigma: float = 20, data_set: str = "visits") -> dict[str, Any]:
    return {
        "release": name,
        "dataset": data_set,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "ledger.db"


@pytest.fixture
def server(ledger: Path) -> Iterator[Served]:
    with served(ledger, policy=ledger.parent / "policy.yaml") as found:
        yield found


def sent(server: Served, who: str, path: str, text: str, **params: object) -> Any:
    return server.post(who, path, headers=YAML, content=text, params=params)


def test_the_pages_of_a_compiled_policy_are_what_the_command_prints(
    server: Served, ledger: Path
) -> None:
    command = [sys.executable, "-m", "modicum", "policy", "compile", "--json"]
    output = subprocess.run(
        [*command, str(ledger.parent / "policy.yaml")],
        capture_output=True,
        check=True,
        text=True,
    )
    expected = json.loads(output.stdout)
    rules: list[dict[str, Any]] = []
    cursor: str | None = ""
    page: Any = None
    while cursor is not None:
        page = sent(server, "ann", "/policies:compile", POLICY, limit=3, cursor=cursor)
        assert page.status_code == 200
        exactly(CompiledPage, page.json())
        assert len(page.json()["list"]) <= 3
        rules += page.json()["list"]
        cursor = page.json()["next"]
    for one in (*rules, *expected["list"]):  # The texts have different names.
        one["source"] = [place.partition(":")[2] for place in one["source"]]
    assert rules == expected.pop("list")
    del expected["warnings"]
    assert {key: page.json()[key] for key in expected} == expected


def test_a_rule_is_told_as_it_is_listed(server: Served) -> None:
    server.post("ann", "/releases", release("one"))
    listed = sent(server, "ann", "/policies:compile", POLICY, limit=500).json()["list"]
    standing = {
        one["rule"]: one
        for one in server.get("ann", "/rules", params={"limit": 500}).json()["rules"]
    }
    assert {one["stage"] for one in listed} == {"history", "release"}
    assert {one["status"] for one in listed} == {"binding", "redundant"}
    for one in listed:
        output = server.get("ann", f"/rules/{one['id'].replace(' ', '%20')}").json()
        exactly(Rule, output)
        assert output.pop("ledger")["seq"] == 2
        found = output.pop("standing")
        assert found == standing.get(one["id"])
        assert (found is None) is (one["stage"] == "release")
        for each in (output, one):
            each["source"] = [place.partition(":")[2] for place in each["source"]]
        assert output == one
    for unknown in ("attr:nothing", "attr:age @standard @standard", "global @odd"):
        assert server.get("ann", f"/rules/{unknown}").status_code == 404
    assert server.get("root", "/rules/global").status_code == 403


def test_rules_are_chosen_by_context_and_by_whether_they_constrain(
    server: Served,
) -> None:
    def chosen(**params: object) -> list[str]:
        found = server.get("ann", "/rules", params={"limit": 500, **params}).json()
        return [one["rule"] for one in found["rules"]]

    policy = compiled()
    every = list(policy.rules)
    assert chosen() == [one.id for one in every]
    assert chosen(context="black-box") == [
        one.id for one in every if "black-box" in one.context
    ]
    binding = [
        one.id for one, by in zip(every, policy.pruned.witness, strict=True) if by < 0
    ]
    assert chosen(binding="true") == binding
    assert 0 < len(binding) < len(every)
    assert {*chosen(binding="false")} == {one.id for one in every} - {*binding}


def test_what_a_policy_changes_and_what_history_exceeds(server: Served) -> None:
    server.post("ann", "/releases", release("secret-study", 10))
    own = sent(server, "amir", "/policies:diff", TIGHTER)
    assert own.status_code == 200
    output = own.json()
    exactly(Differences, output)
    exceeded = {one["rule"]: one["made"] for one in output.pop("conflicts")}
    assert output.pop("problems") == []
    old, new = compiled(), compiled(TIGHTER)
    assert output == plain(differences_view(old, new, differences(old, new)))
    assert output["counts"]["tighter"]
    assert output["counts"]["looser"]
    assert exceeded["global @standard"] is True
    same = sent(server, "amir", "/policies:diff", POLICY).json()
    assert (same["same_document"], same["conflicts"]) == (True, [])


#: Whoever words a rule chooses what it counts: each is a question about history.
_QUESTIONS = (
    'release.dataset == "visits"',
    'release.purpose.startsWith("a merger")',
    'release.id == "secret-study"',
    "true",
)


@pytest.mark.parametrize("question", _QUESTIONS)
def test_rules_of_ones_own_ask_nothing_about_what_is_hidden(
    server: Served, question: str
) -> None:
    asking_policy = POLICY.replace(
        'when: "true", unit: user, budget: 2.0',
        f"when: '{question}', unit: user, budget: 1e-9",
    )
    answers = []
    for _ in range(2):
        output = sent(server, "lee", "/policies:diff", asking_policy)
        preview = sent(server, "lee", "/policies:weigh", asking_policy)
        assert output.status_code == 200
        assert (preview.status_code, preview.json()["code"]) == (403, "MOD832")
        preview = {**preview.json(), "trace_id": ""}
        answers.append((output.json(), preview))
        study = {**release("secret-study", 10), "purpose": "a merger"}
        server.post("ann", "/releases", study)
    assert answers[0] == answers[1]
    assert answers[0][0]["conflicts"] is None
    assert sent(server, "amir", "/policies:diff", asking_policy).json()["conflicts"]
    assert sent(server, "amir", "/policies:weigh", asking_policy).json()["conflicts"]


def test_a_policy_is_compared_with_an_earlier_one(server: Served) -> None:
    first = server.get("ann", "/policies/active").json()["digest"]
    office = server.parts.decider.governance("olga")
    office.activate(compiled(TIGHTER), reason="tighter")
    output = sent(server, "ann", "/policies:diff", TIGHTER, against=first).json()
    assert (output["old"]["digest"], output["conflicts"]) == (first, None)
    assert output["counts"]["tighter"]
    now = sent(server, "ann", "/policies:diff", TIGHTER).json()
    assert now["same_document"] is True
    unknown = sent(server, "ann", "/policies:diff", TIGHTER, against="0" * 64)
    assert unknown.status_code == 404


@pytest.mark.spec("POL-17")
@pytest.mark.spec("POL-18")
def test_a_redefined_unit_and_a_renamed_attribute_are_refused(server: Served) -> None:
    server.post("ann", "/releases", release("one"))
    active = str(server.get("olga", "/policies/active").headers["etag"])

    def activated(text: str, *accept: str) -> Any:
        return server.post(
            "olga",
            "/policies:activate",
            headers={**YAML, "If-Match": active},
            content=text,
            params={"reason": "x", "accept": list(accept)},
        )

    renamed = POLICY.replace("diagnosis: [", "illness: [")
    both = renamed.replace("id: user_id", "id: household")
    codes = ["MOD608", "MOD609"]
    for path in ("diff", "weigh"):
        output = sent(server, "amir", f"/policies:{path}", both).json()
        assert [one["code"] for one in output["problems"]] == codes
        # Of a household nothing is known: what limits it is over.
        assert output["conflicts"]
    assert sent(server, "lee", "/policies:diff", both).json()["problems"] is None
    refused = activated(both)
    assert refused.status_code == 422
    found = [one["code"] for one in refused.json()["problems"]]
    assert [*dict.fromkeys(found)] == [*codes, "MOD601"]
    assert activated(both, "attribute:diagnosis").json()["code"] == "MOD608"
    done = activated(renamed, "attribute:diagnosis")
    assert done.status_code == 200
    assert done.json()["accepted"] == ["attribute:diagnosis"]


@pytest.mark.parametrize("path", ["compile", "diff", "simulate"])
def test_mistakes_are_told_with_their_places(server: Served, path: str) -> None:
    wrong = POLICY.replace("name: small", "name: small\nodd: 1")
    answered = sent(server, "olga", f"/policies:{path}", wrong)
    assert answered.status_code == 422
    assert answered.json()["line"] == wrong.splitlines().index("odd: 1") + 1


def test_a_simulation_says_what_the_same_history_says_to_a_policy(
    server: Served, ledger: Path
) -> None:
    for number, sigma in enumerate((10, 4, 10, 0.5)):
        server.post("ann", "/releases", release(f"r{number}", sigma))
    began = sent(server, "audra", "/policies:simulate", TIGHTER)
    job = finished(server, "audra", began)
    view = mo.open(ledger)
    history = history_of(view.records(), view.current()[2])
    policy = compiled(TIGHTER)
    expected = simulation_view(policy, history, what_if(history, policy))
    assert (job["state"], job["progress"]) == ("done", 1.0)
    assert job["result"] == plain(expected)
    assert job["result"]["totals"]["denied_now"]


def test_who_may_not_see_all_data_sets_simulates_nothing(server: Served) -> None:
    for who in ("ann", "amir", "dara", "root"):
        answered = sent(server, who, "/policies:simulate", TIGHTER)
        assert (answered.status_code, answered.json()["code"]) == (403, "MOD832")
        assert server.get(who, "/jobs").json() == {"jobs": []}


def test_who_gets_the_address_of_a_step_is_told_how_it_is_taken(
    server: Served,
) -> None:
    for digest in ("0" * 64, "x"):
        answered = server.get("olga", f"/policies/{digest}:activate")
        assert (answered.status_code, answered.headers["allow"]) == (405, "POST")
    # Whatever else is asked for is a policy, if one that is not there.
    for digest in ("0" * 64, "x", "x:y", ":activated"):
        address = f"/policies/{digest}"
        assert server.get("olga", address).json()["code"] == "MOD838"
        answered = server.client.delete(f"/api/v1{address}", headers={HEADER: "olga"})
        assert (answered.status_code, answered.headers["allow"]) == (405, "GET")
