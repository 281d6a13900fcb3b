"""The access trail of a server, assembled from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from modicum.api.ports.storage import Clock, Store
from modicum.server.access_trail.settings_digest import settings_digests
from modicum.server.access_trail.shipment import Shipment
from modicum.server.access_trail.trail import Trail
from modicum.server.settings.model import Settings
from modicum.server.telemetry.trail_state import TrailState


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
