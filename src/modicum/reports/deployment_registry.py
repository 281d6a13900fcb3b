"""Releases as records of a public registry of differential privacy deployments.

The records have the sections and keys that such a registry requires. Unknown values are
marked as unknown, in words that no reader takes for a fact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from io import StringIO
from typing import TypeAlias

from modicum.accounting import INFINITE, Total, tightest_epsilon
from modicum.accounting.grid import DELTA, EPS, RHO
from modicum.accounting.losses import total_of
from modicum.core.errors import check
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT
from modicum.ledger import Record, RecordedRelease, event_of
from modicum.ledger.decision.charges import charged
from modicum.ledger.log.events import (
    PastRecorded,
    PastRedescribed,
    PolicyActivated,
    ReleaseReserved,
)
from modicum.ledger.replay.migration import Migration
from modicum.ledger.state.state import ActivePolicy, active_policy
from modicum.policy import CompiledPolicy
from modicum.release.sampling import sampling_note
from modicum.release.selection import selection_note
from modicum.reports.statement import Statement
from modicum.reports.text import part_text
from modicum.reports.timeline import ReleaseTimeline

Value: TypeAlias = "str | float | int | list[Value] | dict[str, Value]"

#: The placeholder for unknown values.
UNKNOWN = "UNKNOWN: not in the ledger"
#: Published releases. A reserved or started release may never be published.
PUBLISHED = ("published", "recorded")


def registry_records(
    statement: Statement, records: Iterable[Record]
) -> list[dict[str, Value]]:
    """Return a record for each published release, oldest first."""
    out = {
        one.described_in: one
        for one in statement.story.releases.values()
        if one.status in PUBLISHED
    }
    policies: list[ActivePolicy] = []
    found: list[tuple[ReleaseTimeline, RecordedRelease]] = []
    for record in records:
        event = event_of(record, record.seq)
        body = event.body
        if isinstance(body, PolicyActivated):
            policies.append(active_policy(body, record.seq, event.version))
        elif record.seq in out and isinstance(
            body, ReleaseReserved | PastRecorded | PastRedescribed
        ):
            found.append((out[record.seq], body.release))
    policy = statement.policy.policy
    migration = Migration(policies, policy.vocabulary, policy.text)
    return [
        _record(statement, one, migration.release(release, one.recorded.seq))
        for one, release in found
    ]


def registry_text(records: list[dict[str, Value]]) -> str:
    """Return records as one YAML document, a list; reading it gives them again."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 88
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = StringIO()
    yaml.dump(records, stream)
    text = stream.getvalue()
    check(YAML(typ="safe", pure=True).load(text) == records, "records read as written")
    return text


def _record(
    statement: Statement, story: ReleaseTimeline, release: RecordedRelease
) -> dict[str, Value]:
    return {
        "url_slug": slug(release.id),
        "status": "Draft",
        "tier": 1,
        "deployment": {
            "basic": _basic(story),
            "dp_variant": _variant(statement, release),
            "privacy_loss": _loss(statement.policy, release),
            "deployment_model": _model(),
            "accounting": {
                "post_processing": UNKNOWN,
                "composition": (
                    "Within the release, the losses of its mechanisms compose as a"
                    " batch with parameters fixed in advance. Across releases they"
                    " compose by privacy filters of the policy"
                    f" `{statement.policy.policy.name}`, which are valid for adaptively"
                    " chosen releases."
                ),
            },
            "implementation": _implementation(statement, story, release),
            "administrative": _administrative(statement, story),
        },
    }


