"""Who may do what over HTTP: for each route what it takes, and how it is asked.

What is expected is read from the table of roles. Tests of the routes and of the
console's pages use the same rows.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from starlette.requests import Request

from modicum.api.local.escrow.execution import Tools
from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import Grants, Identity
from modicum.integrations.loader import Adapters
from modicum.server.auth.authentication import Recognizing
from modicum.server.resources import Equipment
from modicum.server.settings.tables import TablesOf
from modicum.storage.proofs.signing_keys import make_key
from samples.escrows import MemoryEquipment
from samples.served import ALL_SETS, HEADER, Served, served
from samples.small import POLICY

VISITS = frozenset({"visits"})

ASKING = (
    POLICY
    + """
roles:
  privacy-officer: [privacy-officer-all, privacy-officer-visits, helper]
  data-steward: [data-steward-all, data-steward-visits]
approvals:
  - {when: 'release.audience == "public"', need: 1,
     from: [privacy-officer, data-steward]}
activation: {need: 1, from: [privacy-officer, data-steward]}
"""
)

PEOPLE: dict[str, Grants] = {
    f"{role.value}-{scope}": {role: sets}
    for role in Role
    for scope, sets in (("all", ALL_SETS), ("visits", VISITS))
}
#: Those whose word counts, as programs and scripts show up in their name.
ABSENT = {
    f"{role.value}-{how}": how
    for role in (Role.PRIVACY_OFFICER, Role.DATA_STEWARD)
    for how in ("token", "program")
}
PEOPLE |= {
    name: {Role(name.removesuffix(f"-{how}")): ALL_SETS} for name, how in ABSENT.items()
}
#: Prepares what others are to act on.
HELPER = "helper"
PEOPLE[HELPER] = {Role.DATA_STEWARD: ALL_SETS}
#: Owns the data of the escrow.
KEEPER = "keeper"
PEOPLE[KEEPER] = {Role.DATA_STEWARD: ALL_SETS}
#: Is recognized, and may do nothing.
WITHOUT_RIGHTS = "without-rights"


def identity(name: str) -> Identity:
    """Return who is recognized by a name."""
    how = ABSENT.get(name)
    return Identity(
        name, PEOPLE[name], is_service=how == "program", by_token=how == "token"
    )


class ByName:
    """Believes the header of a test, and tells people from what acts for them."""

    async def identify(self, request: Request) -> Identity | None:
        """Return who the header names."""
        name = request.headers.get(HEADER, "")
        if name == WITHOUT_RIGHTS:
            return Identity(name, {})
        return identity(name) if name in PEOPLE else None


#: Whose rows a request is about: those of the role, others, or everybody's.
SETS = ("visits", "labs")
DATA_SETS = (*SETS, None)

#: Data of the escrow that stands for all that there is.
OTHER = "other"

ANALYSIS = {"dataset": "visits", "query": "SELECT COUNT(*) FROM rows"}

numbers = count()


def declared(table: str) -> str:
    """Return a tables file of the escrow."""
    return f"""\
modicum: tables/v1
tables:
  {table}:
    row_id: user_id
    one_per: user_id
    columns: {{user_id: {{type: integer}}, age: {{type: integer, attribute: age}}}}
