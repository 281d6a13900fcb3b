"""How fast documents are parsed, beside a parser in Python, in one run.

Run it with `python bench/documents.py`. The other parser is ruamel.yaml under the
reader of `tests/oracle/yaml_texts.py`, which builds the same trees and places. Times
are processor seconds; the best of several runs, taken in turn, counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from oracle.yaml_texts import tree

from modicum.core.yaml_reader import NODES_MAX, read_document

ENTRIES = 1000
RUNS = 5


def blocks(number: int) -> str:
    """Return the rules of a policy, as people write them."""
    rule = (
        "  - name: rule-{0}\n"
        "    when: \"attributes.exists(a, a.name == 'x{0}')\"  # why\n"
        "    unit: user-day\n    budget: {{low: 1.0, high: 2.0}}\n"
    )
    return "policies:\n" + "".join(map(rule.format, range(number)))


def lines(number: int) -> str:
    """Return many short values in brackets: the slowest kind of text."""
    row = "  - {{name: r{0}, reads: [a, b, c], unit: user-day, budget: 1.0}}\n"
    return "policies:\n" + "".join(map(row.format, range(number)))


def releases(number: int) -> str:
    """Return JSON as programs write it."""
    cost = {"epsilon": 0.1, "delta": 1e-7}
    return json.dumps(
        [
            {"id": f"r-{n}", "attributes": ["a", "b"], "cost": cost}
            for n in range(number)
        ]
    )


def speed(read: Callable[[str], object], text: str) -> float:
    """Return kilobytes a second."""
    begun = time.process_time()
    read(text)
    return len(text) / (time.process_time() - begun) / 1000


def main() -> None:
    """Print a line for each kind of text."""
    for kind in (blocks, lines, releases):
        text = kind(ENTRIES)
        ours, others = [], []
        for _ in range(RUNS):
            ours.append(speed(lambda one: read_document(one.encode(), "a"), text))
            others.append(speed(lambda one: tree(one, "a", NODES_MAX), text))
        fast, slow = max(ours), max(others)
        print(
            f"{kind.__name__:>10}: {len(text) / 1000:.0f} KB, {fast:.0f} KB/s,"
            f" in Python {slow:.0f} KB/s, {fast / slow:.1f} times as fast"
        )


if __name__ == "__main__":
    main()
