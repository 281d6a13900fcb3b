"""Which test is in which suite: the one place that says it.

`make test` runs what is in no suite below, and `make test-all` everything. `.ci/run`
runs the suites of the packages that a change touches, whose names are printed by

    python tests/suites.py since COMMIT

The bottom packages are under everything, so their changes run every suite.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

TESTS: Final = Path(__file__).parent
ROOT: Final = TESTS.parent
PACKAGE: Final = "src/modicum/"
#: Names the last commit at which all tests passed.
WHOLE: Final = ".ci/whole"
#: What is in no suite.
QUICK: Final = "quick"
EVERY: Final = "every"
#: The quick tests that draw examples, with all of them.
COUNTS: Final = "counts"


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests that a change elsewhere need not wait for.

    Attributes:
        about: What they ask.
        tests: Their modules, as patterns of paths below `tests`.
        packages: The packages below `modicum` whose changes they notice, as
            `server` or `ops.backup`, beside the bottom ones.
    """

    about: str
    tests: tuple[str, ...]
    packages: tuple[str, ...]


#: Under everything: their changes run every suite.
BOTTOM: Final = (
    *("core", "accounting", "release", "policy", "ledger", "api"),
    *("system.clock", "ops.files.documents", "storage", "ops.wiring"),
)

#: Of these, what only carries answers: it breaks no count, so that the quick tests
#: need not run once more with all their examples.
CARRIES: Final = (
    *("api.operations", "api.schema", "api.permissions"),
    *("api.local.handlers", "api.local.views", "storage", "ops"),
)

#: What works for the product: computes, runs, reports, operates.
WORKING: Final = (
    *("engines", "integrations", "sandbox", "vault", "system", "risk"),
    *("reports", "ops", "writer"),
)

