"""Many clients at once: each asks for releases, one after the other, and notes answers.

They speak HTTP over streams of asyncio, which cost little; so what is measured is the
server, and not its clients.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Answers that ask to come again: nothing was done.
BACK_PRESSURE = frozenset({429, 503})
#: Who hears nothing for so long takes the connection for lost.
PATIENCE_SECONDS = 60.0


@dataclass
class Noted:
    """What all clients noted.

    Attributes:
        reserved: The releases that were acknowledged as reserved.
        statuses: How many answers had each status.
        lost: How many connections broke before an answer.
        unexpected: Answers that nobody should get, some of them.
        seconds: How long each answer took.
    """

    reserved: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0
    unexpected: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def percentile(self, percent: int) -> float:
        """Return a percentile of how long answers took, in seconds."""
        found = sorted(self.seconds)
        return found[min(len(found) - 1, len(found) * percent // 100)]


class Client:
    """One client: it keeps its connection while it holds.

    Args:
        number: Its number.
        ports: The ports of the servers, any of which may be asked.
        token: Its token.
        noted: Where it notes answers.
    """

    def __init__(
        self, number: int, ports: Sequence[int], token: str, noted: Noted
    ) -> None:
        self._number = number
        self._ports = ports
        self._token = token
        self._noted = noted
        self._rng = random.Random(number)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, count: int, document: dict[str, Any]) -> None:
        """Ask for a release until it is answered, always under the same key.

        Args:
            count: Tells it from this client's others.
            document: The release, without an id.
        """
        name = f"c{self._number}-{count}"
        body = json.dumps({"release": name, **document}).encode()
        while True:
            began = time.perf_counter()
            try:
                status, result = await asyncio.wait_for(
                    self._asked(body, name), PATIENCE_SECONDS
                )
            except (OSError, EOFError, TimeoutError):
                self._noted.lost += 1
                self.close()
                await asyncio.sleep(0.05 + 0.1 * self._rng.random())
                continue
            self._noted.seconds.append(time.perf_counter() - began)
            self._noted.statuses[status] += 1
            if status in BACK_PRESSURE:
                await asyncio.sleep(0.5 + self._rng.random())
                continue
            answer = json.loads(result)
            if status != 200 or answer["status"] != "reserved":
                self._noted.unexpected.append(f"{status} {result[:300]!r}")
            else:
                self._noted.reserved.add(name)
            return

    async def _asked(self, body: bytes, key: str) -> tuple[int, bytes]:
        if self._writer is None:
            port = self._rng.choice(self._ports)
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", port
            )
        assert self._reader is not None
        head = (
            "POST /api/v1/releases HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self._token}\r\nIdempotency-Key: {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        port = self._writer.get_extra_info("peername")[1]
        head = head.replace("Host: 127.0.0.1", f"Host: 127.0.0.1:{port}")
        self._writer.write(head.encode() + body)
        await self._writer.drain()
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        result = await self._reader.readexactly(int(fields["content-length"]))
        if fields.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split()[1]), result

    def close(self) -> None:
        """Let go of the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


async def crowd(
    ports: Sequence[int],
    tokens: Sequence[str],
    clients: int,
    seconds: float,
    document: Callable[[int], dict[str, Any]],
) -> Noted:
    """Let many clients ask for some time; each hears its last answer.

    Args:
        ports: The ports of the servers.
        tokens: Tokens, which the clients share.
        clients: How many clients.
        seconds: For how long they begin new requests.
        document: Returns a release of a client, without an id.
    """
    noted = Noted()
    ends = time.monotonic() + seconds

    async def live(number: int) -> None:
        one = Client(number, ports, tokens[number % len(tokens)], noted)
        count = 0
        try:
            while time.monotonic() < ends:
                await one.ask(count, document(number))
                count += 1
        finally:
            one.close()

    await asyncio.gather(*(live(number) for number in range(clients)))
    return noted
