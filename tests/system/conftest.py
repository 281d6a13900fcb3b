"""A browser, and the example organization served to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from samples.browser import Chromium, Site

# What these need is imported where it is used: most tests here need none of it.


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
