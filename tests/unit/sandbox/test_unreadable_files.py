"""A sandbox whose files cannot be read says which ones, and what helps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from modicum.core.errors import Code, UnavailableError
from modicum.sandbox import root

OTHER = 54_321


@contextmanager
def another_user() -> Iterator[None]:
    """Run as a user who is not root; others are that already."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(OTHER)
    try:
        yield
    finally:
        os.seteuid(me)


@pytest.fixture
def python() -> Iterator[Path]:
    """Return the prefix of a Python that everybody can read."""
    # Not in `tmp_path`: other users cannot enter that.
    with TemporaryDirectory() as folder:
        place = Path(folder).resolve() / "prefix"
        (place / "lib" / "deep").mkdir(parents=True)
        (place / "lib" / "deep" / "file.py").write_text("x = 1\n")
        (place / "lib" / "site-packages").mkdir()
        for one in (Path(folder), place, *place.rglob("*")):
            one.chmod(0o755)
        yield place
        for one in (place, place / "lib", place / "lib" / "deep"):
            one.chmod(0o755)


def test_what_can_be_read_is_not_refused(python: Path) -> None:
    with another_user():
        root.refuse_unreadable([python / "lib"])


@pytest.mark.parametrize(
    "closed", [".", "lib", "lib/deep", "lib/deep/file.py"], ids=str
)
def test_what_cannot_be_read_is_named_with_the_remedy(
    python: Path, closed: str
) -> None:
    (python / closed).chmod(0)
    with another_user(), pytest.raises(UnavailableError) as caught:
        root.refuse_unreadable([python / "lib"])
    (problem,) = caught.value.problems
    assert problem.code is Code.SANDBOX_MISSING
    assert problem.message.startswith(f"{(python / closed).resolve()} cannot be read")
    assert f"chmod -R a+rX {(python / closed).resolve()}" in problem.help
    assert "/opt" in problem.help


def test_what_programs_do_not_see_may_be_closed(python: Path) -> None:
    (python / "lib" / "site-packages").chmod(0)
    with another_user():
        root.refuse_unreadable([python / "lib"])


def test_a_link_to_nothing_is_copied_as_a_link(python: Path) -> None:
    (python / "lib" / "link").symlink_to("nowhere")
    with another_user():
        root.refuse_unreadable([python / "lib"])


def test_a_python_that_cannot_be_read_is_told_before_anything_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(UnavailableError) as caught:
        root.python_root.__wrapped__()
    assert "cannot be read by user" in caught.value.problems[0].message
