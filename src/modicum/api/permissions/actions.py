"""The actions on a ledger and the roles that allow them, in one table.

The service, its documentation and its tests use this table. Approvals are also limited
by the policy's own `roles`: both must allow them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final


class _Member(Enum):
    """A member of one of these tables: looked up in each request, by its identity."""

    __hash__ = object.__hash__  # That of an enum is a function of Python.


@unique
class Role(_Member):
    """The role of an actor."""

    ANALYST = "analyst"
    DATA_STEWARD = "data-steward"
    PRIVACY_OFFICER = "privacy-officer"
    PLATFORM_ENGINEER = "platform-engineer"
    AUDITOR = "auditor"
    ADMIN = "admin"


@unique
class Reach(_Member):
    """The data sets that a role must cover to allow an action.

    `DATA_SET`: the data set of the action. A release that names none concerns all.
    `LEDGER`: all data sets, since the action concerns the whole ledger. `ANY`: at least
    one; content of other data sets is hidden.
    """

    DATA_SET = "data-set"
    LEDGER = "ledger"
    ANY = "any"


@unique
class Action(_Member):
    """An action of the service."""

    READ_POLICY = "read-policy"
    COMPILE_POLICY = "compile-policy"
    SIMULATE_POLICY = "simulate-policy"
    PROPOSE_POLICY = "propose-policy"
    APPROVE_POLICY = "approve-policy"
    ACTIVATE_POLICY = "activate-policy"
    READ_RULES = "read-rules"
    READ_RELEASES = "read-releases"
    CHECK_RELEASE = "check-release"
    SUBMIT_RELEASE = "submit-release"
    CARRY_OUT_RELEASE = "carry-out-release"
    CARRY_OUT_ANY = "carry-out-any"
    APPROVE_RELEASE = "approve-release"
    RECORD_PAST = "record-past"
    REMARK = "remark"
    READ_ROUNDS = "read-rounds"
    PLAN_ROUND = "plan-round"
    COMMIT_PLAN = "commit-plan"
    ANALYZE_RISK = "analyze-risk"
    READ_DATA = "read-data"
    REGISTER_DATA = "register-data"
    ASK_CONTRACT = "ask-contract"
    TAKE_PART = "take-part"
    READ_CONTRACTS = "read-contracts"
    APPROVE_CONTRACT = "approve-contract"
    READ_LEDGER = "read-ledger"
    EXPORT_AUDIT = "export-audit"
    MANAGE_OWN_TOKENS = "manage-own-tokens"
    MANAGE_TOKENS = "manage-tokens"
    READ_METRICS = "read-metrics"


#: The end of the sentence "`ann` may not …", by action.
IN_WORDS: Final[Mapping[Action, str]] = {
    Action.READ_POLICY: "read the policy",
    Action.COMPILE_POLICY: "compile a policy",
    Action.SIMULATE_POLICY: "simulate a policy",
    Action.PROPOSE_POLICY: "propose a policy",
    Action.APPROVE_POLICY: "approve a policy",
    Action.ACTIVATE_POLICY: "activate a policy",
    Action.READ_RULES: "read the rules",
    Action.READ_RELEASES: "read releases",
    Action.CHECK_RELEASE: "check a release",
    Action.SUBMIT_RELEASE: "submit a release",
    Action.CARRY_OUT_RELEASE: "carry out a release",
    Action.CARRY_OUT_ANY: "carry out a release of somebody else",
    Action.APPROVE_RELEASE: "approve a release",
    Action.RECORD_PAST: "record a past release",
    Action.REMARK: "write a remark",
    Action.READ_ROUNDS: "read rounds",
    Action.PLAN_ROUND: "plan a round",
    Action.COMMIT_PLAN: "commit a plan",
    Action.ANALYZE_RISK: "analyze risk",
    Action.READ_DATA: "read the registered data",
    Action.REGISTER_DATA: "register or shred data",
    Action.ASK_CONTRACT: "ask for a flow of data",
    Action.TAKE_PART: "take part in contracts",
    Action.READ_CONTRACTS: "read the contracts of others",
    Action.APPROVE_CONTRACT: "approve a contract",
    Action.READ_LEDGER: "read the ledger",
    Action.EXPORT_AUDIT: "export an audit bundle",
    Action.MANAGE_OWN_TOKENS: "manage their own tokens",
    Action.MANAGE_TOKENS: "manage tokens",
    Action.READ_METRICS: "read metrics",
}

REACH: Final[Mapping[Action, Reach]] = {
    Action.READ_POLICY: Reach.ANY,
    Action.COMPILE_POLICY: Reach.ANY,
    Action.SIMULATE_POLICY: Reach.LEDGER,
    Action.PROPOSE_POLICY: Reach.LEDGER,
    Action.APPROVE_POLICY: Reach.LEDGER,
    Action.ACTIVATE_POLICY: Reach.LEDGER,
    Action.READ_RULES: Reach.ANY,
    Action.READ_RELEASES: Reach.DATA_SET,
    Action.CHECK_RELEASE: Reach.DATA_SET,
    Action.SUBMIT_RELEASE: Reach.DATA_SET,
    Action.CARRY_OUT_RELEASE: Reach.DATA_SET,
    Action.CARRY_OUT_ANY: Reach.DATA_SET,
    Action.APPROVE_RELEASE: Reach.DATA_SET,
    Action.RECORD_PAST: Reach.DATA_SET,
    Action.REMARK: Reach.LEDGER,
    Action.READ_ROUNDS: Reach.ANY,
    Action.PLAN_ROUND: Reach.LEDGER,
    Action.COMMIT_PLAN: Reach.LEDGER,
    Action.ANALYZE_RISK: Reach.DATA_SET,
    Action.READ_DATA: Reach.DATA_SET,
    Action.REGISTER_DATA: Reach.DATA_SET,
    Action.ASK_CONTRACT: Reach.DATA_SET,
    Action.TAKE_PART: Reach.ANY,
    Action.READ_CONTRACTS: Reach.DATA_SET,
    Action.APPROVE_CONTRACT: Reach.DATA_SET,
    Action.READ_LEDGER: Reach.LEDGER,
    Action.EXPORT_AUDIT: Reach.LEDGER,
    Action.MANAGE_OWN_TOKENS: Reach.ANY,
    Action.MANAGE_TOKENS: Reach.ANY,
    Action.READ_METRICS: Reach.ANY,
}

_READS_RULES = frozenset({Action.READ_POLICY, Action.COMPILE_POLICY, Action.READ_RULES})
_READS = _READS_RULES | {
    Action.READ_RELEASES,
    Action.CHECK_RELEASE,
    Action.READ_ROUNDS,
    Action.READ_DATA,
}
_ASKS = _READS | {
    Action.SUBMIT_RELEASE,
    Action.CARRY_OUT_RELEASE,
    Action.ASK_CONTRACT,
    Action.TAKE_PART,
    Action.MANAGE_OWN_TOKENS,
}
_WATCHES = frozenset({Action.READ_LEDGER, Action.EXPORT_AUDIT})

#: The actions of each role. An auditor reads everything and writes nothing; an account
#: manager has no say about budgets.
ALLOWED: Final[Mapping[Role, frozenset[Action]]] = {
    Role.ANALYST: _ASKS,
    Role.DATA_STEWARD: _ASKS
    | {
        Action.CARRY_OUT_ANY,
        Action.APPROVE_RELEASE,
        Action.APPROVE_POLICY,
        Action.PROPOSE_POLICY,
        Action.RECORD_PAST,
        Action.REMARK,
        Action.ANALYZE_RISK,
        Action.REGISTER_DATA,
        Action.READ_CONTRACTS,
        Action.APPROVE_CONTRACT,
        Action.PLAN_ROUND,
    },
    Role.PRIVACY_OFFICER: _READS
    | _WATCHES
    | {
        Action.SIMULATE_POLICY,
        Action.PROPOSE_POLICY,
        Action.APPROVE_POLICY,
        Action.ACTIVATE_POLICY,
        Action.APPROVE_RELEASE,
        Action.CARRY_OUT_ANY,
        Action.RECORD_PAST,
        Action.REMARK,
        Action.PLAN_ROUND,
        Action.COMMIT_PLAN,
        Action.TAKE_PART,
        Action.READ_CONTRACTS,
        Action.APPROVE_CONTRACT,
        Action.MANAGE_OWN_TOKENS,
    },
    Role.PLATFORM_ENGINEER: _ASKS
    | {
        Action.CARRY_OUT_ANY,
        Action.SIMULATE_POLICY,
        Action.PLAN_ROUND,
        Action.COMMIT_PLAN,
        Action.READ_METRICS,
    },
    Role.AUDITOR: _READS
    | _WATCHES
    | {Action.SIMULATE_POLICY, Action.READ_METRICS, Action.READ_CONTRACTS},
    Role.ADMIN: frozenset(
        {Action.MANAGE_OWN_TOKENS, Action.MANAGE_TOKENS, Action.READ_METRICS}
    ),
}

#: Actions that require a person: no service account, and no API token of a person who
#: could sign in.
PEOPLE_ONLY: Final = frozenset(
    {
        Action.APPROVE_RELEASE,
        Action.APPROVE_POLICY,
        Action.ACTIVATE_POLICY,
        Action.APPROVE_CONTRACT,
    }
)

#: Roles that exclude each other: auditors change nothing, and those who decide about
#: budgets do not manage grants.
APART: Final[tuple[tuple[Role, Role], ...]] = (
    *((Role.AUDITOR, one) for one in Role if one is not Role.AUDITOR),
    (Role.ADMIN, Role.PRIVACY_OFFICER),
    (Role.ADMIN, Role.DATA_STEWARD),
)
