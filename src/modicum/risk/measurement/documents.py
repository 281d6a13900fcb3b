"""The JSON forms of a risk and of a choice."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from modicum.core.rationals import brief
from modicum.risk.choice import Choice
from modicum.risk.measurement.study import Risk

_SHARES: Final = {"max": 1.0, "p99": 0.99, "median": 0.5}


def risk_to_dict(risk: Risk, choice: Choice | None) -> dict[str, Any]:
    """Return the documented JSON form of a risk, and of the choice."""
    found = risk.to_dict()
    if choice is not None:
        found |= choice_to_dict(choice)
        found["candidates"] = risk.to_dict()["candidates"]
    return found


def choice_to_dict(choice: Choice) -> dict[str, Any]:
    """Return the documented JSON form of a choice."""
    document = choice.to_dict()
    return {
        "epsilon": document["epsilon"],
        "claim": document["claim"],
        "choice": document,
    }


def groups_to_dict(risk: Risk, statistic: str, choice: Choice | None) -> dict[str, Any]:
    """Return the documented JSON form of a comparison of groups."""
    found = risk_to_dict(risk, choice)
    found["statistic"] = statistic
    found["groups"] = {
        name: {
            "people": int(risk.influence.members[name].sum()),
            "indicator": {
                brief(epsilon): statistic_at(risk, statistic, epsilon, name)
                for epsilon in risk.candidates
            },
        }
        for name in risk.groups
    }
    return found


def statistic_at(
    risk: Risk, statistic: str, epsilon: Fraction, group: str
) -> float | None:
    """Return a statistic of the indicators of a group; None if it is empty."""
    if not risk.influence.members[group].sum():
        return None
    return risk.indicator.quantile(_SHARES[statistic], epsilon, group)
