"""The access trail of a server, assembled from its settings, and their digests.

A digest tells whether a setting changed, and nothing of its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final

from modicum.api.ports.storage import Clock, Store
from modicum.core.canonical import Plain, digest, encode
from modicum.server.access_trail.shipment import Shipment
from modicum.server.access_trail.trail import Trail
from modicum.server.settings.model import Settings
from modicum.server.telemetry.trail_state import TrailState

#: A user and a password in a URL. Passwords are not even in a digest, by which a weak
#: one could be guessed.
_USER: Final = re.compile(r"(?<=//).*@")
_QUERY: Final = re.compile(r"\?.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """The access trail, and its shipments.

    Attributes:
        trail: The trail.
        shipments: The shipment to each target.
        digests: The digests of the settings.
    """

    trail: Trail
    shipments: tuple[Shipment, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, store: Store, clock: Clock) -> AccessRecord:
        """Return that of a server; nothing is written yet."""
        trail = Trail(store, clock)
        shipments = tuple(
            Shipment(trail.table, one, clock, number)
            for number, one in enumerate(settings.audit_to, 1)
        )
        return cls(trail, shipments, settings_digests(settings))

    def start(self) -> None:
        """Note the start, and ship from now on."""

        def ring() -> None:
            for one in self.shipments:
                one.ring()

        self.trail.on_stored = ring
        self.trail.start(self.digests)
        for one in self.shipments:
            one.start()

    def note_settings(self, settings: Settings) -> None:
        """Note the settings that are in force from now on."""
        self.trail.note_settings(settings_digests(settings))

    def state(self) -> TrailState:
        """Return the state, for metrics."""
        targets = tuple(one.state() for one in self.shipments)
        return replace(self.trail.state(), targets=targets)

    def close(self) -> None:
        """Note the end, store it, and ship it."""
        self.trail.close()
        for one in self.shipments:
            one.close()


def settings_digests(settings: Settings) -> dict[str, str]:
    """Return the digest of each setting by its name, and of all of them by ``."""
    parts = {
        one.name: digest(encode(_plain(getattr(settings, one.name))))[:16]
        for one in fields(settings)
    }
    return {"": digest(encode(parts))[:16], **parts}


def _plain(value: Any) -> Plain:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(str(_plain(one)) for one in value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    text = _USER.sub("", str(value))
    return _QUERY.sub("", text) if "://" in text else text
