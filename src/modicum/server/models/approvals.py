"""Requests, proposals, and what people said to them."""

from __future__ import annotations

from typing import Literal

from modicum.server.models.releases import DecisionForm
from modicum.server.models.shared_forms import (
    Approval,
    Digest,
    Form,
    Head,
    Plain,
)


class HearingForm(Approval):
    """Where an approval stands."""

    given: bool
    missing: int
    approved_by: list[str]
    rejected_by: list[str]
    left: list[str]
    asking: list[str]


class SpokenForm(Form):
    """What somebody said once."""

    entry: int
    at: str
    by: str
    approves: bool
    roles: list[str]
    reason: str
    key: str | None
    content: Digest
    current: bool


class RequestForm(Form):
    """A release that is asked for just now."""

    release: str
    content: Digest
    policy: Digest
    by: str
    at: str
    entry: int
    repeated: bool
    approvals: list[HearingForm]


class WithdrawnForm(Form):
    """A request that was taken back."""

    release: str
    content: Digest
    policy: Digest
    by: str
    at: str
    entry: int


class PendingForm(WithdrawnForm):
    """A release that is asked for and waits."""

    reason: str
    current: bool
    corrects: bool
    complete: bool
    approvals: list[HearingForm]


class ListedRequest(PendingForm):
    """A request; `body`, what is asked for as it is kept, is there if asked for."""

    body: Plain | None = None


class RequestList(Form):
    """The requests that may be seen, oldest first."""

    requests: list[ListedRequest]


class AskedForm(PendingForm):
    """A request: what is asked for, what it would do, and what people said."""

    body: Plain
    decision: DecisionForm
    spoken: list[SpokenForm]


class HearingsForm(Form):
    """Where approvals stand, and what people said."""

    approvals: list[HearingForm]
    spoken: list[SpokenForm]


class SaidForm(Form):
    """What somebody said just now, and where approvals stand after it."""

    subject: Literal["release", "policy"]
    id: str
    content: Digest
    by: str
    approves: bool
    roles: list[str]
    key: str | None
    entry: int
    repeated: bool
    corrected_in: int | None
    approvals: list[HearingForm]


class StatementForm(Form):
    """What is signed, in UTF-8, by who speaks with a key of their own."""

    statement: str
    head: Digest


class ProposalForm(Form):
    """A policy that is asked for just now."""

    digest: Digest
    name: str
    by: str
    at: str
    entry: int
    repeated: bool
    approvals: list[HearingForm]


class PendingPolicyForm(Form):
    """A policy that is proposed and waits."""

    digest: Digest
    name: str
    by: str
    at: str
    entry: int
    reason: str
    complete: bool
    approvals: list[HearingForm]
    text: str


class ProposalList(Form):
    """The policies that wait, oldest first."""

    proposals: list[PendingPolicyForm]


class CountedPolicy(Form):
    """A policy and how many rules it has."""

    name: str
    digest: Digest
    rules: int


class ReplacedPolicy(Form):
    """The policy that was active."""

    name: str
    digest: Digest


class ActivationForm(Form):
    """What it means to activate a policy, or that it was."""

    policy: CountedPolicy
    replaced: ReplacedPolicy
    changed: bool
    ledger: Head | None
    conflicts: list[Plain]
    accepted: list[str]
    problems: list[Plain]
    approvals: list[HearingForm]
