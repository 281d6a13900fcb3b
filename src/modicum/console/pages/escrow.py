"""Escrow: the contracts, and what each of them lets flow to whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import escape

from modicum.api import operations
from modicum.api.schema.approval import Reason
from modicum.api.schema.escrow import (
    ContractDetails,
    DataSet,
    ListedContract,
    Program,
    QueryRisk,
)
from modicum.console.jobs import job_of, job_page
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay
from modicum.console.votes import send_vote

DONE["contract-withdrawn"] = "The contract is withdrawn. Nothing more flows under it."

#: The most contracts of one list, and the most letters of code that a page shows.
CONTRACTS_MAX: Final = 500
CODE_MAX: Final = 150_000
#: The stages of contracts that can be used now, and how.
_READY: Final = {"it may run": "run", "it may be received": "receive"}
_RUN: Final = "run-contract"


@dataclass(frozen=True, slots=True)
class Step:
    """A station of a flow of data.

    Attributes:
        who: Who has the data there.
        what: What they have or do.
        exact: Whether exact answers leave there.
    """

    who: str
    what: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a program, as far as the page has room for it.

    Attributes:
        lines: Its lines.
        total: How many lines it has.
    """

    lines: tuple[str, ...]
    total: int


def next_act(one: ListedContract, name: str) -> str:
    """Return what a person can do with a contract: `approve`, `run` or `receive`."""
    if one.stage == one.consent.lacking:
        left = (each for consent in one.consent.by_data for each in consent.left)
        return "approve" if name in left else ""
    act = _READY.get(one.stage, "")
    people = one.recipients if act == "receive" else (one.analyst, one.by)
    return act if name in people else ""


# --- the inbox ------------------------------------------------------------------------


@page("/escrow", "escrow.html", "Escrow")
async def inbox(relay: Relay) -> dict[str, Any]:
    """Return the contracts: first those that wait for the visitor, newest first."""
    me = await relay.get(operations.ME)
    every = (await relay.get(operations.CONTRACTS)).contracts[::-1]
    flow, text = relay.query.get("flow", ""), relay.query.get("text", "").strip()
    matched = [one for one in every if _matches(one, flow, text)]
    acts = {one.contract: next_act(one, me.name) for one in matched}
    yours = [one for one in matched if acts[one.contract]]
    others = [one for one in matched if not acts[one.contract]]
    waits = [one for one in others if _is_open(one)]
    over = [one for one in others if not _is_open(one)]
    return {
        "acts": acts,
        "yours": yours[:CONTRACTS_MAX],
        "open": waits[: max(0, CONTRACTS_MAX - len(yours))],
        "over": over[: max(0, CONTRACTS_MAX - len(yours) - len(waits))],
        "matched": len(matched),
        "total": len(every),
        "most": CONTRACTS_MAX,
        "flow": flow,
        "text": text,
    }


def _matches(one: ListedContract, flow: str, text: str) -> bool:
    people = (one.contract, one.analyst, one.by, *one.recipients, *one.data)
    return flow in ("", one.flow) and any(
        text.lower() in each.lower() for each in people
    )


def _is_open(one: ListedContract) -> bool:
    return one.stage == one.consent.lacking or one.stage in _READY


# --- one contract ---------------------------------------------------------------------


@page("/escrow/contracts/{name:path}", "contract.html", "Escrow")
async def contract(relay: Relay) -> dict[str, Any]:
    """Return a contract as its owners read it before they agree."""
    reply = await relay.call(operations.CONTRACT, name=relay.named("name"))
    one = reply.value
    me = await relay.get(operations.ME)
    listed = (await relay.get(operations.CONTRACTS)).contracts
    found = await relay.try_get(operations.DATA_SETS)
    sets = {of.data: of for of in found.data_sets} if found else {}
    return {
        "contract": one,
        "tag": reply.tag,
        "parent": next((of for of in listed if of.digest == one.parent), None),
        "children": [of for of in listed if of.parent == one.digest],
        "steps": _steps(one, sets),
        "act": next_act(one, me.name),
        "owns": [of.id for of in one.data.values() if _owns(sets, of.id, me.name)],
        "must_sign": any(_keys(sets, of.id, me.name) for of in one.data.values()),
        "code": code_of(one.program) if one.program else None,
        "job": await job_of(relay, _RUN),
        "disclosed": None,
        "risk": None,
    }


def _owns(sets: dict[str, DataSet], data: str, name: str) -> bool:
    return data in sets and name in sets[data].owners


def _keys(sets: dict[str, DataSet], data: str, name: str) -> tuple[str, ...]:
    return sets[data].owners.get(name, ()) if data in sets else ()


def code_of(program: Program) -> Code:
    """Return the lines of a program that fit on a page."""
    lines = (program.text or "").splitlines()
    shown, room = [], CODE_MAX
    for line in lines:
        room -= len(escape(line)) + 40
        if room < 0:
            break
        shown.append(line)
    return Code(tuple(shown), len(lines))


