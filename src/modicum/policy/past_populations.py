"""How the population was divided under the policies that a ledger held."""

from __future__ import annotations

from functools import lru_cache

from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.policy.parse import parse_policy
from modicum.release import Population

#: So many policies are remembered.
_REMEMBERED_MAX = 100


@lru_cache(maxsize=_REMEMBERED_MAX)
def population_of(text: str) -> Population:
    """Return how a policy divides the population.

    Of a policy of a version that cannot be read any more nothing is known: it divides
    the population by nothing, so that what was said in its words stands for all.

    Args:
        text: The text of the policy, as a ledger holds it.
    """
    try:
        node = read_document(text.encode("utf-8"), "a past policy")
        return parse_policy(node, text).vocabulary.population
    except InputError:
        return Population()
