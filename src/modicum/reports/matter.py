"""What people are asked about, what they said to it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from modicum.ledger.decision.approvals import Hearing
from modicum.ledger.log.events import ApprovalGiven
from modicum.reports.log_position import Told

#: What people are asked about.
Subject: TypeAlias = Literal["release", "policy", "plan", "contract", "data"]
#: What happened to something that people are asked about. `replaced`: its id was asked
#: for, or came in, with other contents. `lapsed`: another policy was activated.
Happened: TypeAlias = Literal[
    "asked",
    "withdrawn",
    "replaced",
    "lapsed",
    "activated",
    "reserved",
    "recorded",
    "corrected",
    "committed",
]
#: Where it stands: what happened last, or that it waits. `outdated`: it was asked for
#: under an earlier policy, and must be asked for again. `not asked`: people spoke about
#: it, and nobody asks for it in the ledger.
MatterState: TypeAlias = Happened | Literal["pending", "outdated", "not asked"]


@dataclass(frozen=True, slots=True)
class Word:
    """What somebody said once.

    Attributes:
        told: The entry, and who.
        body: What they said, and about what.
        key_named: Whether the policy that was active names the key that signed it as
            one of theirs; False if nobody signed.
        heard: Whether it could count under that policy: agreement of somebody whose
            keys it names cannot unless one of these signed it.
    """

    told: Told
    body: ApprovalGiven
    key_named: bool
    heard: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """Whose agreement counted when something was let in.

    Attributes:
        by: Who.
        seq: The number of the entry in which they agreed.
        key: The public key that signed it, in hexadecimal; empty if nobody signed.
        key_named: Whether the policy that decided names this key as one of theirs.
    """

    by: str
    seq: int
    key: str
    key_named: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened to what people are asked about.

    Attributes:
        what: What happened.
        told: The entry, and who.
        reason: Why, as they said; empty where an entry of that kind says nothing.
    """

    what: Happened
    told: Told
    reason: str = ""


@dataclass(slots=True)
class Matter:
    """Something that people are asked about: contents that never change.

    The same policy is another matter after another one was activated.

    Attributes:
        subject: What kind of thing it is.
        id: A release's id, a policy's digest, a plan's id.
        content: SHA-256 of its contents.
        name: A policy's name, where the log tells it; empty otherwise.
        steps: What happened to it, oldest first.
        words: What people said to it, oldest first.
        counted: Whose agreement counted when it was let in, by name.
        hearings: Where the approvals stand that it still needs, while it waits.
        outdated: Whether it waits, and was asked for under an earlier policy.
    """

    subject: Subject
    id: str
    content: str
    name: str = ""
    steps: list[Step] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    counted: tuple[Counted, ...] = ()
    hearings: tuple[Hearing, ...] = ()
    outdated: bool = False

    @property
    def state(self) -> MatterState:
        """Where it stands."""
        if not self.steps:
            return "not asked"
        last = self.steps[-1].what
        if last != "asked":
            return last
        return "outdated" if self.outdated else "pending"
