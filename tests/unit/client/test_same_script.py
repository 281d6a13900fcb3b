"""One script, run against a workspace and against a server: the same, to the last byte.

Both have the same clock, so the logs that come out are to be the same, hash by hash;
and every answer on the way is compared as the document that people and programs see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.audited import key
from samples.remote import BEFORE, answering
from samples.small import NOON, POLICY

import modicum as mo
from modicum.api.local.governance import (
    activation,
    proposals,
)
from modicum.api.local.governance import (
    approvals as saying,
)
from modicum.api.local.governance import (
    requests as requesting,
)
from modicum.api.local.governance.actions import Governance
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.local.plans.actions import Rounds
from modicum.api.local.plans.commit import Committed
from modicum.api.local.plans.rounds import Round
from modicum.api.local.views import approvals, rounds
from modicum.api.local.views.ledger import entry_view
from modicum.api.schema.shape import plain
from modicum.client.actions import RemoteGovernance
from modicum.client.plan_actions import RemoteRounds
from modicum.client.policy_actions import RemoteActivationPreview
from modicum.client.workspace import RemoteWorkspace
from modicum.core.errors import ModicumError
from modicum.ledger import event_of
from modicum.ledger.decision.approvals import ApprovalState
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.system.clock import FixedClock

OLGA = key(1)
ASKING = (
    POLICY
    + f"""
roles:
  privacy-officer: [olga, pavel]
  data-steward: [dara]
approvals:
  - {{when: 'release.audience == "public"', need: 2, from: [privacy-officer]}}
