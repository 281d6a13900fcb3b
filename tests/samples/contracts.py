"""Draws what people and a platform might do next in an escrow; much of it is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from msgspec.structs import replace

from modicum.api.local.evaluation import price_release
from modicum.ledger.log.contracts import (
    Charge,
    Contract,
    OutputTerms,
    QueryTerms,
    RawSignalTerms,
    SignalTerms,
    TaskTerms,
    Terms,
    Version,
)
from modicum.ledger.log.escrow_events import (
    ContractProposed,
    ContractWithdrawn,
    DataRegistered,
    DataShredded,
    FlowBegun,
    FlowFailed,
    FlowReleased,
    FlowWithheld,
)
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    PolicyActivated,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
)
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.consent import Agreement
from modicum.ledger.state.datasets import DataVersion
from modicum.ledger.state.escrow import Escrow
from modicum.ledger.state.flow import Flow, disclosed, disclosure_of
from modicum.release import EVERYTHING
from samples.small import POLICY, compiled, counts

ANALYSTS = ("amir", "bea")
OWNERS = ("olga", "pavel", "Quin", "quin")
PEOPLE = (*ANALYSTS, *OWNERS, "stranger")
SHA = "0f" * 32


@cache
def releases() -> tuple[RecordedRelease, ...]:
    """Return a few small releases of which contracts may charge some."""
    return tuple(
        price_release(counts(name, rho="0.000001"), compiled())
        for name in (f"r-{number}" for number in range(1, 30))
    )


def activation() -> PolicyActivated:
    """Return how the log of an escrow begins."""
    policy = compiled().policy
    return PolicyActivated(policy.digest, policy.name, POLICY)


@dataclass
class Drawer:
    """Draws one thing after another, more often than not one that could be permitted.

    Attributes:
        random: Where luck comes from.
        escrow: What happened so far; it is looked at only to draw what makes sense.
        said: What people said to a contract, by its digest.
        now: Days since the beginning.
    """

    random: random.Random
    escrow: Escrow
    said: Callable[[str], Iterable[Agreement]]
    releases: Sequence[RecordedRelease] = field(default_factory=releases)
    now: int = 0
    ahead: list[tuple[str, Body]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Let most releases start first, since little happens without."""
        self.ahead = [self._register(), self._register()]
        digest = compiled().policy.digest
        for one in self.releases[1:]:
            self.ahead.append(("platform", ReleaseReserved(one, digest, self.at(20))))

    def draw(self) -> tuple[str, Body]:
        """Return who does what."""
        if self.ahead:
            return self.ahead.pop()
        (what,) = self.random.choices(
            (
                self._register,
                self._shred,
                self._charge,
                self._propose,
                self._say,
                self._withdraw,
                self._flow,
                self._disclose,
            ),
            weights=(0.5, 0.6, 0.5, 4, 10, 0.6, 10, 2),
        )
        return what()

    def at(self, days: int = 0) -> str:
        """Return a time."""
        return f"2026-01-{min(1 + self.now + days, 31):02d}T00:00:00.000000Z"

    # --- data ---

    def _register(self) -> tuple[str, Body]:
        name = self.random.choice(("visits", "wages"))
        known = self.escrow.data.get(name)
        if known is not None and self._luck(0.9):
            own = known.ownership
            owners, quorum = dict(own.owners), own.quorum
            limits = known.contracts_max, known.bits_max
            due = known.last + 1
        else:
            count = self.random.choice((1, 1, 2, 3))
            people = self.random.sample(OWNERS, count)
            keys = (SHA,) if self._luck(0.2) else ()
            owners = dict.fromkeys(people, keys)
            quorum = self.random.randint(0 if self._luck(0.1) else 1, count)
            limits, due = (
                (self.random.randint(3, 9), self.random.choice((0, 8, 80, 200))),
                1,
            )
        version = due if self._luck(0.9) else self.random.randint(0, 3)
        by = self._of(list(owners))
        body = DataRegistered(name, version, SHA, "csv", "", owners, quorum, *limits)
        return by, body

    def _shred(self) -> tuple[str, Body]:
        if self._luck(0.6):
            return self._propose()
        name = self.random.choice((*self.escrow.data, "nothing"))
        known = self.escrow.data.get(name)
        owners = list(known.ownership.owners) if known else []
        return self._of(owners), DataShredded(name, self.random.randint(0, 2), "law")

    def _charge(self) -> tuple[str, Body]:
        one = self.random.choice(self.releases)
        step: Body = self.random.choice(
            (
                ReleaseReserved(one, compiled().policy.digest, self.at(20)),
                ReleaseStarted(one.id),
            )
        )
        if self._luck(0.05):
            step = ReleasePosted(one.id)
        return "platform", step

    # --- contracts ---

    def _propose(self) -> tuple[str, Body]:
        waiting = [one for one in self.escrow.flows.values() if one.is_open(self.at())]
        if len(waiting) >= 4 and self._luck(0.9):
            return self._say()
        contract = self._contract()
        if self._luck(0.15):
            contract = self._spoilt(contract)
        known = [self.escrow.data.get(one) for one in contract.data_sets]
        owners = [name for one in known if one for name in one.ownership.owners]
        by = self._of([contract.analyst, *owners[:2]])
        return by, ContractProposed(contract, "for science")

    def _contract(self) -> Contract:
        done = [one for one in self.escrow.flows.values() if one.results]
        common = {
            "id": f"c-{self.random.randint(1, 60)}",
            "expires_at": self.at(self.random.choice((1, 5, 20, 20, 20, 20, 20))),
        }
        if not done or self._luck(0.15):
            return Contract(
                **common,
                analyst=self.random.choice(ANALYSTS),
                recipients=(),
                data=self._data(),
                parent="",
                uses=1,
                terms=QueryTerms(self._charges(), self._results()),
            )
        tasks = [one for one in done if isinstance(one.contract.terms, TaskTerms)]
        parent = self.random.choice(tasks if tasks and self._luck(0.6) else done)
        terms = self._following(parent)
        charges = isinstance(terms, TaskTerms) and bool(terms.charges)
        computes = isinstance(terms, TaskTerms)
        most = (
            ANALYSTS if self._luck(0.7) else PEOPLE
        )  # Owners who get it cannot agree.
        people = self.random.sample(most, self.random.randint(1, 2))
        return Contract(
            **common,
            analyst=parent.contract.analyst,
            recipients=() if computes else tuple(sorted(people)),
            data=parent.contract.data,
            parent=parent.contract.digest,
            uses=1 if charges else self.random.randint(1, 3),
            terms=terms,
        )

    def _data(self) -> dict[str, Version]:
        known = list(self.escrow.data.items())
        if not known:
            return {"t": Version("visits", 1)}
        chosen = self.random.sample(known, self.random.randint(1, len(known)))
        return {
            name: Version(name, one.newest if self._luck(0.9) else one.last)
            for name, one in chosen
        }

    def _charges(self) -> tuple[Charge, ...]:
        used = {
            one.release
            for flow in self.escrow.flows.values()
            if isinstance(flow.contract.terms, QueryTerms | TaskTerms)
            for one in flow.contract.terms.charges
        }
        new = [one for one in self.releases if one.id not in used]
        some = new if len(new) > 1 and self._luck(0.9) else self.releases
        chosen = self.random.sample(some, self.random.choice((1, 1, 2)))
        return tuple(Charge(one.id, one.content, "a query") for one in chosen)

    def _results(self) -> tuple[str, ...]:
        return self.random.choice((("exact", "private"),) * 3 + (("private",),))

    def _following(self, parent: Flow) -> Terms:
        private = parent.results.get("private", SHA)
        exact = parent.results.get("exact", SHA)
        if isinstance(parent.contract.terms, QueryTerms) != self._luck(0.05):
            if self._luck(0.25):
                return OutputTerms(private if self._luck(0.9) else exact)
            blocks = 20 if self._luck(0.2) else 0
            charges = self._charges() if blocks else ()
            results = ("private",) if blocks else self._results()
            return TaskTerms("{}", "wasm", 60, 512, results, blocks, charges)
        if self._luck(0.3 if "exact" in parent.results else 0.9):
            return SignalTerms(private if self._luck(0.9) else exact)
        return RawSignalTerms(
            exact if self._luck(0.9) else private, self.random.choice((0, 4, 4, 20))
        )

    def _spoilt(self, one: Contract) -> Contract:
        digests = [*self.escrow.flows, SHA]
        return self.random.choice(
            (
                replace(one, id=self._of(list(self.escrow.names))),
                replace(one, analyst=self.random.choice(PEOPLE)),
                replace(one, recipients=("amir",) if not one.recipients else ()),
                replace(one, data={}),
                replace(one, data={"t": Version("visits", 2)}),
                replace(one, parent=self.random.choice(digests)),
                replace(one, parent=""),
                replace(one, uses=self.random.choice((0, 2))),
                replace(one, expires_at=self.at()),
                replace(one, terms=OutputTerms(SHA)),
                replace(one, terms=QueryTerms((), ("private",))),
                replace(one, terms=QueryTerms(self._charges() * 2, ("private",))),
                replace(one, terms=TaskTerms("", "wasm", 0, 512, ("private",))),
                replace(
                    one,
                    terms=TaskTerms("", "wasm", 9, 9, ("private",), 0, self._charges()),
                    uses=1,
                ),
                replace(one, terms=QueryTerms((Charge("r-2", SHA, ""),), ("private",))),
                replace(
                    one,
                    terms=TaskTerms("", "wasm", 9, 9, ("exact",), 9, self._charges()),
                ),
            )
        )

    def _withdraw(self) -> tuple[str, Body]:
        if self._luck(0.6):
            return self._say()
        flow = self._any()
        by = self._of(_whose(flow) if flow else [])
        return by, ContractWithdrawn(flow.contract.digest if flow else SHA, "no need")

    # --- agreeing ---

    def _say(self) -> tuple[str, Body]:
        waiting = [
            (Version(name, number), one)
            for name, known in self.escrow.data.items()
            for number, one in known.versions.items()
            if not one.agreed or self._luck(0.02)
        ]
        if waiting and self._luck(0.2):
            return self._say_of_data(*self.random.choice(waiting))
        flow = self._any()
        if flow is None:
            return self._propose()
        data = self.random.choice(flow.contract.data_sets)
        ownership = self.escrow.data[data].ownership
        given_to = (flow.contract.analyst, *flow.contract.recipients)
        may = [one for one in ownership.owners if one not in given_to]
        by = self._of(may or list(ownership.owners))
        keys = ownership.owners.get(by, ())
        signed = bool(keys) and self._luck(0.8)
        named = flow.contract.id if self._luck(0.97) else "c-0"
        body = ApprovalGiven(
            "contract",
            named,
            flow.contract.digest,
            approves=self._luck(0.93),
            roles=("owner",) if self._luck(0.97) else ("officer",),
            reason="so it is",
            head=SHA if signed else "",
            key=keys[0] if signed else "",
            signature="ab" * 64 if signed else "",
        )
        return by, body

    def _say_of_data(self, version: Version, one: DataVersion) -> tuple[str, Body]:
        owners = self.escrow.data[version.id].ownership.owners
        by = self._of(list(owners))
        keys = owners.get(by, ())
        signed = bool(keys) and self._luck(0.8)
        body = ApprovalGiven(
            "data",
            version.id if self._luck(0.97) else "wages",
            one.content(version) if self._luck(0.97) else SHA,
            approves=self._luck(0.9),
            roles=("owner",) if self._luck(0.97) else ("officer",),
            reason="so it is",
            head=SHA if signed else "",
            key=keys[0] if signed else "",
            signature="ab" * 64 if signed else "",
        )
        return by, body

    # --- flowing ---

    def _flow(self) -> tuple[str, Body]:
        flow = self._consented() if self._luck(0.75) else self._any()
        if flow is None:
            return self._charge()
        digest = flow.contract.digest
        if flow.running and self._luck(0.7):
            run = max(flow.running) if self._luck(0.95) else 3
            if self._luck(0.15):
                return "platform", FlowFailed(digest, run)
            terms = flow.contract.terms
            assert isinstance(terms, QueryTerms | TaskTerms)
            names = terms.results if self._luck(0.95) else ("exact",)
            return "platform", FlowWithheld(
                digest, run, {one: self.random.randbytes(32).hex() for one in names}
            )
        if flow.computes and self._luck(0.95):
            run = flow.runs + 1 if self._luck(0.95) else 1
            terms = flow.contract.terms
            assert isinstance(terms, QueryTerms | TaskTerms)
            started: list[tuple[str, Body]] = [("platform", FlowBegun(digest, run))]
            said = self.said(flow.contract.digest)
            may = self.escrow.consents(flow, said).given or self._luck(0.05)
            for one in terms.charges if may and self._luck(0.95) else ():
                by = "platform" if self._luck(0.97) else "amir"
                started.append((by, ReleaseStarted(one.release)))
            if self._luck(0.03):
                started.insert(1, self._charge())
            self.ahead = started
            return self.ahead.pop()
        raw = isinstance(flow.contract.terms, RawSignalTerms)
        if raw and digest not in self.told and self._luck(0.8):
            return self._disclose(flow)
        to = self._of(list(flow.contract.recipients))
        return to if self._luck(0.97) else "platform", FlowReleased(digest, to)

    def _disclose(self, flow: Flow | None = None) -> tuple[str, Body]:
        raw = [
            one
            for one in self.escrow.flows.values()
            if isinstance(one.contract.terms, RawSignalTerms)
        ]
        if flow is None and raw:
            flow = self.random.choice(raw)
        if flow is None:
            return "olga", DisclosureRecorded("x", "a map", (), EVERYTHING, "", {})
        contract, by = flow.contract, self._of(list(flow.contract.recipients))
        what = disclosed(contract) if self._luck(0.9) else "nothing much"
        name = disclosure_of(contract.digest)
        self.told.add(contract.digest)
        return by, DisclosureRecorded(name, what, (), EVERYTHING, "", {})

    # --- luck ---

    def _consented(self) -> Flow | None:
        found = [
            one
            for one in self.escrow.flows.values()
            if one.is_open(self.at())
            and self.escrow.consents(one, self.said(one.contract.digest)).given
        ]
        return self.random.choice(found) if found else None

    def _any(self) -> Flow | None:
        flows = list(self.escrow.flows.values())
        if not flows:
            return None
        open_ = [one for one in flows if one.is_open(self.at())][-3:]
        return self.random.choice(open_ if open_ and self._luck(0.8) else flows)

    def _of(self, likely: list[str]) -> str:
        if likely and self._luck(0.93):
            return self.random.choice(likely)
        return self.random.choice(PEOPLE)

    def _luck(self, chance: float) -> bool:
        return self.random.random() < chance


def _whose(flow: Flow) -> list[str]:
    """Return who may take a contract back."""
    one = flow.contract
    found = [flow.by, one.analyst, *one.recipients]
    return [*found, *(f" {who.upper()}" for who in found)]
