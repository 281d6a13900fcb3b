"""Checks of the machine: Python, libraries, extras, the clock."""

from __future__ import annotations

import platform
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata

from modicum.api.ports.storage import Clock
from modicum.ops.doctor.findings import Finding, Status, known_name

#: The requirements in the package's metadata, which sorts `<3` before `>=2`.
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(\[[^]]*\])?"
    r"(<(?P<below>[0-9.]+),?)?(>=(?P<least>[0-9.]+))?"
    r"(; extra == ['\"](?P<extra>\w+)['\"])?"
)
#: Extras for those who work on modicum itself.
_OF_MAKERS = ("test", "dev")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A required library.

    Attributes:
        name: Its name.
        least: The version that is needed at least; empty for any.
        extra: The extra that needs it; empty for all.
        below: The first version that is too new; empty for none.
    """

    name: str
    least: str
    extra: str
    below: str = ""

    def fault(self, found: str) -> str | None:
        """Return what is wrong with an installed version; None if nothing is."""
        if not is_enough(found, self.least):
            return f"{self.name} {found}, required is {self.least}"
        if self.below and is_enough(found, self.below):
            return f"{self.name} {found}, required is below {self.below}"
        return None


def requirements(written: Iterable[str]) -> list[Requirement]:
    """Return the requirements of modicum on this machine."""
    found = (_REQUIREMENT.fullmatch(one.strip()) for one in written)
    return [
        Requirement(
            one["name"], one["least"] or "", one["extra"] or "", one["below"] or ""
        )
        for one in found
        if one is not None and one["extra"] not in _OF_MAKERS
    ]


def installed(name: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def is_enough(found: str, least: str) -> bool:
    """Return whether a version is another one or later."""
    return _numbers(found) >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    begin = re.match(r"[0-9]+(\.[0-9]+)*", version)
    numbers = [int(one) for one in begin[0].split(".")] if begin else []
    while numbers and not numbers[-1]:
        numbers.pop()  # 3.0 is 3.
    return tuple(numbers)


def check_python() -> Finding:
    """Return the Python version and the platform."""
    version = platform.python_version()
    message = f"Python {version} on {sys.platform}, {platform.machine()}"
    facts = {
        "python": known_name(version),
        "system": known_name(sys.platform),
        "machine": known_name(platform.machine()),
        "modicum": known_name(metadata.version("modicum")),
    }
    return Finding("python", Status.OK, message, facts=facts)


def check_libraries(needed: Iterable[Requirement]) -> Iterator[Finding]:
    """Yield whether requirements are installed; one finding for each extra."""
    by_extra: dict[str, list[Requirement]] = defaultdict(list)
    for one in needed:
        by_extra[one.extra].append(one)
    extras = Counter(one.name for libraries in by_extra.values() for one in libraries)
    for extra, libraries in sorted(by_extra.items()):
        own = [one for one in libraries if extras[one.name] == 1]
        yield _checked(extra, libraries, own or libraries)


def _checked(
    extra: str, libraries: list[Requirement], own: list[Requirement]
) -> Finding:
    """Return whether the libraries of an extra are there."""
    versions = {one.name: installed(one.name) for one in libraries}
    facts = {
        name: None if version is None else known_name(version)
        for name, version in versions.items()
    }
    name = f"extra {extra}" if extra else "libraries"
    missing = [one for one, version in versions.items() if version is None]
    faults = [
        fault
        for one in libraries
        if (found := versions[one.name]) and (fault := one.fault(found))
    ]
    if extra and {one.name for one in own} <= {*missing}:
        return Finding(name, Status.OK, "not installed", facts=facts)
    if missing or faults:
        wrong = [*(f"{one} is missing" for one in missing), *faults]
        package = f"'modicum[{extra}]'" if extra else "modicum"
        return Finding(
            name,
            Status.WARN if extra else Status.FAIL,
            "; ".join(wrong),
            f"pip install {'--upgrade ' if faults else ''}{package}",
            facts,
        )
    return Finding(name, Status.OK, f"{len(libraries)} installed", facts=facts)


def check_clock(clock: Clock) -> Finding:
    """Return whether the clock runs forward."""
    first, second = clock.now(), clock.now()
    if second < first:
        message = f"the clock went backwards, from {first} to {second}"
        return Finding(
            "clock", Status.FAIL, message, "set the clock, for example with NTP"
        )
    return Finding("clock", Status.OK, f"{second[:19]}Z")
