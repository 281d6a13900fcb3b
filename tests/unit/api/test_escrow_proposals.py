"""Asking the escrow: what keeps others from asking, and what is kept of who asks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from samples.escrows import OWNED, POLICY, PROGRAM, ROWS, TABLES, World, query

from modicum.api.local.escrow import datasets
from modicum.api.local.escrow.datasets import Declared
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.local.escrow.synthetic_answers import queries_written
from modicum.api.ports.escrow import Limits
from modicum.core.errors import Code, ConflictError, InputError, ModicumError
from modicum.escrow.blocks import ByBlocks
from modicum.ops.escrow.epsilon_choice import query_risk
from modicum.policy.compiler import compile_text

#: The same policy after somebody gave another name to what the pay data holds.
WITHOUT_PAY = POLICY
WITH_PAY = POLICY.replace("income: high", "income: high, pay: high")
PAY_TABLES = TABLES.replace("people:", "pay:", 1).replace("income", "pay")
PAY_ROWS = ROWS.replace(b"income", b"pay")
HEADING = Purpose("q", "to know")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def activate(world: World, text: str) -> None:
    successor = compile_text(text.encode(), "policy.yaml")
    world.workspace("olga").governance.activate(successor, reason="other words")


# --- data that the policy has no words for any more -----------------------------------


@pytest.fixture
def stale(world: World) -> World:
    """An escrow with two data sets, one of which cannot be read any more."""
    activate(world, WITH_PAY)
    world.office("olga").register("pay", PAY_ROWS, Declared(PAY_TABLES), OWNED)
    world.register()
    activate(world, WITHOUT_PAY)
    return world


def test_one_stale_data_set_keeps_nobody_from_the_others(stale: World) -> None:
    flow = stale.office("amir").submit_query(HEADING, [query("r-1")])
    assert list(flow.contract.data) == ["people"]
    ws = stale.workspace("amir")
    assert query_risk(ws, query("r-2"), delta=Fraction(1, 10**6)).data.id == "people"
    assert list(queries_written(ws, [query("r-2")])) == ["r-2"]


def test_who_asks_for_what_is_stale_is_told_why(stale: World) -> None:
    text = query("r-1").replace("FROM people", "FROM pay")
    for ask in (
        lambda: stale.office("amir").submit_query(HEADING, [text]),
        lambda: query_risk(stale.workspace("amir"), text),
        lambda: queries_written(stale.workspace("amir"), [text]),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        why = caught.value.problems[-1]
        assert why.code is Code.UNKNOWN_ATTRIBUTE
        assert "the table of pay" in why.render()


def test_what_was_read_under_another_policy_is_not_remembered(world: World) -> None:
    text = query("r-1").replace("FROM people", "FROM pay")
    activate(world, WITH_PAY)
    world.office("olga").register("pay", PAY_ROWS, Declared(PAY_TABLES), OWNED)
    world.office("amir").submit_query(HEADING, [text])
    world.agree("q")
    activate(world, WITHOUT_PAY)
    with pytest.raises(InputError, match="pay"):
        world.office("amir").submit_query(Purpose("q-2", "?"), [text])
    with pytest.raises(InputError, match="pay"):
        world.office("amir").run("q")
    activate(world, WITH_PAY.replace("name: census", "name: later"))
    world.office("amir").submit_query(Purpose("q-3", "?"), [text])


def test_a_mistake_is_not_laid_to_what_is_stale(stale: World) -> None:
    text = query("r-1").replace("SELECT town", "SELECT payer")
    with pytest.raises(InputError, match="payer") as caught:
        stale.office("amir").submit_query(HEADING, [text])
    assert len(caught.value.problems) == 1


def test_where_all_is_stale_it_is_said(stale: World) -> None:
    activate(stale, POLICY.replace("town: low", "city: low"))
    with pytest.raises(InputError, match="town"):
        stale.office("amir").submit_query(HEADING, [query("r-1")])


def test_no_name_is_taken_twice_in_other_capitals(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.register()
    shouted = Declared(TABLES.replace("people:", "PEOPLE:", 1))
    owned = replace(OWNED, owners={"bea": ()}, quorum=1)
    with pytest.raises(InputError, match="differ in case only"):
        world.office("bea").register("PEOPLE", ROWS, shouted, owned)
    # Two who do so at once are not told; then queries read the first.
    monkeypatch.setattr(datasets, "_refuse_look_alike", lambda *_: None)
    world.office("bea").register("PEOPLE", ROWS, shouted, owned)
    text = query("r-1").replace("FROM people", "FROM PEOPLE")
    flow = world.office("amir").submit_query(HEADING, [text])
    assert list(flow.contract.data) == ["people"]


# --- what is kept of who asks in vain -------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "parent", "settings"),
    [
        (Purpose("t", "?"), "nothing", {}),
        (Purpose("t", " "), "q", {}),
        (Purpose("q", "?"), "q", {}),
        (Purpose("not a name!", "?"), "q", {}),
        (Purpose("t", "?", lasts_seconds=0), "q", {}),
        (Purpose("t", "?", recipients=["bea"]), "q", {}),
        (Purpose("t", "?"), "q", {"limits": Limits(0.1)}),
        (Purpose("t", "?"), "q", {"tier": "bubblewrap"}),
        (Purpose("t", "?"), "q", {"blocks": ByBlocks(20, Fraction(1), unit="dog")}),
        (Purpose("t", "?"), "unrun", {}),
    ],
)
def test_code_of_a_task_that_cannot_be_asked_for_is_not_kept(
    world: World, heading: Purpose, parent: str, settings: dict[str, object]
) -> None:
    """Whoever asks in vain fills no vault."""
    world.register()
    world.queried()
    world.office("amir").submit_query(Purpose("unrun", "?"), [query("r-u")], exact=True)
    kept = set(world.equipment.vault.things)
    own = replace(PROGRAM, code=PROGRAM.code + b"# mine\n")
    with pytest.raises(ModicumError):
        world.office("amir").submit_task(heading, parent, own, **settings)  # type: ignore[arg-type]
    assert set(world.equipment.vault.things) == kept
    world.office("amir").submit_task(Purpose("t", "?"), "q", own)
    (new,) = set(world.equipment.vault.things) - kept
    assert new.startswith("code/")


def test_code_that_cannot_be_kept_is_asked_for_by_nobody(world: World) -> None:
    world.register()
    world.queried()
    world.equipment.vault.broken = True
    with pytest.raises(ModicumError, match="disk is full"):
        world.office("amir").submit_task(Purpose("t", "?"), "q", PROGRAM)
    with pytest.raises(InputError, match="unknown contract"):
        world.office("amir").show("t")


# --- how much others were told --------------------------------------------------------


def ask_raw(world: World, analyst: str, name: str, *recipients: str) -> None:
    """Ask for a score on exact answers, in 20 bins: that tells 5 bits."""
    world.office(analyst).submit_raw_signal(
        Purpose(name, "?", recipients=recipients), f"t-{analyst}", width=Fraction(1, 20)
    )


def test_how_much_others_were_told_is_theirs_to_know(world: World) -> None:
    """A refusal tells that it is too much for them, and not how much they know."""
    owned = replace(OWNED, bits_max=12)
    world.office("olga").register("people", ROWS, Declared(TABLES), owned)
    for analyst in ("amir", "cora"):
        office, query_name = world.office(analyst), f"q-{analyst}"
        purpose = Purpose(query_name, "?")
        office.submit_query(purpose, [query(f"r-{analyst}")], exact=True)
        world.agree(query_name)
        office.run(query_name)
        office.submit_task(Purpose(f"t-{analyst}", "?"), query_name, PROGRAM)
        world.agree(f"t-{analyst}")
        office.run(f"t-{analyst}")
    ask_raw(world, "amir", "raw-1", "zoe")
    ask_raw(world, "amir", "raw-2", "zoe")
    with pytest.raises(ConflictError) as own:
        ask_raw(world, "amir", "raw-3")
    assert "10 are disclosed or requested, and this would add 5" in str(own.value)
    with pytest.raises(ConflictError) as others:
        ask_raw(world, "cora", "raw-4", "amir")
    text = str(others.value)
    assert "`amir` may receive 12 bits of `people`" in text
    assert "this would exceed that" in text
    assert "10" not in text
    with pytest.raises(ConflictError, match="`amir` may receive 12 bits"):
        ask_raw(world, "cora", "raw-4", "AMIR ")  # It is the same person.
    with pytest.raises(ConflictError, match="`zoe` may receive 12 bits"):
        ask_raw(world, "cora", "raw-4", "zoe")
    ask_raw(world, "cora", "raw-5")
