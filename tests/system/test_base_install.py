"""What `make demo` installs is enough, or a message names the extra to install."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from samples.environments import BASE, Environment

ROOT = Path(__file__).parents[2]

#: Runs commands one after the other in a copy of the demo's folder; no process each.
_RUN = """
import json, sys
from typer.testing import CliRunner
from modicum.cli.main import app

found = []
for words in json.load(sys.stdin):
    done = CliRunner().invoke(app, words, prog_name="modicum")
    bug = done.exception
    bug = "" if bug is None or isinstance(bug, SystemExit) else repr(bug)
    found.append((words, done.exit_code, done.output, bug))
json.dump(found, sys.stdout)
"""

#: Prints, for every command, its help and a use that the command line accepts.
_USES = """
import json, sys
import typer
from modicum.cli.main import app

def uses(command, path=()):
    yield [*path, "--help"]
    for name, inner in getattr(command, "commands", {}).items():
        yield from uses(inner, (*path, name))
    if not hasattr(command, "commands"):
        words = []
        for one in command.params:
            if one.required:
                named = [] if one.param_type_name == "argument" else [one.opts[0]]
                words += [*named, "1"]  # No such file, release or rule.
        yield [*path, *words]

json.dump(list(uses(typer.main.get_command(app))), sys.stdout)
"""

TABLES = """
modicum: tables/v1
tables:
  visits:
    row_id: visit_id
    columns:
      visit_id: {type: integer}
      patient_id: {type: text}
      clinic: {type: text, values: [north, south]}
"""

QUERY = """
release: asked
query:
  tables: tables.yaml
  sql: SELECT clinic, COUNT(*) AS visits FROM visits GROUP BY clinic
  bounds: {patient: 1}
  noise: laplace
  loss: {patient: {eps: 0.01}}
"""


def _python(env: Environment, folder: Path, code: str, given: str = "") -> Any:
    """Return the JSON that a program prints in an environment."""
    done = subprocess.run(
        [env.bin / "python", "-c", code],
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("MODICUM_")},
            "MODICUM_ACTOR": "you",
            "COLUMNS": "80",
        },
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def ran(env: Environment, folder: Path, *lines: str) -> list[tuple[int, str]]:
    """Return how commands left, and what they printed; none may hit a bug."""
    given = json.dumps([line.split() for line in lines])
    found = _python(env, folder, _RUN, given)
    assert [one for one in found if one[3] or "MOD900" in one[2]] == []
    return [(code, output) for _, code, output, _ in found]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("base") / "venv")


@pytest.fixture(scope="module")
def demo(base: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's folder, with a table and a query about it."""
    place = tmp_path_factory.mktemp("work") / "demo"
    assert ran(base, place.parent, "demo --dir demo")[0][0] == 0
    (place / "tables.yaml").write_text(TABLES)
    (place / "query.yaml").write_text(QUERY)
    (place / "visits.csv").write_text("visit_id,patient_id,clinic\n1,p,north\n")
    return place


@pytest.fixture
def folder(demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo, tmp_path / "demo"))


def test_make_demo_installs_the_base() -> None:
    extras = BASE.removeprefix("modicum")
    assert f"--editable .{extras}\n" in (ROOT / "Makefile").read_text()


def test_no_command_is_a_bug_without_extras(base: Environment, folder: Path) -> None:
    uses = [" ".join(one) for one in _python(base, folder, _USES)]
    assert len(uses) > 200, "the help and a use of every command"
    for use, (code, output) in zip(uses, ran(base, folder, *uses), strict=True):
        assert code == 0 or not use.endswith("--help"), output
        assert "Missing" not in output, output  # It got past its required words.


def test_what_needs_no_extra_runs_without(base: Environment, folder: Path) -> None:
    for code, output in ran(
        base,
        folder,
        "audit export -o demo.modicum-audit",
        "audit report demo.modicum-audit -o statement.html",
        "escrow list",
        "query init visits.csv --out draft.yaml",
        "query lint tables.yaml",
        "query schema",
        "risk split a=1 b=1 --epsilon 1",
    ):
        assert code == 0, output


_ABOUT = "visits.csv --query SELECT(1) --unit patient_id"


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("query lint query.yaml", "query"),
        ("query plan query.yaml", "query"),
        ("query lower query.yaml", "query"),
        ("query run query.yaml --data visits.csv", "query"),
        (f"risk rdr {_ABOUT}", "query"),
        (f"risk choose {_ABOUT} --tau 0.8", "query"),
        (f"risk compare-groups {_ABOUT} --groups a --groups b", "query"),
        ("serve", "server"),
        ("plan compare --workload w1 --rounds 2 --solvers ilp --seeds 1", "plan"),
        ("plan simulate --workload w1 --rounds 2 --plot picture.svg", "plots"),
        ("workload generate w1 --out w1.parquet", "tables"),
        ("plan simulate --workload w1 --rounds 2 --engine numba", "fast"),
    ],
)
def test_what_needs_an_extra_names_it(
    command: str, extra: str, base: Environment, folder: Path
) -> None:
    ((code, output),) = ran(base, folder, command)
    assert code in (2, 4), output
    assert "error[MOD108]" in output
    assert re.search(rf"help: pip install 'modicum\[{extra}\]'", output), output
