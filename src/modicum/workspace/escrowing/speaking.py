"""What owners say to contracts: looked at in the turn, signed if need be, recorded."""

from __future__ import annotations

from dataclasses import dataclass

from modicum.core.errors import ApprovalError, Code, Problem
from modicum.ledger.log.approval_statement import is_genuine, signed
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.agreement import Agreement
from modicum.ledger.state.consent import Consents
from modicum.ledger.state.escrow import OWNER
from modicum.ledger.state.flow import Flow
from modicum.workspace.book import Entry
from modicum.workspace.governing.governance import active_policy, reason_text
from modicum.workspace.governing.saying import Word, looked_at, refuse_content


@dataclass(frozen=True, slots=True)
class SaidToContract:
    """What an owner said to a contract, and where it stands after that.

    Attributes:
        flow: The contract.
        by: Who.
        approves: Whether they agree.
        consents: Where the owners stand.
        seq: The number of the entry.
        repeated: Whether it is what they said last, so that nothing was added.
        key: The public key that signed it, in hexadecimal; empty if nobody signed.
    """

    flow: Flow
    by: str
    approves: bool
    consents: Consents
    seq: int
    repeated: bool = False
    key: str = ""


def say_to_contract(entry: Entry, flow: Flow, word: Word) -> SaidToContract:
    """Record what an owner says to a contract, unless it is what they said last.

    Args:
        entry: The turn; its actor speaks.
        flow: The contract.
        word: What they say.

    Raises:
        ApprovalError: If it is not signed as their data set asks.
        ConflictError: If they own none of its data, or agree to what is over.
        InputError: If no reason is given.
        StaleError: If something came in since they looked, or it has other contents.
        UsageError: If the ledger has no policy.
    """
    contract, state = flow.contract, entry.book.state
    refuse_content(f"contract `{contract.id}`", contract.digest, word.content)
    body = ApprovalGiven(
        "contract",
        contract.id,
        contract.digest,
        word.approves,
        (OWNER,),
        reason_text(word.reason, "approving or rejecting"),
        looked_at(word, state),
    )
    body = _signed(body, entry, flow, word)
    before = _said_before(entry, body)
    if before is None:
        entry.add(body)
    said = state.approvals.get((body.subject, body.content), ())
    return SaidToContract(
        flow,
        entry.actor,
        word.approves,
        state.escrow.consents(flow, said),
        state.seq if before is None else before.seq,
        before is not None,
        body.key,
    )


def _signed(body: ApprovalGiven, entry: Entry, flow: Flow, word: Word) -> ApprovalGiven:
    pinned = {
        key
        for name in flow.contract.data_sets
        for key in entry.book.state.escrow.data[name].ownership.owners.get(
            entry.actor, ()
        )
    }
    key = None if word.key is None else word.key.public.hex()
    if word.approves and pinned and key not in pinned:
        how = "with another key" if key else "without a signature"
        raise _badly_signed(
            f"`{entry.actor}` cannot approve {how}",
            "the data was registered with the keys that count for them",
        )
    if word.key is None:
        return body
    policy = active_policy(entry.book).policy.digest
    own = signed(body, by=entry.actor, policy=policy, signer=word.key)
    if not is_genuine(own, entry.actor, policy):
        raise _badly_signed(
            f"the signature of `{entry.actor}` is not of what they say",
            "it is made of all that is said, the head and the active policy",
        )
    return own


def _badly_signed(message: str, note: str) -> ApprovalError:
    return ApprovalError(
        Problem(Code.NOT_SIGNED, message, notes=(note,), help="sign with  --key FILE")
    )


def _said_before(entry: Entry, body: ApprovalGiven) -> Agreement | None:
    """Return somebody's last word if it is the same; else None."""
    said = entry.book.state.approvals.get((body.subject, body.content), ())
    last = next((one for one in reversed(said) if one.by == entry.actor), None)
    same = last is not None and (last.approves, last.key) == (body.approves, body.key)
    return last if same else None
