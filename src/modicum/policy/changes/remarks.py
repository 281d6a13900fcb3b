"""A change beside the rules, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from modicum.policy.changes.rule_comparison import Verdict


@dataclass(frozen=True, slots=True)
class Declared:
    """Something that changed beside the rules.

    Attributes:
        verdict: `TIGHTER` or `LOOSER` where that is clear; `CHANGED` where it may
            loosen something; `SAME` where it cannot change a decision by itself,
            or does so only by rules, which are compared one by one.
        subject: What it is about: `filter`, `unit`, `label`, `attribute`,
            `category`, `extension`, `guard`, `role`, `key`, `approval`,
            `activation`, `invariant`, `partition`, `group`, `time`, `rotation` or
            `reservations`.
        text: What changed, in one line.
    """

    verdict: Verdict
    subject: str
    text: str


def shown(value: object) -> str:
    """Return a value in words."""
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return listed(value)
    return str(value)


def listed(names: Iterable[object]) -> str:
    """Return names in words: a list as it is, others in order."""
    words = [str(one) for one in names]
    kept = words if isinstance(names, list | tuple) else sorted(words)
    return ", ".join(kept[:10]) + (", …" if len(kept) > 10 else "") or "nothing"
