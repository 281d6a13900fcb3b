"""Grants as one document that says everything (docs/reference/access-format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from modicum.accounting import INFINITE, Loss
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.api.local.access.grants import Grant
from modicum.api.local.access.row_filters import Between, Condition, In, RowFilter
from modicum.core.canonical import Plain
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, number_text
from modicum.ledger import Standing

#: The version of the format. Keys are added within a version, none changes its meaning.
FORMAT = "modicum-access/1"

#: What a release says about who asks, and for what.
_SUBJECT = ("requester", "purpose", "audience")


@dataclass(frozen=True, slots=True)
class Access:
    """What a ledger lets people read at one point of its history.

    Attributes:
        seq: The number of the ledger's last entry.
        head: The hash of that entry.
        policy: The digest of the active policy.
        grants: The grants.
        left_out: Releases of a plan that may read nothing, or nothing any more.
    """

    seq: int
    head: str
    policy: str
    grants: tuple[Grant, ...]
    left_out: tuple[Standing, ...] = ()


def access_to_plain(access: Access) -> dict[str, Plain]:
    """Return all grants as plain data, without floats; `encode` makes it canonical.

    Args:
        access: The grants, and where they come from.
    """
    return {
        "format": FORMAT,
        "ledger": {"seq": access.seq, "head": access.head},
        "policy": access.policy,
        "grants": [_grant(one) for one in access.grants],
        "left_out": [
            {"release": one.id, "status": one.status.value} for one in access.left_out
        ],
    }


def _grant(grant: Grant) -> dict[str, Plain]:
    metadata, standing = grant.release.metadata, grant.standing
    return {
        "id": grant.id,
        "decision": {
            "release": grant.release.id,
            "content": grant.release.content,
            "entry": standing.seq,
            "status": standing.status.value,
        },
        "subject": {
            **{key: metadata.get(key) for key in _SUBJECT},
            "labels": dict(grant.mechanism.labels),
        },
        "action": "read",
        "resource": {
            "dataset": metadata.get("dataset"),
            "attributes": list(grant.columns),
            "rows": rows_to_plain(grant.rows),
        },
        "conditions": {
            "sampling": _sampling(grant),
            "not_after": standing.expires_at or None,
        },
        "obligations": _obligations(grant),
    }


def rows_to_plain(rows: RowFilter) -> dict[str, Plain]:
    """Return a row filter as plain data: a row passes if all of any list hold.

    Args:
        rows: The filter.
    """
    return {
        "any": [
            {"all": [_condition(one) for one in conditions]}
            for conditions in rows.alternatives()
        ]
    }


def _condition(one: Condition) -> dict[str, Plain]:
    if isinstance(one, In):
        return {"column": one.column, "in": list(one.values)}
    if isinstance(one, Between):
        return {"column": one.column, "between": [list(span) for span in one.spans]}
    days = [[_day(first), _day(until)] for first, until in one.days]
    return {"column": one.column, "during": days}


def _day(day: int | None) -> str | None:
    return None if day is None else date.fromordinal(day).isoformat()


def _sampling(grant: Grant) -> dict[str, Plain] | None:
    if grant.sampling is None:
        return None
    rate = number_text(grant.sampling.rate)
    return {"unit": grant.sampling.unit, "rate": rate, "draw": "fresh"}


def _obligations(grant: Grant) -> dict[str, Plain]:
    said = grant.mechanism.description
    keys = ("kind", "parameters", "sensitivity", "public_frame", "cost")
    return {
        "mechanism": {key: said.get(key) for key in keys},
        "digest": grant.digest,
        "contribution_bound": {
            unit: {"column": bound.column, "most": bound.most}
            for unit, bound in grant.bounds.items()
        },
        "losses": losses_to_text(grant.mechanism.losses),
    }


def losses_to_text(losses: Mapping[str, Loss]) -> dict[str, Plain]:
    """Return losses by unit and coordinate as decimal texts, `inf` where unbounded.

    They are what the ledger charged, to the last digit; that was rounded up.

    Args:
        losses: The losses by unit.
    """
    return {
        unit: {
            coordinate_name(index): _amount(units, index)
            for index, units in enumerate(loss.coordinates)
        }
        for unit, loss in losses.items()
    }


def _amount(units: int, index: int) -> str:
    if units >= INFINITE:
        return "inf"
    return number_text(Fraction(units, DELTA_UNIT if index == DELTA else LOSS_UNIT))
