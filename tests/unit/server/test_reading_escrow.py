"""What is asked of the escrow is read exactly, and whatever is wrong has its code."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from fractions import Fraction
from typing import Any, cast, get_args

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec import UNSET

from modicum.api.ports.escrow import Limits
from modicum.api.schema import escrow_input as schema
from modicum.api.schema.escrow_input import (
    ContractInput,
    OutputProposal,
    QueryProposal,
    RawSignalProposal,
    RiskInput,
    SignalProposal,
    TaskProposal,
)
from modicum.api.schema.shape import json_schemas, reference
from modicum.core.document import Node, from_python
from modicum.core.errors import Code, InputError
from modicum.core.rationals import number_text
from modicum.escrow.programs import Program
from modicum.escrow.task_files import TaskFile
from modicum.risk.candidates import PUBLISHED
from modicum.server.inputs.body import Body
from modicum.server.inputs.contract import read_contract, read_program
from modicum.server.inputs.reader import amount, read_input
from modicum.server.service.escrow_contracts import facts_of

CODE = "def score(tables, arguments, reference):\n    return 0\n"
OWN: dict[str, Any] = {"code": CODE, "range": [0, 1]}
HEAD: dict[str, Any] = {"contract": "c", "reason": "to know"}
QUERY = {**HEAD, "flow": "query", "queries": ["q"]}
TASK = {**HEAD, "flow": "task", "query": "q", "program": OWN}
OUTPUT = {**HEAD, "flow": "output", "query": "q"}
SIGNAL = {**HEAD, "flow": "signal", "task": "t"}
RAW = {**HEAD, "flow": "raw-signal", "task": "t", "width": "1/3"}
RISK = {"contract": "c", "tau": "0.5"}


def validator(kind: Any) -> Any:
    found = get_args(kind) or (kind,)
    components = {"components": {"schemas": json_schemas(found)}}
    return Draft202012Validator({**reference(kind), **components})


CONTRACTS = validator(ContractInput)
RISKS = validator(RiskInput)


def read_risk(sent: Node) -> RiskInput:
    return read_input(sent, RiskInput)


def node(form: object) -> Node:
    """Return a form as it comes in; what is no text already is sent as JSON."""
    text = form if isinstance(form, str) else json.dumps(form)
    body = Body(text.encode(), is_json=True)
    try:
        plain = body.description()
    except InputError:
        return body.tree()
    return from_python(plain)


def raw(form: dict[str, Any], **written: str) -> str:
    """Return a form as JSON in which some values are written just so."""
    marked = {**form, **{key: f"<{key}>" for key in written}}
    text = json.dumps(marked)
    for key, value in written.items():
        text = text.replace(f'"<{key}>"', value)
    return text


def without(form: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in form.items() if name != key}


# --- what is sent is read back --------------------------------------------------------

names = st.text("abcxyz019", min_size=1, max_size=20)
texts = st.text("abc xyz", min_size=1, max_size=40)
numbers = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)
plains = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner),
    max_leaves=6,
)


@st.composite
def headings(draw: st.DrawFn, flow: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a form, and what is read of it."""
    form: dict[str, Any] = {"contract": draw(names), "reason": draw(texts)}
    lasts = draw(st.none() | st.integers(1, schema.LASTS_SECONDS_MAX))
    uses = draw(st.none() | st.integers(1, schema.USES_MAX))
    to: list[str] = []
    if lasts is not None:
        form["lasts_seconds"] = lasts
    if uses is not None:
        form["uses"] = uses
    if flow in ("output", "signal", "raw-signal"):
        to = draw(st.lists(names, max_size=5))
        says_so = draw(st.booleans())
        if to or says_so:
            form["to"] = to
    if flow == "query" and draw(st.booleans()):
        form["analyst"] = draw(names)
    heading = {"lasts_seconds": schema.LASTS_SECONDS, **form}
    if flow in ("output", "signal", "raw-signal"):
        heading["to"] = tuple(to)
    return form, heading


