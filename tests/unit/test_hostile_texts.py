"""No text that somebody sends is read for longer than its size allows.

Each was read in exponential or quadratic time once, some of it without letting another
thread run. Each reader has a process of its own, whose CPU time is limited.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

#: What a process may use: it takes a second to start, and milliseconds to read.
CPU_SECONDS = 15

CEL = "from modicum.policy.cel.parser import read_cel as read\n"
LOWERED = """
from modicum.core.document import from_python
from modicum.policy.cel.compiler import parse_predicate
from modicum.release import Vocabulary
words = Vocabulary(frozenset({"age"}), {}, ("user",), "add-remove")
read = lambda text: parse_predicate(from_python(text), "`when`", words)
"""
YAML = """
from modicum.core.yaml_reader import read_document
read = lambda text: read_document(text.encode(), "a.yaml")
"""
SQL = """
from modicum.query.parser.syntax_tree import read_tree
read = lambda text: read_tree(text, "a.sql")
"""


def numbers(count: int) -> str:
    return "[" + "1," * (count - 1) + "1]"


TEXTS = {
    "an open text that ends in backslashes": (CEL, '"' + "\\" * 1999),
    "an open text of escapes": (CEL, "'" + r"\a" * 999),
    "an open text of several lines": (CEL, '"""' + r"\\a" * 600),
    "chains of comparisons": (CEL, "1<" * 999 + "1"),
    "conditions within conditions": (
        LOWERED,
        "(" * 18 + 'm.name == "x"' + " ? true : false)" * 18,
    ),
    "lists within quantifiers": (
        LOWERED,
        f"{numbers(250)}.exists(a, {numbers(250)}.exists(b,"
        f" size({numbers(400)}) == 1))",
    ),
    "blanks before a second colon": (YAML, "a: b" + " " * 60_000 + "c: d"),
    "blanks behind a quote": (YAML, 'a: "b' + " " * 60_000 + "c"),
    "joins without conditions": (SQL, "SELECT COUNT(*) FROM t" + " JOIN t" * 60),
    "types within types": (
        SQL,
        "SELECT COUNT(*) FROM t WHERE " + "INT(" * 15 + "1" + ")" * 15,
    ),
    "many semicolons": (SQL, "SELECT 1 +" + ";" * 60_000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_refused_in_time(name: str) -> None:
    reader, text = TEXTS[name]
    script = f"""{reader}
from modicum.core.errors import ModicumError
from modicum.policy.cel.tree import CelError
try:
    read({text!r})
except (ModicumError, CelError):
    print("refused")
"""
    assert ran(script) == "refused\n"


def test_types_of_columns_are_found_in_time() -> None:
    """A struct in a Parquet file may have any names."""
    script = """
from modicum.risk.measurement.query_checks import ENUM
print(ENUM.sub("VARCHAR", 'STRUCT("ENUM(' + "'" * 5_001 + '" INTEGER)')[:6])
print(ENUM.sub("VARCHAR", "ENUM('a', 'it''s', '')[], ENUM('b')"))
"""
    assert ran(script) == "STRUCT\nVARCHAR[], VARCHAR\n"


def ran(script: str) -> str:
    """Return what a script prints; nothing if it is ended for its CPU time."""
    limit = (CPU_SECONDS, CPU_SECONDS)
    return subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
    ).stdout
