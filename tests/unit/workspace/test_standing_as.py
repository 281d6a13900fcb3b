"""A decision that stands keeps all that was decided."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from modicum.workspace import Decision
from modicum.workspace.answers import standing_as


def test_only_the_status_and_the_end_of_the_reservation_change() -> None:
    values: dict[str, Any] = {one.name: object() for one in fields(Decision)}
    decision = Decision(**values)
    for end in ("", "2026-11-22T00:00:00.000000Z"):
        found = standing_as(decision, "reserved", end)
        expected = replace(decision, status="reserved", expires_at=end)
        for one in fields(Decision):
            assert getattr(found, one.name) is getattr(expected, one.name), one.name
