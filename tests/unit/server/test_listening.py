"""The socket that a server listens on."""

from __future__ import annotations

import asyncio
import socket

from modicum.server.processes import Listening, bound


def test_no_answer_waits_for_the_acknowledgment_of_its_start() -> None:
    async def delays() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own = writer.get_extra_info("socket")
            found.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()
            await writer.wait_closed()

        with bound(Listening(port=0)) as listening:
            async with await asyncio.start_server(answer, sock=listening):
                _, writer = await asyncio.open_connection(*listening.getsockname())
                result = await found
                writer.close()
                await writer.wait_closed()
        return result

    assert asyncio.run(delays())
