"""The manual is true: links resolve, commands print what is shown, tables are complete.

A page marks what is tried, by an HTML comment on the line above a code block:

    <!-- run -->                  console or python: run it in the page's folder
    <!-- run: other numbers -->   console: the same, but numbers may differ
    <!-- output -->               text: what the python block above it printed
    <!-- file: NAME -->           write the block to a file of the page's folder
    <!-- append: NAME -->         write the block to the end of that file
    <!-- policy -->               yaml: a policy without mistakes or warnings
    <!-- release acme-health -->  yaml: a release that can be priced under the example

A page begins in a fresh copy of the demo's folder, or, with `<!-- folder: empty -->`
anywhere on it, in an empty one. In a console block, a line that begins with `$ ` is a
command, which may end in `# exit 3`; what follows is all that it prints. There, `...`
stands for anything: within a line, or, alone on a line, for any lines. Times and
hashes may differ.

The README begins with what `make demo` installs, and nothing else. A line that runs
`.venv/bin/pip install` adds extras; without them, what follows must fail and name them.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.documents import check_described
from samples.environments import Environment
from samples.sandboxed import sandbox, users
from samples.tools import tool
from typer.testing import CliRunner

import modicum
from modicum.accounting import COORDINATES, FILTERS, ORDERS
from modicum.accounting.filters.budget import Shares
from modicum.accounting.mechanisms import (
    ACCOUNT_KINDS,
    MECHANISM_KINDS,
    RELEASE_KINDS,
)
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.core.errors import Code
from modicum.core.yaml_reader import read_document
from modicum.policy.compiler import compile_text
from modicum.release import parse_release, price
from modicum.server.settings.reader import load_settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
EXAMPLE = ROOT / "src" / "modicum" / "ops" / "examples" / "acme-health"
README = ROOT / "README.md"
PAGEVIEWS = ROOT / "examples" / "pageviews"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

#: What `make demo` runs; a test compares it with the Makefile.
MAKE_DEMO = "modicum demo acme-health --dir build/demo"

# --- pages and their blocks --------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced code block with a mark above it."""

    page: Path
    line: int
    mark: str
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


