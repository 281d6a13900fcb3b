"""How the population was divided under the policies that a ledger held."""

from __future__ import annotations

from modicum.policy.past_units import vocabulary_of
from modicum.release import Population


def population_of(text: str) -> Population:
    """Return how a policy divides the population.

    Of a policy of a version that cannot be read any more nothing is known: it divides
    the population by nothing, so that what was said in its words stands for all.

    Args:
        text: The text of the policy, as a ledger holds it.
    """
    vocabulary = vocabulary_of(text)
    return Population() if vocabulary is None else vocabulary.population
