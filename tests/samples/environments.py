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
        for one in libraries(wanted):
            for file in one.files or ():
                link = self._site / file.parts[0]
                if file.parts[0] not in ("..", "__pycache__") and not link.exists():
                    link.symlink_to(Path(str(one.locate_file(file.parts[0]))))


def libraries(wanted: str) -> Iterator[Distribution]:
    """Yield a library and all that it needs, as their metadata says.

    Args:
        wanted: The library, maybe with extras.
    """
    seen, waiting = set(), [wanted]
    while waiting:
        one = Requirement(waiting.pop())
        if str(one) in seen:
            continue
        seen.add(str(one))
        found = distribution(one.name)
        yield found
        for line in found.requires or ():
            marker = Requirement(line).marker
            extras = ("", *one.extras)
            if not marker or any(marker.evaluate({"extra": name}) for name in extras):
                waiting.append(line)