_BLOCK = re.compile(
    r"^<!-- (?P<mark>[^>]+?) -->\n```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found["mark"],
            found["language"],
            found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


def marked(mark: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.mark == mark]


def prose(page: Path) -> str:
    """Return a page without its code, in blocks or in lines."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- running what the pages show ---------------------------------------------


class Folder:
    """The folder a page works in, and a shell that stays there between commands.

    Args:
        place: The folder.
        bin_folder: Where commands are looked for first.
        in_process: Whether modicum runs in this process, which is faster.
    """

    def __init__(
        self, place: Path, bin_folder: Path, *, in_process: bool = True
    ) -> None:
        self.place = place
        self._in_process = in_process
        self._path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""

    def run(self, command: str) -> tuple[str, int]:
        """Return what a command prints, and its exit code."""
        if command == "make demo":
            command = MAKE_DEMO
        tokens = shlex.split(command)
        if tokens[0] == "cd":
            self.place = self.place / tokens[1]
            return "", 0
        os.chdir(self.place)
        plain = tokens[0] == "modicum" and not re.search(r"[|<>;&*$]", command)
        if plain and self._in_process:
            result = CliRunner().invoke(app, tokens[1:], prog_name="modicum")
            assert result.exception is None or isinstance(
                result.exception, SystemExit
            ), result.exception
            return result.output, result.exit_code
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": self._path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout, done.returncode

    def write(self, block: Block) -> None:
        """Write a block to the file that its mark names, or to that file's end."""
        how, _, name = block.mark.partition(": ")
        with (self.place / name).open("w" if how == "file" else "a") as file:
            file.write(block.text)

    def execute(self, block: Block) -> None:
        """Run a Python block; later blocks of the page see its names."""
        os.chdir(self.place)
        if not self._in_process:
            self.printed, left = self.run(f"python -c {shlex.quote(block.text)}")
            assert not left, self.printed
            return
        code = compile("\n" * block.line + block.text, str(block), "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        self.printed = out.getvalue()


def steps(block: Block) -> Iterator[tuple[str, int, str]]:
    """Yield each command of a console block, its exit code and what it prints."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block}: begins with output"
    for line, printed in zip(parts[1::2], parts[2::2], strict=True):
        found = re.fullmatch(r"(.*?)(?:\s+# exit (\d))?", line)
        assert found is not None
        yield found[1], int(found[2] or 0), printed


_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_HASH = re.compile(r"(?<![\w.])([0-9a-f]{64}|[0-9a-f]{12})(?!\w)")


def settled(text: str) -> str:
    """Return a text without what differs from run to run."""
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return _HASH.sub("<hash>", _TIME.sub("<time>", "\n".join(lines)))


def agrees(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed; `...` stands for anything."""
    pattern = ""
    for line in settled(shown).splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, settled(printed) + "\n" * bool(printed)) is not None


def compare(where: str, shown: str, printed: str) -> None:
    if not agrees(shown, printed):
        lines = difflib.unified_diff(
            settled(shown).splitlines(),
            settled(printed).splitlines(),
            "what the page shows",
            "what is printed",
            lineterm="",
        )
        pytest.fail(f"{where}\n" + "\n".join(lines))


@pytest.fixture(scope="session")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the command `modicum`, for commands that need a shell."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "modicum"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m modicum "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the example organization as `make demo` leaves it."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    env = {"MODICUM_ACTOR": "you"}
    result = CliRunner(env=env).invoke(app, ["demo", "--dir", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def folder(
    tmp_path: Path,
    bin_folder: Path,
    demo_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Folder]:
    """Yield the folder a page begins in."""
    monkeypatch.chdir(tmp_path)  # Undone at the end; pages move about.
    monkeypatch.setenv("MODICUM_ACTOR", "you")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("MODICUM_VAULT", "MODICUM_VAULT_KEYS", "MODICUM_SANDBOX_UID"):
        monkeypatch.delenv(name, raising=False)
    if os.geteuid() == 0:  # As root, programs run as another user.
        monkeypatch.setenv("MODICUM_SANDBOX_UID", str(users()))
    place = tmp_path / "page"
    page: Path | None = getattr(request.node, "callspec", None) and (
        request.node.callspec.params.get("page")
    )
    if page is not None and "<!-- folder: empty -->" in page.read_text():
        place.mkdir()
    else:
        shutil.copytree(demo_folder, place)
    yield Folder(place, bin_folder)
    for file in place.rglob("*.pid"):  # A page that failed has not ended its server.
        pid = file.read_text().strip()
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(place):
                os.kill(int(pid), signal.SIGTERM)


def _tried(page: Path) -> bool:
    return any(block.mark == "run" for block in blocks(page))


def try_block(block: Block, folder: Folder) -> None:
    """Do as a block says, and compare what it shows."""
    if re.match("(file|append): ", block.mark):
        folder.write(block)
    elif block.mark == "run" and block.language == "python":
        folder.execute(block)
    elif block.mark.startswith("run"):
        for command, exit_code, shown in steps(block):
            printed, code = folder.run(command)
            assert code == exit_code, f"{block}: `{command}` left with {code}"
            texts = [shown, printed]
            if block.mark == "run: other numbers":
                texts = [re.sub(r"\d+", "0", one) for one in texts]
            compare(f"{block}: `{command}`", *texts)
    elif block.mark == "output":
        compare(str(block), block.text, folder.printed)


@pytest.mark.suite("docs")
@pytest.mark.parametrize(
    "page", [p for p in PAGES if _tried(p) and p != README], ids=name_of
)
def test_what_a_page_shows_is_what_happens(page: Path, folder: Folder) -> None:
    if page.stem in {"run-an-escrow", "census-signal"}:
        sandbox()  # Without one the page is skipped, or fails in CI.
    for block in blocks(page):
        try_block(block, folder)


_INSTALL = re.compile(r"^\$ \.venv/bin/pip install .*'\.(\[[\w,]+\])'\n", re.M)


@pytest.mark.suite("docs")
def test_the_readme_runs_with_the_extras_that_it_installs(
    folder: Folder, tmp_path: Path
) -> None:
    env, bare = Environment(tmp_path / "venv"), Environment(tmp_path / "bare")
    root = tmp_path / "checkout"
    views = shutil.ignore_patterns("*.csv", "*.db*")
    shutil.copytree(PAGEVIEWS, root / "examples" / PAGEVIEWS.name, ignore=views)
    folder = Folder(root, env.bin, in_process=False)
    missing = ""
    for number, written in enumerate(blocks(README)):
        install = _INSTALL.search(written.text)
        block = replace(written, text=_INSTALL.sub("", written.text))
        if install is not None:
            missing = f"modicum{install[1]}"
            env.install(missing)
        if missing and block.mark.startswith("run"):
            copy = Path(shutil.copytree(root, tmp_path / f"bare-{number}"))
            without = Folder(
                copy / folder.place.relative_to(root), bare.bin, in_process=False
            )
            output = "".join(without.run(command)[0] for command, _, _ in steps(block))
            assert "error[MOD108]" in output, f"{block}: {output}"
            assert f"pip install '{missing}'" in output, f"{block}: {output}"
            assert "MOD900" not in output, f"{block}: {output}"
        try_block(block, folder)
    assert missing, "the README installs an extra"


def test_numbers_that_the_readme_shows_are_useful() -> None:
    (block,) = (one for one in marked("run: other numbers") if one.page == README)
    rows = [re.findall(r",(\d+)", line) for line in block.text.splitlines()]
    shown = [tuple(map(int, row)) for row in rows if len(row) == 3]
    assert len(shown) >= 4
    assert all(low < value < high < low + value / 5 for value, low, high in shown)


def test_make_demo_is_what_the_pages_say() -> None:
    assert f"$(BIN)/{MAKE_DEMO}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("block", marked("policy"), ids=str)
def test_a_policy_that_is_shown_compiles(block: Block) -> None:
    compiled = compile_text(block.text.encode(), str(block))
    compiled.refuse_mistakes()
    assert compiled.warnings == ()


@pytest.mark.parametrize("block", marked("release acme-health"), ids=str)
def test_a_release_that_is_shown_can_be_priced(block: Block) -> None:
    compiled = compile_text((EXAMPLE / "policy.yaml").read_bytes(), "policy.yaml")
    vocabulary = compiled.policy.vocabulary
    node = read_document(block.text.encode(), str(block))
    assert price(parse_release(node, vocabulary), vocabulary).mechanisms


_SETTINGS = re.compile(r"^```yaml\n(modicum: server/v1\n.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_of_a_server_that_are_shown_can_be_read(
    page: Path, tmp_path: Path
) -> None:
    for number, text in enumerate(_SETTINGS.findall(page.read_text(encoding="utf-8"))):
        place = tmp_path / f"{number}.yaml"
        place.write_text(text)
        settings = load_settings(place, alone=True)
        # Where one person comes in by a link, nobody needs a file.
        known = settings.api_tokens or settings.oidc or settings.local_people
        assert known, name_of(page)


def test_pages_show_settings() -> None:
    shown = [one for one in PAGES if _SETTINGS.search(one.read_text(encoding="utf-8"))]
    assert DOCS / "how-to" / "deploy.md" in shown
    assert len(shown) >= 4


def test_every_mark_is_known_and_stands_on_a_block() -> None:
    known = re.compile(
        r"run(: other numbers)?|output|(file|append): \S+|policy|release acme-health"
        r"|(?P<beside>folder: empty|shape: \w+( in \w+)?|end)"
    )
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        marks = re.findall(r"^<!-- ([^>]+?) -->$", text, re.MULTILINE)
        found = [known.fullmatch(mark) for mark in marks]
        assert None not in found, name_of(page)
        above = [one[0] for one in found if one and not one["beside"]]
        assert above == [block.mark for block in blocks(page)], name_of(page)


def test_the_pages_that_teach_are_tried() -> None:
    teaching = [*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")]
    assert len(teaching) >= 6
    assert all(_tried(page) for page in [ROOT / "README.md", *teaching])


# --- links and words ---------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as they are made on the web."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"https?://|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (page.parent / file).resolve() if file else page
        assert place.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor in anchors(place), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_stands_alone(page: Path) -> None:
    """No page depends on the machine it was written on, or names a package host."""
    text = page.read_text(encoding="utf-8")
    elsewhere = r"(?<![\w.~)])/(?:work|home|root|Users)\b|\bshared/"
    hosts = r"\b(?:pypi\.org|pythonhosted\.org|ghcr\.io|docker\.io|npmjs\.com)\b"
    assert re.findall(f"{elsewhere}|{hosts}", text) == []


def _own_pages() -> list[Path]:
    folders = ("tutorials", "how-to", "reference", "explanation")
    return [page for folder in folders for page in sorted((DOCS / folder).glob("*.md"))]


@pytest.mark.parametrize("page", _own_pages(), ids=name_of)
def test_a_page_says_whom_it_is_for_and_can_be_found(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[2].startswith("*For "), "the third line says whom the page is for"
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert f"({page.relative_to(DOCS)})" in index


# --- tables that must be complete --------------------------------------------


def first_cells(page: Path, pattern: str) -> list[str]:
    """Return the first cells of a page's table rows, if they match a pattern."""
    rows = re.findall(r"^\| `?([^`|]+?)`? *\|", page.read_text(), re.MULTILINE)
    return [cell for cell in rows if re.fullmatch(pattern, cell)]


def test_every_error_code_is_explained_once() -> None:
    listed = first_cells(REFERENCE / "errors.md", r"MOD\d+")
    assert sorted(listed) == sorted(code.value for code in Code)


def test_every_exit_code_is_explained_once() -> None:
    listed = first_cells(REFERENCE / "exit-codes.md", r"\d+")
    assert listed == [str(code.value) for code in Exit]


def test_every_public_name_is_explained_once() -> None:
    listed = first_cells(REFERENCE / "python.md", r"mo\.\w+")
    assert sorted(listed) == sorted(f"mo.{name}" for name in modicum.__all__)


def test_every_kind_of_mechanism_is_described() -> None:
    """Each in the format of releases with all its keys, and with its curve."""
    page = (REFERENCE / "release-format.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (`[^|]+`) \|", page, re.MULTILINE)
    described = {
        (key, kind) for key, kinds in rows for kind in kinds[1:-1].split("`, `")
    }
    for kind in RELEASE_KINDS.values():
        sensitivity = [] if kind.norm is None else ["sensitivity"]
        for key in [*kind.described, *sensitivity]:
            assert (key, kind.name) in described
    assert all(f"`{name}`" in page for name in MECHANISM_KINDS)
    curves = (REFERENCE / "accounting.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in curves for name in {*ACCOUNT_KINDS, *RELEASE_KINDS})


def test_the_accounting_page_names_the_grid_and_the_shares() -> None:
    text = (REFERENCE / "accounting.md").read_text(encoding="utf-8")
    orders = re.search(r"^Orders: (.+(?:\n.+)*)\.$", text, re.MULTILINE)
    assert orders is not None
    listed = re.findall(r"[\d.]+(?:e\d+)?", orders[1])
    assert [Fraction(order) for order in listed] == list(ORDERS)
    assert f"{COORDINATES} integers" in text
    for name, shares in FILTERS.items():
        if not isinstance(shares, Shares):
            assert f"`{name}`" in text
            continue
        row = re.search(rf"^\| `{name}` \|(.+)\|$", text, re.MULTILINE)
        assert row is not None, name
        shown = [cell.strip().removeprefix("δ·") for cell in row[1].split("|")]
        each = [share for _, share in shares.orders] or [Fraction(0)]
        if shares.mu2:
            each.insert(0, shares.mu2)
        elif len(set(each)) == 1:
            each = each[:1]  # One column for all orders.
        assert list(map(Fraction, shown)) == [shares.mechanisms, shares.rho, *each]


def _known_keys(text: str, what: str) -> list[str]:
    """Return the keys that the program says a mapping may have."""
    place = Path("unknown.yaml")
    place.write_text(text)
    command = ["policy", "lint"] if what == "policy" else ["release", "check"]
    output = CliRunner().invoke(app, [*command, str(place)]).output
    found = re.search(r"known keys: (.+)", output)
    assert found is not None, output
    return found[1].split(", ")


@pytest.mark.parametrize("what", ["policy", "release", "mechanism"])
def test_every_key_of_the_formats_is_described(folder: Folder, what: str) -> None:
    os.chdir(folder.place)
    policy = Path("policy.yaml").read_text()
    release = Path("releases/01-prevalence-by-region.yaml").read_text()
    text = {
        "policy": policy + "\nnonsense: 1\n",
        "release": release + "nonsense: 1\n",
        "mechanism": release + "    nonsense: 1\n",
    }[what]
    page = "policy-format.md" if what == "policy" else "release-format.md"
    described = first_cells(REFERENCE / page, r"[\w.<>]+")
    labels = {"ml", "audience"}
    missing = set(_known_keys(text, what)) - set(described) - labels
    assert not missing


@pytest.mark.parametrize(
    ("file", "before", "described_in"),
    [
        ("query.yaml", "  noise: laplace", "query-format.md"),
        ("tables.yaml", "    row_id: visit_id", "tables-format.md"),
        ("tables.yaml", "type: integer", "tables-format.md"),
    ],
)
def test_every_key_of_queries_and_tables_is_described(
    busy_folder: Folder, file: str, before: str, described_in: str
) -> None:
    place = busy_folder.place / file
    text = place.read_text()
    between = "\n" + " " * (len(before) - len(before.lstrip()))
    separator = ", " if between == "\n" else between
    assert text.count(before) == 1
    place.write_text(text.replace(before, f"{before}{separator}nonsense: 1"))
    os.chdir(busy_folder.place)
    output = CliRunner().invoke(app, ["query", "plan", "query.yaml"]).output
    found = re.search(r"known keys: (.+)", output)
    assert found is not None, output
    described = first_cells(REFERENCE / described_in, r"[\w.<>]+")
    assert not set(found[1].split(", ")) - set(described)


# --- JSON documents ----------------------------------------------------------

#: The sections of json.md, and commands that print what each describes.
DOCUMENTS = {
    "A decision": (
        "release check releases/04-cohort-diagnosis.yaml",
        "release submit releases/07-new.yaml",
        "release check releases/04-cohort-diagnosis.yaml --policy asks.yaml",
    ),
    "What fits": (
        "release fit releases/04-cohort-diagnosis.yaml",
        "release fit releases/05-salary-bands.yaml",
    ),
    "Options": ("release options releases/04-cohort-diagnosis.yaml",),
    "The balance of a cell": ("ledger balance 'attr:diagnosis @standard'",),
    "Recorded releases": ("release backfill past-releases.yaml",),
    "A release": (
        "release show r-0007",
        "release show sampled --ledger sampled.db",
    ),
    "Releases": ("release list",),
    "Status": ("status",),
    "The entries of a ledger": ("ledger list",),
    "A verification": ("ledger verify",),
    "A backup": ("db backup copy.db",),
    "A ledger that was restored": (
        "db restore backup.db --ledger restored.db --no-head 2> notes.txt",
    ),
    "Tables that are up to date": ("db upgrade", "db upgrade --check"),
    "What the doctor found": ("doctor",),
    "A new ledger": ("init --ledger new.db",),
    "A policy that was checked": ("policy lint policy.yaml", "policy lint warn.yaml"),
    "Policies that were checked": ("policy lint policy.yaml warn.yaml",),
    "A policy that was compiled": (
        "policy compile policy.yaml",
        "policy compile warn.yaml",
    ),
    "Rules that are redundant": ("policy prune policy.yaml",),
    "The active policy": ("policy show",),
    "The text of a policy": ("policy fmt policy.yaml",),
    "A file that was formatted": (
        "policy fmt policy.yaml --check",
        "policy fmt policy.yaml --write",
    ),
    "An activation": (
        "policy activate strict.yaml --reason less --dry-run",
        "policy activate policy.yaml --reason back --dry-run --ledger people.db",
        "policy activate strict.yaml --reason less --accept-conflict attr:diagnosis"
        " --accept-conflict attr:lab_result --accept-conflict attr:salary",
    ),
    "Votes": (
        "release reject releases/07-new.yaml --reason no --actor olga"
        " --ledger people.db",
        "policy approve policy.yaml --reason yes --actor olga --ledger people.db",
    ),
    "Approvals": ("release approvals releases/07-new.yaml --ledger people.db",),
    "A remark": ("ledger annotate seen --about r-0007",),
    "A disclosure": ("ledger disclose disclosure.yaml",),
    "An entry of a ledger": ("ledger show 1",),
    "Policy tests that were run": ("policy test policy.yaml",),
    "The differences of two policies": (
        "policy diff active strict.yaml --ledger ledger.db",
    ),
    "A simulation": ("policy simulate strict.yaml",),
    "Rules that are explained": (
        "policy explain policy.yaml cat:finance/member --ledger ledger.db",
        "policy explain strict.yaml attr:diagnosis --ledger ledger.db",
    ),
    "A conversion": (
        "account convert --from rho=0.1 --delta 1e-6",
        "account convert --from eps=1,delta=1e-9 --delta 1e-6",
        "account convert --from eps=1 --to mu",
        "account convert --from eps=1 --to rho",
        "account convert --from mu=1 --to rdp --order 4",
        "account convert --from rdp=4:0.5 --delta 1e-6",
    ),
    "The known conversions": ("account convert --list",),
    "The cost of a mechanism": (
        "account mechanism gaussian --for eps=1,delta=1e-6 --delta 1e-6",
    ),
    "The known mechanisms": ("account mechanism --list",),
    "The effect of a sample": ("account subsample gaussian sigma=1 --rate 0.01",),
    "A joint loss": ("account compose question.yaml",),
    "A batch": ("account batch batch.yaml --delta 1e-6",),
    "A simulated plan": (
        "plan simulate --workload w1 --rounds 2 --compare fcfs --round-times",
    ),
    "Planners that were compared": (
        "plan compare --workload w1 --rounds 2 --solvers fcfs,dpk --seeds 2",
    ),
    "Queries and tables that were checked": (
        "query lint query.yaml tables.yaml --policy policy.yaml",
    ),
    "The plan of a query": ("query plan query.yaml", "query plan discovered.yaml"),
    "Answers to a query": (
        "query run query.yaml --data visits=visits.csv 2>/dev/null",
    ),
    "A mistake": ("release check nothing.yaml",),
}


QUESTION = """
format: composition/v1
axes: {day: [0, 7]}
entries:
  - {id: a, cost: {rho: 0.1}, where: {day: [0, 3]}}
target: substitute
delta: 1e-6
"""


BATCH = """
format: batch/v1
mechanisms:
  - {kind: laplace, scale: 10, times: 3}
"""


SAMPLED = """
release: sampled
mechanisms:
  - mechanism: laplace
    attributes: []
    scale: 100
    sensitivity: {patient: {l1: 1}}
    sampling: {unit: patient, rate: 0.1}
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


@pytest.fixture
def busy_folder(folder: Folder) -> Folder:
    """Return the demo's folder with a release to reserve and a policy to warn of."""
    new = (folder.place / "releases" / "01-prevalence-by-region.yaml").read_text()
    new = new.replace("release: prevalence", "release: new").replace("14", "140")
    (folder.place / "releases" / "07-new.yaml").write_text(new)
    policy = (folder.place / "policy.yaml").read_text()
    warned = policy.replace('global, when: "true"', "global, when: 'm.ml == \"none\"'")
    (folder.place / "warn.yaml").write_text(f"{warned}\nunmatched: allow\n")
    strict = policy.replace("high: 1}", "high: 0.7}").replace(
        "    country:", "    weight: [low, {}]\n    country:"
    )
    (folder.place / "strict.yaml").write_text(strict)
    requests = 'approvals: [{when: "true", need: 1, from: [officer]}]'
    (folder.place / "asks.yaml").write_text(f"{policy}\n{requests}\n")
    people = f"{requests}\nroles: {{officer: [olga, pavel]}}\n"
    activation = "activation: {need: 1, from: [officer]}"
    (folder.place / "people.yaml").write_text(f"{policy}\n{people}{activation}\n")
    folder.run("modicum init --policy people.yaml --ledger people.db")
    votes = "releases/07-new.yaml --reason yes --actor olga --ledger people.db"
    folder.run(f"modicum release approve {votes}")
    (folder.place / "disclosure.yaml").write_text(
        "{disclosure: d-1, what: counts, attributes: all, reason: law}"
    )
    (folder.place / "question.yaml").write_text(QUESTION)
    (folder.place / "batch.yaml").write_text(BATCH)
    (folder.place / "sampled.yaml").write_text(SAMPLED)
    (folder.place / "tables.yaml").write_text(TABLES)
    (folder.place / "query.yaml").write_text(QUERY)
    hidden = re.sub(r", values: \[[^]]*\]", "", TABLES)
    (folder.place / "hidden.yaml").write_text(hidden)
    found = QUERY.replace("tables.yaml", "hidden.yaml")
    found += "  discover: {delta: 1e-9}\n"
    (folder.place / "discovered.yaml").write_text(found)
    (folder.place / "visits.csv").write_text("visit_id,patient_id,clinic\n1,p,north\n")
    folder.run("modicum db backup backup.db")
    folder.run("modicum init --policy policy.yaml --ledger sampled.db")
    folder.run("modicum release submit sampled.yaml --ledger sampled.db")
    return folder


@pytest.mark.parametrize("section", DOCUMENTS)
def test_every_key_of_a_json_document_is_described(
    section: str, busy_folder: Folder
) -> None:
    outputs = [
        busy_folder.run(f"modicum {one} --json")[0] for one in DOCUMENTS[section]
    ]
    check_described(section, map(json.loads, outputs))


# --- generated pages ---------------------------------------------------------


def test_the_command_line_reference_is_current() -> None:
    page: str = tool("cli_reference").page()
    shown = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert shown == page, "run .venv/bin/python tools/cli_reference.py"


def test_the_tables_of_json_documents_are_current() -> None:
    shown = (REFERENCE / "json.md").read_text(encoding="utf-8")
    page: str = tool("json_reference").page(shown)
    assert page.count("<!-- shape: ") > 15
    assert shown == page, "run .venv/bin/python tools/json_reference.py"


def test_the_picture_of_the_packages_is_current() -> None:
    drawing = tool("architecture")
    shown = drawing.PICTURE.read_text(encoding="utf-8")
    assert shown == drawing.picture(), "run .venv/bin/python tools/architecture.py"


@pytest.mark.parametrize(
    "page",
    [DOCS / "explanation" / "architecture.md", ROOT / "CONTRIBUTING.md"],
    ids=name_of,
)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`([a-z_/]+/(?:[a-z_]+\.py)?)`", page.read_text("utf-8"))
    places = [ROOT / "src" / "modicum", ROOT]
    missing = [one for one in named if not any((at / one).exists() for at in places)]
    assert len(named) > 5
    assert not missing
