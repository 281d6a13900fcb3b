"""Write `core/confusable_letters.py` from the table of a Python package.

    pip download --no-deps confusable-homoglyphs==3.3.1
    unzip confusable_homoglyphs-*.whl confusable_homoglyphs/confusables.json
    .venv/bin/python tools/confusables.py confusable_homoglyphs/confusables.json

The table is `confusables.txt` of Unicode (UTS 39), each pair in both directions. What
NFKD makes equal is left out, as is what is no letter, digit or mark.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

OUT = Path(__file__).parents[1] / "src/modicum/core/confusable_letters.py"
HEAD = '''"""Letters and digits that look like others; made by `tools/confusables.py`.

From the data of Unicode Technical Standard #39, (c) Unicode, Inc., Unicode License V3.
"""

from __future__ import annotations

from typing import Final

_TEXT = (
'''
TAIL = """)

#: What letters, digits and marks look like, and all that do.
LOOKALIKES: Final = tuple(
    (prototype, letters)
    for prototype, _, letters in (group.partition("=") for group in _TEXT.split())
)
"""
#: Length of a line of text.
_COLUMNS = 80


def components(table: Mapping[str, Iterable[Mapping[str, str]]]) -> list[list[str]]:
    """Return the texts of a table, those together that look alike."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        parent.setdefault(text, text)
        while parent[text] != text:
            parent[text] = parent[parent[text]]
            text = parent[text]
        return text

    for text, alike in table.items():
        for one in alike:
            parent[root(_plain(text))] = root(_plain(one["c"]))
    found: defaultdict[str, list[str]] = defaultdict(list)
    for text in sorted(parent):
        found[root(text)].append(text)
    return list(found.values())


def _plain(text: str) -> str:
    return text.replace("\u200e", "")


def prototypes(table: Mapping[str, Iterable[Mapping[str, str]]]) -> dict[str, str]:
    """Return by letter or digit what it looks like: several letters, or the first."""
    found: dict[str, str] = {}
    for alike in components(table):
        words = [one for one in alike if all(map(_is_letter, one))]
        if words:
            first = min(words, key=lambda one: (len(one) == 1, one))
            found |= {one: first for one in words if len(one) == 1 and one != first}
    return found


def _is_letter(one: str) -> bool:
    return one.isalnum() or unicodedata.category(one).startswith("M")


def main() -> None:
    """Write the module."""
    table = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    known = prototypes(table)

    def settled(text: str) -> str:
        folded = unicodedata.normalize("NFKD", text)
        after = "".join(known.get(one, one) for one in folded)
        return text if after == text else settled(after)

    by_prototype: defaultdict[str, str] = defaultdict(str)
    for letter in sorted(known):
        if unicodedata.normalize("NFKD", letter) == letter:
            by_prototype[settled(letter)] += letter
    lines = [""]
    for one in "".join(f"{proto}={each} " for proto, each in by_prototype.items()):
        escaped = one.encode("unicode_escape").decode()
        if len(lines[-1]) + len(escaped) > _COLUMNS:
            lines.append("")
        lines[-1] += escaped
    body = "".join(f'    "{line}"\n' for line in lines)
    OUT.write_text(HEAD + body + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
