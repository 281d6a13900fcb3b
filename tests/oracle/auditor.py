"""An auditor that reads nothing but the stored rows, and the policies in them.

It knows how a log is written, what rules a policy has and what their filters admit;
how losses add up over a divided population it works out itself, point by point, in
arrays of whole numbers. A hundred thousand entries take it minutes, not hours; those
of an escrow take longer, since of each it looks through all before it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from oracle.audit_points import Extent, Plain, ordinal
from oracle.audit_sums import Charges, Sums, UnsupportedError
from oracle.audited_gaps import Gaps, day_of
from oracle.audited_people import People
from oracle.audited_quotas import Quotas
from oracle.escrow import permits

#: A stored row: its number, its bytes, and its hash.
Row: TypeAlias = tuple[int, bytes, str]
#: What tells the instances of a unit apart: its id, its period and its clock.
Meaning: TypeAlias = tuple[str, str | None, str | None]

GENESIS = "0" * 64
#: Since this version, a policy charges what old losses prove for its units.
ENTAILED_SINCE = 6
BRINGS_IN = ("release-reserved", "release-denied", "past-recorded")
#: Which step leads from where to where in the life of a release.
LIFE = {
    "release-started": ("reserved", "started"),
    "release-posted": ("started", "published"),
    "release-voided": ("reserved", "canceled"),
    "release-expired": ("reserved", "expired"),
}
#: What happens in an escrow; what owners say to contracts does, too.
ESCROW = (
    "data-registered",
    "data-shredded",
    "contract-proposed",
    "contract-withdrawn",
    "flow-begun",
    "flow-withheld",
    "flow-failed",
    "flow-released",
)
#: What an acknowledgment says of a release, and what the log must say then.
REACHED = {
    "denied": {"release-denied"},
    "reserved": {"release-reserved"},
    "started": {"release-reserved", "release-started"},
    "published": {"release-reserved", "release-started", "release-posted"},
    "canceled": {"release-reserved", "release-voided"},
    "recorded": {"past-recorded"},
}


@dataclass
class Findings:
    """What an audit found.

    Attributes:
        entries: How many rows there are.
        head: The hash of the last one.
        kinds: How many there are of each kind.
        broken: What contradicts the chain or the life of a release.
        overdrafts: What was allowed and exceeds a limit.
        unjust: What was denied although every limit would have held.
        misnamed: What was denied by other rules than those that are exceeded.
        unpermitted: What happened in an escrow, and no contract permits.
        lost: What was acknowledged and is not there.
        signed: How many approvals are signed, and rightly.
        understated: The rules of the last policy whose unit was another one, by its id
            or its time, when a loss that counts was recorded for it.
    """

    entries: int = 0
    head: str = GENESIS
    kinds: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    overdrafts: list[str] = field(default_factory=list)
    unjust: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)
    unpermitted: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    signed: int = 0
    understated: list[str] = field(default_factory=list)

    @property
    def mistakes(self) -> list[str]:
        """Everything that must not be."""
        decided = (self.overdrafts, self.unjust, self.misnamed)
        lists = (self.broken, *decided, self.unpermitted, self.lost)
        return [one for found in lists for one in found]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        return (
            f"{self.entries} entries ({kinds}): {len(self.broken)} broken,"
            f" {len(self.overdrafts)} overdrafts, {len(self.unjust)} unjust denials,"
            f" {len(self.misnamed)} misnamed, {len(self.unpermitted)} unpermitted,"
            f" {len(self.lost)} lost"
        )


def audit(
    rows: Callable[[], Iterable[Row]],
    acknowledged: Iterable[tuple[str, str]] = (),
) -> Findings:
    """Return what is wrong with a log.

    Args:
        rows: Reads the stored rows, in order; it is called twice.
        acknowledged: What clients were told: a word of `REACHED`, and a release.
    """
    auditor = _Auditor(_extent(rows()))
    for row in rows():
        auditor.take(row)
    auditor.quotas.close()
    auditor.compare_units()
    for step, release in acknowledged:
        if missing := REACHED[step] - auditor.said.get(release, set()):
            auditor.found.lost.append(f"{release} {step}: no {sorted(missing)}")
    return auditor.found


def bare(release: Any) -> Any:
    """Return a stored release without its periods, and what follows from them."""
    if isinstance(release, list):
        return [bare(one) for one in release]
    if not isinstance(release, dict):
        return release
    derived = ("periods", "content", "losses", "derived", "where", "groups")
    kept = {key: bare(one) for key, one in release.items() if key not in derived}
    # A description names no part at all if it reads everything.
    return kept | {key: release.get(key) for key in ("where", "groups")}


# --- what the log names, before anything is judged ------------------------------------


def _extent(rows: Iterable[Row]) -> Extent:
    found = Extent()
    for _, payload, _ in rows:
        event = json.loads(payload)["event"]
        found.note(day_of(event))
        if event["kind"] not in (*BRINGS_IN, "past-redescribed"):
            continue
        for mechanism in event["body"]["release"]["mechanisms"]:
            for end in chain.from_iterable(mechanism["periods"] or ()):
                if end is not None:
                    found.note(ordinal(end))
            for low, high in mechanism["groups"] or ():
                found.groups.update(range(low, high + 1))
    return found


# --- the log --------------------------------------------------------------------------


class _Auditor:
    def __init__(self, extent: Extent) -> None:
        self.found = Findings()
        self.said: dict[str, set[str]] = {}
        self._extent = extent
        self._status: dict[str, str] = {}
        self._expires: dict[str, str] = {}
        self._counted: dict[str, tuple[Plain, int]] = {}
        self._can_be_given_up: dict[str, Charges] = {}
        self._sums: Sums | None = None
        self._digest = ""
        self._compiled: CompiledPolicy | None = None
        self._activated_by = 1
        self._meanings: dict[str, set[tuple[str, Meaning]]] = {}
        self._last_time = ""
        self._people = People(self.found.broken)
        self._gaps = Gaps(self.found.broken, self._people.with_owners)
        self.quotas = Quotas(self.found.broken)
        self._permitted: list[dict[str, Any]] = []
        self._disclosed: set[str] = set()
        self._version = 1

    def take(self, row: Row) -> None:
        seq, payload, hash_ = row
        record = json.loads(payload)
        self._check_chain(seq, payload, hash_, record)
        self.found.entries, self.found.head = seq, hash_
        event = record["event"]
        kind, body = event["kind"], event["body"]
        self.found.kinds[kind] += 1
        if event["v"] < self._version:
            self.found.broken.append(f"{seq}: it is of an earlier version")
        self._version = event["v"]
        if kind == "disclosure-recorded":
            if body["id"] in self._disclosed:
                self.found.broken.append(f"{seq}: {body['id']} was disclosed before")
            self._disclosed.add(body["id"])
        self._look_at_escrow(event, seq)
        self._people.take(seq, event, hash_)
        self._gaps.take(seq, event, hash_, self._standing)
        self.quotas.take(seq, event)
        self.found.signed = self._people.signed
        if kind == "round-opened" and body["unlocked"]:
            raise UnsupportedError("budgets that are unlocked step by step")
        if kind == "policy-activated":
            self._activate(body, seq, event["v"])
        elif kind in BRINGS_IN:
            self._bring_in(event, seq)
        elif kind == "past-redescribed":
            self._correct(body, seq)
        elif kind in LIFE:
            self._step(event, seq)

    def _standing(self, name: str) -> tuple[str, str, int]:
        """Return status, contents and day of a release; empty if there are none."""
        release, day = self._counted.get(name, ({"content": ""}, 0))
        return self._status.get(name, ""), release["content"], day

    def _units(self) -> set[tuple[str, Meaning]]:
        """Return what tells the instances of each unit of the active policy apart."""
        assert self._compiled is not None
        facts = self._compiled.policy.vocabulary.unit_facts
        return {(name, (one.id, one.period, one.column)) for name, one in facts.items()}

    def compare_units(self) -> None:
        """See which rules count losses that were recorded for another unit."""
        if self._compiled is None or self._activated_by >= ENTAILED_SINCE:
            return
        now = dict(self._units())
        others = {
            unit
            for name in self._counted
            for unit, meaning in self._meanings[name]
            if now.get(unit, meaning) != meaning
        }
        self.found.understated = [
            rule.id for rule in self._compiled.rules if rule.unit in others
        ]

    def _correct(self, body: Plain, seq: int) -> None:
        """Put a description in the place of another one, of which it keeps all else."""
        now, name = body["release"], body["release"]["id"]
        before, day = self._counted.get(name, (None, 0))
        was_past = self._status.get(name) == "recorded"
        if before is None or not was_past or body["before"] != before:
            self.found.broken.append(f"{seq}: {name} was not recorded so")
            return
        if bare(now) != bare(before):
            self.found.broken.append(f"{seq}: {name} is corrected in more than periods")
        assert self._sums is not None
        self._sums.add(self._sums.charges(before, day), sign=-1)
        self._counted[name] = now, day
        self._sums.add(self._sums.charges(now, day))

    def _look_at_escrow(self, event: Plain, seq: int) -> None:
        """See whether contracts permit what happens, from all that happened before."""
        kind, body = event["kind"], event["body"]
        of_owners = {"contract", "data"}
        votes = kind == "approval-given" and body["subject"] in of_owners
        result = kind == "disclosure-recorded" and body["id"].startswith("contract/")
        judged = votes or result or kind in ESCROW
        if judged and not permits(self._permitted, dict(event)):
            self.found.unpermitted.append(f"{seq}: {kind}")
            return  # What may not be is as if it were not: what follows from it, too.
        self._permitted.append(dict(event))

    def _check_chain(self, seq: int, payload: bytes, hash_: str, record: Plain) -> None:
        canonical = json.dumps(
            record, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        checks = {
            "its number": seq == record["seq"] == self.found.entries + 1,
            "its hash": hashlib.sha256(payload).hexdigest() == hash_,
            "its predecessor": record["prev"] == self.found.head,
            "its form": canonical.encode() == payload,
            "its time": record["event"]["at"] >= self._last_time,
        }
        self._last_time = record["event"]["at"]
        for what, right in checks.items():
            if not right:
                self.found.broken.append(f"{seq}: {what}")

    def _activate(self, body: Plain, seq: int, version: int) -> None:
        compiled = compile_text(body["text"].encode(), "policy.yaml")
        if compiled.policy.digest != body["digest"]:
            self.found.broken.append(f"{seq}: the digest of its policy")
        self._compiled, self._digest = compiled, compiled.policy.digest
        self._activated_by = version
        units = self._units()
        if version >= ENTAILED_SINCE and any(
            self._meanings[name] != units for name in self._counted
        ):
            raise UnsupportedError("losses for units of another definition")
        self._sums = Sums(compiled, self._extent)
        self._can_be_given_up.clear()
        for release, day in self._counted.values():
            self._sums.add(self._sums.charges(release, day))

    def _bring_in(self, event: Plain, seq: int) -> None:
        kind, release = event["kind"], event["body"]["release"]
        name, day = release["id"], day_of(event)
        self.said.setdefault(name, set()).add(kind)
        if self._sums is None or event["body"]["policy"] != self._digest:
            self.found.broken.append(f"{seq}: decided by a policy that is not active")
            return
        if name in self._status:
            self.found.broken.append(f"{seq}: {name} stands already")
        charges = self._sums.charges(release, day)
        if kind != "past-recorded":
            # An entry up to version 5 follows from the rules alone.
            none = () if event["v"] < 6 else self._sums.unmatched(release)
            full = bool(self._gaps.open)
            over = (*self._sums.exceeded(charges, full=full), *none)
            body = event["body"]
            said = (*body.get("blocking", ()), *body.get("unmatched", ()))
            self._compare(kind, said, over, seq)
        if kind == "release-denied":
            return
        self._status[name] = "recorded" if kind == "past-recorded" else "reserved"
        self._expires[name] = event["body"].get("expires_at", "")
        self._counted[name] = release, day
        self._meanings[name] = self._units()
        self._can_be_given_up[name] = charges
        self._sums.add(charges)
        if kind == "release-reserved":
            assert self._compiled is not None
            bound = self._compiled.policy.reservations
            self.quotas.reserve(seq, event, bound, self._sums, self._charged)

    def _charged(self, name: str) -> Charges:
        assert self._sums is not None
        return self._sums.charges(*self._counted[name])

    def _compare(
        self, kind: str, blocking: tuple[str, ...], over: tuple[str, ...], seq: int
    ) -> None:
        if kind == "release-reserved":
            if over:
                self.found.overdrafts.append(f"{seq}: exceeds {over}")
        elif not over:
            self.found.unjust.append(f"{seq}: denied by {blocking}")
        elif blocking != over:
            self.found.misnamed.append(f"{seq}: {blocking}, not {over}")

    def _step(self, event: Plain, seq: int) -> None:
        kind, name = event["kind"], event["body"]["release"]
        self.said.setdefault(name, set()).add(kind)
        before, after = LIFE[kind]
        if self._status.get(name) != before:
            self.found.broken.append(f"{seq}: {name} cannot be {after}")
            return
        late = self._expires[name] <= event["at"] and not self._gaps.open
        over = before == "reserved" and late
        if over != (kind == "release-expired") and before == "reserved":
            self.found.broken.append(f"{seq}: {name} cannot be {after} at that time")
        self._status[name] = after
        charges = self._can_be_given_up.pop(name, None)
        if after in ("canceled", "expired"):
            release, day = self._counted.pop(name)
            assert self._sums is not None
            charges = charges or self._sums.charges(release, day)
            self._sums.add(charges, sign=-1)
