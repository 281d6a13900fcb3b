"""The catalogue: what it holds, what goes together, and what is refused."""

from __future__ import annotations

import ast
import os
import re
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from modicum.core.canonical import digest
from modicum.core.errors import Code, InputError, VerificationError
from modicum.escrow import tasks
from modicum.escrow.catalog import CATALOGUE, CURRENT, text_of, vetted
from modicum.escrow.evaluations import LOOKS
from modicum.escrow.programs import Program, Range, Table
from modicum.escrow.tasks import MODELS
from modicum.sandbox.catalog import installed

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "tests" / "golden" / "tasks" / "refused.txt"
REGENERATE = bool(os.environ.get("MODICUM_REGENERATE"))
#: What was used once stays as it was: another text is another version. So a digest is
#: written here once, and never changed.
PINNED = {
    "accuracy@1": "bf1a366bea83f51beca158b7a5a37b205eaf5db239848e44f50f1c84edcdb13f",
    "balanced_accuracy@1": "4ebf1685181868366ff7ae7351a762ff8bea606853af9f1c1e620c558bbaddb9",  # noqa: E501
    "transfer_accuracy@1": "892806b2daee92a2a14f8fb60277fcbe6db5314598f219d9759932fb2c49dd8c",  # noqa: E501
    "r2@1": "996eafc7bbc38c502de1e0767ddefd0f670aae9f2fb4b8715ba65ab864d01f36",
    "rank_correlation@1": "98e51a04657684f73e48f97a2f8b047f431e32df89bd8bb1add09b5cf40602e9",  # noqa: E501
    "relative_error@1": "0013302014fc7f21eab9acf64e0fc587f265ac322a4f1966c807fc31c56f928b",  # noqa: E501
    "top_k_overlap@1": "a0e13a3b5d2ed0ec17d886b9349e9443544d6112521f8f49e3836a877a68f296",  # noqa: E501
    "chi_square@1": "4e54d22112f9958a6e22b206d1bbfa9aa964b8702fb931bf9563fe5d53a29851",
}
FIT = tasks.fit("sklearn:LogisticRegression", target="income", weight="people")


def test_a_text_that_was_used_is_never_changed() -> None:
    assert {name: one.digest for name, one in CATALOGUE.items()} == PINNED
    assert {name: digest(text) for name, text in installed().items()} == PINNED
    folder = files("modicum.sandbox") / "programs"
    there = {one.name for one in folder.iterdir() if one.name.endswith(".py")}
    assert there == {"__init__.py", *(one.file for one in CATALOGUE.values())}


def test_each_evaluation_runs_one_text() -> None:
    assert CURRENT.keys() == LOOKS.keys()
    for name, entry in CURRENT.items():
        assert re.fullmatch(rf"{name}@\d+", entry.name)
        first = installed()[entry.name].decode("utf-8").split("\n", 1)[0]
        assert first.startswith(f'"""{entry.name}: ')


def test_texts_can_be_read_in_one_go() -> None:
    for name, text in installed().items():
        assert text.count(b"\n") <= 170, name


