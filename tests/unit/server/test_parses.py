"""Documents are parsed one at a time, at a pace, and policies outside of turns."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from samples.served import served
from samples.small import POLICY

from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.core.yaml_reader import TICK_NODES, read_document
from modicum.policy import compiler
from modicum.server.service import parses
from modicum.server.service.parses import PERIOD_EACH, Lines, Pace, Parses, Tick


class Clock:
    """A time of which a part is worked."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.worked

    def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(parses, "time", found)

    async def sleep(seconds: float) -> None:
        found.sleep(seconds)

    monkeypatch.setattr("modicum.server.service.parses.asyncio.sleep", sleep)
    return found


def test_half_of_the_time_is_worked_at_most(clock: Clock) -> None:
    pace = Pace()
    pace.begin()
    for seconds in (0.001, 0.5, 0.02):
        clock.work(seconds)
        pace()
        assert clock.worked <= clock.now / 2 + 1e-9


def test_a_fifth_of_the_time_is_worked_for_one_identity(clock: Clock) -> None:
    queue, ends = Parses(), list[float]()

    def document(tick: Tick) -> None:
        for _ in range(4):
            clock.work(0.1)
            tick()

    async def send(*names: str) -> None:
        for name in names:
            begun = clock.now
            await queue.run(name, document)
            ends.append(clock.now - begun)

    asyncio.run(send("a", "a", "a", "b"))
    # The first waits for nothing; nor does another identity.
    assert ends == pytest.approx([0.8, 0.4 * PERIOD_EACH, 0.4 * PERIOD_EACH, 0.8])


def test_so_is_a_document_that_is_refused(clock: Clock) -> None:
    queue = Parses()

    def bad(tick: Tick) -> None:
        clock.work(1)
        raise InputError(Problem(Code.YAML_SYNTAX, "x"))

    async def send() -> None:
        for _ in range(3):
            with pytest.raises(InputError):
                await queue.run("a", bad)

    asyncio.run(send())
    assert clock.now >= 2 * PERIOD_EACH


def test_who_waits_with_too_many_is_refused() -> None:
    async def fill(lines: Lines, *names: str) -> list[str]:
        ended, refused = asyncio.Event(), list[str]()

        async def wait(name: str) -> None:
            try:
                async with lines.turn(name):
                    await ended.wait()
            except UnavailableError:
                refused.append(name)

        tasks = [asyncio.create_task(wait(name)) for name in names]
        await asyncio.sleep(0)
        ended.set()
        await asyncio.gather(*tasks)
        async with lines.turn("a"), lines.turn("b"):  # All places are free again.
            return refused

    assert asyncio.run(fill(Lines("documents", 2, 9), *"aaabab")) == ["a", "a"]
    assert asyncio.run(fill(Lines("documents", 2, 3), *"abcda")) == ["d", "a"]


def test_a_parser_pauses_now_and_then() -> None:
    ticks = Counter[str]()
    text = ("[" + "a, " * (10 * TICK_NODES) + "]").encode()
    read_document(text, "a", tick=lambda: ticks.update("a"))
    assert ticks["a"] == 9
    keys = "".join(f"k{n}: 1\n" for n in range(5 * TICK_NODES)).encode()
    read_document(keys, "a", tick=lambda: ticks.update("b"))
    assert ticks["b"] == 9  # Keys count, too.
    with pytest.raises(InputError):
        read_document(text, "a", 300, tick=lambda: ticks.update("c"))
    assert ticks["c"] == 1


def test_no_policy_is_compiled_by_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, really = Counter[str](), compiler.compile_text

    def noted(*given: Any) -> Any:
        compiled[threading.current_thread().name] += 1
        return really(*given)

    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as server:
        monkeypatch.setattr(compiler, "compile_text", noted)
        active = server.get("olga", "/policies/active")
        answered = server.client.post(
            "/api/v1/policies:activate",
            params={"reason": "x"},
            content=POLICY.replace("name: small", "name: smaller", 1),
            headers={
                "X-Who": "olga",
                "Content-Type": "application/yaml",
                "Idempotency-Key": "k",
                "If-Match": active.headers["ETag"],
            },
        )
        assert answered.status_code == 200, answered.text
        assert server.get("olga", "/rules").status_code == 200
    assert compiled.total() == 1
    assert "modicum-writer" not in compiled
