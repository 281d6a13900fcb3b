"""How full a rule is: by whatever denies the next release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import modicum as mo
from modicum.api.local.views.ledger import standing_view

POLICY = """
modicum: policy/v1
name: t
dp: {{filter: {filter}}}
units:
  user: {{id: user_id}}
schema: {{attributes: {{age: low}}}}
policies:
  - {{name: all, when: "true", unit: user, budget: {{eps: 1, delta: 0.000001}}}}
"""


def declared(name: str, cost: dict[str, float]) -> dict[str, Any]:
    """Return a release whose loss is declared."""
    one = {"name": "c", "mechanism": "declared", "attributes": ["age"]}
    return {"release": name, "mechanisms": [{**one, "cost": {"user": cost}}]}


@pytest.mark.parametrize(
    ("filter_", "delta"),
    [("basic-v1", 1e-6), ("zcdp-v1", 2.5e-7), ("combined-v1", 2.5e-7)],
)
def test_a_rule_whose_delta_is_spent_is_full(
    tmp_path: Path, filter_: str, delta: float
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.format(filter=filter_))
    workspace = mo.open(tmp_path / "ledger.db", policy=policy, actor="olga")
    workspace.init()
    (before,) = workspace.standings()
    assert standing_view(before).share == 0
    assert workspace.submit(declared("r-1", {"eps": 0.01, "delta": delta})).allowed
    (after,) = map(standing_view, workspace.standings())
    assert (after.state, after.share) == ("near", 1)
    assert after.spent < 0.1 * after.limit
    # That is what it means: next to nothing with a delta fits, however small its loss.
    assert not workspace.check(declared("r-2", {"eps": 0.001, "delta": 1e-9})).allowed