@st.composite
def programs(draw: st.DrawFn) -> tuple[dict[str, Any], Program]:
    code = draw(st.binary(min_size=1, max_size=50))
    form: dict[str, Any] = {"code_base64": base64.b64encode(code).decode()}
    if draw(st.booleans()):
        text = draw(st.text(st.characters(codec="utf-8"), min_size=1, max_size=50))
        form, code = {"code": text}, text.encode()
    low, high = sorted(draw(st.lists(numbers, min_size=2, max_size=2, unique=True)))
    form["range"] = [number_text(low), number_text(high)]
    language = draw(st.sampled_from(("", "python", "wasm")))
    arguments = draw(st.none() | st.dictionaries(names, plains, max_size=3))
    compares = draw(st.none() | st.booleans())
    catalogue = draw(st.none() | names)
    for key, value in (
        ("language", language or None),
        ("arguments", arguments),
        ("compares", compares),
        ("catalogue", catalogue),
    ):
        if value is not None:
            form[key] = value
    read = read_program(node(form))
    assert isinstance(read, Program)
    assert read.code == code
    assert (read.range.low, read.range.high) == (low, high)
    assert read.language == (language or "python")
    assert read.arguments == (arguments or {})
    assert read.compares is bool(compares)
    assert read.catalogue == (catalogue or "")
    assert read.digest
    return form, read


@given(st.data())
@settings(max_examples=examples(150))
def test_a_contract_that_is_sent_is_read_back(data: st.DataObject) -> None:
    flow = data.draw(st.sampled_from(("query", "task", "output", "signal", "raw")))
    flow = {"raw": "raw-signal"}.get(flow, flow)
    form, heading = data.draw(headings(flow))
    form["flow"] = flow
    wanted: object
    own: dict[str, Any]
    if flow == "query":
        form["queries"] = data.draw(st.lists(texts, min_size=1, max_size=20))
        exact = data.draw(st.none() | st.booleans())
        form |= {} if exact is None else {"exact": exact}
        own = {"queries": tuple(form["queries"]), "exact": bool(exact)}
        wanted = QueryProposal(**heading, **own)
    elif flow == "task":
        form["query"] = data.draw(names)
        form["program"], program = data.draw(programs())
        tier = data.draw(st.sampled_from((None, "bubblewrap", "gvisor", "wasm")))
        seconds = data.draw(st.none() | st.integers(1, schema.SECONDS_MAX))
        memory = data.draw(st.none() | st.integers(1, schema.MEMORY_MIB_MAX))
        given_ = {"tier": tier, "seconds": seconds, "memory_mib": memory}
        form |= {key: one for key, one in given_.items() if one is not None}
        own = {"seconds": seconds or 60, "memory_mib": memory or 2048}
        own |= {"query": form["query"], "tier": tier or UNSET}
        wanted = TaskProposal(**heading, **own, program=cast(Any, program))
    elif flow == "output":
        form["query"] = data.draw(names)
        wanted = OutputProposal(**heading, query=form["query"])
    else:
        form["task"] = data.draw(names)
        wanted = SignalProposal(**heading, task=form["task"])
        if flow == "raw-signal":
            width = data.draw(st.none() | numbers)
            form |= {"exact": True} if width is None else {"width": number_text(width)}
            own = {"exact": True} if width is None else {"width": width}
            wanted = RawSignalProposal(**heading, task=form["task"], **own)
    CONTRACTS.validate(form)
    assert read_contract(node(form)) == wanted
    with pytest.raises(InputError) as caught:
        read_contract(node({**form, "more": 1}))
    assert caught.value.code is Code.UNKNOWN_KEY


def test_the_usual_task_has_a_minute_and_two_gibibytes() -> None:
    wanted = read_contract(node(TASK))
    assert isinstance(wanted, TaskProposal)
    assert Limits(float(wanted.seconds), wanted.memory_mib * 2**20) == Limits()
    assert wanted.tier is UNSET