"""


def another() -> str:
    """Return a policy that was never proposed before."""
    return ASKING.replace("name: small", f"name: small-{next(numbers)}", 1)


class Case:
    """Somebody who asks the server about a data set, and what is prepared for them.

    Args:
        server: The server.
        who: Who asks.
        data_set: The data set; None for all of them.
    """

    def __init__(self, server: Served, who: str, data_set: str | None) -> None:
        self.server = server
        self.who = who
        self.data_set = data_set

    def release(self, *, public: bool = False) -> dict[str, Any]:
        """Return a release that costs next to nothing."""
        named = {} if self.data_set is None else {"dataset": self.data_set}
        return {
            "release": f"r-{next(numbers)}",
            **named,
            "audience": "public" if public else "internal",
            "mechanisms": [
                {
                    "name": "counts",
                    "mechanism": "gaussian",
                    "attributes": ["age"],
                    "sensitivity": {"user": {"l2": 1}},
                    "sigma": 5000,
                }
            ],
        }

    def analysis(self) -> dict[str, Any]:
        """Return an analysis of the data set; of all of them there is none."""
        return {**ANALYSIS, "dataset": self.data_set or "all-of-them"}

    def reserved(self) -> str:
        """Return a release that the helper reserved."""
        one = self.release()
        assert self.server.post(HELPER, "/releases", one).status_code == 200
        return str(one["release"])

    def started(self) -> str:
        """Return a release that the helper started."""
        name = self.reserved()
        assert self.server.post(HELPER, f"/releases/{name}:start").status_code == 200
        return name

    def requested(self) -> str:
        """Return a release that the helper asks for."""
        one = self.release(public=True)
        asked = self.server.post(HELPER, "/releases", one, params={"reason": "x"})
        assert asked.status_code == 202
        return str(one["release"])

    def tag(self, request: str) -> dict[str, str]:
        """Return the header that names the content of a request."""
        found = self.server.get(HELPER, f"/requests/{request}")
        return {"If-Match": found.headers["etag"]}

    @property
    def kept(self) -> str:
        """The data of the escrow that it is about."""
        return self.data_set or OTHER

    def version(self) -> dict[str, Any]:
        """Return a further version of it."""
        rows = base64.b64encode(b"user_id,age\n1,30\n").decode()
        return {"table": declared(self.kept), "rows": rows}

    def query(self) -> dict[str, Any]:
        """Return a contract for a query that reads it."""
        number = next(numbers)
        text = f"""\
release: e-{number}
query:
  sql: "SELECT COUNT(*) AS people FROM {self.kept}"
  noise: gaussian
  loss: {{user: {{rho: 0.000001}}}}
"""
        return {
            "flow": "query",
            "contract": f"c-{number}",
            "reason": "x",
            "queries": [text],
        }

    def asked(self) -> dict[str, str]:
        """Return a query of the data set, and the declaration of its table."""
        dataset = "" if self.data_set is None else f"dataset: {self.data_set}\n"
        text = f"""\
release: q-{next(numbers)}
{dataset}query:
  sql: "SELECT COUNT(*) AS people FROM people"
  noise: gaussian
  loss: {{user: {{rho: 0.000001}}}}
