"""Ways around the escrow: some worked once, and others nearly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from msgspec import structs
from samples.audited import key
from samples.escrows import OWNED, POLICY, PROGRAM, ROWS, TABLES, World, query
from samples.first_version import take_up

from modicum.api.local import Workspace
from modicum.api.local.escrow import datasets, execution, run
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.local.queries.execution import answered
from modicum.api.ports.escrow import Limits, Sealed
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
)
from modicum.escrow.blocks import ByBlocks
from modicum.integrations.loader import Adapters
from modicum.ledger import event_of
from modicum.ledger.log.contracts import QueryTerms, TaskTerms, Version
from modicum.ledger.log.escrow_events import ContractProposed
from modicum.ledger.log.events import ApprovalGiven, DisclosureRecorded
from modicum.ledger.replay.snapshot import Snapshot, write_snapshot
from modicum.ledger.state.consent import Agreement
from modicum.ops.escrow.equipment import EscrowPlace
from modicum.ops.escrow.factory import open_escrow
from modicum.policy.compiler import compile_text
from modicum.vault.key_files import new_key_file
from modicum.writer.factory import open_decider

#: A policy by which the same query means something else.
OTHER = POLICY.replace("units: {user: {id: person}}", "units: {user: {id: town}}")
#: A policy by which it can be asked still, and takes more noise.
DEARER = POLICY.replace("{id: person}", "{id: person, neighbors: substitute}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    found.register()
    return found


def bodies(world: World) -> list[Any]:
    records = world.workspace("auditor").records()
    return [event_of(one, one.seq).body for one in records]


def test_a_forged_snapshot_is_no_agreement(tmp_path: Path) -> None:
    """Who writes beside a ledger has neither the key of olga nor that of the vault."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    new_key_file(tmp_path / "keys.json")
    place = EscrowPlace(tmp_path / "vault", tmp_path / "keys.json", 10**6)
    ledger, own = tmp_path / "ledger.db", key(1).public.hex()
    open_escrow(ledger, place, policy=tmp_path / "policy.yaml").init()
    owned = Ownership({"olga": (own,)}, 1)
    olga = open_escrow(ledger, place, actor="olga").escrow
    olga.register("people", ROWS, Declared(TABLES), owned)
    amir = open_escrow(ledger, place, actor="amir")
    asked = amir.escrow.submit_query(Purpose("q", "?"), [query("r-1")])
    state = amir.state()
    votes = (Agreement("olga", True, ("owner",), state.seq, own),)
    state.approvals["contract", asked.contract.digest] = votes
    (tmp_path / "ledger.db.snapshot").write_bytes(write_snapshot(Snapshot(state)))
    with pytest.raises(ModicumError, match="1 more must approve"):
        open_escrow(ledger, place, actor="amir").escrow.run("q")


@pytest.mark.parametrize("limits", [Limits(-5.0), Limits(5.0, -(2**30))])
def test_an_analyst_cannot_make_the_ledger_unreadable(
    world: World, limits: Limits
) -> None:
    world.queried()
    with suppress(ModicumError):
        world.office("amir").submit_task(Purpose("t", "?"), "q", PROGRAM, limits=limits)
    world.workspace("auditor").verify()


@pytest.mark.parametrize(
    "owned",
    [
        replace(OWNED, bits_max=-1),
        replace(OWNED, contracts_max=-1),
        replace(OWNED, owners={"olga": ("AB" * 32,), "pavel": ()}),
    ],
)
def test_an_owner_cannot_make_the_ledger_unreadable(
    tmp_path: Path, owned: Ownership
) -> None:
    world = World(tmp_path)
    with suppress(ModicumError):
        world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    world.workspace("auditor").verify()


def test_a_raw_signal_is_disclosed_in_words_of_the_escrow(world: World) -> None:
    world.queried()
    world.scored()
    amir = world.office("amir")
    asked = amir.submit_raw_signal(Purpose("raw", "?"), "t", width=Fraction(1, 20))
    with suppress(ModicumError):
        world.workspace("amir").governance.disclose(
            {
                "disclosure": f"contract/{asked.contract.digest}",
                "what": "the number of towns, which is public",
                "attributes": ["town"],
                "reason": "routine",
            }
        )
    world.agree("raw")
    with suppress(ModicumError):
        amir.receive("raw")
    if any(one.kind == "flow-released" for one in bodies(world)):
        disclosures = [
            one for one in bodies(world) if isinstance(one, DisclosureRecorded)
        ]
        assert any(
            "score of a program on exact answers" in one.what for one in disclosures
        )


