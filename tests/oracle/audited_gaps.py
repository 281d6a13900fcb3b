"""What an auditor makes of lost entries: written without the product's code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from oracle.audit_points import Plain, ordinal

#: Returns the status, the contents and the day of a release; empty if there are none.
Known: TypeAlias = Callable[[str], tuple[str, str, int]]
#: A release, the policy that it is recorded under, and whom it counts for.
Written: TypeAlias = tuple[Plain, str, str]
#: Returns who acts if some people do: these, and who answers for them.
Hands: TypeAlias = Callable[[set[str]], set[str]]
#: Where a step of a release ends.
ENDS = {
    "release-started": "started",
    "release-posted": "published",
    "release-voided": "canceled",
    "release-expired": "expired",
}
BRINGS_IN = {"release-reserved": "reserved", "past-recorded": "recorded"}
#: What cannot be made good by counting releases.
BEYOND = (
    *("policy-activated", "round-opened", "group-activated", "group-retired"),
    *("data-registered", "data-shredded", "contract-proposed", "contract-withdrawn"),
    *("flow-begun", "flow-withheld", "flow-failed", "flow-released"),
    *("resume-requested", "ledger-resumed", "lost-entries-found"),
    *("loss-acceptance-requested", "gap-closed", "disclosure-recorded"),
    "request-withdrawn",
)


def day_of(event: Plain) -> int:
    """Return the day that a release counts as made on, as an ordinal."""
    body, day = event["body"], event["at"][:10]
    if event["kind"] == "past-recorded":
        day = body.get("lost_at", "")[:10] or day
        if not body.get("lost_by"):
            day = body["release"]["metadata"].get("released_on", day)
    return ordinal(day)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Lost:
    """A gap: the end that is to be reached, and the entries found so far."""

    seq: int
    head: str
    opened: int
    at: str
    entries: list[Plain] = field(default_factory=list)
    last: str = ""
    accepting: str = ""
    begins: int = 0
    #: The releases that were started in both logs.
    twice: set[str] = field(default_factory=set)
    #: What these entries say at their end, by id.
    statuses: dict[str, str] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)
    came: dict[str, tuple[str, int]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)

    def add(self, event: Plain) -> None:
        """Take the next of these entries into account."""
        kind, body = event["kind"], event["body"]
        if kind in BRINGS_IN:
            release = body["release"]
            name, by = release["id"], event["actor"]
            if kind == "past-recorded":
                by = body.get("lost_by", "")
            self.statuses[name] = BRINGS_IN[kind]
            self.written[name] = release, body["policy"], by
            self.came[name] = body.get("lost_at") or event["at"], day_of(event)
        elif kind in ENDS:
            name = body["release"]
            self.statuses[name] = ENDS[kind]
            if kind != "release-posted":
                self.moved[name] = body.get("lost_at") or event["at"]
        elif kind == "past-redescribed":
            name = body["release"]["id"]
            self.statuses.setdefault(name, "recorded")
            _, *where = self.written.get(name, ({}, "", ""))
            self.written[name] = body["release"], where[0], where[1]

    def may_have_started(self, name: str, brought: int) -> bool:
        """Return whether they may have started a release that is as old."""
        if self.last != self.head:  # What was found may not be what was lost.
            return brought < self.opened
        started = self.statuses.get(name) in ("started", "published")
        return started and brought < self.begins

    def beyond(self) -> set[str]:
        """Return what of them no count of releases makes good."""
        events = [one["event"] for one in self.entries]
        refusals = {
            "a refusal"
            for one in events
            if one["kind"] == "approval-given" and not one["body"]["approves"]
        }
        return refusals | {one["kind"] for one in events} & {*BEYOND}


class Gaps:
    """Follows what a log says of lost entries.

    Args:
        broken: Where contradictions go.
        hands: Tells who acts if some people do.
    """

    def __init__(self, broken: list[str], hands: Hands) -> None:
        self._broken = broken
        self._hands = hands
        self._brought: dict[str, int] = {}
        self._asked: dict[str, tuple[str, int]] = {}
        self._known_heads: set[str] = set()
        self._hashes: list[str] = []
        self.open: dict[str, Lost] = {}
        #: What was recorded, corrected or started again while a gap was open.
        self._written: dict[str, Written] = {}
        self._moved: dict[str, str] = {}

    def take(self, seq: int, event: Plain, hash_: str, known: Known) -> None:
        """Take the next entry into account.

        Args:
            seq: Its number.
            event: Its event.
            hash_: Its hash.
            known: Tells what became of a release before it.
        """
        kind, body = event["kind"], event["body"]
        self._look_at_losses(seq, event, known)
        if kind in BRINGS_IN:
            self._brought[body["release"]["id"]] = seq
        by = str(event["actor"]).strip().casefold()
        if kind == "resume-requested":
            if body["head"] in self._known_heads:
                self._broken.append(f"{seq}: it went on without these before")
            self._asked[body["head"]] = by, body["seq"]
        elif kind == "ledger-resumed":
            who, what = self._asked.pop(body["head"], ("", 0))
            if not who or self._are_one(who, by) or what != body["seq"]:
                self._broken.append(f"{seq}: two people did not agree")
            self._known_heads.add(body["head"])
            self.open[body["head"]] = Lost(body["seq"], body["head"], seq, event["at"])
        elif kind == "lost-entries-found":
            self._find(seq, self.open[body["gap"]], body["entries"], known)
        elif kind == "loss-acceptance-requested":
            self.open[body["gap"]].accepting = by
        elif kind == "gap-closed":
            self._close(seq, self.open.pop(body["gap"]), known, by * body["accepted"])
        self._hashes.append(hash_)

    def _look_at_losses(self, seq: int, event: Plain, known: Known) -> None:
        kind, body = event["kind"], event["body"]
        if kind in ("past-recorded", "past-redescribed"):
            name, at = body["release"]["id"], body.get("lost_at", "")
            by = body.get("lost_by", "")
            policy = body["policy"] if kind == "past-recorded" else ""
            it = body["release"], policy, by
            stands = any(
                one.written.get(name) == it
                and one.came.get(name) == (at, day_of(event))
                for one in self.open.values()
            )
            if (at or by) and not stands:
                self._broken.append(f"{seq}: it stands for no lost entry")
            if self.open:
                self._written[name] = it
        elif kind in ENDS and kind != "release-posted":
            self._move(seq, kind, body, known)
        elif kind in ("flow-begun", "flow-released") and self.open:
            self._broken.append(f"{seq}: a flow, while losses are not known")

    def _move(self, seq: int, kind: str, body: Plain, known: Known) -> None:
        name, at = body["release"], body.get("lost_at", "")
        if not at:
            if self.open:
                self._broken.append(f"{seq}: {kind}, while losses are not known")
            return
        started = {"started", "published"}
        fits = started if kind == "release-started" else {"canceled", "expired"}
        gaps = self.open.values()
        right = any(
            one.statuses.get(name) in fits and one.moved.get(name) == at for one in gaps
        )
        if kind == "release-started":  # Who does not know must believe it.
            right |= any(one.last != one.head and one.at == at for one in gaps)
        else:  # It gives back: all must be known.
            right &= all(
                one.last == one.head and one.statuses.get(name) not in started
                for one in gaps
            )
        if not right:
            self._broken.append(f"{seq}: {kind}, and no lost entry is known that did")
        if kind == "release-started":
            self._moved[name] = at

    def _close(self, seq: int, gap: Lost, known: Known, accepting: str) -> None:
        if not accepting:
            self._check_all(seq, gap, known)
        elif not gap.accepting or self._are_one(gap.accepting, accepting):
            self._broken.append(f"{seq}: one person accepted a loss")
        elif any(
            known(name)[0] == "reserved" and gap.may_have_started(name, there)
            for name, there in self._brought.items()
        ):
            self._broken.append(f"{seq}: accepted, and a start is not in the log")

    def _are_one(self, one: str, other: str) -> bool:
        """Return whether somebody acts for both."""
        return bool(self._hands({one}) & self._hands({other}))

    def _find(self, seq: int, gap: Lost, entries: list[str], known: Known) -> None:
        for text in entries:
            one = json.loads(text)
            event = one["event"]
            before = gap.last or self._hashes[one["seq"] - 2]
            gap.begins = gap.begins or one["seq"]
            number = gap.begins + len(gap.entries)
            if not gap.last and self._hashes[one["seq"] - 1 :][:1] == [_hash(text)]:
                self._broken.append(f"{seq}: its first entry is in this log, too")
            if one["prev"] != before or one["seq"] != number:
                self._broken.append(f"{seq}: it does not follow what is known")
            gap.last, gap.accepting = _hash(text), ""
            right = gap.last == gap.head if number == gap.seq else number < gap.seq
            if not right or not 1 < gap.begins <= gap.opened:
                self._broken.append(f"{seq}: it was not lost")
            name = event["body"].get("release")
            if event["kind"] == "release-started" and name not in gap.statuses:
                at = event["body"].get("lost_at") or event["at"]
                again = known(name)[0] in ("started", "published", "recorded")
                if again and self._moved.get(name) != at:
                    gap.twice.add(name)
            gap.entries.append(one)
            gap.add(event)

    def _check_all(self, seq: int, gap: Lost, known: Known) -> None:
        if gap.last != gap.head:
            self._broken.append(f"{seq}: entries are missing")
        if gap.beyond() or gap.twice:
            found = sorted(gap.beyond() | gap.twice)
            self._broken.append(f"{seq}: closed, with {found}")
        for name, status in gap.statuses.items():
            now, _, day = known(name)
            is_older = self._brought.get(name, 0) < gap.begins
            if status in ("canceled", "expired"):
                right = now != "reserved"
            elif name in gap.written:
                # It counts as it did, on its day, and for who reserved it.
                right = (
                    now == "recorded" and self._written.get(name) == gap.written[name]
                )
                right &= day == gap.came.get(name, ("", day))[1]
            else:
                right = is_older and now in ("started", "published", "recorded")
            if not right:
                self._broken.append(f"{seq}: {name} was {status}, and is {now}")