def test_a_task_of_the_catalogue_is_read() -> None:
    program = {"task": "answers", "evaluate": "mean"}
    with pytest.raises(InputError) as caught:
        read_program(node({**program, "range": [0, 1]}))
    assert caught.value.code is Code.UNKNOWN_KEY
    evaluate = {"rank_correlation": {"left": "n", "keys": ["k"], "reference": {}}}
    evaluate["rank_correlation"]["reference"] = {
        "columns": ["k", "n"],
        "rows": [[1, 2]],
    }
    found = read_program(node({"task": "answers", "evaluate": evaluate}))
    assert isinstance(found, TaskFile)


@given(
    numbers,
    st.none() | numbers,
    st.none() | st.lists(numbers, min_size=1, max_size=9),
)
@settings(max_examples=examples(100))
def test_a_risk_that_is_asked_is_read_back(
    tau: Fraction, delta: Fraction | None, epsilons: list[Fraction] | None
) -> None:
    form: dict[str, Any] = {"contract": "c", "query": "r", "tau": number_text(tau)}
    if delta is not None:
        form["delta"] = number_text(delta)
    if epsilons is not None:
        form["epsilons"] = [number_text(one) for one in epsilons]
    RISKS.validate(form)
    found = read_risk(node(form))
    assert (found.contract, found.file, found.tau) == ("c", UNSET, tau)
    assert (found.query, found.delta) == ("r", UNSET if delta is None else delta)
    assert found.epsilons == (UNSET if epsilons is None else tuple(epsilons))
    facts = facts_of(found)
    assert (facts.query, facts.delta) == ("r", delta)
    assert list(facts.epsilons) == (epsilons or list(PUBLISHED))
    by_file = read_risk(
        node({**without(without(form, "contract"), "query"), "file": "f"})
    )
    assert (by_file.contract, by_file.file) == (UNSET, "f")
    assert facts_of(by_file).query is None


# --- numbers --------------------------------------------------------------------------

NONE = (
    *("1/0", "0/0", "-1/0", "1/00", "1/-2", "1/2/3", "/2", "1/", " 1/2", "1/2 "),
    *("nan", "NaN", "inf", "-Infinity", "", "x", "1e401", "1e999999999", "1e-401"),
    *("0x10", "1_000", "1,5", "٣", "1/٣", "9" * 65, f"1/{'9' * 41}", f"{'9' * 41}/1"),
)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number_is_refused(text: str) -> None:
    """As a text, wherever a number is asked for; nothing is divided by nothing."""
    for form, read in (
        ({**RAW, "width": text}, read_contract),
        ({**TASK, "program": {**OWN, "range": [0, text]}}, read_contract),
        ({**RISK, "tau": text}, read_risk),
        ({**RISK, "delta": text}, read_risk),
        ({**RISK, "epsilons": [1, text]}, read_risk),
    ):
        with pytest.raises(InputError) as caught:
            read(node(form))
        assert caught.value.code is Code.NOT_A_NUMBER


@pytest.mark.parametrize(
    "written",
    ["NaN", "Infinity", "-Infinity", "1e401", "1e999999999", "1e-999", "9" * 65],
)
def test_what_json_has_no_number_for_is_refused(written: str) -> None:
    for form, read in (
        (raw(RAW, width=written), read_contract),
        (raw(RISK, tau=written), read_risk),
        (raw({**QUERY, "uses": 1}, uses=written), read_contract),
        (raw({**TASK, "seconds": 1}, seconds=written), read_contract),
    ):
        with pytest.raises(InputError):
            read(node(form))


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("1/3", Fraction(1, 3)),
        ("-7/2", Fraction(-7, 2)),
        ("2/4", Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
        ("1e-3", Fraction(1, 1000)),
        (7, Fraction(7)),
        (f"{'9' * 40}/{'8' * 40}", Fraction(int("9" * 40), int("8" * 40))),
    ],
)
def test_a_number_is_exact(value: object, exact: Fraction) -> None:
    assert amount(from_python(value), "it") == exact


