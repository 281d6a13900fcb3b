"""The canonical text of a policy, against what was written, in every layout.

A generated policy is a Python value that says of each mapping whether its keys are the
format's (their order says nothing) or the author's (their order counts).
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec import Struct

from modicum.core.document import Entries, Items, Kind, Node, Scalar, to_plain
from modicum.core.errors import Mark
from modicum.core.rationals import number_spelled, parse_number
from modicum.core.yaml_reader import read_document
from modicum.policy import parse_policy
from modicum.policy.document.canonical_form import (
    COLUMNS,
    formatted,
    reformatted,
)
from modicum.policy.document.comments import comments_of
from modicum.policy.json_schema.policy import policy_schema


class Fixed(dict[str, Any]):
    """A mapping whose keys are the format's."""


class Named(dict[Any, Any]):
    """A mapping whose keys are the author's."""


Written: TypeAlias = Any

# --- what is generated ---------------------------------------------------------

UNITS = (
    Named(user=Fixed(id="user_id")),
    Named(
        {
            "user": Fixed(id="id of the user"),
            "day": Fixed(id="no", neighbors="any-change"),
        }
    ),
    Named(
        {
            "user": Fixed(id="u"),
            "user-month": Fixed(
                id="u", time=Fixed(column="at", period="month"), within="user"
            ),
            "user-day": Fixed(
                id="u",
                time=Fixed(column="at", period="day"),
                within=["user-month", "user"],
                groups=Named(user=400),
            ),
        }
    ),
)
PREDICATES = (
    "true",
    'm.ml == "none"',
    "release.ml != 'black-box'",
    'm.ml == "none" ||\n  "age" in m.attributes',
    "release.ml in [\"none\", 'black-box'] && m.ml == \"none\" || !(m.ml == 'none')",
)
numbers = st.one_of(
    st.integers(1, 10**10).map(Decimal),
    st.decimals(Decimal("1e-17"), Decimal("0.99"), places=18),
    st.tuples(st.integers(1, 99), st.integers(-12, 12)).map(
        lambda pair: Decimal(pair[0]).scaleb(pair[1])
    ),
)
deltas = st.sampled_from([Decimal("1e-7"), Decimal("0.001"), Decimal("0.25")])
words = st.sampled_from(
    ["x", "Yes", "null", "no", "été", "a.b-c", "1st", "7", "1e3", "_"]
)
measured = st.one_of(
    numbers.map(lambda n: Fixed(rho=n)),
    numbers.map(lambda n: Fixed(mu=n)),
    st.builds(lambda eps, delta: Fixed(eps=eps, delta=delta), numbers, deltas),
    st.builds(
        lambda a, b: Fixed(rdp=Named({Decimal(8): a, Decimal(2): b})), numbers, numbers
    ),
)
budgets = st.one_of(numbers, measured, st.just("unlimited"))
points = st.lists(numbers, min_size=1, max_size=12, unique=True).map(
    lambda some: Named({one: Decimal(5) for one in some})
)
maps = st.one_of(
    st.just("same"),
    numbers.map(lambda n: Fixed(scale=n)),
    budgets.map(lambda b: Fixed(to=b)),
    numbers.map(lambda n: Fixed(add=n)),
    st.builds(lambda p: Fixed(map=p), points),
    st.builds(
        lambda p, a: Fixed(map=p, between="linear", below="proportional", above=a),
        points,
        st.sampled_from(["last", "unlimited", "error"]),
    ),
)
predicates = st.sampled_from(PREDICATES)
label_predicates = st.sampled_from([p for p in PREDICATES if "age" not in p])


