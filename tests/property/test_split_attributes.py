"""A predicate holds if it does for any of the names that split attributes may have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.policy.predicates import (
    All,
    Any,
    Facts,
    Not,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    holds,
)

NAMES = "abcd"
some = st.frozensets(st.sampled_from(NAMES), min_size=1)
atoms = st.one_of(st.builds(ReadsAny, some), st.builds(ReadsAtLeast, st.integers(0, 5)))
predicates = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(All, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Any, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


def choices(some_of: tuple[frozenset[str], ...]) -> Iterator[frozenset[str]]:
    """Yield all that may be read: one or more names of each."""
    subsets = [
        [
            frozenset(names)
            for size in range(1, len(one) + 1)
            for names in combinations(sorted(one), size)
        ]
        for one in some_of
    ]
    return (frozenset().union(*chosen) for chosen in product(*subsets))


@pytest.mark.spec("POL-18")
@settings(max_examples=examples(400), deadline=None)
@given(predicate=predicates, some_of=st.lists(some, min_size=1, max_size=3).map(tuple))
def test_no_choice_of_names_escapes(
    predicate: Predicate, some_of: tuple[frozenset[str], ...]
) -> None:
    facts = Facts(frozenset().union(*some_of), {}, {}, some_of=some_of)
    found = [holds(predicate, Facts(read, {}, {})) for read in choices(some_of)]
    assert holds(predicate, facts) >= any(found)
    assert holds(predicate, facts, surely=True) <= all(found)


@pytest.mark.spec("POL-18")
@settings(max_examples=examples(200), deadline=None)
@given(atom=st.builds(ReadsAny, some), some_of=st.lists(some, max_size=3).map(tuple))
def test_what_is_read_is_counted_exactly(
    atom: ReadsAny, some_of: tuple[frozenset[str], ...]
) -> None:
    facts = Facts(frozenset().union(*some_of), {}, {}, some_of=some_of)
    found = [holds(atom, Facts(read, {}, {})) for read in choices(some_of)]
    assert holds(atom, facts) == any(found)
    assert holds(Not(atom), facts) == (not all(found))
    several = Any(tuple(ReadsAny(frozenset({one})) for one in atom.attributes))
    assert holds(Not(several), facts) == (not all(found))
