"""What the tests are worth: how many small faults in the code make a test fail.

Run it by `make mutants`. A sample of the faults that Cosmic Ray makes in the bottom
packages is tried one by one, in copies of the last commit. The quick tests that run
a changed line come first; a fault that they miss is tried on those of other suites, and
on those that draw examples, with all examples.

The shares are a lower bound. Only lines that a test runs in its own process count, and
of tests that share a fixture, the first one does. Pages of the manual are left out,
since their servers take the same ports in each copy; and tests of the second round that
fail without any fault, which are named.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import queue
import random
import resource
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
COMMIT = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"],
    cwd=ROOT, capture_output=True, text=True, check=True,
).stdout.strip()  # fmt: skip
#: What is found out of one commit is kept, and not found out again.
BUILD = ROOT / "build" / "mutants" / COMMIT
SRC = Path("src", "modicum")
PACKAGES = ("core", "accounting", "release", "policy", "ledger")
#: What tests use that the commit does not hold.
OIDC = "oidc-provider"
#: What a process of a faulty program may take.
MEMORY = 6 * 2**30
#: What the rounds run.
QUICK = "quick"
ALL = "quick,server,postgres,engines,plans,risk,escrow,kills,fuzzing,machines"


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        file: Where, from the root of the repository.
        operator: Cosmic Ray's name of the change.
        occurrence: Which of the places in the file that it can change.
    """

    file: str
    operator: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.file} {self.operator} {self.occurrence}"

    def code(self, source: str) -> str | None:
        """Return the changed code; None if nothing that runs is changed."""
        try:
            changed = mutate_code(
                source, get_operator(self.operator)(), self.occurrence
            )
            same = changed is None or _running(changed) == _running(source)
        except (SyntaxError, AttributeError):  # Cosmic Ray takes some for names.
            return None
        return None if same else changed


