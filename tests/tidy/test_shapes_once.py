"""One declaration for each shape: no two classes have the same fields.

Fields count where they are declared, so that a common base declares them once.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2] / "src"

SCHEMA = "modicum.api.schema."
#: So many equal names are no shape yet.
EQUAL_MAX = 3

#: Where no shape of `api.schema` can be named, as it lies above.
BELOW = {
    *("core", "accounting", "release", "policy", "query", "ledger"),
    *("escrow", "planner", "workloads"),
}
#: Modules whose names are stored or signed for good, whatever others are called.
STORED = {
    "modicum.ledger.log.events",
    "modicum.ledger.log.contracts",
    "modicum.ledger.log.recorded_release",
    "modicum.ledger.log.escrow_events",
    "modicum.ledger.log.codec",
    "modicum.ledger.proof.claims",
    "modicum.api.schema.signature",
}
#: Pairs that stay, each with the reason.
TWICE = {
    ("Decision", "Replayed"): "a decision, and what another policy would decide",
    ("Problem", "ProblemDetails"): "RFC 9457 tells the first mistake on top, too",
    ("Column", "Facts"): "what is declared of a column; what follows for an expression",
    ("Column", "Partition"): "a column holds values; a partition divides the people",
    ("ExactPlan", "QueryRequest"): "an engine is told rows and sums, and no price",
    ("DataSet", "DatasetInput"): "what is sent may be left out",
    ("Program", "ProgramInput"): "code is sent, and shown with its digests",
    ("AnalysisRequest", "RiskInput"): "SQL over a table; a query of a contract",
    ("AnalysisRequest", "NoiseGiven"): "decimal texts for a process; exact numbers",
}


class Found(NamedTuple):
    """A class with annotated fields."""

    module: str
    name: str
    fields: frozenset[str]

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_shape(self) -> bool:
        return self.module.startswith(SCHEMA)

    @property
    def is_below(self) -> bool:
        return self.module.split(".")[1] in BELOW


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT).with_suffix("").as_posix()
        yield own.replace("/", "."), ast.parse(path.read_text())


TREES = dict(trees())


def classes() -> Iterator[Found]:
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield Found(module, node.name, frozenset(_fields(node)))


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id


def renderers() -> dict[tuple[str, str], set[str]]:
    """Return by a class, and a shape that is made of it, the functions that do so."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module, tree in TREES.items():
        own = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
        names = _imported(tree) | {one: f"{module}.{one}" for one in own}
        for function, around in _functions(tree):
            made = {
                name
                for call in ast.walk(function)
                if isinstance(call, ast.Call)
                for name in _named(call.func, names)
                if name.startswith(SCHEMA)
            }
            taken = {f"{module}.{around}"} if made else set()
            for one in ast.walk(function.args) if made else ():
                if isinstance(one, ast.arg) and one.annotation is not None:
                    taken |= {*_named(one.annotation, names)}
            for pair in product(taken, made):
                found[pair].add(f"{module}.{around}.{function.name}")
    return found


def _imported(tree: ast.Module) -> dict[str, str]:
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str]]:
    for node in tree.body:
        around = node.name if isinstance(node, ast.ClassDef) else ""
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef):
                yield one, around


def _named(node: ast.expr, names: dict[str, str]) -> Iterator[str]:
    """Yield what an annotation or a call names, by full name."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            yield f"{names.get(one.value.id)}.{one.attr}"
        elif isinstance(one, ast.Name):
            yield names.get(one.id, "")


def pairs() -> list[tuple[Found, Found]]:
    return [
        (one, other)
        for one, other in combinations(classes(), 2)
        if len(one.fields & other.fields) > EQUAL_MAX
    ]


def _names(one: Found, other: Found) -> tuple[str, ...]:
    return tuple(sorted((one.name, other.name)))


def test_no_two_classes_declare_the_same_fields() -> None:
    rendered = renderers()

    def is_twice(one: Found, other: Found) -> bool:
        if _names(one, other) in TWICE:
            return False
        if one.module != other.module and {one.module, other.module} & STORED:
            return False
        if one.is_shape is other.is_shape:
            return True
        # An object of the domain may have the names of the shape that it is shown as.
        shape, own = (one, other) if one.is_shape else (other, one)
        return not own.is_below and len(rendered[own.full, shape.full]) != 1

    twice = [
        f"{one.full} {other.full}: {', '.join(sorted(one.fields & other.fields))}"
        for one, other in pairs()
        if is_twice(one, other)
    ]
    assert not twice, "\n".join(twice)


def test_what_is_excepted_is_there() -> None:
    assert {*TWICE} <= {_names(*pair) for pair in pairs()}
    assert {*TREES} >= STORED
