"""What a statement shows of an escrow: whose data, what flowed, what no rule counts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.audited import HOSTILE, key
from samples.documents import described_in, keys
from samples.escrows import PROGRAM, ROWS, TABLES, OpenSandbox, World, query
from samples.pages import read
from typer.testing import CliRunner

from modicum.api.local.escrow import execution
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.proposal import Purpose
from modicum.cli.main import app
from modicum.core.errors import Code, ModicumError, Problem, UnavailableError
from modicum.ledger.log.contracts import Version
from modicum.reports.sources import opened_ledger, report_on
from modicum.reports.statement import Statement
from modicum.reports.statement_html import page
from modicum.storage.proofs.verification import Trust


class Unplugged(OpenSandbox):
    """A machine that stops while a program runs."""

    def score(self, *_: object) -> float | None:
        raise KeyboardInterrupt


def silent(*_: object) -> None:
    raise UnavailableError(Problem(Code.LEDGER_BUSY, "it is away"))


def stated(world: World) -> Statement:
    with opened_ledger(world.folder / "ledger.db") as source:
        return report_on(source, Trust())


def told(world: World) -> Any:
    return json.loads(json.dumps(stated(world).to_dict()["escrow"]))


def said(statement: Statement) -> str:
    """Return what the section says, read from the whole page."""
    text = page(statement)
    read(text)
    start = text.index('<section aria-labelledby="escrow">')
    section = text[start : text.index("</section>", start) + len("</section>")]
    return " | ".join(read(section).said)


def ask_raw(world: World, name: str, width: Fraction | None, *to: str) -> None:
    heading = Purpose(name, "to know", recipients=to)
    world.office("amir").submit_raw_signal(heading, "t", width=width)


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    found.register()
    return found


@pytest.fixture
def scored(world: World) -> World:
    world.queried()
    world.scored()
    return world


def test_without_an_escrow_there_is_little_to_say(tmp_path: Path) -> None:
    world = World(tmp_path)
    none: list[object] = []
    assert told(world) == {
        "data_sets": none,
        "contracts": none,
        "not_private": none,
        "bits": none,
        "runs_without_end": none,
    }
    assert "This ledger has no data in escrow" in said(stated(world))


def test_data_sets_are_told_with_their_owners_and_versions(world: World) -> None:
    rows = ROWS + b"300,north,low\n"
    owned = Ownership({"olga": (), "pavel": ()}, 2, contracts_max=20, bits_max=20)
    world.office("pavel").register("people", rows, Declared(TABLES), owned)
    world.office("olga").shred(Version("people", 1), reason=f"the law {HOSTILE}")
    (data,) = told(world)["data_sets"]
    assert (data["owners"], data["quorum"]) == ({"olga": [], "pavel": []}, 2)
    assert (data["contracts"], data["bits"]) == (20, 20)
    first, second = data["versions"]
    assert (first["actor"], first["shredded"]["actor"]) == ("olga", "olga")
    assert first["reason"] == f"the law {HOSTILE}"
    assert (second["version"], second["actor"], second["shredded"]) == (
        2,
        "pavel",
        None,
    )
    page_says = said(stated(world))
    assert "2 of 2" in page_says
    assert "shredded by olga" in page_says
    assert "<script>" in page_says  # It is text, for `read` found no such element.


@pytest.mark.spec("AUD-11")
def test_contracts_are_told_with_who_asked_and_who_agreed(world: World) -> None:
    world.queried()
    world.office("amir").submit_output(
        Purpose("out", "to know", recipients=("bea",)), "q"
    )
    world.office("olga").approve("out", reason="fine")
    world.office("pavel").reject("out", reason="too early")
    query, out = told(world)["contracts"]
    assert (query["flow"], query["state"]) == ("query", "withheld")
    assert [one["actor"] for one in query["votes"]] == ["olga", "pavel"]
    (run,) = query["runs"]
    assert (run["how"], run["agreed"]) == ("withheld", ["olga", "pavel"])
    assert sorted(run["results"]) == ["exact", "private"]
    assert (out["actor"], out["analyst"], out["recipients"]) == (
        "amir",
        "amir",
        ["bea"],
    )
    assert out["state"] == "waiting"
    assert [one["approves"] for one in out["votes"]] == [True, False]
    assert out["parent"] == query["digest"]
    assert out["result"] == run["results"]["private"]
    assert not out["deliveries"]
    assert "`pavel` rejected" in said(stated(world))


def test_what_was_asked_of_the_data_is_told_by_digest_only(scored: World) -> None:
    statement = stated(scored)
    everything = json.dumps(statement.to_dict()) + page(statement)
    assert "SELECT" not in everything
    assert "def score" not in everything
    query, _ = told(scored)["contracts"]
    (charge,) = query["charges"]
    assert charge["release"] == "r-q"
    assert len(charge["content"]) == 64


@pytest.mark.spec("AUD-11")
def test_what_went_out_is_told_with_to_whom_and_when(world: World) -> None:
    world.queried()
    world.office("amir").submit_output(
        Purpose("out", "to know", recipients=("bea",)), "q"
    )
    world.agree("out")
    world.clock.time = "2026-05-02T08:30:00.000000Z"
    world.office("bea").receive("out")
    _, out = told(world)["contracts"]
    (gone,) = out["deliveries"]
    assert (gone["to"], gone["at"]) == ("bea", world.clock.time)
    assert gone["agreed"] == ["olga", "pavel"]
    assert out["state"] == "let go"
    message = said(stated(world))
    assert "2026-05-02 08:30 UTC" in message
    assert "No score on exact answers was disclosed, and none may be." in message
    assert "Scores on exact answers" not in page(stated(world))


@pytest.mark.spec("AUD-11")
def test_a_score_on_exact_answers_is_told_loudly_in_bits(scored: World) -> None:
    ask_raw(scored, "raw", Fraction(1, 20), "bea")
    bea, amir = told(scored)["bits"]
    assert {bea["person"], amir["person"]} == {"amir", "bea"}
    assert (bea["disclosed"], bea["may_follow"], bea["allowed"]) == (0, 5, 20)
    assert "Scores on exact answers were disclosed" not in page(stated(scored))
    scored.agree("raw")
    scored.office("bea").receive("raw")
    scored.office("bea").receive("raw")  # To be told twice is to be told once.
    for one in told(scored)["bits"]:
        assert (one["data"], one["disclosed"], one["may_follow"]) == ("people", 5, 0)
        assert one["contracts"] == ["raw"]
    (raw,) = told(scored)["not_private"]
    assert (raw["contract"], raw["bits"], raw["analyst"]) == ("raw", 5, "amir")
    assert [one["to"] for one in raw["deliveries"]] == ["bea", "bea"]
    assert raw["disclosed"]["seq"] < raw["deliveries"][0]["seq"]
    text = page(stated(scored))
    assert "Scores on exact answers were disclosed under 1 contract." in text
    assert text.index("were disclosed under") < text.index("Verification")
    assert "5 bits outside differential privacy" in said(stated(scored))


def test_what_was_withdrawn_or_ended_may_tell_nothing_more(scored: World) -> None:
    ask_raw(scored, "raw-1", Fraction(1, 20))
    ask_raw(scored, "raw-2", Fraction(1, 3))
    (before,) = told(scored)["bits"]
    assert before["may_follow"] == 5 + 2
    scored.office("amir").withdraw("raw-1", reason="no need")
    (after,) = told(scored)["bits"]
    assert after["may_follow"] == 2
    assert told(scored)["contracts"][-2]["withdrawn"]["actor"] == "amir"
    assert told(scored)["contracts"][-2]["state"] == "withdrawn"
    scored.clock.time = "2027-01-01T00:00:00.000000Z"
    scored.register()  # The last entry is what a statement is as of.
    assert told(scored)["bits"] == []
    assert told(scored)["contracts"][-1]["state"] == "ended"


@pytest.mark.spec("AUD-11")
def test_a_run_without_an_end_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "to know"), "q", PROGRAM)
    world.agree("t")
    world.equipment.vault.broken = True
    with pytest.raises(ModicumError, match="without a result"):
        world.office("amir").run("t")
    assert told(world)["runs_without_end"] == []
    world.equipment.box = Unplugged()
    monkeypatch.setattr(
        execution, "_record_failure", silent
    )  # It cannot tell of its end either.
    with pytest.raises(KeyboardInterrupt):
        world.office("amir").run("t")
    (found,) = told(world)["runs_without_end"]
    assert (found["contract"], found["run"], found["actor"]) == ("t", 2, "amir")
    contract = told(world)["contracts"][-1]
    assert [one["how"] for one in contract["runs"]] == ["failed", "no end"]
    assert contract["state"] == "running"
    assert "run 2, unfinished" in said(stated(world))


def test_signed_words_are_told_with_their_keys(tmp_path: Path) -> None:
    world = World(tmp_path)
    own = key(1)
    owned = Ownership({"olga": (own.public.hex(),)}, 1, contracts_max=20, bits_max=20)
    world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    world.office("amir").submit_query(
        Purpose("q", "to know"), [query("r-q")], exact=False
    )
    world.office("olga").approve("q", reason="so it is", key=own)
    (contract,) = told(world)["contracts"]
    (vote,) = contract["votes"]
    assert (vote["key"], vote["key_named"], vote["countable"]) == (
        own.public.hex(),
        True,
        True,
    )
    assert contract["state"] == "permitted"
    message = said(stated(world))
    assert f"signed by {own.public.hex()[:12]}, their own key" in message
    assert own.public.hex() in message


def test_the_command_prints_the_bits(scored: World) -> None:
    ask_raw(scored, "raw", Fraction(1, 20), "bea")
    ledger, page = str(scored.folder / "ledger.db"), str(scored.folder / "page.html")
    args = ["audit", "report", "--ledger", ledger, "-o", page]
    assert "bits" not in CliRunner().invoke(app, args).stdout
    scored.agree("raw")
    scored.office("bea").receive("raw")
    line = "  bea received 5 bits of people, not differentially private; 20 are allowed"
    assert line in CliRunner().invoke(app, args).stdout.splitlines()


def test_every_key_of_it_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, own = World(tmp_path), key(1)
    owned = Ownership({"olga": (own.public.hex(),), "pavel": ()}, 1, bits_max=20)
    world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    purpose = Purpose("q", "to know")
    world.office("amir").submit_query(purpose, [query("r-q")], exact=True)
    world.office("pavel").approve("q", reason="so it is")
    world.office("amir").run("q")
    world.office("olga").reject("q", reason="too late")
    world.office("olga").approve("q", reason="after all", key=own)
    world.office("amir").submit_task(Purpose("t", "to know", uses=3), "q", PROGRAM)
    world.office("pavel").approve("t", reason="so it is")
    box = world.equipment.box
    world.equipment.box = Unplugged()
    with monkeypatch.context() as patched:
        patched.setattr(execution, "_record_failure", silent)
        with pytest.raises(KeyboardInterrupt):
            world.office("amir").run("t")
    world.equipment.box = box
    world.office("amir").run("t")
    for name in ("raw", "waits"):
        ask_raw(world, name, Fraction(1, 4))
    world.office("pavel").approve("raw", reason="so it is")
    world.office("amir").receive("raw")
    world.office("amir").withdraw("waits", reason="never mind")
    world.office("olga").shred(Version("people", 1), reason="the law")
    known = {
        one.removeprefix("escrow."): kind
        for one, kind in described_in("A statement").items()
        if one.startswith("escrow.")
    }
    found = {*keys(told(world), known)}
    assert not known.keys() - found
    # What has no rows of its own is described in the row of what it is part of.
    whole = {one for one in known if not any(_is_in(each, one) for each in known)}
    lost = {
        one for one in found - known.keys() if not any(_is_in(one, w) for w in whole)
    }
    assert not lost


def _is_in(path: str, whole: str) -> bool:
    return path.startswith((f"{whole}.", f"{whole}[]"))
