"""An escrow over HTTP, from a census in a real vault to what noise cost an analyst.

Two people own the census, and must both agree to each flow; one of them signs. The
people in it are those of the UCI Adult table where `MODICUM_ADULT` names it, and made
up elsewhere.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
from samples.census import POLICY, query, rows, tables, task, values
from samples.census_desk import NOT_SO, OLGA, UNKNOWN, Desk, done, refused
from samples.remote import BEFORE, answering
from samples.sandboxed import required, users

import modicum as mo
from modicum.api.local.escrow.execution import Tools
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants
from modicum.integrations.loader import Adapters
from modicum.ledger.state.flow import disclosure_of
from modicum.ops.escrow.equipment import EscrowEquipment, EscrowPlace
from modicum.server.resources import Equipment

CENSUS = frozenset({"people"})
PEOPLE: Mapping[str, Grants] = {
    "olga": {Role.DATA_STEWARD: CENSUS},
    "pavel": {Role.DATA_STEWARD: CENSUS},
    "amir": {Role.ANALYST: CENSUS},
    "ann": {Role.ANALYST: CENSUS},
    "audra": {Role.AUDITOR: frozenset({ALL})},
}
#: A program takes about 2 seconds on a machine with nothing else to do.
LIMITS = {"seconds": 8, "memory_mib": 1024}
#: What chooses an epsilon of 0.08 for as many counts as there are.
TAU = "0.999976"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve an empty escrow: its vault on disk, its sandbox, its engine."""
    (folder / "policy.yaml").write_text(POLICY)
    mo.create_vault(folder / "vault", folder / "keys.json")
    place = EscrowPlace(folder / "vault", folder / "keys.json", users())
    equipment = EscrowEquipment(place)
    required(equipment.sandbox("bubblewrap"))
    with answering(
        folder / "ledger.db",
        policy=folder / "policy.yaml",
        people=PEOPLE,
        own=Equipment(escrow=Tools(equipment, Adapters())),
    ) as url:
        yield url


def test_two_owners_and_two_analysts_from_a_census_to_a_signal(tmp_path: Path) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path))
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=60))
        desk = Desk(client)
        registered(desk)
        with mo.connect(url, token=f"{BEFORE}amir") as amir:
            priced(desk, amir)
        answered(desk)
        scored(desk)
        result = {name: let_go(desk, name) for name in ("signal", "raw", "learned")}
        compared(result)
        hidden(desk)
        recorded(desk, url, tmp_path)


# --- the steps, in their order ----------------------------------------------------


def registered(desk: Desk) -> None:
    """The owners put the census in; nobody else can."""
    path = "/escrow/data/people/versions"
    form = {
        "table": tables(),
        "rows": base64.b64encode(rows()).decode("ascii"),
        "owners": {"olga": [OLGA.public.hex()], "pavel": []},
        "quorum": 2,
        "bits": 10,
    }
    refused(desk.ask("amir", "POST", path, form), 403, "MOD832")
    assert desk.told("olga", "POST", path, form) == {"id": "people", "version": 1}
    (known,) = desk.told("amir", "GET", "/escrow/data")["data_sets"]
    assert (known["quorum"], known["bits"], list(known["owners"])) == (
        2,
        10,
        ["olga", "pavel"],
    )


def priced(desk: Desk, amir: Any) -> None:
    """The analyst asks for what fits the owners' preference, once they know it."""
    much = {"file": query("counts", "0.1"), "tau": TAU}
    found = desk.told("amir", "POST", "/escrow/risk", much)
    assert (found["requested"], found["loss"], found["fits"]) == ("0.1", "0.08", False)
    text = query("counts", found["loss"])
    done(desk.propose("amir", "query", "counts", queries=[text], exact=True))
    risk = mo.contract_risk(amir, "counts")
    choice = risk.choose(Fraction(TAU))
    assert choice.epsilon == Fraction("0.08")
    assert risk.fits(choice)
    again = {"contract": "counts", "tau": TAU}
    assert desk.told("pavel", "POST", "/escrow/risk", again) == risk.to_dict(choice)


def answered(desk: Desk) -> None:
    """The query runs; its private answers go out, to the analyst alone."""
    review = desk.told("olga", "GET", "/escrow/contracts/counts")
    (asked_query,) = review["queries"]
    assert asked_query["decision"]["decision"] == "allow"
    assert "GROUP BY education" in asked_query["text"]
    refused(desk.propose("amir", "output", "out", query="counts"), *NOT_SO)
    desk.agree("counts", "run")
    desk.run("counts", "exact", "private")
    desk.not_now("run", "counts")  # Once is all that was agreed to.
    desk.not_now("receive", "counts")
    done(desk.propose("amir", "output", "out", query="counts"))
    desk.agree("out", "receive")
    gone = desk.told("amir", "POST", "/escrow/contracts/out:receive")
    assert gone["differentially_private"] is True
    found = gone["answers"]["counts"]["rows"]
    cells = 1
    for known in values().values():
        cells *= len(known)
    assert len(found) == cells == 3360
    people = sum(int(row["answers"][0]["value"]) for row in found)
    assert abs(people - 32_561) < 8 * 12.5 * (2 * cells) ** 0.5
    assert people != 32_561


