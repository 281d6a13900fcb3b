"""Findings of checks: text for the operator, and shareable facts.

Text may name paths, releases and rules. Facts may not: they are numbers, booleans,
versions and words of a closed list, so that a report of facts can be given to people
who may know nothing about the organization. Nothing is redacted afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from modicum.core.errors import Code, ModicumError, VerificationError, check

Fact: TypeAlias = int | bool | str | None

#: The texts that a fact may be, besides versions.
WORDS = frozenset(
    {
        *(code.value for code in Code),
        *("sqlite", "postgresql", "linux", "darwin", "other"),
        *("x86_64", "aarch64", "arm64", "on", "off", "local"),
        *("remote_write", "remote_apply"),
        *("none", "file", "http"),
    }
)
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc|\.post|\.dev)[0-9]+)?")
_VERSION_LENGTH_MAX = 40


class Status(Enum):
    """The outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of a check.

    Attributes:
        check: Its name.
        status: Its outcome.
        message: The finding, in one line.
        remedy: The remedy; empty if none.
        facts: The shareable facts.
        is_broken: Whether the ledger contradicts itself or is damaged.
    """

    check: str
    status: Status
    message: str
    remedy: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    is_broken: bool = False

    def __post_init__(self) -> None:
        for fact in self.facts.values():
            check(is_harmless(fact), "a fact of a finding is a number or a known word")

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {**self.to_facts(), "message": self.message, "remedy": self.remedy}

    def to_facts(self) -> dict[str, object]:
        """Return the shareable facts."""
        return {
            "check": self.check,
            "status": self.status.value,
            "facts": dict(self.facts),
        }


def is_harmless(fact: Fact) -> bool:
    """Return whether a fact is a number, a boolean, a version or a known word."""
    if not isinstance(fact, str):
        return True
    is_version = len(fact) <= _VERSION_LENGTH_MAX and _VERSION.fullmatch(fact)
    return fact in WORDS or bool(is_version)


def known_name(text: str) -> str:
    """Return a text if a fact may have it, else `other`."""
    return text if is_harmless(text) else "other"


def of_error(name: str, error: ModicumError) -> Finding:
    """Return the finding of a check that ended with a mistake."""
    problem = error.problems[0]
    return Finding(
        name,
        Status.FAIL,
        problem.message,
        problem.help,
        {"code": problem.code.value},
        is_broken=isinstance(error, VerificationError),
    )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings.

    Attributes:
        findings: In the order of the checks.
    """

    findings: Sequence[Finding]

    def count(self, status: Status) -> int:
        """Return the number of checks with an outcome."""
        return sum(one.status is status for one in self.findings)

    @property
    def is_broken(self) -> bool:
        """Whether the ledger contradicts itself or is damaged."""
        return any(one.is_broken for one in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "ok": not self.count(Status.FAIL),
            "failed": self.count(Status.FAIL),
            "warned": self.count(Status.WARN),
            "checks": [one.to_dict() for one in self.findings],
        }