activation: {{need: 1, from: [privacy-officer]}}
keys: {{olga: {OLGA.public.hex()}}}
"""
)


def release(name: str, sigma: float = 50, **more: Any) -> dict[str, Any]:
    return {
        "release": name,
        "dataset": "visits",
        **more,
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["diagnosis"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": sigma,
            }
        ],
    }


def policy(text: str) -> CompiledPolicy:
    return compile_text(text.encode(), "next.yaml")


#: Another policy: its budgets are what history exceeds.
TIGHT = ASKING.replace("budget: 2.0}", "budget: 0.3}").replace("small", "tight")
#: One by which user groups take turns.
NEXT = (
    ASKING.replace("name: small", "name: next")
    + "population: {groups: {immutable: [user]}}\nrotation: {active: 2}\n"
)


# --- what is compared -----------------------------------------------------------------


def document(found: Any) -> Any:  # noqa: C901 - one line for each kind
    """Return what people and programs see of an answer."""
    match found:
        case RemoteActivationPreview():
            return plain(found.reply)
        case activation.ActivationPreview():
            return plain(approvals.activation_view(found))
        case activation.Activation():
            told = document(found.preview)
            # The server tells with it what became of it, which is compared beside.
            beside = {**told, "changed": None, "ledger": None}
            return [beside, found.changed, found.seq, found.head]
        case saying.RecordedVote():
            return [
                approvals.receipt_view(found),
                document(found.decision),
                document(found.preview),
            ]
        case requesting.Requested():
            return [approvals.request_view(found), document(found.decision)]
        case requesting.PendingRequest():
            return [approvals.pending_view(found), found.release, found.complete]
        case proposals.Proposed():
            return approvals.proposal_view(found)
        case proposals.PendingPolicy():
            return approvals.pending_policy_view(found)
        case ApprovalState():
            return approvals.approvals_view([found])
        case VoteEntry():
            return approvals.vote_view(found, current=True)
        case Round():
            return [rounds.round_view(found), found]
        case Committed():
            return rounds.committed_view(found)
        case tuple() | list():
            return [document(one) for one in found]
        case mo.Decision():
            return [found.to_dict(), found.explain(deep=False)]
        case _:
            told = getattr(found, "to_dict", None)
            return found if told is None else told()


# --- both sides -----------------------------------------------------------------------


@dataclass
class Using:
    """Stands before an object, and remembers which of its names are used."""

    found: Any
    used: set[tuple[type, str]]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.found, name)
        self.used.add((type(self.found), name))
        if isinstance(value, RemoteGovernance | RemoteRounds):
            return Using(value, self.used)
        return value


@dataclass
class Side:
    """A ledger, and how somebody comes to it."""

    of: Callable[[str], Any]
    told: list[tuple[str, Any]] = field(default_factory=list)

    def tell(self, what: str, found: Any) -> Any:
        """Note an answer, and return it."""
        self.told.append((what, document(found)))
        return found

    def refuse(self, what: str, work: Callable[[], object]) -> None:
        """Note a mistake: its class, and all that it says."""
        with pytest.raises(ModicumError) as caught:
            work()
        error = caught.value
        self.told.append((what, (type(error), error.code, error.render())))


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Side, Side, set[tuple[type, str]]]]:
    clock, used = FixedClock(NOON), set[tuple[type, str]]()
    (tmp_path / "policy.yaml").write_text(ASKING)
    own = tmp_path / "here.db"
    mo.open(own, policy=tmp_path / "policy.yaml", actor="olga", clock=clock).init()
    with ExitStack() as stack:
        url = stack.enter_context(
            answering(
                tmp_path / "there.db", policy=tmp_path / "policy.yaml", clock=clock
            )
        )
        known: dict[str, Any] = {}

        def connected(name: str) -> Any:
            if name not in known:
                ws = mo.connect(url, token=f"{BEFORE}{name}")
                known[name] = Using(stack.enter_context(ws), used)
            return known[name]

        def opened(name: str) -> Any:
            return mo.open(own, actor=name, clock=clock)

        yield Side(opened), Side(connected), used


# --- the script -----------------------------------------------------------------------


def releases(side: Side) -> None:
    ann, dara = side.of("ann"), side.of("dara")
    side.tell("check", ann.check(release("a")))
    side.tell("submit", ann.submit(release("a")))
    side.tell("again", ann.submit(release("a")))
    side.tell("start", ann.start("a"))
    side.tell("publish", ann.publish("a"))
    side.tell("denied", ann.submit(release("much", 0.5)))
    with ann.use(side.tell("used", ann.submit(release("used"))).release):
        pass
    batch = [ann.prepare(release("b1"), reserve_seconds=60), ann.prepare(release("b2"))]
    side.tell("prepared", [one.release for one in batch])
    side.tell("check_prepared", ann.check_prepared(batch[0]))
    other = ann.prepare(release("a", 51))
    for found in ann.submit_many([*batch, other]):
        one = (
            (type(found), found.render()) if isinstance(found, ModicumError) else found
        )
        side.tell("of many", one)
    side.tell("cancel", ann.cancel("b2", reason="not needed"))
    side.tell("past", dara.backfill(release("past", 20)))
    past = [
        dara.prepare_backfill(release("past-1", 30)),
        dara.prepare_backfill(release("past-2", 25)),
    ]
    side.tell("many past", dara.backfill_many(past))
    side.tell("standing", ann.standing("past-1"))
    side.tell("kept", ann.release_of(ann.standing("past-1")))
    side.tell("queries", type(ann.queries))
    side.refuse("unknown", lambda: ann.start("none"))
    side.refuse("malformed", lambda: ann.prepare({"release": "x"}))
    side.refuse("too long", lambda: ann.prepare(release("x"), reserve_seconds=0))


def requests(side: Side, keys: Path) -> None:
    ann, dara = side.of("ann"), side.of("dara")
    olga, pavel = side.of("olga").governance, side.of("pavel").governance
    request = release("public", audience="public")
    side.refuse("needs people", lambda: ann.submit(request))
    side.tell("request", ann.governance.request(request, reason=" annual report "))
    side.tell("again", ann.governance.request(request, reason="annual report"))
    side.refuse("no need", lambda: ann.governance.request(release("n"), reason="x"))
    side.refuse(
        "denied",
        lambda: ann.governance.request(
            release("d", 0.5, audience="public"), reason="x"
        ),
    )
    side.refuse("no reason", lambda: ann.governance.request(request, reason=" "))
    side.tell("requests", dara.governance.requests())
    for one in (
        "nobody-asks",
        *(w.request.release for w in dara.governance.requests()),
    ):
        side.tell("requested", dara.governance.requested(one))
    side.tell("hearings", olga.approval_states(request))
    side.refuse("unsigned", lambda: olga.approve(request, reason="fine"))
    side.refuse("not theirs", lambda: dara.governance.approve("public", reason="x"))
    side.refuse(
        "other contents",
        lambda: pavel.approve("public", reason="x", content="0" * 64),
    )
    side.refuse("moved on", lambda: pavel.approve("public", reason="x", head="0" * 64))
    head = side.of("pavel").state().head[:12]
    side.tell("rejected", pavel.reject("public", reason="wait"))
    refusal = saying.Ballot(approves=False, reason="wait")
    side.tell("rejected again", pavel.vote("public", refusal))
    side.refuse("moved", lambda: pavel.approve("public", reason="x", head=head))
    head = side.of("pavel").state().head
    side.tell("approved", pavel.approve("public", reason="fine", head=head[:12]))
    side.tell("repeated", pavel.approve("public", reason="fine"))
    side.tell("spoken", olga.votes("public"))
    side.tell("signed", olga.approve(request, reason=" fine ", key=OLGA))
    side.tell("complete", [one.complete for one in olga.requests()])
    side.tell("let in", ann.submit(request))
    side.tell("spoken of what stands", olga.votes("public"))
    side.refuse("stands", lambda: ann.governance.request(request, reason="x"))
    other = release("other", audience="public")
    side.tell("request other", ann.governance.request(other, reason="x"))
    side.refuse(
        "not one's own",
        lambda: dara.governance.withdraw_request("other", reason="x"),
    )
    side.tell("withdrawn", ann.governance.withdraw_request("other", reason="x"))
    side.tell("unrequested", olga.approval_states(other))
    side.tell("remark", dara.governance.annotate(" looked at it ", about="a"))
    side.refuse("no remark", lambda: dara.governance.annotate("x", about="none"))
    shown = {
        "disclosure": "d-1",
        "what": "a table",
        "attributes": ["diagnosis"],
        "reason": "by law",
    }
    side.tell("disclosed", dara.governance.disclose(shown))
    side.refuse("disclosed again", lambda: dara.governance.disclose(shown))
    side.refuse("no disclosure", lambda: dara.governance.disclose({"what": "x"}))


def policies(side: Side) -> None:
    olga, pavel = side.of("olga").governance, side.of("pavel").governance
    after = policy(NEXT)
    side.refuse("not asked", lambda: olga.activate(after, reason="x"))
    side.tell("hearings of", olga.policy_approval_states(after))
    side.tell("proposed", olga.propose_policy(after, reason="better"))
    side.tell("again", olga.propose_policy(after, reason="better"))
    side.tell("proposals", pavel.proposals())
    digest = after.policy.digest
    side.tell("one", pavel.proposed(digest[:12]).policy.digest)
    side.refuse("too short", lambda: pavel.proposed(digest[:11]))
    side.refuse("is none", lambda: pavel.approve_policy("0" * 64, reason="x"))
    side.refuse("asks", lambda: olga.approve_policy(digest, reason="x", key=OLGA))
    side.tell("rejected", pavel.reject_policy(after, reason="wait"))
    side.tell("approved", pavel.approve_policy(digest, reason="fine"))
    agreement = saying.Ballot(approves=True, reason="fine")
    side.tell("approved again", pavel.vote_on_policy(digest, agreement))
    side.tell("hearings", olga.policy_approval_states(after))
    side.tell("said", olga.votes(digest))
    side.tell("counting", olga.counting_votes(after))
    side.refuse("replaced", lambda: olga.preview_activation(after, replaces="0" * 64))
    tight = policy(TIGHT)
    preview = side.tell("tight", olga.preview_activation(tight))
    side.tell("open", [one.rule.id for one in preview.open_conflicts])
    accepted = [one.rule.id for one in preview.open_conflicts]
    assert accepted
    side.tell("accepted", olga.preview_activation(tight, accept=accepted).accepted)
    side.refuse("conflicts", lambda: olga.activate(tight, reason="x"))
    side.refuse("no conflict", lambda: olga.preview_activation(after, accept=["none"]))
    replaced = side.of("olga").policy().policy.digest
    done = side.tell("active", olga.activate(after, reason="x", replaces=replaced[:12]))
    assert done.changed
    side.tell("is active", olga.activate(after, reason="x"))
    side.tell("said before", olga.counting_votes(after))
    side.tell("text", side.of("olga").policy_text_at(1))
    side.tell("digest", side.of("olga").policy().policy.digest)


def planning(side: Side, folder: Path) -> None:
    petra = side.of("petra")
    side.tell("none", petra.rounds.present())
    side.refuse("not open", lambda: petra.rounds.plan(()))
    shares = {"user": Fraction(2, 3)}
    side.tell("opened", petra.rounds.open("q1", unlocked=shares))
    side.tell("again", petra.rounds.open("q1", unlocked=shares))
    side.refuse("falls", lambda: petra.rounds.open(unlocked={"user": Fraction(1, 3)}))
    side.refuse("no unit", lambda: petra.rounds.open(unlocked={"day": Fraction(1, 2)}))
    side.tell("second", petra.rounds.open(unlocked={"user": Fraction(1)}))
    for _ in range(2):
        side.tell("next", petra.rounds.open())
    side.tell("present", petra.rounds.present())
    wishes = mo.requests.load(folder, policy=petra.policy())
    side.refuse("no solver", lambda: petra.rounds.plan(wishes, solver="none"))
    for solver in ("dpk", "fcfs", "dpf-weighted"):
        side.tell(solver, petra.rounds.plan(wishes, solver=solver))
    plan = petra.rounds.plan(wishes)
    assert 0 < len(plan.accepted) < len(wishes)
    side.tell("committed", petra.rounds.commit(plan, reserve_seconds=600))
    side.tell("once", petra.rounds.commit(plan))
    side.tell("plans", petra.rounds.committed())
    side.tell("plan", petra.rounds.committed_plan(plan.id))
    side.refuse("no plan", lambda: petra.rounds.committed_plan("none"))
    later = petra.rounds.plan(wishes)
    side.of("ann").submit(release("meanwhile", 900))
    side.refuse("stale", lambda: petra.rounds.commit(later))
    olga = side.of("olga")
    side.tell(
        "left over",
        [
            (one.group, one.until, one.standing.allowed)
            for one in olga.rounds.remainders()
        ],
    )


def looking(side: Side) -> None:
    audra = side.of("audra")
    state = audra.state()
    side.tell("exists", audra.exists())
    side.tell("state", (state.seq, state.head, state.digest()))
    records = list(audra.records())
    side.tell("records", [(one.seq, one.hash, one.payload) for one in records])
    side.tell("entries", [entry_view(one, event_of(one, one.seq)) for one in records])
    side.tell("record", [audra.record(seq) for seq in (0, 1, 5, state.seq + 1)])
    report = audra.verify(noted_hash=records[3].hash)
    side.tell("verified", (report.entries, report.head, report.decisions, report))
    then = audra.as_of(records[8].seq)
    side.tell("then", then.check(release("then", 7)))
    side.tell("spent then", then.spenders("global @standard").view(9))
    book, read, _ = audra.current(deciding=True)
    side.tell("book", (book.state.digest(), len(list(read(3)))))
    side.tell("spenders", _spent(audra.spenders("global @standard")))
    side.tell("standings", [_standing(one) for one in audra.standings()])
    for rule in audra.policy().rules:
        if rule.id == "global @standard":
            side.tell("one rule", _standing(audra.loss_of(rule)))
    for point in ("2020-01-01", "2099-01-01", "soon", 0, 10**6):
        side.refuse(f"as of {point}", lambda at=point: audra.as_of(at))  # type: ignore[misc]


def _spent(found: Any) -> list[str]:
    return [one.release for one in found.spenders]


def _standing(found: Any) -> tuple[str, bool]:
    return getattr(found.rule, "id", found.rule), found.allowed


@pytest.fixture
def wishes(tmp_path: Path) -> Path:
    folder = tmp_path / "wishes"
    folder.mkdir()
    lines = "".join(
        f"---\nrelease: w{number}  # a remark\ndataset: visits\nutility: {worth}\n"
        "mechanisms:\n  - {name: 'counts', mechanism: gaussian, groups: [3, 4],\n"
        "     attributes: [diagnosis], sensitivity: {user: {l2: 1}},"
        f" sigma: {number + 8}.50}}\n"
        for number, worth in enumerate(("1", "2.50", "3", "7", "1e-3"))
    )
    (folder / "wishes.yaml").write_text(lines)
    return folder


def test_the_same_script_says_and_writes_the_same(
    sides: tuple[Side, Side, set[tuple[type, str]]], wishes: Path, tmp_path: Path
) -> None:
    here, there, used = sides
    for act in (
        releases,
        lambda side: requests(side, tmp_path),
        policies,
        lambda side: planning(side, wishes),
        looking,
    ):
        for side in (here, there):
            side.told.clear()
            act(side)
        assert [what for what, _ in there.told] == [what for what, _ in here.told]
        for one, other in zip(here.told, there.told, strict=True):
            assert other == one
    assert _log(there) == _log(here)
    _all_were_used(used)


def _log(side: Side) -> list[str]:
    return [one.hash for one in side.of("audra").records()]


def _all_were_used(used: set[tuple[type, str]]) -> None:
    """What the script leaves out is not compared: that is nothing."""
    elsewhere = {"turn", "init", "save_snapshot", "adapters", "redescribe"}
    elsewhere |= {"refuse_jump"}  # Of the clock where the ledger is.
    elsewhere |= {"equipment", "escrow"}  # test_client_escrow.py
    # What a server keeps for its reads.
    elsewhere |= {
        "check_by",
        "computed",
        "data_sets",
        "fullest_cell",
        "page",
        "segment_budgets",
    }
    elsewhere |= {"past_point", "story"}
    for here, there in (
        (mo.Workspace, RemoteWorkspace),
        (Governance, RemoteGovernance),
        (Rounds, RemoteRounds),
    ):
        names = {name for name in dir(here) if not name.startswith("_")}
        assert {name for one, name in used if one is there} >= names - elsewhere
