"""The command line on a ledger in PostgreSQL: the same verbs, and no password shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples.postgres import Cluster
from samples.small import POLICY, counts
from typer.testing import CliRunner

from modicum.cli.main import app


class Commands:
    """Runs commands on a ledger, under the small policy.

    Attributes:
        said: All that they printed.
    """

    def __init__(self, folder: Path) -> None:
        self.policy, self.release = folder / "policy.yaml", folder / "r.json"
        self.policy.write_text(POLICY)
        self.release.write_text(json.dumps(counts("r-1")))
        self.said = ""

    def run(self, *args: str) -> str:
        result = CliRunner().invoke(app, args)
        assert result.exit_code == 0, result.output
        self.said += result.output
        return result.output

    def live(self) -> None:
        """Bring a release from its beginning to its end."""
        self.run("init", "--policy", str(self.policy))
        assert "r-1" in self.run("release", "check", str(self.release))
        self.run("release", "submit", str(self.release))
        self.run("release", "start", "r-1")
        self.run("release", "publish", "r-1")
        assert "published" in self.run("release", "show", "r-1")
        self.run("status")
        assert "4 entries" in self.run("ledger", "verify")


def test_the_verbs_work_on_a_server(
    tmp_path: Path, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODICUM_LEDGER", postgres.new_ledger())
    Commands(tmp_path).live()


def test_no_command_prints_a_password(
    tmp_path: Path, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.new_ledger().replace("postgres@", "postgres:s3cret@")
    monkeypatch.setenv("MODICUM_LEDGER", url)
    commands = Commands(tmp_path)
    commands.live()
    assert "s3cret" not in commands.said
