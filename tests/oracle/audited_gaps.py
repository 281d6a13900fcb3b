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
)


@dataclass
class Lost:
    """A gap: the end that is to be reached, and the entries found so far."""

    seq: int
    head: str
    entries: list[Plain] = field(default_factory=list)
    last: str = ""
    accepting: str = ""
    begins: int = 0
    #: The releases for which an entry of this log stands.
    back: set[str] = field(default_factory=set)

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

    def origins(self) -> dict[str, tuple[str, str]]:
        """Return when each release was brought in, and by whom if it was reserved."""
        found = {}
        for one in self.entries:
            event = one["event"]
            body, origin = event["body"], (event["at"], event["actor"])
            if event["kind"] == "past-recorded":
                origin = body.get("lost_at") or event["at"], body.get("lost_by", "")
            if event["kind"] in BRINGS_IN:
                found[body["release"]["id"]] = origin
        return found


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
        if kind in BRINGS_IN:
            self._brought[body["release"]["id"]] = seq
        by = str(event["actor"]).strip().casefold()
        if kind == "resume-requested":
            self._asked[body["head"]] = by, body["seq"], body["common"]
        elif kind == "ledger-resumed":
            who, *what = self._asked.pop(body["head"], ("", 0, 0))
            if (
                not who
                or self._are_one(who, by)
                or what != [body["seq"], body["common"]]
            ):
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
            name, origin = body["release"]["id"], (body["lost_at"], body["lost_by"])
            found = [one for one in self.open.values() if name in one.statuses]
            fits = [one for one in found if one.origins().get(name) == origin]
            for one in fits:
                one.back.add(name)
            if not fits:
                self._broken.append(f"{seq}: it stands for no lost entry")
        elif self.open:
            self._frozen(seq, kind, body)

    def _close(self, seq: int, gap: Lost, known: Known, accepting: str) -> None:
        if not accepting:
            self._check_all(seq, gap, known)
        elif not gap.accepting or self._are_one(gap.accepting, accepting):
            self._broken.append(f"{seq}: one person accepted a loss")

    def _are_one(self, one: str, other: str) -> bool:
        """Return whether somebody acts for both."""
        return bool(self._hands({one}) & self._hands({other}))

    def _frozen(self, seq: int, kind: str, body: Plain) -> None:
        if kind in ("flow-begun", "flow-released"):
            self._broken.append(f"{seq}: a flow, while losses are not known")
        if kind not in ENDS or kind == "release-posted":
            return
        then = {
            one.statuses.get(body["release"], "as before" * (one.last == one.head))
            for one in self.open.values()
        }
        fits = {
            "release-started": {"started", "published"},
            "release-voided": {"canceled", "expired"},
        }.get(kind, set())
        if not then & fits or then - fits - {"as before"}:
            self._broken.append(f"{seq}: {kind}, while losses are not known")

    def _find(self, seq: int, gap: Lost, entries: list[str]) -> None:
        for text in entries:
            one = json.loads(text)
            before = gap.last or self._hashes[one["seq"] - 2]
            gap.begins = gap.begins or one["seq"]
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
        origins = gap.origins()
        for name, status in gap.statuses.items():
            now, content = known(name)
            is_older = self._brought.get(name, 0) < gap.begins
            if status in ("canceled", "expired"):
                right = now != "reserved"
            else:
                wanted = gap.content(name) or content
                # What was reserved counts for who did that.
                stands = name in gap.back or not origins.get(name, ("", ""))[1]
                right = content == wanted and (
                    now in ("recorded", "started", "published")
                    if is_older
                    else now == "recorded" and stands
                )
            if not right:
                self._broken.append(f"{seq}: {name} was {status}, and is {now}")
