"""The page about servers is true: its blocks run against one, on this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, answering

import modicum as mo
from modicum.shell.proofs.bundles import is_bundle
from modicum.shell.proofs.keys import make_key

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ask-a-server.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: What the page's releases are about is what the demo's policy knows.
EXAMPLE = Path(mo.__file__).parent / "shell" / "examples" / "acme-health"
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
#: Whose token each file holds.
PEOPLE = {
    "modicum-token": "ann",
    **{f"{n}-token": n for n in ("olga", "petra", "audra")},
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
    with answering("ledger.db", policy="policy.yaml") as url:
        blocks = _BLOCK.findall(text)
        assert len(blocks) == 8
        for block in blocks:
            code = block.replace("https://modicum.example", url)
            code = code.replace("/run/secrets/", "")
            exec(compile(code, str(PAGE), "exec"), names)
        names["ws"].close()
    ledger = mo.open("ledger.db")
    for release, status in (
        ("by-country-1", "posted"),
        ("part-2", "reserved"),
        ("for-everybody", "reserved"),
        ("wish", "reserved"),
    ):
        assert ledger.standing(release).status.value == status
    assert names["decision"].retry
    assert names["said"].key == key
    assert is_bundle("audit.bundle")
    assert "by-country-1: stands already (reserved)" in capsys.readouterr().out
