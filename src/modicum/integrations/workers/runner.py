"""The runner of a worker: a module for one library, in tested versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modicum.core.errors import Code, Problem, UsageError


@dataclass(frozen=True, slots=True)
class Runner:
    """A module that does a library's work in a worker.

    Attributes:
        library: The library's name.
        file: The module, with `versions`, `prepare` and `run`; it is not imported here.
        versions: By distribution, the accepted version prefixes.
        install: The installation command, for display.
        doing: Descriptions of its stages, by name.
    """

    library: str
    file: Path
    versions: Mapping[str, Sequence[str]]
    install: str
    doing: Mapping[str, str] = field(default_factory=dict)

    def refuse_other_versions(self, found: Mapping[str, str]) -> None:
        """Refuse an environment with untested versions."""
        for name, allowed in self.versions.items():
            self._refuse_other_version(name, allowed, found.get(name))

    def _refuse_other_version(
        self, name: str, allowed: Sequence[str], found: str | None
    ) -> None:
        if found is not None and any(
            found == one or found.startswith(f"{one}.") for one in allowed
        ):
            return
        what = (
            "is not installed there" if found is None else f"has version {found} there"
        )
        raise UsageError(
            Problem(
                Code.NOT_SUPPORTED,
                f"{name} {what}; {self.library} is run with {name} "
                + " or ".join(allowed),
                notes=("nothing was started or spent",),
                help=f"install it with  {self.install}",
            )
        )
