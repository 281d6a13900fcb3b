"""What the page on REST shows is what is sent and answered."""

from __future__ import annotations

import json
import re
from email.parser import Parser
from pathlib import Path
from typing import Any

import httpx2
from samples.escrows import MemoryEquipment
from samples.remote import BEFORE, answering

import modicum as mo
from modicum.api.local.escrow.execution import Tools
from modicum.integrations.loader import Adapters
from modicum.server.resources import Equipment

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rest.md"
EXAMPLE = Path(mo.__file__).parent / "ops" / "examples" / "acme-health"
_MESSAGE = re.compile(r"^```http\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Stands for what differs from ledger to ledger.
DIFFERS = "…"


def parts_of(message: str) -> tuple[str, dict[str, str], str]:
    """Return the first line, the headers and the body of what is shown."""
    head, _, body = message.partition("\n\n")
    first, _, headers = head.partition("\n")
    return first, dict(Parser().parsestr(headers, headersonly=True).items()), body


def fits(shown: Any, found: Any) -> bool:
    """Return whether an answer is the one that is shown, key by key."""
    if shown == DIFFERS:
        return found not in (None, "")
    if isinstance(shown, dict) and isinstance(found, dict):
        return shown.keys() == found.keys() and all(
            fits(value, found[key]) for key, value in shown.items()
        )
    if isinstance(shown, list) and isinstance(found, list):
        return len(shown) == len(found) and all(map(fits, shown, found))
    return type(shown) is type(found) and bool(shown == found)


def test_what_is_shown_is_sent_and_answered(tmp_path: Path) -> None:
    shown = [parts_of(one) for one in _MESSAGE.findall(PAGE.read_text("utf-8"))]
    assert len(shown) == 8
    own = Equipment(escrow=Tools(MemoryEquipment(), Adapters()))
    with (
        answering(
            tmp_path / "ledger.db", policy=EXAMPLE / "policy.yaml", own=own
        ) as url,
        httpx2.Client(base_url=url) as client,
    ):
        for (requests, headers, body), (status, tells, answer) in zip(
            shown[::2], shown[1::2], strict=True
        ):
            method, path, _ = requests.split()
            del headers["Host"]
            who = "dara" if path.endswith("/versions") else "ann"
            headers["Authorization"] = f"Bearer {BEFORE}{who}"
            got = client.request(method, path, headers=headers, content=body)
            assert f"HTTP/1.1 {got.status_code} {got.reason_phrase}" == status
            for name, value in tells.items():
                pattern = re.escape(value).replace(DIFFERS, ".+")
                assert re.fullmatch(pattern, got.headers[name]), name
            assert fits(json.loads(answer), got.json()), got.text
