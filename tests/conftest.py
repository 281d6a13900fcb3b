"""Settings shared by all tests: how hard to look, and where.

A plain run looks at the same examples every time, so that it never fails by chance;
`make soak` looks at new ones and says how to repeat what it found.
"""

from __future__ import annotations

import gc
import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
import typer.testing
from budget import PART
from hypothesis import HealthCheck, settings
from samples.postgres import Cluster, running_cluster
from suites import EVERY, QUICK, chosen, is_in, suite_of

from modicum.core.yaml_reader import read_document
from modicum.policy import compiler as compile_module
from modicum.sandbox import slots

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from samples.browser import Chromium, Site

_END = pytest.StashKey[float]()
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("part", settings.get_profile("steady"), max_examples=12)
settings.register_profile(
    "soak", print_blob=True, deadline=None, suppress_health_check=_SLOW
)
# A command line is made of the same functions each time: a tenth of a second is saved
# whenever a test gives a command.
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)
# Tests compile the same few policies; reading YAML is most of that.
vars(compile_module)["read_document"] = lru_cache(64)(read_document)


class _AtOnce:
    """Tells failures when they happen: a run that is cut off says nothing else."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write what failed, and the end of why."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.ensure_newline()
            terminal.write_sep("!", f"{report.nodeid} ({report.when})")
            terminal.write_line(report.longreprtext[-4000:])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the names of suites."""
    parser.addoption(
        "--suites",
        metavar="NAMES",
        help="run these suites of tests/suites.py, with commas between them: `quick`"
        " is what is in no other, and `every` all of them; by default `quick`, or all"
        " that is in the files and folders on the command line",
    )
    parser.addoption(
        "--within",
        metavar="SECONDS",
        type=int,
        help="skip tests that would begin later; the order of modules is random",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules of other suites unread."""
    suite = suite_of(collection_path)
    return True if suite and suite not in chosen(config.option.suites) else None


def refuse_addresses(names: Iterable[str]) -> None:
    """Refuse names of tests that differ from process to process.

    Raises:
        pytest.UsageError: If a name holds an address in memory.
    """
    for name in names:
        if re.search(r" at 0x[0-9a-f]{6,}", name):
            why = "an address differs in each process"
            raise pytest.UsageError(f"{name}: name its cases by ids=; {why}")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out single tests of other suites."""
    refuse_addresses(one.nodeid for one in items)
    wanted = chosen(config.option.suites)
    left = [one for one in items if not is_in(one, wanted)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if is_in(one, wanted)]

    if config.option.within is not None:
        # The same for all processes of a run.
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(time.time()))
        items.sort(key=lambda one: sha256(f"{run} {one.path}".encode()).digest())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what time is too short for."""
    if time.monotonic() > item.config.stash.get(_END, math.inf):
        pytest.skip("no time is left")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector away from the tests: an eighth of the time."""
    if session.config.option.within is not None:
        session.config.stash[_END] = time.monotonic() + session.config.option.within
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the suites, and have CI tell failures at once."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if config.option.suites is None:  # Workers are given what is chosen here.
        is_named = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.suites = EVERY if is_named else QUICK
    chosen(config.option.suites)  # An unknown name is an error, not an empty run.
    profile = "steady"
    if os.environ.get("MODICUM_SOAK"):
        profile = "soak"
    elif config.option.suites == QUICK:
        profile, os.environ[PART] = "part", "1"
    settings.load_profile(profile)
    if os.environ.get("CI") == "true" and not is_worker:
        config.pluginmanager.register(_AtOnce(config))


@pytest.fixture(scope="session", autouse=True)
def _own_turns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sandboxes wait for others on this machine; not tests for other tests."""
    folder = tmp_path_factory.mktemp("turns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "FOLDER_OF_ROOT", folder / "root")
        patch.setattr(slots, "FOLDER_OF_OTHERS", folder)
        yield


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


# --- a browser; what it needs is imported where it is used: most tests need none -----


@pytest.fixture(scope="session")
def own_chromium() -> Iterator[Chromium]:
    """A browser for all tests of this process; where it lacks, CI fails."""
    from samples.browser import launched, missing

    if lacking := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(lacking)
        pytest.skip(lacking)
    with launched() as found:
        yield found


@pytest.fixture
def chromium(own_chromium: Chromium) -> Iterator[Browser]:
    """The browser, for one test."""
    with own_chromium.used() as browser:
        yield browser


@pytest.fixture(scope="session")
def made_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example organization with its people; each test has a copy."""
    from samples.browser import make_site

    return make_site(tmp_path_factory.mktemp("site") / "acme")


@pytest.fixture
def acme(made_site: Path, tmp_path: Path, chromium: Browser) -> Iterator[Site]:
    """The example organization, served to its people and their browsers."""
    from samples.browser import served_site

    with served_site(made_site, tmp_path / "acme", chromium) as served:
        yield served
