"""Units are redefined only where no loss counts, whatever happened before."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.first_version import as_written_by, with_policy
from samples.small import compiled

from modicum.api.local import Workspace
from modicum.core.errors import Code, InputError
from modicum.ledger import audit
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

UNITS = ("a", "b")
#: How a policy may write a unit. Those that differ mean other instances.
MEANINGS = (
    "{id: uid}",
    "{id: household}",
    "{id: uid, time: {column: at, period: day}}",
    "{id: uid, time: {column: at, period: month}}",
    "{id: uid, time: {column: seen, period: month}}",
)
RELATIONS = ("add-remove", "substitute", "any-change")

units = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(MEANINGS) for name in UNITS}
).filter(bool)
#: A policy, or a release and what becomes of it.
steps = st.lists(
    st.one_of(
        st.tuples(units, st.sampled_from(RELATIONS)),
        st.sampled_from(["published", "reserved", "canceled", "denied", "recorded"]),
    ),
    max_size=7,
)


def policy_of(written: dict[str, str], relation: str) -> str:
    declared = ", ".join(f"{name}: {unit}" for name, unit in written.items())
    rules = "".join(
        f"  - {{name: of-{name}, when: 'true', unit: {name}, budget: {{rho: 1}}}}\n"
        for name in written
    )
    return (
        "modicum: policy/v1\nname: p\n"
        f"dp: {{accountant: zcdp, neighbors: {relation}}}\n"
        f"units: {{{declared}}}\nschema: {{attributes: {{page: low}}}}\n"
        f"policies:\n{rules}"
    )


def release_of(number: int, written: dict[str, str]) -> dict[str, object]:
    mechanism = {
        "name": "views",
        "mechanism": "gaussian",
        "attributes": ["page"],
        "cost": {unit: {"rho": 0.01} for unit in written},
    }
    return {"release": f"r-{number}", "mechanisms": [mechanism]}


@pytest.mark.spec("POL-17")
@pytest.mark.spec("LED-24")
@settings(max_examples=examples(25), deadline=None)
@given(first=units, happened=steps, last=units)
def test_a_policy_is_refused_exactly_if_a_unit_was_another_when_a_loss_was_recorded(
    first: dict[str, str],
    happened: list[tuple[dict[str, str], str] | str],
    last: dict[str, str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "ledger.db", wait_seconds=20)
        clock = FixedClock("2026-05-01T12:00:00.000000Z")
        Workspace(store, clock, policy=compiled(policy_of(first, RELATIONS[0]))).init()
        ws = Workspace(store, clock)
        active, counted = first, set[tuple[str, str]]()

        def others(written: dict[str, str]) -> list[str]:
            """Return the units that were written otherwise when a loss was counted."""
            return sorted(
                {unit for unit, was in counted if written.get(unit, was) != was}
            )

        for number, step in enumerate(happened):
            if isinstance(step, str):
                if let_in(ws, step, release_of(number, active)):
                    counted |= {*active.items()}
                continue
            written, relation = step
            successor = compiled(policy_of(written, relation))
            preview = ws.governance.preview_activation(successor)
            redefined = sorted(one.message.split("`")[1] for one in preview.problems)
            assert redefined == others(written)
            accept = [one.rule.id for one in preview.conflicts]
            if redefined:
                with pytest.raises(InputError) as caught:
                    ws.governance.activate(successor, reason="x", accept=accept)
                assert caught.value.code is Code.UNIT_REDEFINED
            else:
                ws.governance.activate(successor, reason="x", accept=accept)
                active = written
        records = [*ws.records()]
        assert audit(records).understated == ()
        # An earlier version takes up any policy; then the audit tells.
        text = policy_of(last, RELATIONS[0])
        preview = ws.governance.preview_activation(compiled(text))
        exceeded = [one.rule.id for one in preview.conflicts]
        accepted = ws.governance.preview_activation(
            compiled(text), accept=exceeded
        ).accepted
        old = as_written_by(4, with_policy(records, text, accepted=accepted))
        assert sorted(one.unit for one in audit(old).understated) == others(last)


def let_in(ws: Workspace, step: str, release: dict[str, object]) -> bool:
    """Bring a release in, and return whether its loss counts at the end."""
    if step == "recorded":
        ws.backfill(release)
        return True
    if step == "denied":
        release["mechanisms"][0]["cost"] = {  # type: ignore[index]
            unit: {"rho": 7}
            for unit in release["mechanisms"][0]["cost"]  # type: ignore[index]
        }
    if not ws.submit(release).allowed:  # A rule may be over its limit by now.
        return False
    name = str(release["release"])
    if step == "published":
        ws.start(name)
        ws.publish(name)
    elif step == "canceled":
        ws.cancel(name, reason="x")
    return step != "canceled"
