"""An escrow with two owners and two analysts, on a ledger of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import pyarrow.csv
import pyarrow.parquet

from modicum.api.local import Workspace
from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.ports.escrow import Limits, Scorer, Sealed, Still, Work, go_on
from modicum.core.canonical import digest
from modicum.core.errors import Code, ConflictError, Problem, UnavailableError
from modicum.escrow.programs import Program, Range, Table
from modicum.integrations.loader import Adapters
from modicum.policy.compiler import compile_text
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from samples.small import NOON

POLICY = """\
modicum: policy/v1
name: census
dp: {filter: zcdp-v1}
units: {user: {id: person}}
schema:
  attributes: {town: low, income: high}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 2}}
"""
TABLES = """\
modicum: tables/v1
tables:
  people:
    row_id: person
    one_per: person
    columns:
      person: {type: integer}
      town: {type: text, attribute: town, values: [north, south]}
      income: {type: text, attribute: income, values: [low, high]}
"""
ROWS = b"person,town,income\n" + b"".join(
    b"%d,%s,%s\n" % (n, b"north" if n % 2 else b"south", b"high" if n % 3 else b"low")
    for n in range(300)
)
OWNED = Ownership({"olga": (), "pavel": ()}, 2, contracts_max=20, bits_max=20)
SCORE = b"""\
def score(tables, arguments, reference):
    (table,) = tables.values()
    return table["rows"][0][-1] / 300
"""
# What exact answers are given to; `OpenSandbox` takes its code for Python.
PROGRAM = Program("wasm", SCORE, {}, Range(Fraction(0), Fraction(1)))


def query(release: str, rho: str = "0.5") -> str:
    """Return a query file that counts people by town."""
    return f"""\
release: {release}
query:
  sql: "SELECT town, COUNT(*) AS people FROM people GROUP BY town"
  noise: gaussian
  loss: {{user: {{rho: {rho}}}}}
