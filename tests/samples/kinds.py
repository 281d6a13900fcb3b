"""An example of each kind of event, and of each kind of contract."""

from __future__ import annotations

from modicum.core.document import from_python
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
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    GapClosed,
    GroupActivated,
    GroupRetired,
    LedgerResumed,
    LossAcceptanceRequested,
    LostEntriesFound,
    PastRecorded,
    PastRedescribed,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RequestWithdrawn,
    ResumeRequested,
    RoundOpened,
)
from modicum.ledger.log.recorded_release import (
    RecordedMechanism,
    RecordedRelease,
    record_release,
)
from modicum.release import EVERYTHING, Part, parse_release, price
from samples.small import NOON, compiled, counts

SHA = "d" * 64
PART = Part(
    where=((("age", ((18, 64),)), ("country", ("CH", "DE"))), (("country", ("FR",)),)),
    periods=((738000, 738030), (739000, 739000)),
    groups=((3, 5),),
)


def small(part: Part = EVERYTHING) -> RecordedRelease:
    vocabulary = compiled().policy.vocabulary
    node = from_python(counts("r-1", audience="press"))
    recorded = record_release(price(parse_release(node, vocabulary), vocabulary))
    (one,) = recorded.mechanisms
    mechanism = RecordedMechanism(
        one.description, one.attributes, one.labels, one.losses, part
    )
    return RecordedRelease(
        recorded.id,
        recorded.content,
        recorded.labels,
        recorded.metadata,
        (mechanism,),
    )


def contract(terms: Terms, *recipients: str) -> Contract:
    data = {"t": Version("visits", 1), "u": Version("wages", 3)}
    return Contract("c-1", "amir", recipients, data, SHA, NOON, 3, terms)


CHARGE = Charge("r-1", SHA, "query: …\n")
CONTRACTS = (
    contract(QueryTerms((CHARGE, CHARGE), ("exact", "private"))),
    contract(TaskTerms("{}", "wasm", 60, 512, ("private",), 20, (CHARGE,))),
    contract(OutputTerms(SHA), "amir", "bea"),
    contract(SignalTerms(SHA), "amir"),
    contract(RawSignalTerms(SHA, 20), "amir"),
)
BODIES: tuple[Body, ...] = (
    PolicyActivated(SHA, "small", "modicum: policy/v1\n# é ☃\n"),
    PolicyActivated(SHA, "small", "text", "less noise", ("attr:age", "global")),
    ReleaseReserved(small(), SHA, NOON),
    ReleaseReserved(small(PART), SHA, NOON, ("olga", "pavel")),
    ReleaseStarted("r-1"),
    ReleasePosted("r-1"),
    ReleaseVoided("r-1", "not needed"),
    ReleaseExpired("r-1"),
    ReleaseDenied(small(), SHA, ("attr:age", "global"), ("counts",)),
    PastRecorded(small(), SHA),
    PastRecorded(small(PART), SHA, ("no periods stated",)),
    ApprovalGiven("policy", SHA, SHA, approves=False, roles=("officer",), reason="no"),
    Annotated("", "the audit of May"),
    DisclosureRecorded("leak", "a table", ("age",), PART, "law", {"evidence": "x"}),
    RoundOpened("2026-Q1", {"user": 250_000, "user-day": 10**6}),
    GroupActivated(3, "2026-Q1"),
    GroupRetired(3, "2026-Q1"),
    PlanCommitted("plan-1", "2026-Q1", SHA, ("r-1", "r-2")),
    ApprovalGiven("release", "r", SHA, True, ("o",), "", SHA, SHA, "0f" * 64),
    ReleaseRequested(small(PART), SHA, "for the report"),
    RequestWithdrawn("r-1", "not needed"),
    PolicyProposed(SHA, "small", "modicum: policy/v1\n", "less noise"),
    ApprovalGiven("contract", "c-1", SHA, True, ("owner",), "yes", SHA),
    DataRegistered("visits", 1, SHA, "csv", "{}", {"o": (SHA,), "p": ()}, 2, 9, 20),
    DataShredded("visits", 1, "the law"),
    *(ContractProposed(one, "for science") for one in CONTRACTS),
    ContractWithdrawn(SHA, "not needed"),
    FlowBegun(SHA, 1),
    FlowWithheld(SHA, 1, {"exact": SHA, "private": SHA}),
    FlowFailed(SHA, 1),
    FlowReleased(SHA, "amir"),
    ResumeRequested(9, SHA, "the disk died"),
    LedgerResumed(9, SHA, "so it is"),
    LostEntriesFound(SHA, ('{"seq":5}', '{"seq":6}')),
    LossAcceptanceRequested(SHA, "it was a test"),
    GapClosed(SHA, accepted=True, reason="so it was"),
    PastRecorded(small(), SHA, (), NOON, "ann"),
    PastRedescribed(small(PART), small(), SHA, "one day", ("olga", "pavel")),
)
