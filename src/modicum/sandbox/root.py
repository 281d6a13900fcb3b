"""The sandbox's view of the machine: a Python and four libraries, read-only."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from modicum.core.errors import Problem, UnavailableError
from modicum.sandbox.problems import missing

#: The libraries available to programs besides the standard library; with dependencies.
LIBRARY: Final = "scikit-learn"
PACKAGES: Final = "/packages"
PYTHON: Final = "/python"
#: The folder of shared libraries inside.
SHARED: Final = "/lib"

# Parts of the standard library that need system libraries for unneeded features: the
# network, databases and terminals.
_UNUSED = re.compile(
    r"_(ssl|hashlib|sqlite3|tkinter|curses|curses_panel|dbm|gdbm|crypt|uuid)\."
    r"|(readline|nis|ossaudiodev|spwd|audioop)\."
)
# Files in the standard library's folder that do not belong to it.
_COVERED: Final = ("site-packages", "dist-packages", "test")
_FOUND = re.compile(r"^\s*(\S+) => (/\S+) \(0x", re.M)
_LOADER = re.compile(r"^\s*(/\S*ld-\S+) \(0x", re.M)
_REQUIRED = re.compile(r"^[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Root:
    """The root directory of a sandbox.

    Attributes:
        bound: By path inside, the read-only source.
        covered: Folders inside that are empty.
        python: The Python, by its path inside.
    """

    bound: tuple[tuple[str, Path], ...]
    covered: tuple[str, ...]
    python: str

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that all of it lies in, the outer ones first."""
        found: set[str] = set()
        for inside, _ in self.bound:
            found.update(str(each) for each in PurePosixPath(inside).parents)
        return tuple(sorted(found - {"/"}))


@cache
def python_root() -> Root:
    """Return a root with this Python, its standard library, and scikit-learn."""
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    standard = Path(sysconfig.get_path("stdlib"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inside = f"{PYTHON}/{sys.platlibdir}/{version}"
    python = f"{PYTHON}/bin/{version}"
    packages = _packages()
    loaded = [executable]
    loaded += [
        file
        for file in (standard / "lib-dynload").glob("*.so")
        if not _UNUSED.match(file.name)
    ]
    for _, path in packages:
        loaded += path.rglob("*.so*") if path.is_dir() else []
    covered = [name for name in _COVERED if (standard / name).is_dir()]
    refuse_unreadable([executable, standard, *(path for _, path in packages)])
    return Root(
        bound=(
            (python, executable),
            (inside, standard),
            *packages,
            *_shared(loaded, [path for _, path in packages]),
        ),
        covered=tuple(f"{inside}/{name}" for name in covered),
        python=python,
    )


def refuse_unreadable(paths: Iterable[Path]) -> None:
    """Refuse files of a sandbox that modicum itself cannot read."""
    for path in paths:
        for above in reversed(path.parents):
            _must_be_open(above, os.X_OK)
        _must_be_open(path, os.R_OK)
        for folder, folders, files in os.walk(path):
            if folder == str(path):
                folders[:] = [name for name in folders if name not in _COVERED]
            for name in folders:
                _must_be_open(Path(folder, name), os.R_OK | os.X_OK)
            for name in files:
                _must_be_open(Path(folder, name), os.R_OK)


def _must_be_open(path: Path, mode: int) -> None:
    if not path.is_symlink() and not os.access(path, mode, effective_ids=True):
        raise UnavailableError(
            missing(
                f"{path} cannot be read by user {os.geteuid()}, which modicum runs as;"
                " programs need the Python and the libraries in it",
                f"let that user read it:  chmod -R a+rX {path}  ; or install modicum"
                " and its Python where that user can read them, such as in /opt",
            )
        )


def _packages() -> tuple[tuple[str, Path], ...]:
    """Return the installed files of the libraries and their dependencies."""
    waiting, seen = [LIBRARY], set()
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop().lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            installed = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise UnavailableError(_not_installed(name)) from None
        files = installed.files or []
        tops = {file.parts[0] for file in files} - {"..", "bin", "__pycache__"}
        if not tops:
            raise UnavailableError(_not_installed(name))
        for top in tops:
            found[f"{PACKAGES}/{top}"] = Path(str(installed.locate_file(top))).resolve()
        waiting += [
            match.group()
            for line in installed.requires or []
            if ";" not in line and (match := _REQUIRED.match(line))
        ]
    return tuple(sorted(found.items()))


def _not_installed(name: str) -> Problem:
    return missing(
        f"{name} is not installed next to modicum",
        "install it with  pip install 'modicum[escrow]'",
    )


def _shared(loaded: list[Path], packages: list[Path]) -> list[tuple[str, Path]]:
    """Return the loader and the shared libraries that files need of the machine."""
    try:
        completed = subprocess.run(  # noqa: S603 - files of this Python only
            ["/usr/bin/ldd", *map(str, loaded)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        completed = ""
    loader = _LOADER.search(completed)
    if loader is None:
        raise UnavailableError(
            missing(
                "the shared libraries that Python needs cannot be found",
                "install ldd, which comes with the GNU C library",
            )
        )
    found = {loader.group(1): Path(loader.group(1)).resolve()}
    for name, place in _FOUND.findall(completed):
        path = Path(os.path.normpath(place))
        if not any(path.is_relative_to(each) for each in packages):
            found[f"{SHARED}/{name}"] = path.resolve()
    return sorted(found.items())
