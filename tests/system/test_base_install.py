"""What `make demo` installs is enough, or a message names the extra to install."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name
from samples.environments import BASE, Environment, libraries

from modicum.core.extras import EXTRAS, extra_of

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "modicum"

#: Runs commands one after the other in a copy of the demo's folder; no process each.
_RUN = """
import contextlib, io, json, sys
import typer
from modicum.cli.main import app

command, found = typer.main.get_command(app), []
for words in json.load(sys.stdin):
    code, bug, printed = 0, "", io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            command.main(words, prog_name="modicum")
        except SystemExit as left:
            code = left.code
        except Exception as error:
            bug = repr(error)
    found.append((words, code, printed.getvalue(), bug))
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
        "risk split 1 a=1 b=1 --sensitivity a=1 --sensitivity b=1",
    ):
        assert code == 0, output


_ABOUT = "visits.csv --query SELECT(1) --unit patient_id"


NEEDS = {
    "query lint query.yaml": "query",
    "query plan query.yaml": "query",
    "query compile query.yaml": "query",
    "query run query.yaml --data visits.csv": "query",
    f"risk rdr {_ABOUT}": "query",
    f"risk choose {_ABOUT} --tau 0.8": "query",
    f"risk compare-groups {_ABOUT} --groups a --groups b": "query",
    "serve": "server",
    "plan compare --workload w1 --rounds 2 --solvers ilp --seeds 1": "plan",
    "plan simulate --workload w1 --rounds 2 --engine numba": "fast",
    "workload generate w1 --out w1.parquet": "tables",
}


def test_what_needs_an_extra_names_it(base: Environment, folder: Path) -> None:
    found = ran(base, folder, *NEEDS)
    for (command, extra), (code, output) in zip(NEEDS.items(), found, strict=True):
        assert code in (2, 4), output
        assert "error[MOD108]: " in output, f"{command}: {output}"
        assert f"help: pip install 'modicum[{extra}]'" in output, output


#: What Python's users call; each is to say what to install.
_PYTHON = """
import json
import modicum as mo

def said(call):
    try:
        call()
    except mo.UsageError as error:
        return [error.code.value, error.problems[0].help]

found = {name: said(lambda name=name: getattr(mo, name)) for name in mo.__all__}
print(json.dumps({name: one for name, one in found.items() if one} | {
    "rdr": said(lambda: mo.risk.rdr),
    "query": said(lambda: mo.load_query("query.yaml", "policy.yaml")),
    "connect": said(lambda: mo.connect("https://modicum.example")),
}))
"""


def test_python_names_the_extra(base: Environment, folder: Path) -> None:
    query, remote = (
        ["MOD108", f"pip install 'modicum[{extra}]'"] for extra in ("query", "remote")
    )
    assert _python(base, folder, _PYTHON) == {
        "count": query,
        "contract_risk": query,
        "synthetic_answers": query,
        "own_risk": query,
        "query_risk": query,
        "rdr": query,
        "query": query,
        "connect": remote,
    }


_EVERY_MODULE = """
import importlib, json, pkgutil

package = importlib.import_module("modicum.{0}")
for one in pkgutil.walk_packages(package.__path__, "modicum.{0}."):
    importlib.import_module(one.name)
print("null")
"""


@pytest.mark.parametrize(
    ("extra", "package"), [("server", "server"), ("remote", "client")]
)
def test_a_server_and_its_clients_need_no_other_extra(
    extra: str, package: str, tmp_path: Path
) -> None:
    env = Environment(tmp_path / "venv", f"modicum[{extra}]")
    _python(env, tmp_path, _EVERY_MODULE.format(package))


_SERVED = """
from modicum.core.document import from_python
from modicum.core.errors import UsageError
from modicum.server.problems import problem_response
from modicum.api.schema.escrow_input import RiskInput
from modicum.server.inputs.reader import read_input
from modicum.server.service.escrow_contracts import facts_of

try:
    facts_of(read_input(from_python({"contract": "c-1", "tau": 1}), RiskInput))
except UsageError as error:
    print(problem_response(error).body.decode())
"""


def test_a_route_names_the_extra(tmp_path: Path) -> None:
    env = Environment(tmp_path / "venv", "modicum[server]")
    answer = _python(env, tmp_path, _SERVED)
    assert (answer["status"], answer["code"]) == (409, "MOD108")
    assert answer["help"] == "pip install 'modicum[query]'"


def test_every_library_has_an_extra_that_brings_it() -> None:
    reserved = packages_distributions()
    for library, extra in EXTRAS.items():
        needed = {
            canonicalize_name(one.metadata["Name"])
            for one in libraries(f"modicum[{extra}]")
        } - {canonicalize_name(one.metadata["Name"]) for one in libraries("modicum")}
        assert set(map(canonicalize_name, reserved[library])) <= needed, library


def test_every_library_that_is_imported_is_needed_or_of_an_extra() -> None:
    """What is installed beside modicum is loaded by name, not imported."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        if "sandbox/programs" in path.as_posix():
            continue  # They run in a sandbox, on what it has.
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {(one.name.partition(".")[0], path) for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add((node.module.partition(".")[0], path))
    base = {canonicalize_name(one.metadata["Name"]) for one in libraries("modicum")}
    reserved = packages_distributions()
    known = EXTRAS.keys() | sys.stdlib_module_names | {"modicum"}
    for library, path in found:
        named = set(map(canonicalize_name, reserved.get(library, [])))
        is_brought = library in known or extra_of(library) or named & base
        assert is_brought, f"{path} imports {library}"
