"""Predicates: implication against enumeration, words and meaning against cel-python."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from itertools import combinations, product

import celpy
import pytest
from budget import examples
from celpy.adapter import json_to_cel
from celpy.celtypes import BoolType
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from modicum.accounting.mechanisms import MECHANISM_KINDS
from modicum.core.document import from_python
from modicum.policy.cel.compiler import parse_predicate
from modicum.policy.implication import search as implication
from modicum.policy.implication.search import (
    UndecidedError,
    counterexample,
    implies,
    satisfiable,
    simplified,
    substituted,
    witness,
)
from modicum.policy.predicates import (
    All,
    Any,
    Atom,
    BoundAtMost,
    Constant,
    Facts,
    LabelIn,
    Not,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    Scope,
    TextIn,
    TextPasses,
    TextTest,
    atoms,
    holds,
    predicate_text,
)
from modicum.release import Label, Vocabulary

M, RELEASE = Scope.MECHANISM, Scope.RELEASE
VOCABULARY = Vocabulary(
    attributes=frozenset({"geo_a", "geo_b", "z"}),
    labels={
        "ml": Label(("none", "grey", "black"), "none"),
        "stage": Label(("draft", "final"), "final"),
    },
    units=("user", "day"),
    neighbors="add-remove",
)
NOTHING = Constant(value=False)
EVERYTHING = Constant(value=True)

#: Every text of up to three letters; "z" is in no predicate.
TEXTS = ["".join(one) for n in range(4) for one in product("abz", repeat=n)]
PIECES = [text for text in TEXTS if "z" not in text and len(text) < 3]
BOUNDS = [1, 2, 3, 4, 5, None]
#: More mechanisms than this are not gone through.
COMBINATIONS_MAX = 5_000


# --- what is generated ---------------------------------------------------------


def subsets(values: tuple[str, ...] | list[str]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(values), max_size=3)


scopes = st.sampled_from([M, RELEASE])
atom_kinds: dict[str, st.SearchStrategy[Predicate]] = {
    "constant": st.booleans().map(Constant),
    "ml": st.builds(LabelIn, scopes, st.just("ml"), subsets(("none", "grey", "black"))),
    "stage": st.builds(LabelIn, scopes, st.just("stage"), subsets(("draft", "final"))),
    "text": st.builds(TextIn, st.just(RELEASE), st.just("purpose"), subsets(PIECES)),
    "passes": st.builds(
        TextPasses,
        st.just(RELEASE),
        st.just("purpose"),
        st.sampled_from(TextTest),
        st.sampled_from(PIECES),
    ),
    "kind": st.builds(
        TextIn, st.just(M), st.just("mechanism"), subsets(["gaussian", "laplace"])
    ),
    "reads": st.builds(ReadsAny, subsets(sorted(VOCABULARY.attributes))),
    "size": st.builds(ReadsAtLeast, st.integers(0, 3)),
    "bound": st.builds(
        BoundAtMost,
        st.sampled_from(["user", "day"]),
        st.one_of(st.none(), st.integers(0, 4)),
    ),
}


def compound(atom: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    return st.recursive(
        atom,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.lists(inner, max_size=3).map(lambda parts: All(tuple(parts))),
            st.lists(inner, max_size=3).map(lambda parts: Any(tuple(parts))),
        ),
        max_leaves=7,
    )


#: Predicates about few things, so that parts have something to do with each other.
predicates = st.lists(
    st.sampled_from(sorted(atom_kinds)), min_size=1, max_size=3
).flatmap(lambda kinds: compound(st.one_of(*(atom_kinds[kind] for kind in kinds))))


@st.composite
def pairs(draw: st.DrawFn, known: tuple[str, ...]) -> tuple[Predicate, Predicate]:
    """Return two predicates over few things; often one should imply the other."""
    kinds = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    some = compound(st.one_of(*(atom_kinds[kind] for kind in kinds)))
    one, other, third = draw(some), draw(some), draw(some)
    return draw(
        st.sampled_from(
            [
                (one, other),
                (All((one, Not(other))), third),
                (Any((one, other)), Any((other, third))),
                (All((one, other)), All((Any((third, one)), other))),
                (All((one, Any((other, third)))), Any((All((one, other)), third))),
                (Not(Any((one, other))), Not(All((one, third)))),
                (one, Any((All((one, other)), All((one, Not(other)))))),
            ]
        )
    )


# --- the oracle: every mechanism there is --------------------------------------


def key_of(atom: Atom) -> tuple[object, ...] | None:
    match atom:
        case LabelIn(scope=scope, label=name):
            return "label", scope, name
        case TextIn(scope=scope, field=name) | TextPasses(scope=scope, field=name):
            return "text", scope, name
        case ReadsAny() | ReadsAtLeast():
            return ("attributes",)
        case BoundAtMost(unit=unit):
            return "bound", unit
        case Constant():
            return None


def domain(key: tuple[object, ...]) -> list[object]:
    match key:
        case ("label", _, str(name)):
            return list(VOCABULARY.labels[name].values)
        case ("text", _, "mechanism"):
            return list(MECHANISM_KINDS)
        case ("text", _, _):
            return list(TEXTS)
        case ("bound", _):
            return list(BOUNDS)
        case _:
            known = sorted(VOCABULARY.attributes)
            sizes = range(len(known) + 1)
            return [frozenset(c) for n in sizes for c in combinations(known, n)]


def all_facts(*looked_at: Predicate) -> Iterator[Facts]:
    keys = {key_of(atom) for one in looked_at for atom in atoms(one)} - {None}
    known = [key for key in keys if key is not None]
    domains = [domain(key) for key in known]
    if math.prod(map(len, domains)) > COMBINATIONS_MAX:
        reject()
    for chosen in product(*domains):
        yield facts_from(dict(zip(known, chosen, strict=True)))


def facts_from(chosen: Mapping[tuple[object, ...], object]) -> Facts:
    attributes = chosen.get(("attributes",), frozenset())
    assert isinstance(attributes, frozenset)
    return Facts(
        attributes,
        {
            (scope, name): str(chosen.get(("label", scope, name), label.default))
            for name, label in VOCABULARY.labels.items()
            for scope in Scope
        },
        {(k[1], k[2]): v for k, v in chosen.items() if k[0] == "text"},  # type: ignore[misc]
        {
            str(key[1]): bound
            for key, bound in chosen.items()
            if key[0] == "bound" and isinstance(bound, int)
        },
    )


# --- implication ---------------------------------------------------------------


#: Kinds of atoms that limit each other are tried by themselves, too.
MIXTURES = [
    (tuple(sorted(atom_kinds)), 400),
    (("reads", "size"), 300),
    (("text", "passes"), 200),
]


@pytest.mark.parametrize(("kinds", "count"), MIXTURES)
def test_implication_is_what_enumeration_says(
    kinds: tuple[str, ...], count: int
) -> None:
    @settings(max_examples=examples(count), deadline=None)
    @given(pairs(kinds))
    def check(pair: tuple[Predicate, Predicate]) -> None:
        compare_with_enumeration(*pair)

    check()


@st.composite
def clauses(draw: st.DrawFn, kinds: tuple[str, ...]) -> Predicate:
    """Return a conjunction whose parts leave little room: a search must turn back."""
    atom = st.one_of(*(atom_kinds[kind] for kind in kinds))
    literal = st.one_of(
        atom, st.builds(Not, atom), st.builds(lambda *p: All(p), atom, atom)
    )
    clause = st.lists(literal, min_size=2, max_size=3).map(lambda p: Any(tuple(p)))
    return All(tuple(draw(st.lists(clause, min_size=5, max_size=14))))


@pytest.mark.parametrize(
    "kinds",
    [("ml", "stage"), ("reads", "size", "stage"), ("passes", "passes", "ml", "text")],
)
def test_narrow_questions_are_what_enumeration_says(kinds: tuple[str, ...]) -> None:
    @settings(max_examples=examples(150), deadline=None)
    @given(clauses(kinds), st.one_of(atom_kinds[kinds[0]], st.just(NOTHING)))
    def check(narrow: Predicate, wide: Predicate) -> None:
        compare_with_enumeration(narrow, wide)

    check()


@st.composite
def alternatives(draw: st.DrawFn, kinds: tuple[str, ...]) -> Predicate:
    """Return a choice of conjunctions, each with a clause that may contradict it."""
    atom = st.one_of(*(atom_kinds[kind] for kind in kinds))
    literal = st.one_of(atom, st.builds(Not, atom))
    clause = st.lists(literal, min_size=2, max_size=3).map(lambda p: Any(tuple(p)))
    parts = st.lists(st.one_of(literal, clause), min_size=2, max_size=4)
    both = parts.map(lambda p: All(tuple(p)))
    return Any(tuple(draw(st.lists(both, min_size=2, max_size=3))))


@pytest.mark.parametrize("kinds", [("ml", "stage"), ("reads", "ml")])
def test_choices_that_contradict_themselves_are_what_enumeration_says(
    kinds: tuple[str, ...],
) -> None:
    @settings(max_examples=examples(300), deadline=None)
    @given(alternatives(kinds), st.one_of(atom_kinds[kinds[0]], st.just(NOTHING)))
    def check(narrow: Predicate, wide: Predicate) -> None:
        compare_with_enumeration(narrow, wide)

    check()


def test_two_values_asked_for_at_once_are_impossible_however_deep() -> None:
    """Two literals of one variable that meet only after others are decided."""
    one = (
        '("{0}" in m.attributes && m.ml == "none" &&'
        ' (m.ml != "none" || !("{0}" in m.attributes)))'
    )
    when = f"{one.format('z')} || {one.format('geo_a')}"
    assert not satisfiable(parsed(when), VOCABULARY)


def compare_with_enumeration(narrow: Predicate, wide: Predicate) -> None:
    breaks = [
        facts
        for facts in all_facts(narrow, wide)
        if holds(narrow, facts) and not holds(wide, facts)
    ]
    found = witness(narrow, wide, VOCABULARY)
    event(f"implied: {found is None}")
    assert implies(narrow, wide, VOCABULARY) == (found is None)
    assert (counterexample(narrow, wide, VOCABULARY) is None) == (found is None)
    if found is None:
        assert not breaks
    else:
        assert holds(narrow, found)
        assert not holds(wide, found)
        assert found.attributes <= VOCABULARY.attributes


@settings(max_examples=examples(300), deadline=None)
@given(predicates)
def test_satisfiable_is_what_enumeration_says(predicate: Predicate) -> None:
    some = any(holds(predicate, facts) for facts in all_facts(predicate))
    found = witness(predicate, NOTHING, VOCABULARY)
    assert satisfiable(predicate, VOCABULARY) == (found is not None)
    assert found is None or holds(predicate, found)
    assert not some or found is not None


@settings(max_examples=examples(400), deadline=None)
@given(predicates)
def test_simplifying_keeps_the_meaning(predicate: Predicate) -> None:
    simple = simplified(predicate)
    assert simplified(simple) == simple
    for facts in all_facts(predicate):
        assert holds(simple, facts) == holds(predicate, facts)


@settings(max_examples=examples(200), deadline=None)
@given(predicates, st.sampled_from(["none", "grey", "black"]))
def test_substituting_is_giving_the_label_everywhere(
    predicate: Predicate, value: str
) -> None:
    left = substituted(predicate, "ml", value)
    assert not any(isinstance(a, LabelIn) and a.label == "ml" for a in atoms(left))
    for facts in all_facts(predicate):
        if facts.labels[M, "ml"] == facts.labels[RELEASE, "ml"] == value:
            assert holds(left, facts) == holds(predicate, facts)


SAME_SUBJECT: dict[str, list[Predicate]] = {
    "labels": [
        LabelIn(M, "ml", frozenset(v)) for v in ((), ("none",), ("none", "grey"))
    ],
    "texts": [
        TextIn(M, "name", frozenset(v)) for v in ((), ("a",), ("a", "b"), ("b",))
    ],
    "reads": [ReadsAny(frozenset(v)) for v in ((), ("z",), ("geo_a",), ("geo_a", "z"))],
    "sizes": [ReadsAtLeast(count) for count in range(4)],
    "bounds": [BoundAtMost("user", limit) for limit in (None, 0, 1, 3)],
}


@pytest.mark.parametrize("kind", sorted(SAME_SUBJECT))
def test_two_atoms_about_the_same_thing_become_the_right_one(kind: str) -> None:
    atoms_and_denials: list[Predicate] = [
        one for atom in SAME_SUBJECT[kind] for one in (atom, Not(atom))
    ]
    junctions: tuple[type[All | Any], ...] = (All, Any)
    for junction, parts in product(junctions, product(atoms_and_denials, repeat=2)):
        predicate = junction(parts)
        simple = simplified(predicate)
        assert simplified(simple) == simple
        for facts in all_facts(predicate):
            assert holds(simple, facts) == holds(predicate, facts)


def test_the_order_of_parts_does_not_matter_once_simplified() -> None:
    one, other = ReadsAtLeast(2), LabelIn(M, "ml", frozenset({"grey"}))
    assert simplified(All((one, other))) == simplified(All((other, All((one,)))))


def test_all_attributes_of_a_group_can_be_read() -> None:
    pair = ReadsAny(frozenset({"geo_a", "geo_b"}))
    found = witness(All((pair, ReadsAtLeast(3))), NOTHING, VOCABULARY)
    assert found is not None
    assert found.attributes == VOCABULARY.attributes
    one = All((pair, Not(ReadsAny(frozenset({"z"}))), ReadsAtLeast(2)))
    assert satisfiable(one, VOCABULARY)
    assert not satisfiable(All((one, ReadsAtLeast(3))), VOCABULARY)


def test_parts_that_share_a_text_are_decided_together() -> None:
    """The first choice that comes to mind, a start with "a", is the wrong one."""

    def starts(part: str) -> Predicate:
        return TextPasses(RELEASE, "purpose", TextTest.STARTS_WITH, part)

    grey = All(tuple(LabelIn(scope, "ml", frozenset({"grey"})) for scope in Scope))
    draft = LabelIn(M, "stage", frozenset({"draft"}))
    either = Any((All((starts("b"), draft)), All((starts("b"), Not(draft)))))
    found = witness(All((Any((starts("a"), grey)), either)), NOTHING, VOCABULARY)
    assert found is not None
    assert found.labels[M, "ml"] == "grey"


def test_parts_that_share_the_size_are_decided_together() -> None:
    grey = All(tuple(LabelIn(scope, "ml", frozenset({"grey"})) for scope in Scope))
    draft = LabelIn(M, "stage", frozenset({"draft"}))
    first, second = ReadsAny(frozenset({"geo_a"})), ReadsAny(frozenset({"geo_b"}))
    either = Any((All((second, draft)), All((second, Not(draft)))))
    few = Not(ReadsAtLeast(2))
    found = witness(All((Any((first, grey)), either, few)), NOTHING, VOCABULARY)
    assert found is not None
    assert found.attributes == {"geo_b"}


# --- big questions, bounded by steps -------------------------------------------


def many(count: int) -> Vocabulary:
    return Vocabulary(
        frozenset(f"a{n}" for n in range(count)),
        {f"l{n}": Label(("w", "x", "y", "z"), "w") for n in range(15)},
        ("user",),
        "add-remove",
    )


def few_steps(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(implication, "STEPS_MAX", most)


def test_large_sets_of_attributes_take_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vocabulary = many(301)
    names = sorted(vocabulary.attributes)
    narrow, wide = ReadsAny(frozenset(names[:300])), ReadsAny(frozenset(names))
    few_steps(monkeypatch, 20)
    assert implies(narrow, wide, vocabulary)
    assert counterexample(wide, narrow, vocabulary) == {"m.attributes": names[300]}
    few_steps(monkeypatch, 5_000)
    single = Any(tuple(ReadsAny(frozenset({name})) for name in names))
    assert implies(narrow, single, vocabulary)
    assert implies(single, wide, vocabulary)
    assert not implies(single, narrow, vocabulary)
    assert implies(wide, ReadsAtLeast(1), vocabulary)
    assert implies(ReadsAtLeast(2), narrow, vocabulary)
    assert witness(ReadsAtLeast(1), narrow, vocabulary) is not None


def test_fifteen_labels_of_four_values_take_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vocabulary = many(1)

    def label(n: int, *values: str) -> Predicate:
        return LabelIn(M, f"l{n % 15}", frozenset(values))

    links = [Any((label(n, "w", "x"), label(n + 1, "y", "z"))) for n in range(14)]
    narrow = All((label(14, "w", "x"), *links))
    few_steps(monkeypatch, 5_000)
    assert implies(narrow, label(0, "w", "x"), vocabulary)
    assert implies(
        narrow, All(tuple(label(n, "w", "x") for n in range(15))), vocabulary
    )
    assert not implies(narrow, label(0, "w"), vocabulary)
    same = Any(tuple(All((label(n, "w"), label(n + 1, "x"))) for n in range(15)))
    assert implies(same, Any(tuple(label(n, "x") for n in range(15))), vocabulary)


def test_independent_parts_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each half has many answers; only the last one has none."""
    vocabulary = many(1)

    def differ(one: int, other: int) -> Predicate:
        values = [frozenset({value}) for value in "wxyz"]
        same = [
            All((LabelIn(M, f"l{one}", v), LabelIn(M, f"l{other}", v))) for v in values
        ]
        return Not(Any(tuple(same)))

    free = [differ(n, n + 1) for n in range(9)]
    five = [differ(a, b) for a, b in combinations(range(10, 15), 2)]
    few_steps(monkeypatch, 100_000)
    assert not satisfiable(All((*free, *five)), vocabulary)
    assert satisfiable(All((*free, *five[1:])), vocabulary)