"""
        return {"query": text, "tables": declared("people")}

    def contract(self) -> str:
        """Return a contract that the helper asks for."""
        asked = self.server.post(HELPER, "/escrow/contracts", self.query())
        assert asked.status_code == 200, asked.text
        return str(asked.json()["contract"])

    def contract_tag(self, contract: str) -> dict[str, str]:
        """Return the header that names the content of a contract."""
        found = self.server.get(HELPER, f"/escrow/contracts/{contract}")
        return {"If-Match": found.headers["etag"]}

    def active(self) -> dict[str, str]:
        """Return the header that names the active policy."""
        found = self.server.get(HELPER, "/policies/active")
        return {"If-Match": found.headers["etag"]}

    def proposed(self) -> str:
        """Return a policy that the helper proposes."""
        key = {"Idempotency-Key": f"p-{next(numbers)}"}
        answered = self.yaml(HELPER, "/policies", another(), headers=key, reason="x")
        assert answered.status_code == 200
        return str(answered.json()["digest"])

    def yaml(
        self, who: str, path: str, text: str, *, headers: dict[str, str], **query: str
    ) -> Any:
        """Send a policy."""
        return self.server.client.post(
            f"/api/v1{path}",
            content=text,
            params=query,
            headers={HEADER: who, "Content-Type": "application/yaml", **headers},
        )

    def get(self, path: str, **query: object) -> Any:
        """Ask as whoever it is."""
        return self.server.get(self.who, path, params=query)

    def post(self, path: str, document: object = None, **named: Any) -> Any:
        """Ask for something to be done as whoever it is."""
        return self.server.post(self.who, path, document, **named)

    def head(self, path: str) -> Any:
        """Ask for a stream as whoever it is, and read its beginning only."""
        with self.server.client.stream(
            "GET", f"/api/v1{path}", headers={HEADER: self.who}
        ) as answered:
            if answered.status_code != 200:
                answered.read()
            return answered

    def delete(self, path: str, **headers: str) -> Any:
        """Ask for something to be taken away as whoever it is."""
        key = {"Idempotency-Key": f"d-{next(numbers)}"}
        return self.server.client.delete(
            f"/api/v1{path}", headers={HEADER: self.who, **key, **headers}
        )


Expected = Callable[[Identity, "str | None"], int]


def takes(action: Action) -> Expected:
    """Expect a refusal of who may not."""
    return lambda who, data_set: 200 if who.may(action, data_set) else 403


def takes_anywhere(action: Action) -> Expected:
    """Expect a refusal of who may do it for no data set at all."""

    def expected(who: Identity, _: str | None) -> int:
        sets = {one for each in who.grants.values() for one in each}
        return 200 if any(who.may(action, one) for one in sets) else 403

    return expected


def takes_seen(*actions: Action) -> Expected:
    """Expect that what may not be read is not there, and a refusal of the rest."""

    def expected(who: Identity, data_set: str | None) -> int:
        if not who.may(Action.READ_RELEASES, data_set):
            return 404
        return 200 if all(who.may(one, data_set) for one in actions) else 403

    return expected


def read_for(expected: Expected, *actions: Action) -> Expected:
    """Expect a refusal of who may do none of it anywhere: no body of theirs is read."""

    def found(who: Identity, data_set: str | None) -> int:
        anywhere = (takes_anywhere(one)(who, None) for one in actions)
        return expected(who, data_set) if 200 in anywhere else 403

    return found


def takes_shown(*actions: Action) -> Expected:
    """Expect that others' contracts are not there, and a refusal of the rest."""

    def expected(who: Identity, data_set: str | None) -> int:
        if not who.may(Action.READ_CONTRACTS, data_set):
            return 404
        return 200 if all(who.may(one, data_set) for one in actions) else 403

    return expected


def _takes_part(who: Identity, data_set: str | None) -> int:
    """Only who has a part in a contract does this, and nobody here has."""
    return 403 if who.may(Action.READ_CONTRACTS, data_set) else 404


def _reads_contracts(who: Identity, _: str | None) -> int:
    """All but admins take part somewhere, or read what others do."""
    return 403 if Role.ADMIN in who.grants else 200


def _asks_contract(who: Identity, data_set: str | None) -> int:
    """To who may not ask about a data set, it is not there."""
    if takes_anywhere(Action.ASK_CONTRACT)(who, None) == 403:
        return 403
    return 200 if who.may(Action.ASK_CONTRACT, data_set or OTHER) else 422


def _asks_risk(who: Identity, data_set: str | None) -> int:
    """To who may not read about a data set, it is not there: that is a 422 as well."""
    return takes_anywhere(Action.READ_DATA)(who, data_set)


def _say_contract(case: Case) -> Any:
    name = case.contract()
    headers = case.contract_tag(name)
    return case.post(f"/escrow/contracts/{name}/approvals", WORD, headers=headers)


def _say_data(case: Case) -> Any:
    versions = case.server.get(KEEPER, f"/escrow/data/{case.kept}").json()["versions"]
    headers = {"If-Match": f'"{versions[0]["digest"]}"'}
    path = f"/escrow/data/{case.kept}/versions/1/approvals"
    return case.post(path, WORD, headers=headers)


def _take_contract_back(case: Case) -> Any:
    name = case.contract()
    path = f"/escrow/contracts/{name}/approvals"
    return case.delete(path, **case.contract_tag(name))


@dataclass(frozen=True)
class Row:
    """What a route takes.

    Attributes:
        expected: The status that whoever asks is to hear: 200 for any answer that is
            no refusal.
        call: Asks.
        fine: What such answers may be.
    """

    expected: Expected
    call: Callable[[Case], Any]
    fine: tuple[int, ...] = (200,)


