"""Settings shared by all tests: how hard to look, and where.

A plain run looks at the same examples every time, so that it never fails by chance;
`make soak` looks at new ones and says how to repeat what it found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from samples.postgres import Cluster, running_cluster

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "soak", print_blob=True, deadline=None, suppress_health_check=_SLOW
)
settings.load_profile("soak" if os.environ.get("MODICUM_SOAK") else "steady")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server for all tests; each takes ledgers of its own."""
    with running_cluster() as cluster:
        yield _present(cluster)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Cluster]:
    """A PostgreSQL server that the tests of one module may stop and kill."""
    with running_cluster() as cluster:
        yield _present(cluster)


def _present(cluster: Cluster | None) -> Cluster:
    """Return a server; where there is none, the test fails in CI, else is skipped."""
    if cluster is not None:
        return cluster
    if os.environ.get("CI") == "true":
        pytest.fail("there is no PostgreSQL server; .ci/run installs one")
    pytest.skip("there is no PostgreSQL server on this machine")