def _running(source: str) -> str:
    """Return what of a module runs: all but annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def sample(seed: int, count: int) -> list[Mutant]:
    """Return faults at places drawn from all that there are, one at each.

    A sum could become any of a dozen operations: it is one place all the same.
    Those that change nothing that runs are left out.
    """
    rng = random.Random(seed)
    places = defaultdict(list)
    kinds = {name: get_operator(name) for name in sorted(operator_names())}
    plain = {name: kind() for name, kind in kinds.items() if not kind.arguments()}
    copy = Copy("copy-0").path
    for file in sorted(one for p in PACKAGES for one in (copy / SRC / p).rglob("*.py")):
        nodes = list(ast_nodes(get_ast(file.read_text())))
        for name, one in plain.items():
            number = sum(len(list(one.mutation_positions(node))) for node in nodes)
            where = str(file.relative_to(copy))
            for place in range(number):
                of = where, "_".join(name.split("_")[:2]), place
                places[of].append(Mutant(where, name, place))
    found: list[Mutant] = []
    for of in rng.sample(list(places), len(places)):
        one = rng.choice(places[of])
        if one.code((copy / one.file).read_text()) is not None:
            found.append(one)
        if len(found) == count:
            break
    print(f"{len(found)} of {len(places)} places, seed {seed}", flush=True)
    return found


class Copy:
    """A copy of the last commit, with its own tests and its own code."""

    def __init__(self, name: str) -> None:
        self.path = BUILD / name
        if not self.path.exists():
            self._git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), ".")
            (self.path / "build").mkdir()
            (self.path / "build" / OIDC).symlink_to(ROOT / "build" / OIDC)
        self._git("checkout", "--quiet", "--force", COMMIT)

    def _git(self, *args: str) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", *args], cwd=self.path, check=True)

    def pytest(
        self, *args: str, seconds: float | None = None, **env: str
    ) -> tuple[int, str]:
        """Run tests; return the exit code and what was written at last."""
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", *args],
            cwd=self.path,
            env=os.environ | env | {"PYTHONPATH": str(self.path / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            text = ""
        with contextlib.suppress(ProcessLookupError):  # And what it started.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return process.returncode, text[-4000:]


class Lines:
    """Which tests of a round run which lines, and how long they take."""

    def __init__(self, suites: str) -> None:
        folder = BUILD / "lines" / suites.replace(",", "-")
        copy = Copy("lines-of-tests")
        if not (folder / "times.xml").exists():
            folder.mkdir(parents=True, exist_ok=True)
            cov = [f"--cov={SRC / one}" for one in PACKAGES]
            code, text = copy.pytest(
                *("--numprocesses", "auto", "--dist", "worksteal", "--suites", suites),
                *("--junitxml", str(folder / "part.xml")),
                *(*cov, "--cov-context", "test", "--cov-report", ""),
                COVERAGE_FILE=str(folder / "coverage"),
                MODICUM_DRAW_A_PART="1",  # Other examples run few other lines.
            )
            if code and (suites == QUICK or code != 1):
                sys.exit(f"tests fail without any fault:\n{text}")
            (folder / "part.xml").rename(folder / "times.xml")
        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self._root = copy.path
        self._times: dict[str, float] = {}
        self._files: defaultdict[str, float] = defaultdict(float)
        failed: set[str] = set()
        for case in ElementTree.parse(folder / "times.xml").iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(name)
            self._times[name] = float(case.get("time", 0))
            self._files[case.get("classname", "")] += self._times[name]
        self._left_out = self._failing(copy, suites, failed)

    def _failing(self, copy: Copy, suites: str, failed: set[str]) -> frozenset[str]:
        """Return which tests fail as they are run later: with all examples, alone."""
        contexts = {one.rsplit("|", 1)[0] for one in self._data.measured_contexts()}
        again = {one for one in contexts if one and _name(one) in failed}
        args = ("-p", "no:cacheprovider", "--no-cov", "--suites", suites)
        found = {one for one in sorted(again) if copy.pytest(*args, one)[0]}
        for one in sorted(found):
            print(f"left out, as it fails without any fault: {one}", flush=True)
        return frozenset(found)

    @property
    def names(self) -> frozenset[str]:
        """The tests that run any line of the packages."""
        return frozenset(
            one.rsplit("|", 1)[0] for one in self._data.measured_contexts()
        )

    def tests(self, file: str, lines: range) -> list[str]:
        """Return the tests that run a line, those of the file's package first."""
        by_line = self._data.contexts_by_lineno(str(self._root / file))
        found = {one for line in lines for one in by_line.get(line, ())}
        if found <= {""}:  # It runs when the module is imported.
            found = {one for tests in by_line.values() for one in tests}
        tests = {one.rsplit("|", 1)[0] for one in found - {""}}
        tests -= self._left_out
        times: defaultdict[str, float] = defaultdict(float)
        for one in tests:
            times[_file(one)] += self.time(one)
        own = f"/{Path(file).parts[2]}/"
        return sorted(  # Tests of a file share what they set up.
            tests,
            key=lambda one: (own not in one, times[_file(one)], one),
        )

    def file_time(self, file: str) -> float:
        """Return how many seconds all tests of a file take."""
        return self._files[file.removesuffix(".py").replace("/", ".")]

    def time(self, test: str) -> float:
        """Return how many seconds a test takes."""
        return self._times.get(_name(test), 1.0)


def _file(test: str) -> str:
    return test.split("::", 1)[0]


def _name(test: str) -> str:
    """Return what a report of JUnit calls a test."""
    name = test.removeprefix(_file(test)).removeprefix("::")
    return f"{_file(test).removesuffix('.py').replace('/', '.')}.{name}"


def changed_lines(old: str, new: str) -> range:
    """Return the lines of the statement that differs, without those in its body."""
    pairs = zip(old.splitlines(), new.splitlines(), strict=False)
    line = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), 1)
    inner = range(line, line + 1)
    for node in ast.walk(ast.parse(old)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or line) + 1
            if line < end:
                inner = range(node.lineno, end)
    return inner


def beyond_quick(tests: Sequence[str], copy: Copy) -> list[str]:
    """Return what may find a fault that the quick tests miss.

    Those are tests of other suites, and tests that draw examples: they try more of them
    when all suites run.
    """
    quick = Lines(QUICK).names
    drawn = {
        one: "hypothesis" in text or "budget" in text
        for one in {_file(test) for test in tests}
        for text in [(copy.path / one).read_text()]
    }
    found = (
        test.split("[")[0] if drawn[_file(test)] else test
        for test in tests
        if drawn[_file(test)] or test not in quick
    )
    return list(dict.fromkeys(found))