def named(names: list[str], each: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return mappings of some of the names, in any order."""
    some = st.lists(st.sampled_from(names), min_size=1, unique=True)
    return some.flatmap(
        lambda chosen: st.tuples(*[each] * len(chosen)).map(
            lambda values: Named(zip(chosen, values, strict=True))
        )
    )


@st.composite
def base_policies(draw: st.DrawFn, name: str) -> Written:
    base = Fixed(name=name, unit="user")
    kind = draw(st.sampled_from(["custom", "attribute", "category"]))
    if kind == "custom":
        return Fixed(**base, when=draw(predicates), budget=draw(budgets))
    base |= {
        "for_each": kind,
        "budget": draw(named(["high", "low", "medium"], budgets)),
    }
    if kind == "attribute" and draw(st.booleans()):
        base["override"] = draw(named(["age", "gps"], budgets))
    if kind == "category" and draw(st.booleans()):
        base["levels"] = draw(named(["weak", "member", "strong"], maps))
    return Fixed(base)


@st.composite
def extensions(draw: st.DrawFn, number: int) -> Written:
    settings = Named(
        {
            f"a{number}": Fixed(
                when=draw(label_predicates), budget=draw(maps), within=f"z{number}"
            )
        }
    )
    settings[f"z{number}"] = Fixed(when="true", budget=draw(maps))
    return Fixed(name=f"e{number}", settings=settings)


@st.composite
def attributes(draw: st.DrawFn) -> Written:
    levels = st.sampled_from(["member", "strong", "weak"])
    memberships = st.one_of(st.just(Named()), named(["health", "place"], levels))
    risks = st.sampled_from(["low", "high"])
    forms = st.one_of(
        risks,
        st.tuples(risks).map(list),
        st.tuples(risks, memberships).map(list),
        st.tuples(risks, memberships, st.just("static")).map(list),
    )
    return Named(age=draw(forms), gps=draw(forms))


MESSAGES = ("bound it", 'it\'s: [a] #1 "quoted"', "- no -")
guards = st.builds(
    lambda unless, message: [Fixed(name="g", unless=unless, message=message)],
    predicates,
    st.sampled_from(MESSAGES),
)
approvals = st.lists(
    st.booleans().map(
        lambda own: Fixed(
            {
                "when": "true",
                "need": Decimal(2),
                "from": ["officer", "no"],
                "requester_may_approve": own,
            }
        )
    ),
    max_size=2,
)
#: Enough people for every approval above.
ROLES = Named(officer=["olga@example.org", "no"], no=["7", "pavel:2"])
ACTIVATION = Fixed({"need": Decimal(3), "from": ["no", "officer"]})
PARTITIONS = Named(
    country=Fixed(
        values=["CH", "no", "7"],
        immutable=["user"],
        was=Named({"EU": ["no", "7"], "true": "CH"}),
    ),
    year=Fixed(
        range=[Decimal(-5), Decimal(7)],
        was=[
            Fixed(old=Fixed({"from": Decimal(8), "to": Decimal(20)}), now=Decimal(7)),
            Fixed(old=[Decimal(30)], now=[Decimal(-5), Fixed(to=Decimal(3))]),
        ],
    ),
    zip=Decimal(900),
)
governance = st.fixed_dictionaries(
    {},
    optional={
        "guards": guards,
        "approvals": approvals,
        "disclosed_invariants": st.lists(words, unique=True),
        "roles": st.just(ROLES),
        "activation": st.just(ACTIVATION),
        "population": st.just(
            Fixed(partition_by=PARTITIONS, groups=Fixed(immutable=["user"]))
        ),
    },
)
#: How the groups above take turns; with them only.
rotations = st.builds(
    lambda active, rest: Fixed(active=Decimal(active), **rest),
    st.integers(1, 1040),
    st.fixed_dictionaries(
        {},
        optional={
            "slack": st.decimals(0, 1, places=5),
            "retired": st.sampled_from(["first-come", "closed"]),
            # Of the roles above; without any, nobody is asked which there are.
            "opened_by": st.sampled_from([["officer"], ["no", "officer"]]),
        },
    ),
)


@st.composite
def policies(draw: st.DrawFn) -> Written:
    """Return a policy in which every key may occur, and that the parser accepts."""
    bare = [Fixed(type="zcdp"), Fixed(type="approx-dp", delta=draw(deltas))]
    dp = Fixed(neighbors="add-remove", bare_budget=draw(st.sampled_from(bare)))
    dp[draw(st.sampled_from(["filter", "accountant"]))] = "zcdp-v1"
    if "accountant" in dp:
        dp["accountant"] = "rdp"
    written = Fixed(
        modicum="policy/v1",
        name=draw(words),
        dp=dp,
        units=draw(st.sampled_from(UNITS)),
        labels=Named(ml=Fixed(values=["none", "black-box", "no"], default="none")),
        schema=Fixed(
            categories=Named(health="high", place="low"), attributes=draw(attributes())
        ),
        policies=[draw(base_policies(f"p{n}")) for n in range(draw(st.integers(1, 3)))],
        **draw(governance),
    )
    if "population" in written and draw(st.booleans()):
        written["rotation"] = draw(rotations)
    if draw(st.booleans()):
        written["extensions"] = [draw(extensions(n)) for n in range(2)]
        written["per_release"] = [draw(base_policies("r"))]
    return written


# --- how it is spelled ---------------------------------------------------------


class Speller:
    """Spells a value as YAML in one of many ways, in blocks or in one line."""

    def __init__(self, seed: int, *, block: bool) -> None:
        self.random = random.Random(seed)
        self.block = block

    def text(self, written: Written) -> str:
        return "\n".join(self.lines(written)) + "\n" * self.random.randint(0, 2)

    def lines(self, written: Written) -> list[str]:
        if self.block and written and isinstance(written, Mapping):
            return [line for pair in self.pairs(written) for line in self.entry(*pair)]
        if self.block and written and isinstance(written, list):
            found = []
            for item in written:
                first, *rest = self.lines(item)
                found += [f"-   {first}", *(f"    {line}" for line in rest)]
            return found
        return [self.flow(written)]

    def entry(self, key: Any, value: Written) -> list[str]:
        head = f"{self.scalar(key)}:"
        below = self.lines(value)
        on_one_line = not (isinstance(value, Mapping | list) and value and self.block)
        if on_one_line or self.random.random() < 0.2:
            self_contained = Speller(self.random.randint(0, 99), block=False)
            return [f"{head}   {self_contained.flow(value)}"]
        return [head, *(f"   {line}" for line in below)]

    def pairs(self, written: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        pairs = list(written.items())
        if isinstance(written, Fixed):
            self.random.shuffle(pairs)
        return pairs

    def flow(self, written: Written) -> str:
        if isinstance(written, Mapping):
            pairs = (
                f"{self.scalar(k)}: {self.flow(v)}" for k, v in self.pairs(written)
            )
            return "{" + ", ".join(pairs) + "}"
        if isinstance(written, list):
            return "[" + ",  ".join(self.flow(item) for item in written) + "]"
        return self.scalar(written)

    def scalar(self, value: Any) -> str:
        if isinstance(value, bool):
            return self.random.choice([str(value), str(value).lower()])
        if isinstance(value, Decimal | int):
            number = Decimal(value)
            digits = str(number.scaleb(-3)).replace("E+", "e").replace("E", "e")
            forms = [f"{number:f}", f"{number:E}", f"{number:f}".lstrip("0") or "0"]
            return self.random.choice(
                [*forms, *([f"{digits}e3"] * ("e" not in digits))]
            )
        single = "'" + value.replace("'", "''") + "'"
        forms = [json.dumps(value), json.dumps(value, ensure_ascii=False)]
        forms += [single] * ("\n" not in value)
        forms += [value] * (value in {"user", "low", "health", "member", "same", "été"})
        return self.random.choice(forms)


def tree(written: Written, seed: int = 0, *, block: bool = False) -> Node:
    return read_document(Speller(seed, block=block).text(written).encode(), "p.yaml")


def read(text: str) -> Node:
    return read_document(text.encode(), "p.yaml")


def says(node: Node, written: Written) -> bool:
    """Return whether a tree says what was written, in the order in which it counts."""
    match node:
        case Entries(entries=entries) if isinstance(written, Mapping):
            keys = list(written)
            if len(keys) != len(entries):
                return False
            found = {key.text: (key, value) for key, value in entries}
            if isinstance(written, Fixed):
                pairs = [(*found[key], key) for key in keys if key in found]
            else:
                pairs = [(*e, key) for e, key in zip(entries, keys, strict=True)]
            return len(pairs) == len(keys) and all(
                says(key, name) and says(value, written[name])
                for key, value, name in pairs
            )
        case Items(items=items) if isinstance(written, list):
            return len(items) == len(written) and all(map(says, items, written))
        case Scalar(kind=kind, text=text):
            if isinstance(written, bool):
                return kind is Kind.BOOLEAN and text.lower() == str(written).lower()
            if isinstance(written, str):
                return kind is Kind.TEXT and text == written
            number = parse_number(text)
            return kind is Kind.NUMBER and number == Fraction(str(written))
        case _:
            return False


def unmarked(value: Any) -> Any:
    """Return a value without places, texts and digests."""
    if isinstance(value, Mark):
        return None
    names: list[str] = []
    if isinstance(value, Struct):
        names += value.__struct_fields__
    elif dataclasses.is_dataclass(value):
        names += [field.name for field in dataclasses.fields(value) if field.compare]
    if names:
        kept = [name for name in names if name not in {"text", "digest"}]
        return type(value), [(name, unmarked(getattr(value, name))) for name in kept]
    if isinstance(value, Mapping):
        return [(key, unmarked(item)) for key, item in value.items()]
    return [unmarked(item) for item in value] if isinstance(value, tuple) else value


# --- the laws ------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(policies(), st.integers(0, 999), st.booleans())
def test_the_canonical_text_says_what_was_written(
    written: Written, seed: int, block: bool
) -> None:
    node = tree(written, seed, block=block)
    assert says(node, written)
    text = formatted(node)
    assert says(read(text), written)
    assert formatted(read(text)) == text
    assert text == formatted(tree(written))  # However it was spelled.


@settings(max_examples=examples(25), deadline=None)
@given(policies(), st.integers(0, 999))
def test_it_is_the_same_policy_and_the_schema_accepts_it(
    written: Written, seed: int
) -> None:
    node = tree(written, seed)
    text = formatted(node)
    assert unmarked(parse_policy(read(text), "")) == unmarked(parse_policy(node, ""))
    VALIDATOR.validate(as_json(node))


VALIDATOR = Draft202012Validator(policy_schema())


def as_json(node: Node) -> Any:
    """Return a tree as an editor sees it: keys are texts, numbers are numbers."""
    match node:
        case Entries(entries=entries):
            return {key.text: as_json(value) for key, value in entries}
        case Items(items=items):
            return [as_json(item) for item in items]
        case Scalar(kind=Kind.NUMBER, text=text):
            number = parse_number(text)
            assert number is not None
            return number.numerator if number.denominator == 1 else float(number)
        case Scalar():
            return to_plain(node)


def changed(written: Written) -> Iterator[Written]:
    """Yield what was written with one change of what it says, at every place."""
    if isinstance(written, Mapping):
        yield from changed_mapping(written)
    elif isinstance(written, list):
        if len(written) > 1 and written[0] != written[1]:
            yield [written[1], written[0], *written[2:]]
        yield [*written, written[0] if written else "x"]
        for place, value in enumerate(written):
            for other in changed(value):
                yield [*written[:place], other, *written[place + 1 :]]
    elif isinstance(written, bool):
        yield not written
    elif isinstance(written, str):
        yield written + " "
        yield written.upper() + "'"
    else:
        yield written * 2
        yield written + 1
        yield str(written)
        yield [written]


def changed_mapping(written: Mapping[Any, Any]) -> Iterator[Written]:
    kind: Any = type(written)
    pairs = list(written.items())
    if isinstance(written, Named) and len(pairs) > 1:
        yield kind([*pairs[1:], pairs[0]])
    for place, (key, value) in enumerate(pairs):
        before, after = pairs[:place], pairs[place + 1 :]
        yield kind([*before, *after])
        for other in changed(value):
            yield kind([*before, (key, other), *after])


@settings(max_examples=examples(8), deadline=None)
@given(policies(), st.integers(0, 999))
def test_texts_differ_where_policies_do(written: Written, seed: int) -> None:
    chosen = random.Random(seed)
    others = list(changed(written))
    seen = {formatted(tree(written))}
    differ: list[Written] = []
    for other in chosen.sample(others, min(40, len(others))):
        if not any(other == one and says(tree(other), one) for one in differ):
            differ.append(other)
            seen.add(formatted(tree(other)))
    assert len(seen) == len(differ) + 1


@settings(max_examples=examples(20), deadline=None)
@given(policies())
def test_lines_are_short_and_the_end_is_one_line_break(written: Written) -> None:
    text = formatted(tree(written))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    for line in text.splitlines():
        assert line == line.rstrip()
        bare = line.lstrip(" -")
        if len(line) > COLUMNS:  # Only what cannot be broken.
            assert says_one_thing(bare), line


def says_one_thing(line: str) -> bool:
    node = read(line)
    while isinstance(node, Entries) and len(node.entries) == 1:
        node = node.entries[0][1]
    return isinstance(node, Scalar)


# --- comments ------------------------------------------------------------------


def remarked(text: str, seed: int) -> tuple[str, list[str]]:
    """Return a text with comments on some lines and between them, and what they say."""
    chosen = random.Random(seed)
    lines: list[str] = []
    comments: list[str] = []
    for line in text.splitlines():
        while chosen.random() < 0.15:
            comments.append(f'# remark {len(comments)}: it\'s "this" {{#}}')
            lines += [" " * chosen.randint(0, 9) + comments[-1]]
            lines += [""] * chosen.randint(0, 2)
        behind = ""
        if chosen.random() < 0.2 and line:
            behind = f"#behind {len(comments)}"
            comments.append(behind)
        lines.append(f"{line} {behind}".rstrip())
    comments += ["# the end"]
    return "\n".join([*lines, "", comments[-1]]) + "\n", comments


@settings(max_examples=examples(60), deadline=None)
@given(policies(), st.integers(0, 999), st.booleans())
def test_a_new_layout_keeps_every_comment_once(
    written: Written, seed: int, block: bool
) -> None:
    text, comments = remarked(Speller(seed, block=block).text(written), seed)
    laid_out = reformatted(text.encode(), "p.yaml")
    assert says(read(laid_out), written)
    assert comments_of(laid_out, read(laid_out)).texts() == sorted(comments)
    own_lines = [
        line.strip() for line in laid_out.splitlines() if "# " in line or "#b" in line
    ]
    assert [line for line in own_lines if line.startswith("#")] == [
        line for line in own_lines if line in set(comments)
    ]
    assert reformatted(laid_out.encode(), "p.yaml") == laid_out
    bare = [line for line in laid_out.splitlines() if not line.strip().startswith("#")]
    assert formatted(read("\n".join(bare))) == formatted(tree(written))


@pytest.mark.parametrize(
    ("text", "laid_out"),
    [
        (
            "name: >- # a\n  b # c\n# d\nmodicum: x # e\n",
            '# d\n# e\nmodicum: x\n# a\nname: "b # c"\n',
        ),
        (
            "guards:\n  - unless: | # a\n      true # b\n\n    # c\n    name: g # d\n",
            'guards:\n  # a\n  # c\n  # d\n  - {name: g, unless: "true # b\\n"}\n',
        ),
        ("name: |\n  a\n  # b\n# c\n\n# d", 'name: "a\\n# b\\n"\n\n# c\n\n# d\n'),
        (
            "labels: {ml: {values: [a, # b\n c, # d\n # e\n f]}} # g",
            "# b\nlabels:\n  ml:\n    values:\n      - a\n      # d\n      - c\n"
            "      # e\n      # g\n      - f\n",
        ),
        (
            "units: {user: &u {id: x}} # a\n# b\nlabels: {day: *u} # c\n",
            "# a\nunits:\n  user: {id: x}\n\n# b\n# c\nlabels:\n  day: {id: x}\n",
        ),
        (
            "%YAML 1.2 # a\n--- # b\n# c\nname: x\n... # d\n",
            "# a\n# b\n# c\n# d\nname: x\n",
        ),
        ("# a\r\n\r\nname: x # b\r\n# c\r\n", "# a\n\n# b\nname: x\n\n# c\n"),
        ('name: "a\n  # b\n  c" # d\n', '# d\nname: "a # b c"\n'),
        ("name: # a\n  # b\n  x # c\n", "# a\n# b\n# c\nname: x\n"),
        (
            "include:\n- # a\n  - b # c\n- # d\n  # e\n  f\n",
            "include:\n  # a\n  # c\n  - [b]\n  # d\n  # e\n  - f\n",
        ),
        ('{"name": ["a", 1]# b\n}', "# b\nname: [a, 1]\n"),
        ("# a\n{} # b", "# a\n# b\n{}\n"),
    ],
)
def test_comments_in_odd_places_are_kept(text: str, laid_out: str) -> None:
    assert reformatted(text.encode(), "p.yaml") == laid_out
    assert reformatted(laid_out.encode(), "p.yaml") == laid_out


# --- numbers -------------------------------------------------------------------


@settings(max_examples=examples(400), deadline=None)
@given(
    st.text("0123456789", min_size=1, max_size=64),
    st.integers(0, 64),
    st.one_of(st.none(), st.integers(-400, 400)),
    st.sampled_from(["", "-", "+"]),
)
def test_every_number_of_a_file_has_one_spelling_that_can_be_read(
    digits: str, point: int, exponent: int | None, sign: str
) -> None:
    shown = f"{sign}{digits[:point]}.{digits[point:]}".removesuffix(".")
    shown += "" if exponent is None else f"e{exponent}"
    value = parse_number(shown)
    if value is None:
        return
    spelled = number_spelled(value)
    assert parse_number(spelled) == value
    node = read(spelled)
    assert isinstance(node, Scalar)
    assert node.kind is Kind.NUMBER
    assert len(spelled) <= 64


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("0", "0"),
        ("-0.0", "0"),
        ("1.50", "1.5"),
        ("100000000", "100000000"),
        ("1000000000", "1e9"),
        ("-1234567891", "-1.234567891e9"),
        ("0.0010", "0.001"),
        ("0.00099", "9.9e-4"),
        ("0.0000001", "1e-7"),
        (".1e-6", "1e-7"),
        ("." + "1" * 63, "." + "1" * 63),
        ("9" * 64, "9" * 64),
        ("1" * 60 + "e-99", "1" * 60 + "e-99"),
        ("0.001e-400", ".001e-400"),
        ("1000e400", "1000e400"),
    ],
)
def test_the_spelling_of_numbers(value: str, spelled: str) -> None:
    number = parse_number(value)
    assert number is not None
    assert number_spelled(number) == spelled


def test_a_number_that_no_file_can_hold_is_a_fraction() -> None:
    assert number_spelled(Fraction(1, 3)) == "1/3"


# --- lists ---------------------------------------------------------------------

LONG = "x" * 80


@pytest.mark.parametrize(
    ("items", "apart"),
    [
        (("short", "short"), []),
        (("short", LONG, "short", "short"), [1, 2]),
        ((LONG, LONG), [1]),
    ],
)
def test_only_an_item_of_several_lines_stands_apart(
    items: tuple[str, ...], apart: list[int]
) -> None:
    written = [Fixed(name="g", unless="true", message=text) for text in items]
    text = formatted(tree(Fixed(guards=written)))
    blocks = re.split(r"(?=^ *- )", text, flags=re.MULTILINE)[1:]
    assert [n + 1 for n, one in enumerate(blocks) if one.endswith("\n\n")] == apart
    assert len(blocks) == len(items)


# --- texts ---------------------------------------------------------------------


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=20))
def test_every_text_comes_back(text: str) -> None:
    node = Scalar(Kind.TEXT, text, quoted=True, mark=None)
    items = Items((node, Entries(((node, node),), None)), None)
    assert to_plain(read(formatted(items))) == to_plain(items)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("word", "word"),
        ("policy/v1", "policy/v1"),
        ("parts/a.yaml", "parts/a.yaml"),
        ("été", "été"),
        ("two words", '"two words"'),
        ("it's", '"it\'s"'),
        ('say "it\'s"', "'say \"it''s\"'"),
        ("a\\b", "'a\\b'"),
        ("", '""'),
        ("1", '"1"'),
        ("1st", '"1st"'),
        ("2026-01-01", '"2026-01-01"'),
        ("No", '"No"'),
        ("null", '"null"'),
        ("1/3", '"1/3"'),
        ("a\nb", '"a\\nb"'),
        ("a\u2028'\"", '"a\\u2028\'\\""'),
    ],
)
def test_the_spelling_of_texts(text: str, spelled: str) -> None:
    entries = Entries(
        (
            (
                Scalar(Kind.TEXT, "name", quoted=False, mark=None),
                Scalar(Kind.TEXT, text, quoted=True, mark=None),
            ),
        ),
        None,
    )
    assert formatted(entries) == f"name: {spelled}\n"
