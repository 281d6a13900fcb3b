"""Policy: the active one and former ones, proposals, and the editor."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from modicum.api import operations
from modicum.api.schema.approval import ActivationInput
from modicum.api.schema.policy import PolicyItem
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import AS_OF, RefusedError, Relay
from modicum.console.votes import send_vote

#: Lines of a policy on one page, and characters of a line.
LINES: Final = 400
COLUMNS: Final = 300
#: Activations, and changes of rules, on one page.
ACTIVATIONS: Final = 20
CHANGES: Final = 200
#: Maximum size of a policy that is sent as YAML, in bytes.
YAML_BYTES: Final = 2**16

DONE.update(
    {
        "proposed": "The policy is proposed. It waits for approval and activation.",
        "activated": "The policy is active now.",
    }
)


# --- the active policy, and former ones -----------------------------------------------


@page("/policy", "policy.html", "Policy")
async def active_policy(relay: Relay) -> dict[str, Any]:
    """Return the active policy, the history of activations, and what waits."""
    policies = (await relay.get(operations.POLICIES)).policies
    proposals = None
    if not relay.query.get(AS_OF):
        proposals = await relay.try_get(operations.PROPOSALS)
    latest = policies[: -ACTIVATIONS - 1 : -1]
    return {
        **await _shown(relay, "active"),
        "history": [(one, await _activation(relay, one)) for one in latest],
        "older": len(policies) - len(latest),
        "proposals": proposals.proposals if proposals else (),
    }


@page("/policy/{digest}", "policy.html", "Policy")
async def one_policy(relay: Relay) -> dict[str, Any]:
    """Return a policy that is or was active."""
    shown = await _shown(relay, relay.named("digest"))
    entry = await _activation(relay, shown["policy"])
    return {**shown, "history": [(shown["policy"], entry)], "older": 0, "proposals": ()}


async def _shown(relay: Relay, digest: str) -> dict[str, Any]:
    found = await relay.get(operations.POLICY, digest=digest)
    return {
        "policy": found,
        "listing": listing(found.text, relay.query.get("line", "")),
    }


async def _activation(relay: Relay, one: PolicyItem) -> Any:
    """Return the entry of an activation, for those who may read the ledger."""
    return await relay.try_get(operations.ENTRY, seq=one.entry)


def listing(text: str, line: str = "") -> dict[str, Any]:
    """Return the lines of a text around one, each with its number."""
    lines = re.split("\r\n|[\r\n]", text.removesuffix("\n"))
    wanted = int(line) if re.fullmatch("[0-9]{1,9}", line) else 1
    start = (min(max(wanted, 1), len(lines)) - 1) // LINES * LINES
    stop = start + LINES
    return {
        "lines": [
            (number, one[:COLUMNS], max(len(one) - COLUMNS, 0))
            for number, one in enumerate(lines[start:stop], start + 1)
        ],
        "count": len(lines),
        "before": start + 1 - LINES,
        "after": stop + 1 if stop < len(lines) else 0,
    }


# --- what another policy would change -------------------------------------------------


async def _review(relay: Relay, text: str) -> dict[str, Any]:
    """Return the differences of a policy from the active one, and its conflicts."""
    found: dict[str, Any] = {"changes": None, "impact": None, "refused": None}
    try:
        found["changes"] = await relay.get(operations.DIFF_POLICY, body=text)
        found["impact"] = await _impact(relay, text)
    except RefusedError as refused:
        found["refused"] = refused.problem
    return found


async def _impact(relay: Relay, text: str) -> Any:
    """Return the effect of an activation; None if the visitor may not know it."""
    return await relay.try_get(operations.PREVIEW_ACTIVATION, body=text)


async def _simulate(relay: Relay, text: str) -> str:
    """Start a simulation, and return the page of its job."""
    started = await relay.get(operations.SIMULATE_POLICY, body=text)
    return f"/jobs/{quote(started.job, safe='')}"


def _accepted(relay: Relay) -> tuple[str, ...]:
    """Return the rules that a form accepts, from checkboxes and lines of text."""
    given = (one.strip() for one in relay.fields.get("accept", "").split("\n"))
    return tuple(dict.fromkeys(filter(None, given)))


async def _replaced(relay: Relay) -> str:
    """Return the ETag of the policy that an activation would replace."""
    return (await relay.call(operations.POLICIES)).tag


# --- proposals ------------------------------------------------------------------------


@page("/policy/proposals/{digest}", "proposal.html", "Policy")
async def proposal(relay: Relay) -> dict[str, Any]:
    """Return a proposal, the votes and, once requested, what it would change."""
    digest = relay.named("digest")
    found = await relay.get(operations.PROPOSAL, digest=digest)
    votes = await relay.get(operations.PROPOSAL_APPROVALS, digest=digest)
    wanted = "review" in relay.fields
    return {
        "proposal": found,
        "votes": votes.votes,
        "tag": await _replaced(relay),
        "accepted": _accepted(relay),
        "review": await _review(relay, found.text) if wanted else None,
        "listing": listing(found.text, relay.query.get("line", "")),
    }


@form("/policy/proposals/{digest}", proposal)
async def review(_: Relay) -> dict[str, Any]:
    """Show what a proposal would change."""
    return {}


@form("/policy/proposals/{digest}/simulate", proposal)
async def simulate_proposal(relay: Relay) -> str:
    """Simulate past releases under a proposal."""
    found = await relay.get(operations.PROPOSAL, digest=relay.named("digest"))
    return await _simulate(relay, found.text)


@form("/policy/proposals/{digest}/vote", proposal)
async def vote(relay: Relay) -> str:
    """Approve a proposal, or reject it."""
    digest = relay.named("digest")
    done = await send_vote(relay, operations.APPROVE_POLICY, digest=digest)
    return after("/policy/proposals/{}", digest, done=done)


@form("/policy/proposals/{digest}/take-back", proposal)
async def take_back(relay: Relay) -> str:
    """Take one's own approval back."""
    digest = relay.named("digest")
    await relay.call(operations.UNAPPROVE_POLICY, digest=digest)
    return after("/policy/proposals/{}", digest, done="taken-back")


