"""Grants: the rows and columns a release may read, and at what loss.

A reserved or started release was charged for what its mechanisms read. A grant lets a
data layer enforce that no more is read: it never selects a row that its mechanism was
not charged for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from modicum.accounting import INFINITE, Loss
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.api.local.access.row_filters import (
    Between,
    Columns,
    Condition,
    In,
    RowFilter,
    row_filter,
)
from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT, number_text
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.past_vocabulary import Held
from modicum.policy.past_units import population_of, units_of
from modicum.release import Vocabulary
from modicum.release.sampling import (
    Sampling,
    drawn_in_steps,
    sampling_from_plain,
)

#: The statuses in which a release may read rows, or soon may.
READING = (ReleaseStatus.RESERVED, ReleaseStatus.STARTED)

#: The keys that an obligation states if the description has them.
_OPTIONAL_OBLIGATIONS = ("selection", "coefficients", "participation")
#: The keys of a description that are known. The effect of any other key is unknown.
_KNOWN_KEYS = frozenset(
    {
        *("name", "kind", "attributes", "labels", "parameters", "sensitivity"),
        *("contribution_bound", "public_frame", "cost"),
        *("where", "periods", "groups", "sampling"),
        *_OPTIONAL_OBLIGATIONS,
    }
)


@dataclass(frozen=True, slots=True)
class Bound:
    """The contribution bound of one instance of a unit in a mechanism.

    Attributes:
        column: The column that identifies a row's instance.
        most: How many contributions.
    """

    column: str
    most: int


@dataclass(frozen=True, slots=True)
class Grant:
    """The rows and columns that one mechanism of a release may read.

    Attributes:
        id: The id of the release and the name of the mechanism, joined by `#`.
        release: The release.
        standing: The status of the release.
        mechanism: The mechanism, with its labels and loss.
        columns: The columns that it may read, in order.
        rows: The rows that it may read.
        sampling: The sample that it was priced for; None for all rows.
        bounds: By unit, the contribution bound that it was described with.
    """

    id: str
    release: RecordedRelease
    standing: Standing
    mechanism: RecordedMechanism
    columns: tuple[str, ...]
    rows: RowFilter
    sampling: Sampling | None
    bounds: Mapping[str, Bound]

    @property
    def digest(self) -> str:
        """SHA-256 of the mechanism's description."""
        return digest(encode(dict(self.mechanism.description)))


class Granting:
    """Converts releases of a ledger into grants, in its active policy's vocabulary.

    Args:
        vocabulary: The vocabulary of the active policy.
        policies: All policies that were activated, oldest first; the last is active.
        columns: The column names of the table.
    """

    def __init__(
        self, vocabulary: Vocabulary, policies: Sequence[Held], columns: Columns
    ) -> None:
        self._vocabulary = vocabulary
        self._policies = tuple(policies)
        self._columns = columns
        self._migration = Migration(self._policies, vocabulary)

    def grants(self, standing: Standing, release: RecordedRelease) -> tuple[Grant, ...]:
        """Return the grants of a release, one for each of its mechanisms."""
        if standing.status not in READING:
            raise no_access(standing)
        self._refuse_other_words(standing, release)
        return tuple(self._grant(standing, release, one) for one in release.mechanisms)

    def _grant(
        self, standing: Standing, release: RecordedRelease, one: RecordedMechanism
    ) -> Grant:
        name = one.description.get("name")
        unknown = sorted(one.description.keys() - _KNOWN_KEYS)
        if unknown or not isinstance(name, str):
            stated = f"`{unknown[0][:60]}`" if unknown else "no name"
            raise _unreadable(release, f"the description of a mechanism has {stated}")
        return Grant(
            id=f"{release.id}#{name}",
            release=release,
            standing=standing,
            mechanism=one,
            columns=tuple(sorted({self._columns.of(each) for each in one.attributes})),
            rows=row_filter(one.part, self._vocabulary, self._columns),
            sampling=self._sampling(release, one.description.get("sampling")),
            bounds=self._bounds(release, one.description.get("contribution_bound")),
        )

    def _sampling(self, release: RecordedRelease, plain: Plain) -> Sampling | None:
        if plain is None:
            return None
        try:
            found = sampling_from_plain(plain)
        except ValueError as error:
            raise _unreadable(release, str(error)) from error
        if found.unit not in self._vocabulary.units:
            raise _unreadable(release, f"the policy has no unit `{found.unit[:60]}`")
        return found

    def _bounds(self, release: RecordedRelease, plain: Plain) -> dict[str, Bound]:
        bounds: dict[str, Bound] = {}
        for unit, most in (plain if isinstance(plain, Mapping) else {}).items():
            facts = self._vocabulary.unit_facts.get(unit)
            if facts is None or not isinstance(most, int):
                raise _unreadable(release, f"the policy has no unit `{unit[:60]}`")
            bounds[unit] = Bound(self._columns.of(facts.id), most)
        return bounds

    def _refuse_other_words(self, standing: Standing, release: RecordedRelease) -> None:
        """Refuse a release whose vocabulary would now select or bound other rows.

        A policy activated since may have changed the meaning of names.
        """
        later = [one for one in self._policies if one.seq > standing.seq]
        held = self._policies[: len(self._policies) - len(later)][-1:]
        since = [one.text for one in (*held, *later)]
        clocks = {population_of(text).clocks for text in since}
        migrated = self._migration.release(release, standing.seq)
        for then, now in zip(release.mechanisms, migrated.mechanisms, strict=True):
            moved = then.part.periods is not None and len(clocks) > 1
            if moved or then.part.where != now.part.where:
                note = "the rows that it was charged for cannot be selected"
                raise _other_names(release, note)
            if self._migration.is_renamed(then, standing.seq):
                note = "its attributes have other names now"
                raise _other_names(release, note)
            unit = _changed_unit(_units(then), since)
            if unit is not None:
                note = f"the unit `{unit}` had another definition when it was charged"
                raise _other_names(release, note)


