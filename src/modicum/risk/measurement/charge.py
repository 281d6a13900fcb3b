"""A private choice under a reservation: charged before it reads a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from modicum.accounting.mechanisms.declared import describe_declared
from modicum.api.local import Decision, Workspace
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.release import ReleaseDraft, Vocabulary, pure_dp
from modicum.release.units import Relation
from modicum.risk.arguments import ArgumentError, Number, above_zero, argument, mistake
from modicum.risk.choice import Choice, Claim
from modicum.risk.measurement.noise import must_be_drawable
from modicum.risk.profile import RELATION
from modicum.risk.selection.rows import CHARGE_SELECTION


def selection_release(
    release: str,
    *,
    unit: str,
    attributes: Sequence[str],
    eps: Number,
    others: Mapping[str, Number] = MappingProxyType({}),
) -> ReleaseDraft:
    """Return the release that a private selection is."""
    spent = above_zero("the epsilon of the selection", eps, by="eps_select")
    known = {
        name: above_zero(f"the epsilon of `{name}`", one, by="charge")
        for name, one in others.items()
    }
    mechanism = describe_declared(
        name="selection",
        attributes=list(attributes),
        cost={name: pure_dp(one) for name, one in {**known, unit: spent}.items()},
    )
    return ReleaseDraft(release, mechanisms=[mechanism])


class NoDraws:
    """No noise, for a choice that is made of no rows: to see whether it is refused."""

    def laplace(self, scale: Fraction) -> int:
        """Return 0."""
        must_be_drawable(scale)
        return 0


def uncharged(choice: Choice) -> Choice:
    """Return a choice that read rows and was not charged: it is advice."""
    if choice.charge is None or choice.charge.selection is None:
        return choice
    caveat = (
        "Nothing was charged. `modicum risk choose --release ID --charge UNIT` charges"
        " such a choice before it is made; it may then be disclosed."
    )
    choice_with_caveat = _with_caveat(choice, caveat)
    return replace(choice_with_caveat, claim=Claim.ADVICE, charge=None)


def _with_caveat(choice: Choice, caveat: str) -> Choice:
    """Return a choice with what was charged instead of what must be."""
    kept = (one for one in choice.caveats if one != CHARGE_SELECTION)
    return replace(choice, caveats=(*kept, caveat))


def must_be_of_persons(vocabulary: Vocabulary, charge: str, unit: str | None) -> None:
    """Refuse a unit of the policy whose instances are not the persons of a question."""
    known = vocabulary.unit_facts.get(charge)
    if known is None:
        raise mistake(
            f"the policy has no unit `{charge[:60]}`",
            f"{argument('charge')} is one of " + ", ".join(vocabulary.units),
            Code.UNKNOWN_UNIT,
            near=nearest(charge, vocabulary.units),
        )
    if known.period is not None or known.id != unit:
        raise ArgumentError(
            Problem(
                Code.KEYS_CONFLICT,
                f"an instance of `{charge}` is not a person of the query",
                notes=(
                    f"a person is {'a row' if unit is None else f'one `{unit}`'};"
                    f" an instance is one `{known.id}`"
                    + (" in a period" if known.period is not None else ""),
                ),
                help=f"give a unit without a period as {argument('charge')}, and its"
                f" column as {argument('unit')}",
            )
        )
    _must_add_or_remove(charge, known.neighbors)


def _must_add_or_remove(charge: str, relation: Relation) -> None:
    """Refuse a unit for which a person moves the answer farther than is measured."""
    if relation == RELATION:
        return
    raise InputError(
        Problem(
            Code.COST_NOT_DERIVABLE,
            f"no choice is proven for `{charge}`, whose neighbors are {relation}",
            notes=(
                "the influence of a person is measured with and without all of their"
                f" rows ({RELATION}); replacing rows may double it",
            ),
            help=f"charge a unit whose neighbors are {RELATION}, or use"
            " as-published, for yourself only",
        )
    )


def charged(
    workspace: Workspace,
    draft: ReleaseDraft,
    choose: Callable[[], Choice],
    on_start: Callable[[], None] = lambda: None,
) -> tuple[Decision, Choice | None]:
    """Make a choice under a reservation.

    It is reserved and started before rows are read; a later failure stays spent.
    """
    decision = workspace.submit(draft)
    if not decision.allowed:
        return decision, None
    with workspace.use(draft.release):
        on_start()
        caveat = (
            f"The choice itself is charged, as `{draft.release}`; a release at its"
            " epsilon is charged on top, when it is submitted."
        )
        return decision, _with_caveat(choose(), caveat)
