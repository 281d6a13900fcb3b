"""A release as a value: exact, validated, and with one canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from modicum.accounting import Budget
from modicum.accounting.budgets import (
    ApproxBudget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Mark
from modicum.core.exact import number_text
from modicum.release.parts import EVERYTHING, Part, part_to_plain


@dataclass(frozen=True, slots=True)
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
        mark: Where it stands.
        cost_mark: Where its costs stand.
        truth_mark: Where its `truth` stands.
        plain: All of it but the marks as plain data, with exact numbers as text.
        encoded: The canonical bytes of that.
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
    mark: Mark | None = None
    cost_mark: Mark | None = None
    truth_mark: Mark | None = None
    plain: Mapping[str, Plain] = field(init=False, repr=False, compare=False)
    encoded: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", _to_plain(self))
        object.__setattr__(self, "encoded", encode(self.plain))


@dataclass(frozen=True, slots=True)
class Release:
    """One or more mechanisms that are decided together, all or nothing.

    Attributes:
        id: What the release is called, for good.
        labels: Labels given on the release itself; mechanisms inherit them.
        metadata: Open text: purpose, requester, dataset, audience, released_on …
        mechanisms: At least one; names are unique.
        mark: Where it stands.
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
    if mechanism.part != EVERYTHING:  # Left out, so that older digests stay true.
        plain.update(part_to_plain(mechanism.part))
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


def content_digest(release: Release) -> str:
    """Return the SHA-256 of what the release says; a retry has the same one."""
    # The canonical bytes of `to_plain`, whose keys stand in order.
    before = encode({"id": release.id, "labels": dict(release.labels)})
    after = encode({"metadata": dict(release.metadata)})
    each = b",".join(mechanism.encoded for mechanism in release.mechanisms)
    return digest(before[:-1] + b',"mechanisms":[' + each + b"]," + after[1:])


def _numbers(values: Mapping[str, Fraction]) -> dict[str, Plain]:
    return {key: number_text(value) for key, value in values.items()}
