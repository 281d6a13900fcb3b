"""The escrow over HTTP: one script here and there says and writes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from samples.audited import key
from samples.escrows import (
    OWNED,
    POLICY,
    PROGRAM,
    ROWS,
    TABLES,
    MemoryEquipment,
    query,
)
from samples.remote import BEFORE, answering
from samples.small import NOON

import modicum as mo
from modicum.api.local import Workspace
from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.local.escrow.run import NoNoise
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Grants
from modicum.client.escrow import RemoteEscrow
from modicum.client.workspace import RemoteWorkspace
from modicum.core.errors import AccessError, Code, ConflictError, ModicumError
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program, Range
from modicum.integrations.loader import Adapters
from modicum.ledger.log.contracts import Version
from modicum.policy.compiler import compile_text
from modicum.server.resources import Equipment
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

EVERY = frozenset({ALL})
PEOPLE: Mapping[str, Grants] = {
    "olga": {Role.DATA_STEWARD: EVERY},
    "pavel": {Role.DATA_STEWARD: EVERY},
    "amir": {Role.ANALYST: frozenset({"people", "signed"})},
    "audra": {Role.AUDITOR: EVERY},
}
OLGA = key(1)
SIGNED = Ownership({"olga": (OLGA.public.hex(),), "pavel": ()}, 1, bits_max=3)
HALF = Program(
    "wasm",
    b"def score(tables, arguments, reference):\n    return None\n",
    {"why": "nothing", "deep": [1, {"a": None, "b": True}]},
    Range(Fraction(-1, 3), Fraction(1)),
)


#: A server refuses who has no right before the ledger refuses who owns nothing.
OWNS_NOTHING = (ConflictError, Code.NOT_PERMITTED)
MAY_NOT = (AccessError, Code.FORBIDDEN)


class Fixed(Adapters):
    """Draws no noise, so that two ledgers come out the same."""

    def sampler(self) -> Any:
        return NoNoise()


@dataclass
class Side:
    """An escrow, here or over HTTP, and what it told."""

    made: Callable[[str], Workspace | RemoteWorkspace]
    told: list[Any] = field(default_factory=list)

    def of(self, who: str) -> EscrowActions | RemoteEscrow:
        return self.made(who).escrow

    def tell(self, work: Callable[[], Any]) -> None:
        """Note what some work returns, or how it is refused."""
        try:
            self.told.append(work())
        except ModicumError as error:
            self.told.append((type(error), error.code))


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    clock = FixedClock(NOON)
    compiled = compile_text(POLICY.encode(), "policy.yaml")
    equipment = MemoryEquipment(), MemoryEquipment()

    def here(who: str) -> Workspace:
        store = SqliteStore(tmp_path / "here.db", wait_seconds=20)
        ws = Workspace(store, clock, actor=who)
        ws.adapters, ws.equipment = Fixed(), equipment[0]
        return ws

    mo.open(tmp_path / "here.db", policy=compiled, actor="olga", clock=clock).init()
    own = Equipment(escrow=Tools(equipment[1], Fixed()))
    with ExitStack() as stack:
        url = stack.enter_context(
            answering(
                tmp_path / "there.db",
                policy=compiled,
                clock=clock,
                people=PEOPLE,
                own=own,
            )
        )
        known: dict[str, RemoteWorkspace] = {}

        def there(who: str) -> RemoteWorkspace:
            if who not in known:
                ws = mo.connect(url, token=f"{BEFORE}{who}")
                known[who] = stack.enter_context(ws)
            return known[who]

        yield Side(here), Side(there)


def registering(side: Side) -> None:
    olga = side.of("olga")
    side.tell(lambda: olga.register("people", ROWS, Declared(TABLES)))
    side.tell(lambda: olga.register("others", ROWS, Declared(TABLES), OWNED))
    side.tell(lambda: olga.register("people", ROWS, Declared("no: table"), OWNED))
    side.tell(lambda: olga.register("people", ROWS, Declared(TABLES), OWNED))
    other = TABLES.replace("people:", "signed:")
    side.tell(lambda: olga.register("signed", ROWS, Declared(other), SIGNED))
    side.tell(lambda: olga.register("people", b"x\n", Declared(TABLES)))
    side.tell(lambda: olga.register("people", ROWS, Declared(TABLES)))
    side.tell(lambda: side.of("amir").data())


def asking(side: Side) -> None:
    amir, head = side.of("amir"), Purpose("q", "to know")
    side.tell(lambda: amir.submit_query(head, [query("r-q")], exact=True))
    side.tell(lambda: amir.submit_query(head, [query("r-q2")]))
    side.tell(lambda: amir.submit_query(Purpose("q2", "why"), ["release: [x"]))
    side.tell(lambda: amir.submit_query(Purpose("q3", "why"), []))
    long = Purpose("a/b c", "why", 60, 1, (), "amir")
    side.tell(lambda: amir.submit_query(long, [query("r-long")]))
    side.tell(lambda: amir.withdraw("a/b c", reason="never mind"))
    side.tell(lambda: amir.withdraw("a/b c", reason="never mind"))
    side.tell(lambda: amir.withdraw("nothing", reason="never mind"))
    side.tell(lambda: amir.run("q"))
    side.tell(lambda: amir.approve("q", reason="mine"))


def agreeing(side: Side, name: str) -> None:
    olga, pavel = side.of("olga"), side.of("pavel")
    side.tell(lambda: olga.approve(name, reason="so it is", content="0" * 64))
    side.tell(lambda: olga.approve(name, reason="so it is", head="0" * 64))
    side.tell(lambda: olga.approve(name, reason="so it is"))
    side.tell(lambda: olga.approve(name, reason="again"))
    side.tell(lambda: pavel.reject(name, reason="not so"))
    side.tell(lambda: pavel.approve(name, reason="so it is"))
    side.tell(lambda: olga.show(name))


def flowing(side: Side) -> None:
    amir = side.of("amir")
    side.tell(lambda: amir.run("q"))
    side.tell(lambda: amir.run("q"))
    side.tell(lambda: amir.receive("q"))
    side.tell(lambda: amir.submit_output(Purpose("o", "to know"), "q"))
    to = Purpose("o2", "to know", recipients=("amir", "zoe"), uses=2)
    side.tell(lambda: amir.submit_output(to, "q"))
    side.tell(lambda: amir.submit_task(Purpose("t", "to know"), "q", PROGRAM))
    side.tell(lambda: amir.submit_task(Purpose("t2", "to know"), "q", HALF))
    false = Program("python", b"x", {}, PROGRAM.range, catalogue="accuracy@1")
    side.tell(lambda: amir.submit_task(Purpose("t3", "to know"), "q", false))
    for noise, unit in (("laplace", ""), ("gaussian", "user"), ("laplace", "town")):
        blocks = ByBlocks(3, Fraction("0.25"), unit, noise)  # type: ignore[arg-type]
        purpose = Purpose(f"b-{noise}-{unit}", "to know")
        side.tell(lambda a=purpose, b=blocks: amir.submit_task(a, "q", HALF, blocks=b))  # type: ignore[misc]
    for name in ("o", "t", "t2", "b-laplace-", "b-gaussian-user"):
        agreeing(side, name)
    side.tell(lambda: amir.receive("o"))
    side.tell(lambda: side.of("olga").receive("o"))
    for name in ("t", "t2", "nothing", "o", "b-laplace-", "b-gaussian-user"):
        side.tell(lambda name=name: amir.run(name))  # type: ignore[misc]
    for task in ("t", "t2"):
        purpose = Purpose(f"s-{task}", "to know")
        side.tell(lambda a=purpose, t=task: amir.submit_signal(a, t))  # type: ignore[misc]
        for number, width in enumerate((Fraction(1, 10), None)):
            raw = Purpose(f"raw-{task}-{number}", "to know")
            side.tell(partial(amir.submit_raw_signal, raw, task, width=width))
    side.tell(lambda: amir.submit_signal(Purpose("s-b", "to know"), "b-gaussian-user"))
    for name in ("s-t", "s-t2", "raw-t-0", "s-b"):
        agreeing(side, name)
        side.tell(lambda name=name: amir.receive(name))  # type: ignore[misc]


def signing(side: Side) -> None:
    amir, olga = side.of("amir"), side.of("olga")
    text = query("r-signed").replace("people GROUP", "signed GROUP")
    text = text.replace("FROM people", "FROM signed")
    side.tell(lambda: amir.submit_query(Purpose("qs", "to know"), [text]))
    side.tell(lambda: olga.approve("qs", reason="so it is"))
    side.tell(lambda: olga.approve("qs", reason="so it is", key=key(2)))
    side.tell(lambda: olga.approve("qs", reason="so it is", key=OLGA))
    side.tell(lambda: amir.run("qs"))
    much = query("r-much", "1.9")
    side.tell(lambda: amir.submit_query(Purpose("qm", "too much"), [much]))
    for one in ("olga", "pavel"):
        side.of(one).approve("qm", reason="so it is")
    side.tell(lambda: str(amir.run("qm").denied).splitlines()[0])


def replacing(side: Side) -> None:
    olga, pavel = side.of("olga"), side.of("pavel")
    new, own = Version("people", 2), Version("signed", 2)
    other = TABLES.replace("people:", "signed:")
    side.tell(lambda: olga.register("signed", ROWS, Declared(other)))
    side.tell(lambda: olga.approve_data(own, reason="so it is"))
    side.tell(lambda: olga.approve_data(own, reason="so it is", key=key(2)))
    side.tell(lambda: olga.reject_data(own, reason="not yet"))
    side.tell(lambda: olga.approve_data(own, reason="so it is", key=OLGA))
    side.tell(lambda: olga.approve_data(own, reason="so it is", key=OLGA))
    side.tell(lambda: pavel.approve_data(new, reason="so", content="0" * 64))
    side.tell(lambda: pavel.approve_data(new, reason="so", head="0" * 64))
    side.tell(lambda: pavel.approve_data(Version("people", 9), reason="so it is"))
    side.tell(lambda: pavel.approve_data(new, reason="so it is"))
    side.tell(lambda: {name: one.newest for name, one in olga.data().items()})


def ending(side: Side) -> None:
    olga = side.of("olga")
    side.tell(lambda: side.of("pavel").contracts())
    side.tell(lambda: olga.shred(Version("people", 9), reason="it is over"))
    side.tell(lambda: olga.shred(Version("people", 2), reason="it is over"))
    side.tell(lambda: olga.shred(Version("people", 2), reason="it is over"))
    side.tell(lambda: side.of("amir").receive("o"))
    side.tell(olga.data)


def test_one_script_says_and_writes_the_same(sides: tuple[Side, Side]) -> None:
    here, there = sides
    for act in (
        registering,
        asking,
        lambda side: agreeing(side, "q"),
        flowing,
        signing,
        replacing,
        ending,
    ):
        for side in sides:
            side.told.clear()
            act(side)
        for number, (one, other) in enumerate(zip(here.told, there.told, strict=True)):
            assert other == one or (one, other) == (OWNS_NOTHING, MAY_NOT), number
    heads = [[one.hash for one in side.made("audra").records()] for side in sides]
    assert heads[0] == heads[1]
    assert len(heads[0]) > 40
    flows = {one.contract.id: one for one in there.of("audra").contracts()}
    assert flows["b-laplace-"].results
    assert flows["s-b"].released == 1
    newest = {name: one.newest for name, one in there.of("olga").data().items()}
    assert newest == {"people": 2, "signed": 2}
    assert "b-laplace-town" not in flows
