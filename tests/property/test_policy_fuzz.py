"""Whatever bytes a policy file holds: a policy or a coded error, never a crash."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from budget import examples, seed
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import POLICY

import modicum
from modicum.core.errors import Code, InputError
from modicum.policy.compiler import compile_text

ROOT = Path(modicum.__file__).parent / "ops" / "examples" / "acme-health"
EVERYTHING = f"""{POLICY}
population: {{partition_by: {{project: 900, country: {{values: [CH, DE]}}}}}}
guards:
  - {{name: g, unless: '["user"].all(u, u in m.contribution_bound)', message: bound}}
approvals: [{{when: 'release.audience == "public"', need: 2, from: [officer]}}]
disclosed_invariants: [size]
""".replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id, neighbors: any-change},"
    " day: {id: user_id, time: {column: at, period: day}, within: user,"
    " groups: {user: 400}}}",
)
SEEDS = [
    EVERYTHING.encode(),
    (ROOT / "policy.yaml").read_bytes(),
]
#: Words that mean something somewhere, to be put where they do not belong.
WORDS = sorted(
    {
        *re.findall(r"[\w.-]+", EVERYTHING),
        *("null", "~", "1e-400", "-1", "NaN", ".inf", "0x10", "1e999", "&a", "*a"),
        *("[]", "{}", "''", '"', "'", ":", "- ", "<<: *a", "!!python/object:os.system"),
        *("\t", "\u202e", "\ufeff", "---\n", "...\n", "|\n", ">\n", "#", "? "),
        *("m.cost.rho < 1", "m.attributes.all(a, a == a)", "!(((((((((true)))))))))"),
    }
)


def tried(data: bytes) -> None:
    """Compile what may be anything; only a coded error may come back."""
    try:
        compiled = compile_text(data, "policy.yaml")
        compiled.refuse_mistakes()
        assert compiled.warnings is not None
        assert len(compiled.rules) + len(compiled.release_rules) > 0
    except InputError as error:
        for problem in error.problems:
            assert isinstance(problem.code, Code)
            assert problem.code is not Code.INTERNAL
            assert problem.message
            assert problem.render()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a valid text with a few things wrong."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        place = rng.randrange(len(text) + 1)
        end = min(len(text), place + rng.choice((0, 1, 2, 5, 20, 100)))
        match rng.randrange(6):
            case 0:
                text[place:end] = rng.randbytes(rng.randrange(4))
            case 1:
                text[place:place] = rng.choice(WORDS).encode()
            case 2:
                text[place:end] = text[place:end] * 2
            case 3:
                del text[place:end]
            case 4:
                _swap_a_word(text, rng)
            case _:
                _move_a_line(text, rng)
    return bytes(text)


def _swap_a_word(text: bytearray, rng: random.Random) -> None:
    found = list(re.finditer(rb"[\w.-]+", bytes(text)))
    if found:
        one = rng.choice(found)
        text[one.start() : one.end()] = rng.choice(WORDS).encode()


def _move_a_line(text: bytearray, rng: random.Random) -> None:
    lines = bytes(text).split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), b" " * rng.randrange(3) + line)
    text[:] = b"\n".join(lines)


@pytest.mark.spec("POL-1")
@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_policy_or_a_coded_error(data: bytes) -> None:
    tried(data)


@pytest.mark.spec("POL-1")
@settings(max_examples=examples(100), deadline=None)
@given(
    st.text(alphabet=st.sampled_from("modicu:{}[]-'\"\n ,&*!|>#?%@`0.e~"), max_size=80)
)
def test_any_text_gives_a_policy_or_a_coded_error(text: str) -> None:
    tried(text.encode("utf-8", "surrogatepass"))


@pytest.mark.spec("POL-1")
@pytest.mark.soak
def test_a_text_with_a_few_things_wrong_gives_a_policy_or_a_coded_error() -> None:
    print(f"seed {seed()}")
    for number in range(examples(500)):
        rng = random.Random(f"{seed()}/{number}")
        data = mutated(SEEDS[number % len(SEEDS)], rng)
        try:
            tried(data)
        except InputError:
            raise
        except BaseException as error:
            message = f"{error!r} for mutant {number} of seed {seed()}: {data!r}"
            raise AssertionError(message) from error


def test_the_texts_that_are_mutated_are_valid() -> None:
    for data in SEEDS:
        compile_text(data, "policy.yaml").refuse_mistakes()
