"""What may be reserved and not started, summed anew for each reservation.

It keeps nothing but a list of what is held: each release with its holder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from modicum.policy.model import ReservationBound
from oracle.audit_points import Plain
from oracle.audit_sums import Charges, Sums

#: Returns what a release is charged under the active policy, by its id.
Charged = Callable[[str], Charges]


class Quotas:
    """The reservations of a log, against what its policies allow.

    Args:
        broken: Where to write what is wrong.
    """

    def __init__(self, broken: list[str]) -> None:
        self._broken = broken
        self._held: dict[str, tuple[str, Plain]] = {}
        #: Those of the present turn that must not outlast it.
        self._beyond: dict[str, int] = {}
        self._turn: Any = None

    def take(self, seq: int, event: Plain) -> None:
        """Take the next entry into account, before it is judged by `reserve`."""
        body, turn = event["body"], (event["at"], event["actor"])
        if turn != self._turn:
            self.close()
        self._turn = turn
        ended = []
        if event["kind"] == "plan-committed":
            ended = body["releases"]
        elif event["kind"] in ("release-started", "release-voided", "release-expired"):
            ended = [body["release"]]
        for one in ended:
            self._held.pop(one, None)
            self._beyond.pop(one, None)

    def close(self) -> None:
        """Report what is beyond a quota at the end of a turn."""
        for name, seq in self._beyond.items():
            self._broken.append(f"{seq}: {name} is reserved beyond a quota")
        self._beyond.clear()

    def reserve(
        self,
        seq: int,
        event: Plain,
        bound: ReservationBound | None,
        sums: Sums,
        charged: Charged,
    ) -> None:
        """Judge a reservation, and hold it."""
        release, who = event["body"]["release"], _same(event["actor"])
        if bound is not None:
            until, at = (
                datetime.fromisoformat(one)
                for one in (event["body"]["expires_at"], event["at"])
            )
            if until - at > timedelta(days=bound.days):
                self._broken.append(f"{seq}: {release['id']} is reserved for too long")
            for share, held in self._quotas(bound, who, release):
                large, beyond = sums.above(
                    share,
                    [charged(one) for one in held],
                    charged(release["id"]),
                )
                if beyond or (large and until - at > timedelta(days=1)):
                    self._beyond[release["id"]] = seq
        self._held[release["id"]] = who, release

    def _quotas(
        self, bound: ReservationBound, who: str, release: Plain
    ) -> Iterator[tuple[Fraction, list[str]]]:
        """Yield each share, and the reservations that it is about."""
        if bound.share is not None:
            own = [one for one, (holder, _) in self._held.items() if holder == who]
            yield bound.share, own
        for name, share in bound.data_sets.items():
            if _is_about(release, name):
                held = self._held.items()
                yield share, [one for one, (_, of) in held if _is_about(of, name)]


def _is_about(release: Plain, data_set: str) -> bool:
    named = {**release["metadata"], **release["labels"]}.get("dataset", "")
    inner = [one["labels"] for one in release["mechanisms"]]
    also = [one["dataset"] for one in inner if "dataset" in one]
    return not named.strip() or data_set in (named, *also)


def _same(actor: str) -> str:
    return actor.strip().casefold()
