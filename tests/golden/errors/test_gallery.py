"""What people see: a gallery of broken files, each with its exact message.

A case is a folder with a policy, a release or both; a release without a policy is
read under the one beside this file. After a change of wording run

    MODICUM_REGENERATE=1 python -m pytest tests/golden/errors

and review the difference: the caret stands under what is wrong, the remedy works.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import modicum as mo
from modicum.api.local.evaluation import price_release
from modicum.core.errors import Code, InputError

FOLDER = Path(__file__).parent
CASES = sorted(path.parent.name for path in FOLDER.glob("*/expected.txt"))
REGENERATE = bool(os.environ.get("MODICUM_REGENERATE"))
if REGENERATE:
    CASES = sorted(p.name for p in FOLDER.iterdir() if p.is_dir() and p.name[0] != "_")

#: Codes from here on are about ledgers and the life of a policy, not about files.
LATER = "MOD600"


def read() -> None:
    """Read the case in the working directory as a command would."""
    release = Path("release.yaml")
    own = Path("policy.yaml").exists() or not release.exists()
    policy = mo.load_policy("policy.yaml" if own else FOLDER / "policy.yaml")
    if release.exists():
        price_release(mo.load_release("release.yaml"), policy)


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_shown_as_it_always_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER / name)
    with pytest.raises(InputError) as caught:
        read()
    expected = Path("expected.txt")
    if REGENERATE:
        expected.write_text(caught.value.render() + "\n", encoding="utf-8")
    assert caught.value.render() + "\n" == expected.read_text(encoding="utf-8")


@pytest.mark.skipif(REGENERATE, reason="the gallery is being written")
@pytest.mark.parametrize("name", CASES)
def test_every_caret_stands_under_something(name: str) -> None:
    """A message shows the line as it stands in the file, and marks a part of it."""
    lines = (FOLDER / name / "expected.txt").read_text(encoding="utf-8").splitlines()
    for place, line in enumerate(lines):
        if "^" not in line or not line.lstrip().startswith("|"):
            continue
        source, carets = lines[place - 1], line
        first, last = carets.index("^"), carets.rindex("^")
        assert last < len(source)
        assert source[first] != " " or name == "yaml-tab"


def test_the_gallery_shows_every_code_of_files() -> None:
    shown = "".join(
        (FOLDER / name / "expected.txt").read_text(encoding="utf-8") for name in CASES
    )
    assert len(CASES) >= 40
    for code in Code:
        assert code.value >= LATER or f"error[{code.value}]: " in shown, code
