"""All operations of the service: each method and path, declared once.

The server makes its routes and the OpenAPI description from these operations, and the
client its requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from modicum.api.schema import (
    account,
    approval,
    escrow,
    escrow_input,
    health,
    job,
    ledger,
    plan,
    policy,
    policy_change,
    release,
    risk,
    signature,
)
from modicum.api.schema.shape import Shape

A = TypeVar("A")

#: The prefix of every path.
PREFIX: Final = "/api/v1"


def ledger_prefix(name: str) -> str:
    """Return what takes the place of `PREFIX` for a ledger beside the first one."""
    return f"{PREFIX}/ledgers/{name}"


#: The media type of JSON documents, one on each line.
LINES: Final = "application/x-ndjson"

#: Maximum number of releases in a batch: as many as are decided in one turn.
BATCH_MAX: Final = 256

_HOLE: Final = re.compile(r"{(\w+)(?::\w+)?}")
#: Mistakes that any operation may answer with, by their HTTP status.
_ALWAYS: Final = frozenset({400, 401, 403, 404, 408, 413, 422, 429, 503})


@dataclass(frozen=True, slots=True)
class Document:
    """A body with its own format and reader.

    Attributes:
        about: Its description.
        schema: Its JSON Schema.
        kinds: The accepted media types, besides JSON and YAML.
        is_json: Whether it is accepted as JSON only.
    """

    about: str
    schema: Mapping[str, Any]
    kinds: tuple[str, ...] = ()
    is_json: bool = False


_RELEASE: Final = {"$ref": "#/components/schemas/Release"}
RELEASE_FILE: Final = Document("a release, as in a file", _RELEASE)
RELEASES_FILE: Final = Document(
    f"up to {BATCH_MAX} releases, each as in a file",
    {
        "type": "object",
        "properties": {
            "releases": {
                "type": "array",
                "minItems": 1,
                "maxItems": BATCH_MAX,
                "items": _RELEASE,
            }
        },
        "required": ["releases"],
        "additionalProperties": False,
    },
    is_json=True,
)
POLICY_FILE: Final = Document(
    "a policy, as in a file; YAML keeps its comments",
    {"$ref": "#/components/schemas/Policy"},
)
DISCLOSURE_FILE: Final = Document("a disclosure, as in a file", {"type": "object"})
PLAN_FILE: Final = Document("a plan, as returned by its job", {"type": "object"})
REQUESTS_FILE: Final = Document(
    "requests: releases, each with an optional `utility`",
    {"type": "array", "minItems": 1, "items": _RELEASE},
    (LINES,),
)


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[A]):
    """A method, a path, and the response.

    Attributes:
        method: `GET`, `POST` or `DELETE`.
        path: The path below `PREFIX`. A parameter such as `{release:path}` is an id;
            one that ends in `:path` may contain slashes.
        answer: The shape of the answer; None if it is no JSON document.
        takes: Its body: an input or a `Document`; None for no body.
        keyed: Whether it is idempotent by `Idempotency-Key`.
        reviewed: Whether `If-Match` names the reviewed version, which must be current.
        status: The HTTP status of the response. 202 starts a job, or requests approval
            first.
        also: Response shapes of other statuses, and their meanings.
        mistakes: HTTP statuses of mistakes, besides those that follow from the above.
        lines: Whether it also responds in lines, if the client accepts `LINES`.
    """

    method: str
    path: str
    answer: type[A] | None
    takes: Any = None
    keyed: bool = False
    reviewed: bool = False
    status: int = 200
    also: dict[int, tuple[type[Shape], str]] = field(default_factory=dict)
    mistakes: frozenset[int] = frozenset()
    lines: bool = False

    @property
    def statuses(self) -> list[int]:
        """The HTTP statuses of its mistakes."""
        found = _ALWAYS | self.mistakes
        if self.takes is not None:
            found |= {413, 415}
        if self.keyed:
            found |= {409, 428}
        if self.reviewed:
            found |= {412, 428}
        return sorted(found)

    @property
    def holes(self) -> list[str]:
        """The names of the holes of its address."""
        return _HOLE.findall(self.path)

    def address(self, **ids: str | int) -> str:
        """Return the address below `PREFIX` with ids in its holes."""
        return _HOLE.sub(lambda hole: quote(str(ids[hole[1]]), safe=""), self.path)


def _get(path: str, answer: type[A] | None, *mistakes: int) -> Operation[A]:
    return Operation("GET", path, answer, mistakes=frozenset(mistakes))


def _send(
    path: str, answer: type[A], takes: Any, *mistakes: int, **more: Any
) -> Operation[A]:
    """Return an operation that takes a body and changes nothing."""
    return Operation("POST", path, answer, takes, mistakes=frozenset(mistakes), **more)


def _step(
    path: str, answer: type[A], takes: Any, *mistakes: int, **more: Any
) -> Operation[A]:
    """Return an operation that adds to the ledger, once per idempotency key."""
    own = {"method": "POST", "takes": takes, "keyed": True, **more}
    return Operation(path=path, answer=answer, mistakes=frozenset(mistakes), **own)


def _job(path: str, takes: Any, *mistakes: int) -> Operation[job.JobItem]:
    """Return an operation that begins a job."""
    return Operation(
        "POST", path, job.JobItem, takes, status=202, mistakes=frozenset(mistakes)
    )


# --- caller -------------------------------------------------------------------------

ME: Final = _get("/me", account.Me)
PING: Final[Operation[None]] = Operation("GET", "/ping", None, status=204)
TOKENS: Final = _get("/tokens", account.TokenList)
ISSUE_TOKEN: Final = _send(
    "/tokens", account.IssuedToken, account.TokenInput, status=201
)
REVOKE_TOKEN: Final = Operation("DELETE", "/tokens/{token}", account.Token)

# --- releases -----------------------------------------------------------------------

CHECK_RELEASE: Final = _send("/releases:check", release.Decision, RELEASE_FILE, 409)
FIT_RELEASE: Final = _send("/releases:fit", release.Fit, RELEASE_FILE, 409)
RELEASE_OPTIONS: Final = _send("/releases:options", release.Options, RELEASE_FILE, 409)
SUBMIT_RELEASE: Final = _step(
    "/releases",
    release.Decision,
    RELEASE_FILE,
    also={202: (approval.Request, "subject to approval")},
)
SUBMIT_BATCH: Final = _step("/releases:batch", release.Batch, RELEASES_FILE)
BACKFILL: Final = _step("/releases:record-past", release.Decision, RELEASE_FILE)
START_RELEASE: Final = _step(
    "/releases/{release:path}:start", release.ReleaseState, None
)
PUBLISH_RELEASE: Final = _step(
    "/releases/{release:path}:post", release.ReleaseState, None
)
CANCEL_RELEASE: Final = _step(
    "/releases/{release:path}:void", release.ReleaseState, approval.Reason
)
RELEASES: Final = _get("/releases", release.ReleasePage)
RECEIPT: Final = _get("/releases/{release:path}/receipt", signature.SignedReceipt, 409)
RELEASE: Final = _get("/releases/{release:path}", release.ReleaseDetails)
VOCABULARY: Final = _get("/vocabulary", release.Vocabulary)

PLAN_QUERY: Final = _send("/queries:plan", release.QueryPlan, release.QueryInput, 409)

# --- requests for approval ----------------------------------------------------------

REQUESTS: Final = _get("/requests", approval.RequestList)
REQUEST_RELEASE: Final = _step("/requests", approval.Request, RELEASE_FILE)
REQUEST_APPROVALS: Final = _get(
    "/requests/{release:path}/approvals", approval.Approvals
)
REQUEST_STATEMENT: Final = _get(
    "/requests/{release:path}/statement", approval.Statement
)
APPROVE_RELEASE: Final = _step(
    "/requests/{release:path}/approvals",
    approval.VoteReceipt,
    approval.VoteInput,
    reviewed=True,
)
UNAPPROVE_RELEASE: Final = _step(
    "/requests/{release:path}/approvals",
    approval.VoteReceipt,
    None,
    method="DELETE",
    reviewed=True,
)
WITHDRAW_REQUEST: Final = _step(
    "/requests/{release:path}:withdraw", approval.WithdrawnRequest, approval.Reason
)
REQUEST: Final = _get("/requests/{release:path}", approval.RequestDetails)

# --- policies -----------------------------------------------------------------------

POLICIES: Final = _get("/policies", policy.PolicyList)
LINT_POLICY: Final = _send("/policies:lint", policy.Lint, POLICY_FILE)
COMPILE_POLICY: Final = _send("/policies:compile", policy.CompiledPage, POLICY_FILE)
DIFF_POLICY: Final = _send("/policies:diff", policy_change.Differences, POLICY_FILE)
SIMULATE_POLICY: Final = _job("/policies:simulate", POLICY_FILE)
PREVIEW_ACTIVATION: Final = _send(
    "/policies:weigh", approval.Activation, POLICY_FILE, 409
)
ACTIVATE_POLICY: Final = _step(
    "/policies:activate", approval.Activation, POLICY_FILE, reviewed=True
)
PROPOSE_POLICY: Final = _step("/policies", approval.Proposal, POLICY_FILE)
PROPOSALS: Final = _get("/policies/proposals", approval.ProposalList)
PROPOSAL: Final = _get("/policies/proposals/{digest}", approval.PendingProposal)
PROPOSAL_APPROVALS: Final = _get("/policies/{digest}/approvals", approval.Approvals)
APPROVE_POLICY: Final = _step(
    "/policies/{digest}/approvals", approval.VoteReceipt, approval.VoteInput, 412
)
UNAPPROVE_POLICY: Final = _step(
    "/policies/{digest}/approvals",
    approval.VoteReceipt,
    None,
    412,
    method="DELETE",
)
ACTIVATE_PROPOSAL: Final = _step(
    "/policies/{digest}:activate",
    approval.Activation,
    approval.ActivationInput,
    reviewed=True,
)
POLICY: Final = _get("/policies/{digest:digest}", policy.PolicyText)
RULES: Final = _get("/rules", policy.RulePage)
RULE_BALANCE: Final = _get("/rules/history", policy.RuleBalance)
RULE_ROUNDS: Final = _get("/rule-rounds", policy.RuleRounds)
RULE_DIAGRAM: Final = _get("/rule-diagram", policy.RuleDiagram)
RULE: Final = _get("/rules/{rule:path}", policy.Rule)

# --- the ledger ---------------------------------------------------------------------

HEAD: Final = _get("/ledger/head", ledger.Head)
ENTRIES: Final = Operation("GET", "/ledger/entries", ledger.EntryPage, lines=True)
ENTRY: Final = _get("/ledger/entries/{seq}", ledger.StoredEntry)
ANNOTATE: Final = _step("/ledger/remarks", ledger.Remark, ledger.RemarkInput)
DISCLOSE: Final = _step("/ledger/disclosures", ledger.Disclosure, DISCLOSURE_FILE)
CHECKPOINT: Final = _get("/ledger/checkpoint", signature.SignedCheckpoint, 409)
PROOF: Final = _get("/ledger/proof", ledger.Proof)
VERIFY_LEDGER: Final = _job("/ledger:verify", None)
BUNDLE: Final[Operation[None]] = _get("/audit/bundles", None)
ACCESS_TRAIL: Final = _get("/audit/trail", ledger.AccessPage)
AUDIT_STATEMENT: Final[Operation[None]] = _get("/audit/statement", None)
DOCTOR: Final = _get("/doctor", health.Diagnosis)

# --- rounds and plans ---------------------------------------------------------------

ROUNDS: Final = _get("/rounds", plan.RoundList)
OPEN_ROUND: Final = _step("/rounds", plan.OpenedRound, plan.RoundInput)
PLAN_ROUND: Final = _job("/rounds/{round_id:path}/plan", REQUESTS_FILE, 409)
ROUND: Final = _get("/rounds/{round_id:path}", plan.RoundDetails)
PLANS: Final = _get("/plans", plan.PlanList)
PLAN: Final = _get("/plans/{plan}", plan.PlanItem)
COMMIT_PLAN: Final = _step(
    "/plans:commit", plan.CommittedPlan, PLAN_FILE, reviewed=True
)

# --- jobs and events ----------------------------------------------------------------

JOBS: Final = _get("/jobs", job.JobList)
JOB: Final = _get("/jobs/{job}", job.Job, 421)
CANCEL_JOB: Final = Operation(
    "DELETE", "/jobs/{job}", job.Job, mistakes=frozenset({421})
)
JOB_EVENTS: Final[Operation[None]] = _get("/jobs/{job}/events", None, 421)
EVENTS: Final[Operation[None]] = _get("/events", None)

# --- risk, and data in escrow -------------------------------------------------------

ANALYZE_RISK: Final = _job("/risk/analyses", risk.AnalysisInput, 409)
ESCROW_RISK: Final = _send(
    "/escrow/risk", escrow.QueryRisk, escrow_input.RiskInput, 409, 412
)
DATA_SETS: Final = _get("/escrow/data", escrow.DataSetList)
REGISTER_DATA: Final = _step(
    "/escrow/data/{name}/versions", escrow.Version, escrow_input.DatasetInput
)
APPROVE_DATA: Final = _step(
    "/escrow/data/{name}/versions/{n}/approvals",
    escrow.VersionVoteReceipt,
    approval.VoteInput,
    reviewed=True,
)
SHRED_DATA: Final = _send(
    "/escrow/data/{name}/versions/{n}:shred", escrow.Version, approval.Reason, 409
)
DATA_SET: Final = _get("/escrow/data/{name}", escrow.DataSet)
CONTRACTS: Final = _get("/escrow/contracts", escrow.ContractList)
PROPOSE_CONTRACT: Final = _step(
    "/escrow/contracts", escrow.Contract, escrow_input.ContractInput
)
CONTRACT_STATEMENT: Final = _get(
    "/escrow/contracts/{name:path}/statement", approval.Statement
)
CONTRACT_APPROVALS: Final = _get(
    "/escrow/contracts/{name:path}/approvals", escrow.ContractVotes
)
APPROVE_CONTRACT: Final = _step(
    "/escrow/contracts/{name:path}/approvals",
    escrow.ContractVoteReceipt,
    approval.VoteInput,
    reviewed=True,
)
UNAPPROVE_CONTRACT: Final = _step(
    "/escrow/contracts/{name:path}/approvals",
    escrow.ContractVoteReceipt,
    None,
    method="DELETE",
    reviewed=True,
)
WITHDRAW_CONTRACT: Final = _step(
    "/escrow/contracts/{name:path}:withdraw", escrow.Contract, approval.Reason
)
RUN_CONTRACT: Final = _job("/escrow/contracts/{name:path}:run", None, 409)
RECEIVE: Final = Operation(
    "POST",
    "/escrow/contracts/{name:path}:receive",
    escrow.Disclosed,
    mistakes=frozenset({409}),
)
CONTRACT: Final = _get("/escrow/contracts/{name:path}", escrow.ContractDetails)
