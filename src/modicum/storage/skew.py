"""The clock of this machine beside that of another one, such as a database server."""

from __future__ import annotations

from datetime import UTC, datetime

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.system.clock import JUMP_SECONDS

#: The last second that is shown: that of the year 9999.
_LAST = 253_402_300_799


def refuse_skew(name: str, own: float, there: float) -> None:
    """Refuse clocks that are further apart than a jump.

    Args:
        name: The display name of what has the other clock.
        own: The time of this machine, in seconds since 1970.
        there: The time of the other clock at the same moment.

    Raises:
        UnavailableError: If they are.
    """
    if abs(own - there) <= JUMP_SECONDS:
        return
    here, other = (
        f"{datetime.fromtimestamp(min(max(one, 0), _LAST), UTC):%Y-%m-%dT%H:%M:%SZ}"
        for one in (own, there)
    )
    raise UnavailableError(
        Problem(
            Code.CLOCK_JUMPED,
            f"the clock of this machine shows {here}, and that of {name} shows {other}",
            notes=("nothing was written, so that no reservation expires by mistake",),
            help="correct the wrong clock",
            places=(name,),
        )
    )
