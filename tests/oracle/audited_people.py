"""What people said in a log, counted again from its rows, in plain words.

It knows how an approval is signed and who counts, and nothing of how modicum does it:
it keeps every event and reads them all again whenever something is to be counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec.structs import replace

from modicum.ledger.decision.approvals import approvals_required
from modicum.ledger.log.codec import release_from_plain
from modicum.policy import Policy
from modicum.policy.compiler import compile_text
from modicum.policy.model import Approval

Plain: TypeAlias = dict[str, Any]


#: What ends a request for an id.
COMES_IN = ("release-reserved", "past-recorded", "past-redescribed")


@dataclass
class People:
    """Everything that was said so far, and what is wrong with it.

    Attributes:
        mistakes: What contradicts what was said before.
        signed: How many approvals are signed, and rightly.
        events: Everything so far.
        since: The number of the entry that activated the policy that holds.
    """

    mistakes: list[str] = field(default_factory=list)
    signed: int = 0
    events: list[Plain] = field(default_factory=list)
    #: Votes, requests and corrections, with their places among all events: few are.
    _few: list[tuple[int, Plain]] = field(default_factory=list)
    _hashes: list[str] = field(default_factory=list)
    _policy: Policy | None = None
    since: int = 0

    def take(self, seq: int, event: Plain, hash_: str) -> None:
        """Look at the next event, and keep it."""
        wrong = list(self._wrong(event))
        self.mistakes += [f"{seq}: {one}" for one in wrong]
        if event["kind"] in ("approval-given", "release-requested", "past-redescribed"):
            self._few.append((len(self.events), event))
        self.events.append(event)
        self._hashes.append(hash_)
        if event["kind"] == "policy-activated":
            text = event["body"]["text"].encode()
            self._policy = compile_text(text, "policy.yaml").policy
            self.since = seq

    def _wrong(self, event: Plain) -> Iterator[str]:
        body, by = event["body"], event["actor"]
        match event["kind"]:
            case "approval-given":
                yield from self._ill_said(body, by, event["v"])
            case "release-requested":
                pending = self.pending().get(body["release"]["id"])
                yield from self._ill_requested(body, by, pending)
            case "request-withdrawn":
                pending = self.pending().get(body["release"])
                if pending is None or pending["actor"] != by:
                    yield "it is not theirs to withdraw"
            case "policy-proposed":
                yield from self._ill_proposed(body)
            case "past-redescribed":
                yield from self._ill_corrected(body, by)
            case "release-reserved":
                yield from self._ill_reserved(body, by)
            case "policy-activated" if self._policy:
                if self.agreed_to_policy(body["digest"], by) is None:
                    yield "it is activated without approval"

    # --- requests and proposals ---

    def pending(self) -> dict[str, Plain]:
        """Return the requests that wait, by id, as if all were read again."""
        found: dict[str, Plain] = {}
        for event in self.events:
            body = event["body"]
            if event["kind"] == "release-requested":
                found[body["release"]["id"]] = event
            elif event["kind"] == "request-withdrawn":
                found.pop(body["release"], None)
            elif event["kind"] in COMES_IN:
                found.pop(body["release"]["id"], None)
        return found

    def _ill_requested(
        self, body: Plain, by: str, pending: Plain | None
    ) -> Iterator[str]:
        release = body["release"]
        stands = {
            one["body"]["release"]["id"]: one
            for one in self.events
            if one["kind"] in COMES_IN
        }
        known = stands.get(release["id"])
        if known is not None and (
            known["kind"] == "release-reserved"
            or known["body"]["release"]["content"] == release["content"]
        ):
            yield "what stands is requested"
        if pending is not None and pending["actor"] != by:
            yield "somebody else asks for it"
        same = (release["content"], body["policy"])
        if pending is not None and same == (
            pending["body"]["release"]["content"],
            pending["body"]["policy"],
        ):
            yield "the same is requested twice"
        if known is None and not self._asked(release):
            yield "it needs no approval"

    def _ill_proposed(self, body: Plain) -> Iterator[str]:
        compiled = compile_text(body["text"].encode(), "policy.yaml").policy
        if (compiled.digest, compiled.name) != (body["digest"], body["name"]):
            yield "its text is of another policy"
        if [*self.proposers(body["digest"])]:
            yield "it is already proposed"
        if self._policy and self._policy.digest == body["digest"]:
            yield "it is already active"

    def proposers(self, digest: str) -> Iterator[str]:
        """Yield who proposed a policy since the active one came."""
        for event in self.events[self.since :]:
            if event["kind"] == "policy-proposed" and event["body"]["digest"] == digest:
                yield event["actor"]

    # --- approvals ---

    def _ill_said(self, body: Plain, by: str, version: int) -> Iterator[str]:
        if version < 3:
            return
        if body["head"] not in self._ends():
            yield "it looked at something else"
        if body["key"] == body["signature"] == "":
            return
        signed = {name: body[name] for name in body if name != "signature"}
        signed |= {"kind": "modicum-approval/v1", "by": by}
        signed["policy"] = self._policy.digest if self._policy else ""
        text = json.dumps(
            signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(body["key"]))
            key.verify(bytes.fromhex(body["signature"]), text.encode())
        except (InvalidSignature, ValueError):
            yield "its signature is not by its key"
        else:
            self.signed += 1

    def _ends(self) -> set[str]:
        """Return the hashes that are the end: of the last, or before expirations."""
        ends, place = {self._hashes[-1]}, len(self.events) - 1
        at = self.events[place]["at"]
        while place and self.events[place]["kind"] == "release-expired":
            if self.events[place]["at"] != at:
                break
            place -= 1
            if (
                self.events[place]["kind"] != "release-expired"
                or self.events[place]["at"] != at
            ):
                ends.add(self._hashes[place])
        return ends

    def _asked(self, release: Plain) -> tuple[Approval, ...]:
        assert self._policy is not None
        derived = any("derived" in one for one in release["mechanisms"])
        read = release_from_plain(release, 6 if derived else 5)
        return approvals_required(read, self._policy)

    def agreed_to_release(self, release: Plain, by: str) -> set[str] | None:
        """Return who agreed and counts if somebody submits it; None if too few."""
        named = {**release["metadata"], **release["labels"]}.get("requester")
        requesters = {by, *([named] if named else []), *self.requesters(release)}
        content = release["content"]
        return self._agreed(self._asked(release), "release", content, requesters)

    def agreed_to_policy(self, digest: str, by: str) -> set[str] | None:
        """Return who agreed and counts if somebody activates it; None if too few."""
        assert self._policy is not None
        if self._policy.activation is None:
            return set()
        requesters = {by, *self.proposers(digest)}
        return self._agreed([self._policy.activation], "policy", digest, requesters)

    def requesters(self, release: Plain) -> set[str]:
        """Return who ever requested a release; or a correction, since it was made."""
        found: set[str] = set()
        for _, one in self._few:
            if one["kind"] not in ("release-requested", "past-redescribed"):
                continue
            if one["body"]["release"]["content"] == release["content"]:
                is_request = one["kind"] == "release-requested"
                found = found | {one["actor"]} if is_request else set()
        return found

    def _ill_reserved(self, body: Plain, by: str) -> Iterator[str]:
        agreed = self.agreed_to_release(body["release"], by)
        if agreed is None:
            yield "it is reserved without approval"
        elif sorted(agreed) != body["approved_by"]:
            yield "it names approvers who did not approve"

    def _ill_corrected(self, body: Plain, by: str) -> Iterator[str]:
        """Yield what is wrong with a correction: too few agree, or only who asks."""
        release = body["release"]
        pending = self.pending().get(release["id"])
        if pending is None or pending["body"]["release"] != release:
            yield "nobody asks for the correction"
            return
        if pending["body"]["policy"] != body["policy"]:
            yield "it was asked for under another policy"
        requesters = self.requesters(release)
        if by.strip().casefold() in self.with_owners(requesters):
            yield "who asks for the correction agrees to it"
        named = {**release["metadata"], **release["labels"]}.get("requester")
        requesters |= {named} if named else set()
        wanted = [replace(a, requester_may_approve=False) for a in self._asked(release)]
        since = self.events.index(pending)
        agreed = self._agreed(wanted, "release", release["content"], requesters, since)
        if agreed is None:
            yield "it is corrected without approval"
        elif sorted(agreed) != body["approved_by"]:
            yield "the correction names approvers who did not approve"

    def _agreed(
        self,
        wanted: list[Approval] | tuple[Approval, ...],
        subject: str,
        content: str,
        requesters: set[str],
        since: int = 0,
    ) -> set[str] | None:
        """Return who agreed and counts; None if that is not enough."""
        own = self.with_owners(requesters)
        last = self._last_words(subject, content, since)
        everybody: set[str] = set()
        for approval in wanted:
            votes = {
                person: body["approves"]
                for person, body in last.items()
                if self._speaks(person, approval, body)
            }
            yes = {
                person
                for person in votes
                if approval.requester_may_approve or person.casefold() not in own
            }
            if not all(votes.values()) or len(yes) < approval.need:
                return None
            everybody |= yes
        return everybody

    def with_owners(self, requesters: set[str]) -> set[str]:
        """Return who may not agree: requesters, and those who own one."""
        assert self._policy is not None
        own = {one.strip().casefold() for one in requesters}
        for actor, owners in self._policy.owners.items():
            if actor.casefold() in own:
                own = own | {owner.casefold() for owner in owners}
        return own

    def _speaks(self, person: str, approval: Approval, body: Plain) -> bool:
        """Return whether somebody spoke in a role that is asked, and still has it."""
        assert self._policy is not None
        roles = self._policy.roles or {}
        return any(
            person in roles.get(role, ()) and role in body["roles"]
            for role in approval.roles
        )

    def _last_words(
        self, subject: str, content: str, since: int = 0
    ) -> dict[str, Plain]:
        """Return the last word of each person about something, if it is heard."""
        assert self._policy is not None
        keys = self._policy.keys
        last: dict[str, Plain] = {}
        first = self.since if subject == "policy" else since
        for place, event in self._few:
            body, by = event["body"], event["actor"]
            if place < first or event["kind"] != "approval-given":
                continue
            if (body["subject"], body["content"]) != (subject, content):
                continue
            if body["approves"] and by in keys and body.get("key") not in keys[by]:
                continue
            last[by] = body
        return last