def test_deep_nesting_is_decided() -> None:
    nested: Predicate = ReadsAtLeast(2)
    for n in range(60):
        label = LabelIn(M, "ml", frozenset({("none", "grey", "black")[n % 3]}))
        nested = Not(All((nested, Any((label, ReadsAtLeast(n % 4))))))
    for facts in all_facts(nested):
        assert holds(simplified(nested), facts) == holds(nested, facts)
    assert satisfiable(nested, VOCABULARY)
    assert implies(nested, simplified(nested), VOCABULARY)
    assert implies(simplified(nested), nested, VOCABULARY)


def test_what_takes_too_long_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch, 3)
    one = LabelIn(M, "ml", frozenset({"grey"}))
    narrow, wide = All((one, ReadsAtLeast(2))), All((one, ReadsAtLeast(1)))
    with pytest.raises(UndecidedError, match="not decided in 3 steps"):
        counterexample(narrow, wide, VOCABULARY)
    assert not implies(narrow, wide, VOCABULARY)
    assert satisfiable(All((narrow, Not(wide))), VOCABULARY)
    assert issubclass(UndecidedError, ValueError)


# --- what people read ----------------------------------------------------------


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        ("true", 'm.ml == "none"', {"m.ml": "grey"}),
        ("true", '!("z" in m.attributes)', {"m.attributes": "z"}),
        ("true", "size(m.attributes) > 0", {"m.attributes": "none"}),
        ('m.mechanism != "gaussian"', 'm.name == "x"', None),
        (
            'release.purpose != "a"',
            'release.purpose == "b"',
            {"release.purpose": "something-else"},
        ),
        (
            'release.purpose.contains("a")',
            'release.purpose.startsWith("a")',
            {"release.purpose": "bab"},
        ),
        (
            "true",
            'm.contribution_bound["user"] <= 3',
            {'m.contribution_bound["user"]': "4"},
        ),
        (
            '!("user" in m.contribution_bound)',
            'm.contribution_bound["user"] <= 3',
            {'m.contribution_bound["user"]': "absent"},
        ),
    ],
)
def test_a_counterexample_is_told_by_path(
    narrow: str, wide: str, expected: dict[str, str] | None
) -> None:
    found = counterexample(parsed(narrow), parsed(wide), VOCABULARY)
    assert found is not None
    if expected is None:
        assert found["m.mechanism"] in MECHANISM_KINDS
        assert set(found) == {"m.mechanism", "m.name"}
    else:
        assert dict(found) == expected


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ('release.purpose.startsWith("ab")', 'release.purpose.startsWith("a")'),
        ('release.purpose.startsWith("ab")', 'release.purpose.contains("b")'),
        ('release.purpose in ["ab", "cab"]', 'release.purpose.endsWith("ab")'),
        (
            'release.purpose.startsWith("a") && release.purpose.startsWith("b")',
            'release.purpose == "c"',
        ),
        ('release.purpose == ""', '!release.purpose.contains("a")'),
        ('m.mechanism.startsWith("discrete-")', 'm.mechanism != "gaussian"'),
        ("size(m.attributes) > 2", 'm.attributes.exists(a, a.startsWith("geo"))'),
        ("size(m.attributes) == 1", "size(m.attributes) < 2"),
        ('m.contribution_bound["user"] < 3', 'm.contribution_bound["user"] <= 2'),
        ('m.contribution_bound["user"] == 3', '"user" in m.contribution_bound'),
    ],
)
def test_implications_that_need_the_meaning_of_functions(
    narrow: str, wide: str
) -> None:
    assert implies(parsed(narrow), parsed(wide), VOCABULARY)
    assert not implies(parsed(wide), parsed("false"), VOCABULARY)