WORD = {"approves": False, "reason": "x"}
REASON = {"reason": "x"}


def _say(case: Case) -> Any:
    name = case.requested()
    return case.post(f"/requests/{name}/approvals", WORD, headers=case.tag(name))


def _take_back(case: Case) -> Any:
    name = case.requested()
    return case.delete(f"/requests/{name}/approvals", **case.tag(name))


def _lint(case: Case) -> Any:
    return case.yaml(case.who, "/policies:lint", ASKING, headers={})


def _propose(case: Case) -> Any:
    key = {"Idempotency-Key": f"q-{next(numbers)}"}
    return case.yaml(case.who, "/policies", another(), headers=key, reason="x")


def _activate_text(case: Case) -> Any:
    headers = {"Idempotency-Key": f"a-{next(numbers)}", **case.active()}
    return case.yaml(
        case.who, "/policies:activate", another(), headers=headers, reason="x"
    )


def _revoke(case: Case) -> Any:
    made = case.server.post(HELPER, "/tokens", {}).json()
    return case.delete(f"/tokens/{made['id']}")


def _may_revoke(who: Identity, _: str | None) -> int:
    """Somebody else's token is not there, but for who manages all."""
    if who.grants.get(Role.ADMIN, frozenset()) >= ALL_SETS:
        return 200
    return 404 if who.may(Action.MANAGE_OWN_TOKENS) else 403


def _may_make_tokens(who: Identity, _: str | None) -> int:
    """A person makes their own; what was let in by one, or acts by itself, none."""
    may = who.may(Action.MANAGE_OWN_TOKENS) and who.is_present
    return 200 if may else 403


def _may_diagnose(who: Identity, _: str | None) -> int:
    """Facts about the log and the machine are for those who watch either."""
    either = (Action.READ_LEDGER, Action.READ_METRICS)
    return 200 if any(map(who.may, either)) else 403


def _may_weigh(who: Identity, _: str | None) -> int:
    """Rules ask about all releases, in the words of whoever wrote them."""
    may = who.may(Action.COMPILE_POLICY) and who.may(Action.READ_RELEASES)
    return 200 if may else 403


def job(case: Case) -> str:
    """Return a job of somebody else."""
    owner = "auditor-all"
    known = case.server.get(owner, "/jobs").json()["jobs"]
    if known:
        return str(known[0]["job"])
    begun = case.server.post(owner, "/ledger:verify")
    assert begun.status_code == 202
    return str(begun.json()["job"])


def _nobodys_job(who: Identity, _: str | None) -> int:
    """A job is its owner's, whatever others may do."""
    return 200 if who.name == "auditor-all" else 404


def _controls(who: Identity, data_set: str | None) -> int:
    """To other data stewards, a data set is not there; nor is one without rows.

    Written out, since the table of roles could be changed: privacy officers, auditors
    and admins see no rows.
    """
    is_steward = any(
        role is Role.DATA_STEWARD and (sets == ALL_SETS or data_set in sets)
        for role, sets in who.grants.items()
    )
    if not any(role is Role.DATA_STEWARD for role in who.grants):
        return 403  # Whatever data sets there are.
    return 200 if is_steward and data_set is not None else 404


