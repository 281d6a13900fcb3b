"""The filters of a ledger's policies, and the delta that they promise together.

A filter keeps a limit of (eps, delta) except with a probability of at most delta. Which
filter has the last word may depend on earlier answers, so the failures of all filters
add up (ADR 0064). People accept a further filter by name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from modicum.accounting import ApproxBudget, refuse_unproven
from modicum.core.diagnostics import shortened
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_spelled
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy, RuleSet
from modicum.policy.compiler import compile_text

#: The name by which a further filter is accepted: no rule id has this form.
FILTER = "filter:"
#: Maximum number of rules, and of pairs of deltas, listed.
_NAMED_MAX = 5
_SEVERAL = 2
#: Maximum number of policies cached.
_REMEMBERED_MAX = 100


class Era(NamedTuple):
    """A policy under which people saw answers, or may have.

    Attributes:
        seq: The number of the entry that activated it.
        compiled: The policy.
        needs_filter: Whether a rule over history has a delta; other limits have no
            filter.
    """

    seq: int
    compiled: CompiledPolicy
    needs_filter: bool

    @property
    def filter(self) -> str:
        """The name of its filter."""
        return self.compiled.policy.filter_name


def eras(policies: Sequence[ActivePolicy], counted: Sequence[int]) -> tuple[Era, ...]:
    """Return the policies since the first release that counts, oldest first.

    Args:
        policies: The policies that were activated, oldest first.
        counted: The entries of the releases that count as spent.

    Raises:
        VerificationError: If one of these policies cannot be read.
    """
    if not counted:
        return ()
    first = bisect_right([one.seq for one in policies], min(counted)) - 1
    return tuple(map(_era, policies[max(0, first) :]))


def _era(policy: ActivePolicy) -> Era:
    try:
        return Era(policy.seq, *_read(policy.text))
    except InputError as error:
        raise ChainBreakError(policy.seq, "its policy cannot be read") from error


@lru_cache(maxsize=_REMEMBERED_MAX)
def _read(text: str) -> tuple[CompiledPolicy, bool]:
    compiled = compile_text(text.encode("utf-8"), "a past policy")
    return compiled, _needs_filter(compiled)


def _needs_filter(compiled: CompiledPolicy) -> bool:
    return any(
        isinstance(one, ApproxBudget)
        for rules in _summed(compiled)
        for one, _, _ in rules.budgets()
    )


def _summed(compiled: CompiledPolicy) -> Iterator[RuleSet]:
    """Yield the rules that a filter holds: of history, and of `requester_days`."""
    yield compiled.rules
    yield from (one.rules for one in compiled.requester_limits.values())


def promised_delta(rule: str, limit: ApproxBudget, past: Iterable[Era]) -> Fraction:
    """Return the delta with which the limit of a rule holds.

    It holds however releases, limits and filters were chosen: with the largest epsilon
    that the rule had, among all logs with these filters and no larger limits.

    Args:
        rule: Its id.
        limit: Its present limit; it stands for the eras in which the rule has no delta.
        past: The eras, up to the present one.

    Returns:
        The sum over filters of the largest delta that the rule had under each.

    Source:
        The union bound of `accounting.filters.budget`, over filters too: sort all
        transcripts by the policy that holds at the end. Caps grow with the limit, so
        those of one filter lie in the run that its largest limit stops.
    """
    found: dict[str, set[ApproxBudget]] = {}
    for era in past:
        if era.needs_filter:
            own = [rules.limit(rule) for rules in _summed(era.compiled)]
            one = next((one for one in own if isinstance(one, ApproxBudget)), limit)
            found.setdefault(era.filter, set()).add(one)
    each = (_delta(name, limits) for name, limits in found.items())
    return sum(each, Fraction(0)) or limit.delta


def _delta(name: str, limits: Collection[ApproxBudget]) -> Fraction:
    """Return the delta of a filter with some limits."""
    largest = ApproxBudget(
        max(one.eps for one in limits), max(one.delta for one in limits)
    )
    try:
        refuse_unproven(largest, name)
    except InputError:  # It is proven for each limit only.
        return sum((one.delta for one in limits), Fraction(0))
    return largest.delta


class FilterChange(NamedTuple):
    """A filter that is new to the releases that count.

    Attributes:
        filter: Its name.
        past: The eras before it that need a filter.
        compiled: The policy that has it.
    """

    filter: str
    past: tuple[Era, ...]
    compiled: CompiledPolicy

    @property
    def name(self) -> str:
        """The name by which it is accepted."""
        return FILTER + self.filter

    def prices(self) -> Mapping[tuple[Fraction, Fraction], Sequence[str]]:
        """Return the rules by the delta that they promise before and after it."""
        found: dict[tuple[Fraction, Fraction], list[str]] = {}
        for rule, limit in _approximate(self.compiled):
            before = promised_delta(rule, limit, self.past)
            found.setdefault((before, before + limit.delta), []).append(rule)
        return found

    @property
    def problem(self) -> Problem:
        """It as a mistake of the policy."""
        earlier = dict.fromkeys(f"`{one.filter}`" for one in self.past)
        return Problem(
            Code.FILTER_CHANGED,
            f"the filter changes to `{self.filter}` after releases under"
            f" {' and '.join(earlier)}",
            notes=(
                "each filter may fail with its own delta, so these limits hold with the"
                " sum of the deltas:",
                *_listed(
                    (
                        f"delta {number_spelled(before)} becomes"
                        f" {number_spelled(after)}",
                        rules,
                    )
                    for (before, after), rules in self.prices().items()
                ),
                f"or accept that by name:  --accept-conflict {self.name}",
            ),
            help=f"keep  filter: {self.past[-1].filter}",
        )


def filter_change(
    policies: Sequence[ActivePolicy], counted: Sequence[int], compiled: CompiledPolicy
) -> FilterChange | None:
    """Return the filter of a policy if it is new to the releases that count.

    Args:
        policies: The policies before it, oldest first.
        counted: As for `eras`.
        compiled: The policy.

    Raises:
        VerificationError: As `eras` does.
    """
    if not _needs_filter(compiled):
        return None
    past = tuple(one for one in eras(policies, counted) if one.needs_filter)
    chosen = compiled.policy.filter_name
    if not past or chosen in {one.filter for one in past}:
        return None
    return FilterChange(chosen, past, compiled)


def summed_deltas(
    policies: Sequence[ActivePolicy], counted: Sequence[int], compiled: CompiledPolicy
) -> Problem | None:
    """Return that limits hold with the deltas of several filters; None if of one.

    Args:
        policies: The policies that were activated, oldest first.
        counted: As for `eras`.
        compiled: The policy whose limits are meant; nothing is unless it is active.

    Raises:
        VerificationError: As `eras` does.
    """
    digests = [one.digest for one in policies]
    if len({*digests}) < _SEVERAL or digests[-1] != compiled.policy.digest:
        return None
    past = tuple(one for one in eras(policies, counted) if one.needs_filter)
    filters = dict.fromkeys(f"`{one.filter}`" for one in past)
    if len(filters) < _SEVERAL or not _needs_filter(compiled):
        return None
    promised: dict[Fraction, list[str]] = {}
    for rule, limit in _approximate(compiled):
        promised.setdefault(promised_delta(rule, limit, past), []).append(rule)
    return Problem(
        Code.FILTER_CHANGED,
        f"the policies since the first release have the filters"
        f" {' and '.join(filters)}: each may fail with its own delta",
        notes=(
            "these limits hold with the sum of the deltas:",
            *_listed(
                (f"delta {number_spelled(delta)}", rules)
                for delta, rules in promised.items()
            ),
        ),
        help="modicum audit report  shows each of them",
    )


def _approximate(compiled: CompiledPolicy) -> Iterator[tuple[str, ApproxBudget]]:
    """Yield each rule with a delta, and its limit."""
    for rules in _summed(compiled):
        for number in range(len(rules)):
            limit = rules.budget(*divmod(number, len(rules.contexts)))
            if isinstance(limit, ApproxBudget):
                yield rules.rule_id(number), limit


def _listed(priced: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield a line for each price and its rules, and the number of further ones."""
    several = list(priced)
    for price, rules in several[:_NAMED_MAX]:
        yield f"{price} for {shortened(rules, _NAMED_MAX)}"
    if len(several) > _NAMED_MAX:
        yield f"and {len(several) - _NAMED_MAX} more deltas"