@form("/policy/proposals/{digest}/activate", proposal)
async def activate_proposal(relay: Relay) -> str:
    """Put a proposal in the place of the active policy."""
    why = ActivationInput(
        reason=relay.fields.get("reason", ""), accept=_accepted(relay)
    )
    digest = relay.named("digest")
    await relay.call(operations.ACTIVATE_PROPOSAL, why, digest=digest)
    return after("/policy", done="activated")


# --- the editor -----------------------------------------------------------------------


@page("/policy/edit", "policy-edit.html", "Policy")
async def edit(relay: Relay) -> dict[str, Any]:
    """Return the text of a new policy, and what was requested about it."""
    text = relay.fields.get("text")
    is_new = text is None
    if text is None:
        start = relay.query.get("start") or "active"
        text = (await relay.get(operations.POLICY, digest=start)).text
    too_long = len(text.encode()) > YAML_BYTES
    return {
        "text": "" if is_new and too_long else text,
        "tag": await _replaced(relay),
        "accepted": _accepted(relay),
        "too_long": too_long,
        "result": await _result(relay, text),
        "lint_path": operations.PREFIX + operations.LINT_POLICY.address(),
    }


async def _result(relay: Relay, text: str) -> dict[str, Any] | None:
    """Return what one wanted to know about the text of a policy."""
    wanted = relay.fields.get("show", "")
    if wanted not in ("check", "compare", "impact"):
        return None
    found: dict[str, Any] = {
        "asked": wanted,
        "text": text.split("\n"),
        "lint": None,
        "changes": None,
        "impact": None,
        "refused": None,
    }
    try:
        found["lint"] = await relay.get(operations.LINT_POLICY, body=text)
        if wanted == "compare":
            found["changes"] = await relay.get(operations.DIFF_POLICY, body=text)
        if wanted == "impact":
            found["impact"] = await _impact(relay, text)
    except RefusedError as refused:
        found["refused"] = refused.problem
    return found


@form("/policy/edit", edit)
async def examine(_: Relay) -> dict[str, Any]:
    """Check, compare or weigh the text of a policy."""
    return {}


@form("/policy/edit/simulate", edit)
async def simulate_text(relay: Relay) -> str:
    """Simulate past releases under the text of a policy."""
    return await _simulate(relay, relay.fields.get("text", ""))


@form("/policy/edit/propose", edit)
async def propose(relay: Relay) -> str:
    """Propose the text as the next policy."""
    text, reason = relay.fields.get("text", ""), relay.fields.get("reason", "")
    found = await relay.get(operations.PROPOSE_POLICY, body=text, reason=reason)
    return after("/policy/proposals/{}", found.digest, done="proposed")


@form("/policy/edit/activate", edit)
async def activate_text(relay: Relay) -> str:
    """Put the text in the place of the active policy."""
    await relay.call(
        operations.ACTIVATE_POLICY,
        relay.fields.get("text", ""),
        reason=relay.fields.get("reason", ""),
        accept=_accepted(relay) or None,
    )
    return after("/policy", done="activated")
