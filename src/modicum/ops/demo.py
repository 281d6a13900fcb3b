"""Making the example organization: its files, its past, and a first day of work."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from io import StringIO
from pathlib import Path

from modicum.api.local import Clock, Decision, Workspace
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.ops.files.documents import load_release, releases_of
from modicum.ops.wiring import open_workspace
from modicum.workloads import past_releases

#: Example organizations by name, and what each demonstrates.
EXAMPLES = {
    "acme-health": "a clinic: 10 attributes, 3 categories, standard and black-box ML",
}


@dataclass(frozen=True, slots=True)
class Demo:
    """A new example organization.

    Attributes:
        folder: The folder of its files.
        workspace: Its ledger, under its policy.
        past: The results of recording its past, oldest first.
        decisions: The decisions about its new releases, with their files.
    """

    folder: Path
    workspace: Workspace
    past: tuple[Decision, ...]
    decisions: tuple[tuple[Path, Decision], ...]


def make_demo(
    example: str,
    folder: Path,
    *,
    on_past: Callable[[int, int], None] | None = None,
    clock: Clock | None = None,
) -> Demo:
    """Write an example's files, record its past and submit its new releases."""
    _refuse_unknown(example)
    _refuse_full(folder)
    with as_file(files("modicum.ops") / "examples" / example) as source:
        copy_files(source, folder)
    (folder / "past-releases.yaml").write_text(_past_text(), encoding="utf-8")
    workspace = open_workspace(
        folder / "ledger.db", policy=folder / "policy.yaml", clock=clock
    )
    workspace.init()
    nodes = releases_of(load_release(folder / "past-releases.yaml"))
    past: list[Decision] = []
    for node in nodes:
        past.append(workspace.backfill(node))
        if on_past is not None:
            on_past(len(past), len(nodes))
    decisions = tuple(
        (path, workspace.submit(load_release(path), publish=True))
        for path in sorted((folder / "releases").glob("*.yaml"))
    )
    return Demo(folder, workspace, tuple(past), decisions)


def _refuse_unknown(example: str) -> None:
    if example not in EXAMPLES:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f'there is no example "{example[:60]}"',
                help="known: " + ", ".join(EXAMPLES),
            )
        )


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            Problem(
                Code.ALREADY_EXISTS,
                f"{folder} exists and is not an empty folder",
                help="choose another with  --dir, or remove it",
            )
        )


def copy_files(source: Path, folder: Path, *, leaving: Sequence[str] = ()) -> None:
    """Copy all files of a folder but some."""
    try:
        ignore = shutil.ignore_patterns(*leaving)
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=ignore)
    except OSError as error:
        reason = (error.strerror or "it cannot be written").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot write {folder}: {reason}")
        raise UsageError(problem) from error


def _past_text() -> str:
    # Imported here: only the demo writes YAML.
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 100
    stream = StringIO()
    yaml.dump(past_releases(), stream)
    return (
        "# Releases of Acme Health before it had a policy: recorded, never denied.\n"
        + stream.getvalue()
    )
