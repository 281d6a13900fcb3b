"""The outlook: the effect of a choice of rotation and unlocking, round by round.

Nothing here reads data or a ledger: it is computed from the choice and from the
expected number of joining users. Budgets are shares of the budget of a whole life. A
request reads all active groups, so the available budget is that of the fullest of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, chain
from math import lcm

from modicum.accounting.filters.unlock_schedule import Schedule, out_of_range
from modicum.planner.rotation import Rotation

#: Maximum number of rounds of an outlook.
OUTLOOK_ROUNDS_MAX = 10_000
#: Maximum number of users joining in a round: more than there are people.
JOINING_MAX = 10**12


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of hyper-parameters.

    Attributes:
        name: Its distinguishing name, such as ``slack=0.4``.
        rotation: Which groups are active.
        schedule: The unlocking schedule; its length is the number of active rounds.
    """

    name: str
    rotation: Rotation
    schedule: Schedule

    def __post_init__(self) -> None:
        if self.schedule.rounds != self.rotation.active:
            raise out_of_range(
                f"the budget is unlocked in {self.schedule.rounds} rounds, but a group"
                f" is active for {self.rotation.active}",
                "give both the same number of rounds",
            )


@dataclass(frozen=True, slots=True)
class RoundOutlook:
    """The outlook of one round.

    Attributes:
        round: Its number; in round 0 nobody is active yet.
        groups: How many groups are active.
        users: How many users are active, on average.
        users_oldest: How many of them belong to the oldest group.
        users_newest: How many of them belong to the newest group.
        greedy: The share that is available, if all that was available was always used.
        balanced: The share that is available, if every round so far used an even part.
    """

    round: int
    groups: int
    users: Fraction
    users_oldest: Fraction
    users_newest: Fraction
    greedy: Fraction
    balanced: Fraction


@dataclass(frozen=True, slots=True)
class Outlook:
    """The outlook of a choice.

    Attributes:
        choice: The choice.
        unlocked: The share that is unlocked at each age, from 1.
        rounds: The rounds, from 1.
        steady_from: The first round from which on equally many users are active.
        users_steady: How many they are then.
    """

    choice: Choice
    unlocked: tuple[Fraction, ...]
    rounds: tuple[RoundOutlook, ...]
    steady_from: int
    users_steady: int


def look_ahead(choice: Choice, joining: Sequence[int], *, rounds: int) -> Outlook:
    """Return the outlook of a choice of hyper-parameters.

    Args:
        choice: The choice.
        joining: The number of users joining in round 0, 1, and so on; the last number
            holds for all later rounds. Initial users join in round 0.
        rounds: The number of rounds, from round 1 on.

    Raises:
        InputError: If a number is out of range.
    """
    _check(joining, rounds)
    sizes = _group_sizes(choice.rotation, joining, rounds)
    even = Fraction(1, choice.schedule.rounds)
    greedy = available(choice.schedule, rounds, use=Fraction(1))
    balanced = available(choice.schedule, rounds, use=even)
    lines = []
    for round_ in range(1, rounds + 1):
        groups = choice.rotation.active_groups(round_)
        lines.append(
            RoundOutlook(
                round_,
                groups=len(groups),
                users=sum((sizes[group] for group in groups), Fraction(0)),
                users_oldest=sizes[groups[0]],
                users_newest=sizes[groups[-1]],
                greedy=greedy[round_ - 1],
                balanced=balanced[round_ - 1],
            )
        )
    ages = range(1, choice.schedule.rounds + 1)
    return Outlook(
        choice,
        unlocked=tuple(choice.schedule.share(age) for age in ages),
        rounds=tuple(lines),
        steady_from=steady_from(choice.rotation, joining),
        users_steady=joining[-1] * choice.rotation.active,
    )


def steady_from(rotation: Rotation, joining: Sequence[int]) -> int:
    """Return the first round in which every active group has its final size.

    All users of these groups joined after the numbers stopped changing.

    Args:
        rotation: Which groups are active.
        joining: As for `look_ahead`.

    Examples:
        >>> steady_from(Rotation(active=12, horizon=104), [500])
        115
        >>> steady_from(Rotation(active=12, horizon=104), [90000, 500, 500])
        116
    """
    last = joining[-1]
    settled = next((i for i in range(len(joining), 0, -1) if joining[i - 1] != last), 0)
    return settled + rotation.horizon + rotation.active - 1


def available(
    schedule: Schedule, rounds: int, *, use: Fraction
) -> tuple[Fraction, ...]:
    """Return the share of the budget that is available in each round, from the first.

    In round 1 there is one group. Further groups of all ages without charges make no
    difference for the budget: the newest has the least.

    Args:
        schedule: The unlocking schedule.
        rounds: How many rounds.
        use: The share that each round uses, or all that is available if that is less.

    Examples:
        >>> from modicum.accounting.filters.unlock_schedule import Unlocking
        >>> halves = Unlocking(4, Fraction(1, 2))
        >>> [str(share) for share in available(halves, 6, use=Fraction(1))]
        ['3/8', '3/8', '1/8', '1/8', '3/8', '3/8']
    """
    exact = [schedule.share(age) for age in range(1, schedule.rounds + 1)]
    scale = lcm(use.denominator, *(share.denominator for share in exact))
    newest, *older = (int(share * scale) for share in exact)
    found: list[int] = []
    used: deque[int] = deque(maxlen=len(older))  # The latest round first.
    for _ in range(rounds):
        spent = accumulate(used)
        left = (share - before for share, before in zip(older, spent, strict=False))
        found.append(min(chain((newest,), left)))
        used.appendleft(min(found[-1], int(use * scale)))
    return tuple(Fraction(most, scale) for most in found)


def _group_sizes(
    rotation: Rotation, joining: Sequence[int], rounds: int
) -> list[Fraction]:
    """Return the average number of users of each group; group 0 is empty."""
    joined = [0]  # The number joined before a round.
    for round_ in range(rounds):
        joined.append(joined[-1] + joining[min(round_, len(joining) - 1)])
    sizes = [Fraction(0)]
    for group in range(1, rounds + 1):
        arrivals = rotation.arrivals_of_group(group)
        came = joined[arrivals.stop] - joined[arrivals.start]
        sizes.append(Fraction(came, rotation.horizon))
    return sizes


def _check(joining: Sequence[int], rounds: int) -> None:
    if not joining or not 0 <= min(joining) <= max(joining) <= JOINING_MAX:
        raise out_of_range(
            "the users that join are missing, negative or too many",
            f"give at least one number, each from 0 to {JOINING_MAX}",
        )
    if not 1 <= rounds <= OUTLOOK_ROUNDS_MAX:
        raise out_of_range(
            f"an outlook has {rounds} rounds",
            f"it has from 1 to {OUTLOOK_ROUNDS_MAX}",
        )
