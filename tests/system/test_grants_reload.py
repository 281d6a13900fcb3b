"""A real server that is told of new grants: it goes on, and they count."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from samples.raw_http import eventually
from samples.small import POLICY

import modicum as mo
from modicum.api.permissions.actions import Role
from modicum.api.permissions.tokens import TokenTerms
from modicum.server.auth.registry import open_registry
from modicum.storage.factory import open_store

BEGIN = "modicum: server/v1\nledger: ledger.db\napi_tokens: true\n"
ANN = "people: {ann: {analyst: all}}\n"
BOB = "people: {bob: {analyst: all}}\n"


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("workers", [1, 2])
def test_grants_are_read_again_by_every_process(tmp_path: Path, workers: int) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = tmp_path / "ledger.db"
    mo.open(ledger, policy=tmp_path / "policy.yaml", actor="olga").init()
    store = open_store(str(ledger))
    terms = [
        TokenTerms(one, {Role.ANALYST: frozenset({"*"})}) for one in ("ann", "bob")
    ]
    texts = [open_registry(store).add_token(one, created_by="x").text for one in terms]
    store.close()
    file, stderr = tmp_path / "server.yaml", tmp_path / "stderr"
    file.write_text(BEGIN + ANN)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "modicum", "serve", "--config", str(file)]
    more = ["--port", str(port), "--workers", str(workers)]
    with stderr.open("w") as log:
        process = subprocess.Popen([*command, *more], stderr=log, cwd=tmp_path)

    def logged(event: str) -> int:
        return stderr.read_text().count(f'"event":"{event}"')

    def statuses() -> set[tuple[int, ...]]:
        """Return what both get, on connections to each process."""
        url = f"http://127.0.0.1:{port}/api/v1/releases"
        found = set()
        for _ in range(8):
            headers = [{"Authorization": f"Bearer {text}"} for text in texts]
            found.add(tuple(httpx2.get(url, headers=h).status_code for h in headers))
        return found

    def reload(text: str) -> None:
        file.write_text(text)
        os.kill(process.pid, signal.SIGHUP)

    try:
        eventually(lambda: logged("server-began") == workers)
        assert statuses() == {(200, 403)}
        reload(BEGIN + BOB)
        eventually(lambda: logged("grants-read") == workers)
        assert statuses() == {(403, 200)}
        reload(BEGIN + "people: {ann: {analist: all}}\n")
        eventually(lambda: logged("grants-not-read") == workers)
        assert statuses() == {(403, 200)}
        assert logged("server-began") == workers  # Nothing was started anew.
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(timeout=30)
    trail = subprocess.run(
        [*command[:3], "audit", "trail", "--ledger", str(ledger)],
        capture_output=True,
        check=True,
        text=True,
    )
    changed = [one for one in trail.stdout.splitlines() if "settings-changed" in one]
    assert len(changed) == 1
    assert "people" in changed[0]