def _units(one: RecordedMechanism) -> list[str]:
    """Return the units that a mechanism was charged for, bounded by or sampled from."""
    bounds = one.description.get("contribution_bound")
    sampling = one.description.get("sampling")
    drawn = sampling.get("unit") if isinstance(sampling, Mapping) else None
    return sorted(
        {
            *one.losses,
            *(bounds if isinstance(bounds, Mapping) else ()),
            *([drawn] if isinstance(drawn, str) else ()),
        }
    )


def _changed_unit(units: Sequence[str], texts: Sequence[str]) -> str | None:
    """Return a unit that is not the same in all policies that have it."""
    known = [units_of(text) for text in dict.fromkeys(texts)]
    readable = [one for one in known if one is not None]
    for unit in units if len(known) > 1 else ():
        stated = {one[unit] for one in readable if unit in one}
        if len(stated) > 1 or len(readable) < len(known):
            return unit
    return None


def _other_names(release: RecordedRelease, note: str) -> InputError:
    return InputError(
        Problem(
            Code.POLICY_CONFLICT,
            f"release `{release.id}` uses names that have another meaning under the"
            " active policy",
            notes=(note,),
            help="submit it again under a new id, and cancel this one if it was not"
            " started",
        )
    )


def no_access(standing: Standing) -> ConflictError:
    """Return the mistake of a release that may not read rows, or no more."""
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"release `{standing.id}` is {standing.status.value} and grants no access",
            notes=("only a release that is reserved or started may read rows",),
            help="submit a new release under a new id",
        )
    )


def _unreadable(release: RecordedRelease, why: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_SUPPORTED,
            f"the access of release `{release.id}` cannot be exported: {why}",
        )
    )


#: The version of the format. Keys are added within a version, none changes its meaning.
FORMAT = "modicum-access/1"

#: The fields of a release that state the requester and the purpose.
_SUBJECT = ("requester", "purpose", "audience")


@dataclass(frozen=True, slots=True)
class Access:
    """The grants of a ledger at one point of its history.

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
    """Return all grants as plain data, without floats; `encode` makes it canonical."""
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
    """Return a row filter as plain data: a row passes if all of any list hold."""
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
    once: dict[str, Plain] = {"unit": grant.sampling.unit, "rate": rate}
    steps = drawn_in_steps(grant.mechanism.description)
    # A reader refuses a key that it does not know, and draws no sample for all steps.
    return once | {"draw": "fresh"} | ({} if steps is None else {"steps": steps})


def _obligations(grant: Grant) -> dict[str, Plain]:
    stated = grant.mechanism.description
    keys = ("kind", "parameters", "sensitivity", "public_frame", "cost")
    more = _OPTIONAL_OBLIGATIONS
    return {
        "mechanism": {
            **{key: stated.get(key) for key in keys},
            **{key: stated[key] for key in more if key in stated},
        },
        "digest": grant.digest,
        "contribution_bound": {
            unit: {"column": bound.column, "most": bound.most}
            for unit, bound in grant.bounds.items()
        },
        "losses": losses_to_text(grant.mechanism.losses),
    }


def losses_to_text(losses: Mapping[str, Loss]) -> dict[str, Plain]:
    """Return losses by unit and coordinate as decimal texts, `inf` where unbounded.

    These are the exact charges of the ledger, which were rounded up.
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