# --- words and meaning ---------------------------------------------------------


def parsed(when: str) -> Predicate:
    return parse_predicate(from_python(when), "`when`", VOCABULARY)


@settings(max_examples=examples(400), deadline=None)
@given(predicates)
def test_words_parse_back_to_the_predicate(predicate: Predicate) -> None:
    simple = simplified(predicate)
    assert simplified(parsed(predicate_text(simple))) == simple
    assert simplified(parsed(predicate_text(predicate))) == simple


awkward = st.text(
    st.one_of(
        st.sampled_from("\\\"'\n\t\r/ aé\u00a0\u2028\u202e\U0001f4a5\x00"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=8,
)


@settings(max_examples=examples(300), deadline=None)
@given(awkward, awkward.filter(bool))
def test_any_text_survives_words(value: str, part: str) -> None:
    predicate = All(
        (
            TextIn(RELEASE, "purpose", frozenset({value})),
            TextPasses(RELEASE, "dataset", TextTest.CONTAINS, part),
        )
    )
    assert parsed(predicate_text(predicate)) == predicate


LITERALS = st.sampled_from(PIECES).map(lambda text: f'"{text}"')
ATTRIBUTES = st.sampled_from(['"geo_a"', "'geo_b'", '"z"'])
COMPARED = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
NUMBERS = st.integers(-1, 5).map(str)


def listing(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(items, max_size=3).map(lambda some: f"[{', '.join(some)}]")


def filled(pattern: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda some: pattern.format(*some))


FIELDS = st.sampled_from(["release.purpose", "m.name", "release.dataset"])
TESTS = st.sampled_from(["startsWith", "endsWith", "contains"])
NUMERIC = st.sampled_from(
    [
        "size(m.attributes)",
        "m.attributes.size()",
        'm.contribution_bound["user"]',
        'm.contribution_bound["day"]',
        "size([1, 2])",
    ]
)
UNITS = st.sampled_from(['"user"', '"day"'])
texts_about = st.one_of(
    st.sampled_from(["true", "false"]),
    filled("m.ml == {}", st.sampled_from(['"none"', '"grey"'])),
    filled("{} != release.stage", st.sampled_from(['"draft"', '"final"'])),
    filled("m.ml in {}", listing(st.sampled_from(['"none"', '"black"']))),
    filled("{} == {}", FIELDS, LITERALS),
    filled("{} in {}", FIELDS, listing(LITERALS)),
    filled("{}.{}({})", FIELDS, TESTS, LITERALS),
    filled("m.mechanism.{}({})", TESTS, st.sampled_from(['"l"', '"dis"', '"an"'])),
    filled("{} in m.attributes", ATTRIBUTES),
    filled("{} {} {}", NUMERIC, COMPARED, NUMBERS),
    filled("{} {} {}", NUMBERS, COMPARED, NUMERIC),
    filled("size(release.purpose) {}", st.sampled_from(["== 0", "> 0", "<1", "!=0"])),
    filled("{} {} {}", LITERALS, st.sampled_from(["==", "!="]), LITERALS),
    filled("{} in {}", LITERALS, listing(LITERALS)),
    filled(
        "{}.{}(x, x in m.attributes)",
        listing(ATTRIBUTES),
        st.sampled_from(["exists", "all"]),
    ),
    filled(
        "m.attributes.{}(a, a.{}({}) || a == {})",
        st.sampled_from(["exists", "all"]),
        TESTS,
        st.sampled_from(['"geo_"', '"a"', '"_"']),
        ATTRIBUTES,
    ),
    filled(
        "m.attributes.{}(a, {}.{}(b, a == b))",
        st.sampled_from(["exists", "all"]),
        listing(ATTRIBUTES),
        st.sampled_from(["exists", "all"]),
    ),
    filled(
        "m.attributes.{}(a, m.attributes.{}(b, a != b) || a in {})",
        st.sampled_from(["exists", "all"]),
        st.sampled_from(["exists", "all"]),
        listing(ATTRIBUTES),
    ),
    filled(
        "[m.ml, release.ml].{}(l, l == {})",
        st.sampled_from(["exists", "all"]),
        st.sampled_from(['"none"', '"grey"']),
    ),
    filled("{}.all(u, u in m.contribution_bound)", listing(UNITS)),
    filled("has(release.{})", st.sampled_from(["purpose", "dataset", "requester"])),
)
cel_texts = st.recursive(
    texts_about,
    lambda inner: st.one_of(
        filled("{} && {}", inner, inner),
        filled("{} || {}", inner, inner),
        filled("({} || {}) && {}", inner, inner, inner),
        filled("!({})", inner),
        filled("({}) ? ({}) : {}", inner, inner, inner),
        filled("({} || {} ? ({}) : {})", inner, inner, inner, inner),
    ),
    max_leaves=5,
)


def some_facts() -> st.SearchStrategy[Facts]:
    """Return facts without gaps: cel-python knows no unbounded entry."""
    label = {
        (scope, name): st.sampled_from(declared.values)
        for scope in Scope
        for name, declared in VOCABULARY.labels.items()
    }
    text = {
        (RELEASE, "purpose"): st.sampled_from(TEXTS),
        (RELEASE, "dataset"): st.sampled_from(PIECES),
        (RELEASE, "requester"): st.sampled_from(["", "hr"]),
        (M, "name"): st.sampled_from(PIECES),
        (M, "mechanism"): st.sampled_from(MECHANISM_KINDS),
    }
    return st.builds(
        Facts,
        st.frozensets(st.sampled_from(sorted(VOCABULARY.attributes))),
        st.fixed_dictionaries(label),
        st.fixed_dictionaries(text),
        st.fixed_dictionaries(dict.fromkeys(("user", "day"), st.integers(1, 6))),
    )


def by_cel_python(when: str, facts: Facts) -> bool:
    """Return what cel-python makes of a text; an empty text is there, and empty."""
    for name in ("purpose", "dataset", "requester"):
        when = when.replace(f"has(release.{name})", f'(release.{name} != "")')
    given: dict[str, dict[str, object]] = {"m": {}, "release": {}}
    for (scope, name), value in [*facts.labels.items(), *facts.texts.items()]:
        given[scope.value][name] = value
    given["m"]["attributes"] = sorted(facts.attributes)
    given["m"]["contribution_bound"] = dict(facts.bounds)
    limit = sys.getrecursionlimit()
    environment = celpy.Environment()
    program = environment.program(environment.compile(when))
    result = program.evaluate({name: json_to_cel(some) for name, some in given.items()})
    sys.setrecursionlimit(limit)  # The library raises it for good.
    assert isinstance(result, BoolType)
    return bool(result)


@settings(max_examples=examples(400), deadline=None)
@given(cel_texts, st.lists(some_facts(), min_size=1, max_size=3))
def test_a_text_means_what_cel_python_says(when: str, known: list[Facts]) -> None:
    predicate = parsed(when)
    written = predicate_text(predicate)
    for facts in known:
        expected = by_cel_python(when, facts)
        assert holds(predicate, facts) == expected
        assert holds(simplified(predicate), facts) == expected
        assert by_cel_python(written, facts) == expected


def test_without_a_bound_every_number_is_exceeded() -> None:
    unbounded = Facts(frozenset(), {}, {})
    bound = 'm.contribution_bound["user"]'
    for number in (-1, 0, 1, 10**6, 2**62):
        for true in (
            f"{bound} > {number}",
            f"{bound} >= {number}",
            f"{number} < {bound}",
        ):
            assert holds(parsed(true), unbounded)
            assert not holds(parsed(f"!({true})"), unbounded)
        for false in (f"{bound} < {number}", f"{bound} <= {number}"):
            assert not holds(parsed(false), unbounded)
        assert not holds(parsed(f"{bound} == {number}"), unbounded)
        assert holds(parsed(f"{bound} != {number}"), unbounded)
    assert not holds(parsed('"user" in m.contribution_bound'), unbounded)
