"""`modicum risk split`: shares of a cap, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from typer.testing import CliRunner, Result

from modicum.cli.exit_codes import Exit
from modicum.cli.main import app


def asked(*words: str) -> Result:
    return CliRunner().invoke(app, ["risk", "split", *words])


def split(*words: str) -> str:
    found = asked(*words)
    assert found.exit_code == Exit.OK, found.output
    return found.stdout


@pytest.mark.spec("RSK-11")
def test_shares_are_as_the_weights_and_keep_to_the_cap() -> None:
    words = ("1", "visits=2", "costs=1", "--sensitivity", "10")
    told = json.loads(split(*words, "--sensitivity", "costs=500", "--json"))
    shares = told["questions"]
    epsilons = {name: Fraction(repr(one["epsilon"])) for name, one in shares.items()}
    assert epsilons == {
        "visits": Fraction("0.666666666666"),
        "costs": Fraction("0.333333333333"),
    }
    assert sum(epsilons.values()) <= told["cap"] == 1
    assert told["delta"] == 0
    releases = {name: one["charge"]["release"] for name, one in shares.items()}
    for name, width in (("visits", "10"), ("costs", "500")):
        assert releases[name]["l1"] == width
        assert Fraction(releases[name]["scale"]) >= int(width) / epsilons[name]
    assert {one["claim"] for one in shares.values()} == {"dp"}


def test_what_is_printed_tells_the_share_the_error_and_the_key() -> None:
    told = split("1", "visits=3", "costs=1", "--sensitivity", "10")
    lines = told.splitlines()
    assert lines[0].split()[:3] == ["question", "weight", "epsilon"]
    assert lines[1].split()[:4] == ["visits", "3", "0.75", "39.9431"]
    assert lines[2].split()[:3] == ["costs", "1", "0.25"]
    assert "epsilon_choice: dp by priorities" in told
    assert "delta" not in told


def test_deltas_add_up() -> None:
    questions = ("1", "a=1", "b=1", "c=1", "--sensitivity", "1")
    words = (*questions, "--mechanism", "gaussian", "--delta", "1e-6")
    assert "the deltas of all add up to 3e-6" in split(*words)
    assert json.loads(split(*words, "--json"))["delta"] == 3e-6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("1", "a=3", "--sensitivity", "b=1"), "--sensitivity"),
        (("1", "a=1", "b=1", "--sensitivity", "a=2"), "give one for `b`"),
        (("1", "a=3", "a=2", "--sensitivity", "1"), "`a` is given twice"),
        (("1", "a", "--sensitivity", "1"), "write NAME=WEIGHT"),
        (("1", "a=", "--sensitivity", "1"), "write NAME=WEIGHT"),
        (("1", "=2", "--sensitivity", "1"), "write NAME=WEIGHT"),
        (("1", "a=2", "--sensitivity", "=1"), "write VALUE or NAME=VALUE"),
        (
            ("1", "a=2", "--sensitivity", "1", "--sensitivity", "2"),
            "two values are given",
        ),
        (("x", "a=3", "--sensitivity", "1"), "the cap 'x' is not a finite number"),
        (("0", "a=3", "--sensitivity", "1"), "the cap 0 is not above 0"),
        (("1", "a=0", "--sensitivity", "1"), "the weight 0 is not above 0"),
        (("1", "a=1", "--sensitivity", "-1"), "`--sensitivity` above 0"),
        (("1", "a=1", "--sensitivity", "1", "--delta", "1e-6"), "--delta"),
        (("1", "a=1", "--sensitivity", "1", "--mechanism", "gaussian"), "`--delta`"),
        (("1", "a=1", "--sensitivity", "1", "--mechanism", "gauss"), "--mechanism"),
        (("1e-13", "a=1", "--sensitivity", "1"), "larger cap"),
    ],
)
def test_what_will_not_do_is_a_mistake_of_usage(
    words: tuple[str, ...], told: str
) -> None:
    found = asked(*words)
    assert found.exit_code == Exit.USAGE, found.output
    assert told in found.output
