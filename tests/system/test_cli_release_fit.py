"""`release fit`, `release options`, `ledger balance` and `--as-of`, as commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples import parted
from typer.testing import CliRunner

from modicum.api.local.alternatives import trials
from modicum.api.local.explanation.remedies import ENDED_EARLY
from modicum.cli.main import app

ASKED = """
release: asked
where: {country: [CH, DE]}
mechanisms:
  - name: counts
    mechanism: gaussian
    attributes: [pay]
    sensitivity: {user: {l2: 1}, user-month: {l2: 1}}
    sigma: 2
"""
BEFORE = """
release: NAME
where: {country: COUNTRY, birth: {from: 1991, to: 1992}}
periods: 2026-04
mechanisms:
  - mechanism: gaussian
    attributes: [pay]
    cost: {user: {rho: RHO}, user-month: {rho: RHO}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger in which one cell is nearly full."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    (tmp_path / "policy.yaml").write_text(text)
    (tmp_path / "asked.yaml").write_text(ASKED)
    run("init")
    for name, country, rho in (
        ("a", "CH", "0.1"),
        ("b", "CH", "0.3"),
        ("c", "DE", "0.3"),
    ):
        before = BEFORE.replace("NAME", name).replace("COUNTRY", country)
        (tmp_path / f"{name}.yaml").write_text(before.replace("RHO", rho))
        run("release", "submit", f"{name}.yaml")
    return tmp_path


def run(*args: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.output)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


@pytest.mark.spec("LED-7")
@pytest.mark.parametrize("vary", ["noise", "where", "periods"])
def test_what_is_printed_is_a_release_that_passes(folder: Path, vary: str) -> None:
    before = (folder / "ledger.db").read_bytes()
    run("release", "check", "asked.yaml", exit_code=3)
    fitted = run("release", "fit", "asked.yaml", "--vary", vary)
    assert fitted.startswith(f"# fits, varying {vary} (at entry 4)\n")
    (folder / "fitted.yaml").write_text(fitted)
    assert "ALLOW asked" in run("release", "check", "fitted.yaml")
    data = document("release", "fit", "asked.yaml", "--vary", vary)
    assert data["found"]
    assert fitted.endswith(data["release"])
    assert (folder / "ledger.db").read_bytes() == before


def test_a_release_that_passes_is_written_to_a_new_file(folder: Path) -> None:
    printed = run("release", "fit", "asked.yaml", "--out", "fitted.yaml")
    assert printed.endswith("\nwritten to fitted.yaml\n")
    assert "\\n" not in printed
    assert "ALLOW asked" in run("release", "check", "fitted.yaml")
    before = (folder / "asked.yaml").read_text()
    again = run("release", "fit", "asked.yaml", "-o", "asked.yaml", exit_code=2)
    assert "error[MOD708]: asked.yaml already exists" in again
    run("release", "fit", "asked.yaml", "--out", "-", exit_code=2)
    assert not (folder / "-").exists()
    assert (folder / "asked.yaml").read_text() == before


def test_noise_that_is_given_by_eps_and_delta_is_varied_as_sigma(folder: Path) -> None:
    month = "sensitivity: {user: {l2: 1}, user-month: {l2: 1}}"
    text = ASKED.replace(month, "sensitivity: {user: {l2: 1}}")
    text = text.replace("sigma: 2", "eps: 2\n    delta: 1e-6")
    (folder / "asked.yaml").write_text(text)
    run("release", "check", "asked.yaml", exit_code=3)
    fitted = run("release", "fit", "asked.yaml", "--vary", "noise")
    assert "sigma" in fitted
    assert "eps:" not in fitted
    assert "instead of 2.2" in fitted
    (folder / "fitted.yaml").write_text(fitted)
    assert "ALLOW asked" in run("release", "check", "fitted.yaml")


def test_the_largest_part_leaves_out_the_full_cells_only(folder: Path) -> None:
    data = document("release", "fit", "asked.yaml", "--vary", "where")
    assert data["changes"] == ["without birth 1991 to 1992, country CH"]


def test_nothing_fits_where_nothing_is_left(folder: Path) -> None:
    output = run("release", "fit", "asked.yaml", "--vary", "rho", exit_code=3)
    assert output.startswith("nothing fits, varying rho (at entry 4)\n")
    data = document("release", "fit", "asked.yaml", "--vary", "rho", exit_code=3)
    assert (data["found"], data["release"]) == (False, None)
    assert "unknown parameter" in run(
        "release", "fit", "asked.yaml", "--vary", "x", exit_code=4
    )
    assert "has no mechanism" in run(
        "release", "fit", "asked.yaml", "--mechanism", "x", exit_code=4
    )


def test_every_option_can_be_taken(folder: Path) -> None:
    listed = run("release", "options", "asked.yaml")
    assert "add more noise" in listed
    assert "only if ml: black-box is true" in listed
    found = document("release", "options", "asked.yaml")["options"]
    assert [one["kind"] for one in found] == [
        "noise",
        "where",
        "periods",
        "attribute",
        "label",
    ]
    for number, one in enumerate(found, 1):
        taken = run("release", "options", "asked.yaml", "--take", str(number))
        assert taken == one["release"]
        (folder / "taken.yaml").write_text(taken)
        run("release", "check", "taken.yaml")
    run("release", "options", "asked.yaml", "--take", "9", exit_code=2)
    # What passes needs no option.
    assert run("release", "options", "taken.yaml").startswith("ALLOW asked")
    assert document("release", "options", "taken.yaml")["options"] == []
    run("release", "options", "taken.yaml", "--take", "1", exit_code=2)


def test_a_release_that_no_change_helps_leaves_with_3(folder: Path) -> None:
    policy = (folder / "policy.yaml").read_text().replace("rho: 2}", "rho: 0.1}")
    (folder / "tight.yaml").write_text(policy)
    used = BEFORE.replace("NAME", "d").replace("COUNTRY", "FR").replace("RHO", "0.1")
    (folder / "used.yaml").write_text(used.replace("where:", "# ").replace("per", "# "))
    (folder / "asked.yaml").write_text(ASKED.replace("where:", "# "))
    other = ("--ledger", "tight.db")
    run("init", "--policy", "tight.yaml", *other)
    run("release", "submit", "used.yaml", *other)
    found = document("release", "options", "asked.yaml", *other)["options"]
    assert [one["kind"] for one in found] == ["label"]
    strict = policy.replace("scale: 3", "scale: 1")
    (folder / "strict.yaml").write_text(strict)
    args = ("release", "options", "asked.yaml", "--policy", "strict.yaml", *other)
    assert "no known single change" in run(*args, exit_code=3)
    assert document(*args, exit_code=3)["options"] == []
    assert "no known single change" in run(*args, "--take", "1", exit_code=3)


def test_a_balance_shows_the_fullest_cell_and_who_filled_it(folder: Path) -> None:
    output = run("ledger", "balance", "pay @standard")
    assert "cell   country CH, birth 1991 to 1992, 2026-04, the fullest of 3" in output
    assert "spent  rho 0.4\n" in output
    assert "limit  rho 0.5\n" in output
    assert "for a Gaussian mechanism: rho = 0.1\n" in output
    assert [line.split()[0] for line in output.splitlines()[-2:]] == ["b", "a"]
    only = run("ledger", "balance", "pay @standard", "--top", "1")
    assert only.endswith("… 1 more (--top)\n")
    data = document(
        "ledger", "balance", "pay @standard",
        "--where", "country=DE,FR", "--where", "birth=1990..1991",
        "--period", "2026-04", "--period", "2026-05",
    )  # fmt: skip
    assert data["cell"] == "country DE, birth 1991, 2026-04"
    assert [one["release"] for one in data["spenders"]] == ["c"]
    none = document("ledger", "balance", "pay @standard", "--where", "birth=1990")
    assert (none["spent"], none["spenders"], none["cell"]) == (0, [], "birth 1990")
    for wrong, code in (
        (("--where", "country"), 2),
        (("--where", "birth=x"), 2),
        (("--where", "county=CH"), 4),
        (("--where", "birth=1999"), 4),
        (("--period", "winter"), 4),
        (("--group", "3"), 4),
    ):
        run("ledger", "balance", "pay @standard", *wrong, exit_code=code)
    assert "matches 2 rules" in run("ledger", "balance", "pay", exit_code=4)


def test_the_past_is_asked_like_the_present(folder: Path) -> None:
    assert "ALLOW asked" in run("release", "check", "asked.yaml", "--as-of", "1")
    assert "DENY asked" in run("release", "check", "asked.yaml", exit_code=3)
    then = document("release", "check", "asked.yaml", "--as-of", "2")
    assert then["ledger"]["seq"] == 2
    assert document("status", "--as-of", "2")["releases"] == 1
    assert (
        document("ledger", "balance", "pay @standard", "--as-of", "2")["spent"] == 0.1
    )
    explained = ("policy", "explain", "policy.yaml", "pay @standard", "--ledger")
    rules = document(*explained, "ledger.db", "--as-of", "2")["rules"]
    assert rules[0]["standing"]["spent"] == 0.1
    assert rules[0]["standing"]["cell"] == "country CH, birth 1991 to 1992, 2026-04"
    run("release", "fit", "asked.yaml", "--as-of", "1")
    run("release", "options", "asked.yaml", "--as-of", "1")
    assert "no entry 99" in run("status", "--as-of", "99", exit_code=2)
    assert "starts after" in run("status", "--as-of", "2001-01-01", exit_code=2)


def test_the_status_says_which_cell_is_fullest(folder: Path) -> None:
    output = run("status")
    assert "FULLEST CELL" in output
    assert "country CH, birth 1991 to 1992, 2026-04" in output
    rules = {one["rule"]: one for one in document("status")["rules"]}
    assert rules["all @standard"]["cell"] == "country CH, birth 1991 to 1992"


def test_a_search_that_ended_early_does_not_say_that_nothing_helps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("release", "options", "asked.yaml")
    assert ENDED_EARLY not in run(*args)
    assert document(*args)["ended_early"] is False
    monkeypatch.setattr(trials, "WORK_MAX", 3)
    output = run(*args, exit_code=3)
    assert ENDED_EARLY in output
    assert "no known single change" not in output
    assert document(*args, exit_code=3)["ended_early"] is True
    output = run("release", "fit", "asked.yaml", exit_code=3)
    assert output.startswith("nothing found, varying noise ")
    assert ENDED_EARLY in output
    monkeypatch.setattr(trials, "WORK_MAX", 16)
    output = run(*args)
    assert "add more noise" in output
    assert ENDED_EARLY in output


GAPS = """
modicum: policy/v1
name: gaps
units: {user: {id: user_id}}
schema: {attributes: {pay: high}}
policies: [{name: pay, when: '"pay" in m.attributes', unit: user, budget: {rho: 1}}]
"""
ROWS = """
release: rows
mechanisms:
  - {name: rows, mechanism: gaussian, attributes: [], cost: {user: {rho: 0.01}}}
"""


@pytest.mark.spec("DEC-12")
def test_what_no_rule_limits_is_denied_with_a_remedy_and_no_noise_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "policy.yaml").write_text(GAPS)
    (tmp_path / "rows.yaml").write_text(ROWS)
    run("init")
    remedy = (
        "add a rule to `policies` that matches, or  unmatched: allow  to the policy"
    )
    denied = run("release", "submit", "rows.yaml", exit_code=3)
    assert denied.startswith("DENY rows: no rule limits `rows`\n  NONE `rows`: ")
    assert f"no noise helps: {remedy}" in denied
    for vary in ("noise", "rho", "where"):
        fit = run("release", "fit", "rows.yaml", "--vary", vary, exit_code=3)
        assert fit.endswith(f"no rule limits `rows`: {remedy}\n")
    options = run("release", "options", "rows.yaml", exit_code=3)
    assert options.endswith(f"no rule limits `rows`: {remedy}\n")
    shown = run("release", "show", "rows", exit_code=4)
    assert "denied by unmatched `rows`" in shown
    data = document("release", "check", "rows.yaml", exit_code=3)
    assert (data["decision"], data["blocking"]) == ("deny", [])
    assert data["unmatched"] == ["rows"]
    entry = document("ledger", "list")["entries"][-1]
    assert (entry["kind"], entry["unmatched"]) == ("release-denied", ["rows"])
    # Under a policy that says so it is allowed, and the change is a loosening.
    (tmp_path / "policy.yaml").write_text(GAPS + "unmatched: allow\n")
    diff = run("policy", "diff", "active", "policy.yaml")
    assert "deny -> allow" in diff
    simulated = document("policy", "simulate", "policy.yaml")
    assert simulated["releases"][-1]["decision"] == "allow"
    run("policy", "activate", "policy.yaml", "--reason", "no risk in counts of rows")
    allowed = run("release", "submit", "rows.yaml")
    assert "note: unmatched, and allowed: `rows`" in allowed
    run("ledger", "verify")