SUITES: Final = {
    "server": Suite(
        "who may do what over HTTP, lost answers, long requests",
        (
            "property/test_dispatch_agrees.py",
            "unit/server/test_access_trail.py",
            "unit/server/test_audit_targets.py",
            "unit/server/test_authorization.py",
            "unit/server/test_connections.py",
            "unit/server/test_event_routes.py",
            "unit/server/test_http_edge.py",
            "unit/server/test_long_looks.py",
            "unit/server/test_round_routes.py",
            "unit/server/test_telemetry_*.py",
            "unit/server/test_token_routes.py",
            "unit/client/test_client_escrow.py",
            "unit/client/test_client_governance.py",
            "unit/client/test_client_lost_responses.py",
            "unit/client/test_client_audits.py",
            "unit/client/test_same_script.py",
            "unit/client/test_two_workspaces.py",
        ),
        ("escrow", "planner", "server", "client", "console", *WORKING),
    ),
    "console": Suite(
        "the web console in a real browser",
        ("system/test_console_*.py", "unit/console/test_rights.py"),
        (
            *("console", "server", "escrow", "planner", "risk", "reports"),
            *("ops.demo", "ops.demo_people", "integrations"),
        ),
    ),
    "postgres": Suite(
        "all that is stored, in PostgreSQL; tests are here that need its server",
        (),
        ("writer", "ops.backup", "server.auth"),
    ),
    "docs": Suite(
        "pages and examples whose commands are run; tests are here that are marked so",
        ("docs/test_ask_a_server.py", "docs/test_escrow_documents.py"),
        ("cli", "server", "query", "planner", "escrow", "workloads", *WORKING),
    ),
    "engines": Suite(
        "DuckDB, Spark and other libraries against an oracle, and each other",
        (
            "property/test_engine_sensitivity.py",
            "property/test_engines_agree.py",
            "property/test_query_days.py",
            "property/test_query_end_to_end.py",
            "property/test_query_sensitivity.py",
            "system/test_cli_query_engines.py",
            "system/test_release_run.py",
            "unit/query/test_blocks_of_ids.py",
            "unit/query/test_exact_statements.py",
            "unit/integrations/test_opacus_training.py",
            "unit/integrations/test_opendp_context.py",
            "unit/integrations/test_tumult_sessions.py",
            "unit/engines/test_engine_silence.py",
            "unit/engines/test_hostile_rows.py",
            "unit/engines/test_csv_values.py",
            "unit/engines/test_spark_catalog.py",
            "unit/integrations/test_workers.py",
            "unit/api/test_query_by_days.py",
            "unit/api/test_query_under_use.py",
        ),
        (
            *("cli.query", "cli.query_text", "query", "risk"),
            *("integrations", "engines", "ops.command", "ops.files.queries"),
        ),
    ),
    "plans": Suite(
        "plans against exact solvers and a ledger, simulated plans, and workloads",
        (
            "property/test_ledger_rounds.py",
            "property/test_planned_rounds.py",
            "property/test_ruled_plans.py",
            "property/test_simulation.py",
            "system/test_cli_plan_*.py",
            "unit/planner/test_compiling.py",
            "unit/planner/test_optimal.py",
            "unit/planner/test_ruled*.py",
            "unit/ops/test_simulation_files.py",
            "unit/workloads/*.py",
        ),
        ("cli", "planner", "workloads", *WORKING),
    ),
    "risk": Suite(
        "risk studies, their reports and pictures",
        (
            "property/test_adult_queries.py",
            "property/test_risk_*.py",
            "system/test_cli_risk*.py",
            "unit/server/test_risk_routes.py",
            "unit/risk/test_leave_one_out.py",
            "unit/risk/test_choice_attributes.py",
            "unit/risk/test_query_binding.py",
            "unit/risk/test_controller_csv.py",
            "unit/risk/test_empty_tables.py",
            "unit/risk/test_refusals.py",
            "unit/risk/test_parquet_blocks.py",
            "unit/risk/test_rdr_study.py",
            "unit/risk/test_column_types.py",
            "unit/risk/test_charts.py",
            "unit/risk/test_choice_report.py",
        ),
        ("cli", "query", "server", "workloads", *WORKING),
    ),
    "escrow": Suite(
        "programs that nobody trusts, and an escrow with real processes and keys",
        (
            "property/test_contracts.py",
            "property/test_escrow_flows.py",
            "system/test_cli_escrow*.py",
            "system/test_escrow_for_real.py",
            "system/test_escrow_over_http.py",
            "system/test_idle_memory.py",
            "unit/ops/test_analysis_process.py",
            "unit/server/test_escrow_routes.py",
            "unit/ops/test_escrow_epsilon.py",
            "unit/ops/test_synthetic_answers.py",
            "unit/ops/test_reader_process.py",
            "unit/sandbox/*.py",
            "unit/system/test_core_dumps.py",
            "unit/escrow/test_task_programs.py",
            "unit/api/test_escrow_attacks.py",
            "unit/api/test_escrow_blocks.py",
        ),
        ("cli", "escrow", "query", "server", "workloads", *WORKING),
    ),
    "kills": Suite(
        "servers, workers and disks that end at the worst time, and clocks that jump",
        (
            "property/test_resumed_ledgers.py",
            "system/test_clock_jumps.py",
            "system/test_crash.py",
            "system/test_faults.py",
            "system/test_kills.py",
            "system/test_overdraft.py",
            "system/test_rolled_back.py",
            "system/test_grants_reload.py",
            "system/test_server_leaving.py",
            "system/test_server_load.py",
            "system/test_telemetry_workers.py",
            "system/test_together.py",
            "system/test_worker_kills.py",
            "unit/integrations/test_command_signals.py",
        ),
        ("cli", "server", "client", *WORKING),
    ),
    "fuzzing": Suite(
        "requests that Schemathesis makes up, and files that are broken at random",
        (
            "property/test_policy_fuzz.py",
            "property/test_query_fuzz.py",
            "system/test_rest_fuzzing.py",
        ),
        ("escrow", "query", "server", *WORKING),
    ),
    "machines": Suite(
        "what is installed and deployed, benchmarks, and figures of papers",
        (
            "system/test_*_bench.py",
            "system/test_adult_fetch.py",
            "system/test_base_install.py",
            "system/test_deploy.py",
            "system/test_oidc_provider.py",
            "system/test_reproduction.py",
            "unit/storage/test_ledger_bench.py",
        ),
        ("cli", "server", "planner", "workloads", *WORKING),
    ),
}

#: Parameters of tests that ask for a server.
_SERVERS: Final = frozenset({"postgres", "postgresql"})


@cache
def suite_of(path: Path) -> str:
    """Return the suite of a module of tests, as a whole; empty for none.

    Args:
        path: The module.
    """
    if not path.is_relative_to(TESTS) or path.suffix != ".py":
        return ""
    own = path.relative_to(TESTS)
    return next(
        (
            name
            for name, one in SUITES.items()
            if any(own.match(pattern) for pattern in one.tests)
        ),
        "",
    )