def scored(desk: Desk) -> None:
    """Two tasks of the catalogue run on the answers, once owners have read them."""
    tasks = [
        ("fitted", {"accuracy": {"cv": 5}}, ("exact", "private")),
        ("transferred", {"transfer_accuracy": {"cv": 5}}, ("exact",)),
    ]
    for name, evaluation, results in tasks:
        own = {"query": "counts", "program": task(evaluation), **LIMITS}
        done(desk.propose("amir", "task", name, **own))
        review = desk.told("olga", "GET", f"/escrow/contracts/{name}")["program"]
        assert review["catalogue"] == f"{next(iter(evaluation))}@1"
        assert "def score(" in review["text"]
        assert (review["arguments"]["target"], review["seconds"]) == ("income", 8)
        assert [one["kind"] for one in review["remarks"]] == []
        refused(desk.propose("amir", "signal", "early", task=name), *NOT_SO)
        desk.agree(name, "run")
        desk.run(name, *results)


def let_go(desk: Desk, name: str) -> Any:
    """One score goes out, once it was agreed to."""
    of = {"signal": "fitted", "raw": "fitted", "learned": "transferred"}
    flow, own = "signal", {"task": of[name]}
    if name != "signal":
        flow, own = "raw-signal", {**own, "width": "0.05"}
        exact = desk.propose("amir", flow, f"{name}-exact", task=of[name], exact=True)
        refused(exact, *NOT_SO)  # More bits than its owners let anybody be told.
    done(desk.propose("amir", flow, name, **own))
    desk.agree(name, "receive")
    desk.not_now("receive", name, "olga")
    return desk.told("amir", "POST", f"/escrow/contracts/{name}:receive")


def compared(result: Mapping[str, Any]) -> None:
    """What is told is private but for two bins, and noise has cost something."""
    private = {name: one["differentially_private"] for name, one in result.items()}
    assert private == {"signal": True, "raw": False, "learned": False}
    assert (result["raw"]["score"], result["signal"]["bin"]) == (None, None)
    noisy = Fraction(result["signal"]["score"])
    bins = {name: result[name]["bin"] for name in ("raw", "learned")}
    for found in bins.values():
        assert Fraction(found["high"]) - Fraction(found["low"]) == Fraction("0.05")
    assert Fraction("0.6") < noisy < Fraction("0.74")
    assert Fraction(bins["raw"]["low"]) >= Fraction("0.75")
    assert Fraction(bins["learned"]["low"]) >= Fraction("0.7")


def hidden(desk: Desk) -> None:
    """The other analyst of the same data learns of none of it, and gets none of it."""
    listed = desk.told("amir", "GET", "/escrow/contracts")["contracts"]
    names = [one["contract"] for one in listed]
    assert names == [
        "counts",
        "out",
        "fitted",
        "transferred",
        "signal",
        "raw",
        "learned",
    ]
    assert desk.told("ann", "GET", "/escrow/contracts") == {"contracts": []}
    for name in (*names, "nothing"):
        path = f"/escrow/contracts/{name}"
        refused(desk.ask("ann", "GET", path), *UNKNOWN)
        refused(desk.ask("ann", "GET", f"{path}/approvals"), *UNKNOWN)
        for step in ("run", "receive"):
            refused(desk.try_to("ann", step, name), *UNKNOWN)
        vote = {"approves": True, "reason": "mine"}
        refused(desk.ask("ann", "POST", f"{path}/approvals", vote, '"0"'), *UNKNOWN)
    follows: list[tuple[str, Callable[[str], dict[str, object]]]] = [
        ("output", lambda name: {"query": name}),
        ("signal", lambda name: {"task": name}),
    ]
    for flow, own in follows:
        for name in ("counts", "fitted", "nothing"):
            refused(desk.propose("ann", flow, "mine", **own(name)), *UNKNOWN)


def recorded(desk: Desk, url: str, folder: Path) -> None:
    """Whoever reads the ledger sees what was told of exact answers; all of it holds."""
    job = desk.finished("audra", desk.ask("audra", "POST", "/ledger:verify"))
    assert job["state"] == "done", job
    with mo.connect(url, token=f"{BEFORE}audra") as audra:
        disclosures = [
            disclosure_of(audra.escrow.show(name).flow.contract.digest)
            for name in ("raw", "learned")
        ]
        report = audra.audits.export(folder / "audit.bundle").report
    assert (report.entries, report.decisions) == (job["result"]["entries"], 1)
    assert (report.approvals, report.signed) == (14, 7)  # Of seven flows, by two.
    listed = desk.told("audra", "GET", "/ledger/entries")["entries"]
    result = [one["what"] for one in listed if one["kind"] == "disclosure-recorded"]
    assert result == disclosures
