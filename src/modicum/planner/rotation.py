"""Rotation: which users are active in a round, by groups that never mix.

Users are divided into numbered groups, for life. The number of a group is the round in
which it becomes active; it stays active for the same number of rounds as every other
group. So the active users are a sliding window over the groups, and this division is
fixed before the first request.

Rounds are numbered from 0. Who joins in round t belongs to one of the groups of the
rounds t + 1 to t + horizon. Hence no group grows while it is active.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import date

from modicum.accounting.filters.unlock_schedule import ROUNDS_MAX, out_of_range
from modicum.core.errors import Code, InputError, Problem

#: Maximum wait of users for their group, in rounds: a century of weeks.
HORIZON_MAX = 5200
#: The number of the last group that a release can name.
GROUP_MAX = 10**9
#: The length of an unguessable secret in bytes.
KEY_BYTES_MIN = 16
#: Domain separation, so that the same key makes no other hash equal.
_PURPOSE = b"modicum/user-group/v1\0"


@dataclass(frozen=True, slots=True)
class Rotation:
    """A sliding window over groups of users.

    Attributes:
        active: How many groups are active at the same time, and so for how many rounds
            each of them is.
        horizon: Over how many coming groups those who join are spread. With 1, groups
            follow arrival: who joins in a round is active from the next one on.
        round_days: The length of a round in days.
    """

    active: int = 12
    horizon: int = 104
    round_days: int = 7

    def __post_init__(self) -> None:
        for what, value, most in (
            ("the number of active groups", self.active, ROUNDS_MAX),
            ("the horizon of a rotation", self.horizon, HORIZON_MAX),
            ("the length of a round in days", self.round_days, 366),
        ):
            if not 1 <= value <= most:
                raise out_of_range(f"{what} is {value}", f"it is from 1 to {most}")

    # --- rounds and groups ----------------------------------------------------------

    def round_of(self, day: date, *, first_day: date) -> int:
        """Return the round that a day lies in.

        Args:
            day: The day.
            first_day: The first day of round 0.

        Raises:
            InputError: If the day is before the first one.
        """
        days = (day - first_day).days
        if days < 0:
            raise out_of_range(
                f"{day} is before the first round", f"rounds start on {first_day}"
            )
        return days // self.round_days

    def active_groups(self, round_: int) -> range:
        """Return the groups that are active in a round, the oldest first.

        Args:
            round_: Its number; in the first rounds there are fewer groups.
        """
        _check_round(round_)
        return range(max(1, round_ - self.active + 1), round_ + 1)

    def age(self, group: int, round_: int) -> int:
        """Return for how many rounds a group has been active, this one included.

        Args:
            group: Its number.
            round_: The round; before the group is active, its age is 0. The age of a
                retired group is above `active`.
        """
        _check_group(group)
        _check_round(round_)
        return max(0, round_ - group + 1)

    def activation(self, group: int) -> int:
        """Return the first round in which a group is active."""
        _check_group(group)
        return group

    def retirement(self, group: int) -> int:
        """Return the first round in which a group is active no longer."""
        _check_group(group)
        return group + self.active

    # --- users ----------------------------------------------------------------------

    def groups_of_arrivals(self, round_: int) -> range:
        """Return the groups that those who join in a round may belong to."""
        _check_round(round_)
        return range(round_ + 1, round_ + self.horizon + 1)

    def arrivals_of_group(self, group: int) -> range:
        """Return the rounds in which the users of a group joined."""
        _check_group(group)
        return range(max(0, group - self.horizon), group)

    def group_of(self, unit_id: str, joined: int, key: bytes | None = None) -> int:
        """Return the group of a user, the same for every caller and time.

        It depends on this user alone. Without the key, nobody can predict it, nor
        choose an id in a certain group. For any one id and a random key, the
        probability of each group differs from 1 / horizon by less than 2 to the -64.

        Args:
            unit_id: The user's stable id, spelled as everywhere.
            joined: The round in which the user joined *for the first time*. Returning
                users keep it; another one would give them a second group.
            key: A secret of at least 16 bytes that never changes. Not needed if groups
                follow arrival.

        Raises:
            InputError: If the key is missing or short, or the id is not text.
        """
        groups = self.groups_of_arrivals(joined)
        if self.horizon == 1:
            return groups[0]
        digest = hmac.new(_checked(key), _PURPOSE + _encoded(unit_id), hashlib.sha256)
        drawn = int.from_bytes(digest.digest())
        return groups[(drawn * self.horizon) >> 256]


def _check_round(round_: int) -> None:
    if not 0 <= round_ <= GROUP_MAX:
        raise out_of_range(f"the number of a round is {round_}", "it is at least 0")


def _check_group(group: int) -> None:
    if not 1 <= group <= GROUP_MAX:
        raise out_of_range(
            f"the number of a group is {group}",
            "it is the round in which it becomes active, at least 1",
        )


def _checked(key: bytes | None) -> bytes:
    if key is None or len(key) < KEY_BYTES_MIN:
        raise out_of_range(
            "the key of a rotation is missing or too short",
            f"give at least {KEY_BYTES_MIN} random bytes, always the same ones",
        )
    return key


def _encoded(unit_id: str) -> bytes:
    try:
        return unit_id.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            Problem(
                Code.NOT_TEXT,
                "the id of a unit is not plain text",
                help="use the same text as in the data, in UTF-8",
            )
        ) from error