#: Every route of the description: what it takes, and how it is asked.
ROWS: dict[tuple[str, str], Row] = {
    ("get", "/me"): Row(lambda *_: 200, lambda case: case.get("/me")),
    ("get", "/ping"): Row(lambda *_: 200, lambda case: case.get("/ping"), fine=(204,)),
    # Releases
    ("post", "/releases:check"): Row(
        takes(Action.CHECK_RELEASE),
        lambda case: case.post("/releases:check", case.release()),
    ),
    ("post", "/releases:fit"): Row(
        takes(Action.CHECK_RELEASE),
        lambda case: case.post("/releases:fit", case.release()),
    ),
    ("post", "/releases:options"): Row(
        takes(Action.CHECK_RELEASE),
        lambda case: case.post("/releases:options", case.release()),
    ),
    ("post", "/releases"): Row(
        takes(Action.SUBMIT_RELEASE),
        lambda case: case.post("/releases", case.release()),
    ),
    ("post", "/releases:batch"): Row(
        takes_anywhere(Action.SUBMIT_RELEASE),
        lambda case: case.post("/releases:batch", {"releases": [case.release()]}),
    ),
    ("post", "/releases:record-past"): Row(
        takes(Action.RECORD_PAST),
        lambda case: case.post("/releases:record-past", case.release()),
    ),
    ("get", "/releases"): Row(
        takes_anywhere(Action.READ_RELEASES), lambda case: case.get("/releases")
    ),
    ("get", "/releases/{release}"): Row(
        takes_seen(), lambda case: case.get(f"/releases/{case.reserved()}")
    ),
    ("post", "/releases/{release}:start"): Row(
        takes_seen(Action.CARRY_OUT_RELEASE, Action.CARRY_OUT_ANY),
        lambda case: case.post(f"/releases/{case.reserved()}:start"),
    ),
    ("post", "/releases/{release}:post"): Row(
        takes_seen(Action.CARRY_OUT_RELEASE, Action.CARRY_OUT_ANY),
        lambda case: case.post(f"/releases/{case.started()}:post"),
    ),
    ("post", "/releases/{release}:void"): Row(
        read_for(
            takes_seen(Action.CARRY_OUT_ANY),
            Action.CARRY_OUT_RELEASE,
            Action.CARRY_OUT_ANY,
        ),
        lambda case: case.post(f"/releases/{case.reserved()}:void", REASON),
    ),
    ("post", "/queries:plan"): Row(
        takes(Action.CHECK_RELEASE),
        lambda case: case.post("/queries:plan", case.asked()),
    ),
    ("get", "/vocabulary"): Row(
        takes(Action.READ_POLICY), lambda case: case.get("/vocabulary")
    ),
    # Requests
    ("get", "/requests"): Row(
        takes_anywhere(Action.READ_RELEASES), lambda case: case.get("/requests")
    ),
    ("post", "/requests"): Row(
        takes(Action.SUBMIT_RELEASE),
        lambda case: case.post(
            "/requests", case.release(public=True), params={"reason": "x"}
        ),
    ),
    ("get", "/requests/{release}"): Row(
        takes_seen(), lambda case: case.get(f"/requests/{case.requested()}")
    ),
    ("get", "/requests/{release}/approvals"): Row(
        takes_seen(), lambda case: case.get(f"/requests/{case.requested()}/approvals")
    ),
    ("get", "/requests/{release}/statement"): Row(
        takes_seen(Action.APPROVE_RELEASE),
        lambda case: case.get(
            f"/requests/{case.requested()}/statement", reason="x", key="ab" * 32
        ),
    ),
    ("post", "/requests/{release}/approvals"): Row(
        read_for(takes_seen(Action.APPROVE_RELEASE), Action.APPROVE_RELEASE), _say
    ),
    ("delete", "/requests/{release}/approvals"): Row(
        takes_seen(Action.APPROVE_RELEASE), _take_back
    ),
    ("post", "/requests/{release}:withdraw"): Row(
        read_for(
            takes_seen(Action.SUBMIT_RELEASE),
            Action.SUBMIT_RELEASE,
            Action.RECORD_PAST,
        ),
        lambda case: case.post(f"/requests/{case.requested()}:withdraw", REASON),
        fine=(409,),  # It is the helper's.
    ),
    # Policies and rules
    ("get", "/policies"): Row(
        takes(Action.READ_POLICY), lambda case: case.get("/policies")
    ),
    ("get", "/policies/{digest}"): Row(
        takes(Action.READ_POLICY), lambda case: case.get("/policies/active")
    ),
    ("post", "/policies:lint"): Row(takes(Action.COMPILE_POLICY), _lint),
    ("post", "/policies:weigh"): Row(
        _may_weigh,
        lambda case: case.yaml(case.who, "/policies:weigh", ASKING, headers={}),
    ),
    ("post", "/policies"): Row(takes(Action.PROPOSE_POLICY), _propose),
    ("get", "/policies/proposals"): Row(
        takes(Action.READ_POLICY), lambda case: case.get("/policies/proposals")
    ),
    ("get", "/policies/proposals/{digest}"): Row(
        takes(Action.READ_POLICY),
        lambda case: case.get(f"/policies/proposals/{case.proposed()}"),
    ),
    ("get", "/policies/{digest}/approvals"): Row(
        takes(Action.READ_POLICY),
        lambda case: case.get(f"/policies/{case.proposed()}/approvals"),
    ),
    ("post", "/policies/{digest}/approvals"): Row(
        takes(Action.APPROVE_POLICY),
        lambda case: case.post(f"/policies/{case.proposed()}/approvals", WORD),
    ),
    ("delete", "/policies/{digest}/approvals"): Row(
        takes(Action.APPROVE_POLICY),
        lambda case: case.delete(f"/policies/{case.proposed()}/approvals"),
    ),
    ("post", "/policies/{digest}:activate"): Row(
        takes(Action.ACTIVATE_POLICY),
        lambda case: case.post(
            f"/policies/{case.proposed()}:activate", REASON, headers=case.active()
        ),
        fine=(403,),  # Nobody has agreed to it yet.
    ),
    ("post", "/policies:activate"): Row(
        takes(Action.ACTIVATE_POLICY), _activate_text, fine=(403,)
    ),
    ("get", "/rules"): Row(takes(Action.READ_RULES), lambda case: case.get("/rules")),
    ("get", "/rules/history"): Row(
        takes(Action.READ_RULES),
        lambda case: case.get("/rules/history", rule="global @standard"),
    ),
    ("get", "/rule-rounds"): Row(
        takes(Action.READ_RULES),
        lambda case: case.get("/rule-rounds", rule="global @standard"),
    ),
    ("get", "/rule-diagram"): Row(
        takes(Action.READ_RULES),
        lambda case: case.get("/rule-diagram", rule="global @standard"),
    ),
    ("get", "/rules/{rule}"): Row(
        takes(Action.READ_RULES), lambda case: case.get("/rules/global @standard")
    ),
    ("post", "/policies:compile"): Row(
        takes(Action.COMPILE_POLICY),
        lambda case: case.yaml(case.who, "/policies:compile", ASKING, headers={}),
    ),
    ("post", "/policies:diff"): Row(
        takes(Action.COMPILE_POLICY),
        lambda case: case.yaml(case.who, "/policies:diff", ASKING, headers={}),
    ),
    ("post", "/policies:simulate"): Row(
        takes(Action.SIMULATE_POLICY),
        lambda case: case.yaml(case.who, "/policies:simulate", ASKING, headers={}),
        fine=(202, 503),  # Too many jobs may be under way.
    ),
    # Remarks
    ("post", "/ledger/remarks"): Row(
        takes(Action.REMARK),
        lambda case: case.post("/ledger/remarks", {"remark": "x"}),
    ),
    ("post", "/ledger/disclosures"): Row(
        takes(Action.REMARK),
        lambda case: case.post(
            "/ledger/disclosures",
            {
                "disclosure": f"d-{next(numbers)}",
                "what": "x",
                "attributes": ["age"],
                "reason": "x",
            },
        ),
    ),
    # Rounds and plans
    ("get", "/rounds"): Row(
        takes(Action.READ_ROUNDS), lambda case: case.get("/rounds")
    ),
    ("post", "/rounds"): Row(
        takes(Action.PLAN_ROUND), lambda case: case.post("/rounds", {})
    ),
    ("get", "/rounds/{round_id}"): Row(
        takes(Action.READ_ROUNDS), lambda case: case.get("/rounds/none"), fine=(404,)
    ),
    ("post", "/rounds/{round_id}/plan"): Row(
        takes(Action.PLAN_ROUND),
        lambda case: case.post("/rounds/none/plan", [case.release()]),
        fine=(404, 409),
    ),
    ("get", "/plans"): Row(takes(Action.READ_ROUNDS), lambda case: case.get("/plans")),
    ("get", "/plans/{plan}"): Row(
        takes(Action.READ_ROUNDS), lambda case: case.get("/plans/none"), fine=(404,)
    ),
    ("post", "/plans:commit"): Row(
        takes(Action.COMMIT_PLAN),
        lambda case: case.post("/plans:commit", {}, headers={"If-Match": '"x"'}),
        fine=(422,),  # It is no plan.
    ),
    # Audits and jobs
    ("get", "/audit/bundles"): Row(
        takes(Action.EXPORT_AUDIT), lambda case: case.get("/audit/bundles")
    ),
    ("get", "/audit/statement"): Row(
        takes(Action.EXPORT_AUDIT), lambda case: case.get("/audit/statement")
    ),
    ("get", "/audit/trail"): Row(
        takes(Action.EXPORT_AUDIT), lambda case: case.get("/audit/trail")
    ),
    ("get", "/doctor"): Row(_may_diagnose, lambda case: case.get("/doctor")),
    ("get", "/ledger/proof"): Row(
        takes(Action.READ_LEDGER), lambda case: case.get("/ledger/proof")
    ),
    ("post", "/ledger:verify"): Row(
        takes(Action.READ_LEDGER),
        lambda case: case.post("/ledger:verify"),
        fine=(202, 503),
    ),
    ("get", "/jobs"): Row(lambda *_: 200, lambda case: case.get("/jobs")),
    ("get", "/jobs/{job}"): Row(
        _nobodys_job, lambda case: case.get(f"/jobs/{job(case)}")
    ),
    ("delete", "/jobs/{job}"): Row(
        _nobodys_job, lambda case: case.delete(f"/jobs/{job(case)}")
    ),
    ("get", "/jobs/{job}/events"): Row(
        _nobodys_job, lambda case: case.get(f"/jobs/{job(case)}/events")
    ),
    ("get", "/events"): Row(
        takes(Action.READ_RULES), lambda case: case.head("/events")
    ),
    # Risk: for the controller of the data, and nobody else
    ("post", "/risk/analyses"): Row(
        _controls,
        lambda case: case.post("/risk/analyses", case.analysis()),
        fine=(202, 429),  # Another one may be under way.
    ),
    # The escrow: of data that the keeper owns, and contracts that the helper asks for
    ("get", "/escrow/data"): Row(
        takes_anywhere(Action.READ_DATA), lambda case: case.get("/escrow/data")
    ),
    ("get", "/escrow/data/{name}"): Row(
        lambda who, data_set: 200 if who.may(Action.READ_DATA, data_set) else 404,
        lambda case: case.get(f"/escrow/data/{case.kept}"),
    ),
    ("post", "/escrow/data/{name}/versions"): Row(
        takes(Action.REGISTER_DATA),
        lambda case: case.post(f"/escrow/data/{case.kept}/versions", case.version()),
        fine=(409,),  # It is not theirs.
    ),
    ("post", "/escrow/data/{name}/versions/{n}/approvals"): Row(
        takes(Action.APPROVE_CONTRACT),
        _say_data,
        fine=(404, 409),  # It is hidden, or not theirs.
    ),
    ("post", "/escrow/data/{name}/versions/{n}:shred"): Row(
        takes(Action.REGISTER_DATA),
        lambda case: case.post(f"/escrow/data/{case.kept}/versions/1:shred", REASON),
        fine=(409,),
    ),
    ("get", "/escrow/contracts"): Row(
        _reads_contracts, lambda case: case.get("/escrow/contracts")
    ),
    ("post", "/escrow/contracts"): Row(
        _asks_contract, lambda case: case.post("/escrow/contracts", case.query())
    ),
    ("get", "/escrow/contracts/{name}"): Row(
        takes_shown(), lambda case: case.get(f"/escrow/contracts/{case.contract()}")
    ),
    ("get", "/escrow/contracts/{name}/statement"): Row(
        takes_shown(Action.APPROVE_CONTRACT),
        lambda case: case.get(
            f"/escrow/contracts/{case.contract()}/statement", reason="x", key="ab" * 32
        ),
    ),
    ("post", "/escrow/risk"): Row(
        _asks_risk,
        lambda case: case.post(
            "/escrow/risk", {"file": case.query()["queries"][0], "tau": 0.9}
        ),
        fine=(422,),  # No epsilon is chosen by risk for such noise without a delta.
    ),
    ("get", "/escrow/contracts/{name}/approvals"): Row(
        takes_shown(),
        lambda case: case.get(f"/escrow/contracts/{case.contract()}/approvals"),
    ),
    ("post", "/escrow/contracts/{name}/approvals"): Row(
        read_for(
            takes_shown(Action.APPROVE_CONTRACT),
            Action.APPROVE_CONTRACT,
            Action.TAKE_PART,
        ),
        _say_contract,
        fine=(409,),  # They own none of its data.
    ),
    ("delete", "/escrow/contracts/{name}/approvals"): Row(
        takes_shown(Action.APPROVE_CONTRACT), _take_contract_back, fine=(409,)
    ),
    ("post", "/escrow/contracts/{name}:withdraw"): Row(
        read_for(_takes_part, Action.TAKE_PART),
        lambda case: case.post(f"/escrow/contracts/{case.contract()}:withdraw", REASON),
    ),
    ("post", "/escrow/contracts/{name}:run"): Row(
        takes_shown(Action.CARRY_OUT_ANY),
        lambda case: case.post(f"/escrow/contracts/{case.contract()}:run"),
        fine=(409,),  # Nobody agreed to it.
    ),
    ("post", "/escrow/contracts/{name}:receive"): Row(
        _takes_part,
        lambda case: case.post(f"/escrow/contracts/{case.contract()}:receive"),
    ),
    # The log
    ("get", "/ledger/head"): Row(
        takes(Action.READ_RULES), lambda case: case.get("/ledger/head")
    ),
    ("get", "/ledger/entries"): Row(
        takes(Action.READ_LEDGER), lambda case: case.get("/ledger/entries")
    ),
    ("get", "/ledger/entries/{seq}"): Row(
        takes(Action.READ_LEDGER), lambda case: case.get("/ledger/entries/1")
    ),
    ("get", "/ledger/checkpoint"): Row(
        takes(Action.READ_LEDGER), lambda case: case.get("/ledger/checkpoint")
    ),
    ("get", "/releases/{release}/receipt"): Row(
        takes_seen(), lambda case: case.get(f"/releases/{case.reserved()}/receipt")
    ),
    # Tokens
    ("get", "/tokens"): Row(
        takes(Action.MANAGE_OWN_TOKENS), lambda case: case.get("/tokens")
    ),
    ("post", "/tokens"): Row(
        _may_make_tokens,
        lambda case: case.post("/tokens", {}),
        fine=(201,),
    ),
    ("delete", "/tokens/{token}"): Row(_may_revoke, _revoke),
}


@contextmanager
def served_to_all(folder: Path, *, console: bool = False) -> Iterator[Served]:
    """Serve an organization in which every role has a person, and an escrow."""
    (folder / "policy.yaml").write_text(ASKING)
    (folder / "rows.csv").write_text("age\n30\n40\n")
    tables = {name: TablesOf({"": str(folder / "rows.csv")}) for name in SETS}
    with served(
        folder / "ledger.db",
        policy=folder / "policy.yaml",
        people=PEOPLE,
        own=Equipment(
            tables,
            signing_key=make_key(folder / "key"),
            escrow=Tools(MemoryEquipment(), Adapters()),
        ),
        console=console,
    ) as found:
        found.parts.recognizing = Recognizing([ByName()])
        for name in (*SETS, OTHER):
            owned = {"owners": {KEEPER: []}, "contracts": 10**6}
            sent = {**Case(found, KEEPER, name).version(), **owned}
            answered = found.post(KEEPER, f"/escrow/data/{name}/versions", sent)
            assert answered.status_code == 200, answered.text
        yield found
