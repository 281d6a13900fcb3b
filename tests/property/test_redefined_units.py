"""Units are redefined only if that is accepted, whatever happened before."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.first_version import as_written_by, with_policy
from samples.small import compiled

from modicum.api.local import Workspace
from modicum.core.errors import Code, InputError
from modicum.ledger import ChainBreakError, Record, audit
from modicum.ledger.proof.audit import AuditReport
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
#: A policy, and whether its redefinitions are accepted; or a release and what becomes
#: of it.
steps = st.lists(
    st.one_of(
        st.tuples(units, st.sampled_from(RELATIONS), st.booleans()),
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
    happened: list[tuple[dict[str, str], str, bool] | str],
    last: dict[str, str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "ledger.db", wait_seconds=20)
        clock = FixedClock("2026-05-01T12:00:00.000000Z")
        Workspace(store, clock, policy=compiled(policy_of(first, RELATIONS[0]))).init()
        ws = Workspace(store, clock)
        active, counted, accepted_any = first, set[tuple[str, str]](), False

        def others(written: dict[str, str]) -> list[str]:
            """Return the units that were written otherwise when a loss was counted.

            Those that the active policy has so already were accepted with it.
            """
            return sorted(
                {
                    unit
                    for unit, was in counted
                    if written.get(unit, was) not in (was, active.get(unit))
                }
            )

        for number, step in enumerate(happened):
            if isinstance(step, str):
                if let_in(ws, step, release_of(number, active)):
                    counted |= {*active.items()}
                continue
            written, relation, agree = step
            successor = compiled(policy_of(written, relation))
            preview = ws.governance.preview_activation(successor)
            redefined = sorted(one.message.split("`")[1] for one in preview.problems)
            assert redefined == others(written)
            accept = [one.rule.id for one in preview.conflicts]
            if redefined:
                with pytest.raises(InputError) as caught:
                    ws.governance.activate(successor, reason="x", accept=accept)
                assert caught.value.code is Code.UNIT_REDEFINED
            if agree or not redefined:
                accept += [f"unit:{one}" for one in redefined]
                ws.governance.activate(successor, reason="x", accept=accept)
                active, accepted_any = written, accepted_any or bool(redefined)
        records = [*ws.records()]
        assert audit(records).understated == ()
        if accepted_any:
            return
        # An earlier version takes up any policy; then the audit tells.
        text = policy_of(last, RELATIONS[0])
        active = {}
        assert {
            tuple(sorted(one.subject for one in report.understated))
            for report in reports_of_version_4(records, text, last)
        } == {tuple(others(last))}


def reports_of_version_4(
    records: list[Record], policy: str, units: dict[str, str]
) -> Iterator[AuditReport]:
    """Yield what an audit finds, with the rules accepted that were over their limit.

    That version counted losses by name, so which rules these are is tried out.
    """
    rules = [f"of-{unit}" for unit in units]
    for many in range(len(rules) + 1):
        for accepted in combinations(rules, many):
            log = as_written_by(4, with_policy(records, policy, accepted=accepted))
            with suppress(ChainBreakError):
                yield audit(log)


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
