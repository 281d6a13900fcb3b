"""The rules that look at each release by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting import ApproxBudget, Budget, Filter, Total, Unlimited
from modicum.accounting.filters.budget import fixed_figure, limit
from modicum.accounting.grid import DELTA, RHO
from modicum.core.rationals import DELTA_UNIT, floor_units
from modicum.ledger.decision.balances import REMEMBERED_MAX, Balances, Charges
from modicum.ledger.decision.unlocked_shares import Locked
from modicum.ledger.log.codec import likeness
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.policy import CompiledPolicy, Rule

if TYPE_CHECKING:
    from modicum.accounting.privacy_loss.pairs import Batch


class RuleLoss(Struct, frozen=True):
    """The decision of one rule about a release; `amounts` converts it to numbers.

    Of all cells that the release touches, it is the one that has the least left of its
    limit: the one that is over it by the most, if any denies.

    Attributes:
        rule: The rule.
        allowed: Whether it allows the release.
        before: The charge of the cell before; zero for a rule about each release alone.
        alone: The loss of this release.
        own_filter: The filter of the rule, as far as unlocked in the cell; for a rule
            about each release alone, only its cap on the mechanisms' own deltas is
            used.
        filter_name: The policy's filter.
        report_delta: The delta at which the loss is also shown, if one is known.
        cell: The cell as text; empty if the rule has one cell only.
        cells_denying: The number of denying cells.
        share: The unlocked fraction of the rule's budget in the cell.
        locked: Why nothing of it is; None if something is, or the rule allows it.
        undated: If the rule denies it, and would not deny it alone: its mechanisms that
            are charged to every period, because they name no `periods`.
        every_period: Whether cells at both ends of time are over the limit, as they
            are where releases name no `periods`.
        composed: For a rule about each release alone, epsilon of all its mechanisms
            in units of 1e-12, by the distribution of their privacy loss, if that was
            needed: it is proven in each cell.
    """

    rule: Rule
    allowed: bool
    before: Total
    alone: Total
    own_filter: Filter
    filter_name: str
    report_delta: Fraction | None
    cell: str = ""
    cells_denying: int = 0
    share: Fraction = Fraction(1)
    locked: Locked | None = None
    undated: tuple[str, ...] = ()
    every_period: bool = False
    composed: int | None = None

    @property
    def together(self) -> Total:
        """The total charge of the cell."""
        return self.before.joined(self.alone)

    @property
    def compared(self) -> int | None:
        """The coordinate by which its cells were compared; None if none is capped."""
        columns = [index for index, _ in self.own_filter.caps]
        return RHO if RHO in columns else min(columns, default=None)


class Alone(NamedTuple):
    """The decisions of the single-release rules.

    Attributes:
        numbers: The numbers of the rules, rising.
        losses: The decision of each of them.
        rounded: Units for which the release reads too fine a part.
        allowed: Whether all of them allow it.
    """

    numbers: tuple[int, ...]
    losses: tuple[RuleLoss, ...]
    rounded: tuple[str, ...]
    allowed: bool


#: Where sums say more than so many limits, distributions hardly help.
_HOPELESS = 2
#: The result without such rules.
_SILENT = Alone((), (), (), allowed=True)


def remembered_alone(balances: Balances, release: RecordedRelease, day: int) -> Alone:
    """Return the decisions of the single-release rules, cached by equality."""
    if not balances.compiled.release_rules:
        return _SILENT
    alone = _remembered(balances, release, day)
    return _full(alone, balances.unlocked.gap) if balances.unlocked.gap else alone


def _full(alone: Alone, gap: str) -> Alone:
    """Return the decisions while every limit counts as full."""
    losses = tuple(
        replace(
            loss,
            allowed=False,
            share=Fraction(0),
            locked=Locked(gap=gap),
            cells_denying=max(loss.cells_denying, 1),
        )
        if loss.own_filter.enforced and loss.alone != Total()
        else loss
        for loss in alone.losses
    )
    return alone._replace(losses=losses, allowed=all(one.allowed for one in losses))


def _remembered(balances: Balances, release: RecordedRelease, day: int) -> Alone:
    read = balances.single_release_rules(release, day)
    key: tuple[object, ...] = tuple(map(id, read))
    found: tuple[object, Alone] | None = balances.alone.get(key)
    if found is None:
        # The key object is stored with it, so that no other object gets its id.
        found = _keep(balances, key, read, _alone(balances, release, day))
    if found[1].allowed or any(one.derived is None for one in release.mechanisms):
        return found[1]
    # Equal losses may be of mechanisms that compose differently.
    close = *key, *map(likeness, release.mechanisms)
    closely: tuple[object, Alone] | None = balances.alone.get(close)
    if closely is None:
        closely = _keep(balances, close, read, _composed(balances, release, found[1]))
    return closely[1]


def _keep(
    balances: Balances, key: tuple[object, ...], read: object, alone: Alone
) -> tuple[object, Alone]:
    if len(balances.alone) >= REMEMBERED_MAX:
        balances.alone.clear()
    found = balances.alone[key] = read, alone
    return found


def _composed(balances: Balances, release: RecordedRelease, alone: Alone) -> Alone:
    """Return the decisions, with denying rules looked at by distributions.

    Only for releases since version 6 of the events, which say what their losses follow
    from: older denials stay as they were recorded.
    """
    from modicum.ledger.decision.loss_pairs import pairs_of

    about = balances.single_release_mechanisms(release)
    vocabulary = balances.compiled.policy.vocabulary

    @cache  # Many rules may match the same mechanisms.
    def pairs(place: int, unit: str) -> Batch | None:
        return pairs_of(release.mechanisms[place], unit, vocabulary)

    done: dict[tuple[Batch, Fraction], int] = {}
    losses = tuple(
        loss
        if loss.allowed
        else _by_distribution(
            loss, (pairs(one, loss.rule.unit) for one in about[number]), done
        )
        for number, loss in zip(alone.numbers, alone.losses, strict=True)
    )
    return alone._replace(losses=losses, allowed=all(one.allowed for one in losses))


def _by_distribution(
    loss: RuleLoss,
    pairs: Iterable[Batch | None],
    done: dict[tuple[Batch, Fraction], int],
) -> RuleLoss:
    """Return the decision of a rule that denies by sums.

    All of the mechanisms together lose at least what those of any cell do. Their
    distribution is not computed where it can hardly help, or where the release has
    taken too much work: a denial costs no budget, and an audit repeats it.

    Args:
        loss: The decision by sums.
        pairs: The pairs of each mechanism that the rule matches, found as needed.
        done: The work for the release so far, by batch and delta.
    """
    budget = loss.rule.budget
    if not isinstance(budget, ApproxBudget):
        return loss
    most = limit(budget)
    if fixed_figure(budget, loss.alone) > _HOPELESS * most:
        return loss
    from modicum.accounting.privacy_loss.batches import WORK_MAX, batch_epsilon, work
    from modicum.ledger.decision.loss_pairs import batch_of

    if sum(done.values()) > WORK_MAX:
        return loss
    batch = batch_of(pairs)
    if batch is None:
        return loss
    done.setdefault((batch, budget.delta), work(batch))
    if sum(done.values()) > WORK_MAX:
        return loss
    units = batch_epsilon(batch, budget.delta)
    if units is None:
        return loss
    if units <= most:
        return replace(loss, allowed=True, cells_denying=0, composed=units)
    return replace(loss, composed=units)


def _alone(balances: Balances, release: RecordedRelease, day: int) -> Alone:
    charges = balances.single_release_costs(release, day)
    losses = dict(sorted(_alone_losses(balances.compiled, charges), key=itemgetter(0)))
    rounded = (one.family.space.unit for one in charges if one.inquiry.overlay.rounded)
    allowed = all(one.allowed for one in losses.values())
    return Alone(tuple(losses), tuple(losses.values()), tuple(rounded), allowed)


def _alone_losses(
    compiled: CompiledPolicy, charges: Iterable[Charges]
) -> Iterator[tuple[int, RuleLoss]]:
    """Yield the decision of each single-release rule, and its number."""
    for family, inquiry in charges:
        for charge in inquiry.charges:
            totals = charge.alone.totals()
            counts = Counter(totals)
            for number in charge.numbers:
                loss = by_itself(compiled, compiled.release_rules[number], counts)
                piece = charge.places[totals.index(loss.alone)]
                box = family.segments.then().box(inquiry.overlay, int(piece))
                yield number, replace(loss, cell=family.space.text(box))


def by_itself(
    compiled: CompiledPolicy, rule: Rule, losses: Mapping[Total, int]
) -> RuleLoss:
    """Return the decision of a single-release rule, by its worst cell.

    Args:
        compiled: The policy.
        rule: The rule.
        losses: The cost of the release per cell, and the number of cells; at least one.
    """
    alone = max(losses, key=lambda one: _strain(rule.budget, one))
    denying = sum(cells for one, cells in losses.items() if not _fits(rule.budget, one))
    return RuleLoss(
        rule=rule,
        allowed=not denying,
        before=Total(),
        alone=alone,
        own_filter=_own_filter(rule.budget),
        filter_name=compiled.policy.filter_name,
        report_delta=compiled.report_delta(rule.budget),
        cells_denying=denying,
    )


def allows_alone(
    balances: Balances, release: RecordedRelease, day: int = 0, *, pruned: bool = True
) -> bool:
    """Return whether every single-release rule allows a release.

    Args:
        balances: Balances of the policy; their charges do not matter.
        release: The priced release.
        day: The day on which it is decided, as an ordinal.
        pruned: Whether to look only at rules that no other rule implies.
    """
    witness = balances.compiled.pruned_alone.witness
    alone = remembered_alone(balances, release, day)
    # What implies a rule by sums need not do so by distributions.
    pruned = pruned and all(loss.composed is None for loss in alone.losses)
    return all(
        loss.allowed or (pruned and witness[number] >= 0)
        for number, loss in zip(alone.numbers, alone.losses, strict=True)
    )


def _own_filter(budget: Budget) -> Filter:
    return Filter((), _whole_delta(budget), enforced=not isinstance(budget, Unlimited))


@lru_cache(maxsize=10_000)
def _strain(budget: Budget, alone: Total) -> tuple[bool, int]:
    """Return a key that orders losses by the fraction of a budget that they use."""
    if isinstance(budget, Unlimited):
        return False, 0
    return not _fits(budget, alone), fixed_figure(budget, alone)


@lru_cache(maxsize=10_000)
def _fits(budget: Budget, alone: Total) -> bool:
    """Return whether a batch whose parameters are fixed is within a budget."""
    return isinstance(budget, Unlimited) or (
        alone.units(DELTA) <= _whole_delta(budget)
        and fixed_figure(budget, alone) <= limit(budget)
    )


def _whole_delta(budget: Budget) -> int:
    if isinstance(budget, ApproxBudget):
        return floor_units(budget.delta, DELTA_UNIT)
    return 0