def test_a_number_is_read_from_its_digits() -> None:
    wanted = read_contract(node(raw(RAW, width="0.1")))
    assert isinstance(wanted, RawSignalProposal)
    assert wanted.width == Fraction(1, 10)


@given(st.text(max_size=20) | st.text("0123456789/.-+e", max_size=12))
@settings(max_examples=examples(300))
def test_any_text_is_a_number_or_a_mistake(text: str) -> None:
    with suppress(InputError):
        amount(from_python(text), "it")


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ([], Code.WRONG_TYPE),
        ({}, Code.MISSING_KEY),
        (without(QUERY, "flow"), Code.MISSING_KEY),
        (without(QUERY, "contract"), Code.MISSING_KEY),
        (without(QUERY, "reason"), Code.MISSING_KEY),
        (without(QUERY, "queries"), Code.MISSING_KEY),
        (without(TASK, "query"), Code.MISSING_KEY),
        (without(TASK, "program"), Code.MISSING_KEY),
        (without(OUTPUT, "query"), Code.MISSING_KEY),
        (without(SIGNAL, "task"), Code.MISSING_KEY),
        (without(RAW, "task"), Code.MISSING_KEY),
        ({**QUERY, "flow": "querry"}, Code.UNKNOWN_CHOICE),
        ({**QUERY, "flow": 1}, Code.WRONG_TYPE),
        ({**QUERY, "contract": "a b"}, Code.BAD_NAME),
        ({**QUERY, "contract": "x" * 201}, Code.BAD_NAME),
        ({**QUERY, "reason": "x" * 2001}, Code.TOO_LARGE),
        ({**QUERY, "reason": "\u202e"}, Code.NOT_TEXT),
        ({**QUERY, "queries": "q"}, Code.WRONG_TYPE),
        ({**QUERY, "queries": []}, Code.OUT_OF_RANGE),
        ({**QUERY, "queries": ["q"] * 21}, Code.OUT_OF_RANGE),
        ({**QUERY, "queries": ["x" * 65537]}, Code.TOO_LARGE),
        ({**QUERY, "queries": [1]}, Code.WRONG_TYPE),
        ({**QUERY, "exact": "yes"}, Code.WRONG_TYPE),
        ({**QUERY, "exact": 1}, Code.WRONG_TYPE),
        ({**QUERY, "analyst": "x" * 201}, Code.TOO_LARGE),
        ({**QUERY, "to": ["a"]}, Code.UNKNOWN_KEY),
        ({**QUERY, "lasts_seconds": 0}, Code.OUT_OF_RANGE),
        ({**QUERY, "lasts_seconds": 10 * 366 * 86400 + 1}, Code.OUT_OF_RANGE),
        ({**QUERY, "lasts_seconds": 1.5}, Code.OUT_OF_RANGE),
        ({**QUERY, "lasts_seconds": "60"}, Code.NOT_A_NUMBER),
        ({**QUERY, "uses": 0}, Code.OUT_OF_RANGE),
        ({**QUERY, "uses": 1_000_001}, Code.OUT_OF_RANGE),
        ({**TASK, "to": ["a"]}, Code.UNKNOWN_KEY),
        ({**TASK, "analyst": "a"}, Code.UNKNOWN_KEY),
        ({**TASK, "tier": 1}, Code.WRONG_TYPE),
        ({**TASK, "seconds": 0}, Code.OUT_OF_RANGE),
        ({**TASK, "seconds": 86401}, Code.OUT_OF_RANGE),
        ({**TASK, "memory_mib": 2**20 + 1}, Code.OUT_OF_RANGE),
        ({**OUTPUT, "to": ["a"] * 101}, Code.TOO_LARGE),
        ({**OUTPUT, "to": "a"}, Code.WRONG_TYPE),
        ({**OUTPUT, "exact": True}, Code.UNKNOWN_KEY),
        ({**SIGNAL, "width": 1}, Code.UNKNOWN_KEY),
        ({**RAW, "exact": True}, Code.KEYS_CONFLICT),
        (without(RAW, "width"), Code.KEYS_CONFLICT),
        ({**without(RAW, "width"), "exact": False}, Code.KEYS_CONFLICT),
    ],
)
def test_what_is_wrong_with_a_contract_has_its_code(form: Any, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        read_contract(node(form))
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"code": None}, Code.WRONG_TYPE),
        ({"code": 1}, Code.WRONG_TYPE),
        ({"code": ""}, Code.TOO_LARGE),
        ({"code": "x" * 2**26}, Code.TOO_LARGE),
        ({"code_base64": "eA=="}, Code.KEYS_CONFLICT),
        ({"language": "ruby"}, Code.UNKNOWN_CHOICE),
        ({"range": [0]}, Code.WRONG_TYPE),
        ({"range": [0, 1, 2]}, Code.WRONG_TYPE),
        ({"range": "0..1"}, Code.WRONG_TYPE),
        ({"range": [1, 0]}, Code.OUT_OF_RANGE),
        ({"range": [1, "1"]}, Code.OUT_OF_RANGE),
        ({"range": [0, None]}, Code.NOT_A_NUMBER),
        ({"arguments": [1]}, Code.WRONG_TYPE),
        ({"arguments": {"a": 0.5}}, Code.WRONG_TYPE),
        ({"arguments": {"a": [{"b": 1e-3}]}}, Code.WRONG_TYPE),
        ({"compares": "no"}, Code.WRONG_TYPE),
        ({"catalogue": "a\nb"}, Code.NOT_TEXT),
        ({"task": "answers"}, Code.MISSING_KEY),
        ({"size": 1}, Code.UNKNOWN_KEY),
    ],
)
def test_what_is_wrong_with_a_program_has_its_code(more: Any, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        read_program(from_python({**OWN, **more}))
    assert caught.value.code is code


@pytest.mark.parametrize("given_", ["eA=", "e A==", "eA==\n", "%%%%", "é"])
def test_code_that_is_no_base64_is_refused(given_: str) -> None:
    with pytest.raises(InputError) as caught:
        read_program(from_python({"code_base64": given_, "range": [0, 1]}))
    assert caught.value.code is Code.NOT_TEXT
    assert given_ not in str(caught.value)


def test_a_program_has_code() -> None:
    with pytest.raises(InputError) as caught:
        read_program(from_python({"range": [0, 1]}))
    assert caught.value.code is Code.KEYS_CONFLICT


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ([], Code.WRONG_TYPE),
        ({}, Code.KEYS_CONFLICT),
        ({"tau": 1}, Code.KEYS_CONFLICT),
        ({**RISK, "file": "f"}, Code.KEYS_CONFLICT),
        ({"file": "f", "query": "q", "tau": 1}, Code.KEYS_CONFLICT),
        (without(RISK, "tau"), Code.MISSING_KEY),
        ({**RISK, "contract": 1}, Code.WRONG_TYPE),
        ({**RISK, "contract": "x" * 201}, Code.TOO_LARGE),
        ({"file": "x" * 65537, "tau": 1}, Code.TOO_LARGE),
        ({**RISK, "tau": None}, Code.NOT_A_NUMBER),
        ({**RISK, "tau": True}, Code.NOT_A_NUMBER),
        ({**RISK, "epsilons": []}, Code.OUT_OF_RANGE),
        ({**RISK, "epsilons": [1] * 1001}, Code.OUT_OF_RANGE),
        ({**RISK, "epsilons": 1}, Code.WRONG_TYPE),
        ({**RISK, "more": 1}, Code.UNKNOWN_KEY),
    ],
)
def test_what_is_wrong_with_a_risk_has_its_code(form: Any, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        read_risk(node(form))
    assert caught.value.code is code
