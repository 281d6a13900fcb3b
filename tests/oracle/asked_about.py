"""What people were asked about in a log, found again by looking through all of it.

Everything is looked for from the beginning whenever it is needed. Who counts is what
`People` says, which reads the same rows in plain words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from oracle.audited_people import People

Plain: TypeAlias = dict[str, Any]
Topic: TypeAlias = tuple[str, str, int]
COMING_IN = {"release-reserved": "reserved", "past-recorded": "recorded"}


class AskedAbout:
    """A log, and what it says of those who agreed.

    Args:
        rows: Each event and the hash of its record, in order.
    """

    def __init__(self, rows: Sequence[tuple[Plain, str]]) -> None:
        self.events = [event for event, _ in rows]
        self.people = People()
        self.counted: dict[int, list[Plain]] = {}
        self.votes: list[Plain] = []
        for seq, (event, hash_) in enumerate(rows, 1):
            if event["kind"] == "approval-given":
                self.votes.append(self._vote(seq, event))
            self.counted[seq] = list(self._counted(event))
            self.people.take(seq, event, hash_)

    # --- words ---

    def _keys(self) -> dict[str, tuple[str, ...]]:
        policy = self.people._policy
        return dict(policy.keys) if policy else {}

    def _vote(self, seq: int, event: Plain) -> Plain:
        body, by, keys = event["body"], event["actor"], self._keys()
        named = body["key"] != "" and body["key"] in keys.get(by, ())
        return {
            **self._who(seq),
            **{name: body[name] for name in ("subject", "id", "content", "approves")},
            "roles": body["roles"],
            "reason": body["reason"],
            "key": body["key"] or None,
            "key_named": named,
            "countable": named or by not in keys or not body["approves"],
        }

    def _counted(self, event: Plain) -> Iterator[Plain]:
        """Yield whose agreement counts for an entry, before it is taken."""
        body, by = event["body"], event["actor"]
        if event["kind"] == "release-reserved":
            subject, content = "release", body["release"]["content"]
            agreed = self.people.agreed_to_release(body["release"], by)
        elif event["kind"] == "policy-activated" and self.people.events:
            subject, content = "policy", body["digest"]
            agreed = self.people.agreed_to_policy(content, by)
        else:
            return
        last = self.people._last_words(subject, content)
        for person in sorted(agreed or ()):
            vote = last[person]
            (seq,) = [
                seq
                for seq, one in enumerate(self.people.events, 1)
                if one["body"] is vote
            ]
            yield {
                "by": person,
                "entry": seq,
                "key": vote["key"] or None,
                "key_named": vote["key"] in self._keys().get(person, ()),
            }

    # --- what people were asked about ---

    def approval_cases(self) -> list[Plain]:
        """Return all that people were asked about, as a statement tells it."""
        topics = dict.fromkeys(
            topic for seq in self._all() for topic in self._mentions(seq)
        )
        return [self._case(topic) for topic in topics]

    def _all(self) -> range:
        return range(1, len(self.events) + 1)

    def _event(self, seq: int) -> tuple[str, Plain]:
        return self.events[seq - 1]["kind"], self.events[seq - 1]["body"]

    def _who(self, seq: int) -> Plain:
        event = self.events[seq - 1]
        return {"seq": seq, "at": event["at"], "actor": event["actor"]}

    def _epoch(self, seq: int) -> int:
        before = self.events[: seq - 1]
        return sum(one["kind"] == "policy-activated" for one in before)

    def _mentions(self, seq: int) -> Iterator[Topic]:
        kind, body = self._event(seq)
        if kind == "approval-given":
            epoch = self._epoch(seq) if body["subject"] == "policy" else 0
            yield body["subject"], body["content"], epoch
        elif kind in ("policy-proposed", "policy-activated"):
            yield "policy", body["digest"], self._epoch(seq)
        elif kind == "release-requested":
            yield "release", body["release"]["content"], 0

    def _case(self, topic: Topic) -> Plain:
        about = [seq for seq in self._all() if topic in self._mentions(seq)]
        steps = sorted({*self._steps(topic, about)})
        let_in = [seq for seq, what in steps if what in ("activated", "reserved")]
        return {
            "subject": topic[0],
            "id": self._id(about[0]),
            "content": topic[1],
            "name": self._name(about),
            "state": self._state(steps),
            "steps": [
                {**self._who(seq), "what": what, "reason": self._reason(seq, what)}
                for seq, what in steps
            ],
            "votes": [seq for seq in about if self._event(seq)[0] == "approval-given"],
            "counted": self.counted[let_in[0]] if let_in else [],
        }

    def _id(self, seq: int) -> str:
        kind, body = self._event(seq)
        if kind == "release-requested":
            return str(body["release"]["id"])
        return str(body["id" if kind == "approval-given" else "digest"])

    def _name(self, about: list[int]) -> str | None:
        names = [self._event(seq)[1].get("name") for seq in about]
        return next((name for name in names if name), None)

    def _reason(self, seq: int, what: str) -> str:
        silent = what in ("replaced", "lapsed", *COMING_IN.values())
        return "" if silent else str(self._event(seq)[1]["reason"])

    def _steps(self, topic: Topic, about: list[int]) -> Iterator[tuple[int, str]]:
        subject, content, _ = topic
        for seq in about:
            kind, body = self._event(seq)
            if kind == "policy-activated":
                yield seq, "activated"
            elif kind == "policy-proposed":
                yield seq, "requested"
                yield from self._first_policy_after(seq, content)
            elif kind == "release-requested":
                yield seq, "requested"
                yield from self._first_end_after(seq, body["release"])
        if subject == "release":
            for seq in self._all()[about[0] :]:
                kind, body = self._event(seq)
                if kind in COMING_IN and body["release"]["content"] == content:
                    yield seq, COMING_IN[kind]

    def _first_policy_after(self, asked: int, digest: str) -> Iterator[tuple[int, str]]:
        for seq in self._all()[asked:]:
            kind, body = self._event(seq)
            if kind == "policy-activated":
                if body["digest"] != digest:
                    yield seq, "lapsed"
                return

    def _first_end_after(self, asked: int, release: Plain) -> Iterator[tuple[int, str]]:
        for seq in self._all()[asked:]:
            kind, body = self._event(seq)
            if kind == "request-withdrawn" and body["release"] == release["id"]:
                yield seq, "withdrawn"
                return
            if kind in ("release-requested", *COMING_IN):
                if body["release"]["id"] != release["id"]:
                    continue
                if body["release"]["content"] != release["content"]:
                    yield seq, "replaced"
                return

    def _state(self, steps: list[tuple[int, str]]) -> str:
        if not steps:
            return "not requested"
        seq, what = steps[-1]
        kind, body = self._event(seq)
        if what != "requested":
            return what
        active = [
            one["body"]["digest"]
            for one in self.events
            if one["kind"] == "policy-activated"
        ][-1]
        late = kind == "release-requested" and body["policy"] != active
        return "outdated" if late else "pending"

    def enough(self, case: Plain) -> bool:
        """Return whether enough people agree to what waits, whoever brings it in."""
        if case["subject"] == "policy":
            return self.people.agreed_to_policy(case["content"], "") is not None
        asked = self._event(case["steps"][-1]["seq"])[1]["release"]
        return self.people.agreed_to_release(asked, "") is not None
