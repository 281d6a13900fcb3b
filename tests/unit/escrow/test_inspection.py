"""Remarks point to what is worth a look, and to little else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError, VerificationError
from modicum.escrow import tasks
from modicum.escrow.inspection import WHY, Inspection, changes, inspected
from modicum.escrow.programs import Program, Range
from modicum.sandbox.catalog import installed

HEAD = "def score(tables, arguments, reference):\n"
SHARE = tasks.accuracy().range


def remarks(body: str, before: str = "") -> list[tuple[str, str]]:
    """Return kind and text of what is said about a program with one line."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    found = inspected(tasks.own(f"{before}{HEAD}{lines}"))
    return [(one.kind, one.text) for one in found.remarks]


WORTH_A_LOOK = [
    ("import os", "import", "imports `os`"),
    ("import numpy, socket", "import", "imports `socket`"),
    ("from sklearn import datasets", "import", "imports `sklearn.datasets`"),
    ("from sklearn.datasets import fetch_openml", "import", "fetch_openml"),
    ("from . import other", "import", "uses a relative import"),
    ("from math import *", "import", "imports `math.*`"),
    ("return eval(arguments['x'])", "reach", "uses `eval`"),
    ("f = open", "reach", "uses `open`"),
    ("return getattr(tables, 'x')", "reach", "uses `getattr`"),
    ("return (1).__class__", "reach", "uses `__class__`"),
    ("return __builtins__", "reach", "uses `__builtins__`"),
    ("return numpy.load('x')", "reach", "uses `.load`"),
    ("x.tofile('y')", "reach", "uses `.tofile`"),
    (f"x = '{'a' * 201}'", "literal", "a text of 201 characters"),
    (f"x = b'{'a' * 201}'", "literal", "a text of 201 characters"),
    ("x = 1000000000000000000", "literal", "more than 18 digits"),
    ("x = -0x" + "f" * 20_000, "literal", "more than 18 digits"),
    ("x = [" + "n, " * 31 + "]", "literal", "a list of 31 things"),
    ("x = {" + "1: 2, " * 31 + "}", "literal", "a list of 31 things"),
    ("for row in tables:\n    if row[1] > 17: return 1", "threshold", "`row[1] > 17`"),
    ("return float(x < -3)", "threshold", "`x < -3`"),
    ("return float(3 < x)", "threshold", "`3 < x`"),
    ("return x == 'Kent'", "threshold", "`x == 'Kent'`"),
    ("return x in ['Kent', 'Essex']", "threshold", "compares with a constant"),
    ("C = 17\nreturn x > C", "threshold", "`x > C`"),
    ("C = [17, 18]\nreturn x in C", "threshold", "`x in C`"),
    ("C = 10 ** 4\nreturn x > C", "threshold", "`x > C`"),
    ("return x > float(arguments['c'])", "threshold", "arguments"),
    ("x = tables['t']['rows'][0]", "cell", "by position"),
    ("x = rows[-1]", "cell", "by position"),
    ("x = found[3][1]", "cell", "by position"),
    ("return max(x)", "cell", "`max`"),
    ("return x.min()", "cell", "`min`"),
    ("return x.item() / 2", "cell", "`item`"),
    ("x = y << 3", "bits", "`y << 3`"),
    ("x = ord(y)", "bits", "uses `ord`"),
    ("x = int.from_bytes(y)", "bits", "uses `from_bytes`"),
    ("x = 1 # \u202e", "unseen", "U+202E"),
    ("x = 1 #" + " " * 130 + "import os", "unseen", "characters"),
    ("\u043e = 2", "unseen", "not ASCII"),
]


@pytest.mark.parametrize(("body", "kind", "text"), WORTH_A_LOOK)
def test_what_is_worth_a_look_is_remarked(body: str, kind: str, text: str) -> None:
    found = remarks(body)
    assert [one for one in found if one[0] == kind and text in one[1]], found


PLAIN = '''"""How even counts are."""

import math
from collections import Counter

import numpy as np
from sklearn.linear_model import Ridge


def score(tables, arguments, reference):
    """Return the entropy of counts, as a share of the largest."""
    rows = tables["counts"]["rows"]
    counts = [max(row[1], 0) for row in rows]
    total = sum(counts)
    if total == 0 or len(counts) <= 1 or reference is not None:
        return None
    shares = [one / total for one in counts if one > 0]
    return -sum(one * math.log(one) for one in shares) / math.log(len(counts))
'''


