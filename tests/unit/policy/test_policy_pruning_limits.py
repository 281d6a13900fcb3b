"""Pruning of policies that are small to write and large to compare."""

from __future__ import annotations

import pytest

from modicum.policy.compiler import compile_text
from modicum.policy.pruning import logic

HEAD = """
modicum: policy/v1
name: large
units: {user: {id: user_id}}
schema: {attributes: {age: low}}
"""


def many_extensions(count: int) -> str:
    """Return a policy of 3**count rules: each extension has a label of its own."""
    labels = "".join(
        f"  l{n}: {{values: [a, b, c], default: a}}\n" for n in range(count)
    )
    extensions = "".join(
        f"  - name: e{n}\n    settings:\n"
        f"      a{n}: {{when: 'm.l{n} == \"a\"', budget: same}}\n"
        f"      b{n}: {{when: 'm.l{n} != \"c\"', budget: same}}\n"
        f"      c{n}: {{when: 'true', budget: same}}\n"
        for n in range(count)
    )
    return (
        f"{HEAD}labels:\n{labels}"
        "policies: [{name: p, when: 'true', unit: user, budget: {eps: 1}}]\n"
        f"extensions:\n{extensions}"
    )


@pytest.mark.spec("POL-2")
def test_thousands_of_contexts_are_compared_by_their_extensions() -> None:
    found = compile_text(many_extensions(7).encode(), "policy.yaml")
    assert len(found.rules) == 3**7
    (kept,) = found.pruned.kept
    assert found.rules.rule_id(kept) == "p @c0 @c1 @c2 @c3 @c4 @c5 @c6"
    assert set(found.pruned.witness) == {-1, kept}


def test_after_too_many_questions_rules_are_kept_rather_than_guessed_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = "".join(
        f"  - {{name: p{n}, when:"
        f" 'release.purpose.contains(\"{'ab'[n % 2] * (n + 1)}\")',"
        " unit: user, budget: {eps: 1}}\n"
        for n in range(8)
    )
    text = f"{HEAD}policies:\n{texts}".encode()
    kept = set(compile_text(text, "policy.yaml").pruned.kept)
    assert kept == {0, 1}
    monkeypatch.setattr(logic, "QUESTIONS_MAX", 30)
    some = compile_text(text, "policy.yaml").pruned
    assert kept < set(some.kept)
    for number, witness in enumerate(some.witness):
        assert witness in (-1, *some.kept), number
