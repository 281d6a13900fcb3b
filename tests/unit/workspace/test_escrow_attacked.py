"""Ways around the escrow that worked once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.audited import key
from samples.escrows import OWNED, POLICY, PROGRAM, ROWS, TABLES, World, query

from modicum.core.errors import ModicumError
from modicum.ledger import event_of
from modicum.ledger.following.snapshot import Snapshot, write_snapshot
from modicum.ledger.log.events import DisclosureRecorded, event_name
from modicum.ledger.state.agreement import Agreement
from modicum.policy.compile import compile_text
from modicum.shell.escrow.equipment import EscrowPlace
from modicum.shell.escrow.opening import open_escrow
from modicum.shell.sandbox.scores import told
from modicum.shell.vault.key_files import new_key_file
from modicum.workspace.escrowing import carrying_out, runs
from modicum.workspace.escrowing.asking import Heading
from modicum.workspace.escrowing.data_kept import Declared, Owned
from modicum.workspace.escrowing.ports import Limits


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    found.register()
    return found


def bodies(world: World) -> list[Any]:
    records = world.workspace("auditor").records()
    return [event_of(one, one.seq).body for one in records]


def test_a_forged_snapshot_is_no_agreement(tmp_path: Path) -> None:
    """Who writes beside the ledger has neither the key of olga nor that of the vault."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    new_key_file(tmp_path / "keys.json")
    place = EscrowPlace(tmp_path / "vault", tmp_path / "keys.json", 10**6)
    ledger, own = tmp_path / "ledger.db", key(1).public.hex()
    open_escrow(ledger, place, policy=tmp_path / "policy.yaml").init()
    owned = Owned({"olga": (own,)}, 1)
    olga = open_escrow(ledger, place, actor="olga").escrow
    olga.register("people", ROWS, Declared(TABLES), owned)
    amir = open_escrow(ledger, place, actor="amir")
    asked = amir.escrow.ask_query(Heading("q", "?"), [query("r-1")])
    state = amir.state()
    words = (Agreement("olga", True, ("owner",), state.seq, own),)
    state.approvals["contract", asked.contract.digest] = words
    (tmp_path / "ledger.db.snapshot").write_bytes(write_snapshot(Snapshot(state)))
    with pytest.raises(ModicumError, match="1 more must agree"):
        open_escrow(ledger, place, actor="amir").escrow.run("q")


@pytest.mark.parametrize("limits", [Limits(-5.0), Limits(5.0, -(2**30))])
def test_an_analyst_cannot_make_the_ledger_unreadable(
    world: World, limits: Limits
) -> None:
    world.queried()
    with suppress(ModicumError):
        world.office("amir").ask_task(Heading("t", "?"), "q", PROGRAM, limits=limits)
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
    tmp_path: Path, owned: Owned
) -> None:
    world = World(tmp_path)
    with suppress(ModicumError):
        world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    world.workspace("auditor").verify()


def test_a_raw_signal_is_disclosed_in_words_of_the_escrow(world: World) -> None:
    world.queried()
    world.scored()
    amir = world.office("amir")
    asked = amir.ask_raw_signal(Heading("raw", "?"), "t", width=Fraction(1, 20))
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
    if any(event_name(one) == "flow-released" for one in bodies(world)):
        said = [one for one in bodies(world) if isinstance(one, DisclosureRecorded)]
        assert any("score of a program on exact answers" in one.what for one in said)


def test_no_finite_number_is_an_error() -> None:
    """Else whether a run fails tells of the exact answers, and nobody agreed to that."""
    # As `modicum escrow submit task --code x.wasm --range 0 1.9e308` has it.
    with suppress(ModicumError):
        program = replace(PROGRAM, range=type(PROGRAM.range)(Fraction(0), _ABOVE))
        told(bytes.fromhex("537fefffffffffffff"), program.range)


_ABOVE = Fraction(19) * 10**307


def test_a_policy_that_changes_while_it_is_reserved_stops_a_query(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = POLICY.replace("units: {user: {id: person}}", "units: {user: {id: town}}")
    reserve = runs.reserve

    def reserved(*given: Any) -> Any:
        found = reserve(*given)
        other = compile_text(text.encode(), "policy.yaml")
        world.workspace("olga").governance.activate(other, reason="another unit")
        return found

    world.office("amir").ask_query(Heading("q", "?"), [query("r-1")])
    world.agree("q")
    monkeypatch.setattr(carrying_out, "reserve", reserved)
    with pytest.raises(ModicumError):
        world.office("amir").run("q")
    assert world.equipment.vault.opened == []
