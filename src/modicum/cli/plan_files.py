"""Plans in files: JSON, to be shown, asked about and committed."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modicum.api.local.plans.plan import Plan

#: A larger file is no plan: 100,000 requests take about a tenth of this.
PLAN_BYTES_MAX = 512 * 1024 * 1024
#: How every plan that was written begins; nothing else is written over.
_BEGINNING = b'{\n "format": "modicum-plan/'
#: What plans are called.
_ID = re.compile(r"plan-[0-9a-f]{12}")


def is_file(name: str) -> bool:
    """Return whether something is the path of a file.

    Args:
        name: What was given; it may be the id of a plan.
    """
    try:
        return Path(name).is_file()
    except OSError:  # It is too long for a path, or lies where nobody may look.
        return False


def refuse_path(name: str) -> None:
    """Refuse what is no id of a plan, and so was meant to be a file.

    Args:
        name: What was given; no file has this path.

    Raises:
        InputError: If no plan can be called that.
    """
    from modicum.core.errors import Code, InputError, Problem

    if not _ID.fullmatch(name):
        raise InputError(
            Problem(
                Code.PLAN_UNKNOWN,
                f"there is no file `{name[:200]}`, and no plan has such an id",
                help="correct the path, or list the plans with  modicum plan show",
            )
        )


def read_plan_file(path: Path) -> Plan:
    """Return the plan of a file.

    Args:
        path: The file.

    Raises:
        ConflictError: If it says something else than when it was made.
        InputError: If it cannot be read, or is no plan.
    """
    from modicum.api.local.plans.plan import read_plan
    from modicum.core.errors import ConflictError, InputError
    from modicum.core.yaml_reader import TEXT_BYTES_MAX, read_document
    from modicum.ops.files.documents import read_bytes

    data = read_bytes(path, _remedy(path))
    if len(data) > TEXT_BYTES_MAX:  # Too large to be read with places.
        with path.open("rb") as file:
            data = file.read(PLAN_BYTES_MAX)
        return read_plan(_mapping(data))
    with suppress(ConflictError, InputError):  # Said below, with places.
        return read_plan(_mapping(data))
    return read_plan(read_document(data, str(path)))


def refuse_other_than_plan(path: Path) -> None:
    """Refuse to write a plan over what is none: a ledger, or the requests.

    Args:
        path: Where a plan is to be written.

    Raises:
        UsageError: If something else is there.
    """
    from modicum.core.errors import Code, Problem, UsageError
    from modicum.ops.files.documents import read_bytes

    try:
        if not path.exists() or path.is_dir():  # Nothing is written over a folder.
            return
    except OSError:  # It can be no path; writing says why.
        return
    if not path.is_file() or not read_bytes(path).startswith(_BEGINNING):
        raise UsageError(
            Problem(
                Code.ALREADY_EXISTS,
                f"{path} is there, and is no plan",
                help="name another file with --out",
            )
        )


def write_plan_file(path: Path, plan: Plan) -> None:
    """Write a plan to a file, as a whole.

    Args:
        path: The file.
        plan: The plan.

    Raises:
        UsageError: If it cannot be written.
    """
    from modicum.system.new_files import write_whole

    text = json.dumps(plan.to_dict(), indent=1, ensure_ascii=False) + "\n"
    write_whole(path, [text.encode()])


def _remedy(path: Path) -> str:
    """Return what helps if there is no such file."""
    if _ID.fullmatch(str(path)):
        return (
            "give the file that  modicum plan run --out  wrote, and not the plan's id"
        )
    return "correct the path, or make the file:  modicum plan run REQUESTS --out FILE"


def _mapping(data: bytes) -> dict[str, object]:
    """Return what a file of JSON holds.

    Raises:
        InputError: If it is not JSON, or a key stands twice.
    """
    from modicum.core.errors import Code, InputError, Problem

    try:
        found = json.loads(data, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(Problem(Code.YAML_SYNTAX, "the plan is no JSON document"))
    return found


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found
