"""What waits for the people of the example organization, and a server for them."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from modicum.api.local import Clock
from modicum.ops.demo import copy_files
from modicum.ops.files.documents import load_policy, load_release
from modicum.ops.wiring import open_workspace

#: The settings of the server; written last, so that they show that all is there.
SETTINGS = "server.yaml"
_APPROVALS = "approvals.yaml"


def add_people(folder: Path, *, clock: Clock | None = None) -> None:
    """Let two people approve what becomes public, and leave some of it to them.

    Args:
        folder: An example organization, as `make_demo` writes it.
        clock: The time; None for the machine's clock.
    """
    with as_file(files("modicum.ops") / "examples" / "acme-people") as source:
        approvals, settings = (
            (source / name).read_text(encoding="utf-8")
            for name in (_APPROVALS, SETTINGS)
        )
        copy_files(source, folder, leaving=(_APPROVALS, SETTINGS))
    text = (folder / "policy.yaml").read_text(encoding="utf-8") + approvals
    active, successor = folder / "two-officers.yaml", folder / "next-policy.yaml"
    active.write_text(text, encoding="utf-8")
    successor.write_text(text.replace("budget: 0.2", "budget: 0.1"), encoding="utf-8")
    olga, omar, dara, amir = (
        open_workspace(folder / "ledger.db", actor=actor, clock=clock)
        for actor in ("olga", "omar", "dara", "amir")
    )
    olga.governance.activate(
        load_policy(active),
        reason="two officers see what becomes public",
        accept=["attr:salary"],
    )
    internal, *public = (
        load_release(path) for path in sorted((folder / "requests").glob("*.yaml"))
    )
    amir.submit(internal)
    for node in public:
        amir.governance.request(node, reason="readers ask for it")
    omar.governance.approve(public[0], reason="much noise, little is told")
    dara.governance.propose_policy(load_policy(successor), reason="less for marketing")
    (folder / SETTINGS).write_text(settings, encoding="utf-8")
