"""modicum: differential privacy for a whole organization.

import modicum as mo

ws = mo.open("ledger.db", policy="policy.yaml")
decision = ws.check(mo.Release("r-1", mechanisms=[...]))
print(decision.explain())
"""

from __future__ import annotations

from importlib import import_module

# Not from `typing`: it takes longer than the rest of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from modicum.accounting.mechanisms.binary_tree import (
        describe_binary_tree as binary_tree,
    )
    from modicum.accounting.mechanisms.declared import describe_declared as declared
    from modicum.accounting.mechanisms.dp_sgd import describe_dp_sgd as dp_sgd
    from modicum.accounting.mechanisms.exponential import (
        describe_exponential as exponential,
    )
    from modicum.accounting.mechanisms.gaussian import describe_gaussian as gaussian
    from modicum.accounting.mechanisms.laplace import describe_laplace as laplace
    from modicum.accounting.mechanisms.matrix_factorization import (
        describe_matrix_factorization as matrix_factorization,
    )
    from modicum.accounting.mechanisms.pate_gnmax import (
        describe_pate_gnmax as pate_gnmax,
    )
    from modicum.accounting.mechanisms.randomized_response import (
        describe_randomized_response as randomized_response,
    )
    from modicum.accounting.mechanisms.report_noisy_max import (
        describe_report_noisy_max as report_noisy_max,
    )
    from modicum.accounting.mechanisms.sparse_vector import (
        describe_sparse_vector as sparse_vector,
    )
    from modicum.api.local import Decision, Workspace
    from modicum.api.local.escrow.datasets import Declared, Ownership
    from modicum.api.local.escrow.proposal import Purpose
    from modicum.api.ports.escrow import Limits as TaskLimits
    from modicum.client.factory import connect
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
    from modicum.integrations.dp_events import from_dp_event
    from modicum.ledger.log.contracts import Version
    from modicum.ops.command import reservation
    from modicum.ops.escrow.epsilon_choice import contract_risk, own_risk, query_risk
    from modicum.ops.escrow.equipment import EscrowPlace
    from modicum.ops.escrow.factory import create_vault, open_escrow
    from modicum.ops.escrow.synthetic_answers import synthetic_answers
    from modicum.ops.files import requests
    from modicum.ops.files.documents import load_policy, load_release
    from modicum.ops.files.queries import load_query, sql_query
    from modicum.ops.wiring import open_workspace as open  # noqa: A004
    from modicum.release import ReleaseDraft as Release
    from modicum.release import approx_dp, gdp, l1, l2, linf, pure_dp, teachers, zcdp
    from modicum.risk import measurement as risk
    from modicum.risk.candidates import grid
    from modicum.risk.measurement import count
    from modicum.sandbox.catalog import task_program
    from modicum.sandbox.trial import dry_run
    from modicum.writer.factory import open_decider
    from modicum.writer.idempotency import IdempotencyKey, Replayed
    from modicum.writer.service import Decider, Limits

# Name, module, name there (none for the module itself). Loaded when first used, so that
# `import modicum` and the command line start fast.
_PUBLIC = {
    "open": ("modicum.ops.wiring", "open_workspace"),
    "connect": ("modicum.client.factory", "connect"),
    "open_decider": ("modicum.writer.factory", "open_decider"),
    "load_policy": ("modicum.ops.files.documents", "load_policy"),
    "load_release": ("modicum.ops.files.documents", "load_release"),
    "load_query": ("modicum.ops.files.queries", "load_query"),
    "sql_query": ("modicum.ops.files.queries", "sql_query"),
    "requests": ("modicum.ops.files.requests", ""),
    "risk": ("modicum.risk", ""),
    "count": ("modicum.risk.measurement", "count"),
    "grid": ("modicum.risk.candidates", "grid"),
    "from_dp_event": ("modicum.integrations.dp_events", "from_dp_event"),
    "reservation": ("modicum.ops.command", "reservation"),
    "open_escrow": ("modicum.ops.escrow.factory", "open_escrow"),
    "EscrowPlace": ("modicum.ops.escrow.equipment", "EscrowPlace"),
    "create_vault": ("modicum.ops.escrow.factory", "create_vault"),
    "tasks": ("modicum.escrow.tasks", ""),
    "contract_risk": ("modicum.ops.escrow.epsilon_choice", "contract_risk"),
    "query_risk": ("modicum.ops.escrow.epsilon_choice", "query_risk"),
    "synthetic_answers": (
        "modicum.ops.escrow.synthetic_answers",
        "synthetic_answers",
    ),
    "task_program": ("modicum.sandbox.catalog", "task_program"),
    "inspected": ("modicum.escrow.inspection", "inspected"),
    "Table": ("modicum.escrow.programs", "Table"),
    "dry_run": ("modicum.sandbox.trial", "dry_run"),
    "own_risk": ("modicum.ops.escrow.epsilon_choice", "own_risk"),
    "Purpose": ("modicum.api.local.escrow.proposal", "Purpose"),
    "Declared": ("modicum.api.local.escrow.datasets", "Declared"),
    "Ownership": ("modicum.api.local.escrow.datasets", "Ownership"),
    # `Limits` are those of a decider.
    "TaskLimits": ("modicum.api.ports.escrow", "Limits"),
    "Version": ("modicum.ledger.log.contracts", "Version"),
    "Workspace": ("modicum.api.local", "Workspace"),
    "Decider": ("modicum.writer.service", "Decider"),
    "Limits": ("modicum.writer.service", "Limits"),
    "IdempotencyKey": ("modicum.writer.idempotency", "IdempotencyKey"),
    "Replayed": ("modicum.writer.idempotency", "Replayed"),
    "Decision": ("modicum.api.local", "Decision"),
    "Release": ("modicum.release", "ReleaseDraft"),
    **{
        name: ("modicum.release", name)
        for name in (
            *("approx_dp", "gdp", "pure_dp", "zcdp"),
            *("l1", "l2", "linf", "teachers"),
        )
    },
    **{
        name: (f"modicum.accounting.mechanisms.{name}", f"describe_{name}")
        for name in (
            "binary_tree",
            "declared",
            "dp_sgd",
            "exponential",
            "gaussian",
            "laplace",
            "matrix_factorization",
            "pate_gnmax",
            "randomized_response",
            "report_noisy_max",
            "sparse_vector",
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
    "IdempotencyKey",
    "InputError",
    "Limits",
    "ModicumError",
    "Ownership",
    "Purpose",
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
    "binary_tree",
    "connect",
    "contract_risk",
    "count",
    "create_vault",
    "declared",
    "dp_sgd",
    "dry_run",
    "exponential",
    "from_dp_event",
    "gaussian",
    "gdp",
    "grid",
    "inspected",
    "l1",
    "l2",
    "laplace",
    "linf",
    "load_policy",
    "load_query",
    "load_release",
    "matrix_factorization",
    "open",
    "open_decider",
    "open_escrow",
    "own_risk",
    "pate_gnmax",
    "pure_dp",
    "query_risk",
    "randomized_response",
    "report_noisy_max",
    "requests",
    "reservation",
    "risk",
    "sparse_vector",
    "sql_query",
    "synthetic_answers",
    "task_program",
    "tasks",
    "teachers",
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