def slug(identifier: str) -> str:
    """Return an id as a part of a web address: lower-case letters, digits, hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", identifier.lower()).strip("-") or "release"


def _basic(story: ReleaseTimeline) -> dict[str, Value]:
    metadata = story.metadata
    past = story.status == "recorded"
    published = metadata.get("released_on", UNKNOWN) if past else story.changed_at[:10]
    reads = ", ".join(story.attributes) or "no attribute"
    dataset = metadata.get("dataset", "an unnamed data set")
    return {
        "name": story.id,
        "data_curators": [{"data_curator_name": UNKNOWN, "data_curator_type": UNKNOWN}],
        "description": f"{'; '.join(story.mechanisms)}; reads {reads} of {dataset}",
        "intended_use": metadata.get("purpose", UNKNOWN),
        "data_product_type": UNKNOWN,
        "data_product_region": UNKNOWN,
        "data_product_sector": UNKNOWN,
        "publication_date": published,
    }


def _variant(statement: Statement, release: RecordedRelease) -> dict[str, Value]:
    unprotected = [
        *statement.policy.policy.disclosed_invariants,
        *(f"{one.id}: {one.what}" for _, one in statement.story.disclosures),
    ]
    unit = _first_unit(statement.policy)
    return {
        "variant_name": _variant_name(_total(statement.policy, release, unit)),
        "data_domain": UNKNOWN,
        "unprotected_quantities": "; ".join(unprotected)
        or "none recorded in the ledger",
    }


def _variant_name(total: Total) -> str:
    if total.units(DELTA):
        return "Approximate DP"
    if total.units(EPS) < INFINITE:
        return "Pure DP"
    if total.units(RHO) < INFINITE:
        return "Zero-concentrated DP"
    return "Renyi DP"


def _loss(policy: CompiledPolicy, release: RecordedRelease) -> dict[str, Value]:
    unit = _first_unit(policy)
    parameters = _parameters(policy, _total(policy, release, unit))
    others = [
        f"per {one}: {_shown(_parameters(policy, _total(policy, release, one)))}"
        for one in policy.policy.vocabulary.units
        if one != unit
    ]
    relation = policy.policy.vocabulary.relation(unit)
    return {
        "privacy_unit": unit,
        "privacy_unit_details": (
            f"Neighboring tables differ in one {unit} ({relation}); the part of the"
            f" data that is read: {_parts(release)}."
        ),
        "privacy_parameters": parameters,
        "privacy_parameters_details": "; ".join(others)
        or "no other privacy unit is declared",
    }


def _first_unit(policy: CompiledPolicy) -> str:
    """Return the first unit of the policy that lies in no other: the largest."""
    units = policy.policy.vocabulary.units
    covers = policy.policy.vocabulary.covers
    return next((one for one in units if len(covers.get(one, ())) <= 1), units[0])


def _total(policy: CompiledPolicy, release: RecordedRelease, unit: str) -> Total:
    vocabulary = policy.policy.vocabulary
    return total_of(charged(one, unit, vocabulary) for one in release.mechanisms)


def _parameters(policy: CompiledPolicy, total: Total) -> dict[str, Value]:
    """Return epsilon, delta and rho, each rounded up where it is rounded."""
    if total.units(EPS) < INFINITE and not total.units(DELTA):
        return {"epsilon": at_least(total.units(EPS), LOSS_UNIT)}
    found: dict[str, Value] = {}
    delta = _report_delta(policy)
    if delta is not None:
        epsilon = tightest_epsilon(total, delta)
        if epsilon.units < INFINITE:
            found["epsilon"] = at_least(epsilon.units, LOSS_UNIT)
            found["delta"] = at_least(delta.numerator, delta.denominator)
    if total.units(RHO) < INFINITE:
        found["rho"] = at_least(total.units(RHO), LOSS_UNIT)
        if total.units(DELTA):  # Then rho bounds the loss but for this delta.
            found.setdefault("delta", at_least(total.units(DELTA), DELTA_UNIT))
    return found


def _report_delta(policy: CompiledPolicy) -> Fraction | None:
    deltas = (policy.report_delta(base.budget) for base in policy.rules.bases)
    return next((one for one in deltas if one is not None), None)


def at_least(numerator: int, denominator: int) -> float:
    """Return a float that, as it is written, is no less than a fraction."""
    near = numerator / denominator
    if Fraction(repr(near)) < Fraction(numerator, denominator):
        return math.nextafter(near, math.inf)
    return near


def _shown(parameters: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items()) or UNKNOWN


def _parts(release: RecordedRelease) -> str:
    return "; ".join(
        f"{one.description.get('name', '?')}: {part_text(one.part)}"
        for one in release.mechanisms
    )


def _model() -> dict[str, Value]:
    return {
        "model_name": UNKNOWN,
        "actors": UNKNOWN,
        "release_type": "One release",
        "data_source_type": UNKNOWN,
        "access_type": UNKNOWN,
    }


def _implementation(
    statement: Statement, story: ReleaseTimeline, release: RecordedRelease
) -> dict[str, Value]:
    mechanisms = "\n".join(
        f"- {one.description.get('name', '?')}: {one.description.get('kind', '?')}"
        f" {_written(one.description.get('parameters'))}".rstrip()
        + f" {sampling_note(one.description)}".rstrip()
        + f" {selection_note(one.description)}".rstrip()
        for one in release.mechanisms
    )
    agreed = (
        f"; approved by {', '.join(story.approved_by)}" if story.approved_by else ""
    )
    decided = (
        "It was recorded after the fact, and is counted without a decision"
        if story.status == "recorded"
        else "Every rule of the policy allowed it"
    )
    return {
        "preprocessing_and_hyperparameter_tuning": UNKNOWN,
        "mechanisms": mechanisms,
        "justification": f"{decided} (policy {story.policy[:12]}, entry"
        f" {story.recorded.seq}{agreed}).",
    }


def _written(parameters: object) -> str:
    if not isinstance(parameters, Mapping) or not parameters:
        return ""
    metadata = ", ".join(
        f"{name} {value}" for name, value in sorted(parameters.items())
    )
    return f"({metadata})"


def _administrative(statement: Statement, story: ReleaseTimeline) -> dict[str, Value]:
    verified = statement.verified
    notes = [f"assumed: {one}" for one in story.assumptions]
    if verified.pinned < story.recorded.seq:
        notes.append("no trusted checkpoint covers the entry")
    return {
        "sources": f"ledger {verified.ledger}, entry {story.recorded.seq}",
        "notes": "; ".join(notes) or "none",
        "registry_authors": [UNKNOWN],
    }