def suite_of_test(item: pytest.Item) -> str:
    """Return the suite of a test.

    Args:
        item: The test. It has its own if it is marked with one, or needs a server.
    """
    own = item.get_closest_marker("suite")
    if own is not None:
        return str(own.args[0])
    needs = {"postgres", "own_postgres"}.intersection(getattr(item, "fixturenames", ()))
    spec = getattr(item, "callspec", None)
    given = () if spec is None else spec.params.values()
    if needs or any(isinstance(one, str) and one in _SERVERS for one in given):
        return "postgres"
    return suite_of(item.path) or QUICK


def is_in(item: pytest.Item, wanted: frozenset[str]) -> bool:
    """Return whether a test is in one of some suites."""
    own = suite_of_test(item)
    return own in wanted or (COUNTS in wanted and own == QUICK and _draws(item.path))


@cache
def _draws(module: Path) -> bool:
    """Return whether a module of tests draws examples."""
    text = module.read_text("utf-8")
    return "hypothesis" in text or "from budget import" in text


def chosen(names: str) -> frozenset[str]:
    """Return the suites that are named.

    Args:
        names: Their names, with commas between them.

    Raises:
        ValueError: If there is no such suite.
    """
    every = {QUICK, *SUITES}
    if names == EVERY:
        return frozenset(every)
    found = frozenset(filter(None, names.split(",")))
    every |= {COUNTS}
    if not found <= every:
        wrong = ", ".join(sorted(found - every))
        known = ", ".join([EVERY, QUICK, COUNTS, *SUITES])
        raise ValueError(f"no suite is called {wrong}; there are {known}")
    return found


def touched_by(files: Iterable[str]) -> list[str]:
    """Return the suites that changed files can break, in the order of `SUITES`.

    Args:
        files: Paths below the root.
    """
    found: set[str] = set()
    for file in files:
        if file.startswith(PACKAGE):
            package = package_of(file)
            if within(package, BOTTOM) or "." not in package:
                return [*SUITES]
            found |= {
                name for name, one in SUITES.items() if within(package, one.packages)
            }
        elif file.startswith("tests/"):
            own = suite_of(ROOT / file)
            if own:
                found.add(own)
            elif not Path(file).name.startswith("test_"):
                return [*SUITES]  # Others use it.
            else:
                found |= _marked_in(ROOT / file)
        elif file.endswith(".md") or file.startswith(("docs/", "examples/")):
            found |= {"docs"}
        elif file == WHOLE:
            continue  # It says only since when.
        else:
            return [*SUITES]
    return [name for name in SUITES if name in found]


def needs_counts(files: Iterable[str]) -> bool:
    """Return whether changed files can break what only many examples show.

    Args:
        files: Paths below the root; `?` if they are not known.
    """
    return any(
        file == "?"
        or (
            file.startswith(PACKAGE)
            and within(package_of(file), BOTTOM)
            and not within(package_of(file), CARRIES)
        )
        for file in files
    )


def package_of(file: str) -> str:
    """Return the name of a module or package below `modicum`."""
    return file.removeprefix(PACKAGE).removesuffix(".py").replace("/", ".")


def _marked_in(module: Path) -> set[str]:
    """Return the suites that single tests of a module may be in."""
    text = module.read_text("utf-8") if module.exists() else ""
    marked = {name for name in SUITES if f'mark.suite("{name}")' in text}
    return marked | ({"postgres"} if "postgres" in text else set())


def within(package: str, packages: Sequence[str]) -> bool:
    """Return whether a package is one of some, or below one.

    Args:
        package: Its name below `modicum`.
        packages: The names of the others.
    """
    return any(package == one or package.startswith(f"{one}.") for one in packages)


def changed_since(commit: str) -> list[str]:
    """Return the files that changed since a commit.

    Args:
        commit: Its name. Where history does not tell, anything may have changed.
    """
    git = ["git", "-C", str(ROOT), "diff", "--name-only", commit, "HEAD", "--"]
    found = subprocess.run(git, check=False, capture_output=True, text=True)
    return found.stdout.splitlines() if found.returncode == 0 else ["?"]


def main() -> None:
    """Print the suites that changes since a commit may break, or all but some."""
    match sys.argv[1:]:
        case ["since", commit]:
            files = changed_since(commit)
            counts = [COUNTS] if needs_counts(files) else []
            print(",".join([*counts, *touched_by(files)]))
        case ["without", names]:
            named = chosen(names)
            print(", ".join(one for one in SUITES if one not in named) or "none")
        case _:
            sys.exit("usage: python tests/suites.py since COMMIT | without NAMES")


if __name__ == "__main__":
    main()
