"""Turns of their own for these tests: others on this machine would make them wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from modicum.shell.sandbox import turns


@pytest.fixture(scope="session", autouse=True)
def _own_turns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("turns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "FOLDER_OF_ROOT", folder / "root")
        patch.setattr(turns, "FOLDER_OF_OTHERS", folder)
        yield
