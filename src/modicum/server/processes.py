"""Running the server: one process, or several that share an address."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from math import ceil

from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from modicum.api.operations import ledger_prefix
from modicum.ops.wiring import sharing_metrics
from modicum.server.app import build
from modicum.server.body_limits import BODY_BYTES
from modicum.server.components import Parts
from modicum.server.connections import (
    Connections,
    Timeouts,
    connections_max,
    patient,
)
from modicum.server.ledger_paths import LedgerPaths
from modicum.server.reload import on_hangup
from modicum.server.shutdown import ending_well, leaving
from modicum.server.telemetry.library_logs import taking_over
from modicum.server.telemetry.log import Log
from modicum.system.core_dumps import forbid_core_dumps

#: Maximum number of connections waiting to be accepted.
WAITING = 1024
#: A process without a heartbeat for this many seconds is killed and replaced: starting
#: on a busy machine also takes a while.
SILENT_SECONDS = 30
#: So long those who are served when the server is to end may take.
DRAIN_SECONDS = 30
#: So many more objects exist before a look for cycles. A look at the default of 700
#: comes every few requests, and finds them all in use; so does one at 10,000, if some
#: hundreds of requests are in progress.
OBJECTS = 100_000


@dataclass(frozen=True, slots=True)
class Listening:
    """The listening address and options of a server.

    Attributes:
        host: The address.
        port: The port; 0 for a free one.
        workers: How many processes.
        drain_seconds: How long those who are served when it ends may take.
        body_bytes: The largest body of a request.
        data_bytes: The largest body of a request to the escrow.
        leave_seconds: The time it continues to serve after the stop signal, so that
            load balancers learn of it from `/readyz`.
        waits: For how many seconds a client may keep it waiting.
    """

    host: str = "127.0.0.1"
    port: int = 8642
    workers: int = 1
    drain_seconds: int = DRAIN_SECONDS
    body_bytes: int = BODY_BYTES
    data_bytes: int = 0
    leave_seconds: float = 0.0
    waits: Timeouts = field(default_factory=Timeouts)


def serve(
    make: Callable[[], Parts],
    listening: Listening,
    own: socket.socket,
    log: Log | None = None,
) -> None:
    """Serve until stopped; running requests are finished."""
    config = config_of(
        partial(
            application,
            make,
            body_bytes=listening.body_bytes,
            data_bytes=listening.data_bytes,
            leave_seconds=listening.leave_seconds,
        ),
        listening,
    )
    if listening.workers == 1:
        with ending_well():
            Server(config).run([own])
        return
    with sharing_metrics(), taking_over(log or Log()):
        workers = Workers(config, sockets=[own])
        workers.run()
    if any(one.exitcode == STARTUP_FAILURE for one in workers.processes):
        raise SystemExit(STARTUP_FAILURE)


class Workers(Multiprocess):
    """Several processes that share a socket; one that dies is begun anew."""

    def terminate_all(self) -> None:
        """Stop all processes, including those that do not respond."""
        for one in self.sockets:
            one.close()
        super().terminate_all()

    def handle_hup(self) -> None:
        """Have all processes read grants again; uvicorn would start them anew."""
        for one in self.processes:
            if one.pid is not None:
                os.kill(one.pid, signal.SIGHUP)


def config_of(app: Callable[[], ASGIApp], listening: Listening) -> Config:
    """Return how uvicorn serves an application."""
    connections = Connections(connections_max(), listening.waits)
    return Config(
        app,
        factory=True,
        host=listening.host,
        port=listening.port,
        workers=listening.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        http=patient(connections),
        loop="asyncio",  # Another one reads into buffers of its own.
        ws="none",
        proxy_headers=False,  # Only from proxies that settings name.
        timeout_keep_alive=ceil(listening.waits.idle),
        timeout_graceful_shutdown=listening.drain_seconds,
        timeout_worker_healthcheck=SILENT_SECONDS,
    )


def bound(listening: Listening) -> socket.socket:
    """Return a socket at the address; an occupied one is reported."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # Named, or asyncio leaves Nagle's algorithm on: 40 ms for each answer.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((listening.host, listening.port))
        found.listen(WAITING)  # Early clients wait until the server is ready.
        found.set_inheritable(True)
    except BaseException:
        found.close()
        raise
    return found


def application(
    make: Callable[[], Parts],
    *,
    body_bytes: int = BODY_BYTES,
    data_bytes: int = 0,
    leave_seconds: float = 0.0,
) -> ASGIApp:
    """Return the application of a process; its parts end with it."""
    forbid_core_dumps()
    parts = make()
    watch = parts.watch
    ending = ExitStack()
    ending.enter_context(taking_over(watch.log))
    ending.callback(gc.set_threshold, *gc.get_threshold())
    gc.set_threshold(OBJECTS)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        watch.log.began(version=version("modicum"))
        with ending:
            try:
                with leaving(parts, leave_seconds), on_hangup(parts.reload_all):
                    yield
            finally:
                await parts.close()
                watch.log.ended()

    first = build(parts, living, body_bytes, data_bytes)
    if not parts.ledgers:
        return first
    others = {
        name: build(one, None, body_bytes, data_bytes, prefix=ledger_prefix(name))
        for name, one in parts.ledgers.items()
    }
    hosts = {
        host.lower(): name for name, one in parts.ledgers.items() for host in one.hosts
    }
    return LedgerPaths(first, others, hosts)
