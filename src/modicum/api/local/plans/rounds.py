"""Rounds on the ledger: budgets are unlocked, user groups take turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from modicum.api.local.balances import Entry, LedgerBalances
from modicum.api.local.explanation.charges import cells_of, fullest, standing_of
from modicum.api.local.governance.approval_cases import active_policy
from modicum.api.local.plans.admission import refuse_others
from modicum.core.document import from_python
from modicum.core.errors import Code, ConflictError, InputError, Problem, UsageError
from modicum.core.rationals import brief, number_text
from modicum.core.reader import release_id
from modicum.ledger import Balances, RuleLoss
from modicum.ledger.decision.amounts import filled
from modicum.ledger.decision.unlocked_shares import MILLION
from modicum.ledger.log.events import GroupActivated, GroupRetired, RoundOpened
from modicum.ledger.state.rounds import Planning
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.model import RotationRule
from modicum.release import Part


@dataclass(frozen=True, slots=True)
class Turn:
    """The state of a user group in a round.

    Attributes:
        group: Its number.
        age: For how many rounds it has been active, this one included.
        unlocked: The fraction of its budget usable so far.
    """

    group: int
    age: int
    unlocked: Fraction


@dataclass(frozen=True, slots=True)
class Round:
    """The state of a round.

    Attributes:
        id: Its name.
        number: The number of opened rounds, including this one.
        unlocked: By unit, the usable fraction of every budget; units not listed are
            fully unlocked.
        active: The groups that are active, the oldest first.
        retired: The groups that are active no more.
        plans: The ids of the plans that were committed in it.
        again: Whether it was already open when it was requested.
    """

    id: str
    number: int
    unlocked: Mapping[str, Fraction]
    active: tuple[Turn, ...]
    retired: tuple[int, ...]
    plans: tuple[str, ...]
    again: bool = field(default=False, compare=False)


def open_round(
    entry: Entry, identifier: str = "", unlocked: Mapping[str, Fraction] | None = None
) -> Round:
    """Open the next round: a group joins, those that had their turns leave."""
    compiled = active_policy(entry.book)
    refuse_others(entry.actor, compiled.policy)
    planning = entry.book.state.planning
    shares = dict(_millionths(unlocked or {}, compiled))
    opened = planning.present_round
    if opened and opened.id == identifier and shares.items() <= opened.unlocked.items():
        # A request with an unknown outcome may be retried.
        return replace(must_be_open(present_round(entry.book, compiled)), again=True)
    number = len(planning.rounds) + 1
    name = identifier or f"round-{number}"
    release_id(from_python(name), "the id of a round")
    before = opened.unlocked if opened else {}
    _refuse_conflict(name, shares, planning, before)
    entry.add(RoundOpened(name, {**before, **shares}))
    rotation = compiled.policy.rotation
    if rotation is not None:
        _turn_over(entry, planning, rotation, name, number)
    return must_be_open(present_round(entry.book, compiled))


def _refuse_conflict(
    name: str, shares: Mapping[str, int], planning: Planning, before: Mapping[str, int]
) -> None:
    """Refuse an id in use, or fractions that fall."""
    if name in planning.rounds:
        opened = planning.present_round
        others = " with other shares" if opened and opened.id == name else ""
        raise _conflict(
            f"the round `{name}` was already opened{others}",
            "give the next round a different id",
        )
    for unit, least in sorted(before.items()):
        if shares.get(unit, least) < least:
            written = number_text(Fraction(least, MILLION))
            raise _conflict(
                f"the round `{name}` unlocks less for `{unit}` than the previous round",
                f"shares never decrease: unlock {unit}={written} or more, or leave it"
                " out",
            )


def _conflict(message: str, remedy: str) -> ConflictError:
    return ConflictError(Problem(Code.RELEASE_CONFLICT, message, help=remedy))


def _turn_over(
    entry: Entry, planning: Planning, rotation: RotationRule, name: str, number: int
) -> None:
    """Retire the groups whose rounds are over, and add the next one.

    Groups are numbered by the round that they join in.
    """
    for group, age in sorted(planning.ages().items()):
        if age > rotation.schedule.rounds:
            entry.add(GroupRetired(group, name))
    if number not in planning.groups:
        entry.add(GroupActivated(number, name))


def present_round(book: LedgerBalances, compiled: CompiledPolicy) -> Round | None:
    """Return the round that is open; None before the first."""
    planning, rotation = book.state.planning, compiled.policy.rotation
    opened = planning.present_round
    if opened is None:
        return None
    ages = planning.ages()
    turns = (
        Turn(group, age, rotation.schedule.share(age) if rotation else Fraction(1))
        for group, age in sorted(ages.items())
    )
    return Round(
        id=opened.id,
        number=len(planning.rounds),
        unlocked={
            unit: Fraction(one, MILLION)
            for unit, one in sorted(opened.unlocked.items())
        },
        active=tuple(turns),
        retired=tuple(sorted(planning.groups.keys() - ages.keys())),
        plans=tuple(
            one.id for one in planning.plans.values() if one.round == opened.id
        ),
    )


def must_be_open(found: Round | None) -> Round:
    """Return the round that is open."""
    if found is None:
        raise UsageError(
            Problem(
                Code.ROUND_MISSING,
                "no round is open: a plan needs one",
                help="open the first with  modicum plan open",
            )
        )
    return found


def _millionths(
    unlocked: Mapping[str, Fraction], compiled: CompiledPolicy
) -> Iterator[tuple[str, int]]:
    units = compiled.policy.vocabulary.units
    for unit, share in unlocked.items():
        if unit not in units:
            raise InputError(
                Problem(
                    Code.UNKNOWN_UNIT,
                    f"the policy has no privacy unit `{unit[:60]}`",
                    help=f"it has {', '.join(units)}",
                )
            )
        if not 0 <= share <= 1:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"the share unlocked for `{unit}` is {brief(share)}",
                    help="it must be from 0 to 1",
                )
            )
        yield unit, share.numerator * MILLION // share.denominator


@dataclass(frozen=True, slots=True)
class Remainder:
    """The unused budget of one rule for a retired group.

    Attributes:
        group: The number of the group.
        until: The round in which it was active no more.
        standing: The status of the rule in the group's fullest cell.
    """

    group: int
    until: str
    standing: RuleLoss


def remainders(
    balances: Balances, planning: Planning, day: int = 0
) -> tuple[Remainder, ...]:
    """Return, for each group that retired, the rule that leaves the least."""
    rules = [
        rule
        for rule in balances.compiled.rules
        if balances.family(rule.unit).space.grouped
    ]
    return tuple(
        Remainder(number, group.until, _fullest(balances, rules, number, day))
        for number, group in sorted(planning.groups.items())
        if group.until and rules
    )


def _fullest(balances: Balances, rules: list[Rule], group: int, day: int) -> RuleLoss:
    """Return the loss of the rule that leaves the least to a group."""
    part, compiled = Part(groups=((group, group),)), balances.compiled
    cells = (fullest(cells_of(balances, one, part, day), compiled) for one in rules)
    unlocked = balances.unlocked.of_unit
    return max(
        (standing_of(cell, compiled, unlocked(cell.rule.unit)) for cell in cells),
        key=filled,
    )
