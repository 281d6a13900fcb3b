"""A private choice of `modicum risk choose`, under a reservation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import typer

from modicum.cli.exit_codes import Exit
from modicum.cli.output import note, print_decision
from modicum.core.errors import Code, InputError

if TYPE_CHECKING:
    from modicum.risk.choice import Choice
    from modicum.risk.question import Question

#: What a release lacks that says nothing of some unit.
_OF_UNITS = frozenset({Code.COST_MISSING, Code.COST_NOT_DERIVABLE})


@dataclass(frozen=True, slots=True)
class Charging:
    """What is said of the release that a private choice is.

    Attributes:
        release: Its id.
        charge: The unit that a person is, and others with what they lose.
        attributes: What the query reads.
        ledger: Where it is charged.
        actor: Who does it.
        as_json: Whether JSON is printed.
    """

    release: str | None
    charge: Sequence[str] | None
    attributes: str | None
    ledger: str
    actor: str | None
    as_json: bool

    def run(
        self, choose: Callable[[], Choice], question: Question, eps: Fraction
    ) -> Choice:
        """Return what is chosen under a reservation; leave if that is denied.

        Args:
            choose: Makes the choice.
            question: The query.
            eps: What the choice costs.

        Raises:
            BadParameter: If something is missing.
            ModicumError: If the release or the choice is not as it must be.
        """
        from modicum.cli.ledger_access import open_workspace
        from modicum.risk.measurement.attributes import attributes_read
        from modicum.risk.measurement.charge import (
            charged,
            must_be_of_persons,
            selection_release,
        )

        if self.release is None or self.charge is None:
            raise typer.BadParameter(
                "a private choice is charged: name the release that it is, and whom it"
                " is charged to: --release ID --charge UNIT",
                param_hint="--choice",
            )
        release = self.release
        unit, others = _units(self.charge)
        named = None if self.attributes is None else self.attributes.split(",")
        attributes = attributes_read(question, named)
        workspace = open_workspace(self.ledger, actor=self.actor)
        must_be_of_persons(workspace.policy().policy.vocabulary, unit, question.unit)
        draft = selection_release(
            release, unit=unit, attributes=attributes, eps=eps, others=others
        )
        with _naming_units():
            decision, found = charged(
                workspace,
                draft,
                choose,
                begun=lambda: note(f"{release}: started; its loss is spent"),
            )
        if found is None:
            print_decision(decision, as_json=self.as_json)
            raise typer.Exit(Exit.DENIED)
        return found


def _units(given: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the unit that a person is, and what others lose."""
    persons = [one for one in given if "=" not in one]
    if len(persons) != 1:
        raise typer.BadParameter(
            "name the one unit that a person is, and others with what they lose by a"
            " proof of yours: --charge patient --charge doctor=2",
            param_hint="--charge",
        )
    others: dict[str, str] = {}
    for one in given:
        unit, equals, eps = one.partition("=")
        if equals and (unit in others or unit == persons[0] or not (unit and eps)):
            raise typer.BadParameter(
                f"write UNIT=EPS once for each other unit, not `{one}`",
                param_hint="--charge",
            )
        if equals:
            others[unit] = eps
    return persons[0], others


@contextmanager
def _naming_units() -> Iterator[None]:
    """Say how other units are charged, where one has no loss."""
    try:
        yield
    except InputError as error:
        if error.code not in _OF_UNITS:
            raise
        why = "that a choice loses its epsilon is proven for the persons alone"
        remedy = (
            "give what it loses for all rows of one instance, by a proof of your own:"
            " `--charge UNIT=EPS`; or choose by data-independent, which costs nothing"
        )
        raise InputError(
            *(
                replace(one, notes=(*one.notes, why), help=remedy)
                for one in error.problems
            )
        ) from error