"""


@dataclass
class DictVault:
    """A vault in memory, which encrypts nothing and counts who looked.

    Attributes:
        things: What lies there.
        gone: What was shredded.
        opened: What was opened, in order.
        broken: Whether nothing can be sealed.
    """

    things: dict[str, bytes] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)
    broken: bool = False

    def seal(self, identifier: str, content: bytes) -> Sealed:
        if self.broken:
            raise UnavailableError(Problem(Code.FILE_UNREADABLE, "the disk is full"))
        if identifier in self.things or identifier in self.gone:
            raise ConflictError(Problem(Code.ALREADY_EXISTS, "taken"))
        self.things[identifier] = content
        return Sealed(identifier, self._digest(identifier))

    def find(self, identifier: str) -> Sealed | None:
        if identifier not in self.things:
            return None
        return Sealed(identifier, self._digest(identifier))

    def open(self, sealed: Sealed) -> bytes:
        if sealed.id not in self.things:
            raise UnavailableError(Problem(Code.FILE_UNREADABLE, "shredded"))
        assert sealed.digest == self._digest(sealed.id)
        self.opened.append(sealed.id)
        return self.things[sealed.id]

    def shred(self, identifier: str) -> None:
        self.gone.add(identifier)
        self.things.pop(identifier, None)

    def _digest(self, identifier: str) -> str:
        return digest(b"sealed " + identifier.encode() + self.things[identifier])


@dataclass
class OpenSandbox:
    """Runs programs right here, and keeps what it was given.

    Attributes:
        there: Whether it is there.
        given: The tables of each run.
        turns: What became of each turn: it was taken, something scored, it was left.
        before_turn: What is done before one is taken.
    """

    tier: str = "wasm"
    there: bool = True
    given: list[tuple[Any, Any]] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    before_turn: Callable[[], object] = lambda: None

    def check(self) -> None:
        if not self.there:
            raise UnavailableError(Problem(Code.SANDBOX_MISSING, "no bubblewrap"))

    @contextmanager
    def turn(self, still: Still = go_on) -> Iterator[Self]:
        self.check()
        still()
        self.before_turn()
        self.turns.append("taken")
        try:
            yield self
        finally:
            self.turns.append("left")

    def score(
        self,
        program: Program,
        tables: Mapping[str, Table],
        reference: Mapping[str, Table] | None,
        limits: Limits,
    ) -> float | None:
        assert limits.seconds > 0
        self.given.append((tables, reference))
        self.turns.append("scored")
        names: dict[str, Any] = {}
        exec(program.code, names)
        found = names["score"](_plain(tables), program.arguments, _plain(reference))
        return None if found is None else float(found)

    def score_job(
        self, program: Program, job: BinaryIO | None, limits: Limits
    ) -> float | None:
        assert job is not None
        with job:
            content = job.read()
        start = 8 if program.language == "wasm" else 0  # Where the code begins.
        end = start + int.from_bytes(content[:start], "big")
        given = json.loads(content[end:])
        assert start == 0 or content[start:end] == program.code
        self.given.append((given["tables"], given["reference"]))
        self.turns.append("scored")
        names: dict[str, Any] = {}
        exec(program.code, names)
        found = names["score"](given["tables"], given["arguments"], given["reference"])
        return None if found is None else float(found)


def _plain(tables: Mapping[str, Table] | None) -> Any:
    if tables is None:
        return None
    return {
        name: {"columns": list(one.columns), "rows": [list(row) for row in one.rows]}
        for name, one in tables.items()
    }


@dataclass
class MemoryEquipment:
    """What an escrow needs, in memory.

    Attributes:
        vault: The vault.
        box: The sandbox.
        paused: How long was waited, each time.
    """

    vault: DictVault = field(default_factory=DictVault)
    box: OpenSandbox = field(default_factory=OpenSandbox)
    paused: list[float] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    def sandbox(self, tier: str) -> OpenSandbox:
        assert tier in {self.box.tier, "bubblewrap"}
        return self.box

    @contextmanager
    def rows(self, sealed: Sealed, media: str) -> Iterator[object]:
        with self.rows_in(self.vault.open(sealed), media, sealed.id) as rows:
            yield rows

    @contextmanager
    def rows_in(self, content: bytes, media: str, name: str) -> Iterator[object]:
        if media == "csv":
            yield pyarrow.csv.read_csv(pyarrow.BufferReader(content))
        else:
            yield pyarrow.parquet.read_table(pyarrow.BufferReader(content))

    @contextmanager
    def apart(
        self,
        work: Callable[..., Work],
        *given: object,
        opens: Collection[str] = (),
        still: Still = go_on,
    ) -> Iterator[Here]:
        """Do the work here."""
        still()
        yield Here(work(self, *given))


@dataclass
class Here:
    """Work that has all open, in this process.

    Attributes:
        work: The work.
    """

    work: Work

    def __post_init__(self) -> None:
        assert next(self.work) is None

    def finish(self, run: int, scorer: Scorer | None = None) -> Mapping[str, str]:
        one, answer = scorer, cast("float | None", run)
        while True:
            try:
                request = self.work.send(answer)
            except StopIteration as end:
                return dict(end.value)
            assert one is not None
            if request is None:
                one.leave()
                continue
            assert one.program == request.program
            answer = one.turn.score(
                one.program, request.tables, request.reference, one.limits
            )


@dataclass
class World:
    """A ledger with an escrow.

    Attributes:
        folder: Where it lies.
        clock: The time.
        equipment: The vault and the sandbox.
    """

    folder: Path
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOON))
    equipment: MemoryEquipment = field(default_factory=MemoryEquipment)

    def __post_init__(self) -> None:
        self.workspace("olga", compile_text(POLICY.encode(), "policy.yaml")).init()

    def workspace(self, actor: str, policy: Any = None) -> Workspace:
        """Return the ledger for somebody."""
        store = SqliteStore(self.folder / "ledger.db", wait_seconds=20)
        ws = Workspace(store, self.clock, policy=policy, actor=actor)
        ws.adapters, ws.equipment = Adapters(), self.equipment
        return ws

    def office(self, actor: str, still: Still = go_on) -> EscrowActions:
        """Return the escrow for somebody, who may not want a run any more."""
        found = self.workspace(actor).escrow
        assert found._given is not None
        found._given = replace(found._given, still=still)
        return found

    def register(self) -> None:
        """Register the people, whom olga and pavel own together."""
        self.office("olga").register("people", ROWS, Declared(TABLES), OWNED)

    def agree(self, name: str, *people: str) -> None:
        """Let people agree to a contract; both owners if nobody is named."""
        for one in people or ("olga", "pavel"):
            self.office(one).approve(name, reason="so it is")

    def queried(self, name: str = "q", *, exact: bool = True, rho: str = "0.5") -> None:
        """Let a query of amir run."""
        self.office("amir").submit_query(
            Purpose(name, "to know"), [query(f"r-{name}", rho)], exact=exact
        )
        self.agree(name)
        self.office("amir").run(name)

    def scored(self, name: str = "t", program: Program = PROGRAM) -> None:
        """Let a task of amir run on what `queried` left."""
        self.office("amir").submit_task(Purpose(name, "to know"), "q", program)
        self.agree(name)
        self.office("amir").run(name)
