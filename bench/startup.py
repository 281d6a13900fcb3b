"""How long a command takes to start, beside an earlier commit.

Run it with `python bench/startup.py COMMIT`, or with `--runs 5` for a look. The commit
is checked out beside this tree. Both run the same commands on a demo ledger of their
own, in turns, so that both sides of a ratio are of the same moments. What counts is the
CPU time of the whole process, in the median; and how many modules a cold submit loads.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MODULES = (
    "import sys; from modicum.cli.main import main\n"
    "try: main()\n"
    "except SystemExit: pass\n"
    "finally: print(len(sys.modules), file=sys.stderr)"
)


@dataclass(frozen=True)
class Side:
    """A commit, with a demo ledger that it made.

    Attributes:
        name: What it is called.
        source: Where its code lies.
        demo: Where its demo lies.
    """

    name: str
    source: Path
    demo: Path

    def command(self, texts: Sequence[str]) -> list[str]:
        """Return the command that runs Python with the code of this side."""
        # Bytecode is kept, as where modicum is installed, but not in the tree.
        settings = (
            f"PYTHONPATH={self.source / 'src'}",
            f"PYTHONPYCACHEPREFIX={self.demo.parent / 'bytecode'}",
            "PYTHONDONTWRITEBYTECODE=",
        )
        return ["/usr/bin/env", *settings, sys.executable, *texts]

    def run(self, args: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run Python with the code of this side."""
        return subprocess.run(  # noqa: S603 - our own commands
            self.command(args),
            cwd=self.demo,
            capture_output=True,
            text=True,
            check=False,
        )

    def seconds(self, args: Sequence[str]) -> float:
        """Return the CPU time of a run."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = self.run(args)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in {0, 3}:  # A denial is an answer, too.
            sys.exit(f"{self.name}: {' '.join(args)}\n{done.stderr}")
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return float(spent)


#: What is compared, in a folder with the example of page views; the example
#: organization, whose ledger has some past, is in it.
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import modicum": ["-c", "import modicum"],
    "modicum --help": ["-m", "modicum", "--help"],
    "modicum status": ["-m", "modicum", "status"],
    "modicum release check": [
        *("-m", "modicum", "release", "check"),
        "releases/04-daily-views-2026-12.yaml",
    ],
    "release check, allowed": [
        *("-m", "modicum", "release", "check", "--ledger", "acme/ledger.db"),
        "acme/releases/01-prevalence-by-region.yaml",
    ],
    "release check, denied": [
        *("-m", "modicum", "release", "check", "--ledger", "acme/ledger.db"),
        "acme/releases/04-cohort-diagnosis.yaml",
    ],
    "modicum query plan": ["-m", "modicum", "query", "plan", "queries/02-one-day.yaml"],
}
SUBMIT = ["release", "submit", "releases/01-daily-views-2026-11.yaml"]


def main() -> None:
    """Print the CPU time of each command on both sides, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with checked_out(place, given.commit) as before:
            _compare(sides(place, before), given.runs)


@contextmanager
def checked_out(place: Path, commit: str) -> Iterator[Path]:
    """Yield where the code of a commit lies."""
    before = place / "before"
    _git("worktree", "add", "-q", "--detach", str(before), commit)
    try:
        yield before
    finally:
        _git("worktree", "remove", "--force", str(before))


def _git(*args: str) -> None:
    subprocess.run(["/usr/bin/git", "-C", ROOT, *args], check=True)  # noqa: S603


def sides(place: Path, before: Path) -> list[Side]:
    """Return both sides, each with a demo of its own."""
    found = []
    for name, source in (("before", before), ("now", ROOT)):
        side = Side(name, source, place / f"demo-{name}")
        shutil.copytree(ROOT / "examples" / "pageviews", side.demo)
        side.run(["-m", "modicum", "init"]).check_returncode()
        side.run(["-m", "modicum", "demo", "--dir", "acme"]).check_returncode()
        found.append(side)
    return found


def _compare(sides: Sequence[Side], runs: int) -> None:
    times: dict[str, tuple[list[float], ...]] = {one: ([], []) for one in COMMANDS}
    for turn in range(runs + 1):
        for number, side in enumerate(sides):
            for name, args in COMMANDS.items():
                spent = side.seconds(args)
                if turn:  # The first run compiles and fills caches.
                    times[name][number].append(spent)
    print("| command | before, s of CPU | now | ratio |\n|---|--:|--:|--:|")
    for name, both in times.items():
        one, other = map(statistics.median, both)
        print(f"| {name} | {one:.3f} | {other:.3f} | {other / one:.2f} |")
    loaded = [side.run(["-c", _MODULES, *SUBMIT]).stderr.split()[-1] for side in sides]
    print(f"a cold submit loads {loaded[0]} modules before, {loaded[1]} now")


if __name__ == "__main__":
    main()
