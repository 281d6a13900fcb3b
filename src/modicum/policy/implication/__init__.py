"""Implication: does one predicate follow from another, and if not, a counterexample."""

from modicum.policy.implication.normal_form import simplified, substituted
from modicum.policy.implication.search import (
    UndecidedError,
    counterexample,
    implies,
    satisfiable,
    witness,
)

__all__ = [
    "UndecidedError",
    "counterexample",
    "implies",
    "satisfiable",
    "simplified",
    "substituted",
    "witness",
]
