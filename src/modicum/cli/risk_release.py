"""The release that follows from a choice, as a file that can be pasted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from modicum.risk.choice import Choice
    from modicum.risk.question import Question

#: A placeholder for the unit of a policy, where each row is a person.
_PERSON: Final = "person"
#: By the kind of noise, the norm of its sensitivity and its parameter.
_KINDS: Final = {"laplace": ("l1", "scale"), "gaussian": ("l2", "sigma")}


@dataclass(frozen=True, slots=True)
class RiskQuery:
    """The facts about a query, and the policy that it is released under.

    Attributes:
        question: The query.
        charge: The unit that a person is, if given; others as UNIT=EPS.
        attributes: The attributes that it reads, if given.
    """

    question: Question
    charge: Sequence[str] | None = None
    attributes: str | None = None

    def release(self, choice: Choice) -> dict[str, Any] | None:
        """Return the release at a chosen epsilon, as in a release file.

        Names are those of the policy, if given; else those of the data.
        """
        from modicum.risk.measurement.facts import attributes_read

        if choice.charge is None or choice.charge.release is None:
            return None
        named = None if self.attributes is None else self.attributes.split(",")
        release = choice.charge.release
        norm, parameter = _KINDS[release["kind"]]
        return {
            "release": "NAME",
            "epsilon_choice": f"{choice.claim.value} by {choice.method}",
            "mechanisms": [
                {
                    "mechanism": release["kind"],
                    "attributes": attributes_read(self.question, named),
                    "sensitivity": {self._unit(): {norm: release[norm]}},
                    parameter: release[parameter],
                }
            ],
        }

    def _unit(self) -> str:
        given = [one for one in self.charge or () if "=" not in one]
        return given[0] if given else self.question.unit or _PERSON


def release_lines(release: Mapping[str, Any]) -> list[str]:
    """Return the lines of a release file."""
    (mechanism,) = release["mechanisms"]
    ((unit, sensitivity),) = mechanism["sensitivity"].items()
    ((norm, width),) = sensitivity.items()
    parameter = _KINDS[mechanism["mechanism"]][1]
    attributes = ", ".join(map(_text, mechanism["attributes"]))
    return [
        f"release: {release['release']}",
        f"epsilon_choice: {release['epsilon_choice']}",
        "mechanisms:",
        f"  - mechanism: {mechanism['mechanism']}",
        f"    attributes: [{attributes}]",
        f"    sensitivity: {{{_text(unit)}: {{{norm}: {width}}}}}",
        f"    {parameter}: {mechanism[parameter]}",
    ]


def _text(name: str) -> str:
    """Return a name in YAML, quoted unless it is a plain word."""
    return name if name.isascii() and name.isidentifier() else json.dumps(name)