def _steps(one: ContractDetails, sets: dict[str, DataSet]) -> list[Step]:
    """Return who gives what to whom under a contract, in order."""
    terms: Any = one.terms
    to = _list(one.recipients)
    match one.flow:
        case "query":
            return [*_sources(one, sets), *_asking(one, terms)]
        case "task":
            return _scoring(one, terms)
        case "output":
            vault = Step("The vault", "gives the private answers, and no others")
            return [vault, Step(to, "receives them")]
        case "signal":
            vault = Step("The vault", "gives the score of the private answers")
            return [vault, Step(to, "receives it")]
        case "raw-signal":
            return _exact_score(one, terms, to)


def _exact_score(one: ContractDetails, terms: Any, to: str) -> list[Step]:
    bins = terms["bins"]
    how = f"one of {bins} bins of the score" if bins else "the exact score"
    vault = Step("The vault", f"gives {how} of the EXACT answers", exact=True)
    return [vault, Step(to, f"receives it: at most {one.bits} bits", exact=True)]


def _sources(one: ContractDetails, sets: dict[str, DataSet]) -> Iterable[Step]:
    for table, of in one.data.items():
        owners = _list(sets[of.id].owners) if of.id in sets else "The owners"
        yield Step(owners, f"let version {of.version} of “{of.id}” be read as {table}")


def _asking(one: ContractDetails, terms: Any) -> list[Step]:
    count = len(one.queries)
    query = "1 query" if count == 1 else f"{count} queries"
    exact = "exact" in terms["results"]
    kinds = "the private and the exact answers" if exact else "the private answers"
    return [
        Step("The server", f"runs {query} of {one.analyst} and adds noise"),
        Step("The vault", f"withholds {kinds}: nobody receives them", exact=exact),
    ]


def _scoring(one: ContractDetails, terms: Any) -> list[Step]:
    exact, blocks = "exact" in terms["results"], terms.get("blocks", 0)
    kinds = "private and the exact" if exact else "private"
    if blocks:
        kinds = (
            f"exact answers about each of {blocks} blocks of people, not the private"
        )
    kept = f"the noisy mean of {blocks} scores" if blocks else "each score"
    return [
        Step("The vault", f"gives the {kinds} answers to a sandbox", exact=exact),
        Step(
            f"The {terms['tier']} sandbox",
            f"runs the program of {one.analyst} for {terms['seconds']} seconds, always",
            exact=exact,
        ),
        Step("The vault", f"withholds {kept}: nobody receives it"),
    ]


def _list(names: Iterable[str]) -> str:
    """Return a few names as text."""
    every = list(names)
    shown = ", ".join(every[:5])
    return f"{shown} and {len(every) - 5} more" if len(every) > 5 else shown


# --- what people do with it -----------------------------------------------------------


@form("/escrow/contracts/{name:path}/vote", contract)
async def vote(relay: Relay) -> str:
    """Approve a contract, or reject it, as an owner of its data."""
    name = relay.named("name")
    done = await send_vote(relay, operations.APPROVE_CONTRACT, name=name)
    return after("/escrow/contracts/{}", name, done=done)


@form("/escrow/contracts/{name:path}/take-back", contract)
async def take_back(relay: Relay) -> str:
    """Take one's own approval back."""
    name = relay.named("name")
    await relay.call(operations.UNAPPROVE_CONTRACT, name=name)
    return after("/escrow/contracts/{}", name, done="taken-back")


@form("/escrow/contracts/{name:path}/withdraw", contract)
async def withdraw(relay: Relay) -> str:
    """Withdraw a contract, for everyone."""
    name, reason = relay.named("name"), Reason(reason=relay.fields.get("reason", ""))
    await relay.call(operations.WITHDRAW_CONTRACT, reason, name=name)
    return after("/escrow/contracts/{}", name, done="contract-withdrawn")


@form("/escrow/contracts/{name:path}/run", contract)
async def run(relay: Relay) -> str:
    """Begin a run."""
    name = relay.named("name")
    job = (await relay.call(operations.RUN_CONTRACT, name=name)).value
    return job_page("/escrow/contracts/{}", name, job=job.job)


@form("/escrow/contracts/{name:path}/receive", contract)
async def receive(relay: Relay) -> dict[str, Any]:
    """Receive what a contract discloses; it is shown once."""
    reply = await relay.call(operations.RECEIVE, name=relay.named("name"))
    return {"disclosed": reply.value}


@form("/escrow/contracts/{name:path}/risk", contract)
async def choose(relay: Relay) -> dict[str, Any]:
    """Find the largest epsilon of a query at which people are alike enough."""
    return {"risk": await _risk(relay)}


async def _risk(relay: Relay) -> QueryRisk:
    fields = relay.fields
    asked = {"contract": relay.named("name"), "tau": fields.get("tau", "")}
    asked |= {key: fields[key] for key in ("query", "delta") if fields.get(key)}
    return (await relay.call(operations.ESCROW_RISK, asked)).value
