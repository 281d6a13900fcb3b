"""Plans in files: JSON, for showing, explaining and committing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from modicum.cli.output import count_text, print_table, seconds
from modicum.core.errors import printable
from modicum.core.rationals import brief

if TYPE_CHECKING:
    from modicum.api.local.plans.commit import Committed
    from modicum.api.local.plans.plan import Plan

#: A larger file is no plan: 100,000 requests take about a tenth of this.
PLAN_BYTES_MAX = 512 * 1024 * 1024
#: The first bytes of every written plan; nothing else is overwritten.
_BEGINNING = b'{\n "format": "modicum-plan/'
#: The prefix of plan ids.
_ID = re.compile(r"plan-[0-9a-f]{12}")


def is_file(name: str) -> bool:
    """Return whether something is the path of a file."""
    try:
        return Path(name).is_file()
    except OSError:  # It is too long for a path, or in an unreadable folder.
        return False


def refuse_path(name: str) -> None:
    """Refuse a name that is no plan id, and was meant as a file."""
    from modicum.core.errors import Code, InputError, Problem

    if not _ID.fullmatch(name):
        raise InputError(
            Problem(
                Code.PLAN_UNKNOWN,
                f"there is no file `{name[:200]}`, and no plan with this id",
                help="correct the path, or list the plans with  modicum plan show",
            )
        )


def read_plan_file(path: Path) -> Plan:
    """Return the plan of a file."""
    from modicum.api.local.plans.plan import read_plan
    from modicum.core.errors import ConflictError, InputError
    from modicum.core.yaml_reader import TEXT_BYTES_MAX, read_document
    from modicum.ops.files.documents import read_bytes

    data = read_bytes(path, _remedy(path))
    if len(data) > TEXT_BYTES_MAX:  # Too large to be read with places.
        with path.open("rb") as file:
            data = file.read(PLAN_BYTES_MAX)
        return read_plan(_mapping(data))
    with suppress(ConflictError, InputError):  # Reported below, with positions.
        return read_plan(_mapping(data))
    return read_plan(read_document(data, str(path)))


def refuse_other_than_plan(path: Path) -> None:
    """Refuse to overwrite a file other than a plan, such as a ledger or requests."""
    from modicum.core.errors import Code, Problem, UsageError
    from modicum.ops.files.documents import read_bytes

    try:
        if not path.exists() or path.is_dir():  # Nothing is written over a folder.
            return
    except OSError:  # It cannot be a path; writing reports why.
        return
    if not path.is_file() or not read_bytes(path).startswith(_BEGINNING):
        raise UsageError(
            Problem(
                Code.ALREADY_EXISTS,
                f"{path} already exists, and is not a plan",
                help="name another file with --out",
            )
        )


def write_plan_file(path: Path, plan: Plan) -> None:
    """Write a plan to a file, as a whole."""
    from modicum.system.files import write_whole

    text = json.dumps(plan.to_dict(), indent=1, ensure_ascii=False) + "\n"
    write_whole(path, [text.encode()])


def _remedy(path: Path) -> str:
    """Return the remedy for a missing file."""
    if _ID.fullmatch(str(path)):
        return "give the file written by  modicum plan run --out , not the plan id"
    return "correct the path, or create the file:  modicum plan run REQUESTS --out FILE"


def _mapping(data: bytes) -> dict[str, object]:
    """Return the contents of a JSON file."""
    from modicum.core.errors import Code, InputError, Problem

    try:
        found = json.loads(data, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(Problem(Code.YAML_SYNTAX, "the plan is not a JSON document"))
    return found


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def print_plan(plan: Plan, *, requests: bool = False) -> None:
    """Print what a plan accepts, in numbers."""
    from rich.table import Table

    head = (
        f"{plan.id}, round `{plan.round}`, solver {plan.solver}, ledger entry"
        f" {plan.seq}"
    )
    print(printable(head))
    print()
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in ("REQUESTS", "UTILITY", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for outcome, found in plan.by_outcome.items():
        worth = sum((one.utility for one in found), Fraction(0))
        share = _share(worth, plan.possible)
        table.add_row(outcome.value, str(len(found)), brief(worth), share)
    table.add_row("all", str(len(plan.outcomes)), brief(plan.possible), "")
    print_table(table)
    if plan.remark:
        print(printable(plan.remark))
    print()
    if requests:
        _print_requests(plan)


def print_compared(plans: Sequence[Plan]) -> None:
    """Print what several solvers accept, side by side."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("SOLVER", no_wrap=True)
    for title in ("ACCEPTED", "UTILITY", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for one in plans:
        share = _share(one.utility, one.possible)
        table.add_row(one.solver, str(len(one.accepted)), brief(one.utility), share)
    print_table(table)
    print()


def print_next(plan: Plan, out: Path | None) -> None:
    """Print the next steps with a plan."""
    if not plan.accepted:
        print("no request was accepted; the most common reason, with an example:")
        for reason, count in Counter(one.why[:1] for one in plan.outcomes).most_common(
            1
        ):
            print(printable(f"  {count} of {len(plan.outcomes)}: {' '.join(reason)}"))
            example = next(one for one in plan.outcomes if one.why[:1] == reason)
            for line in example.why[1:]:
                print(printable(f"  {example.release}: {line}"))
    if out is not None and not plan.accepted:
        print(
            printable(f"written to {out}; no request is accepted, nothing is reserved")
        )
    elif out is not None:
        print(printable(f"written to {out}; reserve it:  modicum plan commit {out}"))
        print("(for 24 hours; --expires-in 7d for a week)")
    elif plan.accepted:
        print("nothing is reserved; to commit it, write it with  --out plan.json")
    if len(plan.accepted) < len(plan.outcomes):
        first = "" if out else " write it with  --out plan.json, then"
        shown = f"modicum plan show {out or 'plan.json'}"
        others = "the others" if plan.accepted else "each"
        print(printable(f"why not {others}:{first}  {shown}"))


def print_committed(done: Committed) -> None:
    """Print the reservations of a plan."""
    count = len(done.releases)
    if not count:
        print(printable(f"{done.plan} accepts no request: nothing was written"))
        return
    print(
        printable(
            f"{done.plan} is committed in round `{done.round}`:"
            f" {count_text(count, 'release')} reserved until"
            f" {seconds(done.expires_at)} (entry {done.seq})"
        )
    )


def _share(part: Fraction, whole: Fraction) -> str:
    return f"{float(100 * part / whole):.1f} %" if whole else ""


def _print_requests(plan: Plan) -> None:
    for one in plan.outcomes:
        line = f"{one.outcome.value:<9} {one.release}  (utility {brief(one.utility)})"
        print(printable(line))
        for why in one.why:
            print(printable(f"          {why}"))
