"""The escrow of a server that is fuzzed: stories that lead to each step of it."""

from __future__ import annotations

import base64
import random
from itertools import count
from typing import Any

from modicum.api.local.escrow.execution import Tools
from modicum.integrations.loader import Adapters
from modicum.server.resources import Equipment
from samples.escrows import MemoryEquipment
from samples.fuzzing import Filled, Stories
from samples.jobs import finished
from samples.served import Served
from samples.told import Told

TABLE = """\
modicum: tables/v1
tables:
  people:
    row_id: user_id
    one_per: user_id
    columns: {user_id: {type: integer}, age: {type: integer, attribute: age}}
"""
CODE = "def score(tables, arguments, reference):\n    return 0.5\n"
OWNER, ANALYST = "dara", "amir"
REASON = {"reason": "x"}

_numbers = count()


def with_escrow(own: Equipment) -> Equipment:
    """Return what a server has, and an escrow in memory."""
    escrow = Tools(MemoryEquipment(), Adapters())
    return Equipment(own.tables, own.bounds, own.signing_key, escrow)


class EscrowScene:
    """What there is to be acted on in an escrow.

    Args:
        server: The server; its dara owns the data, and its amir asks.
    """

    def __init__(self, server: Served) -> None:
        self._server = server
        owned = {"owners": {OWNER: []}, "contracts": 10**6, "bits": 10**6}
        path = "/escrow/data/people/versions"
        made = server.post(OWNER, path, {**self._version(), **owned})
        assert made.status_code == 200, made.text
        # What its owner registers takes their signature, too.
        owned["owners"] = {OWNER: ["ab" * 32]}
        self._done(OWNER, "/escrow/data/signed/versions", {**self._signed(), **owned})
        data, contracts = "/api/v1/escrow/data", "/api/v1/escrow/contracts"
        named = f"{contracts}/{{name}}"
        #: What brings about what a call needs.
        self.stories: Stories = {
            f"GET {data}/{{name}}": lambda _, __: Filled(path={"name": "people"}),
            f"POST {data}/{{name}}/versions": self._further,
            f"POST {data}/{{name}}/versions/{{n}}/approvals": self._word_on_data,
            f"POST {data}/{{name}}/versions/{{n}}:shred": self._shredded,
            f"POST {contracts}": self._wanted,
            f"GET {named}": self._asked_by_all,
            f"GET {named}/statement": self._statement,
            f"POST {named}/approvals": self._word,
            f"DELETE {named}/approvals": self._word,
            f"GET {named}/approvals": self._asked_by_all,
            "POST /api/v1/escrow/risk": self._weighed,
            f"POST {named}:withdraw": self._asked,
            f"POST {named}:run": self._agreed,
            f"POST {named}:receive": self._going_out,
        }

    # --- stories ---

    def _further(self, _: random.Random, __: Told) -> Filled:
        return Filled(self._version(), path={"name": "people"}, who=OWNER)

    def _shredded(self, _: random.Random, __: Told) -> Filled:
        made = self._done(OWNER, "/escrow/data/people/versions", self._version())
        number = made.json()["version"]
        again = self._done(OWNER, "/escrow/data/people/versions", self._version())
        assert again.json()["version"] > number
        return Filled(REASON, path={"name": "people", "n": number}, who=OWNER)

    def _word_on_data(self, _: random.Random, __: Told) -> Filled:
        made = self._done(OWNER, "/escrow/data/signed/versions", self._signed()).json()
        kept = self._server.get(OWNER, "/escrow/data/signed").json()["versions"]
        return Filled(
            {"approves": False, "reason": "x"},
            path={"name": "signed", "n": made["version"]},
            headers={"If-Match": f'"{kept[-1]["digest"]}"'},
            who=OWNER,
        )

    def _wanted(self, rng: random.Random, _: Told) -> Filled:
        flow = rng.choice(("query", "query", "task", "output", "signal", "raw-signal"))
        return Filled(self._form(flow), who=ANALYST)

    def _asked(self, _: random.Random, __: Told) -> Filled:
        return self._at(self._ask(self._form("query")), who=ANALYST)

    def _asked_by_all(self, rng: random.Random, known: Told) -> Filled:
        return Filled(
            path=self._asked(rng, known).path, who=rng.choice((OWNER, "olga"))
        )

    def _statement(self, rng: random.Random, known: Told) -> Filled:
        params = {"approves": "true", "reason": "x", "key": "0" * 64}
        return Filled(path=self._asked(rng, known).path, query=params, who=OWNER)

    def _word(self, rng: random.Random, _: Told) -> Filled:
        name = self._ask(self._form("query"))
        tag = self._server.get(OWNER, f"/escrow/contracts/{name}").headers["etag"]
        return Filled(
            {"approves": rng.random() < 0.5, "reason": "x"},
            path={"name": name},
            headers={"If-Match": tag},
            who=OWNER,
        )

    def _agreed(self, _: random.Random, __: Told) -> Filled:
        name = self._ask(self._form("query"))
        self._agree(name)
        return Filled(path={"name": name}, who=ANALYST)

    def _weighed(self, rng: random.Random, _: Told) -> Filled:
        form = self._form("query")
        target = {"tau": rng.choice((0.5, "0.9")), "delta": "0.000001"}
        if rng.random() < 0.5:
            return Filled({"file": form["queries"][0], **target}, who=OWNER)
        return Filled({"contract": self._ask(form), **target}, who=OWNER)

    def _going_out(self, rng: random.Random, _: Told) -> Filled:
        name = self._ask(self._form(rng.choice(("output", "signal", "raw-signal"))))
        self._agree(name)
        return Filled(path={"name": name}, who=ANALYST)

    # --- steps ---

    @staticmethod
    def _at(name: str, who: str) -> Filled:
        return Filled(REASON, path={"name": name}, who=who)

    @staticmethod
    def _version() -> dict[str, Any]:
        rows = base64.b64encode(b"user_id,age\n1,30\n2,40\n").decode()
        return {"table": TABLE, "rows": rows}

    @classmethod
    def _signed(cls) -> dict[str, Any]:
        return {**cls._version(), "table": TABLE.replace("people:", "signed:")}

    def _form(self, flow: str) -> dict[str, Any]:
        """Return a contract to be asked for; what it follows from has run."""
        number = next(_numbers)
        form: dict[str, Any] = {"flow": flow, "contract": f"c-{number}", **REASON}
        if flow == "query":
            query = (
                f'release: e-{number}\nquery:\n  sql: "SELECT COUNT(*) AS n FROM'
                ' people"\n  noise: gaussian\n  loss: {user: {rho: 0.000000001}}\n'
            )
            return {**form, "queries": [query], "exact": True}
        if flow in ("task", "output"):
            form["query"] = self._ran("query")
        else:
            form["task"] = self._ran("task")
        if flow == "task":
            code = {"code": CODE, "language": "wasm"}  # It is given exact answers.
            form["program"] = {**code, "range": [0, "1"], "arguments": {"a": 1}}
        return {**form, "width": 0.25} if flow == "raw-signal" else form

    def _ask(self, form: dict[str, Any]) -> str:
        return str(self._done(ANALYST, "/escrow/contracts", form).json()["contract"])

    def _agree(self, name: str) -> None:
        path = f"/escrow/contracts/{name}"
        tag = {"If-Match": self._server.get(OWNER, path).headers["etag"]}
        vote = {"approves": True, "reason": "x"}
        self._done(OWNER, f"{path}/approvals", vote, headers=tag)

    def _ran(self, flow: str) -> str:
        name = self._ask(self._form(flow))
        self._agree(name)
        started = self._server.post(ANALYST, f"/escrow/contracts/{name}:run")
        job = finished(self._server, ANALYST, started)
        assert job["state"] == "done", job
        return name

    def _done(self, who: str, path: str, form: object, **named: Any) -> Any:
        answered = self._server.post(who, path, form, **named)
        assert answered.status_code == 200, answered.text
        return answered
