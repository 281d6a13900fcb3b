"""`modicum account`: numbers, documents, refusals and exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.main import app

RUNNER = CliRunner()


def run(*args: str, exit_code: int = 0) -> str:
    result = RUNNER.invoke(app, ["account", *args])
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.output)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


RHO = ("convert", "--from", "rho=0.735", "--delta", "1e-6")


def test_a_conversion_says_which_and_whose_it_is() -> None:
    text = run(*RHO)
    assert "epsilon <= 6.50237 at delta 1e-6" in text
    assert "by real-order: Canonne, Kamath & Steinke 2020" in text
    found = document(*RHO)
    assert found["epsilon"] == pytest.approx(6.5023698, abs=1e-7)
    assert (found["delta"], found["method"]) == (1e-6, "real-order")
    assert found["from"] == {"rho": 0.735}
    assert "2004.00010" in found["source"]


def test_a_conversion_may_be_named() -> None:
    found = document(*RHO, "--method", "bun-steinke-lemma-3.6")
    assert found["epsilon"] == pytest.approx(6.718, abs=1e-4)


def test_numbers_for_people_are_rounded_up() -> None:
    assert "rho <= 0.462118" in run("convert", "--from", "eps=1", "--to", "rho")


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        (("--from", "eps=1", "--to", "eps"), {"epsilon", "delta"}),
        (("--from", "mu=1", "--to", "delta", "--eps", "1"), {"epsilon", "delta"}),
        (("--from", "mu=1", "--to", "rho"), {"rho"}),
        (("--from", "eps=1", "--to", "mu"), {"mu"}),
        (("--from", "rho=1", "--to", "rdp", "--order", "8"), {"order", "rdp"}),
        (
            ("--from", "eps=1,delta=1e-7", "--delta", "1e-6", "--times", "3"),
            {"epsilon", "delta"},
        ),
        (("--from", "rdp=8:0.5,32:1.2", "--delta", "1e-6"), {"epsilon", "delta"}),
    ],
)
def test_every_target_has_its_keys(args: tuple[str, ...], keys: set[str]) -> None:
    found = document("convert", *args)
    always = {"from", "times", "method", "condition", "source"}
    assert set(found) == keys | always


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--from", "rho=1", "--to", "mu"), "does not imply"),
        (("--from", "rho=1", "--to", "eps"), "no epsilon is valid with delta 0"),
        (
            ("--from", "eps=1,delta=1e-6", "--to", "rho"),
            "outside an event of probability delta",
        ),
        (
            ("--from", "rho=1", "--delta", "1e-6", "--method", "gaussian-exact"),
            "choose `real-order`",
        ),
        (
            (
                *("--from", "rho=1", "--delta", "1e-6"),
                *("--relation", "substitute", "--to-relation", "add-remove"),
            ),
            "no guarantee under `substitute`",
        ),
    ],
)
def test_what_no_proof_allows_leaves_with_4(args: tuple[str, ...], says: str) -> None:
    assert says in run("convert", *args, exit_code=4)
    found = document("convert", *args, exit_code=4)
    assert found["error"]["code"] == "MOD108"


@pytest.mark.parametrize(
    "args",
    [
        ("convert",),
        ("convert", "--from", "rho", "--delta", "1e-6"),
        ("convert", "--from", "rho=1,eps=1", "--delta", "1e-6"),
        ("convert", "--from", "rho=x", "--delta", "1e-6"),
        ("convert", "--from", "rdp=8", "--delta", "1e-6"),
        ("convert", "--from", "rho=1", "--to", "nonsense"),
        ("convert", "--from", "rho=1", "--to", "delta"),
        ("convert", "--from", "rho=1", "--to", "rho", "--delta", "1e-6"),
        ("mechanism",),
        ("mechanism", "gaussian", "sigma"),
        ("mechanism", "gaussian", "sigma=1", "sigma=2"),
        ("subsample", "gaussian", "sigma=1", "--rate", "often"),
    ],
)
def test_mistakes_in_the_command_line_leave_with_2(args: tuple[str, ...]) -> None:
    run(*args, exit_code=2)


def test_the_lists_are_complete() -> None:
    conversions = document("convert", "--list")["conversions"]
    assert {"from", "to", "method", "condition", "source"} == set(conversions[0])
    assert "bun-steinke-lemma-3.6" in run("convert", "--list")
    kinds = document("mechanism", "--list")["kinds"]
    assert "dp-sgd" in {kind["kind"] for kind in kinds}
    assert "noise-multiplier" in run("mechanism", "--list")


def test_a_mechanism_is_priced_in_every_measure() -> None:
    found = document("mechanism", "gaussian", "sigma=4", "--delta", "1e-6")
    curve = found["curve"]
    assert (curve["eps"], curve["rho"], curve["mu"]) == ("inf", 0.03125, 0.25)
    assert curve["rdp"]["8"] == 0.25
    assert found["approx_dp"]["method"] == "gaussian-exact"
    assert found["parameters"] == {"sigma": 4, "sensitivity": 1}
    text = run("mechanism", "gaussian", "sigma=4", "--delta", "1e-6")
    assert "rho           0.03125" in text
    assert "by gaussian-exact" in text
    assert document("mechanism", "gaussian", "sigma=4")["approx_dp"] is None


def test_the_noise_for_a_target_meets_it() -> None:
    target = ("--for", "eps=1,delta=1e-6", "--delta", "1e-6")
    found = document("mechanism", "gaussian", *target)
    assert found["calibrated"]["parameter"] == "sigma"
    assert 1 - 1e-8 < found["approx_dp"]["epsilon"] <= 1
    assert found["parameters"]["sigma"] == pytest.approx(4.2246789, abs=1e-7)
    assert "meets eps=1,delta=1e-6" in run("mechanism", "gaussian", *target)
    ten = document("mechanism", "gaussian", "--for", "rho=0.5", "--times", "10")
    assert ten["parameters"]["sigma"] == pytest.approx(10**0.5)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("telepathy",), "MOD118"),
        (("gaussian",), "MOD103"),
        (("gaussian", "sigma=-1"), "MOD106"),
        (("gaussian", "sigma=1", "scale=1"), "MOD102"),
        (("gaussian", "--for", "eps=1"), "MOD106"),
    ],
)
def test_mistakes_in_a_mechanism_leave_with_4(args: tuple[str, ...], code: str) -> None:
    found = document("mechanism", *args, exit_code=4)
    assert found["error"]["code"] == code


def test_samples_stand_beside_the_whole() -> None:
    args = ("subsample", "laplace", "scale=1", "--rate", "0.01", "--steps", "10")
    found = document(*args, "--delta", "1e-6")
    assert found["sampled"]["curve"]["eps"] < found["whole"]["curve"]["eps"] == 10
    ends = [found[side]["approx_dp"]["epsilon"] for side in ("sampled", "whole")]
    assert ends == sorted(ends)
    assert found["relation"] == "add-remove"
    text = run(*args, "--delta", "1e-6", "--method", "without-replacement")
    assert "under substitute" in text
    assert "sampled: epsilon <=" in text
    run(*args, "--method", "shuffle", exit_code=4)


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [
        (("convert", "--from", "eps=-1e400", "--to", "rho"), 4),
        (("mechanism", "zcdp", "rho=1", "--delta", "1e400"), 4),
        (("subsample", "zcdp", "rho=1", "--rate", "0.1", "--delta", "1e400"), 4),
        (("convert", "--from", "rdp=99:1e18", "--to", "delta", "--eps", "1e7"), 0),
    ],
)
def test_numbers_beyond_all_floats_are_no_internal_error(
    args: tuple[str, ...], exit_code: int
) -> None:
    run(*args, exit_code=exit_code)
