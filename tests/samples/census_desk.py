"""Asking the escrow of a server over plain HTTP: owners who agree, one with a key."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2

from samples.audited import key
from samples.jobs import PATIENCE
from samples.remote import BEFORE

#: Signs what olga says.
OLGA = key(1)
NOT_NOW, NOT_SO, UNKNOWN = (409, "MOD865"), (409, "MOD867"), (404, "MOD866")
Answer = httpx2.Response


@dataclass
class Desk:
    """Asks a server over plain HTTP, as one of several people."""

    client: httpx2.Client
    numbers: Iterator[int] = field(default_factory=count)

    def ask(
        self,
        who: str,
        method: str,
        path: str,
        form: object = None,
        tag: str = "",
        **query: str,
    ) -> Answer:
        headers = {
            "Authorization": f"Bearer {BEFORE}{who}",
            "Idempotency-Key": f"step-{next(self.numbers)}",
        }
        if tag:
            headers["If-Match"] = tag
        return self.client.request(
            method, f"/api/v1{path}", json=form, headers=headers, params=query
        )

    def told(self, who: str, method: str, path: str, form: object = None) -> Any:
        return done(self.ask(who, method, path, form)).json()

    def propose(self, who: str, flow: str, name: str, **own: object) -> Answer:
        form = {"flow": flow, "contract": name, "reason": "to plan schools", **own}
        return self.ask(who, "POST", "/escrow/contracts", form)

    def try_to(self, who: str, step: str, name: str) -> Answer:
        return self.ask(who, "POST", f"/escrow/contracts/{name}:{step}")

    def run(self, name: str, *results: str) -> None:
        job = self.finished("amir", self.try_to("amir", "run", name))
        assert job["state"] == "done", job
        assert job["result"]["denied"] is None
        assert job["result"]["contract"]["results"] == list(results)

    def finished(self, who: str, started: Answer) -> dict[str, Any]:
        """Return a job, once it is over."""
        place = done(started, 202).headers["location"].removeprefix("/api/v1")
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            job: dict[str, Any] = self.told(who, "GET", place)
            if job["state"] not in ("queued", "running"):
                return job
            time.sleep(0.1)
        raise TimeoutError(place)

    def not_now(self, step: str, name: str, who: str = "amir") -> None:
        """Nothing flows: it is refused."""
        refused(self.try_to(who, step, name), *NOT_NOW)

    def sign(self, name: str) -> dict[str, Any]:
        """Return olga's agreement, with her signature of what the server states."""
        path, public = f"/escrow/contracts/{name}/statement", OLGA.public.hex()
        params = {"reason": "as agreed", "key": public}
        stated = done(self.ask("olga", "GET", path, **params)).json()
        document = json.loads(stated["statement"])
        assert (document["by"], document["id"], document["approves"]) == (
            "olga",
            name,
            True,
        )
        signature = OLGA.signature_of(stated["statement"].encode()).hex()
        return {"head": stated["head"], "key": public, "signature": signature}

    def agree(self, name: str, step: str) -> None:
        """Let both owners agree; before that, not even one of them is enough."""
        path = f"/escrow/contracts/{name}"
        vote: dict[str, Any] = {"approves": True, "reason": "as agreed"}
        for who in ("olga", "pavel"):
            self.not_now(step, name)
            tag = done(self.ask(who, "GET", path)).headers["etag"]
            if who == "olga":
                unsigned = self.ask(who, "POST", f"{path}/approvals", vote, tag)
                refused(unsigned, 403, "MOD607")
                vote |= self.sign(name)
            done(self.ask(who, "POST", f"{path}/approvals", vote, tag))
            vote = {"approves": True, "reason": "as agreed"}
        review = self.told("pavel", "GET", f"{path}/approvals")
        assert review["consent"]["given"] is True
        assert [(one["by"], one["key"]) for one in review["votes"]] == [
            ("olga", OLGA.public.hex()),
            ("pavel", None),
        ]


def done(answer: Answer, status: int = 200) -> Answer:
    assert answer.status_code == status, answer.text
    return answer


def refused(answer: Answer, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
