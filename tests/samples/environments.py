"""Virtual environments with modicum and some of its extras, made without downloads."""

from __future__ import annotations

import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

#: What `make demo` installs; a test compares it with the Makefile.
BASE = "modicum[postgres]"


class Environment:
    """A virtual environment that has only what it is given.

    Libraries are links to those of the environment that runs the tests. What a library
    needs is read from its metadata, so nobody has to list what is missing.

    Args:
        folder: Where to make it.
        wanted: What to install, as pip takes it.
    """

    def __init__(self, folder: Path, wanted: str = BASE) -> None:
        venv.create(folder, symlinks=True)
        (self._site,) = folder.glob("lib/python*/site-packages")
        self.bin = folder / "bin"
        self.install(wanted)
        command = self.bin / "modicum"
        command.write_text(
            f"#!{self.bin}/python\nfrom modicum.cli.main import main\n\nmain()\n"
        )
        command.chmod(0o755)

    def install(self, wanted: str) -> None:
        """Add a library and all that it needs.

        Args:
            wanted: The library, maybe with extras, such as `modicum[query]`.
        """
        for one in _closure(Requirement(wanted), set()):
            for file in one.files or ():
                link = self._site / file.parts[0]
                if file.parts[0] not in ("..", "__pycache__") and not link.exists():
                    link.symlink_to(Path(str(one.locate_file(file.parts[0]))))


def _closure(wanted: Requirement, seen: set[str]) -> Iterator[Distribution]:
    if str(wanted) in seen:
        return
    seen.add(str(wanted))
    found = distribution(wanted.name)
    yield found
    for line in found.requires or ():
        needed = Requirement(line)
        if needed.marker is None or any(
            needed.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)
        ):
            yield from _closure(needed, seen)