def test_a_plain_program_has_no_remarks() -> None:
    found = inspected(tasks.own(PLAIN))
    assert found == Inspection("", 14, ())
    assert str(found) == "own code: 14 lines, 0 remarks"


def test_a_text_of_the_catalogue_was_read_before() -> None:
    task = tasks.fit("sklearn:LogisticRegression", target="income", at_least="50000")
    found = inspected(tasks.program(task, tasks.accuracy(), installed()))
    assert found.vetted == "accuracy@1"
    assert [one.text for one in found.remarks] == ["the target is compared with 50000"]
    assert str(found).startswith("text of the catalogue, accuracy@1: 1")
    plain = tasks.fit("sklearn:LogisticRegression", target="income")
    assert not inspected(tasks.program(plain, tasks.accuracy(), installed())).remarks


def test_what_analysts_choose_beside_the_text_is_remarked() -> None:
    rows: list[list[object]] = [["a", 1], ["b", 2]]
    public: dict[str, list[Any]] = {"columns": ["town", "n"], "rows": rows}
    task = tasks.top_k_overlap(1, by="n", keys=["town"], reference=public)
    found = inspected(tasks.program(tasks.answers(), task, installed()))
    assert [one.text for one in found.remarks] == [
        "`k` is 1: it reveals which row is the largest",
        "answers are compared with 2 numbers from the analyst, which is few",
    ]
    rows += [[f"t{n}", n] for n in range(3)]
    task = tasks.top_k_overlap(2, by="n", keys=["town"], reference=public)
    found = inspected(tasks.program(tasks.answers(), task, installed()))
    assert [one.text for one in found.remarks] == [
        "answers are compared with 5 numbers from the analyst"
    ]
    own = tasks.own(HEAD + "    return None", arguments={"c": "17"})
    assert [one.text for one in inspected(own).remarks] == ["is given `c`"]


def test_a_module_is_not_read_here() -> None:
    found = inspected(Program("wasm", b"\0asm", {}, SHARE))
    assert [(one.kind, one.line) for one in found.remarks] == [("unreadable", 0)]


def test_who_calls_himself_of_the_catalogue_is_not_believed() -> None:
    false = Program(
        "python", b"import os", {}, Range(SHARE.low, SHARE.high), catalogue="accuracy@1"
    )
    with pytest.raises(VerificationError):
        inspected(false)


def test_lines_and_places_are_those_of_the_text() -> None:
    found = inspected(tasks.own(f"\n\nimport os\n{HEAD}    return eval('1')\n"))
    assert [(one.line, one.kind) for one in found.remarks] == [
        (3, "import"),
        (5, "reach"),
    ]
    assert found.lines == 3
    assert str(found.remarks[0]) == f"line 3: imports `os` ({WHY['import']})"


def test_what_is_shown_cannot_steer_a_terminal() -> None:
    text = HEAD + "    return x == '\x1b[2J'"
    found = str(inspected(tasks.own(text, arguments={"\x1b[2J": "1"})))
    assert "\x1b" not in found
    assert "\x1b" not in changes(tasks.own(HEAD + "    pass"), tasks.own(text))


def test_changes_are_those_of_all_that_is_approved() -> None:
    before = tasks.own(HEAD + "    return 1", arguments={"c": "17"})
    after = tasks.own(HEAD + "    return 2", arguments={"c": "18"}, range=(0, 2))
    result = changes(before, after).splitlines()
    for line in (
        '-range: ["0","1"]',
        '+range: ["0","2"]',
        '-arguments: {"c":"17"}',
        '+arguments: {"c":"18"}',
        "-    return 1",
        "+    return 2",
    ):
        assert line in result
    assert changes(before, before) == ""


@pytest.mark.parametrize(
    "code",
    [
        b"def score(:",
        b"\xff",
        b"x = " + b"-" * 200_000 + b"1",
        b"x = " + b"(" * 100_000,
        b"x" + b".a" * 100_000,
        b"x = " + b"1+" * 100_000 + b"1",
        b"x = 1\x00",
    ],
    ids=lambda code: code[:12].hex(),
)
def test_what_cannot_be_read_is_said_to_be_so(code: bytes) -> None:
    """Or it is read: no text makes reading fail otherwise."""
    try:
        inspected(Program("python", code, {}, SHARE))
    except InputError as error:
        assert error.code is Code.NOT_A_PROGRAM  # noqa: PT017


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_whatever_is_given_is_read_or_refused(text: str | bytes) -> None:
    try:
        program = tasks.own(text)
    except InputError:
        return
    inspected(program)
