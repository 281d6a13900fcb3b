"""Assembly of a server from its settings, in each of its processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from modicum.api.local import Clock
from modicum.core.errors import Code, Problem, UsageError
from modicum.server.access_trail.record import AccessRecord
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.auth.setup import PublicAddress, authentication
from modicum.server.components import Parts
from modicum.server.processes import Listening, bound, serve
from modicum.server.rate_limits import Rates
from modicum.server.reload import checked_grants, current_settings, reload_grants
from modicum.server.resources import equipment, opened_ledger
from modicum.server.settings.binding import bound_address
from modicum.server.settings.model import Settings
from modicum.server.settings_check import checked
from modicum.server.telemetry.context import watching
from modicum.server.telemetry.log import Level, Log
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock
from modicum.writer.factory import open_decider


@dataclass(frozen=True, slots=True)
class Opened:
    """The startup report of a server.

    Attributes:
        url: The listening address.
        links: The one-time links of a server without sign-in, by person; empty if it
            has sign-in.
    """

    url: str
    links: Mapping[str, str] = field(default_factory=dict, repr=False)


def open_server(
    settings: Settings, user: str, on_open: Callable[[Opened], None] | None = None
) -> None:
    """Serve a ledger until stopped."""
    address = bound_address(settings)
    listening = Listening(
        address,
        settings.listen.port,
        settings.workers,
        drain_seconds=settings.limits.shutdown_s,
        body_bytes=settings.limits.body_bytes,
        data_bytes=settings.limits.data_bytes,
        leave_seconds=settings.limits.leave_s,
    )
    for one in (settings, *settings.completed.values()):
        checked(one, user)  # Errors are reported before any request is accepted.
    try:
        own = bound(listening)
    except OSError as error:
        reason = (error.strerror or "it is not available").lower()
        raise UsageError(
            Problem(
                Code.ALREADY_EXISTS,
                f"cannot listen on {address}:{settings.listen.port}: {reason}",
                help="choose another  --port",
            )
        ) from error
    with own:
        port = int(own.getsockname()[1])
        door = PublicAddress(address, port, user)
        callback = on_open if settings.is_local else None
        if callback is None and on_open is not None:
            on_open(Opened(door.origin))
        log = Log(sys.stderr, Level(settings.telemetry.log_level))
        serve(partial(make_parts, settings, door, callback), listening, own, log)


def make_parts(
    settings: Settings,
    door: PublicAddress,
    on_open: Callable[[Opened], None] | None = None,
    clock: Clock | None = None,
    name: str = "",
) -> Parts:
    """Return the parts of a server, or of a ledger of this name in it."""
    # Grants may have been taken away since the first process was started.
    settings = current_settings(settings)
    own, clock = equipment(settings), clock or SystemClock()
    # Snapshots are not authenticated, and could permit a disclosure.
    decider = open_decider(
        opened_ledger(settings, own.signing_key),
        actor="unknown",
        clock=clock,
        from_beginning=own.escrow is not None,
    )
    store = open_store(settings.ledger, keep_open=True)
    telemetry = settings.telemetry
    watch = watching(Level(telemetry.log_level), telemetry.otlp_endpoint, name)
    others: dict[str, Parts] = {}
    try:
        settings.refuse_behind(store)
        registry = open_registry(store, clock=clock)
        if settings.file is not None:
            checked_grants(settings, registry)
        access = AccessRecord.of(settings, store, clock)
        registry.on_use = access.trail.note_use
        watch.note_access = access.trail.note_served
        coming_in = authentication(settings, registry, clock, door)
        for other, own_settings in settings.completed.items():
            others[other] = make_parts(own_settings, door, None, clock, other)
    except BaseException:
        decider.close()
        store.close()
        for one in others.values():
            for close in (one.decider.close, *one.closing):
                close()
        raise
    if on_open is not None:
        on_open(Opened(door.origin, coming_in.links))
    access.start()
    return Parts(
        decider,
        registry,
        Recognizing([coming_in.authenticator]),
        Rates(settings.limits.requests_per_minute),
        watch,
        own=own,
        entrance=coming_in,
        console=coming_in.console() if settings.console else None,
        closing=(access.close, store.close),
        anonymous_rates=Rates(settings.limits.unrecognized_per_minute),
        reload=None
        if settings.file is None
        else partial(
            reload_grants,
            settings,
            coming_in.grants,
            registry,
            watch.log,
            access.note_settings,
        ),
        checks=(partial(settings.refuse_behind, store), access.trail.must_be_written),
        access=access,
        ledgers=others,
        host=settings.host,
    )