def test_a_policy_that_changes_while_it_is_reserved_stops_a_query(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = execution.reserve

    def reserved(*given: Any) -> Any:
        found = reserve(*given)
        activated(world, OTHER)
        return found

    world.office("amir").submit_query(Purpose("q", "?"), [query("r-1")])
    world.agree("q")
    monkeypatch.setattr(run, "reserve", reserved)
    with pytest.raises(ModicumError):
        world.office("amir").run("q")
    assert "flow-begun" not in [one.kind for one in bodies(world)]


def activated(world: World, text: str) -> None:
    successor = compile_text(text.encode(), "policy.yaml")
    take_up(world.workspace("olga"), successor)


@pytest.mark.parametrize(
    ("meanwhile", "mistake"),
    [
        (lambda world: activated(world, OTHER), InputError),
        (lambda world: activated(world, DEARER), StaleError),
        (lambda world: world.office("olga").reject("q", reason="no"), ConflictError),
    ],
)
def test_what_is_reserved_for_a_run_that_does_not_begin_is_taken_back(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[World], object],
    mistake: type[ModicumError],
) -> None:
    reserve = execution.reserve

    def reserved(*given: Any) -> Any:
        found = reserve(*given)
        meanwhile(world)
        return found

    two = [query("r-1", "0.1"), query("r-2", "0.1")]
    world.office("amir").submit_query(Purpose("q", "?"), two)
    world.agree("q")
    monkeypatch.setattr(run, "reserve", reserved)
    with pytest.raises(mistake):
        world.office("amir").run("q")
    standing = world.workspace("auditor").standing
    assert [standing(one).status.value for one in ("r-1", "r-2")] == ["canceled"] * 2
    assert world.office("amir").show("q").flow.runs == 0


def test_a_signed_agreement_is_not_said_again(tmp_path: Path) -> None:
    """Who has the log has the signature, and the owner refused since."""
    world, own = World(tmp_path), key(1)
    owned = Ownership({"olga": (own.public.hex(),)}, 1)
    world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    world.office("amir").submit_query(Purpose("q", "?"), [query("r-1")])
    world.office("olga").approve("q", reason="so it is", key=own)
    vote = bodies(world)[-1]
    assert isinstance(vote, ApprovalGiven)
    world.office("olga").reject("q", reason="not any more")
    with pytest.raises(ModicumError, match="not the end of the ledger"):
        world.workspace("olga").turn(lambda entry: entry.add(vote))
    with pytest.raises(ConflictError, match="`olga` rejected it"):
        world.office("amir").run("q")


def test_a_ledger_that_is_put_back_gets_no_second_answer(world: World) -> None:
    """Fresh noise for one charge: the vault remembers what the ledger forgot."""
    world.office("amir").submit_query(Purpose("q", "?"), [query("r-q")], exact=True)
    world.agree("q")
    ledger = world.folder / "ledger.db"
    before = ledger.read_bytes()
    world.office("amir").run("q")
    for file in world.folder.glob("ledger.db*"):
        file.unlink()
    ledger.write_bytes(before)
    with pytest.raises(UnavailableError, match="ended without a result"):
        world.office("amir").run("q")
    assert not world.office("amir").show("q").flow.results


def test_data_that_is_shredded_while_it_is_queried_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.office("amir").submit_query(Purpose("q", "?"), [query("r-q")])
    world.agree("q")
    answer = answered

    def shredded(*given: Any) -> Any:
        found = answer(*given)
        version = Version("people", 1)
        world.office("olga").shred(version, reason="a person asked for it")
        return found

    monkeypatch.setattr(run, "answered", shredded)
    with pytest.raises(UnavailableError, match="ended without a result"):
        world.office("amir").run("q")
    assert [one.kind for one in bodies(world)][-2:] == [
        "data-shredded",
        "flow-failed",
    ]
    assert not world.equipment.vault.things


