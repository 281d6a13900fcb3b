"""What an auditor makes of lost entries: written without the product's code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from oracle.audit_points import Plain

#: Returns the status and the contents of a release; empty if there are none.
Known: TypeAlias = Callable[[str], tuple[str, str]]
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
    *("data-registered", "data-shredded", "contract-proposed", "contract-withdrawn"),
    *("flow-begun", "flow-withheld", "flow-failed", "flow-released"),
    *("resume-requested", "ledger-resumed", "lost-entries-found"),
    *("loss-acceptance-requested", "gap-closed", "disclosure-recorded"),
)


@dataclass
class Lost:
    """A gap: the end that is to be reached, and the entries found so far."""

    seq: int
    head: str
    entries: list[Plain] = field(default_factory=list)
    last: str = ""
    accepting: str = ""

    @property
    def statuses(self) -> dict[str, str]:
        """Return what became of each release in these entries."""
        found: dict[str, str] = {}
        for one in self.entries:
            kind, body = one["event"]["kind"], one["event"]["body"]
            if kind in BRINGS_IN:
                found[body["release"]["id"]] = BRINGS_IN[kind]
            elif kind in ENDS:
                found[body["release"]] = ENDS[kind]
            elif kind == "past-redescribed":
                found.setdefault(body["release"]["id"], "recorded")
        return found

    def content(self, name: str) -> str | None:
        """Return the contents that these entries give a release, if they do."""
        found = None
        for one in self.entries:
            release = one["event"]["body"].get("release")
            kinds = (*BRINGS_IN, "past-redescribed")
            if one["event"]["kind"] in kinds and release["id"] == name:
                found = release["content"]
        return found

    def has(self, body: Plain) -> bool:
        """Return whether an entry brought in what is recorded in its place."""
        return any(
            one["event"]["at"] == body["lost_at"]
            and one["event"]["actor"] == body["lost_by"]
            and one["event"]["kind"] in BRINGS_IN
            and one["event"]["body"]["release"]["id"] == body["release"]["id"]
            for one in self.entries
        )


class Gaps:
    """Follows what a log says of lost entries.

    Args:
        broken: Where contradictions go.
    """

    def __init__(self, broken: list[str]) -> None:
        self._broken = broken
        self._asked: dict[str, Any] = {}
        self._hashes: list[str] = []
        self.open: dict[str, Lost] = {}

    def take(self, seq: int, event: Plain, hash_: str, known: Known) -> None:
        """Take the next entry into account.

        Args:
            seq: Its number.
            event: Its event.
            hash_: Its hash.
            known: Tells what became of a release before it.
        """
        kind, body = event["kind"], event["body"]
        self._look_at_losses(seq, kind, body)
        by = str(event["actor"]).strip().casefold()
        if kind == "resume-requested":
            self._asked[body["head"]] = by, body["seq"], body["common"]
        elif kind == "ledger-resumed":
            who, *what = self._asked.pop(body["head"], ("", 0, 0))
            if not who or who == by or what != [body["seq"], body["common"]]:
                self._broken.append(f"{seq}: two people did not agree")
            self.open[body["head"]] = Lost(body["seq"], body["head"])
        elif kind == "lost-entries-found":
            self._find(seq, self.open[body["gap"]], body["entries"])
        elif kind == "loss-acceptance-requested":
            self.open[body["gap"]].accepting = by
        elif kind == "gap-closed":
            self._close(seq, self.open.pop(body["gap"]), known, by * body["accepted"])
        self._hashes.append(hash_)

    def _look_at_losses(self, seq: int, kind: str, body: Plain) -> None:
        if kind == "past-recorded" and body.get("lost_at"):
            if not any(one.has(body) for one in self.open.values()):
                self._broken.append(f"{seq}: it stands for no lost entry")
        elif self.open:
            self._frozen(seq, kind, body)

    def _close(self, seq: int, gap: Lost, known: Known, accepting: str) -> None:
        if not accepting:
            self._check_all(seq, gap, known)
        elif gap.accepting in ("", accepting):
            self._broken.append(f"{seq}: one person accepted a loss")

    def _frozen(self, seq: int, kind: str, body: Plain) -> None:
        if kind in ("flow-begun", "flow-released"):
            self._broken.append(f"{seq}: a flow, while losses are not known")
        if kind not in ENDS or kind == "release-posted":
            return
        then = {one.statuses.get(body["release"]) for one in self.open.values()}
        fits = {
            "release-started": {"started", "published"},
            "release-voided": {"canceled", "expired"},
        }
        if not then & fits.get(kind, set()):
            self._broken.append(f"{seq}: {kind}, while losses are not known")

    def _find(self, seq: int, gap: Lost, entries: list[str]) -> None:
        for text in entries:
            one = json.loads(text)
            before = gap.last or self._hashes[one["seq"] - 2]
            if one["prev"] != before:
                self._broken.append(f"{seq}: it does not follow what is known")
            gap.last = hashlib.sha256(text.encode()).hexdigest()
            gap.entries.append(one)

    def _check_all(self, seq: int, gap: Lost, known: Known) -> None:
        if gap.last != gap.head:
            self._broken.append(f"{seq}: entries are missing")
        kinds = {one["event"]["kind"] for one in gap.entries}
        if kinds & {*BEYOND}:
            self._broken.append(f"{seq}: closed, with {sorted(kinds & {*BEYOND})}")
        for name, status in gap.statuses.items():
            now, content = known(name)
            if status in ("canceled", "expired"):
                right = now != "reserved"
            else:
                wanted = gap.content(name) or content
                right = now in ("recorded", "started", "published")
                right = right and content == wanted
            if not right:
                self._broken.append(f"{seq}: {name} was {status}, and is {now}")