def test_what_stands_in_several_texts_is_the_same_in_each() -> None:
    """Whoever has read a function once need not read it again."""
    seen: dict[str, set[str]] = {}
    for text in installed().values():
        source = text.decode("utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name != "score":
                result = ast.get_source_segment(source, node)
                seen.setdefault(node.name, set()).add(result or "")
    different = {name for name, texts in seen.items() if len(texts) > 1}
    assert different == {"targeted"}  # Classes, or numbers.
    assert len(seen) >= 10


def test_a_text_knows_the_models_of_its_kind() -> None:
    for evaluation in (one for one, looks in LOOKS.items() if looks != "answers"):
        text = installed()[CURRENT[evaluation].name].decode("utf-8")
        known = set(re.findall(r'"(sklearn:\w+)": \w+,', text))
        kind = LOOKS[evaluation]
        assert known == {one.name for one in MODELS.values() if one.kind == kind}


def test_a_changed_text_is_never_run() -> None:
    entry = CATALOGUE["accuracy@1"]
    changed = {**installed(), entry.name: installed()[entry.name] + b"\n"}
    for texts in (changed, {}):
        with pytest.raises(VerificationError) as caught:
            text_of(entry, texts)
        assert caught.value.code is Code.NOT_THE_CATALOGUE
        with pytest.raises(VerificationError):
            tasks.program(FIT, tasks.accuracy(), texts)


def test_nobody_calls_a_program_what_it_is_not() -> None:
    real = tasks.program(FIT, tasks.accuracy(), installed())
    assert vetted(real)
    assert not vetted(tasks.own("def score(tables, arguments, reference): pass"))
    share, wide = real.range, Range(Fraction(0), Fraction(2))
    for code, range_, name in (
        (b"def score(tables, arguments, reference): pass", share, "accuracy@1"),
        (real.code, wide, "accuracy@1"),
        (real.code, share, "balanced_accuracy@1"),
        (real.code, share, "accuracy@2"),
    ):
        program = Program("python", code, {}, range_, catalogue=name)
        with pytest.raises(VerificationError):
            vetted(program)


def test_a_program_says_all_that_was_chosen() -> None:
    """Also what is as usual: another default later is another program."""
    found = tasks.program(FIT, tasks.accuracy(), installed())
    assert found.arguments == {
        "table": None,
        "model": "sklearn:LogisticRegression",
        "target": "income",
        "features": None,
        "weight": "people",
        "at_least": None,
        "parameters": {"C": "1"},
        "cv": 5,
    }
    assert (found.catalogue, found.compares) == ("accuracy@1", False)
    for model, one in MODELS.items():
        task = tasks.fit(model, target="x")
        evaluation = tasks.r2() if one.kind == "regressor" else tasks.accuracy()
        given = tasks.program(task, evaluation, installed()).arguments["parameters"]
        assert isinstance(given, dict)
        assert given.keys() == one.parameters.keys()
        assert len(found.digest) == 64


def test_what_compares_is_known() -> None:
    public = Table(("town", "people"), (("a", 1), ("b", None)))
    by = ["town"]
    for compares, reference in ((True, None), (False, public)):
        for evaluation in (
            tasks.relative_error("people", keys=by, reference=reference),
            tasks.rank_correlation("people", keys=by, reference=reference),
            tasks.top_k_overlap(3, by="people", keys=by, reference=reference),
        ):
            found = tasks.program(tasks.answers("t"), evaluation, installed())
            assert found.compares is compares
            result = (
                None
                if compares
                else {"columns": ["town", "people"], "rows": [["a", "1"]]}
            )
            assert found.arguments["public"] == result
    within = tasks.rank_correlation("people", "age")
    assert not tasks.program(tasks.answers(), within, installed()).compares


def test_parameters_are_exact_at_the_ends_of_their_ranges() -> None:
    for name, one in MODELS.items():
        for parameter, bounds in one.parameters.items():
            beside = Fraction(1) if bounds.whole else bounds.high / 1000
            for inside in (bounds.low, bounds.usual, bounds.high):
                value = int(inside) if bounds.whole else inside
                given: dict[str, Any] = {parameter: value}
                tasks.fit(name, target="x", **given)
            for outside in (bounds.low - beside, bounds.high + beside):
                value = int(outside) if bounds.whole else outside
                given = {parameter: value}
                with pytest.raises(InputError):
                    tasks.fit(name, target="x", **given)


def test_what_is_named_is_looked_up() -> None:
    columns = {"t": ["town", "income", "people"]}
    tasks.program(FIT, tasks.accuracy(), installed(), columns)
    weighted = tasks.chi_square("town", "income", "people")
    tasks.program(tasks.answers("t"), weighted, installed(), columns)


# --- what people see ------------------------------------------------------------------

_BETWEEN, _APART = "\n----\n", "\n====\n"


def cases() -> list[tuple[str, str]]:
    """Return each call with what is said of it."""
    blocks = GALLERY.read_text(encoding="utf-8").strip("\n").split(_APART)
    pairs = (block.partition(_BETWEEN) for block in blocks)
    return [(call, said) for call, _, said in pairs]


CASES = cases()


def said_of(call: str) -> str:
    known = {
        "tasks": tasks,
        "texts": installed(),
        "columns": {"t": ["town", "income", "people"]},
        "two": {"t": ["town"], "u": ["town"]},
        "FIT": FIT,
    }
    with pytest.raises(InputError) as caught:
        eval(call, known)
    return caught.value.render()


@pytest.mark.skipif(not REGENERATE, reason="the gallery stays as it is")
def test_the_gallery_is_written_anew() -> None:
    blocks = (call + _BETWEEN + said_of(call) for call, _ in CASES)
    GALLERY.write_text(_APART.join(blocks) + "\n", encoding="utf-8")


@pytest.mark.skipif(REGENERATE, reason="the gallery is being written")
@pytest.mark.parametrize(("call", "said"), CASES, ids=[call[:60] for call, _ in CASES])
def test_a_mistake_reads_as_it_always_did(call: str, said: str) -> None:
    assert said_of(call) == said


def test_the_gallery_shows_each_code() -> None:
    said = "\n".join(said for _, said in CASES)
    assert len(CASES) >= 30
    for code in (Code.TASK_MISMATCH, Code.NOT_A_PROGRAM, Code.UNKNOWN_NAME):
        assert f"[{code.value}]" in said