def test_a_clock_that_is_set_back_prolongs_nothing(world: World) -> None:
    world.queried()
    asked = Purpose("o", "?", lasts_seconds=60)
    world.office("amir").submit_output(asked, "q")
    world.agree("o")
    now = world.clock.time
    world.clock.time = world.clock.after(now, 61)
    with pytest.raises(ConflictError, match="it ended"):
        world.office("amir").receive("o")
    world.workspace("olga").governance.annotate("an hour later")
    world.clock.time = now
    with pytest.raises(ConflictError, match="it ended"):
        world.office("amir").receive("o")


def test_data_that_was_refused_lies_nowhere(tmp_path: Path) -> None:
    world = World(tmp_path)
    declared, olga = Declared(TABLES), world.office("olga")
    odd = replace(OWNED, owners={"olga": (), "pa\udc80vel": ()})
    with pytest.raises(InputError):
        olga.register("people", ROWS, declared, odd)
    assert not world.equipment.vault.gone  # They were not put in to begin with.
    with pytest.raises(ModicumError):
        olga.register("people", ROWS, declared, replace(OWNED, bits_max=-1))
    assert not world.equipment.vault.things


def test_a_server_does_not_believe_a_snapshot_either(tmp_path: Path) -> None:
    """What it looks at may come from one; what lets data go may not."""
    world = World(tmp_path)
    world.register()
    world.queried()
    world.office("amir").submit_output(Purpose("o", "?"), "q")
    state = world.workspace("amir").state()
    digest = state.escrow.names["o"]
    votes = tuple(
        Agreement(who, True, ("owner",), state.seq) for who in ("olga", "pavel")
    )
    state.approvals["contract", digest] = votes
    (tmp_path / "ledger.db.snapshot").write_bytes(write_snapshot(Snapshot(state)))
    tools = Tools(world.equipment, Adapters())
    with open_decider(
        tmp_path / "ledger.db", clock=world.clock, from_beginning=True
    ) as decider:
        office = decider.escrow(tools, "amir")
        assert office.show("o").consents.given  # Here it is believed …
        with pytest.raises(ConflictError, match="2 more must approve"):
            office.receive("o")  # … and here it is not.


# --- what a crash or a repetition leaves --------------------------------------------


class StoppedError(Exception):
    """Stands for whatever ends a request: that it was done before, for one."""


def test_rows_that_were_not_registered_are_shredded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = world.office("olga")
    monkeypatch.setattr(datasets, "_added", _stopped)
    with pytest.raises(StoppedError):
        office.register("people", ROWS, Declared(TABLES))
    assert set(world.equipment.vault.things) == {"data/people/1"}


def _stopped(*_: Any) -> Any:
    raise StoppedError


def test_shredding_reaches_what_was_put_in_and_never_registered(world: World) -> None:
    vault, olga = world.equipment.vault, world.office("olga")
    vault.seal("data/people/2", ROWS)  # Somebody crashed here …
    assert olga.register("people", ROWS, Declared(TABLES)).number == 3
    assert "data/people/2" not in vault.things
    vault.seal("data/people/4", ROWS)  # … and here.
    vault.seal("data/people/5", ROWS)  # They tried again, and crashed again.
    for number in (1, 3):
        olga.shred(Version("people", number), reason="a person asked for it")
    assert not vault.things


