"""Made-up answers to the queries of a contract, in Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from samples.escrows import PROGRAM, World, query

import modicum as mo
from modicum.core.errors import InputError


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    found.register()
    found.office("amir").submit_query(
        mo.Purpose("q", "to know"), [query("r-1", "0.01")]
    )
    return found


def test_they_have_the_form_of_the_real_ones_and_read_no_row(world: World) -> None:
    opened = len(world.equipment.vault.opened)
    ws = world.workspace("amir")
    made = mo.synthetic_answers(ws, "q", seed=7)
    exact, private = made.exact["r-1"], made.private["r-1"]
    assert exact.columns == private.columns == ("town", "people")
    assert [row[0] for row in exact.rows] == ["north", "south"]
    assert exact.rows != private.rows
    assert mo.synthetic_answers(ws, "q", seed=7) == made
    assert mo.synthetic_answers(ws, "q", seed=8) != made
    assert len(world.equipment.vault.opened) == opened


def test_a_task_is_tried_on_them(world: World) -> None:
    made = mo.synthetic_answers(world.workspace("amir"), "q")
    program = replace(PROGRAM, language="python")
    found = mo.dry_run(program, made.private)
    assert found.score is not None
    assert mo.dry_run(program, {}).score is None


def test_what_asks_no_query_has_none(world: World) -> None:
    ws = world.workspace("amir")
    with pytest.raises(InputError, match="unknown contract"):
        mo.synthetic_answers(ws, "t")
    world.agree("q")
    world.office("amir").run("q")
    world.office("amir").submit_output(mo.Purpose("o", "to know"), "q")
    with pytest.raises(InputError, match="has no query"):
        mo.synthetic_answers(ws, "o")
