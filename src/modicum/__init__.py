"""modicum: differential privacy for a whole organization.

import modicum as mo

ws = mo.open("ledger.db", policy="policy.yaml")
decision = ws.check(mo.Release("r-1", mechanisms=[...]))
print(decision.explain())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modicum.core.errors import (
        AccessError,
        ConflictError,
        InputError,
        ModicumError,
        StaleError,
        UnavailableError,
        UsageError,
        VerificationError,
    )
    from modicum.escrow import tasks
    from modicum.escrow.inspection import inspected
    from modicum.escrow.programs import Table
    from modicum.ledger.log.contracts import Version
    from modicum.release import ReleaseDraft as Release
    from modicum.release import (
        approx_dp,
        declared,
        gaussian,
        gdp,
        l1,
        l2,
        laplace,
        pure_dp,
        randomized_response,
        zcdp,
    )
    from modicum.remote.opening import connect
    from modicum.risk.candidates import grid
    from modicum.shell import request_files as requests
    from modicum.shell import risks as risk
    from modicum.shell.adapters.dp_events import from_dp_event
    from modicum.shell.catalogue.making import task_program
    from modicum.shell.catalogue.trying import try_out
    from modicum.shell.escrow.beginning import begin_vault
    from modicum.shell.escrow.by_risk import contract_risk, query_risk
    from modicum.shell.escrow.equipment import EscrowPlace
    from modicum.shell.escrow.made_up_answers import made_up_answers
    from modicum.shell.escrow.opening import open_escrow
    from modicum.shell.escrow.own_risk import own_risk
    from modicum.shell.files import load_policy, load_release
    from modicum.shell.joining import reservation
    from modicum.shell.query_files import load_query, sql_query
    from modicum.shell.risks import count
    from modicum.shell.serving.decider import Decider, Limits
    from modicum.shell.serving.once import Once, Replayed
    from modicum.shell.serving.opening import open_decider
    from modicum.shell.wiring import open_workspace as open  # noqa: A004
    from modicum.workspace import Decision, Workspace
    from modicum.workspace.escrowing.asking import Heading
    from modicum.workspace.escrowing.data_kept import Declared, Owned
    from modicum.workspace.escrowing.ports import Limits as TaskLimits

# Name, module, name there (none for the module itself). Loaded when first used, so that
# `import modicum` and the command line start fast.
_PUBLIC = {
    "open": ("modicum.shell.wiring", "open_workspace"),
    "connect": ("modicum.remote.opening", "connect"),
    "open_decider": ("modicum.shell.serving.opening", "open_decider"),
    "load_policy": ("modicum.shell.files", "load_policy"),
    "load_release": ("modicum.shell.files", "load_release"),
    "load_query": ("modicum.shell.query_files", "load_query"),
    "sql_query": ("modicum.shell.query_files", "sql_query"),
    "requests": ("modicum.shell.request_files", ""),
    "risk": ("modicum.risk", ""),
    "count": ("modicum.shell.risks", "count"),
    "grid": ("modicum.risk.candidates", "grid"),
    "from_dp_event": ("modicum.shell.adapters.dp_events", "from_dp_event"),
    "reservation": ("modicum.shell.joining", "reservation"),
    "open_escrow": ("modicum.shell.escrow.opening", "open_escrow"),
    "EscrowPlace": ("modicum.shell.escrow.equipment", "EscrowPlace"),
    "begin_vault": ("modicum.shell.escrow.beginning", "begin_vault"),
    "tasks": ("modicum.escrow.tasks", ""),
    "contract_risk": ("modicum.shell.escrow.by_risk", "contract_risk"),
    "query_risk": ("modicum.shell.escrow.by_risk", "query_risk"),
    "made_up_answers": (
        "modicum.shell.escrow.made_up_answers",
        "made_up_answers",
    ),
    "task_program": ("modicum.shell.catalogue.making", "task_program"),
    "inspected": ("modicum.escrow.inspection", "inspected"),
    "Table": ("modicum.escrow.programs", "Table"),
    "try_out": ("modicum.shell.catalogue.trying", "try_out"),
    "own_risk": ("modicum.shell.escrow.own_risk", "own_risk"),
    "Heading": ("modicum.workspace.escrowing.asking", "Heading"),
    "Declared": ("modicum.workspace.escrowing.data_kept", "Declared"),
    "Owned": ("modicum.workspace.escrowing.data_kept", "Owned"),
    # `Limits` are those of a decider.
    "TaskLimits": ("modicum.workspace.escrowing.ports", "Limits"),
    "Version": ("modicum.ledger.log.contracts", "Version"),
    "Workspace": ("modicum.workspace", "Workspace"),
    "Decider": ("modicum.shell.serving.decider", "Decider"),
    "Limits": ("modicum.shell.serving.decider", "Limits"),
    "Once": ("modicum.shell.serving.once", "Once"),
    "Replayed": ("modicum.shell.serving.once", "Replayed"),
    "Decision": ("modicum.workspace", "Decision"),
    "Release": ("modicum.release", "ReleaseDraft"),
    **{
        name: ("modicum.release", name)
        for name in (
            "approx_dp",
            "declared",
            "gaussian",
            "gdp",
            "l1",
            "l2",
            "laplace",
            "pure_dp",
            "randomized_response",
            "zcdp",
        )
    },
    **{
        name: ("modicum.core.errors", name)
        for name in (
            "AccessError",
            "ConflictError",
            "InputError",
            "ModicumError",
            "StaleError",
            "UnavailableError",
            "UsageError",
            "VerificationError",
        )
    },
}

__all__ = [
    "AccessError",
    "ConflictError",
    "Decider",
    "Decision",
    "Declared",
    "EscrowPlace",
    "Heading",
    "InputError",
    "Limits",
    "ModicumError",
    "Once",
    "Owned",
    "Release",
    "Replayed",
    "StaleError",
    "Table",
    "TaskLimits",
    "UnavailableError",
    "UsageError",
    "VerificationError",
    "Version",
    "Workspace",
    "approx_dp",
    "begin_vault",
    "connect",
    "contract_risk",
    "count",
    "declared",
    "from_dp_event",
    "gaussian",
    "gdp",
    "grid",
    "inspected",
    "l1",
    "l2",
    "laplace",
    "load_policy",
    "load_query",
    "load_release",
    "made_up_answers",
    "open",
    "open_decider",
    "open_escrow",
    "own_risk",
    "pure_dp",
    "query_risk",
    "randomized_response",
    "requests",
    "reservation",
    "risk",
    "sql_query",
    "task_program",
    "tasks",
    "try_out",
    "zcdp",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("modicum")
    if name not in _PUBLIC:
        message = f"module `modicum` has no attribute `{name}`"
        raise AttributeError(message)
    from modicum.core.extras import needing_extras

    module, attribute = _PUBLIC[name]
    with needing_extras():
        found = import_module(module)
        value: object = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
