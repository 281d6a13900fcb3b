"""The page about servers is true: its blocks run against one, on this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from samples.escrows import MemoryEquipment
from samples.remote import BEFORE, answering

import modicum as mo
from modicum.api.local.escrow.execution import Tools
from modicum.integrations.loader import Adapters
from modicum.server.resources import Equipment
from modicum.storage.proofs.bundles import is_bundle
from modicum.storage.proofs.signing_keys import make_key

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ask-a-server.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: What the page's releases are about is what the demo's policy knows.
EXAMPLE = Path(mo.__file__).parent / "ops" / "examples" / "acme-health"
ASKING = (
    (EXAMPLE / "policy.yaml").read_text(encoding="utf-8")
    + """
roles: {officer: [olga]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
"""
)
WISH = {
    "release": "wish",
    "dataset": "visits",
    "audience": "internal",
    "mechanisms": [
        {
            "mechanism": "gaussian",
            "attributes": ["clinic"],
            "sensitivity": {"patient": {"l2": 1}},
            "sigma": 60,
        }
    ],
}
#: What its escrow is given.
OF_ESCROW = {
    "tables.yaml": """
modicum: tables/v1
tables:
  visits:
    row_id: visit_id
    columns:
      visit_id: {type: integer}
      patient_id: {type: text}
      clinic: {type: text, values: [north, south]}
""",
    "visits.csv": "visit_id,patient_id,clinic\n1,p1,north\n2,p2,south\n",
    "clinics.yaml": """
release: clinics-2026
dataset: visits
audience: internal
query:
  sql: SELECT clinic, COUNT(*) AS visits FROM visits GROUP BY clinic
  bounds: {patient: 1}
  noise: laplace
  loss: {patient: {eps: 0.01}}
""",
}
#: Whose token each file holds.
PEOPLE = {
    "modicum-token": "ann",
    **{f"{n}-token": n for n in ("olga", "petra", "audra", "dara")},
}


def test_the_blocks_of_the_page_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    key = make_key("olga.pem").public.hex()
    Path("policy.yaml").write_text(f"{ASKING}keys: {{olga: {key}}}\n")
    for file, name in PEOPLE.items():
        Path(file).write_text(f"{BEFORE}{name}\n")
        Path(file).chmod(0o600)
    Path("releases").mkdir()
    Path("releases/one.json").write_text(json.dumps(WISH))
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for name, content in OF_ESCROW.items():
        Path(name).write_text(content)
    own = Equipment(escrow=Tools(MemoryEquipment(), Adapters()))
    with answering("ledger.db", policy="policy.yaml", own=own) as url:
        blocks = _BLOCK.findall(text)
        assert len(blocks) == 9
        for block in blocks:
            code = block.replace("https://modicum.example", url)
            code = code.replace("/run/secrets/", "")
            exec(compile(code, str(PAGE), "exec"), names)
        names["ws"].close()
    ledger = mo.open("ledger.db")
    for release, status in (
        ("by-country-1", "published"),
        ("part-2", "reserved"),
        ("for-everybody", "reserved"),
        ("wish", "reserved"),
    ):
        assert ledger.standing(release).status.value == status
    assert names["decision"].retry
    assert names["said"].key == key
    assert is_bundle("audit.bundle")
    assert names["ran"].denied is None
    assert ledger.state().escrow.flow(ledger.state().escrow.names["busy"]).released == 1
    assert "by-country-1: already exists (reserved)" in capsys.readouterr().out