def test_what_was_put_in_before_there_was_a_version_is_shredded(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.equipment.vault.seal("data/people/1", ROWS)
    world.register()
    assert set(world.equipment.vault.things) == {"data/people/2"}


def test_a_registration_that_finds_no_number_says_so(world: World) -> None:
    for number in range(2, 102):
        world.equipment.vault.seal(f"data/people/{number}", ROWS)
    with pytest.raises(ConflictError, match="no version number is left"):
        world.office("olga").register("people", ROWS, Declared(TABLES))
    assert world.office("olga").data()["people"].newest == 1


def test_what_was_computed_of_other_versions_stays(world: World) -> None:
    world.queried()
    before = set(world.equipment.vault.things)
    version = world.office("olga").register("people", ROWS, Declared(TABLES))
    world.office("olga").shred(version, reason="it was a mistake")
    assert set(world.equipment.vault.things) == before
    with pytest.raises(InputError, match="reason"):
        world.office("olga").shred(Version("people", 1), reason=" ")
    assert set(world.equipment.vault.things) == before


def test_who_shredded_may_register_again(world: World) -> None:
    """Shredding what may have been put in uses up no numbers."""
    olga = world.office("olga")
    olga.shred(Version("people", 1), reason="a person asked for it")
    declared = Declared(TABLES, "parquet")
    found = pyarrow.csv.read_csv(pyarrow.BufferReader(ROWS))
    written = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(found, written)
    rows = written.getvalue().to_pybytes()
    assert olga.register("people", rows, declared) == Version("people", 2)
    assert olga.data()["people"].versions[2].media == "parquet"
    assert set(world.equipment.vault.things) == {"data/people/2"}


def test_rows_stay_while_nobody_knows_whether_they_were_registered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If they were, they are whole; and whoever shreds reaches all that is left."""
    vault, olga = world.equipment.vault, world.office("olga")
    vault.seal("data/people/2", ROWS)  # Somebody crashed here.
    turn = Workspace.turn

    def lost(self: Workspace, work: Any, *, deciding: bool = False) -> Any:
        turn(self, work, deciding=deciding)
        raise UnavailableError(Problem(Code.LEDGER_BUSY, "it is away"))

    with monkeypatch.context() as patched:
        patched.setattr(Workspace, "turn", lost)
        with pytest.raises(UnavailableError, match="it is away"):
            olga.register("people", ROWS, Declared(TABLES))
    assert olga.data()["people"].last == 3
    assert "data/people/3" in vault.things
    for number in (1, 3):
        olga.shred(Version("people", number), reason="a person asked for it")
    assert not vault.things


def test_what_cannot_run_is_not_asked_for(world: World) -> None:
    world.queried()
    amir = world.office("amir")
    for limits, tier, why in (
        (Limits(1.0), "wasm", "too short"),
        (Limits(5.0), "bubblewarp", "unknown sandbox"),
        (Limits(5.0), "bubblewrap", "does not run programs"),
    ):
        with pytest.raises(InputError, match=why):
            amir.submit_task(Purpose("t", "?"), "q", PROGRAM, tier=tier, limits=limits)
    assert not world.equipment.box.given


@pytest.mark.parametrize("odd", [{"tier": "bubblewrap"}, {"seconds": 1}])
def test_a_contract_of_somebody_s_own_for_what_cannot_run_uses_nothing_up(
    world: World, odd: dict[str, Any]
) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "?"), "q", PROGRAM)
    honest = world.office("amir").show("t").flow.contract
    assert isinstance(honest.terms, TaskTerms)
    forged = structs.replace(honest, id="f", terms=structs.replace(honest.terms, **odd))
    proposed = ContractProposed(forged, "why not")
    world.workspace("amir").turn(lambda entry: entry.add(proposed))
    world.agree("f")
    with pytest.raises(InputError, match=r"does not run programs|too short"):
        world.office("amir").run("f")
    assert world.office("amir").show("f").flow.runs == 0
    assert world.equipment.box.turns == []


def test_a_query_that_cannot_be_reserved_takes_nothing_with_it(world: World) -> None:
    """The first of two is taken back, whatever becomes of the second."""
    asked = [query("r-1", "0.1"), query("r-2", "0.1")]
    world.office("amir").submit_query(Purpose("q", "?"), asked)
    world.agree("q")
    other = {
        "release": "r-2",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["town"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": 500,
            }
        ],
    }
    assert world.workspace("bea").submit(other).allowed
    with pytest.raises(ConflictError):
        world.office("amir").run("q")
    standing = world.workspace("auditor").standing
    assert standing("r-1").status.value == "canceled"
    assert standing("r-2").status.value == "reserved"  # It is not theirs to take back.


def test_what_ended_by_itself_keeps_nothing_else_reserved() -> None:
    """Why a run does not begin is told, and not what became of its reservations."""
    taken_back = list[str]()

    class Ending:
        def cancel(self, release: str, *, reason: str) -> None:
            if release == "r-1":
                raise ConflictError(Problem(Code.RELEASE_STATE, "it ended"))
            taken_back.append(f"{release}: {reason}")

    execution.give_up(Ending(), ["r-1", "r-2", "r-3"], "why")  # type: ignore[arg-type]
    assert taken_back == ["r-2: why", "r-3: why"]


def test_a_run_of_which_one_result_is_lost_ends_without_any(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "?"), "q", PROGRAM)
    world.agree("t")
    vault = world.equipment.vault
    seal = vault.seal

    def first_only(identifier: str, content: bytes) -> Sealed:
        vault.broken = identifier.endswith("exact")
        return seal(identifier, content)

    monkeypatch.setattr(vault, "seal", first_only)
    with pytest.raises(UnavailableError, match="ended without a result"):
        world.office("amir").run("t")
    assert bodies(world)[-1].kind == "flow-failed"
    assert not world.office("amir").show("t").flow.running


def test_a_ledger_that_refuses_the_end_of_a_run_is_not_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "?"), "q", PROGRAM)
    world.agree("t")
    turn, box = Workspace.turn, world.equipment.box

    def refusing(self: Workspace, work: Any, *, deciding: bool = False) -> Any:
        if "scored" in box.turns:
            raise ConflictError(Problem(Code.NOT_PERMITTED, "no"))
        return turn(self, work, deciding=deciding)

    monkeypatch.setattr(Workspace, "turn", refusing)
    with pytest.raises(ConflictError, match="no"):
        world.office("amir").run("t")
    assert world.equipment.paused == []


def test_a_run_beside_another_ends_when_the_other_did(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queried()
    world.office("amir").submit_task(Purpose("t", "?"), "q", PROGRAM)
    world.agree("t")
    score = world.equipment.box.score

    def twice(*given: Any) -> Any:
        monkeypatch.setattr(world.equipment.box, "score", score)
        world.office("amir").run("t")
        return score(*given)

    monkeypatch.setattr(world.equipment.box, "score", twice)
    assert world.office("amir").run("t").denied is None
    flow = world.office("amir").show("t").flow
    assert (flow.runs, dict(flow.running), flow.ended_by) == (2, {}, 2)


class Away:
    """A ledger that is away for a while, from when something is told to it.

    Args:
        times: So often it is away.
        since: What is told to it then: the name of an entry.
        is_stored: Whether that is stored all the same, and nobody knows.
    """

    def __init__(self, times: int, since: str, *, is_stored: bool) -> None:
        self.times, self.since, self.is_stored = times, since, is_stored
        self.turn, self.has_begun = Workspace.turn, False

    def replace_turns(self, patched: pytest.MonkeyPatch) -> None:
        def turn(ws: Workspace, work: Any, *, deciding: bool = False) -> Any:
            return self._turn(ws, work, deciding=deciding)

        patched.setattr(Workspace, "turn", turn)

    def _turn(self, ws: Workspace, work: Any, *, deciding: bool = False) -> Any:
        self._refuse(self.has_begun)
        just_now = list[str]()

        def noted(entry: Any) -> Any:
            found = work(entry)
            added = entry.read(entry.begun_at[0])
            just_now.extend(event_of(one, one.seq).body.kind for one in added)
            self.has_begun |= just_now[-1:] == [self.since]
            self._refuse(self.has_begun and not self.is_stored)
            return found

        found = self.turn(ws, noted, deciding=deciding)
        self._refuse(self.has_begun and just_now[-1:] == [self.since])
        return found

    def _refuse(self, is_away: bool) -> None:
        if is_away and self.times:
            self.times -= 1
            raise UnavailableError(Problem(Code.LEDGER_BUSY, "it is away"))


def asked(world: World, name: str) -> None:
    """Have a query, a task or a score by blocks asked for and agreed to."""
    office = world.office("amir")
    if name == "q":
        office.submit_query(Purpose("q", "?"), [query("r-q")], exact=True)
    else:
        world.queried()
        blocks = ByBlocks(5, Fraction(1, 10)) if name == "blocks" else None
        office.submit_task(Purpose(name, "?"), "q", PROGRAM, blocks=blocks)
    world.agree(name)


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("since", ["flow-begun", "flow-withheld"])
@pytest.mark.parametrize("name", ["q", "t", "blocks"])
def test_a_ledger_that_is_away_for_a_while_costs_no_results(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    since: str,
    times: int,
    is_stored: bool,
) -> None:
    """It may be away before an entry is stored, or before anybody knows that it is."""
    asked(world, name)
    away = Away(times, since, is_stored=is_stored)
    with monkeypatch.context() as patched:
        away.replace_turns(patched)
        assert world.office("amir").run(name).denied is None
    assert away.times == 0
    assert world.equipment.paused == [1.0, 4.0, 10.0, 15.0][:times]
    assert world.equipment.box.turns.count("taken") == (name != "q")
    flow = world.office("amir").show(name).flow
    assert isinstance(flow.contract.terms, QueryTerms | TaskTerms)
    assert (flow.runs, dict(flow.running), flow.ended_by) == (1, {}, 1)
    assert set(flow.results) == {*flow.contract.terms.results}
    kinds = [one.kind for one in bodies(world)]
    many = 1 if name == "q" else 2
    assert (kinds.count("flow-begun"), kinds.count("flow-withheld")) == (many, many)
    world.workspace("auditor").verify()


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("since", ["flow-begun", "flow-withheld"])
def test_a_ledger_that_stays_away_is_waited_for_no_longer(
    world: World, monkeypatch: pytest.MonkeyPatch, since: str, is_stored: bool
) -> None:
    asked(world, "blocks")
    away = Away(9, since, is_stored=is_stored)
    with monkeypatch.context() as patched:
        away.replace_turns(patched)
        with pytest.raises(UnavailableError, match="it is away"):
            world.office("amir").run("blocks")
    assert (away.times, world.equipment.paused) == (4, [1.0, 4.0, 10.0, 15.0])
    assert bool(world.equipment.box.given) == (since == "flow-withheld")
    assert world.equipment.box.turns[-1] == "left"


def test_who_ends_a_run_by_hand_leaves_none_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(world, "t")

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(world.equipment.box, "score", pressed)
    with pytest.raises(KeyboardInterrupt):
        world.office("amir").run("t")
    flow = world.office("amir").show("t").flow
    assert (flow.runs, dict(flow.running), dict(flow.results)) == (1, {}, {})
    assert world.equipment.paused == []
    assert world.equipment.box.turns == ["taken", "left"]


def test_nobody_waits_for_a_sandbox_while_scores_are_put_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(world, "t")
    seal, box = world.equipment.vault.seal, world.equipment.box
    before = list[str]()

    def noted(*given: Any) -> Any:
        before.append(box.turns[-1])
        return seal(*given)

    monkeypatch.setattr(world.equipment.vault, "seal", noted)
    world.office("amir").run("t")
    assert before == ["left", "left"]


@pytest.mark.parametrize("times", [1, 4, 5])
def test_a_ledger_that_is_away_while_queries_are_reserved_ends_no_contract(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """What was reserved for it stands, and the next run goes on with it."""
    office = world.office("amir")
    office.submit_query(Purpose("q", "?"), [query("r-1", "0.1"), query("r-2", "0.1")])
    world.agree("q")
    submit, left = Workspace.submit, [times]

    def away(ws: Workspace, described: Any, **more: Any) -> Any:
        if left[0] and "r-2" in str(described):
            left[0] -= 1
            raise UnavailableError(Problem(Code.LEDGER_BUSY, "it is away"))
        return submit(ws, described, **more)

    monkeypatch.setattr(Workspace, "submit", away)
    if times == 5:
        with pytest.raises(UnavailableError, match="it is away"):
            office.run("q")
        assert world.workspace("amir").standing("r-1").status.value == "reserved"
        assert office.show("q").flow.runs == 0
    assert office.run("q").denied is None
    assert world.equipment.paused == [1.0, 4.0, 10.0, 15.0][:times]
    assert world.workspace("amir").standing("r-1").status.value == "started"


def test_what_nobody_wants_is_not_begun_by_a_ledger_that_comes_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(world, "t")

    def still() -> None:
        if world.equipment.paused:
            raise TimeoutError

    def refused(*_: object, **__: object) -> None:
        raise UnavailableError(Problem(Code.LEDGER_BUSY, "it is away"))

    with monkeypatch.context() as patched:
        patched.setattr(run, "begin", refused)
        with pytest.raises(TimeoutError):
            world.office("amir", still).run("t")
    assert world.office("amir").show("t").flow.runs == 0
    assert world.equipment.box.turns == ["taken", "left"]


def test_what_may_stand_goes_on_whoever_wants_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be counted: to give it up then would lose it."""
    asked(world, "t")
    away = Away(1, "flow-begun", is_stored=True)

    def still() -> None:
        if world.equipment.paused:
            raise TimeoutError

    with monkeypatch.context() as patched:
        away.replace_turns(patched)
        assert world.office("amir", still).run("t").denied is None
