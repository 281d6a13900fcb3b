"""A release as a value: exact, validated, and with one canonical form."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from modicum.accounting import Budget
from modicum.accounting.budgets import (
    ApproxBudget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.core.canonical import Plain, Written, digest, encode
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.rationals import number_text
from modicum.release.parts import EVERYTHING, Part, WrittenPart, part_written
from modicum.release.sampling import Sampling, sampling_to_plain

if TYPE_CHECKING:
    from modicum.accounting.number_of_runs import Runs


@dataclass(frozen=True)  # Without slots, so that `over` can copy all fields at once.
class Mechanism:
    """One mechanism of a release, as described.

    Attributes:
        name: Unique within the release.
        kind: one of the kinds of the release format, such as `laplace`.
        attributes: Attributes of the data it reads; may be empty, never absent.
        labels: Labels given on the mechanism or inherited from the release;
            defaults are not filled in here.
        parameters: Exact parameters by name (`sigma`, `scale`, `truth`, `values`).
        sensitivity: By unit, the L1 or L2 change of the answer between neighbors.
        contribution_bound: By unit, the enforced number of contributions.
        public_frame: Whether everybody on a public list contributes, so that
            taking part reveals nothing (randomized response).
        cost: By unit, the guarantee that is declared for it.
        part: The part of the data that it reads.
        sampling: The secret sample of that which it runs on; None for all of it.
        selection: How often it runs, if the best output is published; None for once.
            All else describes one run.
        coefficients: The listed parameter, if it has one.
        participation: By unit, in which steps of a stream a change may take part.
        mark: Its position.
        cost_mark: The position of its costs.
        parameter_mark: The position of its first parameter.
        plain: All of it but the marks as plain data, with exact numbers as text.
        encoded: The canonical bytes of that.
        elsewhere: All but its part, as plain data.
        pieces: The bytes of that, split where a part is inserted.
    """

    name: str
    kind: str
    attributes: tuple[str, ...]
    labels: Mapping[str, str]
    parameters: Mapping[str, Fraction]
    sensitivity: Mapping[str, Fraction]
    contribution_bound: Mapping[str, int]
    public_frame: bool
    cost: Mapping[str, Budget]
    part: Part = EVERYTHING
    sampling: Sampling | None = None
    selection: Runs | None = None
    coefficients: tuple[Fraction, ...] = ()
    participation: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)
    mark: Mark | None = None
    cost_mark: Mark | None = None
    parameter_mark: Mark | None = None
    plain: Mapping[str, Plain] = field(init=False, repr=False, compare=False)
    encoded: bytes = field(init=False, repr=False, compare=False)
    elsewhere: Mapping[str, Plain] = field(init=False, repr=False, compare=False)
    pieces: _Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        elsewhere = _to_plain(self)
        pieces = _Pieces.of(elsewhere)
        plain, encoded = _described(elsewhere, pieces, self.part)
        vars(self).update(
            elsewhere=elsewhere, pieces=pieces, plain=plain, encoded=encoded
        )

    @property
    def given(self) -> Set[str]:
        """The names of the parameters that it states."""
        names = self.parameters.keys()
        return names | {"coefficients"} if self.coefficients else names

    def over(self, part: Part) -> Mechanism:
        """Return the same mechanism over another part of the data.

        This is `replace`, many times faster: only the bytes of the part are new.
        """
        plain, encoded = _described(self.elsewhere, self.pieces, part)
        moved = object.__new__(Mechanism)
        vars(moved).update(vars(self), part=part, plain=plain, encoded=encoded)
        return moved


class _Pieces(NamedTuple):
    """The canonical bytes of a mechanism's fields, before and after those of a part.

    In the order of the keys, `groups` follows the first of the pieces, `periods` the
    second and `where` the third. They have no braces.
    """

    first: bytes
    second: bytes
    third: bytes

    @classmethod
    def of(cls, plain: Mapping[str, Plain]) -> _Pieces:
        """Return the pieces of all fields of a mechanism but its part."""
        keys = sorted(plain)
        groups, periods = bisect(keys, "groups"), bisect(keys, "periods")
        cut = keys[:groups], keys[groups:periods], keys[periods:]
        return cls(*(encode({key: plain[key] for key in each})[1:-1] for each in cut))

    def whole(self) -> bytes:
        """Return the canonical bytes of the mechanism over all of the data."""
        return b"{%b,%b,%b}" % self

    def over(self, part: WrittenPart) -> bytes:
        """Return the canonical bytes of the mechanism over a part."""
        _, where, periods, groups = part
        first, second, third = self
        return b'{%b,"groups":%b,%b,"periods":%b,%b,"where":%b}' % (
            first,
            groups,
            second,
            periods,
            third,
            where,
        )


def _described(
    elsewhere: Mapping[str, Plain], pieces: _Pieces, part: Part
) -> tuple[Mapping[str, Plain], bytes]:
    """Return a mechanism over a part as plain data, and the canonical bytes of that."""
    if part == EVERYTHING:  # Omitted, so that older digests stay valid.
        return elsewhere, pieces.whole()
    written = part_written(part)
    return {**elsewhere, **written.plain}, pieces.over(written)


class Release(msgspec.Struct, frozen=True):
    """One or more mechanisms that are decided together, all or nothing.

    Attributes:
        id: The permanent id of the release.
        labels: Labels given on the release itself; mechanisms inherit them.
        metadata: Open text: purpose, requester, dataset, audience, released_on …
        mechanisms: At least one; names are unique.
        mark: Its position.
    """

    id: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str]
    mechanisms: tuple[Mechanism, ...]
    mark: Mark | None = None


def to_plain(release: Release) -> dict[str, Plain]:
    """Return the release as plain data; equal contents give equal data."""
    return {
        "id": release.id,
        "labels": dict(release.labels),
        "metadata": dict(release.metadata),
        "mechanisms": [mechanism.plain for mechanism in release.mechanisms],
    }


def mechanism_to_plain(mechanism: Mechanism) -> Mapping[str, Plain]:
    """Return one mechanism as plain data, with exact numbers as text."""
    return mechanism.plain


def _to_plain(mechanism: Mechanism) -> dict[str, Plain]:
    plain: dict[str, Plain] = {
        "name": mechanism.name,
        "kind": mechanism.kind,
        "attributes": sorted(mechanism.attributes),
        "labels": dict(mechanism.labels),
        "parameters": _numbers(mechanism.parameters),
        "sensitivity": _numbers(mechanism.sensitivity),
        "contribution_bound": dict(mechanism.contribution_bound),
        "public_frame": mechanism.public_frame,
        "cost": {unit: cost_to_plain(cost) for unit, cost in mechanism.cost.items()},
    }
    if mechanism.sampling is not None:  # Omitted, so that older digests stay valid.
        plain["sampling"] = sampling_to_plain(mechanism.sampling)
    if mechanism.selection is not None:
        from modicum.release.selection import selection_to_plain

        plain["selection"] = selection_to_plain(mechanism.selection)
    if mechanism.coefficients:
        plain["coefficients"] = [number_text(one) for one in mechanism.coefficients]
    if mechanism.participation:
        plain["participation"] = {
            unit: _numbers(one) for unit, one in mechanism.participation.items()
        }
    return plain


def cost_to_plain(cost: Budget) -> dict[str, Plain]:
    """Return a declared guarantee as plain data, with exact numbers as text."""
    match cost:
        case PureBudget(eps=eps):
            return {"eps": number_text(eps)}
        case ApproxBudget(eps=eps, delta=delta):
            return {"eps": number_text(eps), "delta": number_text(delta)}
        case ZcdpBudget(rho=rho):
            return {"rho": number_text(rho)}
        case GdpBudget(mu=mu):
            return {"mu": number_text(mu)}
        case RenyiBudget(limits=limits):
            return {
                "rdp": {number_text(order): number_text(most) for order, most in limits}
            }
        case Unlimited():
            return {"unlimited": True}


#: Writes canonical bytes.
_CONTENT = msgspec.json.Encoder(order="deterministic")


def content_digest(release: Release) -> str:
    """Return the SHA-256 of the release's contents; a retry has the same one."""
    content = {
        "id": release.id,
        "labels": dict(release.labels),
        "mechanisms": [Written(one.encoded) for one in release.mechanisms],
        "metadata": dict(release.metadata),
    }
    return digest(_CONTENT.encode(content))


def _numbers(values: Mapping[str, Fraction]) -> dict[str, Plain]:
    return {key: number_text(value) for key, value in values.items()}


def wrong(
    mechanism: Mechanism,
    code: Code,
    message: str,
    *,
    notes: tuple[str, ...] = (),
    help: str = "",  # noqa: A002 - the word users see
    mark: Mark | None = None,
) -> InputError:
    """Return the error for a mistake in a mechanism's parameters or costs.

    Args:
        mechanism: The mechanism.
        code: Its code.
        message: The mistake.
        notes: Reasons.
        help: The remedy.
        mark: Its exact position; by default that of the costs.
    """
    place = mechanism.cost_mark if mark is None else mark
    return InputError(Problem(code, message, place, notes=notes, help=help))
