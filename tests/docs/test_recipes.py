"""The recipes of CONTRIBUTING.md work: each is followed on a copy of the package."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

from samples.small import POLICY

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "modicum"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


class Copy:
    """A copy of the package, to be changed.

    Args:
        place: Where the copy goes.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.package = place / "src" / "modicum"
        shutil.copytree(SOURCES, self.package)  # With what is compiled already.

    def edit(self, file: str, after: str, line: str) -> None:
        """Put a line below the one that ends so, of which there is one."""
        path = self.package / file
        text = path.read_text(encoding="utf-8")
        assert text.count(f"{after}\n") == 1, (file, after)
        changed = text.replace(f"{after}\n", f"{after}\n{line}\n")
        path.write_text(changed, encoding="utf-8")

    def changed(self) -> set[str]:
        """Return the source files that are not as in the repository."""
        files = {one.relative_to(self.package) for one in self.package.rglob("*.py")}
        names = [str(one) for one in files]
        _, differing, new = filecmp.cmpfiles(SOURCES, self.package, names)
        return {*differing, *new}

    def run(self, script: str) -> str:
        """Return what a script prints that imports the copy."""
        paths = [str(self.package.parent), str(ROOT / "tests")]
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def shown(mark: str) -> str:
    """Return the code that CONTRIBUTING.md shows below a mark."""
    _, found, rest = CONTRIBUTING.partition(f"<!-- {mark} -->\n```python\n")
    assert found, mark
    return rest.partition("\n```\n")[0] + "\n"


# --- a kind of mechanism ------------------------------------------------------------

RELEASE = """
release: r-1
mechanisms:
  - mechanism: twice-laplace
    attributes: [age]
    sensitivity: {user: {l1: 3}}
    scale: 40
"""

RULE = """
  - {name: twice, when: 'm.mechanism == "twice-laplace"', unit: user, budget: 1.0}
extensions:"""

FOLLOWED = """
import json
from fractions import Fraction
from pathlib import Path

import jsonschema
from samples.small import workspace
from typer.testing import CliRunner

import modicum as mo
from modicum.accounting.mechanisms import discrete_laplace
from modicum.api.local.reservation_use import Use
from modicum.cli.main import app
from modicum.integrations.loader import Adapters
from modicum.policy.json_schema.release import release_schema

assert Path(mo.__file__).is_relative_to(Path.cwd()), mo.__file__
loss = discrete_laplace(sensitivity_l1=3, scale=Fraction(40)).loss()


def command(*words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


# A file is read and priced, and the policy names the kind.
checked = command("release", "check", "r.yaml", "--policy", "policy.yaml", "--json")
charged = {rule["rule"]: rule["alone"] for rule in checked["losses"]}
assert charged["twice @standard"] == charged["attr:age @standard"] == 0.075, charged
mechanism = {"mechanism": "twice-laplace", "attributes": ["age"], "scale": 40}
given = {"release": "r-1", "mechanisms": [mechanism]}
schema = jsonschema.Draft202012Validator(release_schema())
assert not schema.is_valid(given)
mechanism["sensitivity"] = {"user": {"l1": 3}}
assert schema.is_valid(given)

# So it is from Python; the ledger keeps it, and prices it again.
built = mo.twice_laplace(attributes=["age"], sensitivity={"user": mo.l1(3)}, scale=40,
                         name="twice")
ledger = workspace(Path.cwd())
decision = ledger.submit(mo.Release("r-1", mechanisms=[built]))
assert decision.allowed, decision.explain()


# Its noise is drawn twice.
class Ones(Adapters):
    def sampler(self):
        return self

    def check(self, law, scale, moved):
        assert (law, scale, moved) == ("laplace", 40, 3)

    def add(self, law, scale, values):
        return [value + 1 for value in values]


with Use(ledger, "r-1", Ones()) as use:
    assert use.mechanism("twice").loss("user").charged == loss
    assert use.noise("twice", [10, 20]) == [12, 22]
assert not ledger.verify().unpriced.releases

# It has its place in account, with the noise for a target.
asked = ("account", "mechanism", "twice-laplace", "sensitivity=3", "--json")
assert command(*asked, "scale=40")["curve"]["eps"] == 0.075
assert command(*asked, "--for", "eps=1")["parameters"]["scale"] == 3
"""


def test_a_kind_of_mechanism_takes_three_files(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    module = "accounting/mechanisms/twice_laplace.py"
    text = shown(f"file: src/modicum/{module}")
    (copy.package / module).write_text(text, encoding="utf-8")
    row = '("twice-laplace", "twice_laplace", "account release"),'
    assert f"`{row}`" in CONTRIBUTING
    copy.edit("accounting/mechanisms/__init__.py", "_TABLE: Final = (", f"    {row}")
    imported = f"from modicum.accounting.mechanisms.twice_laplace import {_BUILDER}"
    copy.edit("__init__.py", "if TYPE_CHECKING:", f"    {imported}")
    place = '("modicum.accounting.mechanisms.twice_laplace", "describe_twice_laplace")'
    copy.edit("__init__.py", "_PUBLIC = {", f'    "twice_laplace": {place},')
    copy.edit("__init__.py", "__all__ = [", '    "twice_laplace",')
    assert len(copy.changed()) == 3

    policy = POLICY.replace("\nextensions:", RULE)
    (tmp_path / "policy.yaml").write_text(policy)
    (tmp_path / "r.yaml").write_text(RELEASE)
    copy.run(FOLLOWED)


_BUILDER = "describe_twice_laplace as twice_laplace"

# --- an error code ------------------------------------------------------------------

RAISED = """
    if identifier == "r-13":
        with found.guard():
            raise fail(
                Code.UNLUCKY, "13 is unlucky", help="take another number"
            )
"""

REFUSED = """
import importlib.util
import sys
from pathlib import Path

from typer.testing import CliRunner

from modicum.cli.main import app

done = CliRunner().invoke(app, ["release", "check", "r.yaml", "--policy", "p.yaml"])
assert done.exit_code == 4, done.output
assert done.output.startswith("error[MOD199]: 13 is unlucky"), done.output


def passes(file, test):
    spec = importlib.util.spec_from_file_location("tried", Path("tests") / file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tried"] = module
    spec.loader.exec_module(module)
    try:
        getattr(module, test)()
    except AssertionError:
        return False
    return True


explained = "docs/test_docs.py", "test_every_error_code_is_explained_once"
shown = "golden/errors/test_gallery.py", "test_the_gallery_shows_every_code_of_files"
assert not passes(*explained) and not passes(*shown)

page = Path("docs/reference/errors.md")
row = "| MOD199 | the number 13 | a release that nobody dares | another number |"
page.write_text(page.read_text().replace("\\n| MOD101 ", f"\\n{row}\\n| MOD101 "))
case = Path("tests/golden/errors/release-unlucky")
case.mkdir()
(case / "expected.txt").write_text(done.output)
assert passes(*explained) and passes(*shown)
"""


def test_an_error_code_is_raised_and_must_be_explained(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    for folder in ("docs", "tests/docs", "tests/golden/errors"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "README.md").write_text("")
    copy.edit("core/errors.py", "    # Structure and names", '    UNLUCKY = "MOD199"')
    read = '        identifier = release_id(fields.take("release"), "the release id")'
    copy.edit("release/parser.py", read, RAISED.strip("\n"))
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "r.yaml").write_text(RELEASE.replace("r-1", "r-13"))
    copy.run(REFUSED)