def survives(mutant: Mutant, copy: Copy, lines: Lines, suites: str) -> bool:
    """Return whether all tests of a round that run a faulty line pass."""
    file = copy.path / mutant.file
    old = file.read_text()
    new = mutant.code(old)
    assert new is not None  # Else it was not drawn.
    tests = lines.tests(mutant.file, changed_lines(old, new))
    if not tests:
        return True
    if suites != QUICK:
        tests = beyond_quick(tests, copy)
        if not tests:
            return True
    listed = copy.path.with_suffix(".tests")
    listed.write_text("\n".join(tests))
    files = list(dict.fromkeys(map(_file, tests)))
    args = ("-x", "-p", "no:cacheprovider", "--no-cov", "--suites", suites)
    seconds = 120 + 10 * sum(map(lines.file_time, files)) * (
        1 if suites == QUICK else 8
    )
    file.write_text(new)
    _forget(file)
    try:
        code, text = copy.pytest(*args, f"@{listed}", seconds=seconds)
        if code == 4 and "not found" in text:  # Its name changes with the fault.
            code, text = copy.pytest(*args, *files, seconds=seconds)
    finally:
        file.write_text(old)
        _forget(file)
    if code in {3, 5}:
        sys.exit(f"pytest ran no test of {mutant}:\n{text}")
    return code == 0


def _forget(file: Path) -> None:
    """Remove what was compiled of a file: Python compares times in whole seconds.

    Numba keeps constants of other modules in what it compiles of the ledger.
    """
    compiled = [*(file.parent / "__pycache__").glob(f"{file.stem}.*")]
    if file.stem == "grid":
        compiled += file.parents[1].glob("ledger/quick/__pycache__/*.nb?")
    for one in compiled:
        one.unlink()


def survivors(mutants: Sequence[Mutant], suites: str, jobs: int) -> list[Mutant]:
    """Return the faults that a round does not find; known ones are not tried again."""
    lines = Lines(suites)
    file = BUILD / f"{suites.replace(',', '-')}.json"
    known: dict[str, bool] = json.loads(file.read_text()) if file.exists() else {}
    copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for number in range(jobs):
        copies.put(Copy(f"copy-{number}"))

    def attempt(one: Mutant) -> tuple[Mutant, bool]:
        copy = copies.get()
        try:
            return one, survives(one, copy, lines, suites)
        finally:
            copies.put(copy)

    todo = [one for one in mutants if str(one) not in known]
    with ThreadPoolExecutor(jobs) as pool:
        trying = [pool.submit(attempt, one) for one in todo]
        for number, done in enumerate(as_completed(trying), 1):
            one, alive = done.result()
            known[str(one)] = alive
            file.write_text(json.dumps(known, indent=0))
            fate = "survives" if alive else "is found"
            print(f"{suites} {number} of {len(todo)}: {one} {fate}", flush=True)
    return [one for one in mutants if known[str(one)]]


def main() -> None:
    """Draw faults, try them, and print the share that each round finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only-quick", action="store_true")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # Of each process.
    BUILD.mkdir(parents=True, exist_ok=True)
    drawn_file = BUILD / f"drawn-{given.seed}-{given.count}.json"
    if not drawn_file.exists():
        drawn = [asdict(one) for one in sample(given.seed, given.count)]
        drawn_file.write_text(json.dumps(drawn))
    mutants = [Mutant(**one) for one in json.loads(drawn_file.read_text())]
    left = {"quick tests": survivors(mutants, QUICK, given.jobs)}
    if not given.only_quick:
        left["all tests"] = survivors(left["quick tests"], ALL, given.jobs)
    counts = Counter(Path(one.file).parts[2] for one in mutants)
    found = defaultdict(list)
    for alive in left.values():
        survived = Counter(Path(one.file).parts[2] for one in alive)
        for package in PACKAGES:
            found[package].append(counts[package] - survived[package])
        found["all"].append(len(mutants) - len(alive))
    print("| package | mutants |", " | ".join(f"found by {one}" for one in left), "|")
    for package, numbers in found.items():
        of = counts[package] if package != "all" else len(mutants)
        shares = " | ".join(f"{one} ({one / max(of, 1):.1%})" for one in numbers)
        print(f"| {package} | {of} | {shares} |")


if __name__ == "__main__":
    main()
