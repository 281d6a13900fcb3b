"""A ledger in memory, and people who reserve releases in it."""

from __future__ import annotations

from typing import Any

from modicum.api.local import Workspace
from modicum.api.local.dry_run import TrialStore
from modicum.ledger import audit, event_of
from modicum.ledger.log.events import ReleaseReserved
from modicum.ledger.proof.consistency import lasts
from modicum.policy.compiler import compile_text
from modicum.system.clock import FixedClock, add_seconds

NOON = "2026-05-01T12:00:00.000000Z"
DAY = 24 * 3600

POLICY = """
modicum: policy/v1
name: held
units: {user: {id: user_id}}
schema: {attributes: {age: low, pay: low}}
population:
  partition_by: {country: {values: [CH, DE, FR], immutable: [user]}}
policies:
  - {name: all, when: "true", unit: user, budget: {rho: 1}}
"""
BOUND = "reservations: {share: 0.25, days: 7}\n"


class Ticking(FixedClock):
    """A clock that goes on by a second whenever it is looked at."""

    def now(self) -> str:
        """Return the time, a second later than before."""
        self.time = add_seconds(self.time, 1)
        return self.time


class Ledger:
    """A ledger in memory, and the people who use it.

    Args:
        bound: The limits of the policy on one identity.
    """

    def __init__(self, bound: str = BOUND) -> None:
        self.store = TrialStore("the ledger", lambda after: iter(()), 0)
        self.clock = Ticking(NOON)
        self.policy = compile_text((POLICY + bound).encode(), "policy.yaml")

    def by(self, actor: str) -> Workspace:
        return Workspace(self.store, self.clock, policy=self.policy, actor=actor)

    def lasts(self, name: str) -> float:
        """Return for how many seconds a release was reserved."""
        for record in self.store.read(0):
            event = event_of(record, record.seq)
            body = event.body
            if isinstance(body, ReleaseReserved) and body.release.id == name:
                return lasts(body, event).total_seconds()
        raise AssertionError(name)

    def audit(self) -> None:
        audit(self.store.read(0))


def release(name: str, rho: str, *countries: str) -> dict[str, Any]:
    where = {"where": {"country": list(countries)}} if countries else {}
    return {
        "release": name,
        "mechanisms": [
            {
                "name": "m",
                "mechanism": "gaussian",
                "attributes": ["age"],
                **where,
                "cost": {"user": {"rho": float(rho)}},
            }
        ],
    }
